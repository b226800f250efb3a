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

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Ladder returns the escalation steps of a team; empty means [DefaultLadder]. A loop copies the steps when
	// background work processes it for the first time. Default: every team has [DefaultLadder].
	Ladder func(ctx context.Context, team healthlab.TeamID) ([]Step, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Lease is the time for which one process works on a loop. Default 1 min.
	Lease time.Duration
	// Idle is the interval at which idle background work checks for due loops. Default 1 s.
	Idle time.Duration
	// Workers is the number of loops that are processed at a time. Default 4.
	Workers int
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

// Service lists and acknowledges critical results, and escalates results without an acknowledgement. It is safe
// for concurrent use. Every method with a team accesses the loops of that team only.
type Service struct {
	store Store
	opts  Options
}

// New returns a Service. Invalid without a store.
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: critical.New: store must not be nil", healthlab.Invalid)
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

// List returns a page of loops, the longest open first. Invalid for an invalid query. A zero Limit means
// [catalogue.DefaultPageSize]; the highest is [catalogue.MaxPageSize].
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

// Get returns a loop. NotFound (CRITICAL_RESULT_NOT_FOUND) if the team has no loop with this id.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id LoopID) (Loop, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Loop{}, fmt.Errorf("get critical result: %w", rules.NotFound(err, NotFound, "the team has no such critical result"))
	}
	return r.Loop, nil
}

// Acknowledge ends a loop, because a named person has read back the value of its result. A repeated request is
// a no-op.
//
// RuleErrors: CRITICAL_RESULT_NOT_FOUND; READ_BACK_MISMATCH (Precondition), which names the field, if the
// read-back differs from the result; CRITICAL_RESULT_CLOSED (Conflict) if another person has acknowledged the
// result, or it was withdrawn. Invalid lists the problems of the request.
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

// Run escalates results without an acknowledgement until ctx ends, and returns nil. Any number of processes may
// run it: a lease gives each loop to one process. Each step passes once, even if processes crash.
func (s *Service) Run(ctx context.Context) error { return s.loop().Run(ctx) }

// EscalateDue processes due loops, and returns their number. Hosts with a scheduler of their own call it in
// place of Run.
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
	if errors.Is(err, healthlab.NotFound) { // the user of the loop was deleted in the meantime
		return nil
	}
	if err != nil {
		return fmt.Errorf("escalate critical result: %w", err)
	}
	return nil
}
