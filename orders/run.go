package orders

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// Run sends messages to patients and teams until ctx ends. Then it lets what is running finish, and returns
// nil. Any number of processes may run it: one process at a time holds the lease of an order.
func (s *Service) Run(ctx context.Context) error { return s.notificationLoop().Run(ctx) }

// batchSize is how many orders a host that brings its own scheduler has looked at in one call.
const batchSize = 100

// newLoop is background work of one kind: what is due is claimed for the time of a lease, and
// done.
func newLoop[J any](s *Service, name string, claim func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]J, error), do func(context.Context, J) error,
) *work.Loop[J] {
	return &work.Loop[J]{
		Name: name, Workers: s.opts.Workers, Idle: s.opts.Idle, Log: s.opts.Log, Do: do,
		Claim: func(ctx context.Context, n int) ([]J, error) {
			return claim(ctx, n, s.now(), s.opts.Lease)
		},
	}
}
