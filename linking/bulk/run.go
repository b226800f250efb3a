package bulk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

func (s *Service) op(team healthlab.TeamID, what Type, provider string, total int) Op {
	at := s.now()
	return Op{ID: s.opts.NewID(), Team: team, Type: what, Provider: provider, Status: InProgress, Total: total, StartedAt: at, Due: at}
}

// submit stores an operation and wakes the workers.
func (s *Service) submit(ctx context.Context, op Op, items []Item) error {
	if err := s.store.Submit(ctx, op, items); err != nil {
		return err
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// look is the interval at which a waiting caller checks the operation.
const look = 50 * time.Millisecond

func (s *Service) await(ctx context.Context, op Op) (Op, error) {
	limit := time.NewTimer(s.opts.Wait)
	defer limit.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for op.Status == InProgress {
		select {
		case <-ctx.Done():
			return op, ctx.Err()
		case <-limit.C:
			return op, nil
		case <-again.C:
		}
		var err error
		if op, err = s.store.Op(ctx, op.Team, op.ID); err != nil {
			return op, err
		}
	}
	return op, nil
}

// Run processes operations and deletes old ones ([Options].Keep) until ctx ends. At least one process must run
// it; any number may.
func (s *Service) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.pruning().Run(ctx) })
	err := s.ops().Run(ctx)
	both.Wait()
	return err
}

// Step runs due work and returns the number of operations that it processed. Hosts with their own scheduler and
// tests call it. It also deletes old operations, which are not counted.
func (s *Service) Step(ctx context.Context) (int, error) {
	n, err := s.ops().Once(ctx, 100)
	_, pruned := s.pruning().Once(ctx, 1)
	return n, errors.Join(err, pruned)
}

const (
	// pruneEvery is the interval at which old operations are deleted, and pruneMost the highest number that one
	// write deletes.
	pruneEvery = 10 * time.Minute
	pruneMost  = 20
)

// pruning deletes operations that ended long ago. Each write locks the rows that it deletes, so that processes
// share the work.
func (s *Service) pruning() *work.Loop[struct{}] {
	return &work.Loop[struct{}]{
		Name: "old bulk operations", Workers: 1, Idle: pruneEvery, Log: s.opts.Log,
		Claim: func(ctx context.Context, _ int) ([]struct{}, error) {
			for {
				n, err := s.store.Prune(ctx, pruneMost, s.now().Add(-s.opts.Keep))
				if err != nil || n < pruneMost {
					return nil, err
				}
			}
		},
		Do: func(context.Context, struct{}) error { return nil },
	}
}

func (s *Service) ops() *work.Loop[Op] {
	return &work.Loop[Op]{
		Name: "bulk operations", Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log, Do: s.advance, Workers: 4,
		Claim: func(ctx context.Context, n int) ([]Op, error) {
			return s.store.Claim(ctx, n, s.now(), lease)
		},
	}
}

const (
	// lease is how long a process may process a claimed operation, and turn the number of users that it processes
	// before other operations are claimed.
	lease = 2 * time.Minute
	turn  = 50
	// again is the interval at which running histories are checked.
	again = 5 * time.Second
)

// errLost reports that another process has claimed the operation.
var errLost = errors.New("the worker's lease has ended before the work was done")

// advance processes the next users of a claimed operation and stores the progress. If the progress is not stored, the
// same users are processed again later, which changes nothing more.
func (s *Service) advance(ctx context.Context, op Op) error {
	var next Op
	var err error
	switch op.Type {
	case HistoricalTrigger:
		next, err = s.triggerNext(ctx, op)
	case ConnectionImport:
		next, err = s.importNext(ctx, op)
	default: // an operation of a newer version of this library
		err = healthlab.Unimplemented
	}
	if err == nil {
		_, err = s.store.UpdateOp(ctx, op.Team, op.ID, func(now *Op) error {
			if now.Fence != op.Fence {
				return errLost
			}
			*now = next
			now.Lease = time.Time{}
			return nil
		})
	}
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// finish returns op, whose users are all processed, with its final status, or with the time of the next check if
// histories of Running users are still being fetched.
func (s *Service) finish(op Op) Op {
	switch {
	case len(op.Running) > 0:
		op.Due = s.now().Add(again)
		return op
	case op.Failed > 0:
		return op.ended(Failure, s.now())
	default:
		return op.ended(Success, s.now())
	}
}
