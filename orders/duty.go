package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// duty is background work of one kind: what is due is claimed for a lease, and done.
type duty[J any] struct {
	name    string
	claim   func(ctx context.Context, n int, at, until time.Time) ([]J, error)
	do      func(context.Context, J) error
	workers int // 0: the loop's default
	most    int // how many a single round takes
}

// lease claims n jobs for the time of a lease that begins now.
func (d duty[J]) lease(ctx context.Context, s *Service, n int) ([]J, error) {
	at := s.now()
	return d.claim(ctx, n, at, at.Add(s.opts.Lease))
}

// run does what is due until ctx ends.
func (d duty[J]) run(ctx context.Context, s *Service) error {
	loop := &work.Loop[J]{
		Name: d.name, Workers: d.workers, Idle: s.opts.Idle, Log: s.opts.Log, Do: d.do,
		Claim: func(ctx context.Context, n int) ([]J, error) { return d.lease(ctx, s, n) },
	}
	return loop.Run(ctx)
}

// once does what is due now, one job after another, and returns how many it took up.
func (d duty[J]) once(ctx context.Context, s *Service) (int, error) {
	claimed, err := d.lease(ctx, s, d.most)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", d.name, err)
	}
	var faults []error
	for _, j := range claimed {
		faults = append(faults, d.do(ctx, j))
	}
	return len(claimed), errors.Join(faults...)
}
