package linking

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
)

const (
	signInMargin = 5 * time.Second        // time for the store, after the call of a connector has ended
	signInPoll   = 200 * time.Millisecond // interval of looking whether another try has ended
)

// linkAttempt is one try of a person to sign in at a provider.
type linkAttempt struct {
	service  *Service
	at       time.Time
	session  Session
	n        int // Session.Step of the try
	provider *healthdata.Provider
	settings *TeamSettings
	conn     ProviderConnector
	client   string // the team's own client; empty for that of the deployment
}

// newAttempt checks a link token for a try at a provider.
func (s *Service) newAttempt(ctx context.Context, token, provider string) (*linkAttempt, error) {
	t := &linkAttempt{service: s, at: s.now()}
	var err error
	if t.session, err = s.open(ctx, token, t.at); err != nil {
		return nil, err
	}
	return t, t.session.permits(provider)
}

// begin checks a link token and starts a try at a provider; with a form, the try signs in from then on. flows are the
// allowed values of the provider's AuthType.
func (s *Service) begin(ctx context.Context, token, provider string, flows ...string) (*linkAttempt, error) {
	t, err := s.newAttempt(ctx, token, provider)
	if err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.offers.find(ctx, t.session.Team, provider, flows...); err != nil {
		return nil, err
	}
	if own, ok := t.settings.teamClients[provider]; ok {
		t.client = own.ClientID
		t.conn, err = s.connectors.forTeamClient(ctx, &own)
	} else {
		t.conn = s.connectors.byProvider[provider]
	}
	if err != nil {
		return nil, err
	}
	if err := t.refuseDemoUser(ctx); err != nil {
		return nil, err
	}
	signIn := t.provider.AuthType == authPassword || t.provider.AuthType == authEmail
	return t, t.updateSession(ctx, func(x *Session) error {
		if err := x.begin(provider, t.at); err != nil || !signIn {
			return err
		}
		return x.signIn(t.at, s.signInLimit())
	})
}

// beginWithoutConnector checks a link token and starts a try at a provider without a connector, for which ok must be
// true.
func (s *Service) beginWithoutConnector(ctx context.Context, token, provider string, ok func(*healthdata.Provider) bool) (*linkAttempt, error) {
	t, err := s.newAttempt(ctx, token, provider)
	if err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.offers.findWithoutConnector(ctx, t.session.Team, provider, ok); err != nil {
		return nil, err
	}
	return t, t.updateSession(ctx, func(x *Session) error { return x.begin(provider, t.at) })
}

func (s *Service) signInLimit() time.Duration { return s.opts.Timeout + signInMargin }

// updateSession lets change edit the session, and sets t.session and t.n. While change returns errSigningIn, it waits and
// tries again with a new t.at.
func (t *linkAttempt) updateSession(ctx context.Context, change func(*Session) error) error {
	for {
		x, err := t.service.store.UpdateSession(ctx, t.session.Team, t.session.ID, change)
		if err == nil {
			t.session, t.n = x, x.Step
		}
		if !errors.Is(err, errSigningIn) {
			return err
		}
		if err := pause(ctx, signInPoll); err != nil {
			return err
		}
		t.at = t.service.now()
	}
}

func (t *linkAttempt) scopes() scopePlan {
	var want *ScopeRequirement
	if w, ok := t.settings.Scopes[t.provider.Slug]; ok {
		want = &w
	}
	return planScopes(t.provider, t.conn.Minimum, want)
}

// refuseDemoUser refuses a user with generated data before the person leaves for the provider.
func (t *linkAttempt) refuseDemoUser(ctx context.Context) error {
	u, err := t.service.users.User(ctx, t.session.Team, t.session.User)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(u.Connections, func(c healthdata.Connection) bool {
		return c.Demo && c.Status != healthdata.Deregistered
	}) {
		return rule(healthdata.RuleInvalidRequest, "a user must not have demo connections and real ones at the same time")
	}
	return nil
}

// savePending applies the trigger on to the session, and stores notes encrypted as the state of the try. It fails with
// [TokenNotValidated] if a newer try has begun.
func (t *linkAttempt) savePending(ctx context.Context, on Trigger, notes []byte, c Challenge) error {
	s, place := t.service, stepPlace(&t.session, t.n)
	if on == AskCode {
		place = mfaPlace(t.session.ID)
	}
	box, err := s.seal.Seal(ctx, notes, place)
	if err != nil {
		return err
	}
	_, err = s.store.UpdateSession(ctx, t.session.Team, t.session.ID, func(x *Session) error {
		if err := x.usable(t.at); err != nil {
			return err
		}
		if x.Step != t.n {
			return fail(TokenNotValidated)
		}
		x.Pending, x.Challenge = box, c
		x.Attempts[t.n-1].Until = time.Time{}
		return x.fire(on)
	})
	return err
}

func mfaPlace(id SessionID) []byte { return []byte("link challenge " + id.String()) }

// callConnector calls a connector's method with a context that ends after timeout. If the method returns no error but
// the context has ended, callConnector returns the context's error.
func callConnector[T any](ctx context.Context, timeout time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	v, err := call(ctx)
	if err == nil {
		err = ctx.Err() // an answer after the timeout is ignored
	}
	return v, err
}

func asLinkError(err error, allowed ...ErrorType) error {
	if t, ok := typeOf(err); ok && slices.Contains(allowed, t) {
		return &Error{Type: t}
	}
	return &Error{Type: ProviderAPIError, Cause: err}
}

// recordFailure records in the session that the try failed, even if the request's context has ended. It does not record
// [TokenConsumed] and [TokenExpired]. It returns the session, and err unchanged.
func (t *linkAttempt) recordFailure(ctx context.Context, err error) (Session, error) {
	s := t.service
	kind, ok := typeOf(err)
	if !ok {
		kind = ProviderAPIError
	}
	if kind == TokenConsumed || kind == TokenExpired {
		return t.session, err
	}
	hungUp := errors.Is(ctx.Err(), context.Canceled)
	ctx, stop := work.Grace(ctx, 3*time.Second)
	defer stop()
	x, bad := s.store.UpdateSession(ctx, t.session.Team, t.session.ID, func(x *Session) error { return x.recordFailure(t.n, kind) })
	if bad != nil {
		s.opts.Log.WarnContext(ctx, "link try not recorded", "session", t.session.ID, "kind", healthlab.KindOf(bad).Error(), "cause", work.Cause(bad))
		return t.session, err
	}
	if kind == ProviderAPIError && !hungUp {
		s.failures.Log(ctx, s.opts.Log, t.at, t.provider.Slug, "provider failed", withCause(err), "session", x.ID, "provider", t.provider.Slug)
	}
	return x, err
}

func (t *linkAttempt) failed(ctx context.Context, err error) (Result, error) {
	x, err := t.recordFailure(ctx, err)
	return t.service.result(ctx, x, err)
}
