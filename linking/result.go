package linking

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// Results of a flow.
const (
	ResultSuccess = "success"
	ResultError   = "error"
	ResultPending = "pending_provider_mfa"
	// ResultWaiting: the companion app has not connected yet. Only [Service.CompleteDeviceCode] has it.
	ResultWaiting = "waiting"
)

// Result is what came of a flow.
type Result struct {
	healthlab.Private

	// State is [ResultSuccess], [ResultError], [ResultPending] or [ResultWaiting] (open).
	State string
	// Provider is the slug of what was tried; empty if it is not known.
	Provider string
	// Error says what failed.
	Error ErrorType
	// RedirectURL is the one that the token was created with; empty if none was, or if
	// the token is not ours.
	RedirectURL string
	// Location is the RedirectURL with the outcome in its query: where to send a browser
	// at the end. Empty if there is none, or if the team's rules no longer allow it.
	Location string
	// Challenge says how a code reaches the person, when one is awaited.
	Challenge *Challenge
	// ExternalUserID is the provider's own name for the person, after a success; nil
	// where it has none.
	ExternalUserID *string
}

// tokenResult is the result of a flow that did not begin. The session is looked up again,
// for its redirect URL.
func (s *Service) tokenResult(ctx context.Context, token string, err error) (Result, error) {
	var x Session
	if _, ok := typeOf(err); ok {
		x, _ = s.open(ctx, token, s.now())
	}
	return s.result(ctx, x, err)
}

// result says what failed to a person, and passes on what a person cannot help.
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
		out.Location = s.location(&settings, &x, Outcome{Error: t})
	}
	return out
}

// location is where a browser is sent at the end, by the rules as they are now.
func (s *Service) location(settings *TeamSettings, x *Session, o Outcome) string {
	target := x.Options.RedirectURL
	if target == "" || !settings.Redirects.Allows(target) {
		return ""
	}
	return o.Redirect(target)
}

// Location is where a browser is sent at the end of a session: its redirect URL with the
// outcome. Empty if it has none, or if the team's rules no longer allow it.
func (s *Service) Location(ctx context.Context, x Session, o Outcome) (string, error) {
	settings, err := s.opts.Settings(ctx, x.Team)
	if err != nil {
		return "", fmt.Errorf("link location: settings: %w", err)
	}
	return s.location(&settings, &x, o), nil
}
