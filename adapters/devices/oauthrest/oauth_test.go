package oauthrest_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	verifier = "a-verifier-that-has-at-least-forty-three-characters"
	redirect = "https://service.example/v2/link/connect/fjord_ring"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// signIn walks the flow to its end.
func signIn(t *testing.T, f *fjord, c *oauthrest.Connector) (linking.Grant, error) {
	t.Helper()
	page, err := c.Authorize(t.Context(), linking.AuthorizeRequest{
		State: "the state", RedirectURL: redirect, Challenge: challenge(), Scopes: []string{"body", "heart"},
	})
	require.NoError(t, err)
	return c.Exchange(t.Context(), linking.ExchangeRequest{
		Code: f.approve(page), RedirectURL: redirect, Verifier: verifier, Scopes: []string{"body", "heart"},
	})
}

func TestAuthorize_buildsThePageURL(t *testing.T) {
	f := newFjord(t)
	page, err := f.connector(func(c *oauthrest.Config) { c.OAuth.ScopeSeparator = "," }).Authorize(t.Context(), linking.AuthorizeRequest{
		State: "a.b+c", RedirectURL: redirect, Challenge: challenge(), Scopes: []string{"body", "heart"},
	})
	require.NoError(t, err)
	u, err := url.Parse(page)
	require.NoError(t, err)
	require.Equal(t, "/oauth/authorize", u.Path)
	require.Equal(t, url.Values{
		"response_type": {"code"}, "client_id": {"our id"}, "state": {"a.b+c"}, "redirect_uri": {redirect}, "scope": {"body,heart"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "prompt": {"consent"},
	}, u.Query())
}

func TestExchange_returnsGrantAccountAndScopes(t *testing.T) {
	no := false
	for _, tt := range []struct {
		name    string
		edit    func(*oauthrest.Config)
		scope   string
		account string
		scopes  []string
	}{
		{"basic", nil, "-", "90071992547409931", nil},
		{"in the body", func(c *oauthrest.Config) { c.OAuth.ClientAuth = "body" }, "heart body heart", "90071992547409931", []string{"body", "heart"}},
		{"a client without a secret", func(c *oauthrest.Config) { c.OAuth.ClientAuth = "none" }, "", "90071992547409931", []string{}},
		{"no PKCE", func(c *oauthrest.Config) { c.OAuth.PKCE = &no }, "heart", "90071992547409931", []string{"heart"}},
		{"scopes with commas", func(c *oauthrest.Config) { c.OAuth.ScopeSeparator = "," }, "heart,body", "90071992547409931", []string{"body", "heart"}},
		{
			"the account has a page of its own",
			func(c *oauthrest.Config) {
				c.OAuth.Account = &oauthrest.Account{URL: strings.Replace(c.OAuth.TokenURL, "/oauth/token", "/me", 1), At: "/account/name"}
			},
			"-", "ann-7", nil,
		},
		{"no account", func(c *oauthrest.Config) { c.OAuth.Account = nil }, "-", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFjord(t)
			f.scope = tt.scope
			g, err := signIn(t, f, f.connector(tt.edit))
			require.NoError(t, err)
			require.Equal(t, tt.account, g.ExternalUserID)
			require.Equal(t, tt.scopes, g.Scopes)
			require.Equal(t, noon.Add(2*time.Hour), g.ExpiresAt)
			require.JSONEq(t, `{"access_token":"access-1","refresh_token":"refresh-1"}`, string(g.Secret))
		})
	}
}

// A sign-in is refused with the code, verifier or address of another one, or with a used code.
func TestExchange_refusesForeignOrUsedCodes(t *testing.T) {
	f := newFjord(t)
	c := f.connector(nil)
	page, err := c.Authorize(t.Context(), linking.AuthorizeRequest{State: "s", RedirectURL: redirect, Challenge: challenge()})
	require.NoError(t, err)
	require.NotContains(t, page, "scope=")
	right := linking.ExchangeRequest{RedirectURL: redirect, Verifier: verifier}
	for name, r := range map[string]linking.ExchangeRequest{
		"unknown code": right, "other verifier": {RedirectURL: redirect, Verifier: "other"}, "other address": {RedirectURL: "https://x.example/", Verifier: verifier},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "unknown code" {
				r.Code = f.approve(page)
			}
			_, err := c.Exchange(t.Context(), r)
			requireLinkError(t, err, linking.ProviderCredentialError)
		})
	}
	right.Code = f.approve(page)
	_, err = c.Exchange(t.Context(), right)
	require.NoError(t, err)
	_, err = c.Exchange(t.Context(), right)
	requireLinkError(t, err, linking.ProviderCredentialError)
}

func requireLinkError(t *testing.T, err error, want linking.ErrorType) {
	t.Helper()
	var e *linking.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Type)
	require.NotContains(t, err.Error(), "MARK")
}

// badTokens are answers of a token URL that are neither a token nor the end of a grant.
var badTokens = []struct {
	name string
	say  http.HandlerFunc
	wait time.Duration
	kind error
}{
	{"our own fault", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 401, "invalid_client") }, 0, healthlab.Unavailable},
	{"busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		refuse(w, 503, "temporarily_unavailable")
	}, 17 * time.Second, healthlab.Unavailable},
	{"an outage that repeats old words", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 502, "invalid_grant") }, 0, healthlab.Unavailable},
	{"too many", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", noon.Add(time.Minute).Format(http.TimeFormat))
		refuse(w, 429, "slow_down")
	}, time.Minute, healthlab.Exhausted},
	{"a page of a proxy", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		fmt.Fprint(w, "<html>MARK invalid_grant</html>")
	}, 0, healthlab.Unavailable},
	{"nonsense", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":`)
	}, 0, healthlab.Unavailable},
	{"no token in it", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"hello":"MARK"}`)
	}, 0, healthlab.Unavailable},
	{"a token with a line feed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"a\nX-Other: b","token_type":"bearer"}`)
	}, 0, healthlab.Unavailable},
	{"elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/me", http.StatusFound) }, 0, healthlab.Unavailable},
	{"too much", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"`+strings.Repeat("x", 2<<20)+`"}`)
	}, 0, healthlab.Unavailable},
	{"too late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, context.DeadlineExceeded},
}

func TestTokenURL_providerFailureIsNotReportedAsUserError(t *testing.T) {
	for _, tt := range badTokens {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFjord(t)
			f.tokens = func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm() // so that the context ends with the connection
				tt.say(w, r)
			}
			c := f.connector(nil)
			_, err := c.Refresh(t.Context(), []byte(`{"access_token":"a","refresh_token":"MARK"}`))
			require.ErrorIs(t, err, tt.kind)
			var over *linking.GrantError
			require.False(t, errors.As(err, &over), "nothing ended")
			require.NotContains(t, err.Error(), "MARK")
			var hint interface{ RetryAfter() time.Duration }
			if errors.As(err, &hint) {
				require.Equal(t, tt.wait, hint.RetryAfter())
			}
			_, err = signIn(t, f, c)
			require.Error(t, err)
			var e *linking.Error
			require.False(t, errors.As(err, &e), "it is no fault of the person")
			require.NotContains(t, err.Error(), "MARK")
		})
	}
}

func TestRefresh_returnsTheRotatedTokens(t *testing.T) {
	f := newFjord(t)
	c := f.connector(func(c *oauthrest.Config) { c.OAuth.OverErrors = []string{"consent_withdrawn"} })
	g, err := signIn(t, f, c)
	require.NoError(t, err)
	r, err := c.Refresh(t.Context(), g.Secret)
	require.NoError(t, err)
	require.JSONEq(t, `{"access_token":"access-2","refresh_token":"refresh-2"}`, string(r.Secret))
	require.Equal(t, noon.Add(2*time.Hour), r.ExpiresAt)

	// The old one is over: the provider says so in the protocol's words.
	_, err = c.Refresh(t.Context(), g.Secret)
	requireOver(t, err, healthdata.FailureTokenRefresh)
	// A provider that does not rotate says nothing of the other token.
	f.tokens = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
		fmt.Fprint(w, "access_token=access-9&token_type=bearer")
	}
	r, err = c.Refresh(t.Context(), r.Secret)
	require.NoError(t, err)
	require.JSONEq(t, `{"access_token":"access-9","refresh_token":"refresh-2"}`, string(r.Secret))
	require.Equal(t, noon.Add(time.Hour), r.ExpiresAt, "as the configuration says")
	// Its own words.
	f.tokens = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 403, "consent_withdrawn") }
	_, err = c.Refresh(t.Context(), r.Secret)
	requireOver(t, err, healthdata.FailureTokenRefresh)
	// Without a refresh token there is nothing to renew.
	_, err = c.Refresh(t.Context(), []byte(`{"access_token":"a"}`))
	requireOver(t, err, healthdata.FailureTokenRefresh)
	_, err = c.Refresh(t.Context(), []byte(`what`))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Additional token parameters are sent with a code or with a refresh token, each only where
// it is configured.
func TestTokenParams_areSentOnlyWhereConfigured(t *testing.T) {
	for _, auth := range []string{"basic", "body", "none"} {
		t.Run(auth, func(t *testing.T) {
			f := newFjord(t)
			var forms []url.Values
			f.tokens = func(w http.ResponseWriter, r *http.Request) {
				require.NoError(t, r.ParseForm())
				require.Equal(t, auth == "basic", r.Header.Get("Authorization") != "")
				require.Empty(t, r.URL.RawQuery)
				forms = append(forms, r.PostForm)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"access_token":"a","refresh_token":"r","token_type":"bearer","user":{"id":1}}`)
			}
			c := f.connector(func(c *oauthrest.Config) {
				c.OAuth.ClientAuth = auth
				c.OAuth.TokenParams = map[string]string{"audience": "https://api.fjord.example/?a=1&b=2", "tenant": "é"}
			})
			g, err := signIn(t, f, c)
			require.NoError(t, err)
			_, err = c.Refresh(t.Context(), g.Secret)
			require.NoError(t, err)
			want := []url.Values{
				{"grant_type": {"authorization_code"}, "code": {"code 0"}, "redirect_uri": {redirect}, "code_verifier": {verifier}},
				{"grant_type": {"refresh_token"}, "refresh_token": {"r"}},
			}
			for _, form := range want {
				form.Set("audience", "https://api.fjord.example/?a=1&b=2")
				form.Set("tenant", "é")
				if auth != "basic" {
					form.Set("client_id", "our id")
				}
				if auth == "body" {
					form.Set("client_secret", "our secret")
				}
			}
			require.Equal(t, want, forms)
		})
	}
}

func requireOver(t *testing.T, err error, want string) {
	t.Helper()
	var over *linking.GrantError
	require.ErrorAs(t, err, &over)
	require.Equal(t, want, over.Type)
	require.NotContains(t, err.Error(), "MARK")
}

func TestRevoke_sendsTheConfiguredToken(t *testing.T) {
	secret := []byte(`{"access_token":"access-1","refresh_token":"refresh-1"}`)
	for _, tt := range []struct {
		name string
		edit func(*oauthrest.Config)
		want string
	}{
		{"basic", nil, "refresh-1"},
		{"in the body", func(c *oauthrest.Config) { c.OAuth.ClientAuth = "body" }, "refresh-1"},
		{"bearer", func(c *oauthrest.Config) { c.OAuth.Revocation = "bearer" }, "access-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFjord(t)
			c := f.connector(tt.edit)
			require.NoError(t, c.Flows().Revoker.Revoke(t.Context(), secret))
			require.NoError(t, c.Revoke(t.Context(), secret), "twice is once")
			require.Equal(t, []string{tt.want, tt.want}, f.revoked)
		})
	}
	f := newFjord(t)
	c := f.connector(func(c *oauthrest.Config) { c.OAuth.ClientAuth = "none" })
	require.ErrorIs(t, c.Revoke(t.Context(), secret), healthlab.Unavailable, "the provider does not know us")
	require.Nil(t, f.connector(func(c *oauthrest.Config) { c.OAuth.RevocationURL, c.OAuth.Revocation = "", "" }).Flows().Revoker)
}

// Calls name the team's client, with each way of client authentication.
func TestForClient_requestsUseTheTeamsClientCredentials(t *testing.T) {
	for _, auth := range []string{"basic", "body"} {
		f := newFjord(t)
		ours := f.connector(func(c *oauthrest.Config) { c.OAuth.ClientAuth = auth })
		theirs, err := ours.ForClient(linking.OAuthClient{ID: "their id", Secret: "their secret"})
		require.NoError(t, err)
		f.id, f.secret = "their id", "their secret"
		page, err := theirs.OAuth.Authorize(t.Context(), linking.AuthorizeRequest{State: "s", RedirectURL: redirect, Challenge: challenge()})
		require.NoError(t, err)
		u, err := url.Parse(page)
		require.NoError(t, err)
		require.Equal(t, "their id", u.Query().Get("client_id"))
		g, err := theirs.OAuth.Exchange(t.Context(), linking.ExchangeRequest{Code: f.approve(page), RedirectURL: redirect, Verifier: verifier})
		require.NoError(t, err)
		_, err = ours.Refresh(t.Context(), g.Secret)
		require.ErrorIs(t, err, healthlab.Unavailable, "the deployment's client is unknown here, and ends nothing")
		renewed, err := theirs.Refresher.Refresh(t.Context(), g.Secret)
		require.NoError(t, err)
		require.NoError(t, theirs.Revoker.Revoke(t.Context(), renewed.Secret))
		require.Equal(t, []string{"refresh-2"}, f.revoked)
		f.id, f.secret = "our id", "our secret"
		_, err = signIn(t, f, ours)
		require.NoError(t, err, "the first one is what it was")
	}
	f := newFjord(t)
	open := f.connector(func(c *oauthrest.Config) { c.OAuth.ClientAuth = "none" })
	for want, refused := range map[string]func() error{
		"client_id missing":     func() error { _, err := f.connector(nil).ForClient(linking.OAuthClient{Secret: "MARK"}); return err },
		"client_secret missing": func() error { _, err := f.connector(nil).ForClient(linking.OAuthClient{ID: "MARK"}); return err },
		"client_secret secret":  func() error { _, err := open.ForClient(linking.OAuthClient{ID: "MARK", Secret: "MARK"}); return err },
		"details.color unknown": func() error {
			_, err := open.ForClient(linking.OAuthClient{ID: "MARK", Details: map[string]string{"color": "MARK"}})
			return err
		},
	} {
		err := refused()
		require.Equal(t, want, places(t, err))
		require.NotContains(t, err.Error(), "MARK")
	}
	_, err := open.ForClient(linking.OAuthClient{ID: "their id"})
	require.NoError(t, err)
	step := oauthrest.Setup{Type: linking.SetupPrincipal, Key: "reader", Value: "service@cloud.example", Description: "Let this account read the archive."}
	told := f.connector(func(c *oauthrest.Config) { c.OAuth.Setup = []oauthrest.Setup{step} }).Flows().Setup
	require.Equal(t, []linking.SetupStep{linking.SetupStep(step)}, told)
}

func TestEncodeDecode_keepTokensAndRefuseInvalidOnes(t *testing.T) {
	var c oauthrest.Connector
	for _, want := range []linking.Tokens{{Access: "access-1", Refresh: "refresh-1"}, {Access: "token"}} {
		secret, err := c.Encode(want)
		require.NoError(t, err)
		got, err := c.Decode(secret)
		require.NoError(t, err)
		require.True(t, got == want)
	}
	_, err := c.Encode(linking.Tokens{Refresh: "MARK"})
	require.ErrorIs(t, err, healthlab.Invalid)
	require.NotContains(t, err.Error(), "MARK")
	_, err = c.Decode([]byte(`{"token":"MARK"}`))
	require.ErrorIs(t, err, healthlab.Invalid)
	require.NotContains(t, err.Error(), "MARK")
}
