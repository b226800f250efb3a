package critical

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Options adjusts a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Ladder returns the ladder of a team; an empty one means [DefaultLadder]. A loop keeps the ladder
	// that its team has when background work looks at the loop for the first time. Default: every team has [DefaultLadder].
	Ladder func(ctx context.Context, team healthlab.TeamID) ([]Step, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Lease is how long a loop is one process's to work on. Default 1 min.
	Lease time.Duration
	// Idle is how long background work waits when there is nothing to do. Default 1 s.
	Idle time.Duration
	// Workers is how many loops are worked on at a time. Default 4.
	Workers int
	// Log receives what went wrong in the background. Default: slog.Default().
	Log *slog.Logger
}

// Service lists and acknowledges critical results, and escalates those that no person acknowledges. It
// is safe for concurrent use. Every method that takes a team reaches the loops of that team only.
type Service struct {
	store Store
	opts  Options
}

// New returns a Service. Invalid without a store.
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: critical.New: the store is required", healthlab.Invalid)
	}
	s := &Service{store: store}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Ladder == nil {
		s.opts.Ladder = func(context.Context, healthlab.TeamID) ([]Step, error) { return nil, nil }
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Lease <= 0 {
		s.opts.Lease = time.Minute
	}
	return s, nil
}

func (s *Service) now() healthlab.Time { return healthlab.At(s.opts.Now()) }

// List returns a page of loops, the longest open first. Invalid if the query is wrong. Limit is
// [catalogue.DefaultPageSize] if it is zero, and at most [catalogue.MaxPageSize].
func (s *Service) List(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = catalogue.DefaultPageSize
	}
	var p healthlab.Problems
	if q.Limit < 1 || q.Limit > catalogue.MaxPageSize {
		p.Add("range", fmt.Sprintf("must be from 1 to %d", catalogue.MaxPageSize), "limit")
	}
	if q.Status != "" {
		rules.OneOf(&p, q.Status, Statuses(), "status")
	}
	if err := p.Err(); err != nil {
		return Page{}, err
	}
	page, err := s.store.List(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list critical results: %w", err)
	}
	return page, nil
}

// Get returns a loop. NotFound (CRITICAL_RESULT_NOT_FOUND) if the team has none of this id.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id LoopID) (Loop, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Loop{}, fmt.Errorf("get critical result: %w", rules.NotFound(err, NotFound, "the team has no such critical result"))
	}
	return r.Loop, nil
}

// Acknowledge ends a loop: a named person has repeated the value of its result. The same request once
// more changes nothing.
//
// RuleErrors: CRITICAL_RESULT_NOT_FOUND; READ_BACK_MISMATCH (Precondition), which names the field, if
// what the person repeats is not the result; CRITICAL_RESULT_CLOSED (Conflict) if another person has
// acknowledged the result, or it was withdrawn. Invalid lists the problems of the request.
func (s *Service) Acknowledge(ctx context.Context, team healthlab.TeamID, id LoopID, req Request) (Loop, error) {
	if err := req.Check(); err != nil {
		return Loop{}, err
	}
	at := s.now()
	r, err := s.store.Update(ctx, team, id, func(r *Record) error { return r.acknowledge(req, at) })
	if err != nil {
		return Loop{}, fmt.Errorf("acknowledge critical result: %w", rules.NotFound(err, NotFound, "the team has no such critical result"))
	}
	return r.Loop, nil
}

// Run escalates what no person acknowledges until ctx ends, and returns nil. Any number of processes
// may run it: a loop is one process's for the time of a lease. Each step passes once, whatever ends a
// process.
func (s *Service) Run(ctx context.Context) error { return s.loop().Run(ctx) }

// EscalateDue does what is due, and returns how many loops it looked at: for hosts that bring their own
// scheduler.
func (s *Service) EscalateDue(ctx context.Context) (int, error) {
	const batch = 100
	return s.loop().Once(ctx, batch)
}

func (s *Service) loop() *work.Loop[Record] {
	return &work.Loop[Record]{
		Name: "critical results", Workers: s.opts.Workers, Idle: s.opts.Idle, Log: s.opts.Log, Do: s.escalate,
		Claim: func(ctx context.Context, n int) ([]Record, error) {
			return s.store.Claim(ctx, n, s.now().Time, s.opts.Lease)
		},
	}
}

func (s *Service) escalate(ctx context.Context, claimed Record) error {
	ladder, err := s.opts.Ladder(ctx, claimed.Team)
	if err != nil {
		return fmt.Errorf("ladder of the team: %w", err)
	}
	if len(ladder) == 0 {
		ladder = DefaultLadder()
	}
	at := s.now()
	_, err = s.store.Update(ctx, claimed.Team, claimed.ID, func(r *Record) error {
		r.escalate(at, ladder)
		return nil
	})
	if errors.Is(err, healthlab.NotFound) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("escalate critical result: %w", err)
	}
	return nil
}
