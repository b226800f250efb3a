package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// MatchTestOptions are the options of [MatchTests]. The zero value, and nil, mean the defaults.
type MatchTestOptions struct {
	// User creates or finds the user with a client_user_id, for runs that create their own orders. Default:
	// such runs fail.
	User func(ctx context.Context, team healthlab.TeamID, clientUserID string) (healthlab.UserID, error)
	// Lease is the time for which one process works on a run. Default 1 min.
	Lease time.Duration
	// Idle is the interval at which idle background work checks for due runs. Default 1 s.
	Idle time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

// MatchTests runs tests of the matching of results, with orders of a sandbox. It is safe for concurrent use.
// Every method returns NotFound (SANDBOX_ONLY) in production, and Forbidden unless the team has the review of
// results and test runs enabled.
type MatchTests struct {
	orders *orders.Service
	labs   *exchange.Service
	store  MatchTestStore
	opts   MatchTestOptions
}

// NewMatchTests returns MatchTests over the orders of an exchange. Both arguments are required.
func NewMatchTests(of *exchange.Service, store MatchTestStore, opts *MatchTestOptions) (*MatchTests, error) {
	if of == nil || store == nil {
		return nil, fmt.Errorf("%w: simulation.NewMatchTests: of and store must not be nil", healthlab.Invalid)
	}
	s := &MatchTests{orders: of.Orders(), labs: of, store: store}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Lease <= 0 {
		s.opts.Lease = time.Minute
	}
	if s.opts.Idle <= 0 {
		s.opts.Idle = time.Second
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.Default()
	}
	return s, nil
}

func (s *MatchTests) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// allowed returns an error unless the service runs in a sandbox and the team has reviews and test runs enabled.
func (s *MatchTests) allowed(ctx context.Context, team healthlab.TeamID) error {
	if s.orders.Environment() != healthlab.Sandbox {
		return rules.Missing(orders.SandboxOnly, "test runs exist in the environment sandbox only")
	}
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return err
	}
	switch {
	case !settings.UnmatchedResults:
		return rules.NotEnabled("the review of unmatched results")
	case !settings.UnmatchedTestRuns:
		return rules.NotEnabled("a test run of unmatched results")
	}
	return nil
}

// Cases returns the cases of test runs with their requirements. NotFound in production.
func (s *MatchTests) Cases(ctx context.Context, team healthlab.TeamID) ([]MatchTestCase, error) {
	if err := s.allowed(ctx, team); err != nil {
		return nil, err
	}
	return MatchTestCases(), nil
}

// Start stores a test run, which background work ([MatchTests.Run]) then executes. The same key with the same
// request returns the existing run. Invalid lists every problem; IDEMPOTENCY_KEY_REUSED for another request;
// ORDER_NOT_FOUND.
func (s *MatchTests) Start(ctx context.Context, team healthlab.TeamID, key string, req MatchTestRequest) (MatchTestRun, error) {
	if err := s.allowed(ctx, team); err != nil {
		return MatchTestRun{}, err
	}
	if n := utf8.RuneCountInString(key); n < 1 || n > idempotency.MaxKey || !utf8.ValidString(key) {
		var p healthlab.Problems
		p.Add("string_length", fmt.Sprintf("must have 1 to %d characters", idempotency.MaxKey), "idempotency_key")
		return MatchTestRun{}, p.Err()
	}
	if err := req.Check(); err != nil {
		return MatchTestRun{}, err
	}
	for _, id := range req.Orders {
		if _, err := s.orders.Get(ctx, team, id); err != nil {
			return MatchTestRun{}, err
		}
	}
	text, err := json.Marshal(req)
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("encode request: %w", err)
	}
	sum := sha256.Sum256(text)
	if req.ResultStatus == "" {
		req.ResultStatus = labresult.Final
	}
	at := healthlab.At(s.now())
	kept, fresh, err := s.store.StartMatchTestRun(ctx, MatchTestRecord{
		Team: team, Key: key, Fingerprint: hex.EncodeToString(sum[:]), Request: req, Due: at.Time,
		MatchTestRun: MatchTestRun{RunID: MatchTestRunID{s.opts.NewID()}, Status: MatchTestQueued, Stage: "queued", Case: req.Case, OrderSource: req.OrderSource,
			ResultStatus: req.ResultStatus, Orders: map[string]MatchTestOrder{}, CreatedAt: at, UpdatedAt: at},
	})
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("start test run: %w", err)
	}
	if !fresh && kept.Fingerprint != hex.EncodeToString(sum[:]) {
		return MatchTestRun{}, idempotency.Reused()
	}
	return kept.MatchTestRun, nil
}

// Get returns a test run. NotFound if the team has no test run with this id.
func (s *MatchTests) Get(ctx context.Context, team healthlab.TeamID, id MatchTestRunID) (MatchTestRun, error) {
	if err := s.allowed(ctx, team); err != nil {
		return MatchTestRun{}, err
	}
	t, err := s.store.MatchTestRun(ctx, team, id)
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("get test run: %w", rules.NotFound(err, MatchTestNotFound, "the team has no such test run"))
	}
	return t.MatchTestRun, nil
}

// Run executes test runs until ctx ends, and returns nil. Any number of processes may run it: a lease gives
// each test run to one process. In production it returns at once.
func (s *MatchTests) Run(ctx context.Context) error {
	if s.orders.Environment() != healthlab.Sandbox {
		return nil
	}
	return s.loop().Run(ctx)
}

// Once executes at most 10 due test runs, and returns their number. Hosts with a scheduler of their own call it in
// place of [MatchTests.Run].
func (s *MatchTests) Once(ctx context.Context) (int, error) {
	return s.loop().Once(ctx, 10)
}

func (s *MatchTests) loop() *work.Loop[MatchTestRecord] {
	return &work.Loop[MatchTestRecord]{
		Name: "test runs", Workers: 1, Idle: s.opts.Idle, Log: s.opts.Log, Do: s.do,
		Claim: func(ctx context.Context, n int) ([]MatchTestRecord, error) {
			return s.store.ClaimMatchTestRuns(ctx, n, s.opts.Lease)
		},
	}
}

// do executes one test run, and records its outcome. A RuleError or an InvalidError ends the run as failed.
// After any other error a later claim repeats the run.
func (s *MatchTests) do(ctx context.Context, t MatchTestRecord) error {
	run := testRun{MatchTests: s, kept: t}
	err := run.runStages(ctx)
	var rule *healthlab.RuleError
	var invalid *healthlab.InvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rule):
		return run.end(ctx, MatchTestFailed, &MatchTestError{rule.Type, rule.Msg})
	case errors.As(err, &invalid):
		return run.end(ctx, MatchTestFailed, &MatchTestError{runBroken, "the run made a request that is not valid"})
	}
	return fmt.Errorf("test run: %w", err)
}
