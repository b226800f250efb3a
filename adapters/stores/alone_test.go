package stores_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A host of health data alone stores nothing that it does not read or remove: what is stored does not grow with
// repeats and reads, no row waits for work of a service that does not run but one a connection, and the erasure of the
// last user leaves one row a team.
func TestHealthDataAlone_repeatsAndErasureLeaveNoRowsBehind(t *testing.T) {
	for name, made := range map[string]func(t *testing.T) (*memstore.Engine, healthdata.Users, healthdata.Data){
		"its own constructors": func(t *testing.T) (*memstore.Engine, healthdata.Users, healthdata.Data) {
			engine, err := memstore.New(append(healthdata.UserTables(), healthdata.DataTables(false)...), nil)
			require.NoError(t, err)
			return engine, healthdata.NewUsers(engine, nil), healthdata.NewData(engine, nil)
		},
		"stores": func(t *testing.T) (*memstore.Engine, healthdata.Users, healthdata.Data) {
			engine, err := memstore.New(stores.Tables(), nil)
			require.NoError(t, err)
			all := stores.New(engine, nil)
			return engine, all.Users(), all.Data()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, users, data := made(t)
				providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
				require.NoError(t, err)
				health, err := healthdata.New(users, data, providers, &healthdata.Options{Environment: healthlab.Sandbox})
				require.NoError(t, err)
				h := alone{t, health, healthlab.TeamID{UUID: uuid.New()}}
				h.live("a")
				once := tables(engine)
				h.live("a")
				require.Equal(t, once, tables(engine), "repeats and reads store nothing more")
				for _, row := range engine.Kept() { // a connection has one row, by which a pull.Service finds it later
					require.True(t, row.Due.IsZero() || row.Table == healthdata.ConnectionTable.Name, "a row of %s waits for work", row.Table)
				}
				require.Equal(t, 1, once[healthdata.ConnectionTable.Name])
				for i := range 5 {
					h.live(fmt.Sprint("user ", i))
				}
				all, err := health.Users(t.Context(), h.team, 0, 100)
				require.NoError(t, err)
				require.Len(t, all.Users, 6)
				for _, u := range all.Users {
					require.NoError(t, health.Deletions().Delete(t.Context(), h.team, u.ID))
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- health.Deletions().Run(ctx) }()
				time.Sleep(healthdata.GracePeriod + 24*time.Hour) // of the bubble's clock
				synctest.Wait()
				stop()
				require.NoError(t, <-ended)
				require.Equal(t, map[string]int{"user_lock": 1}, tables(engine), "a team has one row, which its users are created under")
			})
		})
	}
}

// alone is a host of health data.
type alone struct {
	*testing.T
	*healthdata.Service
	team healthlab.TeamID
}

// live is what a user does in some days, through each method that writes: it may be repeated.
func (h alone) live(name string) {
	ctx, t := h.Context(), h.T
	u, created, err := h.CreateOrGet(ctx, h.team, healthdata.NewUser{ClientUserID: name})
	require.NoError(t, err)
	if created {
		_, err = h.Connections().ConnectLinked(ctx, h.team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
	}
	up := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "watch"}, Device: &healthdata.DeviceInfo{ID: new("w1")}}
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := range 3 {
		var samples []healthdata.Sample
		for minute := range 600 {
			samples = append(samples, healthdata.Sample{Timestamp: healthlab.At(at.AddDate(0, 0, -day).Add(-time.Duration(minute) * time.Minute)), Unit: "bpm", Value: healthdata.Number(61)})
		}
		_, err = h.IngestSamples(ctx, h.team, u.ID, "heartrate", up, samples)
		require.NoError(t, err)
		night := &healthdata.Sleep{BedtimeStart: healthlab.At(at.AddDate(0, 0, -day).Add(-9 * time.Hour)), BedtimeStop: healthlab.At(at.AddDate(0, 0, -day).Add(-time.Hour))}
		healthdata.HeadOf(night).ExternalID = fmt.Sprint(day)
		_, err = h.IngestSummaries(ctx, h.team, u.ID, "sleep", up, []healthdata.Summary{night})
		require.NoError(t, err)
	}
	_, err = h.RemoveSamples(ctx, h.team, u.ID, "heartrate", up, "", []healthlab.Time{healthlab.At(at)})
	require.NoError(t, err)
	_, err = h.RemoveSummaries(ctx, h.team, u.ID, "sleep", up, []string{"2"})
	require.NoError(t, err)
	_, err = h.Samples(ctx, h.team, u.ID, healthdata.SampleQuery{Resource: "heartrate", From: at.AddDate(0, 0, -9), To: at})
	require.NoError(t, err)
}

// tables counts rows by table.
func tables(engine *memstore.Engine) map[string]int {
	out := map[string]int{}
	for _, r := range engine.Kept() {
		out[r.Table]++
	}
	return out
}
