package pull

import (
	"context"
	"errors"
	"sync"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// Run fetches data until ctx ends, then waits for running requests and returns nil. At least one process must
// run it; any number may.
func (s *Service) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.connections().Run(ctx) })
	err := s.pulls().Run(ctx)
	both.Wait()
	return err
}

// connections returns the loop that processes due connections.
func (s *Service) connections() *work.Loop[Ref] {
	return &work.Loop[Ref]{
		Name: "connections", Idle: s.opts.Idle, Log: s.opts.Log, Do: s.maintainConnection, Workers: 4,
		Claim: func(ctx context.Context, n int) ([]Ref, error) {
			now := s.now()
			return s.store.ClaimConnections(ctx, n, now, now.Add(maintainLease))
		},
	}
}

// pulls returns the loop that runs due tasks.
func (s *Service) pulls() *work.Loop[*job] {
	return &work.Loop[*job]{
		Name: "pulls", Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log, Workers: s.opts.Workers,
		Claim: func(ctx context.Context, n int) ([]*job, error) { return s.claim(ctx, n, &s.limiter) },
		Do: func(ctx context.Context, j *job) error {
			defer func() {
				if s.limiter.release(&j.Task) {
					s.Wake()
				}
			}()
			return j.pull(ctx)
		},
	}
}

// claim claims up to n due tasks in the order of Task.Turn, and reserves a slot of the provider's request limit for
// each. Tasks without a slot, or for which l has no free worker, are released. A nil l does not limit workers.
func (s *Service) claim(ctx context.Context, n int, l *workerLimiter) ([]*job, error) {
	var jobs []*job
	var faults []error
	for range maxClaims { // later tasks may be able to run if the first ones cannot
		now := s.now()
		without := s.limits.blocked.list(now)
		if l != nil {
			without = append(without, l.fullApps()...)
		}
		tasks, err := s.store.Claim(ctx, ClaimQuery{N: n, Without: without, Now: now, Lease: s.opts.Lease})
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			j := &job{service: s, Task: t}
			ok, err := j.admit(ctx, l)
			if ok {
				jobs = append(jobs, j)
			}
			faults = append(faults, err)
		}
		if len(jobs) > 0 {
			return jobs, nil // the lease returns failed tasks to the queue
		}
		if len(tasks) < n {
			break
		}
	}
	return nil, errors.Join(faults...)
}

// maxClaims is the highest number of calls of Store.Claim in one claim, while none of the claimed tasks can run.
const maxClaims = 200

// Step runs due work and returns the number of connections and tasks that it processed. Hosts with their own
// scheduler and tests call it. A failing provider is not an error.
func (s *Service) Step(ctx context.Context) (int, error) {
	tended, first := s.connections().Once(ctx, 100)
	once := work.Loop[*job]{
		Name: "pulls", Do: func(ctx context.Context, j *job) error { return j.pull(ctx) },
		Claim: func(ctx context.Context, n int) ([]*job, error) { return s.claim(ctx, n, nil) },
	}
	pulled, second := once.Once(ctx, s.opts.Workers)
	return tended + pulled, errors.Join(first, second)
}
