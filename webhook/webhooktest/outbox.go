package webhooktest

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// OutboxHarness is a fresh, empty outbox with a function to read its messages.
type OutboxHarness struct {
	Outbox webhook.Outbox
	// Message returns an appended event with its Seq and its body, as [webhook.Log] does. It returns NotFound if
	// the team has no such event.
	Message func(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error)
}

// RunOutbox checks the contract of [webhook.Outbox] alone, for an outbox whose events are delivered by another
// program. newOutbox returns a fresh, empty outbox and registers its own cleanup. [RunDeliveries] has these
// cases too.
func RunOutbox(t *testing.T, newOutbox func(t *testing.T) OutboxHarness) {
	for _, c := range outboxCases {
		t.Run("Append/"+c.name, func(t *testing.T) { c.run(t, newOutbox(t)) })
	}
}

func (h Harness) outbox() OutboxHarness { return OutboxHarness{h.Outbox, h.Log.Message} }

// outboxCase is one test case of the suite.
type outboxCase struct {
	name string
	run  func(t *testing.T, h OutboxHarness)
}

func eventOf(team healthlab.TeamID, eventType, key string) healthlab.Event {
	b := bench{team: team, user: healthlab.UserID{UUID: uuid.New()}}
	return b.event(eventType, key)
}

func newTeam() healthlab.TeamID { return healthlab.TeamID{UUID: id()} }

func (h OutboxHarness) append(t *testing.T, events ...healthlab.Event) {
	t.Helper()
	require.NoError(t, h.Outbox.Append(t.Context(), events))
}

func (h OutboxHarness) seq(t *testing.T, e healthlab.Event) int64 {
	t.Helper()
	m, err := h.Message(t.Context(), e.Team, e.ID)
	require.NoError(t, err)
	return m.Seq
}

func (h OutboxHarness) missing(t *testing.T, e healthlab.Event) {
	t.Helper()
	_, err := h.Message(t.Context(), e.Team, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}

var outboxCases = []outboxCase{
	{"DrawsSeqPerKey", func(t *testing.T, h OutboxHarness) {
		team := newTeam()
		for i := range 3 {
			for _, key := range []string{"a", "b"} {
				e := eventOf(team, typeOrdered, key)
				e.Seq = 77 // the store sets its own Seq
				h.append(t, e)
				require.Equal(t, int64(i+1), h.seq(t, e))
			}
		}
		other := eventOf(newTeam(), typeOrdered, "a")
		h.append(t, other)
		require.Equal(t, int64(1), h.seq(t, other), "keys belong to a team")
		first, second := eventOf(team, typeOrdered, "a"), eventOf(team, typeOrdered, "a")
		h.append(t, first, second)
		require.Equal(t, []int64{4, 5}, []int64{h.seq(t, first), h.seq(t, second)}, "in the order given")
	}},
	{"Teams", func(t *testing.T, h OutboxHarness) {
		e := eventOf(newTeam(), typeLatest, "k")
		h.append(t, e)
		e.Team = newTeam()
		h.missing(t, e)
	}},
	{"Body", func(t *testing.T, h OutboxHarness) {
		e := eventOf(newTeam(), typeLatest, "k")
		e.Data = []byte("{\"b\":1.50, \"a\":\"é\\u0001\"}")
		h.append(t, e)
		want, err := webhook.Envelope{}.Render(e, nil)
		require.NoError(t, err)
		m, err := h.Message(t.Context(), e.Team, e.ID)
		require.NoError(t, err)
		require.Equal(t, string(want), string(m.Body))
		require.Equal(t, e.Type, m.Type)
	}},
	{"AllOrNone", func(t *testing.T, h OutboxHarness) {
		team := newTeam()
		good, bad := eventOf(team, typeLatest, "k"), eventOf(team, typeLatest, "k")
		bad.Data = []byte("[]")
		require.ErrorIs(t, h.Outbox.Append(t.Context(), []healthlab.Event{good, bad}), healthlab.Invalid)
		h.missing(t, good)
		h.append(t, good)
		require.Equal(t, int64(1), h.seq(t, good), "a refused write draws nothing")
	}},
	{"NoEvents", func(t *testing.T, h OutboxHarness) {
		require.NoError(t, h.Outbox.Append(t.Context(), nil))
	}},
	{"IDTaken", func(t *testing.T, h OutboxHarness) {
		e := eventOf(newTeam(), typeLatest, "k")
		require.ErrorIs(t, h.Outbox.Append(t.Context(), []healthlab.Event{e, e}), healthlab.Conflict)
		h.append(t, e)
		require.ErrorIs(t, h.Outbox.Append(t.Context(), []healthlab.Event{e}), healthlab.Conflict)
		e.ID = uuid.Nil
		require.ErrorIs(t, h.Outbox.Append(t.Context(), []healthlab.Event{e}), healthlab.Invalid)
	}},
	{"CancelledContext", func(t *testing.T, h OutboxHarness) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := eventOf(newTeam(), typeLatest, "k")
		require.ErrorIs(t, h.Outbox.Append(ctx, []healthlab.Event{e}), context.Canceled)
		h.missing(t, e)
	}},
	{"SeqUnderWriters", func(t *testing.T, h OutboxHarness) {
		team := newTeam()
		events := make([]healthlab.Event, 8*prove.Count(10, 100))
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				for i := w; i < len(events); i += 8 {
					events[i] = eventOf(team, typeOrdered, "k")
					if err := h.Outbox.Append(t.Context(), events[i:i+1]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		seen := map[int64]bool{}
		for _, e := range events {
			seq := h.seq(t, e)
			require.False(t, seen[seq], "each its own")
			require.True(t, seq >= 1 && seq <= int64(len(events)), "without a gap")
			seen[seq] = true
		}
	}},
}
