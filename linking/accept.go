package linking

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Classes of providers that people do not sign in at, as a provider's record names them.
const (
	classCloud  = "cloud"
	classStore  = "sdk_store"
	classManual = "manual"
)

// Acceptance is a connection that needs no sign-in: the person says yes.
type Acceptance struct {
	// Provider is one of class manual or, with Demo, one whose data can be made up.
	Provider string
	// Demo connects made-up data. Only a sandbox does.
	Demo bool
}

// Accept connects what needs no sign-in. Results as of [Service.SignIn].
//
// Errors: a [*healthlab.RuleError] of type [RuleMissingLinkToken], [RuleInvalidProvider] or
// [RuleTooManyTries], or of type healthdata.RuleInvalidRequest where a user would have both
// made-up data and real.
func (s *Service) Accept(ctx context.Context, token string, a Acceptance) (Result, error) {
	t, err := s.beginWith(ctx, token, a.Provider, func(p *healthdata.Provider) bool {
		if a.Demo {
			return p.Demo && s.opts.Environment == healthlab.Sandbox
		}
		return p.Class == classManual
	})
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	return s.establish(ctx, t, Grant{}, a.Demo)
}

// DeviceCode makes a link code for the person to enter in the companion app, which
// connects an on-device store. The token is not used up by it; [Service.Arrived] does that.
//
// Errors: as of [Service.Open]; a [*healthlab.RuleError] of type [RuleInvalidProvider] if
// the provider is no on-device store, or [RuleTooManyTries].
func (s *Service) DeviceCode(ctx context.Context, token, provider string) (CodeOffer, error) {
	t, err := s.beginWith(ctx, token, provider, onDevice)
	if err != nil {
		return CodeOffer{}, fmt.Errorf("device code: %w", err)
	}
	return s.CreateCode(ctx, t.session.Team, t.session.User, nil)
}

// Arrived ends a session whose person was given a code by [Service.DeviceCode], once the
// companion app has connected the store: the Result is then a success, and the token is
// used up; asked again, it is a success again. Until then its State is [ResultWaiting].
// What fails is in the Result, as of [Service.SignIn].
func (s *Service) Arrived(ctx context.Context, token, provider string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	again := x.State == StateConnected && x.Provider == provider
	if err != nil && !again {
		return s.result(ctx, x, err)
	}
	p, settings, err := s.accepted(ctx, x.Team, provider, onDevice)
	if err != nil {
		return s.result(ctx, x, err)
	}
	out := Result{State: ResultSuccess, Provider: p.Slug, RedirectURL: x.Options.RedirectURL}
	out.Location = s.location(settings, &x, Outcome{Provider: p.Slug})
	if again {
		return out, nil
	}
	if x.State != StateStarted || x.Provider != provider || x.Step == 0 {
		return s.result(ctx, x, fail(TokenNotValidated))
	}
	u, err := s.users.User(ctx, x.Team, x.User)
	if err != nil {
		return Result{}, fmt.Errorf("device arrived: %w", err)
	}
	if c := u.Connection(provider); c == nil || c.Status != healthdata.Connected {
		return Result{State: ResultWaiting, Provider: provider, RedirectURL: x.Options.RedirectURL}, nil
	}
	_, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error { return x.connects(provider, at) })
	if err != nil {
		return s.result(ctx, x, err)
	}
	return out, nil
}

func onDevice(p *healthdata.Provider) bool { return p.Class == classStore }

// accepted returns a provider of one kind, which needs no connector.
func (s *Service) accepted(ctx context.Context, team healthlab.TeamID, slug string, ok func(*healthdata.Provider) bool) (
	*healthdata.Provider, *TeamSettings, error,
) {
	p := s.users.Providers().Get(slug)
	if p == nil || !ok(p) {
		return nil, nil, errProvider()
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	return p, &settings, nil
}

// beginWith opens a token and starts a try at a provider that needs no connector.
func (s *Service) beginWith(ctx context.Context, token, provider string, ok func(*healthdata.Provider) bool) (*step, error) {
	t := &step{at: s.now()}
	x, err := s.open(ctx, token, t.at)
	if err != nil {
		return nil, err
	}
	if err := x.permits(provider); err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.accepted(ctx, x.Team, provider, ok); err != nil {
		return nil, err
	}
	return t, s.beginTry(ctx, t, x)
}

func (s *Service) beginTry(ctx context.Context, t *step, x Session) (err error) {
	t.session, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		return x.begin(t.provider.Slug, t.at)
	})
	t.n = t.session.Step
	return err
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

// Reason is the link error type that a person sees for an error of this package, if it is
// one that a person can do something about.
func Reason(err error) (ErrorType, bool) {
	var r *healthlab.RuleError
	if errors.As(err, &r) && (r.Type == RuleMissingLinkToken || r.Type == RuleInvalidUserID) {
		return InvalidToken, true
	}
	return typeOf(err)
}
