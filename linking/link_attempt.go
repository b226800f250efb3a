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

// linkAttempt is one try of a person to sign in at a provider.
type linkAttempt struct {
	at       time.Time
	session  Session
	n        int
	provider *healthdata.Provider
	settings *TeamSettings
	conn     ProviderConnector
	client   string // the team's own client; empty for that of the deployment
}

func (s *Service) plan(p *linkAttempt) scopePlan {
	var want *ScopeRequirement
	if w, ok := p.settings.Scopes[p.provider.Slug]; ok {
		want = &w
	}
	return planScopes(p.provider, p.conn.Minimum, want)
}

// begin checks a link token and starts a sign-in try.
func (s *Service) begin(ctx context.Context, token, provider string, flows ...string) (*linkAttempt, error) {
	t := &linkAttempt{at: s.now()}
	x, err := s.open(ctx, token, t.at)
	if err != nil {
		return nil, err
	}
	if err := x.permits(provider); err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.offered(ctx, x.Team, provider, flows...); err != nil {
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
	if err := s.realUser(ctx, &x); err != nil {
		return nil, err
	}
	return t, s.beginAttempt(ctx, t, x)
}

// realUser refuses a user with generated data before the person leaves for the provider.
func (s *Service) realUser(ctx context.Context, x *Session) error {
	u, err := s.users.User(ctx, x.Team, x.User)
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

// savePending stores the encrypted state of a sign-in try, unless a newer try has begun.
func (s *Service) savePending(ctx context.Context, t *linkAttempt, on Trigger, notes []byte, c Challenge) error {
	place := stepPlace(&t.session, t.n)
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
		return x.fire(on)
	})
	return err
}

func mfaPlace(id SessionID) []byte { return []byte("link challenge " + id.String()) }

// callConnector calls a connector with the timeout of a waiting person.
func callConnector[T any](ctx context.Context, s *Service, call func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
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

// beginWithoutConnector checks a link token and starts a try at a provider without a connector.
func (s *Service) beginWithoutConnector(ctx context.Context, token, provider string, ok func(*healthdata.Provider) bool) (*linkAttempt, error) {
	t := &linkAttempt{at: s.now()}
	x, err := s.open(ctx, token, t.at)
	if err != nil {
		return nil, err
	}
	if err := x.permits(provider); err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.offeredWithoutConnector(ctx, x.Team, provider, ok); err != nil {
		return nil, err
	}
	return t, s.beginAttempt(ctx, t, x)
}

func (s *Service) beginAttempt(ctx context.Context, t *linkAttempt, x Session) (err error) {
	t.session, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		return x.begin(t.provider.Slug, t.at)
	})
	t.n = t.session.Step
	return err
}

// recordFailure records a failed sign-in try, even if the person has left, and returns the error.
func (s *Service) recordFailure(ctx context.Context, t *linkAttempt, err error) (Session, error) {
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

func (s *Service) failedResult(ctx context.Context, t *linkAttempt, err error) (Result, error) {
	x, err := s.recordFailure(ctx, t, err)
	return s.result(ctx, x, err)
}
