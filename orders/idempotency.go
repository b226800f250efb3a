package orders

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// KeyScope is where an idempotency key counts: one key means one request of one team
// to one endpoint.
type KeyScope struct {
	Team     healthlab.TeamID
	Endpoint string
	// Key is the caller's, compared byte for byte.
	Key string
}

// KeyState is what is known of a key.
type KeyState struct {
	// Answer is what the request was answered; nil while it is not.
	Answer []byte
	// Started is true if the caller of StartKey has the key now, and is to do the
	// work.
	Started bool
	// Until is the end of the caller's lease on the store's clock; zero unless Started.
	Until time.Time
	// Order is the id for the order that the request places: the same each time,
	// so that work that was done and not answered is not done again.
	Order OrderID
	// Fingerprint is that of the request which came first.
	Fingerprint string
}

// Keys remembers what requests with an idempotency key were answered.
//
// All methods are safe for concurrent use and atomic. Once ctx has ended, they return
// its error and write nothing. Leases, and the time for which answers are kept, run on the
// store's own clock.
type Keys interface {
	// StartKey takes a key for the caller for the time of a lease, if no other caller has it
	// and it has no answer. A key whose answer is kept no longer, or that is
	// not known, begins anew with the fingerprint and the order's id of this call. One
	// whose work was started and never finished keeps both; one that was given back
	// keeps the id, and takes the fingerprint. Of calls that run at the same time, one
	// gets the key.
	StartKey(ctx context.Context, scope KeyScope, fingerprint string, order OrderID, lease time.Duration) (KeyState, error)
	// FinishKey keeps the answer for a time, if the claim that ends at until is
	// still the latest; Precondition if it is not, and nothing is kept. A nil answer
	// gives the key back without one. Where the same store keeps the user whom the answer
	// is about, deleting the user takes the answer away, and erasing it the key; user is
	// zero if the answer is about no user, or about the user of the key's order.
	FinishKey(ctx context.Context, scope KeyScope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error
	// PruneKeys forgets at most n keys whose answers are kept no longer,
	// or that were started and whose claim ended a day ago, and returns how
	// many those were.
	PruneKeys(ctx context.Context, n int) (int, error)
}

// Once is a request that is to be done once, however often it comes.
type Once struct {
	KeyScope
	// Fingerprint tells requests apart: the same key with another fingerprint is refused.
	Fingerprint string
	// SuccessOnly keeps the answer of a success only: after a failure, the same key
	// does the work again.
	SuccessOnly bool
	// About is the order that the request is about; zero if it places a new one.
	About OrderID
	// User is the user whom the request is about; zero if it is the order's, or none.
	User healthlab.UserID
	// Keep is how long the answer is kept; zero means as long as the Service says.
	Keep time.Duration
}

// Outcome is what a request comes to.
type Outcome struct {
	// Answer is what the caller gets, byte for byte, now and every time again.
	Answer []byte
	// Failed: it says that the request failed.
	Failed bool
}

// Names of the rules about idempotency keys. Both are [healthlab.Conflict].
const (
	// IdempotencyInProgress: the request is being done; ask again.
	IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS"
	// IdempotencyKeyReused: the key came before with another request.
	IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED"
)

// MaxKey is the greatest length of a key, in characters.
const MaxKey = 255

// Once does a request once and answers it the same every time. do gets the id for the
// order that the request places ([Service.PlaceAs]). An error of do is handed on and
// nothing is kept: the next request with this key does the work again.
//
// Invalid if the key has not 1 to 255 characters; the RuleErrors
// IDEMPOTENCY_IN_PROGRESS and IDEMPOTENCY_KEY_REUSED.
func (s *Service) Once(ctx context.Context, keys Keys, req Once, do func(context.Context, OrderID) (Outcome, error)) ([]byte, error) {
	if n := utf8.RuneCountInString(req.Key); n < 1 || n > MaxKey || !utf8.ValidString(req.Key) {
		var p healthlab.Problems
		p.Add("string_length", fmt.Sprintf("has 1 to %d characters", MaxKey), "idempotency_key")
		return nil, p.Err()
	}
	state, err := s.startKey(ctx, keys, req, s.opts.KeyLease)
	if err != nil || !state.Started {
		return state.Answer, err
	}
	out, err := do(ctx, state.Order)
	if err != nil || out.Failed && req.SuccessOnly {
		// Whatever became of the request, its key is free again.
		free := keys.FinishKey(context.WithoutCancel(ctx), req.KeyScope, state.Until, nil, healthlab.UserID{}, 0)
		if free != nil && !errors.Is(free, healthlab.Precondition) {
			s.opts.Log.Warn("idempotency key not freed; its lease will end", "kind", healthlab.KindOf(free).Error())
		}
		return out.Answer, err
	}
	keep := req.Keep
	if keep <= 0 {
		keep = s.opts.KeyRetention
	}
	err = keys.FinishKey(context.WithoutCancel(ctx), req.KeyScope, state.Until, out.Answer, req.User, keep)
	if errors.Is(err, healthlab.Precondition) {
		// It took so long that another request took over. That one has the answer.
		state, err = s.startKey(ctx, keys, req, time.Microsecond)
		if err == nil && state.Started {
			err = inProgress()
		}
		return state.Answer, err
	}
	if err != nil {
		return nil, fmt.Errorf("keep answer: %w", err)
	}
	return out.Answer, nil
}

// startKey takes the key, or tells why not.
func (s *Service) startKey(ctx context.Context, keys Keys, req Once, lease time.Duration) (KeyState, error) {
	order := req.About
	if order.IsZero() {
		order = OrderID{s.opts.NewID()}
	}
	state, err := keys.StartKey(ctx, req.KeyScope, req.Fingerprint, order, lease)
	switch {
	case err != nil:
		return KeyState{}, fmt.Errorf("idempotency key: %w", err)
	case state.Fingerprint != req.Fingerprint:
		if state.Started {
			_ = keys.FinishKey(ctx, req.KeyScope, state.Until, nil, healthlab.UserID{}, 0)
		}
		return KeyState{}, &healthlab.RuleError{Kind: healthlab.Conflict, Type: IdempotencyKeyReused, Msg: "x-idempotency-key was sent before with another body; send a new key for a new request"}
	case !state.Started && state.Answer == nil:
		return KeyState{}, inProgress()
	}
	return state, nil
}

func inProgress() error {
	return &healthlab.RuleError{Kind: healthlab.Conflict, Type: IdempotencyInProgress, Msg: "the first request with this x-idempotency-key is still running; retry in a second"}
}

// runPruning forgets idempotency keys that are kept no longer, until ctx ends.
func (s *Service) runPruning(ctx context.Context) error {
	const batch = 1000
	loop := &work.Loop[struct{}]{
		Name: "idempotency keys", Workers: 1, Idle: time.Minute, Log: s.opts.Log,
		Claim: func(ctx context.Context, _ int) ([]struct{}, error) {
			for {
				n, err := s.opts.Keys.PruneKeys(ctx, batch)
				if err != nil || n < batch {
					return nil, err
				}
			}
		},
		Do: func(context.Context, struct{}) error { return nil },
	}
	return loop.Run(ctx)
}
