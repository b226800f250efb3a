package sandbox_test

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// fixture links the accounts of people at three providers of the sandbox.
type fixture struct {
	*linking.Service
	t          *testing.T
	health     *healthdata.Service
	connectors map[string]*sandbox.Connector
	team       healthlab.TeamID
	settings   linking.TeamSettings
	now        time.Time
}

func newFixture(t *testing.T, edit ...func(*linking.ProviderConnector)) *fixture {
	t.Helper()
	d := &fixture{t: t, team: healthlab.TeamID{UUID: uuid.New()}, now: time.Now(), connectors: map[string]*sandbox.Connector{}}
	res := []healthdata.ProviderResource{{Resource: "sleep"}, {Resource: "steps"}}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{
			Slug: "acme_band", Name: "Band", AuthType: "oauth", Category: "device", Class: "cloud", Demo: true, Resources: res,
			Scopes: map[string]healthdata.Scopes{
				"sleep": {Required: []string{"sleep"}, Optional: []string{"spo2"}}, "steps": {Required: []string{"move"}},
			},
		},
		{Slug: "acme_own", Name: "Own", AuthType: "team_oauth", Category: "device", Class: "cloud"},
		{Slug: "acme_strict", Name: "Strict", AuthType: "oauth", Category: "device", Class: "cloud", AllScopesRequired: true,
			Resources: res, Scopes: map[string]healthdata.Scopes{"sleep": {Required: []string{"sleep"}, Optional: []string{"spo2"}}}},
		{Slug: "acme_scale", Name: "Scale", AuthType: "password", Category: "device", Class: "cloud"},
		{Slug: "acme_cgm", Name: "CGM", AuthType: "email", Category: "device", Class: "cloud", Regions: map[string][]string{"us": {"us", "ca"}}},
		{Slug: "health_connect", Name: "Health Connect", AuthType: "sdk", Category: "app", Class: "sdk_store"},
	})
	require.NoError(t, err)
	store := memory.New(nil)
	clock := func() time.Time { return d.now }
	d.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	flows := map[string]linking.ProviderConnector{}
	for _, slug := range []string{"acme_band", "acme_own", "acme_strict", "acme_scale", "acme_cgm"} {
		d.connectors[slug] = sandbox.NewConnector(slug, nil)
		all := d.connectors[slug].Flows()
		for _, e := range edit {
			e(&all)
		}
		flows[slug] = all
	}
	require.Len(t, sandbox.Connectors(providers, nil), 5)
	sealer, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	d.Service, err = linking.New(store.Linking(), d.health, flows, sealer, &linking.Options{
		SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)},
		Environment: healthlab.Sandbox,
		Now:         clock, Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) { return d.settings, nil },
	})
	require.NoError(t, err)
	return d
}

func (d *fixture) user(name string) (healthlab.UserID, string) {
	d.t.Helper()
	u, err := d.health.CreateUser(d.t.Context(), d.team, healthdata.NewUser{ClientUserID: name})
	require.NoError(d.t, err)
	return u.ID, d.token(u.ID)
}

func (d *fixture) token(user healthlab.UserID) string {
	d.t.Helper()
	issued, err := d.CreateToken(d.t.Context(), d.team, linking.NewToken{User: user, RedirectURL: "https://app.example/done"})
	require.NoError(d.t, err)
	return issued.Token
}

func (d *fixture) page(token, provider string) string {
	d.t.Helper()
	a, err := d.Authorize(d.t.Context(), token, linking.OAuthSignIn{Provider: provider})
	require.NoError(d.t, err)
	return a.URL
}

// returns follows the browser back from the provider's page.
func (d *fixture) returns(to string, err error) linking.Result {
	d.t.Helper()
	require.NoError(d.t, err)
	u, err := url.Parse(to)
	require.NoError(d.t, err)
	q := u.Query()
	r, err := d.Callback(d.t.Context(), linking.Callback{
		Provider: u.Path[strings.LastIndexByte(u.Path, '/')+1:], State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error"),
	})
	require.NoError(d.t, err)
	return r
}

func (d *fixture) connection(user healthlab.UserID) *healthdata.ConnectionView {
	d.t.Helper()
	all, err := d.health.Connections().List(d.t.Context(), d.team, user)
	require.NoError(d.t, err)
	if len(all) == 0 {
		return nil
	}
	require.Len(d.t, all, 1)
	return &all[0]
}

func TestOAuth_linksByRedirectAndRefusesAUsedToken(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	band := d.connectors["acme_band"]
	page := d.page(token, "acme_band")
	u, err := url.Parse(page)
	require.NoError(t, err)
	q := u.Query()
	require.Equal(t, token, q.Get("state"))
	require.Equal(t, "S256", q.Get("code_challenge_method"))
	require.Equal(t, "move sleep spo2", q.Get("scope"))
	require.Equal(t, "http://localhost:8080/v2/link/connect/acme_band", q.Get("redirect_uri"))

	back, err := band.Approve(page, "ann", "sleep")
	r := d.returns(back, err)
	require.Equal(t, linking.ResultSuccess, r.State)
	require.Equal(t, "https://app.example/done?state=success&provider=acme_band", r.Location)
	c := d.connection(user)
	require.Equal(t, r.ExternalUserID, c.ExternalUserID)
	require.Equal(t, healthdata.Available, c.ResourceAvailability["sleep"].Status, "an optional scope was denied")
	require.Equal(t, healthdata.Unavailable, c.ResourceAvailability["steps"].Status, "a required scope was denied")

	// The same callback again: the token is used up, and the person gets home.
	r = d.returns(back, nil)
	require.Equal(t, linking.TokenConsumed, r.Error)
	require.Contains(t, r.Location, "https://app.example/done?state=error&error_type=token_consumed&")
}

func TestOAuth_eachFailureHasItsErrorType(t *testing.T) {
	for _, c := range []struct {
		name  string
		back  func(band *sandbox.Connector, page string) (string, error)
		error linking.ErrorType
	}{
		{"denied", func(b *sandbox.Connector, page string) (string, error) { return b.Deny(page) }, linking.ProviderCredentialError},
		{"refused", func(b *sandbox.Connector, page string) (string, error) { return b.Approve(page, "ann+refused") }, linking.ProviderCredentialError},
		{"down", func(b *sandbox.Connector, page string) (string, error) { return b.Approve(page, "ann+down") }, linking.ProviderAPIError},
		{"nonsense", func(b *sandbox.Connector, page string) (string, error) { return b.Approve(page, "ann+nonsense") }, linking.ProviderAPIError},
		{"no must scope", func(b *sandbox.Connector, page string) (string, error) { return b.Approve(page, "ann", "spo2") }, linking.RequiredScopesNotGranted},
		{"other provider", func(b *sandbox.Connector, page string) (string, error) {
			return b.Approve(strings.Replace(page, "acme_band", "acme_strict", 1), "ann")
		}, linking.TokenNotValidated},
		{"unknown provider", func(b *sandbox.Connector, page string) (string, error) {
			return b.Approve(strings.Replace(page, "acme_band", "nobody", 1), "ann")
		}, linking.TokenNotValidated},
		{"code of another try", func(b *sandbox.Connector, page string) (string, error) {
			u, _ := url.Parse(page)
			q := u.Query()
			q.Set("code_challenge", "x")
			return b.Approve("https://x.example/?"+q.Encode(), "ann")
		}, linking.ProviderCredentialError},
		{"state cut off", func(b *sandbox.Connector, page string) (string, error) {
			u, _ := url.Parse(page)
			q := u.Query()
			q.Set("state", q.Get("state")[:40])
			return b.Approve("https://x.example/?"+q.Encode(), "ann")
		}, linking.InvalidToken},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			d.settings.Scopes = map[string]linking.ScopeRequirement{"acme_band": {MustGrant: []string{"sleep"}, MayGrant: []string{"spo2"}}}
			user, token := d.user("ann")
			page := d.page(token, "acme_band")
			r := d.returns(c.back(d.connectors["acme_band"], page))
			require.Equal(t, linking.ResultError, r.State)
			require.Equal(t, c.error, r.Error)
			require.Equal(t, c.error != linking.InvalidToken, strings.Contains(r.Location, "error_type="+string(c.error)))
			require.Nil(t, d.connection(user))
			_, err := d.Secret(t.Context(), d.team, user, "acme_band")
			require.ErrorIs(t, err, healthlab.NotFound)

			// Nothing is used up: the person tries again and gets through.
			back, err := d.connectors["acme_band"].Approve(d.page(token, "acme_band"), "ann")
			require.Equal(t, linking.ResultSuccess, d.returns(back, err).State)
			require.NotNil(t, d.connection(user))
		})
	}
}

func TestOAuth_replayedCallbackIsRefused(t *testing.T) {
	d := newFixture(t)
	_, token := d.user("ann")
	back, err := d.connectors["acme_band"].Approve(d.page(token, "acme_band"), "ann+down")
	require.Equal(t, linking.ProviderAPIError, d.returns(back, err).Error)
	require.Equal(t, linking.TokenNotValidated, d.returns(back, nil).Error, "a callback that was replayed")
}

func TestOAuth_strictProviderRequiresEveryScope(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	back, err := d.connectors["acme_strict"].Approve(d.page(token, "acme_strict"), "ann", "sleep")
	require.Equal(t, linking.RequiredScopesNotGranted, d.returns(back, err).Error, "any refusal blocks")
	require.Nil(t, d.connection(user))
}

func TestOAuth_ownClientOfATeamIsRequiredAndUsed(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	_, err := d.Authorize(t.Context(), token, linking.OAuthSignIn{Provider: "acme_own"})
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, linking.RuleInvalidProvider, rule.Type)
	d.settings.OwnOAuth = []string{"acme_own"}
	d.settings.CallbackURLs = map[string]string{"acme_own": "https://clinic.example/cb/acme_own"}
	back, err := d.connectors["acme_own"].Approve(d.page(token, "acme_own"), "ann")
	require.True(t, strings.HasPrefix(back, "https://clinic.example/cb/acme_own?"))
	require.Equal(t, linking.ResultSuccess, d.returns(back, err).State)
	require.NotNil(t, d.connection(user))
}

func TestPassword_eachBehaviourHasItsErrorType(t *testing.T) {
	for _, c := range []struct {
		name, user string
		error      linking.ErrorType
	}{
		{"refused", "ann+refused", linking.ProviderCredentialError},
		{"expired", "ann+expired", linking.ProviderPasswordExpired},
		{"region", "ann+region", linking.UnsupportedRegion},
		{"down", "ann+down", linking.ProviderAPIError},
		{"nonsense", "ann+nonsense", linking.ProviderAPIError},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			user, token := d.user("ann")
			r, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: c.user, Password: "x"})
			require.NoError(t, err)
			require.Equal(t, c.error, r.Error)
			require.Nil(t, d.connection(user))
			r, err = d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "x"})
			require.NoError(t, err)
			require.Equal(t, linking.ResultSuccess, r.State)
			require.Equal(t, "ann", *d.connection(user).ExternalUserID)
		})
	}
}

func TestSignIn_silentProviderFailsAfter45Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		user, token := d.user("ann")
		began := time.Now()
		r, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann+slow", Password: "x"})
		require.NoError(t, err)
		require.Equal(t, linking.ProviderAPIError, r.Error)
		require.Equal(t, 45*time.Second, time.Since(began))
		require.Nil(t, d.connection(user))
	})
}

func TestMFA_wrongCodesFailAndTheRightOneLinks(t *testing.T) {
	for _, c := range []struct{ behaviour, method string }{{sandbox.BehaviourMFA, "sms"}, {sandbox.BehaviourMFAEmail, "email"}} {
		d := newFixture(t)
		user, token := d.user("ann")
		_, other := d.user("bob")
		code := func(token, provider, code string) linking.Result {
			r, err := d.CompleteMFA(t.Context(), token, provider, code)
			require.NoError(t, err)
			return r
		}
		require.Equal(t, linking.TokenNotValidated, code(token, "acme_scale", sandbox.GoodCode).Error, "nothing is pending")
		begin := func() {
			r, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann+" + c.behaviour, Password: "x"})
			require.NoError(t, err)
			require.Equal(t, linking.ResultPending, r.State)
			require.Equal(t, c.method, r.Challenge.Method)
		}
		begin()
		require.Equal(t, linking.TokenNotValidated, code(other, "acme_scale", sandbox.GoodCode).Error, "another token")
		require.Equal(t, linking.IncorrectMFACode, code(token, "acme_scale", "000000").Error)
		_, err := d.CompleteMFA(t.Context(), token, "acme_band", sandbox.GoodCode)
		require.ErrorIs(t, err, healthlab.Precondition, "another provider")
		require.Equal(t, linking.ProviderCredentialError, code(token, "acme_scale", sandbox.CodeGivenUp).Error)
		require.Equal(t, linking.TokenNotValidated, code(token, "acme_scale", sandbox.GoodCode).Error, "the provider gave up")
		begin()
		require.Equal(t, linking.IncorrectMFACode, code(token, "acme_scale", "000000").Error)
		require.Nil(t, d.connection(user))
		require.Equal(t, linking.ResultSuccess, code(token, "acme_scale", sandbox.GoodCode).State)
		require.NotNil(t, d.connection(user))
		require.Equal(t, linking.TokenConsumed, code(token, "acme_scale", sandbox.GoodCode).Error)
	}
}

func TestEmail_eachBehaviourHasItsErrorType(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	for _, c := range []struct {
		email, region string
		error         linking.ErrorType
	}{
		{"ann+refused@example.com", "", linking.ProviderCredentialError},
		{"ann+down@example.com", "us", linking.ProviderAPIError},
		{"ann@example.com", "de", linking.UnsupportedRegion},
	} {
		r, err := d.SignInByEmail(t.Context(), token, linking.EmailSignIn{Provider: "acme_cgm", Email: c.email, Region: c.region})
		require.NoError(t, err)
		require.Equal(t, c.error, r.Error)
	}
	r, err := d.SignInByEmail(t.Context(), token, linking.EmailSignIn{Provider: "acme_cgm", Email: "ann@example.com", Region: "ca"})
	require.NoError(t, err)
	require.Equal(t, linking.ResultSuccess, r.State)
	require.Equal(t, "ann@example.com", *d.connection(user).ExternalUserID)
}

// careless is a provider that does not look at the practice that is asked for.
type careless struct{ linking.EmailFlow }

func (c careless) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	r.Practice = ""
	return c.EmailFlow.SignInByEmail(ctx, r)
}

// A team that is bound to one practice connects only that practice's patients. Existing
// connections stay, and other ways to sign in do not change.
func TestPracticeBinding_linksOnlyPatientsOfThePractice(t *testing.T) {
	for name, edit := range map[string]func(*linking.ProviderConnector){
		"the provider looks": func(*linking.ProviderConnector) {},
		"it does not look":   func(c *linking.ProviderConnector) { c.Email = careless{c.Email} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, edit)
			link := func(token, email string) linking.Result {
				r, err := d.SignInByEmail(t.Context(), token, linking.EmailSignIn{Provider: "acme_cgm", Email: email})
				require.NoError(t, err)
				return r
			}
			before, token := d.user("before")
			require.Equal(t, linking.ResultSuccess, link(token, "before@hillside.example").State)
			d.settings.Practice = "RiverSide"
			ann, token := d.user("ann")
			require.Equal(t, linking.ProviderCredentialError, link(token, "ann@hillside.example").Error)
			require.Nil(t, d.connection(ann))
			require.Equal(t, linking.ResultSuccess, link(token, "ann@riverside.example").State, "in any case of letters, with the same token")
			require.NotNil(t, d.connection(before))
			_, token = d.user("bob")
			r, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "bob@hillside.example", Password: "x"})
			require.NoError(t, err)
			require.Equal(t, linking.ResultSuccess, r.State)
		})
	}
}

func TestRejectDuplicates_refusesAnAccountLinkedToAnotherUser(t *testing.T) {
	d := newFixture(t)
	d.settings.RejectDuplicates = true
	ann, first := d.user("ann")
	bob, second := d.user("bob")
	in := linking.PasswordSignIn{Provider: "acme_scale", Username: "shared", Password: "x"}
	link := func(token string) linking.Result {
		r, err := d.SignIn(t.Context(), token, in)
		require.NoError(t, err)
		return r
	}
	require.Equal(t, linking.ResultSuccess, link(first).State)
	require.Equal(t, linking.DuplicateConnection, link(second).Error)
	require.Nil(t, d.connection(bob))
	require.Equal(t, linking.ResultSuccess, link(d.token(ann)).State, "the same user links again")
	d.settings.RejectDuplicates = false
	require.Equal(t, linking.ResultSuccess, link(second).State)
}

func TestDisconnect_revokesTheGrant(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	_, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "x"})
	require.NoError(t, err)
	secret, err := d.Secret(t.Context(), d.team, user, "acme_scale")
	require.NoError(t, err)
	require.False(t, d.connectors["acme_scale"].Revoked(secret))
	require.NoError(t, d.Disconnect(t.Context(), d.team, user, "acme_scale"))
	require.True(t, d.connectors["acme_scale"].Revoked(secret))
	require.Nil(t, d.connection(user))
	_, err = d.Secret(t.Context(), d.team, user, "acme_scale")
	require.ErrorIs(t, err, healthlab.NotFound)
	require.ErrorIs(t, d.Disconnect(t.Context(), d.team, user, "acme_scale"), healthlab.NotFound)
	require.ErrorIs(t, d.Disconnect(t.Context(), d.team, user, "nobody"), healthlab.Invalid)
}

func TestConnectDemo_excludesARealConnection(t *testing.T) {
	d := newFixture(t)
	user, token := d.user("ann")
	require.NoError(t, d.ConnectDemo(t.Context(), d.team, user, "acme_band"))
	require.NotNil(t, d.connection(user))
	require.ErrorIs(t, d.ConnectDemo(t.Context(), d.team, user, "acme_scale"), healthlab.Precondition, "it has no demo")
	_, err := d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "x"})
	require.ErrorIs(t, err, healthlab.Precondition, "a demo user does not link a real source")
	bob, token := d.user("bob")
	_, err = d.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "bob", Password: "x"})
	require.NoError(t, err)
	require.ErrorIs(t, d.ConnectDemo(t.Context(), d.team, bob, "acme_band"), healthlab.Precondition, "nor the other way round")
}

func TestSignIn_isRefusedAfterTooManyTries(t *testing.T) {
	d := newFixture(t)
	_, token := d.user("ann")
	in := linking.PasswordSignIn{Provider: "acme_scale", Username: "ann+refused", Password: "x"}
	tries := 0
	for err := error(nil); err == nil; tries++ {
		_, err = d.SignIn(t.Context(), token, in)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Exhausted)
		}
		require.Less(t, tries, 100)
	}
	require.Equal(t, 31, tries)
}

func queryOf(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Query()
}

func TestEncodeDecode_keepTokensAndRefuseInvalidOnes(t *testing.T) {
	c := sandbox.NewConnector("acme_band", nil)
	in, err := c.SignIn(t.Context(), linking.PasswordRequest{Username: "ann", Password: "right"})
	require.NoError(t, err)
	tokens, err := c.Decode(in.Grant.Secret)
	require.NoError(t, err)
	again, err := c.Encode(tokens)
	require.NoError(t, err)
	require.Equal(t, in.Grant.Secret, again)
	_, err = c.Encode(linking.Tokens{Refresh: "MARK"})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = c.Decode([]byte("MARK"))
	require.ErrorIs(t, err, healthlab.Invalid)
	require.NotContains(t, err.Error(), "MARK")
}
