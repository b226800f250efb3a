package continuous_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A team stores a question. The user's data is there already; the first task answers it.
func Example() {
	ctx := context.Background()
	store := memory.New(nil)
	providers, err := healthdata.NewProviders(nil)
	if err != nil {
		log.Fatal(err)
	}
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		log.Fatal(err)
	}
	questions, err := aggregate.New(health, nil)
	if err != nil {
		log.Fatal(err)
	}
	queries, err := continuous.New(questions, store.Continuous(), store.ContinuousWork(), nil)
	if err != nil {
		log.Fatal(err)
	}

	team, robin := healthlab.TeamID{UUID: uuid.UUID{1}}, healthlab.UserID{UUID: uuid.UUID{2}}
	zone := healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default"}
	if err := store.Users().Insert(ctx, healthdata.User{ID: robin, Team: team, ClientUserID: "robin", FallbackTimeZone: zone}, 0); err != nil {
		log.Fatal(err)
	}
	var steps series.Builder
	steps.Add(series.Sample{Time: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMicro(), Value: 4200})
	batch := healthdata.SampleBatch{
		Key:     healthdata.SeriesKey{Resource: "steps", Provider: "acme_band", SourceType: "watch"},
		Samples: steps.Block(), Span: series.PerMinute,
	}
	if err := store.Data().MergeSamples(ctx, team, robin, []healthdata.SampleBatch{batch}, nil); err != nil {
		log.Fatal(err)
	}

	_, err = queries.Create(ctx, team, &continuous.Definition{
		Slug: "steps-per-day", Title: "Steps per day",
		Query: aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Sum.Of(aggregate.Samples("steps"))},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := queries.Claim(ctx, 10) // Run does this in the background
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range tasks {
		if err := queries.Do(ctx, task); err != nil {
			log.Fatal(err)
		}
	}
	table, err := queries.Result(ctx, team, robin, "steps-per-day")
	if err != nil {
		log.Fatal(err)
	}
	if err := table.WriteJSON(os.Stdout); err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	// Output: {"table":{"index":["2026-03-02T00:00:00"],"group_key.0":["2026-03-02T00:00:00"],"sum.steps.value":[4200]}}
}
