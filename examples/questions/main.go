// Questions is the program of docs/guides/questions.md: five questions about an invented person, over
// wearables and laboratory results, answered in Go. Run with -serve it answers the same over HTTP and
// to assistants.
//
//	go run ./examples/questions
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
)

func main() {
	serve := flag.String("serve", "", "address to answer on, such as 127.0.0.1:8080")
	flag.Parse()
	if err := run(context.Background(), *serve, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, serve string, out io.Writer) error {
	p, err := newPerson(ctx)
	if err != nil {
		return err
	}
	for _, answer := range []func(context.Context, *person, io.Writer) error{
		cholesterolAndSteps, glucoseByWeek, restingHeartRate, hemoglobinInRange, weightInMarch,
	} {
		if err := answer(ctx, p, out); err != nil {
			return err
		}
	}
	if serve == "" {
		return nil
	}
	fmt.Fprintf(out, "URL=http://%s USER_ID=%s KEY=%s\n", serve, p.user, apiKey)
	server := &http.Server{Addr: serve, Handler: p.handler, ReadHeaderTimeout: time.Minute}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// cholesterolAndSteps: what was LDL before and after the month in which steps doubled?
func cholesterolAndSteps(ctx context.Context, p *person, out io.Writer) error {
	result, err := p.questions.Query(ctx, p.team, p.user, aggregate.Ask(
		aggregate.Timeframe{Anchor: healthlab.Date{Year: 2026, Month: 3, Day: 31}, Past: aggregate.Months(3)},
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Sum.Of(aggregate.Col("activity", "steps"))},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Months(1))},
			Joins: []aggregate.Join{
				aggregate.JoinLast("ldl", aggregate.Months(6), aggregate.Col("lab_result", "value"), aggregate.Col("lab_result", "unit")).Of("loinc = '2089-1'"),
			},
		}))
	if err != nil {
		return err
	}
	for _, row := range result.Frames[0].Rows() { // index, sum, ldl.value, ldl.unit
		fmt.Fprintf(out, "%s: %d steps, LDL %.2f %s\n", row[0].(healthlab.Date).Month, row[1], row[2], row[3])
	}
	return nil
}

// glucoseByWeek: what was my mean glucose in each of the last two weeks, and how much of it was in range?
func glucoseByWeek(ctx context.Context, p *person, out io.Writer) error {
	value := aggregate.Samples("glucose")
	result, err := p.questions.Query(ctx, p.team, p.user, aggregate.Ask(
		aggregate.Last(14, healthlab.Date{Year: 2026, Month: 3, Day: 15}),
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Mean.Of(value), aggregate.TimeInRange.In(aggregate.InTarget)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))},
		}))
	if err != nil {
		return err
	}
	for _, row := range result.Frames[0].Rows() { // index, mean, time_in_range_in_range
		fmt.Fprintf(out, "week of %s: %.2f mmol/L, %.0f %% in range\n", row[0], row[1], row[2])
	}
	return nil
}

// restingHeartRate: did my resting heart rate fall from month to month?
func restingHeartRate(ctx context.Context, p *person, out io.Writer) error {
	result, err := p.questions.Query(ctx, p.team, p.user, aggregate.Ask(
		aggregate.Timeframe{Anchor: healthlab.Date{Year: 2026, Month: 3, Day: 31}, Past: aggregate.Months(3)},
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Mean.Of(aggregate.Col("sleep", "heart_rate_resting")), aggregate.Count.Of(aggregate.Col("sleep", "heart_rate_resting"))},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Months(1))},
		}))
	if err != nil {
		return err
	}
	for _, row := range result.Frames[0].Rows() { // index, mean, count
		fmt.Fprintf(out, "%s: %.1f bpm over %d nights\n", row[0].(healthlab.Date).Month, row[1], row[2])
	}
	return nil
}

// hemoglobinInRange: is my hemoglobin in the range that holds for me?
func hemoglobinInRange(ctx context.Context, p *person, out io.Writer) error {
	page, err := p.labs.List(ctx, p.team, p.user, labhistory.Query{Codes: []string{"718-7"}, Size: 1})
	if err != nil {
		return err
	}
	r := page.Results[0]
	fmt.Fprintf(out, "%s: %.1f %s, range %.1f to %.1f (%s)\n", r.Name, *r.Value, *r.Unit, *r.RangeLow, *r.RangeHigh, *r.RangeGroup)
	return nil
}

// weightInMarch: what did I weigh in March?
func weightInMarch(ctx context.Context, p *person, out io.Writer) error {
	result, err := p.questions.Query(ctx, p.team, p.user, aggregate.Ask(
		aggregate.Last(31, healthlab.Date{Year: 2026, Month: 3, Day: 31}),
		aggregate.Query{Select: []aggregate.Expr{aggregate.Mean.Of(aggregate.Col("body", "weight_kilogram"))}}))
	if err != nil {
		return err
	}
	if mean := result.Frames[0].Columns[1]; mean.Null(0) {
		fmt.Fprintln(out, "weight: no data") // not 0
	} else {
		fmt.Fprintf(out, "weight: %.1f kg\n", mean.Float(0))
	}
	return nil
}
