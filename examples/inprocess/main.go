// Inprocess keeps health data in the file inprocess.db and asks about it in the same process, without HTTP:
// go run ./examples/inprocess
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func main() { run(context.Background(), "inprocess.db", time.Now(), os.Stdout) }

// run stores 1,000 steps for each day of a week, queries the steps by day, and prints the answer.
func run(ctx context.Context, file string, now time.Time, out io.Writer) {
	engine := must(sqlite.Open(ctx, file, slices.Concat(healthdata.UserTables(), healthdata.DataTables(false)), nil))
	defer func() { must(0, engine.Close()) }()
	providers := must(healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual", Category: "app"}}))
	health := must(healthdata.New(healthdata.NewUsers(engine, nil), healthdata.NewData(engine, nil), providers,
		&healthdata.Options{Environment: healthlab.Sandbox}))
	ctx, stop := context.WithCancel(ctx)
	erased := make(chan error)
	go func() { erased <- health.Deletions().Run(ctx) }() // erases deleted users after their grace period
	defer func() { stop(); must(0, <-erased) }()

	team := healthlab.TeamID{UUID: uuid.UUID{2}} // a fixed id: data is found by it
	ann, _, err := health.CreateOrGet(ctx, team, healthdata.NewUser{ClientUserID: "ann"})
	must(health.Connections().Connect(ctx, team, must(ann, err).ID, healthdata.NewConnection{Provider: "manual"}))
	var steps []healthdata.Sample
	for day := range 7 {
		at := now.Truncate(24*time.Hour).AddDate(0, 0, -day).Add(-time.Hour)
		steps = append(steps, healthdata.Sample{Timestamp: healthlab.At(at), End: new(healthlab.At(at.Add(10 * time.Minute))), Unit: "count", Value: healthdata.Number(1000)})
	}
	must(health.IngestSamples(ctx, team, ann.ID, "steps", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: "app"}}, steps))

	result := must(must(aggregate.New(health, nil)).Query(ctx, team, ann.ID, aggregate.Ask(aggregate.Last(7, healthlab.DateOf(now.UTC())), aggregate.Query{
		Select: []aggregate.Expr{aggregate.Sum.Of(aggregate.Samples("steps"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
	})))
	for _, row := range result.Frames[0].Rows() {
		fmt.Fprintln(out, row...) // the day (a healthlab.Date) and the sum of its steps
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
