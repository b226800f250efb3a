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
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// DuckDB reads the exported files by the manifest, and its totals equal those of the API: by
// user and month, before and after a correction and a deletion.
func TestLake_totalsInDuckDBEqualTheAPI(t *testing.T) {
	ctx, dir, now := t.Context(), t.TempDir(), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
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

// Summaries, orders and results in DuckDB equal the answers of the service, before and after
// corrections and a deletion. Nothing of a deleted user is in a file of the manifest.
func TestLake_ordersAndSummariesInDuckDBEqualTheAPI(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	place, err := blob.OpenDirectory(dir, &blob.DirectoryOptions{Plain: true})
	require.NoError(t, err)
	store, team := memory.New(nil), healthlab.TeamID{UUID: uuid.New()}
	var exporter *lake.Exporter
	s, err := service.New(ctx, service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "http://localhost:8080", Stores: store.Stores, Files: store.Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
		Log: slog.New(slog.DiscardHandler),
		Loops: func(all *service.Service) (_ []service.Loop, err error) {
			teams := func(context.Context) ([]healthlab.TeamID, error) { return []healthlab.TeamID{team}, nil }
			exporter, err = lake.New(place, all.Health, teams, bytes.Repeat([]byte{7}, 32), &lake.Options{Identified: true, Orders: all.Orders})
			return nil, err
		},
	})
	require.NoError(t, err)
	tests, err := book.FindLabTests(ctx, catalogue.LabTestQuery{Team: team, Method: catalogue.Testkit})
	require.NoError(t, err)

	var users []healthlab.UserID
	placed := map[healthlab.UserID]orders.OrderID{}
	weigh := func(user healthlab.UserID, month time.Month, kilogram float64) {
		measured := &healthdata.Body{Weight: &kilogram}
		measured.MeasuredAt = healthlab.At(time.Date(2026, month, 3, 7, 0, 0, 0, time.UTC))
		_, err := s.Health.IngestSummaries(ctx, team, user, "body", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "scale"}}, []healthdata.Summary{measured})
		require.NoError(t, err)
	}
	for n := range 4 {
		u, err := s.Health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: fmt.Sprint("member-", n)})
		require.NoError(t, err)
		_, err = s.Health.Connect(ctx, team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		users = append(users, u.ID)
		for month := time.January; month <= time.March; month++ {
			weigh(u.ID, month, 60+10*float64(n)+float64(month))
		}
		o, err := s.Orders.Place(ctx, team, orders.PlaceRequest{
			UserID: u.ID, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{tests.Tests[0].ID}},
			PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
				Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
			PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
		})
		require.NoError(t, err)
		_, err = s.Exchange.Simulate(ctx, team, o.ID, "", orders.SimulationFlags{})
		require.NoError(t, err)
		placed[u.ID] = o.ID
	}

	db := duck(t, 2)
	manifest := fmt.Sprintf("read_json('%s/team=%s/manifest.json')", dir, team)
	files := func(resource string) string {
		run(t, db, fmt.Sprintf("set variable files = (select list('%s/' || f.path) from (select unnest(files) as f from %s) where f.resource = '%s')", dir, manifest, resource))
		return "read_parquet(getvariable('files'), hive_partitioning = true)"
	}
	compare := func(present ...healthlab.UserID) {
		_, err := exporter.Export(ctx, team)
		require.NoError(t, err)
		for _, user := range present {
			r, err := s.Aggregate.Query(ctx, team, user, aggregate.Ask(aggregate.Timeframe{
				Anchor: healthlab.Date{Year: 2026, Month: 12, Day: 31}, Past: aggregate.Years(1),
			}, aggregate.Query{
				Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Sum.Of(aggregate.Col("body", "weight_kilogram")), aggregate.Count.Of(aggregate.Col("body", "weight_kilogram"))},
				GroupBy: []aggregate.Expr{aggregate.By(aggregate.Months(1))},
			}))
			require.NoError(t, err)
			want := rowsOf(&r.Frames[0])
			require.Len(t, want, 3)
			_, got := answer(t, db, `select date_trunc('month', "index"), sum(weight_kilogram), count(weight_kilogram) from `+files("body")+` where "user" = '`+user.String()+`' group by 1 order by 1`)
			require.Len(t, got, len(want))
			for i := range want {
				same(t, want[i][1:], got[i], "a month of weights")
			}

			o, err := s.Orders.Get(ctx, team, placed[user])
			require.NoError(t, err)
			_, got = answer(t, db, `select "order", status, lab_test, collection_method, json_array_length(events) from `+files("order")+` where "user" = '`+user.String()+`'`)
			require.Len(t, got, 1)
			same(t, []any{o.ID.String(), string(o.LastEvent.Status), tests.Tests[0].Slug, string(catalogue.Testkit), len(o.Events)}, got[0], "an order")

			results, err := s.Orders.Results(ctx, team, o.ID)
			require.NoError(t, err)
			require.NotEmpty(t, results.Results)
			_, got = answer(t, db, `select slug, value, unit, interpretation from `+files("result")+` where "order" = '`+o.ID.String()+`'`)
			require.Len(t, got, len(results.Results))
			for i, r := range results.Results {
				var value any
				if r.Type == labresult.Numeric {
					value, _ = r.Value.Float64()
				}
				require.Equal(t, r.Slug, got[i][0])
				if value != nil {
					same(t, []any{value}, got[i][1:2], "the value of a result")
				}
				require.EqualValues(t, r.Interpretation, got[i][3])
			}
		}
		for _, resource := range []string{"body", "order", "result"} {
			_, got := answer(t, db, `select count(distinct "user") from `+files(resource))
			same(t, []any{len(present)}, got[0], "users in "+resource)
		}
		_, got := answer(t, db, `select count(*), count(distinct (f.resource, f.month)) from (select unnest(files) as f from `+manifest+`)`)
		require.Equal(t, got[0][0], got[0][1], "a month of a resource has one file")
	}
	compare(users...)
	weigh(users[0], time.February, 55.5) // a correction
	_, err = s.Exchange.Simulate(ctx, team, placed[users[2]], orders.StatusOf(catalogue.Testkit, orders.Corrected), orders.SimulationFlags{})
	require.NoError(t, err)
	compare(users...)
	require.NoError(t, s.Health.DeleteUser(ctx, team, users[1]))
	compare(users[0], users[2], users[3])
}
