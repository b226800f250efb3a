// Package work runs loops that execute background jobs when they are due: deliveries,
// pulls from providers, orders to place, samples to merge into their series.
//
// Jobs are rows in a store, so no job is lost in a crash, and any process can take one
// over. The package that uses a [Loop] passes functions that claim jobs (for a lease)
// and execute one. The loop does the rest: bounded concurrency, polling with jitter,
// waking, a stop that lets running jobs finish, logs and metrics.
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

// Loop takes jobs of type J from a store and executes them. It is not safe for concurrent use: call Run once.
type Loop[J any] struct {
	// Name is the name of the work, such as "deliveries", in logs and for Observe.
	Name string
	// Claim leases at most n due jobs and returns them; none if none is due. Until the lease ends, no other process
	// gets these jobs. Jobs beyond n are not executed.
	Claim func(ctx context.Context, n int) ([]J, error)
	// Do executes one job and records the outcome in the store. An error means that the outcome is not recorded, so
	// the job is repeated after its lease. Loop logs the error, with the job if it is a slog.LogValuer. A panic has
	// the same effect. The error of an ended context is not logged.
	Do func(ctx context.Context, job J) error
	// Workers is the number of jobs that run at a time. Default 4.
	Workers int
	// Idle is the time to wait, plus or minus a quarter, after a claim returned fewer jobs than requested. Default
	// 1 s.
	Idle time.Duration
	// Wake ends the wait of Idle early. Its buffer should be one, so that a signal during a claim is not lost. If
	// it is nil, only Idle ends the wait.
	Wake <-chan struct{}
	// Drain is the time for which running jobs may continue after the context of Run has ended. Then the context of
	// the jobs ends, too. Default 20 s.
	Drain time.Duration
	// Log receives failed jobs, as [FailureLog] writes them, and failed claims. Default: slog.Default().
	Log *slog.Logger
	// Observe is called after every job with the name of the work, the job's duration and its error. It must be
	// safe for concurrent use.
	Observe func(name string, took time.Duration, err error)

	failures FailureLog
}

// longestPause is the longest wait after a failed claim, plus or minus a quarter.
const longestPause = 1500 * time.Millisecond

// Run claims and executes jobs until ctx ends, then waits for the running jobs and returns nil. If a claim fails,
// Run logs it and claims again after at most 1.5 s, so an outage of the store does not end the loop. Run returns
// [healthlab.Invalid] at once if Claim or Do is nil.
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
			if failed&(failed-1) == 0 { // log failures number 1, 2, 4, 8 and so on, so that an outage does not fill the log
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

// Once claims at most n jobs and executes them one after another, for hosts with a scheduler of their own. It
// returns the number of claimed jobs and the joined errors. It uses only Name, Claim and Do.
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

// acquire waits for a free slot for a job, takes all free slots, and returns their number; 0 if ctx ended.
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

// do executes one job, calls Observe and logs an error. A panic in the job becomes an error.
func (l *Loop[J]) do(ctx context.Context, job J) {
	start := time.Now()
	attrs := []any{"work", l.Name}
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil { // log the type and the place of the panic, not its text, which may be personal
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

// sleep waits for d, plus or minus a quarter. It returns early when wake receives a value or ctx ends.
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

// drain waits for running jobs to return. After the time Drain it cancels their context.
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
