package linking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Results of a flow.
const (
	ResultSuccess = "success"
	ResultError   = "error"
	ResultPending = "pending_provider_mfa"
	// ResultWaiting: the companion app has not connected yet. Only [Service.Arrived] has it.
	ResultWaiting = "waiting"
)

// Result is what came of a flow.
type Result struct {
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

// settle records that a try failed, also when the person has gone, and returns the error.
func (s *Service) settle(ctx context.Context, t *step, err error) (Session, error) {
	kind, ok := typeOf(err)
	if !ok {
		kind = ProviderAPIError
	}
	if kind == TokenConsumed || kind == TokenExpired {
		return t.session, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	x, bad := s.store.UpdateSession(ctx, t.session.Team, t.session.ID, func(x *Session) error { return x.fails(t.n, kind) })
	if bad != nil {
		s.opts.Log.WarnContext(ctx, "link try not recorded", "session", t.session.ID, "kind", healthlab.KindOf(bad).Error())
		return t.session, err
	}
	if kind == ProviderAPIError {
		s.opts.Log.WarnContext(ctx, "provider failed", "session", x.ID, "provider", t.provider.Slug, "kind", healthlab.KindOf(err).Error())
	}
	return x, err
}

func (s *Service) settled(ctx context.Context, t *step, err error) (Result, error) {
	x, err := s.settle(ctx, t, err)
	return s.result(ctx, x, err)
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
