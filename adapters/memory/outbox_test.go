package memory_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook"
)

// What is older than the retention is forgotten: messages, attempts, and deliveries
// that were never finished. What is not routed yet stays, however old.
func TestOutbox_deletesRoutedMessagesAfterTheRetention(t *testing.T) {
	var days atomic.Int64
	s := memory.New(&memory.Options{Keys: newKeys(), Now: func() time.Time { return time.Now().AddDate(0, 0, int(days.Load())) }})
	team := healthlab.TeamID{UUID: uuid.New()}
	to := webhook.Endpoint{ID: webhook.EndpointID{UUID: uuid.New()}, Team: team, URL: "https://receiver.example.com"}
	require.NoError(t, s.Endpoints().Insert(t.Context(), to, 1))
	write := func() uuid.UUID {
		e := healthlab.Event{ID: uuid.New(), Type: "test.ordered.changed", Team: team, Key: "k", Data: json.RawMessage("{}")}
		require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{e}))
		return e.ID
	}
	route := func() int {
		routed, err := s.Deliveries().Route(t.Context(), nil, 100)
		require.NoError(t, err)
		return routed.Events
	}
	claim := func() []webhook.Delivery {
		c, err := s.Deliveries().Claim(t.Context(), webhook.Claim{Quotas: []webhook.Quota{{Endpoint: to.ID, Max: 9}}, Lease: time.Minute})
		require.NoError(t, err)
		return c.Deliveries
	}
	known := func(id uuid.UUID) bool {
		_, err := s.WebhookLog().Message(t.Context(), team, id)
		return err == nil
	}

	first, second := write(), write()
	require.Equal(t, 2, route())
	d := claim()[0]
	_, err := s.Deliveries().RecordOutcomes(t.Context(), []webhook.Outcome{{Delivery: d, State: webhook.Succeeded, Sent: true}})
	require.NoError(t, err)
	waits := write() // and no router for a month

	days.Store(29)
	fresh := write()
	require.True(t, known(first))

	days.Store(31)
	last := write()
	require.Equal(t, 3, route())
	require.False(t, known(first))
	require.False(t, known(second))
	require.True(t, known(waits))
	for i, want := range []uuid.UUID{waits, fresh, last} {
		got := claim()
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].Event, "the unfinished old one is gone")
		require.Equal(t, int64(i+3), got[0].Seq, "the count goes on")
		_, err := s.Deliveries().RecordOutcomes(t.Context(), []webhook.Outcome{{Delivery: got[0], State: webhook.Succeeded, Sent: true}})
		require.NoError(t, err)
	}
	page, err := s.WebhookLog().Attempts(t.Context(), webhook.AttemptQuery{Team: team})
	require.NoError(t, err)
	require.Len(t, page.Attempts, 3)
}
