package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
)

// MaxKey is the greatest length of a key, in characters.
const MaxKey = 255

// BookingRetention is the time for which the answer of a booking is kept.
const BookingRetention = 14 * 24 * time.Hour

// Request is a request that runs once for each idempotency key, however often the caller sends it.
type Request struct {
	Scope
	// Fingerprint identifies the body: the same key with another fingerprint is refused.
	Fingerprint string
	// SuccessOnly stores only the answer of a success: after a failure, the same key
	// runs the request again.
	SuccessOnly bool
	// About is the id of the order that the request is about, or for the order that it places. Zero means a new id.
	About orders.OrderID
	// User is the user whom the answer is about; zero if that is the order's user, or none.
	User healthlab.UserID
	// Keep is the time for which the answer is kept. Default: [Options].Retention.
	Keep time.Duration
}

// Outcome is the result of running a request.
type Outcome struct {
	// Answer is what the caller gets, byte for byte, in this call and in repetitions.
	Answer []byte
	// Failed is true if the answer says that the request failed.
	Failed bool
}

// Options are the options of a [Service].
type Options struct {
	// Lease is the time after which another request with the same key may run, if the first has not finished.
	// Default 1 min.
	Lease time.Duration
	// Retention is the time for which answers are kept. Default 24 h, the minimum that callers may rely on.
	Retention time.Duration
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

// Service runs requests with an idempotency key. It is safe for concurrent use.
type Service struct {
	keys Keys
	opts Options
}

// New returns a Service over Keys, which are required.
func New(keys Keys, opts *Options) *Service {
	s := &Service{keys: keys}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Lease <= 0 {
		s.opts.Lease = time.Minute
	}
	if s.opts.Retention <= 0 {
		s.opts.Retention = 24 * time.Hour
	}
	if s.opts.NewID == nil {
		s.opts.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.Default()
	}
	return s
}

// finishTime is the time limit for storing an answer after the request has ended.
const finishTime = 3 * time.Second

// Once runs do once for each idempotency key, and returns the answer of that run every time. do gets the id for the
// order that the request places ([orders.Service.PlaceAs]). If do returns an error, Once returns it and stores nothing:
// the next request with this key runs do again.
//
// Invalid if the key does not have 1 to 255 characters; the RuleErrors IDEMPOTENCY_IN_PROGRESS and
// IDEMPOTENCY_KEY_REUSED.
func (s *Service) Once(ctx context.Context, req Request, do func(context.Context, orders.OrderID) (Outcome, error)) ([]byte, error) {
	state, err := s.claim(ctx, req, s.opts.Lease)
	if err != nil || !state.Started {
		return state.Answer, err
	}
	out, err := do(ctx, state.Order)
	after, stop := work.Grace(ctx, finishTime)
	defer stop()
	if err != nil || out.Failed && req.SuccessOnly {
		// Release the key, even if ctx has ended, so that the next request with it runs do again.
		free := s.free(after, req, state)
		if free != nil && !errors.Is(free, healthlab.Precondition) {
			s.opts.Log.Warn("idempotency key not freed; its lease will end", "kind", healthlab.KindOf(free).Error(), "cause", work.Cause(free))
		}
		return out.Answer, err
	}
	err = s.finish(after, req, state, out)
	if errors.Is(err, healthlab.Precondition) {
		// The lease ended and another request took over. The other request has the answer.
		state, err = s.claim(ctx, req, time.Microsecond)
		if err == nil && state.Started {
			err = inProgress()
		}
		return state.Answer, err
	}
	if err != nil {
		return nil, err
	}
	return out.Answer, nil
}

// OnceIn is [Service.Once] in the transaction that ctx carries for the store of the keys: the answer is stored together
// with the writes of do. After an error the caller rolls back, which releases the key. If do returns an Outcome with
// Failed set, it must have undone its writes.
func (s *Service) OnceIn(ctx context.Context, req Request, do func(context.Context, orders.OrderID) (Outcome, error)) ([]byte, error) {
	state, err := s.claim(ctx, req, s.opts.Lease)
	if err != nil || !state.Started {
		return state.Answer, err
	}
	out, err := do(ctx, state.Order)
	switch {
	case err != nil:
		return nil, err
	case out.Failed && req.SuccessOnly:
		err = s.free(ctx, req, state)
	default:
		err = s.finish(ctx, req, state, out)
	}
	return out.Answer, err
}

func (s *Service) free(ctx context.Context, req Request, state State) error {
	return s.keys.FinishKey(ctx, req.Scope, state.Until, nil, healthlab.UserID{}, 0)
}

// finish stores the answer of a key for the time Keep of the request.
func (s *Service) finish(ctx context.Context, req Request, state State, out Outcome) error {
	keep := req.Keep
	if keep <= 0 {
		keep = s.opts.Retention
	}
	if err := s.keys.FinishKey(ctx, req.Scope, state.Until, out.Answer, req.User, keep); err != nil {
		return fmt.Errorf("store answer: %w", err)
	}
	return nil
}

// claim claims the key of a request and returns its state, or the state with the stored answer. Invalid for an invalid
// key; IDEMPOTENCY_KEY_REUSED for another fingerprint; IDEMPOTENCY_IN_PROGRESS while another process has the claim.
func (s *Service) claim(ctx context.Context, req Request, lease time.Duration) (State, error) {
	if n := utf8.RuneCountInString(req.Key); n < 1 || n > MaxKey || !utf8.ValidString(req.Key) {
		var p healthlab.Problems
		p.Add("string_length", fmt.Sprintf("must have 1 to %d characters", MaxKey), "idempotency_key")
		return State{}, p.Err()
	}
	order := req.About
	if order.IsZero() {
		order = orders.OrderID{UUID: s.opts.NewID()}
	}
	state, err := s.keys.StartKey(ctx, req.Scope, req.Fingerprint, order, lease)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("idempotency key: %w", err)
	case state.Fingerprint != req.Fingerprint:
		if state.Started {
			_ = s.free(ctx, req, state)
		}
		return State{}, Reused()
	case !state.Started && state.Answer == nil:
		return State{}, inProgress()
	}
	return state, nil
}

func inProgress() error {
	return &healthlab.RuleError{Kind: healthlab.Conflict, Type: orders.IdempotencyInProgress, Msg: "the first request with this x-idempotency-key is still running; retry in a second"}
}

// Reused returns the [healthlab.RuleError] for a key that was used before with another request body.
func Reused() error {
	return &healthlab.RuleError{Kind: healthlab.Conflict, Type: orders.IdempotencyKeyReused, Msg: "x-idempotency-key was sent before with another body; send a new key for a new request"}
}

// Run deletes expired idempotency keys until ctx ends. Then it returns nil. Any number of processes may run it.
func (s *Service) Run(ctx context.Context) error {
	const batch = 1000
	loop := &work.Loop[struct{}]{
		Name: "idempotency keys", Workers: 1, Idle: time.Minute, Log: s.opts.Log,
		Claim: func(ctx context.Context, _ int) ([]struct{}, error) {
			for {
				n, err := s.keys.PruneKeys(ctx, batch)
				if err != nil || n < batch {
					return nil, err
				}
			}
		},
		Do: func(context.Context, struct{}) error { return nil },
	}
	return loop.Run(ctx)
}
