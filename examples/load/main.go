// Load sends a mix of requests to examples/server with PostgreSQL at a constant rate, receives
// its events, and writes a report with plots.
//
//	go run ./examples/load -rate 500 -duration 1m -report load.html
//
// It builds and starts the server with a private PostgreSQL of its own. Each request has a time at
// which it is due, and its latency counts from this time. So a slow server shows in the latency and
// does not lower the rate.
//
//	go run ./examples/load -bare -duration 2m
//
// compares the server with a plain handler over net/http and pgx that reads and writes the same rows.
// The two answer the mix in turn, as fast as they can; no event is delivered.
//
//	go run ./examples/load soak -duration 30m -report soak.html
//
// sends the mix to two servers on one PostgreSQL, kills one of them and PostgreSQL at intervals, and
// exits with 1 if an acknowledged write is lost, an event is missing, or memory, files or tables grow
// without end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest/embedded"
)

// config has the values of the flags.
type config struct {
	server   string
	rate     float64
	duration time.Duration
	warmup   time.Duration
	users    int
	days     int // days of data that each user has at the start
	workers  int
	queues   int // number of queues (a user has one), at most workers; if equal, a user's requests are sent in order
	report   string
	note     string
	turn     time.Duration // how long the server and the plain handler answer in turn; 0 without -bare
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "soak" {
		return runSoak(ctx, args[1:], out)
	}
	c := config{days: 7, queues: 1}
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.StringVar(&c.server, "server", "", "`file` of the built server (default: it is built)")
	f.Float64Var(&c.rate, "rate", 500, "requests a second")
	f.DurationVar(&c.duration, "duration", time.Minute, "how long to measure")
	f.DurationVar(&c.warmup, "warmup", 5*time.Second, "how long to send before that")
	f.IntVar(&c.users, "users", 500, "`number` of users, each with a week of data")
	f.IntVar(&c.workers, "workers", 64, "the most requests in flight")
	f.StringVar(&c.report, "report", "load.html", "`file` of the report")
	bare := f.Bool("bare", false, "compare the server with a plain handler that reads and writes the same rows: both answer in turn, as fast as they can; -rate and -report are ignored")
	f.StringVar(&c.note, "note", "", "`text` for the report, such as what else the machine did")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := checkLoad(c.rate, c.duration, c.users, c.workers); err != nil {
		return err
	}
	hook, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer hook.close()
	dir, err := folder()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := build(ctx, c.server, dir)
	if err != nil {
		return err
	}
	database, err := embedded.Start(ctx, filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	args = []string{"-database-url", database.URL("postgres"), "-secret-file", filepath.Join(dir, "secret"), "-files", filepath.Join(dir, "files")}
	if !*bare { // with -bare no event is delivered, so no receiver is needed
		args = append(args, "-webhook-url", hook.url)
	}
	s, err := startServer(binary, os.Stderr, args...)
	if err != nil {
		return errors.Join(err, database.Stop(ctx))
	}
	if *bare {
		c.turn = min(2*time.Second, max(c.duration/4, 100*time.Millisecond))
		err = compareBare(ctx, c, s, database.URL("postgres"), out)
		return errors.Join(err, s.stop(), database.Stop(context.WithoutCancel(ctx)))
	}
	result, err := measure(ctx, c, s, hook, out)
	if err = errors.Join(err, s.stop(), database.Stop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	if err := result.write(c.report); err != nil {
		return err
	}
	result.print(out)
	fmt.Fprintln(out, "report:", c.report)
	return nil
}

// checkLoad checks the flags -rate, -duration, -users and -workers.
func checkLoad(rate float64, duration time.Duration, users, workers int) error {
	switch {
	case rate <= 0:
		return errors.New("-rate must be above 0")
	case duration < time.Second:
		return errors.New("-duration must be 1s or more")
	case users < 1:
		return errors.New("-users must be 1 or more")
	case workers < 1:
		return errors.New("-workers must be 1 or more")
	}
	return nil
}

// measure stores the initial data, sends the mix of requests, waits until all events have arrived, and returns the
// measurements.
func measure(ctx context.Context, c config, s *server, hook *receiver, out io.Writer) (*result, error) {
	m := newMix(c, func() *server { return s })
	fmt.Fprintf(out, "%d users with a week of data …\n", c.users)
	if err := m.seed(ctx); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	fmt.Fprintf(out, "%.0f requests a second for %v after %v …\n", c.rate, c.duration, c.warmup)
	if _, err := m.send(ctx, c.warmup); err != nil {
		return nil, err
	}
	before, events := s.usage(), hook.count()
	began := time.Now()
	samples, err := m.send(ctx, c.duration)
	if err != nil {
		return nil, err
	}
	took, used := time.Since(began), s.usage().minus(before)
	drained, err := s.drained(ctx)
	if err != nil {
		return nil, err
	}
	return &result{
		config: c, samples: samples, took: took, used: used, drained: drained,
		arrivals: hook.since(began), events: hook.count() - events,
	}, nil
}

// Files in the order of reading: each uses those before it.
//
//	server.go mix.go soak_truth.go main.go report.go bare.go soak.go soak_watch.go soak_report.go
