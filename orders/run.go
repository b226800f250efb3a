package orders

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// Run does the background work until ctx ends: it hands orders to the laboratory and takes
// in what it reports, follows appointments, keeps the cache of slots, sends messages to
// patients, and continues simulations. Then it lets what is running finish, and returns nil.
// Any number of processes may run it: one process at a time holds the lease of an order, of
// the feed of the laboratory, or of another piece of work. A laboratory that is away, slow or
// failing delays an order and loses none.
//
// The orders of a sandbox wait to be simulated ([Service.Simulate]) unless
// [Options].SandboxMoves is set: they are not handed to the laboratory.
func (s *Service) Run(ctx context.Context) error {
	parts := []work.Part{{Name: "patient messages", Run: s.notificationLoop().Run}}
	add := func(name string, run func(context.Context) error) {
		parts = append(parts, work.Part{Name: name, Run: run})
	}
	sandbox := s.opts.Environment == healthlab.Sandbox
	if !sandbox || s.opts.SandboxMoves {
		add("placing", s.submissionLoop().Run)
		add("lab updates", s.runUpdates)
	}
	if s.visits != nil && s.bookings != nil {
		add("appointments", s.visitLoop().Run)
	}
	if s.opts.SlotCache != nil {
		add("slot cache", s.appointments.RunCache)
	}
	return work.Together(ctx, parts)
}

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
