package linking_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// soleGrant is a provider that ends the earlier grants of a person at each sign-in. The n-th sign-in takes n seconds.
type soleGrant struct {
	signIns *atomic.Int64
	refused int64 // number of the first sign-ins that are refused
}

func (p soleGrant) grant() (linking.Grant, error) {
	n := p.signIns.Add(1)
	time.Sleep(time.Duration(n) * time.Second)
	if n <= p.refused {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	return linking.Grant{ExternalUserID: "ann", Secret: fmt.Appendf(nil, "grant %d", n)}, nil
}

func (p soleGrant) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	switch r.Password {
	case "code":
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "sms"}}, nil
	case "crash":
		panic("crash")
	}
	g, err := p.grant()
	return linking.PasswordResponse{Grant: g}, err
}

func (p soleGrant) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	g, err := p.grant()
	if err != nil {
		err = &linking.Error{Type: linking.IncorrectMFACode}
	}
	return g, err
}

func (p soleGrant) SignInByEmail(context.Context, linking.EmailRequest) (linking.Grant, error) {
	return p.grant()
}

func (soleGrant) Authorize(context.Context, linking.AuthorizeRequest) (string, error) {
	return "https://provider.example/sign-in", nil
}

func (p soleGrant) Exchange(context.Context, linking.ExchangeRequest) (linking.Grant, error) {
	return p.grant()
}

// parallelSignIns has two processes on one store, and a link token.
type parallelSignIns struct {
	*testing.T
	store    *memory.Store
	services [2]*linking.Service
	user     healthlab.UserID
	token    string
	signIns  atomic.Int64
}

func newParallelSignIns(t *testing.T, refused int64) *parallelSignIns {
	p := &parallelSignIns{T: t, store: memory.New(nil)}
	var list []healthdata.Provider
	connectors := map[string]linking.ProviderConnector{}
	flow := soleGrant{&p.signIns, refused}
	for auth, c := range map[string]linking.ProviderConnector{"password": {Password: flow}, "email": {Email: flow}, "oauth": {OAuth: flow}} {
		slug := "acme_" + auth
		list = append(list, healthdata.Provider{Slug: slug, Name: slug, AuthType: auth, Category: "device", Class: "cloud"})
		connectors[slug] = c
	}
	providers, err := healthdata.NewProviders(list)
	require.NoError(t, err)
	health, err := healthdata.New(p.store.Users(), p.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	p.user = u.ID
	for i := range p.services {
		p.services[i], err = linking.New(p.store.Linking(), health, connectors, sealer(t, "a", map[string][]byte{"a": key(1)}),
			&linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}})
		require.NoError(t, err)
	}
	issued, err := p.services[0].CreateToken(t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(t, err)
	p.token = issued.Token
	return p
}

func (p *parallelSignIns) password(s *linking.Service, password string) (linking.Result, error) {
	return s.SignIn(p.Context(), p.token, linking.PasswordSignIn{Provider: "acme_password", Username: "ann", Password: password})
}

// together calls submit in parallel, with the two services by turns, and returns the states or errors of the results, in
// no order.
func (p *parallelSignIns) together(n int, submit func(s *linking.Service) (linking.Result, error)) []string {
	p.Helper()
	got := make([]string, n)
	errs := conformance.Together(n, func(i int) error {
		r, err := submit(p.services[i%2])
		got[i] = r.State
		if r.Error != "" {
			got[i] = string(r.Error)
		}
		return err
	})
	require.NoError(p, errors.Join(errs...))
	return got
}

func (p *parallelSignIns) requireNewestGrant(provider string) {
	p.Helper()
	secret, err := p.services[0].Secret(p.Context(), team, p.user, provider)
	require.NoError(p, err)
	require.Equal(p, fmt.Sprintf("grant %d", p.signIns.Load()), string(secret))
}

// Of parallel submits of one token one connects, and the connection has the provider's last grant. If the first submit is
// refused, the next one is tried.
func TestSignIn_parallelSubmitsConnectWithTheLastGrant(t *testing.T) {
	for _, flow := range []struct {
		provider string
		prepare  func(p *parallelSignIns)
		submit   func(p *parallelSignIns, s *linking.Service) (linking.Result, error)
		refusal  linking.ErrorType
	}{
		{"acme_password", func(*parallelSignIns) {}, func(p *parallelSignIns, s *linking.Service) (linking.Result, error) {
			return p.password(s, "x")
		}, linking.ProviderCredentialError},
		{"acme_password", func(p *parallelSignIns) {
			r, err := p.password(p.services[0], "code")
			require.NoError(p, err)
			require.Equal(p, linking.ResultPending, r.State)
		}, func(p *parallelSignIns, s *linking.Service) (linking.Result, error) {
			return s.CompleteMFA(p.Context(), p.token, "acme_password", "1234")
		}, linking.IncorrectMFACode},
		{"acme_email", func(*parallelSignIns) {}, func(p *parallelSignIns, s *linking.Service) (linking.Result, error) {
			return s.SignInByEmail(p.Context(), p.token, linking.EmailSignIn{Provider: "acme_email", Email: "ann@mail.example"})
		}, linking.ProviderCredentialError},
		{"acme_oauth", func(*parallelSignIns) {}, func(p *parallelSignIns, s *linking.Service) (linking.Result, error) {
			if _, err := s.Authorize(p.Context(), p.token, linking.OAuthSignIn{Provider: "acme_oauth"}); err != nil {
				p.Log(err)
				return linking.Result{Error: linking.TokenNotValidated}, nil // a newer try has begun, or the link is made
			}
			return s.Callback(p.Context(), linking.Callback{Provider: "acme_oauth", State: p.token, Code: "x"})
		}, ""},
	} {
		for _, refused := range []int64{0, 1} {
			if refused == 1 && flow.refusal == "" {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				p := newParallelSignIns(t, refused)
				flow.prepare(p)
				got := p.together(3, func(s *linking.Service) (linking.Result, error) { return flow.submit(p, s) })
				want := []string{linking.ResultSuccess, string(linking.TokenConsumed), string(linking.TokenConsumed)}
				if refused == 1 {
					want[1] = string(flow.refusal)
				}
				if flow.refusal != "" {
					require.ElementsMatch(t, want, got, flow.provider)
					require.Equal(t, refused+1, p.signIns.Load())
				}
				require.Contains(t, got, linking.ResultSuccess, flow.provider)
				p.requireNewestGrant(flow.provider)
			})
		}
	}
}

// Different providers do not wait for each other: the first success counts.
func TestSignIn_doesNotWaitForAnotherProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParallelSignIns(t, 0)
		began := time.Now()
		var turn atomic.Int64
		got := p.together(2, func(s *linking.Service) (linking.Result, error) {
			if turn.Add(1) == 1 {
				return p.password(s, "x")
			}
			return s.SignInByEmail(p.Context(), p.token, linking.EmailSignIn{Provider: "acme_email", Email: "ann@mail.example"})
		})
		require.ElementsMatch(t, []string{linking.ResultSuccess, string(linking.TokenConsumed)}, got)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

// A process that dies during a sign-in holds up the next try for at most a minute.
func TestSignIn_continuesAfterAProcessDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParallelSignIns(t, 0)
		require.Panics(t, func() { _, _ = p.password(p.services[0], "crash") })
		began := time.Now()
		r, err := p.password(p.services[1], "x")
		require.NoError(t, err)
		require.Equal(t, linking.ResultSuccess, r.State)
		require.WithinRange(t, time.Now(), began.Add(30*time.Second), began.Add(time.Minute))
	})
}

// A person who leaves while another try signs in does not wait for it.
func TestSignIn_endsWithItsContextWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParallelSignIns(t, 0)
		require.Panics(t, func() { _, _ = p.password(p.services[0], "crash") })
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := p.services[1].SignIn(ctx, p.token, linking.PasswordSignIn{Provider: "acme_password", Username: "ann", Password: strings.Repeat("x", 8)})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, p.signIns.Load())
	})
}
