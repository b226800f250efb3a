package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func linkPairs() []contract.Pair {
	return append(httpapi.LinkBodies(),
		contract.Pair{Schema: "LinkCode", Value: linking.IssuedCode{}},
		contract.Pair{Schema: "LinkToken", Value: linking.IssuedToken{}},
		contract.Pair{Schema: "UserProvider", Value: healthdata.ConnectionView{}},
		contract.Pair{Schema: "ConnectionErrorDetails", Value: healthdata.ConnectionErrorDetails{}},
		contract.Pair{Schema: "LinkBrand", Value: linking.Brand{}},
	)
}

// signIn is a provider at which all users have the same password.
type signIn struct{}

func (signIn) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	return "https://provider.example/?state=" + url.QueryEscape(r.State) + "&back=" + url.QueryEscape(r.RedirectURL), nil
}

func (signIn) Exchange(_ context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	return who(r.Code)
}

func (signIn) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if r.Password == "mfa" {
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "sms", Hint: "ends in 42"}}, nil
	}
	g, err := who(r.Password)
	return linking.PasswordResponse{Grant: g}, err
}

func (signIn) CompleteMFA(_ context.Context, r linking.MFARequest) (linking.Grant, error) {
	if r.Code != "right" {
		return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
	}
	return who(r.Code)
}

func (signIn) SignInByEmail(_ context.Context, r linking.EmailRequest) (linking.Grant, error) {
	name, _, _ := strings.Cut(r.Email, "@")
	return who(name)
}

func who(word string) (linking.Grant, error) {
	switch word {
	case "right":
		return linking.Grant{Secret: []byte("grant")}, nil
	case "down":
		return linking.Grant{}, healthlab.Unavailable
	case "old":
		return linking.Grant{}, &linking.Error{Type: linking.ProviderPasswordExpired}
	default:
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
}

// newLinks is linking over a store, at every provider that people sign in at.
func newLinks(t *testing.T, store *memory.Store, health *healthdata.Service, opts *linking.Options) *linking.Service {
	t.Helper()
	flows := map[string]linking.ProviderConnector{}
	for _, p := range health.Providers().List("") {
		if p.Class == "cloud" {
			flows[p.Slug] = linking.ProviderConnector{OAuth: signIn{}, Password: signIn{}, Email: signIn{}, TokenCodec: twoTokens{}}
		}
	}
	sealer, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	opts.Environment = cmp.Or(opts.Environment, healthlab.Sandbox)
	opts.SigningKeys = [][]byte{bytes.Repeat([]byte{2}, 32)}
	s, err := linking.New(store.Linking(), health, flows, sealer, opts)
	require.NoError(t, err)
	return s
}

// counter is where people link their accounts.
type counter struct {
	*contract.Client
	t        *testing.T
	now      time.Time
	user     string
	settings linking.TeamSettings
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	c := &counter{t: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	logo := "https://cdn.example/band.png"
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{
			Slug: "acme_band", Name: "Band", Description: "A band.", Logo: &logo, AuthType: "oauth", Category: "device", Class: "cloud", Group: "oauth",
			Demo: true, Backfill: healthdata.Backfill{DefaultDays: 30}, Resources: []healthdata.ProviderResource{{Resource: "sleep"}, {Resource: "steps"}},
			Scopes: map[string]healthdata.Scopes{"sleep": {Required: []string{"sleep"}}, "steps": {Optional: []string{"move"}}},
		},
		{Slug: "acme_scale", Name: "Scale", AuthType: "password", Category: "device", Class: "cloud"},
		{Slug: "acme_cgm", Name: "CGM", AuthType: "email", Category: "device", Class: "cloud", Regions: map[string][]string{"us": {"us", "ca"}}},
		{Slug: "acme_own", Name: "Own", AuthType: "team_oauth", Category: "device", Class: "cloud"},
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
	})
	require.NoError(t, err)
	clock := func() time.Time { return c.now }
	store := memory.New(&memory.Options{Now: clock})
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	c.user = u.ID.String()
	links := newLinks(t, store, health, &linking.Options{
		Now: clock, BaseURL: "https://api.example",
		Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) { return c.settings, nil },
	})
	c.Client = contract.NewClient(t, httpapi.Handler(httpapi.Config{
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			if r.Header.Get("x-service-api-key") == goodKey {
				return httpapi.Caller{Team: team}, nil
			}
			return httpapi.Caller{}, healthlab.Unauthenticated
		},
		Parts: (&httpapi.Services{Health: health, Linking: links}).Parts(),
	}), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	return c
}

// token asks for a link token. more are further keys of the request.
func (c *counter) token(more object) string {
	c.t.Helper()
	body := object{"user_id": c.user}
	for k, v := range more {
		body[k] = v
	}
	var out struct {
		Token string `json:"link_token"`
		Web   string `json:"link_web_url"`
	}
	c.Send(c.t, "POST", "/v2/link/token", body).Want(c.t, 200).JSON(c.t, &out)
	u, err := url.Parse(out.Web)
	require.NoError(c.t, err)
	require.Equal(c.t, url.Values{"token": {out.Token}, "env": {"sandbox"}, "region": {"us"}}, u.Query())
	return out.Token
}

func (c *counter) with(token string) *contract.Client {
	return c.With("x-service-api-key", "none").With("x-service-link-token", token)
}

func (c *counter) result(token, path string, body object) object {
	c.t.Helper()
	var out object
	c.with(token).Send(c.t, "POST", path, body).Want(c.t, 200).JSON(c.t, &out)
	return out
}

const scale = "/v2/link/provider/password/acme_scale"

func password(p string) object { return object{"username": "ann", "password": p} }

func TestLinkCode_isCreatedWithAnExpiry(t *testing.T) {
	c := newCounter(t)
	var out struct {
		Code, ExchangeURL string
		ExpiresAt         healthlab.Time `json:"expires_at"`
	}
	c.Send(t, "POST", "/v2/link/code/create?user_id="+c.user, nil).Want(t, 200).JSON(t, &out)
	require.Regexp(t, `^skus[0-9a-f]{8}$`, out.Code)
	require.True(t, out.ExpiresAt.Equal(c.now.Add(time.Hour)))
	for _, w := range []struct {
		query  string
		status int
		where  string
	}{
		{"user_id=" + c.user + "&expires_at=2026-03-11T12:00:00Z", 200, ""},
		{"user_id=" + c.user + "&expires_at=2026-03-11T12:00:01Z", 422, "query.expires_at"},
		{"user_id=" + c.user + "&expires_at=2026-03-04T12:00:00Z", 422, "query.expires_at"},
		{"user_id=x", 422, "query.user_id"},
		{"", 422, "query.user_id"},
		{"user_id=" + c.user + "&x=1", 422, "query.x"},
		{"user_id=6f1c0b52-0000-4000-8000-000000000001", 404, ""},
	} {
		r := c.Send(t, "POST", "/v2/link/code/create?"+w.query, nil).Want(t, w.status)
		if w.where != "" {
			require.Equal(t, []string{w.where}, r.Locs(t))
		}
	}
}

func TestLinkToken_invalidInputIsRefusedByField(t *testing.T) {
	c := newCounter(t)
	redirect := "https://app.example/"
	for _, w := range []struct {
		name  string
		body  object
		where []string
	}{
		{"no user", object{}, []string{"body.user_id"}},
		{"empty filter", object{"user_id": c.user, "filter_on_providers": []string{}}, []string{"body.filter_on_providers"}},
		{"unknown slugs", object{"user_id": c.user, "provider": "x", "filter_on_providers": []string{"acme_band", "y"}},
			[]string{"body.provider", "body.filter_on_providers.1", "body.provider"}},
		{"filtered out", object{"user_id": c.user, "provider": "acme_band", "filter_on_providers": []string{"acme_scale"}}, []string{"body.provider"}},
		{"other value", object{"user_id": c.user, "redirect_url": redirect, "on_error": "x", "on_close": ""}, []string{"body.on_close"}},
		{"no address", object{"user_id": c.user, "on_error": "redirect", "on_close": "redirect"}, []string{"body.on_error", "body.on_close"}},
		{"relative", object{"user_id": c.user, "redirect_url": "/done"}, []string{"body.redirect_url"}},
		{"unknown key", object{"user_id": c.user, "x": 1}, []string{"body.x"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			require.Equal(t, w.where, c.Send(t, "POST", "/v2/link/token", w.body).Want(t, 422).Locs(t))
		})
	}
	for _, w := range []struct {
		body object
		rule string
	}{
		{object{"user_id": "6f1c0b52-0000-4000-8000-000000000001"}, "INVALID_USER_ID"},
		{object{"user_id": c.user, "provider": "manual"}, "INVALID_PROVIDER"},
		{object{"user_id": c.user, "provider": "acme_own"}, "INVALID_PROVIDER"},
	} {
		require.Equal(t, w.rule, c.Send(t, "POST", "/v2/link/token", w.body).Want(t, 400).ErrorType(t))
	}
	c.settings.Redirects = linking.RedirectRules{Hosts: []string{"clinic.example"}}
	require.Equal(t, []string{"body.redirect_url"},
		c.Send(t, "POST", "/v2/link/token", object{"user_id": c.user, "redirect_url": redirect}).Want(t, 422).Locs(t))
	c.token(object{"redirect_url": "myapp://link", "on_error": "redirect", "on_close": nil, "filter_on_providers": nil})
	c.With("x-service-api-key", "none").Send(t, "POST", "/v2/link/token", object{"user_id": c.user}).Want(t, 401)
}

// For each kind of invalid link token: the answer's status, or the error in its body.
func TestLinkToken_eachInvalidTokenHasItsError(t *testing.T) {
	c := newCounter(t)
	old := c.token(nil)
	c.now = c.now.Add(time.Hour)
	used := c.token(object{"redirect_url": "https://app.example/"})
	require.Equal(t, "success", c.result(used, scale, password("right"))["state"])
	fresh := c.token(nil)
	parts, other := strings.Split(fresh, "."), strings.Split(old, ".")
	for _, w := range []struct{ name, token, kind string }{
		{"expired", old, "token_expired"},
		{"used", used, "token_consumed"},
		{"truncated", fresh[:len(fresh)-1], "invalid_token"},
		{"nonsense", "x", "invalid_token"},
		{"payload of another", parts[0] + "." + other[1] + "." + parts[2], "invalid_token"},
		{"without a signature", parts[0] + "." + parts[1] + ".", "invalid_token"},
		{"its own algorithm", "eyJhbGciOiJub25lIn0." + parts[1] + ".", "invalid_token"},
	} {
		t.Run(w.name, func(t *testing.T) {
			client := c.with(w.token)
			for _, path := range []string{"/v2/link/providers", "/v2/link/state", "/v2/team/link/config", "/v2/link/provider/oauth/acme_band"} {
				require.Equal(t, "INVALID_REQUEST", client.Send(t, "GET", path, nil).Want(t, 401).ErrorType(t))
			}
			require.Equal(t, "INVALID_REQUEST", client.Send(t, "POST", "/v2/link/start", object{"link_token": w.token, "provider": "acme_scale"}).Want(t, 401).ErrorType(t))
			for path, body := range map[string]object{
				scale: password("right"), scale + "/complete_mfa": {"mfa_code": "1"}, "/v2/link/provider/email/acme_cgm": {"email": "right@example.com"},
			} {
				r := c.result(w.token, path, body)
				require.Equal(t, []any{"error", w.kind}, []any{r["state"], r["error_type"]}, path)
			}
			var valid map[string]bool
			client.Send(t, "POST", "/v2/link/token/isValid", object{"token": w.token}).Want(t, 200).JSON(t, &valid)
			require.Equal(t, map[string]bool{"is_valid": false}, valid)
		})
	}
	require.Equal(t, "https://app.example/", c.result(used, scale, password("right"))["redirect_url"])

	none := c.with("")
	for _, path := range []string{"/v2/link/providers", "/v2/link/state", "/v2/team/link/config", "/v2/link/provider/oauth/acme_band"} {
		require.Equal(t, "MISSING_LINK_TOKEN", none.Send(t, "GET", path, nil).Want(t, 400).ErrorType(t))
	}
	require.Equal(t, "MISSING_LINK_TOKEN", none.Send(t, "POST", scale, password("right")).Want(t, 400).ErrorType(t))
	require.Equal(t, "MISSING_LINK_TOKEN", c.Send(t, "GET", "/v2/link/state", nil).Want(t, 400).ErrorType(t), "a team's key does not help")

	c.Send(t, "DELETE", "/v2/user/"+c.user, nil).Want(t, 200)
	require.Equal(t, "INVALID_USER_ID", c.with(fresh).Send(t, "GET", "/v2/link/providers", nil).Want(t, 400).ErrorType(t))
	require.Equal(t, "invalid_token", c.result(fresh, scale, password("right"))["error_type"])
}

func TestLinkToken_listsProvidersAndReadsTheStateOfTheLink(t *testing.T) {
	c := newCounter(t)
	c.settings.Brand = linking.Brand{CompanyName: "North Clinic", Color: "#0a5", SupportEmail: "help@north.example"}
	token := c.token(object{"filter_on_providers": []string{"acme_scale", "acme_band"}, "redirect_url": "https://app.example/", "on_close": "redirect"})
	client := c.with(token)
	var list []object
	client.Send(t, "GET", "/v2/link/providers", nil).Want(t, 200).JSON(t, &list)
	slugs := func(list []object) (out []string) {
		for _, p := range list {
			out = append(out, p["slug"].(string))
		}
		return out
	}
	require.Equal(t, []string{"acme_band", "acme_cgm", "acme_scale"}, slugs(list), "the filter is the pages'")
	fields := list[1]["form_components"].(object)
	require.Equal(t, []any{"us", "ca"}, fields["region"].(object)["options"])
	require.Contains(t, fields, "email")

	var config struct {
		Brand, Options object
		Providers      []object
	}
	client.Send(t, "GET", "/v2/team/link/config", nil).Want(t, 200).JSON(t, &config)
	require.Equal(t, []string{"acme_band", "acme_scale"}, slugs(config.Providers))
	require.Equal(t, "North Clinic", config.Brand["company_name"])
	require.Equal(t, "help@north.example", config.Brand["support_email"])
	require.NotContains(t, config.Brand, "company_website")
	require.Equal(t, "redirect", config.Options["on_close"])
	require.Nil(t, config.Options["on_error"])

	state := func() object {
		var s object
		client.Send(t, "GET", "/v2/link/state", nil).Want(t, 200).JSON(t, &s)
		return s
	}
	require.Equal(t, object{"state": "created", "provider": nil, "error_type": nil}, state())
	client.Send(t, "POST", "/v2/link/start", object{"link_token": token, "provider": "acme_scale"}).Want(t, 200)
	require.Equal(t, object{"state": "started", "provider": "acme_scale", "error_type": nil}, state())
	require.Equal(t, "INVALID_PROVIDER", client.Send(t, "POST", "/v2/link/start", object{"link_token": token, "provider": "x"}).Want(t, 400).ErrorType(t))
	c.result(token, scale, password("wrong"))
	require.Equal(t, object{"state": "failed", "provider": "acme_scale", "error_type": "provider_credential_error"}, state())
}

func TestLinkByPassword_eachProviderErrorHasItsType(t *testing.T) {
	c := newCounter(t)
	token := c.token(object{"redirect_url": "myapp://link"})
	for p, kind := range map[string]string{"wrong": "provider_credential_error", "old": "provider_password_expired", "down": "provider_api_error"} {
		r := c.result(token, scale, password(p))
		require.Equal(t, []any{"error", kind, "myapp://link", false, nil}, []any{r["state"], r["error_type"], r["redirect_url"], r["connected"], r["provider_id"]})
	}
	r := c.result(token, scale, password("mfa"))
	require.Equal(t, "pending_provider_mfa", r["state"])
	require.Equal(t, object{"method": "sms", "hint": "ends in 42"}, r["provider_mfa"])
	require.Equal(t, "incorrect_mfa_code", c.result(token, scale+"/complete_mfa", object{"mfa_code": "x"})["error_type"])
	r = c.result(token, scale+"/complete_mfa", object{"mfa_code": "right"})
	require.Equal(t, object{
		"state": "success", "redirect_url": "myapp://link", "error_type": nil, "error": nil, "provider_mfa": nil,
		"provider": "acme_scale", "connected": true, "provider_id": "ann",
	}, r)

	client := c.with(c.token(nil))
	for _, w := range []struct {
		path  string
		body  object
		where []string
	}{
		{"/v2/link/provider/password/acme_band", password("x"), []string{"path.provider"}},
		{"/v2/link/provider/password/nobody", password("x"), []string{"path.provider"}},
		{"/v2/link/provider/email/acme_scale", object{"email": "a"}, []string{"path.provider"}},
		{scale, object{"username": "", "password": strings.Repeat("x", 513)}, []string{"body.username", "body.password"}},
		{scale, object{"username": "a"}, []string{"body.password"}},
		{scale + "/complete_mfa", object{"mfa_code": ""}, []string{"body.mfa_code"}},
	} {
		require.Equal(t, w.where, client.Send(t, "POST", w.path, w.body).Want(t, 422).Locs(t))
	}
	tries := 0
	for status := 200; status == 200; tries++ {
		status = client.Send(t, "POST", scale, password("wrong")).Status
	}
	require.Equal(t, 31, tries, "one token is no way to guess passwords")
	require.Equal(t, "TOO_MANY_TRIES", client.Send(t, "POST", scale, password("right")).Want(t, 429).ErrorType(t))
	require.Equal(t, "TOO_MANY_TRIES", client.Send(t, "GET", "/v2/link/provider/oauth/acme_band", nil).Want(t, 429).ErrorType(t))
	require.Equal(t, "token_not_validated", c.result(c.token(nil), scale+"/complete_mfa", object{"mfa_code": "right"})["error_type"])
}

func TestLinkByEmail_requiresASupportedRegion(t *testing.T) {
	c := newCounter(t)
	token := c.token(nil)
	r := c.result(token, "/v2/link/provider/email/acme_cgm", object{"email": "right@example.com", "region": "de"})
	require.Equal(t, "unsupported_region", r["error_type"])
	r = c.result(token, "/v2/link/provider/email/acme_cgm", object{"email": "right@example.com", "region": "ca", "provider": "ignored"})
	require.Equal(t, object{"state": "success", "redirect_url": nil, "error_type": nil, "error": nil, "provider_mfa": nil}, r)
}

// back is where the provider sends the browser.
func (c *counter) back(token string, query url.Values) *contract.Reply {
	c.t.Helper()
	var source struct {
		URL      string `json:"oauth_url"`
		Backfill int    `json:"backfill_num_days"`
	}
	c.with(token).Send(c.t, "GET", "/v2/link/provider/oauth/acme_band", nil).Want(c.t, 200).JSON(c.t, &source)
	require.Equal(c.t, 30, source.Backfill)
	u, err := url.Parse(source.URL)
	require.NoError(c.t, err)
	require.Equal(c.t, token, u.Query().Get("state"))
	require.Equal(c.t, "https://api.example/v2/link/connect/acme_band", u.Query().Get("back"))
	query.Set("state", token)
	return c.callback(query)
}

func (c *counter) callback(query url.Values) *contract.Reply {
	c.t.Helper()
	c.Lenient = true // a provider adds what it likes
	defer func() { c.Lenient = false }()
	return c.With("x-service-api-key", "none").Send(c.t, "GET", "/v2/link/connect/acme_band?"+query.Encode(), nil)
}

func TestLinkByOAuth_redirectsBackWithTheState(t *testing.T) {
	c := newCounter(t)
	token := c.token(object{"redirect_url": "https://app.example/done?visit=7#top"})
	to := c.back(token, url.Values{"error": {"access_denied"}, "error_description": {"no"}}).Want(t, 307).Header.Get("Location")
	require.Equal(t, "https://app.example/done?visit=7&state=error&error_type=provider_credential_error&error=provider_credential_error"+
		"&error_description=the%20provider%20refused%20the%20sign-in%2C%20or%20access%20was%20denied%3B%20check%20the%20credentials%20and%20try%20again#top", to)
	to = c.back(token, url.Values{"code": {"right"}, "extra": {"1"}}).Want(t, 307).Header.Get("Location")
	require.Equal(t, "https://app.example/done?visit=7&state=success&provider=acme_band#top", to)
	to = c.callback(url.Values{"state": {token}, "code": {"right"}}).Want(t, 307).Header.Get("Location")
	require.Contains(t, to, "error_type=token_consumed")

	// Without a redirect URL the answer is the result. The same holds for an unknown
	// token: the answer redirects to no URL.
	var r object
	c.back(c.token(nil), url.Values{"code": {"down"}}).Want(t, 200).JSON(t, &r)
	require.Equal(t, "provider_api_error", r["error_type"])
	for _, state := range []string{"", "x", token[:len(token)-2]} {
		c.callback(url.Values{"state": {state}, "code": {"right"}}).Want(t, 200).JSON(t, &r)
		require.Equal(t, "invalid_token", r["error_type"])
	}
	require.Equal(t, "INVALID_PROVIDER", c.with(c.token(nil)).Send(t, "GET", "/v2/link/provider/oauth/acme_scale", nil).Want(t, 400).ErrorType(t))

	// The rules of today decide, not those of when the token was made.
	token = c.token(object{"redirect_url": "https://app.example/"})
	c.settings.Redirects.Hosts = []string{"clinic.example"}
	c.back(token, url.Values{"code": {"right"}}).Want(t, 200)
}

func TestUserProviders_areListedAndDisconnected(t *testing.T) {
	c := newCounter(t)
	path := "/v2/user/providers/" + c.user
	require.JSONEq(t, `{"providers":[]}`, string(c.Send(t, "GET", path, nil).Want(t, 200).Body))
	c.back(c.token(nil), url.Values{"code": {"right"}}).Want(t, 200)
	require.JSONEq(t, `{"providers":[{
		"name":"Band","slug":"acme_band","logo":"https://cdn.example/band.png","created_on":"2026-03-04T12:00:00+00:00",
		"status":"connected","external_user_id":null,"error_details":null,"resource_availability":{
			"sleep":{"status":"available","scope_requirements":{"user_granted":{"required":["sleep"],"optional":[]},"user_denied":{"required":[],"optional":[]}}},
			"steps":{"status":"available","scope_requirements":{"user_granted":{"required":[],"optional":["move"]},"user_denied":{"required":[],"optional":[]}}}
		}}]}`, string(c.Send(t, "GET", path, nil).Want(t, 200).Body))
	c.Send(t, "DELETE", "/v2/user/"+c.user+"/acme_band", nil).Want(t, 200)
	require.JSONEq(t, `{"providers":[]}`, string(c.Send(t, "GET", path, nil).Want(t, 200).Body))
	c.Send(t, "DELETE", "/v2/user/"+c.user+"/acme_band", nil).Want(t, 404)
	c.Send(t, "DELETE", "/v2/user/"+c.user+"/nobody", nil).Want(t, 422)
	c.Send(t, "GET", "/v2/user/providers/6f1c0b52-0000-4000-8000-000000000001", nil).Want(t, 404)
}

func TestDemoConnection_isMadeForProvidersWithADemo(t *testing.T) {
	c := newCounter(t)
	demo := func(provider string, status int) *contract.Reply {
		return c.Send(t, "POST", "/v2/link/connect/demo", object{"user_id": c.user, "provider": provider}).Want(t, status)
	}
	demo("acme_scale", 400)
	require.Equal(t, []string{"body.provider"}, demo("nobody", 422).Locs(t))
	require.JSONEq(t, `{"success":true,"detail":"the demo provider is connected"}`, string(demo("acme_band", 200).Body))
	require.Equal(t, "INVALID_REQUEST", c.with(c.token(nil)).Send(t, "POST", scale, password("right")).Want(t, 400).ErrorType(t))
}

func TestDeprecatedLinkOperations_stillLink(t *testing.T) {
	c := newCounter(t)
	token := c.token(nil)
	in := object{"provider": "acme_scale", "auth_type": "password", "username": "ann", "password": "wrong"}
	require.Equal(t, "INVALID_CREDENTIALS", c.with(token).Send(t, "POST", "/v2/link/auth", in).Want(t, 400).ErrorType(t))
	in["password"] = "right"
	require.Equal(t, "success", c.result(token, "/v2/link/auth", in)["state"])
	mail := object{"provider": "acme_cgm", "auth_type": "email", "email": "wrong@example.com"}
	token = c.token(nil)
	require.Equal(t, "INVALID_CREDENTIALS", c.with(token).Send(t, "POST", "/v2/link/auth/email", mail).Want(t, 400).ErrorType(t))
	require.Equal(t, []string{"body.auth_type"}, c.with(token).Send(t, "POST", "/v2/link/auth", mail).Want(t, 422).Locs(t))
	mail["email"] = "right@example.com"
	require.Equal(t, "success", c.result(token, "/v2/link/auth/email", mail)["state"])
}
