package linking

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// States of a Result.
const (
	ResultSuccess = "success"
	ResultError   = "error"
	ResultPending = "pending_provider_mfa"
	// ResultWaiting: the companion app has not connected yet. Only [Service.CompleteDeviceCode] returns it.
	ResultWaiting = "waiting"
)

// Result is the outcome of a step of linking.
type Result struct {
	healthlab.Private

	// State is [ResultSuccess], [ResultError], [ResultPending], [ResultWaiting] or, in later versions, another value.
	State string
	// Provider is the slug of the tried provider; empty if it is not known.
	Provider string
	// Error is the type of the failure; empty if there is none.
	Error ErrorType
	// RedirectURL is the redirect URL of the token; empty if it has none, or if the token is invalid.
	RedirectURL string
	// Location is the RedirectURL with the outcome in its query, to which the browser is sent at the end. It is
	// empty if there is none, or if the team's rules no longer allow it.
	Location string
	// Challenge describes how a code is sent to the person, if a code is awaited.
	Challenge *Challenge
	// ExternalUserID is the provider's own name for the person, after a success; nil if the provider has none.
	ExternalUserID *string
}

// tokenResult returns the result for err, the error of a link token. It reads the session for its redirect URL.
func (s *Service) tokenResult(ctx context.Context, token string, err error) (Result, error) {
	var x Session
	if _, ok := typeOf(err); ok {
		x, _ = s.open(ctx, token, s.now())
	}
	return s.result(ctx, x, err)
}

// result converts a failure that a person can solve to a Result, and returns other errors.
func (s *Service) result(ctx context.Context, x Session, err error) (Result, error) {
	var r *healthlab.RuleError
	if errors.As(err, &r) && r.Type == RuleInvalidUserID {
		err = fail(InvalidToken)
	}
	t, ok := typeOf(err)
	if !ok {
		return Result{}, fmt.Errorf("link: %w", err)
	}
	return s.failed(ctx, x, t), nil
}

func (s *Service) failed(ctx context.Context, x Session, t ErrorType) Result {
	out := Result{State: ResultError, Provider: x.Provider, Error: t, RedirectURL: x.Options.RedirectURL}
	if settings, err := s.opts.Settings(ctx, x.Team); err == nil {
		out.Location = x.location(settings.Redirects, Outcome{Error: t})
	}
	return out
}

// Location returns the redirect URL of a session with the outcome. It is empty if the session has none, or if
// the team's rules no longer allow it.
func (s *Service) Location(ctx context.Context, x Session, o Outcome) (string, error) {
	settings, err := s.opts.Settings(ctx, x.Team)
	if err != nil {
		return "", fmt.Errorf("link location: settings: %w", err)
	}
	return x.location(settings.Redirects, o), nil
}
