package linking_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// phones are where people connect what needs no sign-in.
func phones(t *testing.T, opts linking.Options) (*place, *linking.Service) {
	t.Helper()
	p := &place{t: t, now: noon}
	p.store = memory.New(&memory.Options{Now: p.clock})
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_scale", Name: "Scale", AuthType: "password", Category: "device", Class: "cloud", Demo: true},
		{Slug: "health_connect", Name: "Health Connect", AuthType: "sdk", Category: "app", Class: "sdk_store"},
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
	})
	require.NoError(t, err)
	p.health, err = healthdata.New(p.store.Users(), p.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: p.clock})
	require.NoError(t, err)
	u, err := p.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	p.user = u.ID
	return p, p.service(sealer(t, "a", map[string][]byte{"a": key(1)}), opts, key(2))
}

func (p *place) token(s *linking.Service) string {
	p.t.Helper()
	issued, err := s.CreateToken(p.t.Context(), team, linking.NewToken{User: p.user, RedirectURL: "https://app.example/"})
	require.NoError(p.t, err)
	return issued.Token
}

func (p *place) connected() []string {
	p.t.Helper()
	list, err := p.health.Connections().List(p.t.Context(), team, p.user)
	require.NoError(p.t, err)
	out := []string{}
	for _, c := range list {
		out = append(out, c.Slug)
	}
	return out
}

func requireRule(t *testing.T, want string, err error) {
	t.Helper()
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, want, rule.Type)
}

func TestAccept_connectsOnlyProvidersWithoutASignIn(t *testing.T) {
	p, s := phones(t, linking.Options{})
	token := p.token(s)
	for _, a := range []linking.Acceptance{
		{Provider: "acme_scale"}, {Provider: "health_connect"}, {Provider: "nobody"}, {Provider: "manual", Demo: true}, {Provider: "health_connect", Demo: true}, {},
	} {
		_, err := s.Accept(t.Context(), token, a)
		requireRule(t, linking.RuleInvalidProvider, err)
	}
	_, err := s.Accept(t.Context(), "", linking.Acceptance{Provider: "manual"})
	requireRule(t, linking.RuleMissingLinkToken, err)
	r, err := s.Accept(t.Context(), "x", linking.Acceptance{Provider: "manual"})
	require.NoError(t, err)
	require.Equal(t, linking.InvalidToken, r.Error)
	require.Empty(t, p.connected())

	r, err = s.Accept(t.Context(), token, linking.Acceptance{Provider: "manual"})
	require.NoError(t, err)
	require.Equal(t, "https://app.example/?state=success&provider=manual", r.Location)
	require.Nil(t, r.ExternalUserID)
	require.Equal(t, []string{"manual"}, p.connected())
	r, err = s.Accept(t.Context(), token, linking.Acceptance{Provider: "manual"})
	require.NoError(t, err)
	require.Equal(t, linking.TokenConsumed, r.Error)
	token = p.token(s)
	_, err = s.Accept(t.Context(), token, linking.Acceptance{Provider: "acme_scale", Demo: true})
	requireRule(t, healthdata.RuleInvalidRequest, err)
	require.Equal(t, []string{"manual"}, p.connected())
	_, err = s.Open(t.Context(), token)
	require.NoError(t, err, "the token still works")
}

func TestAccept_demoConnectionRequiresASandbox(t *testing.T) {
	p, s := phones(t, linking.Options{})
	r, err := s.Accept(t.Context(), p.token(s), linking.Acceptance{Provider: "acme_scale", Demo: true})
	require.NoError(t, err)
	require.Equal(t, linking.ResultSuccess, r.State)
	p, s = phones(t, linking.Options{Environment: healthlab.Production})
	_, err = s.Accept(t.Context(), p.token(s), linking.Acceptance{Provider: "acme_scale", Demo: true})
	requireRule(t, linking.RuleInvalidProvider, err)
	require.Empty(t, p.connected())
}

// Linking with a phone: the page shows a code, the app redeems it and connects, and the page
// shows the connection.
func TestDeviceCode_connectsAPhoneAndThePageShowsIt(t *testing.T) {
	p, s := phones(t, linking.Options{})
	token := p.token(s)
	arrived := func(token, provider string) linking.Result {
		r, err := s.CompleteDeviceCode(t.Context(), token, provider)
		require.NoError(t, err)
		return r
	}
	require.Equal(t, linking.TokenNotValidated, arrived(token, "health_connect").Error, "nobody asked for a code")
	for _, slug := range []string{"acme_scale", "manual", "nobody", ""} {
		_, err := s.DeviceCode(t.Context(), token, slug)
		requireRule(t, linking.RuleInvalidProvider, err)
		_, err = s.CompleteDeviceCode(t.Context(), token, slug)
		requireRule(t, linking.RuleInvalidProvider, err)
	}
	code, err := s.DeviceCode(t.Context(), token, "health_connect")
	require.NoError(t, err)
	require.Equal(t, noon.Add(time.Hour), code.ExpiresAt.Time)
	require.Equal(t, linking.ResultWaiting, arrived(token, "health_connect").State)
	user, err := s.Redeem(t.Context(), team, "phone", code.Code)
	require.NoError(t, err)
	require.Equal(t, p.user, user)
	require.Equal(t, linking.ResultWaiting, arrived(token, "health_connect").State)
	_, err = p.health.Connections().Connect(t.Context(), team, user, healthdata.NewConnection{Provider: "health_connect"})
	require.NoError(t, err)
	for range 2 { // the second call has the same result
		r := arrived(token, "health_connect")
		require.Equal(t, linking.ResultSuccess, r.State)
		require.Equal(t, "https://app.example/?state=success&provider=health_connect", r.Location)
	}
	_, err = s.DeviceCode(t.Context(), token, "health_connect")
	requireLinkError(t, linking.TokenConsumed, err, "the token is used up")

	// One token is no source of codes without end.
	token = p.token(s)
	for range 30 {
		_, err = s.DeviceCode(t.Context(), token, "health_connect")
		require.NoError(t, err)
	}
	_, err = s.DeviceCode(t.Context(), token, "health_connect")
	requireRule(t, linking.RuleTooManyTries, err)
	p.now = p.now.Add(linking.TokenLife)
	require.Equal(t, linking.TokenExpired, arrived(token, "health_connect").Error)
}

func TestPage_offersTheProvidersOfTheTokenAndTeam(t *testing.T) {
	p, s := phones(t, linking.Options{Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
		return linking.TeamSettings{Brand: linking.Brand{CompanyName: "Clinic"}}, nil
	}})
	slugs := func(n linking.NewToken) (out [3][]string) {
		n.User = p.user
		issued, err := s.CreateToken(t.Context(), team, n)
		require.NoError(t, err)
		page, err := s.Page(t.Context(), issued.Token)
		require.NoError(t, err)
		require.Equal(t, "Clinic", page.Brand.CompanyName)
		for i, list := range [][]healthdata.Provider{page.Providers, page.OnDevice, page.Manual} {
			for _, v := range list {
				out[i] = append(out[i], v.Slug)
			}
		}
		return out
	}
	require.Equal(t, [3][]string{{"acme_scale"}, {"health_connect"}, {"manual"}}, slugs(linking.NewToken{}))
	require.Equal(t, [3][]string{{"acme_scale"}, nil, nil}, slugs(linking.NewToken{Provider: "acme_scale"}))
	require.Equal(t, [3][]string{nil, {"health_connect"}, nil}, slugs(linking.NewToken{FilterOnProviders: []string{"health_connect"}}))
}

// A token that was made for one provider connects no other, whichever operation is called.
func TestToken_ofOneProviderConnectsNoOther(t *testing.T) {
	p, s := phones(t, linking.Options{})
	issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user, Provider: "acme_scale"})
	require.NoError(t, err)
	_, err = s.Accept(t.Context(), issued.Token, linking.Acceptance{Provider: "manual"})
	requireRule(t, linking.RuleInvalidProvider, err)
	_, err = s.DeviceCode(t.Context(), issued.Token, "health_connect")
	requireRule(t, linking.RuleInvalidProvider, err)
	require.Empty(t, p.connected())
	_, err = s.Accept(t.Context(), issued.Token, linking.Acceptance{Provider: "acme_scale", Demo: true})
	require.NoError(t, err)
	require.Equal(t, []string{"acme_scale"}, p.connected())
}

func TestBrowserSecret_isUniqueAndCheckedForItsForm(t *testing.T) {
	_, s := phones(t, linking.Options{})
	a, err := s.NewBrowserSecret()
	require.NoError(t, err)
	b, err := s.NewBrowserSecret()
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.True(t, linking.IsBrowserSecret(a))
	for _, bad := range []string{"", "x", a[1:], a + "A", a[:len(a)-1] + "=", "!" + a[1:]} {
		require.False(t, linking.IsBrowserSecret(bad))
	}
}

// While attackers guess codes of a team, its users can redeem theirs.
func TestRedeem_usersSucceedWhileAttackersGuessCodes(t *testing.T) {
	p, s := phones(t, linking.Options{})
	code := func() string {
		c, err := s.CreateCode(t.Context(), team, p.user, nil)
		require.NoError(t, err)
		return c.Code
	}
	redeem := func(client, code string) string {
		user, err := s.Redeem(t.Context(), team, client, code)
		if err == nil {
			require.Equal(t, p.user, user)
		}
		return ruleOf(err)
	}
	attackers := 0
	attack := func(clients, tries int) {
		for range clients {
			for range tries {
				_, err := s.Redeem(t.Context(), team, fmt.Sprint("attacker ", attackers), "skus00000000")
				require.Error(t, err)
			}
			attackers++
		}
	}
	const half = linking.MaxWrongPerCode / 2
	require.Equal(t, linking.RuleCodeInvalid, redeem("clumsy", "skus00000000"))
	old, other := code(), code()

	attack(110, linking.MaxWrongPerClient+5) // more than each may
	require.Equal(t, linking.RuleCodeInvalid, redeem("clumsy", old), "who has failed has to create a new code")
	require.Empty(t, redeem("clumsy", code()))
	require.Empty(t, redeem("person", old), "who has not failed redeems the old one")

	attack(half-110-1, 1)
	late := code()
	require.Empty(t, redeem("person", other), "up to the last try")

	attack(half-1, 1)
	require.Empty(t, redeem("person", late))
	late = code()
	attack(half, 1)
	require.Equal(t, linking.RuleCodeExpired, redeem("person", late), "two thousand clients end it")
	require.Empty(t, redeem("person", code()), "the one wrong try of this person is no obstacle")

	_, err := s.Redeem(t.Context(), team, "attacker 0", code())
	require.ErrorIs(t, err, healthlab.Exhausted, "who attacks is not looked at, even when right")
}
