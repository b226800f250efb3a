// Package work runs loops over claimed background work: deliveries, pulls, placing
// of orders, folding of series, whatever is due.
//
// The work itself is rows in a store, so that a crash forgets nothing and any
// process can take it over. A domain says in its own words how a job is claimed (for
// a lease), done, and tried again; this package brings what is the same for all of
// them: bounded concurrency, polling with jitter, waking, a stop that lets running
// jobs finish, and numbers to watch.
package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Loop claims jobs of type J and executes them. Not safe for concurrent use: call Run once.
type Loop[J any] struct {
	// Name is the name of the work in logs and for Observe: "deliveries".
	Name string
	// Claim leases at most n due jobs and returns them; none if none is due. The process owns them until the lease
	// ends. Jobs beyond n are ignored until then.
	Claim func(ctx context.Context, n int) ([]J, error)
	// Do executes one job and records the outcome. An error means that the outcome was not recorded: it is logged with
	// the job, if that is a slog.LogValuer, and the job is repeated after its lease. A panic has the same effect. The
	// end of the job's context is not an error.
	Do func(ctx context.Context, job J) error
	// Workers is the number of jobs that run at a time. Default 4.
	Workers int
	// Idle is the wait after a claim with fewer jobs than requested, plus or minus a quarter. Default 1 s.
	Idle time.Duration
	// Wake ends the wait early. It should have a buffer of one, so that a wake during a claim is not lost. Nil: only
	// Idle ends the wait.
	Wake <-chan struct{}
	// Drain is the time for which running jobs may continue after ctx has ended, before their own context ends
	// too. Default 20 s.
	Drain time.Duration
	// Log receives failures, as [FailureLog] does. Default: slog.Default().
	Log *slog.Logger
	// Observe is called after every job with its duration and error. It must be safe for concurrent use.
	Observe func(name string, took time.Duration, err error)

	failures FailureLog
}

// longestPause is the longest wait after a failed claim, plus or minus a quarter.
const longestPause = 1500 * time.Millisecond

// Run claims and executes jobs until ctx ends, then waits for the running ones and returns nil. A failed claim
// is repeated after a wait that grows to 1.5 s, so that an outage of the store does not end the loop. Run
// returns [healthlab.Invalid] at once if Claim or Do is missing.
func (l *Loop[J]) Run(ctx context.Context) error {
	if l.Claim == nil || l.Do == nil {
		return fmt.Errorf("%w: work loop %q: Claim and Do must be set", healthlab.Invalid, l.Name)
	}
	l.defaults()
	jobs, stopJobs := context.WithCancel(context.WithoutCancel(ctx))
	defer stopJobs()

	var running sync.WaitGroup
	slots := make(chan struct{}, l.Workers)
	failed := 0
	for ctx.Err() == nil {
		free := l.acquire(ctx, slots)
		if free == 0 {
			break
		}
		claimed, err := l.Claim(ctx, free)
		claimed = claimed[:min(len(claimed), free)]
		for range free - len(claimed) {
			<-slots
		}
		for _, job := range claimed {
			running.Go(func() {
				defer func() { <-slots }()
				l.do(jobs, job)
			})
		}
		switch {
		case err != nil && ctx.Err() == nil:
			failed++
			if failed&(failed-1) == 0 { // 1, 2, 4, …: an outage fills no log
				l.Log.WarnContext(ctx, "claim failed", "work", l.Name, "kind", healthlab.KindOf(err).Error(), "cause", Cause(err), "times", failed)
			}
			l.sleep(ctx, min(100*time.Millisecond<<min(failed, 4), longestPause), nil)
		case err == nil:
			failed = 0
			if len(claimed) < free {
				l.sleep(ctx, l.Idle, l.Wake)
			}
		}
	}
	l.drain(&running, stopJobs)
	return nil
}

// Once claims at most n jobs, executes them one after another, and returns the number of claimed jobs and the joined
// errors, for hosts with their own scheduler. It uses only Name, Claim and Do.
func (l *Loop[J]) Once(ctx context.Context, n int) (int, error) {
	claimed, err := l.Claim(ctx, n)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", l.Name, err)
	}
	var faults []error
	for _, job := range claimed {
		faults = append(faults, l.Do(ctx, job))
	}
	return len(claimed), errors.Join(faults...)
}

func (l *Loop[J]) defaults() {
	if l.Workers <= 0 {
		l.Workers = 4
	}
	if l.Idle <= 0 {
		l.Idle = time.Second
	}
	if l.Drain <= 0 {
		l.Drain = 20 * time.Second
	}
	l.Log = cmp.Or(l.Log, slog.Default())
	if l.Observe == nil {
		l.Observe = func(string, time.Duration, error) {}
	}
}

// acquire waits for a free slot and takes all free ones. Zero means that ctx ended.
func (l *Loop[J]) acquire(ctx context.Context, slots chan struct{}) int {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	n := 1
	for n < l.Workers {
		select {
		case slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
	return n
}

// do executes one job and recovers a panic.
func (l *Loop[J]) do(ctx context.Context, job J) {
	start := time.Now()
	attrs := []any{"work", l.Name}
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil { // where it was, not what it said
				err = fmt.Errorf("panic in %s", l.Name)
				attrs = append(attrs, "panic", fmt.Sprintf("%T", r), "at", Frames())
			}
		}()
		return l.Do(ctx, job)
	}()
	l.Observe(l.Name, time.Since(start), err)
	if err != nil && !errors.Is(err, context.Canceled) {
		if _, ok := any(job).(slog.LogValuer); ok {
			attrs = append(attrs, "job", job)
		}
		l.failures.Log(ctx, l.Log, time.Now(), l.Name, "job failed", err, attrs...)
	}
}

// sleep waits for d give or take a quarter, for wake, or for ctx.
func (l *Loop[J]) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	d += time.Duration((rand.Float64() - 0.5) / 2 * float64(d))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// drain waits for running jobs. After Drain it cancels their context and waits for them to return.
func (l *Loop[J]) drain(running *sync.WaitGroup, stop context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	t := time.NewTimer(l.Drain)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		stop()
		<-done
	}
}
