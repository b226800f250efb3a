package stores_test

import (
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

// A host without a dispatcher keeps its data and no events; the default keeps both.
func TestOptions_eventsAreAnOption(t *testing.T) {
	kept := func(events store.Events) (rows map[string]int, all *stores.Stores) {
		engine, err := memstore.New(stores.Tables(), nil)
		require.NoError(t, err)
		all = stores.New(engine, &stores.Options{Events: events})
		providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual"}})
		require.NoError(t, err)
		health, err := healthdata.New(all.Users(), all.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
		require.NoError(t, err)
		team := healthlab.TeamID{UUID: uuid.New()}
		u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
		require.NoError(t, err)
		_, err = health.Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		_, err = health.IngestSamples(t.Context(), team, u.ID, "heartrate", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "watch"}},
			[]healthdata.Sample{{Timestamp: healthlab.At(time.Now()), Unit: "bpm", Value: healthdata.Number(61)}})
		require.NoError(t, err)
		require.NoError(t, health.DeleteUser(t.Context(), team, u.ID))
		rows = map[string]int{}
		for _, r := range engine.Kept() {
			rows[r.Table]++
		}
		return rows, all
	}
	rows, all := kept(nil)
	require.True(t, all.HasOutbox())
	events := 0
	for _, d := range webhook.Tables() {
		events += rows[d.Name]
	}
	require.NotZero(t, events)

	rows, all = kept(stores.NoEvents)
	require.NotEmpty(t, rows)
	for _, d := range webhook.Tables() {
		require.Zero(t, rows[d.Name], d.Name)
	}
	require.False(t, all.HasOutbox())
	_, err := webhook.NewDispatcher(nil, all.Deliveries(), all.Endpoints(), nil, nil, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	waiting, err := all.Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, webhook.Backlog{}, waiting)
}
