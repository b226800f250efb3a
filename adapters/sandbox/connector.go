package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Fates of a sign-in. A person chooses one by what follows the last plus sign of a name
// or address: ann+refused, ann+down@example.com. Any other name signs in.
const (
	// FateRefused: the provider does not take the name, the password or the address.
	FateRefused = "refused"
	// FateExpired: the provider wants a new password first.
	FateExpired = "expired"
	// FateDown: the provider cannot be reached.
	FateDown = "down"
	// FateSlow: the provider does not answer in time.
	FateSlow = "slow"
	// FateNonsense: the provider answers what nobody can use.
	FateNonsense = "nonsense"
	// FateRegion: the provider does not serve the region.
	FateRegion = "region"
	// FateMFA: the provider sends a code by text message; with FateMFAEmail by e-mail.
	FateMFA      = "mfa"
	FateMFAEmail = "mfa_email"
)

// GoodCode is the code that every challenge is answered with. CodeGivenUp makes the
// provider give up on the sign-in; all others are wrong.
const (
	GoodCode    = "123456"
	CodeGivenUp = "999999"
)

// Connector is the sign-in of a provider that does not exist: every flow, and every
// failure on demand. The same name is always the same account. Safe for concurrent use;
// make it with [NewConnector].
type Connector struct {
	provider string
	page     string

	mu      sync.Mutex
	used    map[string]bool // codes
	revoked map[string]bool // accounts
}

// ConnectorOptions adjusts a Connector. The zero value, and nil, mean the defaults.
type ConnectorOptions struct {
	// Page is the address of the provider's sign-in page. Default
	// https://provider.example/sign-in, where nobody lives: use [Connector.Approve].
	Page string
}

// NewConnector returns the sign-in of a provider.
func NewConnector(provider string, opts *ConnectorOptions) *Connector {
	c := &Connector{
		provider: provider, page: "https://provider.example/sign-in",
		used: map[string]bool{}, revoked: map[string]bool{},
	}
	if opts != nil && opts.Page != "" {
		c.page = opts.Page
	}
	return c
}

// Connectors returns a connector for every provider that people sign in at.
func Connectors(p *healthdata.Providers, opts *ConnectorOptions) map[string]linking.ProviderConnector {
	out := map[string]linking.ProviderConnector{}
	for _, v := range p.List("") {
		if v.Class == "cloud" {
			out[v.Slug] = NewConnector(v.Slug, opts).Flows()
		}
	}
	return out
}

// Flows returns all that the connector can do.
func (c *Connector) Flows() linking.ProviderConnector {
	return linking.ProviderConnector{OAuth: c, Password: c, Email: c, Revoker: c}
}

var errDown = errors.New("the sandbox provider is down")

// meet lets a name's fate happen. ok is false if that was all.
func meet(ctx context.Context, name string) (g linking.Grant, fate string, err error) {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, '+'); i >= 0 {
		fate = name[i+1:]
	}
	switch fate {
	case FateRefused:
		return g, fate, &linking.Error{Type: linking.ProviderCredentialError}
	case FateExpired:
		return g, fate, &linking.Error{Type: linking.ProviderPasswordExpired}
	case FateRegion:
		return g, fate, &linking.Error{Type: linking.UnsupportedRegion}
	case FateDown:
		return g, fate, errDown
	case FateSlow:
		<-ctx.Done()
		return g, fate, ctx.Err()
	case FateNonsense:
		return linking.Grant{ExternalUserID: "\x00\xff"}, fate, nil
	}
	return g, fate, nil
}

// account is the provider's own name for a person.
func (c *Connector) account(name string) string {
	sum := sha256.Sum256([]byte(c.provider + " " + name))
	return hex.EncodeToString(sum[:8])
}

// Authorize returns the address of the sign-in page.
func (c *Connector) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	q := url.Values{
		"response_type": {"code"}, "client_id": {"sandbox"}, "state": {r.State}, "redirect_uri": {r.RedirectURL},
		"code_challenge": {r.Challenge}, "code_challenge_method": {"S256"}, "scope": {strings.Join(r.Scopes, " ")},
	}
	return c.page + "?" + q.Encode(), nil
}

// authCode is what a code says. It needs no store, so any process can exchange it.
type authCode struct {
	Name, Challenge, RedirectURL string
	Scopes                       []string
}

// Approve is the person at the sign-in page who says yes: it returns where the browser
// goes then. Without granted, everything that is asked for is granted; else, of it, only
// those.
func (c *Connector) Approve(page, name string, granted ...string) (string, error) {
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	q := u.Query()
	code := authCode{Name: name, Challenge: q.Get("code_challenge"), RedirectURL: q.Get("redirect_uri"), Scopes: strings.Fields(q.Get("scope"))}
	if granted != nil {
		code.Scopes = slices.DeleteFunc(code.Scopes, func(s string) bool { return !slices.Contains(granted, s) })
	}
	doc, err := json.Marshal(code)
	if err != nil {
		return "", err
	}
	return back(q, url.Values{"code": {base64.RawURLEncoding.EncodeToString(doc)}}), nil
}

// Deny is the person at the sign-in page who says no: it returns where the browser goes
// then.
func (c *Connector) Deny(page string) (string, error) {
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	return back(u.Query(), url.Values{"error": {"access_denied"}}), nil
}

func back(q, answer url.Values) string {
	answer.Set("state", q.Get("state"))
	return q.Get("redirect_uri") + "?" + answer.Encode()
}

// Exchange takes a code once, with the verifier and the address that it was asked for
// with.
func (c *Connector) Exchange(ctx context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	var code authCode
	doc, err := base64.RawURLEncoding.DecodeString(r.Code)
	if err != nil || json.Unmarshal(doc, &code) != nil {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	sum := sha256.Sum256([]byte(r.Verifier))
	if code.Challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || code.RedirectURL != r.RedirectURL || !c.first(r.Code) {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	g, _, err := meet(ctx, code.Name)
	if err != nil || g.ExternalUserID != "" {
		return g, err
	}
	g = c.grant(code.Name)
	g.ExternalUserID = c.account(code.Name)
	g.Scopes = append([]string{}, code.Scopes...)
	return g, nil
}

// first reports whether a code is new, and takes it.
func (c *Connector) first(code string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[code] {
		return false
	}
	c.used[code] = true
	return true
}

// grant gives a person's grant, also once more after it was revoked.
func (c *Connector) grant(name string) linking.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.revoked, c.account(name))
	return linking.Grant{Secret: []byte(c.account(name))}
}

// SignIn takes any password for a name, and lets the name's fate happen.
func (c *Connector) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.SignedIn, error) {
	g, fate, err := meet(ctx, r.Username)
	switch {
	case err != nil || g.ExternalUserID != "":
		return linking.SignedIn{Grant: g}, err
	case fate == FateMFA:
		return linking.SignedIn{Challenge: &linking.Challenge{Method: "sms", Hint: "a number that ends in 42"}, Notes: []byte(r.Username)}, nil
	case fate == FateMFAEmail:
		return linking.SignedIn{Challenge: &linking.Challenge{Method: "email", Hint: "a…@example.com"}, Notes: []byte(r.Username)}, nil
	}
	return linking.SignedIn{Grant: c.grant(r.Username)}, nil
}

// CompleteMFA takes [GoodCode].
func (c *Connector) CompleteMFA(_ context.Context, r linking.MFARequest) (linking.Grant, error) {
	switch r.Code {
	case GoodCode:
		return c.grant(string(r.Notes)), nil
	case CodeGivenUp:
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	default:
		return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
	}
}

// SignInByEmail lets the address's fate happen.
func (c *Connector) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	g, _, err := meet(ctx, r.Email)
	if err != nil || g.ExternalUserID != "" {
		return g, err
	}
	return c.grant(r.Email), nil
}

// Revoke ends a grant.
func (c *Connector) Revoke(_ context.Context, secret []byte) error {
	if len(secret) == 0 {
		return healthlab.Invalid
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked[string(secret)] = true
	return nil
}

// Revoked reports whether the grant with this secret was ended.
func (c *Connector) Revoked(secret []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked[string(secret)]
}
