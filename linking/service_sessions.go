package linking

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// CreateToken creates a link token and its session. It returns Invalid (a [*healthlab.InvalidError] with every
// invalid field), or a [*healthlab.RuleError] of type [RuleInvalidUserID] or [RuleInvalidProvider].
func (s *Service) CreateToken(ctx context.Context, team healthlab.TeamID, n NewToken) (IssuedToken, error) {
	issued, err := s.createToken(ctx, team, n)
	if err != nil {
		return IssuedToken{}, fmt.Errorf("create link token: %w", err)
	}
	return issued, nil
}

func (s *Service) createToken(ctx context.Context, team healthlab.TeamID, n NewToken) (IssuedToken, error) {
	at := s.now()
	settings, err := s.offers.teamSettings(ctx, team)
	if err != nil {
		return IssuedToken{}, err
	}
	var p healthlab.Problems
	n.check(&p, s.users.Providers(), settings.Redirects)
	if err := p.Err(); err != nil {
		return IssuedToken{}, err
	}
	if err := s.requireUser(ctx, team, n.User, errUser()); err != nil {
		return IssuedToken{}, err
	}
	if n.Provider != "" && !s.offers.linkable(s.users.Providers().Get(n.Provider), &settings) {
		return IssuedToken{}, errProvider()
	}
	n.FilterOnProviders = slices.Clone(n.FilterOnProviders)
	x := Session{
		ID: SessionID{s.opts.NewID()}, Team: team, User: n.User, State: lifecycle.Initial(), Options: n,
		CreatedAt: at, ExpiresAt: at.Add(TokenLife),
	}
	token, err := s.signer.issue(&x)
	if err != nil {
		return IssuedToken{}, err
	}
	x.Token = hashToken(token)
	if err := s.store.InsertSession(ctx, x); err != nil {
		return IssuedToken{}, err
	}
	return IssuedToken{
		Token: token, WebURL: webURL(s.opts.WebURL, token, s.opts.Environment, s.opts.Region),
		Session: x.ID, ExpiresAt: x.ExpiresAt,
	}, nil
}

// Open returns the session of a valid token. It returns a [*healthlab.RuleError] of type [RuleMissingLinkToken] or
// [RuleInvalidUserID], or an [*Error] of type [InvalidToken], [TokenExpired] or [TokenConsumed]. With TokenExpired and
// TokenConsumed, it also returns the session.
func (s *Service) Open(ctx context.Context, token string) (Session, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return x, fmt.Errorf("open link session: %w", err)
	}
	return x, nil
}

// TokenUser returns the team and the user of a link token, also of an expired or used one. It returns false for a token
// that this service did not issue.
func (s *Service) TokenUser(token string) (healthlab.TeamID, healthlab.UserID, bool) {
	c, err := s.signer.read(token)
	return c.Team, c.User, err == nil
}

func (s *Service) open(ctx context.Context, token string, at time.Time) (Session, error) {
	if token == "" {
		return Session{}, rule(RuleMissingLinkToken, "the link token is missing")
	}
	c, err := s.signer.read(token)
	if err != nil {
		return Session{}, err
	}
	x, err := s.store.Session(ctx, c.Team, c.Subject)
	if errors.Is(err, healthlab.NotFound) {
		return Session{}, fail(InvalidToken)
	}
	if err != nil {
		return Session{}, err
	}
	sum := hashToken(token)
	if subtle.ConstantTimeCompare(x.Token[:], sum[:]) != 1 {
		return Session{}, fail(InvalidToken)
	}
	if err := x.usable(at); err != nil {
		if x.State != StateExpired && x.State != StateConnected {
			x = s.expire(ctx, x)
		}
		return x, err
	}
	if err := s.requireUser(ctx, x.Team, x.User, rule(RuleInvalidUserID, "the user of the link token does not exist")); err != nil {
		return Session{}, err
	}
	return x, nil
}

// expire sets the state of a session to expired and returns it. If the write fails, expire returns x unchanged, because
// the token no longer works anyway.
func (s *Service) expire(ctx context.Context, x Session) Session {
	done, err := s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		x.clearPending()
		return x.fire(Expire)
	})
	if err != nil {
		return x
	}
	return done
}

// Start records that the link pages are open, and which provider the person has chosen. provider is empty if none is
// chosen yet. The errors are those of [Service.Open], and a [*healthlab.RuleError] of type [RuleInvalidProvider].
func (s *Service) Start(ctx context.Context, token, provider string) (Session, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err == nil && provider != "" {
		if err = x.permits(provider); err == nil {
			_, _, err = s.offers.find(ctx, x.Team, provider)
		}
	}
	if err == nil {
		x, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
			if err := x.usable(at); err != nil {
				return err
			}
			if provider != "" {
				x.Provider = provider
			}
			x.clearPending()
			return x.fire(Start)
		})
	}
	if err != nil {
		return Session{}, fmt.Errorf("start link session: %w", err)
	}
	return x, nil
}

// Close records that the person closed the link pages. Opening them again continues the session. The errors are
// those of [Service.Open].
func (s *Service) Close(ctx context.Context, token string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err == nil {
		x, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
			if err := x.usable(at); err != nil {
				return err
			}
			if x.State == StateCancelled {
				return nil
			}
			x.clearPending()
			return x.fire(Close)
		})
	}
	if err != nil {
		return Result{}, fmt.Errorf("close link session: %w", err)
	}
	return s.failed(ctx, x, UserCancelled), nil
}
