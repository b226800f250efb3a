package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Behaviours of a sign-in. A person chooses one by what follows the last plus sign of a name
// or address: ann+refused, ann+down@example.com. Any other name signs in.
const (
	// BehaviourRefused: the provider does not take the name, the password or the address.
	BehaviourRefused = "refused"
	// BehaviourExpired: the provider wants a new password first.
	BehaviourExpired = "expired"
	// BehaviourDown: the provider cannot be reached.
	BehaviourDown = "down"
	// BehaviourSlow: the provider does not answer in time.
	BehaviourSlow = "slow"
	// BehaviourNonsense: the provider's answer cannot be used.
	BehaviourNonsense = "nonsense"
	// BehaviourRegion: the provider does not serve the region.
	BehaviourRegion = "region"
	// BehaviourMFA: the provider sends a code by text message; with BehaviourMFAEmail by e-mail.
	BehaviourMFA      = "mfa"
	BehaviourMFAEmail = "mfa_email"
)

// GoodCode is the code that every challenge is answered with. CodeGivenUp makes the
// provider give up on the sign-in; all others are wrong.
const (
	GoodCode    = "123456"
	CodeGivenUp = "999999"
)

// Behaviours of what comes after the sign-in: it succeeds, and then this happens.
const (
	// BehaviourEnded: the provider does not renew the grant, for good.
	BehaviourEnded = "ended"
	// BehaviourStuck: the provider cannot be reached when the grant is to be renewed.
	BehaviourStuck = "stuck"
	// BehaviourWithdrawn: the person took the consent back, so no data is given.
	BehaviourWithdrawn = "withdrawn"
	// BehaviourFlaky: every other request for data fails.
	BehaviourFlaky = "flaky"
	// BehaviourHanging: every other request for data is not answered in time.
	BehaviourHanging = "hanging"
	// BehaviourLimited: every other request for data is one too many, until the provider says
	// otherwise; with BehaviourCrowded it does not say when.
	BehaviourLimited = "limited"
	BehaviourCrowded = "crowded"
	// BehaviourGarbled: every other answer cannot be used.
	BehaviourGarbled = "garbled"
	// BehaviourLate: data shows a day and a half after it was recorded.
	BehaviourLate = "late"
	// BehaviourResent: what was recorded in the last hour is incomplete, and is sent again.
	BehaviourResent = "resent"
	// BehaviourStrange: among the data is some that must not be kept: a unit that does not
	// exist, a time to come, another person's, one night in two versions.
	BehaviourStrange = "strange"
	// BehaviourTravelling: every day is spent in another time zone.
	BehaviourTravelling = "travelling"
	// BehaviourHourly: what people write down is known to the hour only, and they write several
	// things in one.
	BehaviourHourly = "hourly"
)

// Behaviours returns all behaviours of a sign-in at the provider's own page.
func Behaviours() []string {
	return []string{
		BehaviourRefused, BehaviourDown, BehaviourSlow, BehaviourNonsense, BehaviourEnded, BehaviourStuck, BehaviourWithdrawn, BehaviourFlaky, BehaviourHanging,
		BehaviourLimited, BehaviourCrowded, BehaviourGarbled, BehaviourLate, BehaviourResent, BehaviourStrange, BehaviourTravelling,
		BehaviourHourly,
	}
}

// Connector is a provider that does not exist: every flow of signing in, grants that end
// after a while and are renewed, the data of [Provider], and every failure on demand. The
// same name is always the same account. Safe for concurrent use; make it with
// [NewConnector].
//
// A grant is renewed for a new one, as OAuth with rotation does it: of an account, the
// last one and the one before it work. What a Connector knows of that ends with the
// process; a grant that is newer than what it knows is taken.
type Connector struct {
	provider string
	page     string
	life     time.Duration
	now      func() time.Time
	pushKey  []byte
	client   linking.OAuthClient // zero for the deployment's
	*books
}

// books are what the provider knows, the same for every caller.
type books struct {
	mu       sync.Mutex
	used     map[string]bool // codes
	accounts map[string]*account
	// withdrawn are users who took their consent back, with their accounts.
	withdrawn map[healthlab.UserID]string
}

// account is what the provider remembers of a person.
type account struct {
	// last names the newest grant, and before the one that it replaced.
	last, before int64
	revoked      bool
	// asked counts the requests for data by resource.
	asked map[string]int
}

// ConnectorOptions adjusts a Connector. The zero value, and nil, mean the defaults.
type ConnectorOptions struct {
	// Page is the address of the provider's sign-in page. Default
	// https://provider.example/sign-in, which does not exist: use [Connector.Approve].
	Page string
	// Life is how long a grant of OAuth works before it has to be renewed. Default 1 hour.
	Life time.Duration
	// PushKey signs what the provider sends by itself. Without one, it sends nothing.
	PushKey []byte
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// NewConnector returns the connector of a provider.
func NewConnector(provider string, opts *ConnectorOptions) *Connector {
	var o ConnectorOptions
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Connector{
		provider: provider, page: cmp.Or(o.Page, "https://provider.example/sign-in"), life: cmp.Or(o.Life, time.Hour), now: o.Now,
		pushKey: o.PushKey, books: &books{
			used: map[string]bool{}, accounts: map[string]*account{}, withdrawn: map[healthlab.UserID]string{},
		},
	}
}

// DetailPushKey is the detail of a client of a team that signs what the provider sends to
// it. Without it, the provider sends it nothing.
const DetailPushKey = "push_key"

// ForClient is the provider as another client knows it. Any id is known, and any secret is right
// but one with [BehaviourRefused] behind a plus sign. A code or a grant is good for the client
// alone that it was given to.
func (c *Connector) ForClient(client linking.OAuthClient) (linking.ProviderConnector, error) {
	own, err := c.as(client)
	if err != nil {
		return linking.ProviderConnector{}, err
	}
	return own.Flows(), nil
}

func (c *Connector) as(client linking.OAuthClient) (*Connector, error) {
	var p healthlab.Problems
	if client.ID == "" {
		p.Add("missing", "must be set", "client_id")
	}
	if client.Secret == "" {
		p.Add("missing", "must be set for this provider", "client_secret")
	}
	for _, name := range slices.Sorted(maps.Keys(client.Details)) {
		if name != DetailPushKey {
			p.Add("unknown", "is not a detail of this provider", "details", name[:min(len(name), 64)])
		}
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("sandbox client: %w", err)
	}
	own := *c
	own.client, own.pushKey = client, []byte(client.Details[DetailPushKey])
	return &own, nil
}

func (c *Connector) clientID() string { return cmp.Or(c.client.ID, "sandbox") }

// grantee is an account as the client has it.
func (c *Connector) grantee(account string) string {
	if c.client.ID == "" {
		return account
	}
	sum := sha256.Sum256([]byte(c.client.ID))
	return account + "." + hex.EncodeToString(sum[:8])
}

func (c *Connector) known(t *ticket) bool {
	account, _, _ := strings.Cut(t.account, ".")
	return t.account == c.grantee(account)
}

func (c *Connector) trusted() error {
	if behaviourOf(c.client.Secret) == BehaviourRefused {
		return errClient
	}
	return nil
}

var errClient = errors.New("the sandbox provider does not know the client")

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
	all := linking.ProviderConnector{OAuth: c, Password: c, Email: c, Revoker: c, Refresher: c, TokenCodec: c, Puller: c, ForClient: c.ForClient}
	if len(c.pushKey) > 0 {
		all.Listener, all.ClientListener = c, true
	}
	return all
}

var errDown = errors.New("the sandbox provider is down")

// behaviourOf is what follows the last plus sign of a name or address.
func behaviourOf(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, '+'); i >= 0 {
		return name[i+1:]
	}
	return ""
}

// meet lets a name's behaviour happen at the sign-in.
func meet(ctx context.Context, name string) (g linking.Grant, behaviour string, err error) {
	behaviour = behaviourOf(name)
	switch behaviour {
	case BehaviourRefused:
		return g, behaviour, &linking.Error{Type: linking.ProviderCredentialError}
	case BehaviourExpired:
		return g, behaviour, &linking.Error{Type: linking.ProviderPasswordExpired}
	case BehaviourRegion:
		return g, behaviour, &linking.Error{Type: linking.UnsupportedRegion}
	case BehaviourDown:
		return g, behaviour, errDown
	case BehaviourSlow:
		<-ctx.Done()
		return g, behaviour, ctx.Err()
	case BehaviourNonsense:
		return linking.Grant{ExternalUserID: "\x00\xff"}, behaviour, nil
	}
	return g, behaviour, nil
}

func (c *Connector) account(name string) string {
	sum := sha256.Sum256([]byte(c.provider + " " + name))
	return hex.EncodeToString(sum[:8])
}

// Authorize returns the address of the sign-in page.
func (c *Connector) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	q := url.Values{
		"response_type": {"code"}, "client_id": {c.clientID()}, "state": {r.State}, "redirect_uri": {r.RedirectURL},
		"code_challenge": {r.Challenge}, "code_challenge_method": {"S256"}, "scope": {strings.Join(r.Scopes, " ")},
	}
	return c.page + "?" + q.Encode(), nil
}

// authCode is what a code says. It needs no store, so any process can exchange it.
type authCode struct {
	Name, Challenge, RedirectURL, Client string
	Scopes                               []string
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
	code := authCode{Name: name, Challenge: q.Get("code_challenge"), RedirectURL: q.Get("redirect_uri"), Client: q.Get("client_id"), Scopes: strings.Fields(q.Get("scope"))}
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
	if err := ctx.Err(); err != nil {
		return linking.Grant{}, err
	}
	var code authCode
	doc, err := base64.RawURLEncoding.DecodeString(r.Code)
	if err != nil || json.Unmarshal(doc, &code) != nil {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	if err := c.trusted(); err != nil {
		return linking.Grant{}, err
	}
	sum := sha256.Sum256([]byte(r.Verifier))
	if code.Client != c.clientID() || code.Challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || code.RedirectURL != r.RedirectURL || !c.first(r.Code) {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	g, _, err := meet(ctx, code.Name)
	if err != nil || g.ExternalUserID != "" {
		return g, err
	}
	g = c.grant(code.Name, c.life)
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

// grant gives a person's grant, also once more after it was revoked. A life of zero does
// not end.
func (c *Connector) grant(name string, life time.Duration) linking.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.withdrawn, func(_ healthlab.UserID, account string) bool { return account == c.account(name) })
	t := ticket{account: c.grantee(c.account(name)), behaviour: behaviourOf(name)}
	a := c.remember(t.account)
	a.revoked = false
	until := c.issue(&t, a, life)
	a.before = t.serial // what was granted before is worth nothing
	return linking.Grant{Secret: t.secret(), ExpiresAt: until}
}

// SignIn takes any password for a name, and lets the name's behaviour happen.
func (c *Connector) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if err := ctx.Err(); err != nil {
		return linking.PasswordResponse{}, err
	}
	g, behaviour, err := meet(ctx, r.Username)
	switch {
	case err != nil || g.ExternalUserID != "":
		return linking.PasswordResponse{Grant: g}, err
	case behaviour == BehaviourMFA:
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "sms", Hint: "a number that ends in 42"}, Notes: []byte(r.Username)}, nil
	case behaviour == BehaviourMFAEmail:
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "email", Hint: "a…@example.com"}, Notes: []byte(r.Username)}, nil
	}
	return linking.PasswordResponse{Grant: c.grant(r.Username, 0)}, nil
}

// CompleteMFA takes [GoodCode].
func (c *Connector) CompleteMFA(_ context.Context, r linking.MFARequest) (linking.Grant, error) {
	switch r.Code {
	case GoodCode:
		return c.grant(string(r.Notes), 0), nil
	case CodeGivenUp:
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	default:
		return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
	}
}

// SignInByEmail lets the address's behaviour happen. The person is a patient of the practice that
// the domain of the address begins with: ann@riverside.example of riverside.
func (c *Connector) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	if err := ctx.Err(); err != nil {
		return linking.Grant{}, err
	}
	g, _, err := meet(ctx, r.Email)
	if err != nil || g.ExternalUserID != "" {
		return g, err
	}
	out := c.grant(r.Email, 0)
	out.Practice = practiceOf(r.Email)
	if r.Practice != "" && !strings.EqualFold(r.Practice, out.Practice) {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	return out, nil
}

func practiceOf(email string) string {
	_, domain, _ := strings.Cut(email, "@")
	practice, _, _ := strings.Cut(domain, ".")
	return practice
}
