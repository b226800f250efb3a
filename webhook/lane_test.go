package webhook_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

func TestPlace_decidesWhereADeliveryEntersItsLane(t *testing.T) {
	row := func(key string, seq int64, sending bool) *webhook.LaneEntry {
		return &webhook.LaneEntry{Key: key, Seq: seq, Sending: sending}
	}
	for _, c := range []struct {
		name string
		lane webhook.LaneView
		key  string
		seq  int64
		want webhook.Placement
	}{
		{"empty lane", webhook.LaneView{}, "k", 1, webhook.BecomeHead},
		{"empty lane, counts by itself", webhook.LaneView{}, "", 1, webhook.BecomeHead},
		{"counts by itself", webhook.LaneView{Head: row("", 1, false)}, "", 2, webhook.WaitBehind},
		{"older head, unsent, alone", webhook.LaneView{Head: row("k", 1, false)}, "k", 2, webhook.ReplaceHead},
		{"older head, being sent", webhook.LaneView{Head: row("k", 1, true)}, "k", 2, webhook.WaitBehind},
		{"older head, being sent, older waits", webhook.LaneView{Head: row("k", 1, true), Behind: true, Same: row("k", 2, false)}, "k", 3, webhook.ReplaceWaiting},
		{"older head, failed, older waits", webhook.LaneView{Head: row("k", 1, false), Behind: true, Same: row("k", 2, false)}, "k", 3, webhook.ReplaceWaiting},
		{"older head, failed, another key waits", webhook.LaneView{Head: row("k", 1, false), Behind: true}, "k", 3, webhook.WaitBehind},
		{"older head, newer waits", webhook.LaneView{Head: row("k", 1, false), Behind: true, Same: row("k", 4, false)}, "k", 3, webhook.Drop},
		{"the same waits", webhook.LaneView{Head: row("k", 1, false), Behind: true, Same: row("k", 3, false)}, "k", 3, webhook.Drop},
		{"same head", webhook.LaneView{Head: row("k", 2, false)}, "k", 2, webhook.Drop},
		{"newer head", webhook.LaneView{Head: row("k", 3, true)}, "k", 2, webhook.Drop},
		{"head of another key", webhook.LaneView{Head: row("other", 9, false)}, "k", 2, webhook.WaitBehind},
		{"head of another key, older waits", webhook.LaneView{Head: row("other", 9, false), Behind: true, Same: row("k", 1, false)}, "k", 2, webhook.ReplaceWaiting},
		{"head counts by itself", webhook.LaneView{Head: row("", 1, false)}, "k", 2, webhook.WaitBehind},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, webhook.Place(c.lane, c.key, c.seq)) })
	}
}

func TestLaneOf_dependsOnModeScopeAndKey(t *testing.T) {
	a := healthlab.Event{ID: uuid.New(), Key: "k", User: user}
	b := healthlab.Event{ID: uuid.New(), Key: "k", User: user}
	other := healthlab.Event{ID: uuid.New(), Key: "l", User: user}
	nobody := healthlab.Event{ID: uuid.New(), Key: "k"}
	lane := webhook.LaneOf
	require.Equal(t, lane(a, healthlab.Latest, webhook.OrderKey), lane(b, healthlab.Ordered, webhook.OrderKey))
	require.NotEqual(t, lane(a, healthlab.Latest, webhook.OrderKey), lane(other, healthlab.Latest, webhook.OrderKey))
	require.Equal(t, lane(a, healthlab.Latest, webhook.OrderUser), lane(other, healthlab.Ordered, webhook.OrderUser))
	require.Equal(t, lane(nobody, healthlab.Latest, webhook.OrderUser), lane(nobody, healthlab.Latest, webhook.OrderKey))
	require.NotEqual(t, lane(a, healthlab.Independent, webhook.OrderUser), lane(b, healthlab.Independent, webhook.OrderUser))
	a.Key, b.Key = "", ""
	require.NotEqual(t, lane(a, healthlab.Latest, webhook.OrderKey), lane(b, healthlab.Latest, webhook.OrderKey))
}
