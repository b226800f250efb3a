package linking

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Acceptance is a connection without a sign-in: the person only agrees.
type Acceptance struct {
	// Provider is a provider of class manual or, with Demo, one with demo data.
	Provider string
	// Demo connects generated data. Only a sandbox allows it.
	Demo bool
}

// Accept connects a provider that needs no sign-in. The results are those of [Service.SignIn]. It returns a
// [*healthlab.RuleError] of type [RuleMissingLinkToken], [RuleInvalidProvider] or [RuleTooManyTries], or of type
// healthdata.RuleInvalidRequest if the user would have both generated and real data.
func (s *Service) Accept(ctx context.Context, token string, a Acceptance) (Result, error) {
	t, err := s.beginWithoutConnector(ctx, token, a.Provider, func(p *healthdata.Provider) bool {
		if a.Demo {
			return p.Demo && s.opts.Environment == healthlab.Sandbox
		}
		return p.Class == classManual
	})
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	return t.establish(ctx, Grant{}, a.Demo)
}

// DeviceCode makes a link code for the person to enter in the companion app, which connects an on-device store. The
// link token stays usable until [Service.CompleteDeviceCode] succeeds.
//
// Errors: those of [Service.Open]; a [*healthlab.RuleError] of type [RuleInvalidProvider] if the provider is no
// on-device store, or [RuleTooManyTries].
func (s *Service) DeviceCode(ctx context.Context, token, provider string) (IssuedCode, error) {
	t, err := s.beginWithoutConnector(ctx, token, provider, onDevice)
	if err != nil {
		return IssuedCode{}, fmt.Errorf("device code: %w", err)
	}
	return s.CreateCode(ctx, t.session.Team, t.session.User, nil)
}

// CompleteDeviceCode ends the session of a link token once the companion app has connected the on-device store, with a
// code of [Service.DeviceCode]. The Result is then a success, also on repeated calls, and the token is used up. Before
// that, its State is [ResultWaiting]. A failure is in the Result, as in [Service.SignIn].
func (s *Service) CompleteDeviceCode(ctx context.Context, token, provider string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	again := x.State == StateConnected && x.Provider == provider
	if err != nil && !again {
		return s.result(ctx, x, err)
	}
	p, settings, err := s.offers.findWithoutConnector(ctx, x.Team, provider, onDevice)
	if err != nil {
		return s.result(ctx, x, err)
	}
	out := Result{State: ResultSuccess, Provider: p.Slug, RedirectURL: x.Options.RedirectURL}
	out.Location = x.location(settings.Redirects, Outcome{Provider: p.Slug})
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
	_, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error { return x.recordConnection(provider, at) })
	if err != nil {
		return s.result(ctx, x, err)
	}
	return out, nil
}
