package stores_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// A host keeps its data, and no events unless it says that they go to the outbox or to a sink of its own. What
// needs the outbox is refused without it.
func TestOptions_eventsChooseOutboxSinkOrNone(t *testing.T) {
	kept := func(events store.Events) (rows map[string]int, all *stores.Stores) {
		engine, err := memstore.New(stores.Tables(), nil)
		require.NoError(t, err)
		all = stores.New(engine, &stores.Options{Events: events})
		providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
		require.NoError(t, err)
		health, err := healthdata.New(all.Users(), all.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
		require.NoError(t, err)
		team := healthlab.TeamID{UUID: uuid.New()}
		u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
		require.NoError(t, err)
		_, err = health.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		_, err = health.IngestSamples(t.Context(), team, u.ID, "heartrate", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "watch"}},
			[]healthdata.Sample{{Timestamp: healthlab.At(time.Now()), Unit: "bpm", Value: healthdata.Number(61)}})
		require.NoError(t, err)
		require.NoError(t, health.Deletions().Delete(t.Context(), team, u.ID))
		rows = map[string]int{}
		for _, r := range engine.Kept() {
			rows[r.Table]++
		}
		return rows, all
	}
	rows, all := kept(stores.Outbox)
	require.True(t, all.HasOutbox())
	events := 0
	for _, d := range webhook.Tables() {
		events += rows[d.Name]
	}
	require.NotZero(t, events)

	own := &sink{}
	for _, events := range []store.Events{nil, stores.NoEvents, own} {
		rows, all = kept(events)
		require.NotEmpty(t, rows)
		for _, d := range webhook.Tables() {
			require.Zero(t, rows[d.Name], d.Name)
		}
		require.False(t, all.HasOutbox())
		types, err := webhook.NewCatalogue(healthdata.EventTypes())
		require.NoError(t, err)
		sealer, err := healthlab.NewAESSealer("1", map[string][]byte{"1": make([]byte, 32)})
		require.NoError(t, err)
		notifier := webhook.NewHTTP(nil)
		_, err = webhook.NewDispatcher(types, all.Webhooks(), notifier, sealer, nil)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.ErrorContains(t, err, "stores.Outbox")
		_, err = webhook.NewService(types, all.Webhooks(), notifier, sealer, nil)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.ErrorContains(t, err, "stores.Outbox")
		waiting, err := all.Backlog(t.Context())
		require.NoError(t, err)
		require.Equal(t, webhook.Backlog{}, waiting)
	}
	require.Positive(t, own.events.Load())
	require.Positive(t, own.forgotten.Load(), "a sink is told of an erasure")
}

// sink is a host's own store.Events.
type sink struct{ events, forgotten atomic.Int64 }

func (s *sink) Append(_ context.Context, _ store.Tx, events []healthlab.Event) error {
	s.events.Add(int64(len(events)))
	return nil
}

func (s *sink) Forget(context.Context, store.Tx, healthlab.TeamID, healthlab.UserID) error {
	s.forgotten.Add(1)
	return nil
}
