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

// Behaviours of a sign-in. The text after the last plus sign of a name or address selects one: ann+refused,
// ann+down@example.com. Any other name signs in.
const (
	// BehaviourRefused means that the provider refuses the name, the password or the address.
	BehaviourRefused = "refused"
	// BehaviourExpired means that the provider requires a new password first.
	BehaviourExpired = "expired"
	// BehaviourDown means that the provider cannot be reached.
	BehaviourDown = "down"
	// BehaviourSlow means that the provider does not answer in time.
	BehaviourSlow = "slow"
	// BehaviourNonsense means that the provider's answer to the sign-in is malformed.
	BehaviourNonsense = "nonsense"
	// BehaviourRegion means that the provider does not serve the region.
	BehaviourRegion = "region"
	// BehaviourMFA means that the provider sends a code by text message. BehaviourMFAEmail means by e-mail.
	BehaviourMFA      = "mfa"
	BehaviourMFAEmail = "mfa_email"
)

// GoodCode is the correct code of every MFA challenge. CodeGivenUp makes the provider abort the sign-in. All other
// codes are wrong.
const (
	GoodCode    = "123456"
	CodeGivenUp = "999999"
)

// Behaviours after a successful sign-in.
const (
	// BehaviourEnded means that the grant has expired, and that the provider refuses to renew it.
	BehaviourEnded = "ended"
	// BehaviourStuck means that the grant has expired, and that the provider cannot be reached to renew it.
	BehaviourStuck = "stuck"
	// BehaviourWithdrawn means that the person has withdrawn the consent, so that no data is returned.
	BehaviourWithdrawn = "withdrawn"
	// BehaviourFlaky means that every second data request fails.
	BehaviourFlaky = "flaky"
	// BehaviourHanging means that every second data request times out.
	BehaviourHanging = "hanging"
	// BehaviourLimited means that every second data request exceeds the rate limit, and that the answer says when the
	// next request is allowed; with BehaviourCrowded the answer does not.
	BehaviourLimited = "limited"
	BehaviourCrowded = "crowded"
	// BehaviourGarbled means that every second answer is malformed.
	BehaviourGarbled = "garbled"
	// BehaviourLate means that data becomes available a day and a half after it was recorded.
	BehaviourLate = "late"
	// BehaviourResent means that data of the last hour is incomplete, and is sent again later.
	BehaviourResent = "resent"
	// BehaviourStrange means that some data must be refused: an unknown unit, a future time, data of another person,
	// two versions of one night.
	BehaviourStrange = "strange"
	// BehaviourTravelling means that the person is in another time zone every day.
	BehaviourTravelling = "travelling"
	// BehaviourHourly means that the provider rounds the times of manual entries down to the hour. The connector
	// combines the entries of each hour.
	BehaviourHourly = "hourly"
)

// Behaviours returns all behaviours that work with a sign-in by OAuth.
func Behaviours() []string {
	return []string{
		BehaviourRefused, BehaviourDown, BehaviourSlow, BehaviourNonsense, BehaviourEnded, BehaviourStuck, BehaviourWithdrawn, BehaviourFlaky, BehaviourHanging,
		BehaviourLimited, BehaviourCrowded, BehaviourGarbled, BehaviourLate, BehaviourResent, BehaviourStrange, BehaviourTravelling,
		BehaviourHourly,
	}
}

// Connector is an invented provider. It has every flow of signing in, grants that expire and are renewed, the data of
// [Provider], and every failure on demand: a [Behaviours] text after a plus sign in the name, as in ann+flaky. The same
// name is always the same account. Safe for concurrent use; make it with [NewConnector].
//
// A renewal returns a new grant, as OAuth with rotation does. Of each account, the newest grant and the one before it
// are valid; a sign-in invalidates all earlier grants. Each grant has a number, and a Connector keeps the numbers of
// the valid grants in memory. It accepts a grant with a higher number, because another process may have issued it.
type Connector struct {
	provider string
	page     string
	life     time.Duration
	now      func() time.Time
	pushKey  []byte
	client   linking.OAuthClient // zero for the OAuth client of the deployment
	*books
}

// books is the state of the provider. The connectors of all OAuth clients share it.
type books struct {
	mu       sync.Mutex
	used     map[string]bool // authorization codes that were used
	accounts map[string]*account
	// withdrawn maps users that have withdrawn their consent to their accounts.
	withdrawn map[healthlab.UserID]string
}

// account is the state of a person's account at the provider, for one OAuth client.
type account struct {
	// last is the number of the newest grant, and before that of the previous one.
	last, before int64
	revoked      bool
	// asked counts the data requests of the account by resource.
	asked map[string]int
}

// ConnectorOptions adjusts a Connector. The zero value, and nil, mean the defaults.
type ConnectorOptions struct {
	// Page is the address of the provider's sign-in page. Default
	// https://provider.example/sign-in, which does not exist: use [Connector.Approve].
	Page string
	// Life is the lifetime of an OAuth grant. Default 1 hour.
	Life time.Duration
	// PushKey signs pushed messages. Without a key, the provider pushes none.
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

// DetailPushKey names the detail of a team's client that holds the key which signs messages to that client. Without
// the detail, no messages are pushed.
const DetailPushKey = "push_key"

// ForClient returns a connector for another OAuth client. Any id is accepted, and any secret without [BehaviourRefused]
// after a plus sign. Codes and grants are valid only for the client that got them.
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
			p.Add("unknown", "must be left out: the OAuth client of this provider has no detail of this name", "details", name[:min(len(name), 64)])
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

// accountKey returns the key of the state of an account for the connector's OAuth client.
func (c *Connector) accountKey(account string) string {
	if c.client.ID == "" {
		return account
	}
	sum := sha256.Sum256([]byte(c.client.ID))
	return account + "." + hex.EncodeToString(sum[:8])
}

func (c *Connector) known(t *ticket) bool {
	account, _, _ := strings.Cut(t.account, ".")
	return t.account == c.accountKey(account)
}

func (c *Connector) trusted() error {
	if behaviourOf(c.client.Secret) == BehaviourRefused {
		return errClient
	}
	return nil
}

var errClient = errors.New("the sandbox provider refuses the OAuth client")

// Connectors returns a connector for every provider at which people sign in, by slug.
func Connectors(p *healthdata.Providers, opts *ConnectorOptions) map[string]linking.ProviderConnector {
	out := map[string]linking.ProviderConnector{}
	for _, v := range p.List("") {
		if v.Class == "cloud" {
			out[v.Slug] = NewConnector(v.Slug, opts).Flows()
		}
	}
	return out
}

// Flows returns the connector as a [linking.ProviderConnector] with all flows of signing in. It listens to pushed
// messages only if there is a key that signs them.
func (c *Connector) Flows() linking.ProviderConnector {
	all := linking.ProviderConnector{OAuth: c, Password: c, Email: c, Revoker: c, Refresher: c, TokenCodec: c, Puller: c, ForClient: c.ForClient}
	if len(c.pushKey) > 0 {
		all.Listener, all.ClientListener = c, true
	}
	return all
}

var errDown = errors.New("the sandbox provider is down")

// behaviourOf returns the text after the last plus sign of a name or address.
func behaviourOf(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(name, '+'); i >= 0 {
		return name[i+1:]
	}
	return ""
}

// applyBehaviour starts a sign-in with a name, and applies the behaviour in the name. It returns an error if the
// sign-in fails, and a malformed grant for [BehaviourNonsense]; otherwise the grant is empty.
func applyBehaviour(ctx context.Context, name string) (g linking.Grant, behaviour string, err error) {
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

// authCode is the content of an authorization code. The code itself carries it, so any process can exchange the code.
type authCode struct {
	Name, Challenge, RedirectURL, Client string
	Scopes                               []string
}

// Approve acts as the person who agrees at the sign-in page. page is the address that [Connector.Authorize] returned,
// and name the account. It returns the address to which the browser is redirected. granted limits the granted scopes;
// without it all requested scopes are granted.
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

// Deny acts as the person who refuses at the sign-in page, whose address [Connector.Authorize] returned. It returns the
// address to which the browser is redirected.
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

// Exchange accepts a code once, with the verifier and redirect address of its request.
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
	if code.Client != c.clientID() || code.Challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || code.RedirectURL != r.RedirectURL || !c.markUsed(r.Code) {
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	g, _, err := applyBehaviour(ctx, code.Name)
	if err != nil || g.ExternalUserID != "" {
		return g, err
	}
	g = c.grant(code.Name, c.life)
	g.ExternalUserID = c.account(code.Name)
	g.Scopes = append([]string{}, code.Scopes...)
	return g, nil
}

// markUsed marks an authorization code as used, and reports whether it was unused.
func (c *Connector) markUsed(code string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[code] {
		return false
	}
	c.used[code] = true
	return true
}

// grant returns a new grant after a sign-in. It invalidates all earlier grants of the account, and ends revocations and
// withdrawals. With a life of zero the grant does not expire, except with [BehaviourEnded] and [BehaviourStuck].
func (c *Connector) grant(name string, life time.Duration) linking.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.withdrawn, func(_ healthlab.UserID, account string) bool { return account == c.account(name) })
	t := ticket{account: c.accountKey(c.account(name)), behaviour: behaviourOf(name)}
	a := c.accountState(t.account)
	a.revoked = false
	until := c.issue(&t, a, life)
	a.before = t.serial // invalidates all earlier grants
	return linking.Grant{Secret: t.secret(), ExpiresAt: until}
}

// SignIn accepts any password for a name, and applies the behaviour in the name.
func (c *Connector) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if err := ctx.Err(); err != nil {
		return linking.PasswordResponse{}, err
	}
	g, behaviour, err := applyBehaviour(ctx, r.Username)
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

// CompleteMFA accepts [GoodCode].
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

// SignInByEmail applies the behaviour in the address. The first part of the address's domain names the medical practice
// whose patient the person is: riverside for ann@riverside.example.
func (c *Connector) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	if err := ctx.Err(); err != nil {
		return linking.Grant{}, err
	}
	g, _, err := applyBehaviour(ctx, r.Email)
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
