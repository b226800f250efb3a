package oauthrest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// secret is what a grant's secret holds, as JSON. It is sealed by whoever keeps it.
type secret struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (secret) String() string   { return "tokens" }
func (secret) GoString() string { return "tokens" }

func (s secret) bytes() []byte {
	doc := map[string]string{"access_token": s.Access}
	if s.Refresh != "" {
		doc["refresh_token"] = s.Refresh
	}
	b, _ := json.Marshal(doc) // texts always can
	return b
}

func readSecret(b []byte) (s secret, err error) {
	if json.Unmarshal(b, &s) != nil || s.Access == "" {
		return s, fmt.Errorf("%w: not a secret of this connector", healthlab.Invalid)
	}
	return s, nil
}

// Pack makes a secret of tokens.
func (c *Connector) Pack(t linking.Tokens) ([]byte, error) {
	if t.Access == "" {
		return nil, fmt.Errorf("%w: there is no access token", healthlab.Invalid)
	}
	return secret{t.Access, t.Refresh}.bytes(), nil
}

// Unpack reads the tokens of a secret.
func (c *Connector) Unpack(sealed []byte) (linking.Tokens, error) {
	s, err := readSecret(sealed)
	return linking.Tokens(s), err
}

// library is the configuration for the OAuth library.
func (c *Connector) library(redirect string, scopes []string) *oauth2.Config {
	o := &c.config.OAuth
	style := oauth2.AuthStyleInHeader
	if o.ClientAuth == authBody || o.ClientAuth == authNone {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: c.client.ID, ClientSecret: c.client.Secret, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: o.AuthorizeURL, TokenURL: o.TokenURL, AuthStyle: style},
		Scopes:   []string{strings.Join(scopes, orText(o.ScopeSeparator, " "))},
	}
}

func (o *OAuth) pkce() bool { return o.PKCE == nil || *o.PKCE }

// Authorize returns the address of the provider's sign-in page. See [linking.OAuthFlow].
func (c *Connector) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	var options []oauth2.AuthCodeOption
	for name, value := range c.config.OAuth.AuthorizeParams {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	if c.config.OAuth.pkce() {
		options = append(options, oauth2.SetAuthURLParam("code_challenge", r.Challenge), oauth2.SetAuthURLParam("code_challenge_method", "S256"))
	}
	lib := c.library(r.RedirectURL, r.Scopes)
	if len(r.Scopes) == 0 {
		lib.Scopes = nil
	}
	return lib.AuthCodeURL(r.State, options...), nil
}

// Exchange turns a code into a grant. See [linking.OAuthFlow].
func (c *Connector) Exchange(ctx context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	var options []oauth2.AuthCodeOption
	if c.config.OAuth.pkce() {
		options = append(options, oauth2.VerifierOption(r.Verifier))
	}
	at := c.now()
	token, body, err := c.token(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		return c.library(r.RedirectURL, nil).Exchange(ctx, r.Code, options...)
	})
	if err != nil {
		var over *linking.GrantError
		if errors.As(err, &over) {
			return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
		}
		return linking.Grant{}, err
	}
	g := linking.Grant{Scopes: c.scopes(body), ExpiresAt: c.expiry(token, at)}
	g.Secret = secret{token.AccessToken, token.RefreshToken}.bytes()
	g.ExternalUserID, err = c.account(ctx, token.AccessToken, body)
	if err != nil {
		return linking.Grant{}, err
	}
	return g, nil
}

// expiry is when a token stops working.
func (c *Connector) expiry(t *oauth2.Token, at time.Time) time.Time {
	seconds := t.ExpiresIn
	if seconds <= 0 {
		seconds = int64(c.config.OAuth.TokenSeconds)
	}
	if seconds <= 0 {
		return time.Time{}
	}
	return healthlab.At(at.Add(time.Duration(min(seconds, 100*maxSeconds)) * time.Second)).Time
}

// scopes are those that a token's answer names; nil if it names none.
func (c *Connector) scopes(body any) []string {
	doc, _ := body.(map[string]any)
	list := []string{}
	switch v := doc["scope"].(type) {
	case string:
		list = strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || strings.ContainsRune(c.config.OAuth.ScopeSeparator, r) })
	case []any:
		for _, s := range v {
			if s, ok := s.(string); ok {
				list = append(list, s)
			}
		}
	default:
		return nil
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// account finds the provider's own name for the person.
func (c *Connector) account(ctx context.Context, token string, body any) (string, error) {
	a := c.config.OAuth.Account
	if a == nil {
		return "", nil
	}
	if a.URL != "" {
		where, err := url.Parse(a.URL)
		if err != nil {
			return "", err
		}
		got, err := c.get(ctx, where, token)
		if err != nil {
			return "", err
		}
		if _, err = c.verdict(got); err != nil {
			return "", err
		}
		if body, err = tree(got.body, nil); err != nil {
			return "", errShape
		}
	}
	v, _ := (&item{inside: []any{body}}).find(a.At)
	id, ok := text(v)
	if !ok || id == "" {
		return "", errShape
	}
	return id, nil
}

// Refresh renews tokens. See [linking.Refresher].
func (c *Connector) Refresh(ctx context.Context, old []byte) (linking.Renewal, error) {
	s, err := readSecret(old)
	if err != nil {
		return linking.Renewal{}, err
	}
	if s.Refresh == "" {
		return linking.Renewal{}, &linking.GrantError{Type: healthdata.FailureTokenRefresh}
	}
	at := c.now()
	token, _, err := c.token(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		return c.library("", nil).TokenSource(ctx, &oauth2.Token{RefreshToken: s.Refresh}).Token()
	})
	if err != nil {
		return linking.Renewal{}, err
	}
	fresh := secret{token.AccessToken, orText(token.RefreshToken, s.Refresh)}
	return linking.Renewal{Secret: fresh.bytes(), ExpiresAt: c.expiry(token, at)}, nil
}

// token runs a call of the OAuth library behind the guard, and returns the whole answer
// besides. What the library says of a failure holds the answer, and is left out.
func (c *Connector) token(ctx context.Context, call func(context.Context) (*oauth2.Token, error)) (*oauth2.Token, any, error) {
	var kept bytes.Buffer
	client := *c.http
	client.Transport = tokenTrip{next: client.Transport, params: c.config.OAuth.TokenParams, kept: &kept}
	token, err := call(context.WithValue(ctx, oauth2.HTTPClient, &client))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return nil, nil, c.refusal(refused)
	case err != nil && ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil && kept.Len() > 0:
		return nil, nil, later("answers nonsense for a token")
	case err != nil:
		return nil, nil, unreachable(ctx, err)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, nil, later("answers a token that cannot be sent")
	}
	body, err := tree(kept.Bytes(), nil)
	if err != nil { // some providers answer a form
		form, _ := url.ParseQuery(kept.String())
		m := map[string]any{}
		for name := range form {
			m[name] = form.Get(name)
		}
		body = m
	}
	return token, body, nil
}

// refusal says what an answer of the token URL means that is not a token: only its own
// words end a grant (RFC 6749 section 5.2).
func (c *Connector) refusal(e *oauth2.RetrieveError) error {
	status, wait := 0, time.Duration(0)
	if e.Response != nil {
		status = e.Response.StatusCode
		wait = webhook.ParseRetryAfter(e.Response.Header.Get("Retry-After"), c.now())
	}
	if (e.ErrorCode == "invalid_grant" || slices.Contains(c.config.OAuth.OverErrors, e.ErrorCode) && e.ErrorCode != "") && status/100 != 5 {
		return &linking.GrantError{Type: healthdata.FailureTokenRefresh}
	}
	if status == http.StatusTooManyRequests {
		return &linking.RateError{Scope: linking.RateApp, Wait: wait}
	}
	return &laterError{"gives no token", wait}
}

// tokenTrip is the way to the token URL: it adds the parameters of the configuration to
// every form, for the library takes none when it renews a token, and keeps a copy of the
// answer.
type tokenTrip struct {
	next   http.RoundTripper
	params map[string]string
	kept   *bytes.Buffer
}

// maxToken is the longest answer with a token that is looked at.
const maxToken = 1 << 20

// RoundTrip passes a request on.
func (k tokenTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := k.completed(r)
	if err != nil {
		return nil, err
	}
	resp, err := k.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	k.kept.Reset()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	k.kept.Write(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// completed is a request with the parameters in its form. None of them is in it already:
// those of the flow are reserved.
func (k tokenTrip) completed(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	for name, value := range k.params {
		form.Set(name, value)
	}
	out := r.Clone(r.Context())
	whole := form.Encode()
	out.ContentLength, out.Body = int64(len(whole)), io.NopCloser(strings.NewReader(whole))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(whole)), nil }
	return out, nil
}

// Revoke ends a grant. See [linking.Revoker].
func (c *Connector) Revoke(ctx context.Context, sealed []byte) error {
	s, err := readSecret(sealed)
	if err != nil {
		return err
	}
	o := &c.config.OAuth
	form := url.Values{}
	if o.Revocation != revokeBearer {
		form.Set("token", orText(s.Refresh, s.Access))
		form.Set("token_type_hint", "refresh_token")
		if s.Refresh == "" {
			form.Set("token_type_hint", "access_token")
		}
		if o.ClientAuth == authBody || o.ClientAuth == authNone {
			form.Set("client_id", c.client.ID)
		}
		if o.ClientAuth == authBody {
			form.Set("client_secret", c.client.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("%w: the request cannot be made", healthlab.Invalid)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	switch {
	case o.Revocation == revokeBearer:
		req.Header.Set("Authorization", "Bearer "+s.Access)
	case orText(o.ClientAuth, authBasic) == authBasic:
		req.SetBasicAuth(url.QueryEscape(c.client.ID), url.QueryEscape(c.client.Secret)) // RFC 6749, 2.3.1
	}
	a, err := c.ask(req)
	switch {
	case err != nil:
		return err
	case a.status/100 == 2, a.says("/error", "invalid_token"), a.says("/error", "invalid_grant"),
		o.Revocation == revokeBearer && (a.status == http.StatusUnauthorized || a.status == http.StatusNotFound):
		return nil // it has ended, whoever ended it
	}
	return &laterError{"does not end the grant", webhook.ParseRetryAfter(a.header.Get("Retry-After"), c.now())}
}
