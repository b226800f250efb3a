package linking

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Service is linking as a host calls it. Safe for concurrent use.
type Service struct {
	store  Store
	users  *healthdata.Service
	roster roster
	seal   healthlab.Sealer
	signer signer
	opts   Options
}

// Options adjusts a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Environment is sandbox or production. It shows in codes and in the address of the link
	// pages. Required.
	Environment healthlab.Environment
	// Region is us or eu. Default us.
	Region string
	// BaseURL is where the service answers, without a slash at its end. The addresses
	// of callbacks begin with it, and tokens are good for it alone. Default
	// http://localhost:8080.
	BaseURL string
	// WebURL is the address of the link pages. Default BaseURL + "/link". Pages that are
	// ours are on the host of BaseURL, so that a callback finds the cookie of the browser.
	WebURL string
	// AppScheme and AppHost make the URL that opens the companion app. Defaults
	// healthlab and link.
	AppScheme, AppHost string
	// Settings returns the settings of a team. Default: the zero settings for all.
	Settings func(context.Context, healthlab.TeamID) (TeamSettings, error)
	// Clients keeps the clients that teams have registered at providers themselves. Nil:
	// there are only the deployment's. A [Keeper] needs the same.
	Clients TeamClients
	// Timeout bounds each call of a connector. Default 45 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of sessions. Default UUID version 7.
	NewID func() uuid.UUID
	// Random is where codes, tokens and verifiers come from. Default crypto/rand.Reader;
	// anything else is for tests.
	Random io.Reader
	// Log receives what a person should look at. Default: slog.Default().
	Log *slog.Logger
}

// TeamSettings are the choices of a team.
type TeamSettings struct {
	// RejectDuplicates refuses an account that another user of the team has connected.
	RejectDuplicates bool
	// Redirects says where the link pages may send a person.
	Redirects RedirectRules
	// Scopes says by provider what a person is asked for; a provider without an entry
	// is asked for all of its scopes, none of which is a must.
	Scopes map[string]ScopeRequirement
	// OwnOAuth lists the providers for which the deployment's OAuth credentials are the
	// team's own: those of team_oauth that its people can link, and all whose connections
	// can move in bulk. What a team has credentials for in [Options].Clients is added.
	OwnOAuth []string
	// Bulk enables operations on many connections at once.
	Bulk bool
	// PagesOnly refuses sign-ins at a provider's own page that do not begin on the link
	// pages, so that every callback is bound to the browser that left.
	PagesOnly bool
	// CallbackURLs says by provider which callback address the team has registered in
	// place of ours.
	CallbackURLs map[string]string
	// Practice is the only one whose patients can be connected by their address, where a
	// provider has practices; empty for any. What is connected stays.
	Practice string
	// Brand is what the link pages look like.
	Brand Brand
	// Consent is the text that people agree to; the zero value for none.
	Consent healthdata.ConsentText

	own map[string]TeamClient // the current ones by provider
}

// Brand is what a person sees of the team. Empty fields are left out.
type Brand struct {
	CompanyName string `json:"company_name,omitempty"`
	LogoURL     string `json:"logo_url,omitempty"`
	Color       string `json:"brand_color,omitempty"`
	// Website is an address of http or https. SupportEmail and SupportContact are where
	// people get help, and Address is where the company is.
	Website        string `json:"company_website,omitempty"`
	SupportEmail   string `json:"support_email,omitempty"`
	SupportContact string `json:"support_contact,omitempty"`
	Address        string `json:"company_address,omitempty"`
}

// minSigningKey is the least length of a key that signs tokens.
const minSigningKey = 32

// New returns a Service on a store, the users whose accounts are linked, the connectors
// by provider slug, a sealer for what providers give, and the keys that sign link
// tokens: the first signs, all of them are good, and each has at least 32 random bytes.
// Invalid if one of them is missing or too short, or a connector is for a provider that
// is not configured. It starts nothing.
func New(store Store, users *healthdata.Service, connectors map[string]ProviderConnector, seal healthlab.Sealer, keys [][]byte,
	opts *Options,
) (*Service, error) {
	if store == nil || users == nil || seal == nil || len(keys) == 0 {
		return nil, fmt.Errorf("%w: linking needs a store, users, a sealer and a key", healthlab.Invalid)
	}
	for _, k := range keys {
		if len(k) < minSigningKey {
			return nil, fmt.Errorf("%w: a key that signs tokens has at least %d bytes", healthlab.Invalid, minSigningKey)
		}
	}
	for slug := range connectors {
		if users.Providers().Get(slug) == nil {
			return nil, fmt.Errorf("%w: a connector for a provider that is not configured", healthlab.Invalid)
		}
	}
	s := &Service{store: store, users: users, seal: seal}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.Environment.Check(); err != nil {
		return nil, err
	}
	s.opts.setDefaults()
	s.roster = newRoster(connectors, s.opts.Clients, seal)
	if s.opts.Region != "us" && s.opts.Region != "eu" {
		return nil, fmt.Errorf("%w: a region is us or eu", healthlab.Invalid)
	}
	s.signer = signer{keys: slices.Clone(keys), audience: s.opts.BaseURL + "/v2/link", random: s.opts.Random}
	return s, nil
}

func (o *Options) setDefaults() {
	orText := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	orText(&o.Region, "us")
	orText(&o.BaseURL, "http://localhost:8080")
	orText(&o.WebURL, o.BaseURL+"/link")
	orText(&o.AppScheme, "healthlab")
	orText(&o.AppHost, "link")
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (TeamSettings, error) { return TeamSettings{}, nil }
	}
	if o.Timeout <= 0 {
		o.Timeout = 45 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// now reads the clock, once for each operation.
func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// CreateCode makes a link code for a user. expires is nil for an hour.
//
// Errors: Invalid (it expires in the past, or later than in seven days), NotFound (the
// team has no such user).
func (s *Service) CreateCode(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, expires *time.Time) (CodeOffer, error) {
	at := s.now()
	until, err := codeExpiry(expires, at)
	if err == nil {
		err = s.mustHave(ctx, team, user, healthlab.NotFound)
	}
	if err != nil {
		return CodeOffer{}, fmt.Errorf("create link code: %w", err)
	}
	c := Code{Team: team, User: user, CreatedAt: at, ExpiresAt: until}
	// With a million codes open, one in 4,000 new ones is taken: five in a row never are.
	for range 5 {
		if c.Text, err = newCodeText(s.opts.Random, codePrefix(s.opts.Environment, s.opts.Region)); err != nil {
			break
		}
		if err = s.store.InsertCode(ctx, c); !errors.Is(err, healthlab.Conflict) {
			break
		}
	}
	if err != nil {
		return CodeOffer{}, fmt.Errorf("create link code: %w", err)
	}
	link := s.opts.AppScheme + "://" + s.opts.AppHost + "?code=" + c.Text
	return CodeOffer{Code: c.Text, ExchangeURL: link, ExpiresAt: healthlab.At(until)}, nil
}

// mustHave fails with missing if the team has no such live user.
func (s *Service) mustHave(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, missing error) error {
	ok, err := s.users.HasUser(ctx, team, user)
	if err == nil && !ok {
		err = missing
	}
	return err
}

// Redeem uses a link code up and returns whom it binds. client is whatever tells one
// client from another, best its network address (of IPv6, the first 64 bits): it is kept
// only after a wrong try, for a few hours, as a hash under the key that signs tokens, so
// that no address can be read out of it. While many guess at the team's codes, a client
// that has failed lately may find no such code where there is one; a new code works.
//
// Errors: [*TooManyTries]; a [*healthlab.RuleError] of type [RuleCodeInvalid],
// [RuleCodeExpired] or [RuleCodeConsumed].
func (s *Service) Redeem(ctx context.Context, team healthlab.TeamID, client, code string) (healthlab.UserID, error) {
	got, err := s.redeem(ctx, team, client, code)
	if err != nil {
		return healthlab.UserID{}, fmt.Errorf("redeem link code: %w", err)
	}
	return got.User, nil
}

// redeem uses a code up. A zero team finds that of any team.
func (s *Service) redeem(ctx context.Context, team healthlab.TeamID, client, code string) (Code, error) {
	at := s.now()
	if !codeForm.MatchString(code) {
		code = "" // no team has it, and the try counts
	}
	var got Code
	var verdict error
	err := s.store.TryCode(ctx, team, s.clientKey(client), code, func(t *Try) {
		got, verdict = t.Redeem(at)
	})
	if err == nil {
		err = verdict
	}
	if err == nil {
		err = s.mustHave(ctx, got.Team, got.User, errCode())
	}
	return got, err
}

// Exchange is [Service.Redeem] for a companion app, which has a code and no key of a team.
// It returns the team and the user that the code binds. Wrong tries are counted for all
// teams together. Errors as of Redeem.
func (s *Service) Exchange(ctx context.Context, client, code string) (healthlab.TeamID, healthlab.UserID, error) {
	got, err := s.redeem(ctx, healthlab.TeamID{}, client, code)
	if err != nil {
		return healthlab.TeamID{}, healthlab.UserID{}, fmt.Errorf("exchange link code: %w", err)
	}
	return got.Team, got.User, nil
}

// clientKey is what a client is known by.
func (s *Service) clientKey(client string) (out [32]byte) {
	copy(out[:], mac(s.signer.keys[0], "client "+client))
	return out
}

// CreateToken makes a link token and its session.
//
// Errors: Invalid (a [*healthlab.InvalidError] with every problem by field), a
// [*healthlab.RuleError] of type [RuleInvalidUserID] or [RuleInvalidProvider].
func (s *Service) CreateToken(ctx context.Context, team healthlab.TeamID, n NewToken) (TokenOffer, error) {
	offer, err := s.createToken(ctx, team, n)
	if err != nil {
		return TokenOffer{}, fmt.Errorf("create link token: %w", err)
	}
	return offer, nil
}

func (s *Service) createToken(ctx context.Context, team healthlab.TeamID, n NewToken) (TokenOffer, error) {
	at := s.now()
	settings, err := s.settings(ctx, team)
	if err != nil {
		return TokenOffer{}, err
	}
	var p healthlab.Problems
	n.check(&p, func(slug string) bool { return s.users.Providers().Get(slug) != nil }, settings.Redirects)
	if err := p.Err(); err != nil {
		return TokenOffer{}, err
	}
	if err := s.mustHave(ctx, team, n.User, errUser()); err != nil {
		return TokenOffer{}, err
	}
	if n.Provider != "" && !s.linkable(s.users.Providers().Get(n.Provider), &settings) {
		return TokenOffer{}, errProvider()
	}
	n.FilterOnProviders = slices.Clone(n.FilterOnProviders)
	x := Session{
		ID: SessionID{s.opts.NewID()}, Team: team, User: n.User, State: lifecycle.Initial(), Options: n,
		CreatedAt: at, ExpiresAt: at.Add(TokenLife),
	}
	token, err := s.signer.issue(&x)
	if err != nil {
		return TokenOffer{}, err
	}
	x.Token = hashToken(token)
	if err := s.store.InsertSession(ctx, x); err != nil {
		return TokenOffer{}, err
	}
	return TokenOffer{
		Token: token, WebURL: webURL(s.opts.WebURL, token, s.opts.Environment, s.opts.Region),
		Session: x.ID, ExpiresAt: x.ExpiresAt,
	}, nil
}

// Open returns the session behind a token that works.
//
// Errors: a [*healthlab.RuleError] of type [RuleMissingLinkToken] or
// [RuleInvalidUserID]; an [*Error] of type [InvalidToken], [TokenExpired] or
// [TokenConsumed], and with the last two the session nevertheless.
func (s *Service) Open(ctx context.Context, token string) (Session, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return x, fmt.Errorf("open link session: %w", err)
	}
	return x, nil
}

// TokenTeam returns the team whose link token this is, if the token is ours. It may have
// expired, or be used up.
func (s *Service) TokenTeam(token string) (healthlab.TeamID, bool) {
	c, err := s.signer.read(token)
	return c.Team, err == nil
}

// TokenUser returns the team and the user of a link token, as [Service.TokenTeam] does.
func (s *Service) TokenUser(token string) (healthlab.TeamID, healthlab.UserID, bool) {
	c, err := s.signer.read(token)
	return c.Team, c.User, err == nil
}

func (s *Service) open(ctx context.Context, token string, at time.Time) (Session, error) {
	if token == "" {
		return Session{}, rule(RuleMissingLinkToken, "a link token is needed")
	}
	c, err := s.signer.read(token)
	if err != nil {
		return Session{}, err
	}
	x, err := s.store.Session(ctx, c.Team, c.Subject)
	if errors.Is(err, healthlab.NotFound) {
		return Session{}, fail(InvalidToken)
	}
	if err != nil {
		return Session{}, err
	}
	sum := hashToken(token)
	if subtle.ConstantTimeCompare(x.Token[:], sum[:]) != 1 {
		return Session{}, fail(InvalidToken)
	}
	if err := x.usable(at); err != nil {
		if x.State != StateExpired && x.State != StateConnected {
			x = s.expire(ctx, x)
		}
		return x, err
	}
	if err := s.mustHave(ctx, x.Team, x.User, errUser()); err != nil {
		return Session{}, err
	}
	return x, nil
}

// expire records that a session's time is over. The token does not work either way.
func (s *Service) expire(ctx context.Context, x Session) Session {
	done, err := s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		x.drop()
		return x.on(Expire)
	})
	if err != nil {
		return x
	}
	return done
}

// Start notes that the link pages are open, and which provider was chosen; empty if none
// is yet. Errors as of [Service.Open], and RuleInvalidProvider.
func (s *Service) Start(ctx context.Context, token, provider string) (Session, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err == nil && provider != "" {
		if err = x.permits(provider); err == nil {
			_, _, err = s.offered(ctx, x.Team, provider)
		}
	}
	if err == nil {
		x, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
			if err := x.usable(at); err != nil {
				return err
			}
			if provider != "" {
				x.Provider = provider
			}
			x.drop()
			return x.on(Start)
		})
	}
	if err != nil {
		return Session{}, fmt.Errorf("start link session: %w", err)
	}
	return x, nil
}

// Close notes that the person closed the link pages. Opening them again goes on. Errors
// as of [Service.Open].
func (s *Service) Close(ctx context.Context, token string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err == nil {
		x, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
			if err := x.usable(at); err != nil {
				return err
			}
			if x.State == StateCancelled {
				return nil
			}
			x.drop()
			return x.on(Close)
		})
	}
	if err != nil {
		return Result{}, fmt.Errorf("close link session: %w", err)
	}
	return s.failed(ctx, x, UserCancelled), nil
}

// flows of sign-in, as a provider's record names them.
const (
	authOAuth     = "oauth"
	authTeamOAuth = "team_oauth"
	authPassword  = "password"
	authEmail     = "email"
)

// linkable reports whether a team's people can link a provider: it is in the cloud, there
// is a connector for its flow, and where the team must have its own credentials, it has.
func (s *Service) linkable(p *healthdata.Provider, settings *TeamSettings) bool {
	if p == nil || p.Class != classCloud {
		return false
	}
	c := s.roster.connectors[p.Slug]
	switch p.AuthType {
	case authOAuth:
		return c.OAuth != nil
	case authTeamOAuth:
		return c.OAuth != nil && (settings.OwnClient(p.Slug) != "" || slices.Contains(settings.OwnOAuth, p.Slug))
	case authPassword:
		return c.Password != nil
	case authEmail:
		return c.Email != nil
	default:
		return false
	}
}

// offered returns a provider that the team's people can link by one of the flows; any if
// none is named.
func (s *Service) offered(ctx context.Context, team healthlab.TeamID, slug string, flows ...string) (*healthdata.Provider, *TeamSettings, error) {
	settings, err := s.settings(ctx, team)
	if err != nil {
		return nil, nil, err
	}
	p := s.users.Providers().Get(slug)
	if !s.linkable(p, &settings) || (len(flows) > 0 && !slices.Contains(flows, p.AuthType)) {
		return nil, nil, errProvider()
	}
	return p, &settings, nil
}

// Providers returns what the team's people can link, by name. It is the same whatever
// the token filters. Errors as of [Service.Open].
func (s *Service) Providers(ctx context.Context, token string) ([]healthdata.Provider, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	settings, err := s.settings(ctx, x.Team)
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	return slices.DeleteFunc(s.users.Providers().List(""), func(p healthdata.Provider) bool {
		return !s.linkable(&p, &settings)
	}), nil
}

// Regions returns what a person can choose as region at a provider, the default first;
// empty if there is nothing to choose.
func (s *Service) Regions(p *healthdata.Provider) []string { return p.Regions[s.opts.Region] }

// Page is what the link pages begin with.
type Page struct {
	Session Session
	Brand   Brand
	// Consent is the text that the person agrees to; the zero value for none.
	Consent healthdata.ConsentText
	// Providers are those that the pages offer: what is linkable, narrowed by what the
	// token says.
	Providers []healthdata.Provider
	// OnDevice are the on-device stores, which a companion app connects with a code, and
	// Manual what a person enters; both narrowed in the same way. Pages may offer them.
	OnDevice, Manual []healthdata.Provider
}

// Page returns what the link pages begin with. Errors as of [Service.Open].
func (s *Service) Page(ctx context.Context, token string) (Page, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return Page{}, fmt.Errorf("link page: %w", err)
	}
	settings, err := s.settings(ctx, x.Team)
	if err != nil {
		return Page{}, fmt.Errorf("link page: %w", err)
	}
	page := Page{Session: x, Brand: settings.Brand, Consent: settings.Consent}
	o := x.Options
	for _, p := range s.users.Providers().List("") {
		if o.Provider != "" && p.Slug != o.Provider || o.FilterOnProviders != nil && !slices.Contains(o.FilterOnProviders, p.Slug) {
			continue
		}
		switch {
		case s.linkable(&p, &settings):
			page.Providers = append(page.Providers, p)
		case p.Class == classStore:
			page.OnDevice = append(page.OnDevice, p)
		case p.Class == classManual:
			page.Manual = append(page.Manual, p)
		}
	}
	return page, nil
}

// Brand returns how a team's pages look, also where its token does not work any more.
func (s *Service) Brand(ctx context.Context, team healthlab.TeamID) (Brand, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return Brand{}, fmt.Errorf("brand: settings: %w", err)
	}
	return settings.Brand, nil
}

// Settings returns the settings of a team.
func (s *Service) Settings(ctx context.Context, team healthlab.TeamID) (TeamSettings, error) {
	return s.settings(ctx, team)
}

// Environment is where the service runs.
func (s *Service) Environment() healthlab.Environment { return s.opts.Environment }

// BaseURL is where the service answers.
func (s *Service) BaseURL() string { return s.opts.BaseURL }

// WebURL is the address of the link pages.
func (s *Service) WebURL() string { return s.opts.WebURL }

// callbackURL is where a provider sends the person back to.
func (s *Service) callbackURL(settings *TeamSettings, provider string) string {
	if own, ok := settings.own[provider]; ok && own.RedirectURL != "" {
		return own.RedirectURL
	} else if u := settings.CallbackURLs[provider]; u != "" && !ok {
		return u
	}
	return s.ourCallback(provider)
}

func (s *Service) ourCallback(provider string) string {
	return s.opts.BaseURL + "/v2/link/connect/" + url.PathEscape(provider)
}
