package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/blob"
	"github.com/healthlab-dev/healthlab/adapters/lake"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// DuckDB reads the exported files by the manifest, and its totals equal those of the API: by
// user and month, before and after a correction and a deletion.
func TestLakeInDuckDB(t *testing.T) {
	ctx, dir, now := t.Context(), t.TempDir(), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual"}})
	require.NoError(t, err)
	store, team := memory.New(&memory.Options{Now: clock}), healthlab.TeamID{UUID: uuid.New()}
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	questions, err := aggregate.New(health, &aggregate.Options{Now: clock})
	require.NoError(t, err)
	place, err := blob.OpenDirectory(dir, &blob.DirectoryOptions{Plain: true})
	require.NoError(t, err)
	exporter, err := lake.New(place, health, func(context.Context) ([]healthlab.TeamID, error) { return []healthlab.TeamID{team}, nil },
		bytes.Repeat([]byte{5}, 32), &lake.Options{Now: clock, Identified: true, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	var users []healthdata.User
	write := func(user healthlab.UserID, days int, each func(i int) float64) {
		var samples []healthdata.Sample
		for i := range days {
			at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, i)
			end := healthlab.At(at.Add(time.Hour))
			samples = append(samples, healthdata.Sample{Timestamp: healthlab.At(at), End: &end, Unit: "count", Value: healthdata.Number(each(i))})
		}
		_, err := health.IngestSamples(ctx, team, user, "steps",
			healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}, samples)
		require.NoError(t, err)
	}
	for n := range 5 {
		u, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: fmt.Sprint("member-", n)})
		require.NoError(t, err)
		_, err = health.Connect(ctx, team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		users = append(users, u)
		write(u.ID, 90, func(i int) float64 { return float64(1000*n + i) })
	}
	db := duck(t, 2)
	compare := func() {
		now = now.Add(24 * time.Hour)
		_, err := exporter.Export(ctx, team)
		require.NoError(t, err)
		_, err = db.ExecContext(ctx, fmt.Sprintf(
			"set variable files = (select list('%[1]s/' || f.path) from (select unnest(files) as f from read_json('%[1]s/team=%[2]s/manifest.json')) where f.resource = 'steps')", dir, team))
		require.NoError(t, err)
		total := 0
		for _, u := range users {
			var want [][]any
			r, err := questions.Query(ctx, team, u.ID, aggregate.Ask(aggregate.Timeframe{
				Anchor: healthlab.Date{Year: 2026, Month: 12, Day: 31}, Past: aggregate.Years(1),
			}, aggregate.Query{
				Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Sum.Of(aggregate.Samples("steps")), aggregate.Count.Of(aggregate.Samples("steps"))},
				GroupBy: []aggregate.Expr{aggregate.By(aggregate.Months(1))},
			}))
			if err == nil {
				want = rowsOf(&r.Frames[0])
			} else {
				require.ErrorIs(t, err, healthlab.NotFound)
			}
			_, got := answer(t, db, `select date_trunc('month', time at time zone 'UTC'), sum(value), count(value)
				from read_parquet(getvariable('files'), hive_partitioning = true) where "user" = '`+u.ID.String()+`' group by 1 order by 1`)
			require.Len(t, got, len(want))
			for i := range want {
				same(t, want[i][1:], got[i], "a month of "+u.ID.String())
				total++
			}
		}
		require.Positive(t, total)
	}
	compare()
	write(users[0].ID, 40, func(int) float64 { return 7 })
	compare()
	require.NoError(t, health.DeleteUser(ctx, team, users[1].ID))
	compare()
}
