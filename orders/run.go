package orders

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// Run sends messages to patients and teams until ctx ends. Then it waits for running work, and returns nil. Any
// number of processes may run it: a lease gives each order to one process.
func (s *Service) Run(ctx context.Context) error { return s.notificationLoop().Run(ctx) }

// batchSize is the number of orders that one call processes for a host with a scheduler of its own.
const batchSize = 100

// newLoop returns a loop of background work: it claims due orders for the time of a lease, and processes them.
func newLoop[J any](s *Service, name string, claim func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]J, error), do func(context.Context, J) error,
) *work.Loop[J] {
	return &work.Loop[J]{
		Name: name, Workers: s.opts.Workers, Idle: s.opts.Idle, Log: s.opts.Log, Do: do,
		Claim: func(ctx context.Context, n int) ([]J, error) {
			return claim(ctx, n, s.now(), s.opts.Lease)
		},
	}
}
