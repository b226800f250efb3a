package rest

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
)

// Client is the OAuth client that is registered at the provider.
type Client struct {
	healthlab.Private

	ID, Secret string
	// Key is a secret that every data request sends in the header [Definition.KeyHeader].
	Key string
}

// ClientAuth is how a client authenticates at the token URL.
type ClientAuth string

const (
	// ClientBody sends id and secret in the form. It is the default.
	ClientBody ClientAuth = "body"
	// ClientBasic sends id and secret by HTTP basic authentication.
	ClientBasic ClientAuth = "basic"
	// ClientNone sends only the id, in the form.
	ClientNone ClientAuth = "none"
)

// OAuth describes a provider's authorization code flow (RFC 6749).
type OAuth struct {
	AuthorizeURL, TokenURL string
	ClientAuth             ClientAuth
	// PKCE sends the challenge and the verifier (RFC 7636).
	PKCE bool
	// ScopeSeparator separates scopes in requests and responses. Default a space.
	ScopeSeparator string
	// AuthorizeParams are added to the URL of the sign-in page, TokenParams to every form sent to the token URL, and
	// RefreshParams to the forms that renew tokens.
	AuthorizeParams, TokenParams, RefreshParams map[string]string
	// TokenBody extracts the RFC 6749 token answer from the provider's answer. Nil: they are the same.
	TokenBody func([]byte) []byte
	// TokenSeconds is the lifetime of an access token in seconds, used if the token response does not state it; 0 means
	// unknown.
	TokenSeconds int
	// EndErrors lists the error codes of the token URL, besides invalid_grant, which mean that a grant is no longer valid.
	EndErrors []string
	// Revocation is the request that revokes a grant. Zero: the provider supports none.
	Revocation Revocation
	// Revoke revokes a grant by requests that Revocation cannot describe, and replaces Revocation. The tokens in s were
	// renewed just before.
	Revoke func(ctx context.Context, s *SignedIn) error
	// Minimum lists the scopes that every person must grant.
	Minimum []string
	// Account returns the provider's id of the person after the sign-in. It may register the person or subscribe to
	// messages. Nil: the provider has no id.
	Account func(ctx context.Context, s *SignedIn) (string, error)
}

// RevocationToken is the way in which the revocation request sends the token.
type RevocationToken string

const (
	// RevokeForm sends the refresh token, or without one the access token, in a form as in RFC 7009. It is the default.
	RevokeForm RevocationToken = "form"
	// RevokeBearer sends the access token as a bearer token.
	RevokeBearer RevocationToken = "bearer"
	// RevokeQuery sends the access token as the query parameter access_token.
	RevokeQuery RevocationToken = "query"
)

// accountPart is the placeholder of the provider's id of the person in addresses and paths.
const accountPart = "{account}"

// Revocation is the request that revokes a grant.
type Revocation struct {
	// URL is the URL of the request. {account} stands for the provider's id of the person. Tokens that were imported have
	// no such id, so a URL with {account} cannot revoke them.
	URL string
	// Method is the HTTP method. Default POST.
	Method string
	Token  RevocationToken
}

// SignedIn is a person who has signed in or whose tokens were just renewed.
type SignedIn struct {
	healthlab.Private

	// Access is the access token, and Token the whole answer of the token URL, a JSON object.
	Access string
	Token  json.RawMessage
	// Client is the client for which the tokens were issued. MessageURL is Options.MessageURL.
	Client     Client
	MessageURL string

	flow *Flow
}

// Now returns the current time of the connector's clock.
func (s *SignedIn) Now() time.Time { return s.flow.HTTP.now() }

// Do sends a request with the person's access token. body is JSON or nil. A status other than 2xx and 409 is an error.
func (s *SignedIn) Do(ctx context.Context, method, address string, body io.Reader) (*Answer, error) {
	return s.send(ctx, method, address, "application/json", body)
}

// Form posts a form with the person's access token. A status other than 2xx and 409 is an error.
func (s *SignedIn) Form(ctx context.Context, address string, form url.Values) (*Answer, error) {
	return s.send(ctx, http.MethodPost, address, formType, strings.NewReader(form.Encode()))
}

func (s *SignedIn) send(ctx context.Context, method, address, contentType string, body io.Reader) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.flow.at(address), body)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid", healthlab.Invalid)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.Access)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	a, err := s.flow.HTTP.Do(req)
	switch {
	case err != nil:
		return nil, err
	case a.Status == http.StatusTooManyRequests:
		return nil, &linking.RateLimitError{Scope: linking.RateApp, Wait: s.flow.HTTP.RetryAfter(a)}
	case a.Status/100 != 2 && a.Status != http.StatusConflict:
		return nil, Unavailable(fmt.Sprintf("answers with status %d", a.Status), s.flow.HTTP.RetryAfter(a))
	}
	return a, nil
}

// Flow signs people in at one provider for one OAuth client. It implements linking.OAuthFlow, Refresher, TokenCodec and
// Revoker. Safe for concurrent use.
type Flow struct {
	OAuth  OAuth
	Client Client
	HTTP   *HTTP
	// Origin and MessageURL are the options of the same names in [Options].
	Origin, MessageURL string
}

func (f *Flow) signedIn(access string, body []byte) *SignedIn {
	return &SignedIn{Access: access, Token: body, Client: f.Client, MessageURL: f.MessageURL, flow: f}
}

func (f *Flow) at(address string) string { return rebase(address, f.Origin) }

// rebase replaces the scheme and host of an address by those of an origin. An empty origin changes nothing.
func rebase(address, origin string) string {
	u, err := url.Parse(address)
	o, bad := url.Parse(origin)
	if err != nil || bad != nil || origin == "" {
		return address
	}
	u.Scheme, u.Host = o.Scheme, o.Host
	return u.String()
}

// tokens is the content of a grant's secret, as JSON.
type tokens struct {
	healthlab.Private

	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
	// Account is the provider's id of the person. It is set only if the URL of the revocation contains {account}.
	Account string `json:"account,omitempty"`
}

func (t tokens) bytes() []byte {
	b, _ := json.Marshal(t) //nolint:gosec // the caller encrypts the secret of a grant
	return b
}

func readTokens(b []byte) (t tokens, err error) {
	if json.Unmarshal(b, &t) != nil || t.Access == "" {
		return t, fmt.Errorf("%w: secret: must be one that the sign-in of this connector returned", healthlab.Invalid)
	}
	return t, nil
}

// Encode returns a grant's secret that contains t. It returns Invalid if t has no access token.
func (*Flow) Encode(t linking.Tokens) ([]byte, error) {
	if t.Access == "" {
		return nil, fmt.Errorf("%w: the token answer of the provider has no access_token", healthlab.Invalid)
	}
	return tokens{Access: t.Access, Refresh: t.Refresh}.bytes(), nil
}

// Decode returns the tokens that a grant's secret contains. It returns Invalid for any other content.
func (*Flow) Decode(secret []byte) (linking.Tokens, error) {
	t, err := readTokens(secret)
	return linking.Tokens{Access: t.Access, Refresh: t.Refresh}, err
}

// oauth2Config returns the configuration for package oauth2. redirect is the redirect URL; it may be empty for a
// renewal.
func (f *Flow) oauth2Config(redirect string, scopes []string) *oauth2.Config {
	style, separator := oauth2.AuthStyleInParams, f.OAuth.ScopeSeparator
	if f.OAuth.ClientAuth == ClientBasic {
		style = oauth2.AuthStyleInHeader
	}
	if separator == "" {
		separator = " "
	}
	c := &oauth2.Config{
		ClientID: f.Client.ID, ClientSecret: f.Client.Secret, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: f.at(f.OAuth.AuthorizeURL), TokenURL: f.at(f.OAuth.TokenURL), AuthStyle: style},
	}
	if len(scopes) > 0 {
		c.Scopes = []string{strings.Join(scopes, separator)}
	}
	return c
}

// Authorize returns the address of the provider's sign-in page. See [linking.OAuthFlow].
func (f *Flow) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	var options []oauth2.AuthCodeOption
	for name, value := range f.OAuth.AuthorizeParams {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	if f.OAuth.PKCE {
		options = append(options, oauth2.SetAuthURLParam("code_challenge", r.Challenge), oauth2.SetAuthURLParam("code_challenge_method", "S256"))
	}
	return f.oauth2Config(r.RedirectURL, r.Scopes).AuthCodeURL(r.State, options...), nil
}

// Exchange exchanges an authorization code for a grant. See [linking.OAuthFlow].
func (f *Flow) Exchange(ctx context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	var options []oauth2.AuthCodeOption
	if f.OAuth.PKCE {
		options = append(options, oauth2.VerifierOption(r.Verifier))
	}
	at := f.HTTP.now()
	token, body, err := f.token(ctx, f.OAuth.TokenParams, func(ctx context.Context) (*oauth2.Token, error) {
		return f.oauth2Config(r.RedirectURL, nil).Exchange(ctx, r.Code, options...)
	})
	if err != nil {
		var over *linking.GrantError
		if errors.As(err, &over) {
			return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
		}
		return linking.Grant{}, err
	}
	g := linking.Grant{Scopes: f.scopes(body), ExpiresAt: f.expiry(token, at)}
	if f.OAuth.Account != nil {
		g.ExternalUserID, err = f.OAuth.Account(ctx, f.signedIn(token.AccessToken, body))
	}
	if err != nil {
		return linking.Grant{}, err
	}
	secret := tokens{Access: token.AccessToken, Refresh: token.RefreshToken}
	if strings.Contains(f.OAuth.Revocation.URL, accountPart) {
		secret.Account = g.ExternalUserID
	}
	g.Secret = secret.bytes()
	return g, nil
}

// maxSeconds is the largest accepted lifetime of a token, a hundred years.
const maxSeconds = 100 * 366 * 24 * 60 * 60

// expiry returns when a token that was requested at the time at expires; zero if its lifetime is unknown.
func (f *Flow) expiry(t *oauth2.Token, at time.Time) time.Time {
	seconds := t.ExpiresIn
	if seconds <= 0 {
		seconds = int64(f.OAuth.TokenSeconds)
	}
	if seconds <= 0 {
		return time.Time{}
	}
	return healthlab.At(at.Add(time.Duration(min(seconds, maxSeconds)) * time.Second)).Time
}

// scopes returns the scopes in a token answer; nil if it has none.
func (f *Flow) scopes(body []byte) []string {
	var doc struct {
		Scope any `json:"scope"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	list := []string{}
	switch v := doc.Scope.(type) {
	case string:
		list = strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || strings.ContainsRune(f.OAuth.ScopeSeparator, r) })
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

// Refresh renews tokens. See [linking.Refresher].
func (f *Flow) Refresh(ctx context.Context, old []byte) (linking.Renewal, error) {
	t, err := readTokens(old)
	if err != nil {
		return linking.Renewal{}, err
	}
	at := f.HTTP.now()
	token, _, err := f.renew(ctx, t)
	if err != nil {
		return linking.Renewal{}, err
	}
	fresh := tokens{Access: token.AccessToken, Refresh: token.RefreshToken, Account: t.Account}
	if fresh.Refresh == "" {
		fresh.Refresh = t.Refresh
	}
	return linking.Renewal{Secret: fresh.bytes(), ExpiresAt: f.expiry(token, at)}, nil
}

// renew exchanges the refresh token of t for new tokens. It also returns the token response. If t has no refresh token,
// or the provider refuses it, the error is a GrantError.
func (f *Flow) renew(ctx context.Context, t tokens) (*oauth2.Token, []byte, error) {
	if t.Refresh == "" {
		return nil, nil, &linking.GrantError{Type: healthdata.FailureTokenRefresh}
	}
	params := map[string]string{}
	for _, m := range []map[string]string{f.OAuth.TokenParams, f.OAuth.RefreshParams} {
		for name, value := range m {
			params[name] = value
		}
	}
	return f.token(ctx, params, func(ctx context.Context) (*oauth2.Token, error) {
		return f.oauth2Config("", nil).TokenSource(ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	})
}

// token calls the OAuth library with an HTTP client that applies the guard and adds params. It returns the token and
// the token response as JSON. It drops the text of the library's error, because that contains the response.
func (f *Flow) token(ctx context.Context, params map[string]string, call func(context.Context) (*oauth2.Token, error)) (*oauth2.Token, []byte, error) {
	var kept bytes.Buffer
	client := *f.HTTP.client
	client.Transport = tokenTransport{client.Transport, params, f.OAuth.TokenBody, &kept}
	token, err := call(context.WithValue(ctx, oauth2.HTTPClient, &client))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return nil, nil, f.refusal(refused)
	case err != nil && ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case err != nil && kept.Len() > 0:
		return nil, nil, Unavailable("answers the token request with a body that has no readable access_token", 0)
	case err != nil:
		return nil, nil, unreachable(ctx, err)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, nil, Unavailable("answers the token request with an access_token that has other characters than visible ASCII", 0)
	}
	body := kept.Bytes()
	if !json.Valid(body) { // some providers answer with a form
		form, _ := url.ParseQuery(kept.String())
		doc := map[string]string{}
		for name := range form {
			doc[name] = form.Get(name)
		}
		body, _ = json.Marshal(doc) // strings always encode
	}
	return token, body, nil
}

// refusal returns the error for a response of the token URL without a token. It is a GrantError only for the error code
// invalid_grant (RFC 6749 section 5.2) and those of OAuth.EndErrors.
func (f *Flow) refusal(e *oauth2.RetrieveError) error {
	a := &Answer{Header: http.Header{}}
	if e.Response != nil {
		a.Status, a.Header = e.Response.StatusCode, e.Response.Header
	}
	if (e.ErrorCode == "invalid_grant" || e.ErrorCode != "" && slices.Contains(f.OAuth.EndErrors, e.ErrorCode)) && a.Status/100 != 5 {
		return &linking.GrantError{Type: healthdata.FailureTokenRefresh}
	}
	if a.Status == http.StatusTooManyRequests {
		return &linking.RateLimitError{Scope: linking.RateApp, Wait: f.HTTP.RetryAfter(a)}
	}
	what := fmt.Sprintf("answers the token request with status %d and without a token", a.Status)
	if slices.Contains(tokenErrors, e.ErrorCode) {
		what += ": " + e.ErrorCode
	}
	return Unavailable(what, f.HTTP.RetryAfter(a))
}

// tokenErrors lists the error codes of a token URL (RFC 6749 section 5.2).
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// tokenTransport adds parameters to every form sent to the token URL, because the OAuth library adds none when it
// renews a token. It keeps a copy of the answer.
type tokenTransport struct {
	next   http.RoundTripper
	params map[string]string
	unwrap func([]byte) []byte
	kept   *bytes.Buffer
}

// maxToken is the longest token answer, in bytes.
const maxToken = 1 << 20

// RoundTrip sends a request with the additional parameters.
func (t tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := t.withParams(r)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	t.kept.Reset()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if t.unwrap != nil {
		body = t.unwrap(body)
	}
	t.kept.Write(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// withParams returns a request with the parameters added to its form.
func (t tokenTransport) withParams(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	for name, value := range t.params {
		form.Set(name, value)
	}
	out := r.Clone(r.Context())
	whole := form.Encode()
	out.ContentLength, out.Body = int64(len(whole)), io.NopCloser(strings.NewReader(whole))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(whole)), nil }
	return out, nil
}

// Revoke revokes a grant at the provider. A grant that is no longer valid is no error. See [linking.Revoker].
func (f *Flow) Revoke(ctx context.Context, secret []byte) error {
	t, err := readTokens(secret)
	if err != nil {
		return err
	}
	if f.OAuth.Revoke != nil {
		token, body, err := f.renew(ctx, t)
		var over *linking.GrantError
		switch {
		case errors.As(err, &over):
			return nil // the grant has already ended
		case err != nil:
			return err
		}
		return f.OAuth.Revoke(ctx, f.signedIn(token.AccessToken, body))
	}
	req, err := f.revocation(ctx, t)
	if err != nil {
		return err
	}
	a, err := f.HTTP.Do(req)
	if err != nil {
		return err
	}
	var said struct {
		Error any `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &said)
	switch {
	case a.Status/100 == 2, said.Error == "invalid_token", said.Error == "invalid_grant",
		f.OAuth.Revocation.Token == RevokeBearer && (a.Status == http.StatusUnauthorized || a.Status == http.StatusNotFound):
		return nil // the grant has ended already
	}
	return Unavailable(fmt.Sprintf("answers the revocation request with status %d", a.Status), f.HTTP.RetryAfter(a))
}

// revocation returns the request that revokes a grant. It returns Invalid for tokens that cannot be revoked.
func (f *Flow) revocation(ctx context.Context, t tokens) (*http.Request, error) {
	o := &f.OAuth
	method, form := o.Revocation.Method, url.Values{}
	if method == "" {
		method = http.MethodPost
	}
	if o.Revocation.Token == RevokeForm || o.Revocation.Token == "" {
		form.Set("token", t.Refresh)
		form.Set("token_type_hint", "refresh_token")
		if t.Refresh == "" {
			form.Set("token", t.Access)
			form.Set("token_type_hint", "access_token")
		}
		if o.ClientAuth != ClientBasic {
			form.Set("client_id", f.Client.ID)
		}
		if o.ClientAuth == ClientBody || o.ClientAuth == "" {
			form.Set("client_secret", f.Client.Secret)
		}
	}
	address := o.Revocation.URL
	if strings.Contains(address, accountPart) {
		if t.Account == "" {
			return nil, fmt.Errorf("%w: the grant cannot be revoked: imported tokens have no account id, which the revocation URL of this provider requires", healthlab.Invalid)
		}
		address = strings.ReplaceAll(address, accountPart, url.PathEscape(t.Account))
	}
	req, err := http.NewRequestWithContext(ctx, method, f.at(address), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%w: the revocation URL of the provider must be a valid URL", healthlab.Invalid)
	}
	req.Header.Set("Content-Type", formType)
	switch {
	case o.Revocation.Token == RevokeBearer:
		req.Header.Set("Authorization", "Bearer "+t.Access)
	case o.Revocation.Token == RevokeQuery:
		q := req.URL.Query()
		q.Set("access_token", t.Access)
		req.URL.RawQuery = q.Encode()
	case o.ClientAuth == ClientBasic:
		req.SetBasicAuth(url.QueryEscape(f.Client.ID), url.QueryEscape(f.Client.Secret)) // RFC 6749, 2.3.1
	}
	return req, nil
}

// AccountIn reads the provider's id of the person, a string or a number, from a JSON document. member is its path, as
// names joined with dots.
func AccountIn(doc []byte, member string) (string, error) {
	if id := scalarText(memberAt(doc, member)); id != "" {
		return id, nil
	}
	return "", errShape
}

// AccountAt returns a function for [OAuth.Account] that sends GET to a URL, and takes the id from a member of the
// response (see [AccountIn]).
func AccountAt(address, member string) func(context.Context, *SignedIn) (string, error) {
	return func(ctx context.Context, s *SignedIn) (string, error) {
		a, err := s.Do(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		return AccountIn(a.Body, member)
	}
}

// AccountInToken returns a function for [OAuth.Account] that takes the id from a member of the token response (see
// [AccountIn]).
func AccountInToken(member string) func(context.Context, *SignedIn) (string, error) {
	return func(_ context.Context, s *SignedIn) (string, error) { return AccountIn(s.Token, member) }
}
