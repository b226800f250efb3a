package linking

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// step is one try under way.
type step struct {
	at       time.Time
	session  Session
	n        int
	provider *healthdata.Provider
	settings *TeamSettings
	conn     ProviderConnector
	client   string // of the team, empty for the deployment's
}

func (s *Service) plan(p *step) scopePlan {
	var want *ScopeRequirement
	if w, ok := p.settings.Scopes[p.provider.Slug]; ok {
		want = &w
	}
	return planScopes(p.provider, p.conn.Minimum, want)
}

// oauthNotes is what waits for the callback, sealed.
type oauthNotes struct {
	Verifier, RedirectURL string
	Scopes                []string
	// Client is by which client of the team the person was asked; empty for the
	// deployment's.
	Client string `json:",omitempty"`
	// Browser is the hash of what the browser that began must show; empty if any may
	// come back.
	Browser []byte
}

// Departure is how a person leaves for a provider's own page.
type Departure struct {
	Provider string
	// Browser is a secret of the browser that leaves, as [Service.NewBrowser] makes one.
	// The callback works only with the same one. Empty where our pages are not involved:
	// the package's comment says what that means.
	Browser string
}

// Authorization is where to send a person who links by OAuth.
type Authorization struct {
	URL      string
	Provider healthdata.Provider
}

// browserBytes is how many random bytes a browser's secret has.
const browserBytes = 32

// NewBrowser returns a random secret for a cookie, by which a browser is recognised.
func (s *Service) NewBrowser() (string, error) {
	var b [browserBytes]byte
	if _, err := io.ReadFull(s.opts.Random, b[:]); err != nil {
		return "", fmt.Errorf("draw browser secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// KnowsBrowser reports whether a text can be a secret of [Service.NewBrowser].
func KnowsBrowser(secret string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	return err == nil && len(b) == browserBytes
}

func hashBrowser(secret string) []byte {
	sum := sha256.Sum256([]byte("link browser " + secret))
	return sum[:]
}

// Authorize begins a sign-in at the provider's own page. A try that is under way, at any
// provider, is given up. The token travels as the state, bound to the session and, where
// d says so, to the browser.
//
// Errors: as of [Service.Open]; a [*healthlab.RuleError] of type [RuleInvalidProvider],
// also without a browser where the team's people link on our pages alone, or
// [RuleTooManyTries]; an [*Error] of type [ProviderAPIError].
func (s *Service) Authorize(ctx context.Context, token string, d Departure) (Authorization, error) {
	t, err := s.begin(ctx, token, d.Provider, authOAuth, authTeamOAuth)
	if err != nil {
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	notes := oauthNotes{RedirectURL: s.callbackURL(t.settings, d.Provider), Scopes: s.plan(t).ask, Client: t.client}
	switch {
	case d.Browser != "":
		notes.Browser = hashBrowser(d.Browser)
	case t.settings.PagesOnly:
		return Authorization{}, fmt.Errorf("authorize: %w", errProvider())
	}
	var b [32]byte
	if _, err := io.ReadFull(s.opts.Random, b[:]); err != nil {
		return Authorization{}, fmt.Errorf("authorize: draw verifier: %w", err)
	}
	notes.Verifier = base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(notes.Verifier))
	where, err := ask(ctx, s, func(ctx context.Context) (string, error) {
		return t.conn.OAuth.Authorize(ctx, AuthorizeRequest{
			State: token, RedirectURL: notes.RedirectURL, Scopes: slices.Clone(notes.Scopes),
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
		})
	})
	if u, bad := url.Parse(where); err != nil || bad != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		_, err := s.settle(ctx, t, &Error{Type: ProviderAPIError, Cause: err})
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	doc, err := json.Marshal(notes)
	if err == nil {
		err = s.wait(ctx, t, HandOut, doc, Challenge{})
	}
	if err != nil {
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	return Authorization{URL: where, Provider: *t.provider}, nil
}

// Callback is what a provider sent a person back with.
type Callback struct {
	// Provider is whose callback it is.
	Provider string
	// State is the token.
	State string
	// Code is what is to be exchanged; empty if the person was refused.
	Code string
	// Error is the provider's own error parameter; any text means that it refused.
	Error string
	// Browser is the secret of the browser that came back; empty if it has none.
	Browser string
}

// Callback ends a sign-in at the provider's own page. What fails is in the Result, the
// errors of the token too; the error is for what a person cannot help. A callback works
// once: one that comes again fails and changes nothing. One that comes in another
// browser than the one that left ends the try with [TokenNotValidated]: a person was made
// to finish what another began.
func (s *Service) Callback(ctx context.Context, c Callback) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, c.State, at)
	if err != nil {
		return s.result(ctx, x, err)
	}
	t := &step{at: at, session: x}
	if t.provider, t.settings, err = s.offered(ctx, x.Team, c.Provider, authOAuth, authTeamOAuth); err != nil {
		return s.result(ctx, x, fail(TokenNotValidated))
	}
	var box healthlab.Sealed
	_, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		if err := x.usable(at); err != nil {
			return err
		}
		if x.State != StateAwaitingProvider || x.Provider != c.Provider || x.Pending.Box == nil {
			return fail(TokenNotValidated)
		}
		box, t.n = x.Pending, x.Step
		x.Pending = healthlab.Sealed{}
		return nil
	})
	if err != nil {
		return s.result(ctx, x, err)
	}
	var notes oauthNotes
	doc, err := s.seal.Open(ctx, box, stepPlace(&x, t.n))
	if err == nil {
		err = json.Unmarshal(doc, &notes)
	}
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("link callback: %w", err)
	case notes.Browser != nil && !hmac.Equal(notes.Browser, hashBrowser(c.Browser)):
		return s.settled(ctx, t, fail(TokenNotValidated))
	}
	t.client = notes.Client
	if t.conn, err = s.roster.as(ctx, x.Team, c.Provider, t.client); err != nil {
		return s.settled(ctx, t, &Error{Type: ProviderAPIError, Cause: err})
	}
	if c.Error != "" || c.Code == "" || len(c.Code) > 4096 {
		return s.settled(ctx, t, fail(ProviderCredentialError))
	}
	grant, err := ask(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.OAuth.Exchange(ctx, ExchangeRequest{
			Code: c.Code, RedirectURL: notes.RedirectURL, Verifier: notes.Verifier, Scopes: notes.Scopes,
		})
	})
	if err != nil {
		return s.settled(ctx, t, blame(err, ProviderCredentialError, RequiredScopesNotGranted))
	}
	if grant.Scopes == nil {
		grant.Scopes = notes.Scopes // what was asked for, whatever the team asks for by now
	}
	grant.Client = t.client
	s.proven(ctx, t, notes.RedirectURL)
	return s.connect(ctx, t, grant)
}

// PasswordSignIn is what a person filled in.
type PasswordSignIn struct {
	Provider           string
	Username, Password string
	// Region is where the account is; empty for the provider's default.
	Region string
}

// SignIn signs in with a name and a password. What fails in front of the person is in
// the Result; so are the errors of a token, but for its absence.
//
// Errors: a [*healthlab.RuleError] of type [RuleMissingLinkToken], [RuleInvalidProvider]
// or [RuleTooManyTries].
func (s *Service) SignIn(ctx context.Context, token string, in PasswordSignIn) (Result, error) {
	t, err := s.begin(ctx, token, in.Provider, authPassword)
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	region, err := s.region(t.provider, in.Region)
	if err != nil {
		return s.settled(ctx, t, err)
	}
	got, err := ask(ctx, s, func(ctx context.Context) (SignedIn, error) {
		return t.conn.Password.SignIn(ctx, PasswordRequest{Username: in.Username, Password: in.Password, Region: region})
	})
	if err != nil {
		return s.settled(ctx, t, blame(err, ProviderCredentialError, ProviderPasswordExpired, UnsupportedRegion))
	}
	if got.Challenge == nil {
		if got.Grant.ExternalUserID == "" {
			got.Grant.ExternalUserID = in.Username
		}
		return s.connect(ctx, t, got.Grant)
	}
	notes, err := json.Marshal(mfaNotes{Username: in.Username, Notes: got.Notes})
	if err == nil && !plain(got.Challenge.Method, got.Challenge.Hint) {
		return s.settled(ctx, t, fail(ProviderAPIError))
	}
	if err == nil {
		err = s.wait(ctx, t, AskCode, notes, *got.Challenge)
	}
	if err != nil {
		return s.result(ctx, t.session, err)
	}
	return Result{
		State: ResultPending, Provider: in.Provider, RedirectURL: t.session.Options.RedirectURL, Challenge: got.Challenge,
	}, nil
}

// mfaNotes is what waits for a code, sealed.
type mfaNotes struct {
	Username string
	Notes    []byte
}

// CompleteMFA answers the code that a provider asked for. After a wrong one the same
// token may try again. Errors and results as of [Service.SignIn]; the provider must be
// the one that asked, else it is a [*healthlab.RuleError] of type [RuleInvalidProvider].
func (s *Service) CompleteMFA(ctx context.Context, token, provider, code string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err != nil {
		return s.result(ctx, x, err)
	}
	t := &step{at: at, session: x, n: x.Step}
	if t.provider, t.settings, err = s.offered(ctx, x.Team, provider, authPassword); err != nil {
		return Result{}, fmt.Errorf("complete sign-in: %w", err)
	}
	t.conn = s.roster.connectors[provider]
	if x.State != StateAwaitingMFA || x.Pending.Box == nil {
		return s.result(ctx, x, fail(TokenNotValidated))
	}
	if x.Provider != provider {
		return Result{}, fmt.Errorf("complete sign-in: %w", errProvider())
	}
	// Every code that is entered counts, so that it cannot be guessed through us.
	x, err = s.store.UpdateSession(ctx, x.Team, x.ID, func(x *Session) error {
		if err := x.usable(at); err != nil {
			return err
		}
		if x.State != StateAwaitingMFA || x.Step != t.n {
			return fail(TokenNotValidated)
		}
		if len(x.Attempts) >= maxAttempts {
			return &healthlab.RuleError{Kind: healthlab.Exhausted, Type: RuleTooManyTries, Msg: "too many tries with this link token; create a new one"}
		}
		x.Step++
		x.Attempts = append(x.Attempts, Attempt{At: at, Provider: provider})
		return nil
	})
	if err != nil {
		return s.result(ctx, t.session, err)
	}
	box, sealedAs := x.Pending, t.session.ID
	t.session, t.n = x, x.Step
	var notes mfaNotes
	doc, err := s.seal.Open(ctx, box, mfaPlace(sealedAs))
	if err == nil {
		err = json.Unmarshal(doc, &notes)
	}
	if err != nil {
		return Result{}, fmt.Errorf("complete sign-in: %w", err)
	}
	grant, err := ask(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.Password.CompleteMFA(ctx, MFARequest{Code: code, Notes: notes.Notes})
	})
	if err != nil {
		return s.settled(ctx, t, blame(err, IncorrectMFACode, ProviderCredentialError, ProviderPasswordExpired))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = notes.Username
	}
	return s.connect(ctx, t, grant)
}

// EmailSignIn is what a person filled in.
type EmailSignIn struct {
	Provider, Email string
	// Region is where the account is; empty for the provider's default.
	Region string
}

// SignInByEmail connects an address that is known to the provider. Errors and results as
// of [Service.SignIn].
func (s *Service) SignInByEmail(ctx context.Context, token string, in EmailSignIn) (Result, error) {
	t, err := s.begin(ctx, token, in.Provider, authEmail)
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	region, err := s.region(t.provider, in.Region)
	if err != nil {
		return s.settled(ctx, t, err)
	}
	grant, err := ask(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.Email.SignInByEmail(ctx, EmailRequest{Email: in.Email, Region: region, Practice: t.settings.Practice})
	})
	if err != nil {
		return s.settled(ctx, t, blame(err, ProviderCredentialError, UnsupportedRegion))
	}
	if only := t.settings.Practice; only != "" && grant.Practice != "" && !strings.EqualFold(only, grant.Practice) {
		return s.settled(ctx, t, fail(ProviderCredentialError))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = in.Email
	}
	return s.connect(ctx, t, grant)
}

// begin opens a token and starts a try.
func (s *Service) begin(ctx context.Context, token, provider string, flows ...string) (*step, error) {
	t := &step{at: s.now()}
	x, err := s.open(ctx, token, t.at)
	if err != nil {
		return nil, err
	}
	if err := x.permits(provider); err != nil {
		return nil, err
	}
	if t.provider, t.settings, err = s.offered(ctx, x.Team, provider, flows...); err != nil {
		return nil, err
	}
	if own, ok := t.settings.own[provider]; ok {
		t.client = own.ClientID
		t.conn, err = s.roster.by(ctx, &own)
	} else {
		t.conn = s.roster.connectors[provider]
	}
	if err != nil {
		return nil, err
	}
	if err := s.realUser(ctx, &x); err != nil {
		return nil, err
	}
	return t, s.beginTry(ctx, t, x)
}

// realUser refuses a user whose data is made up, before the person goes anywhere.
func (s *Service) realUser(ctx context.Context, x *Session) error {
	u, err := s.users.User(ctx, x.Team, x.User)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(u.Connections, func(c healthdata.Connection) bool {
		return c.Demo && c.Status != healthdata.Deregistered
	}) {
		return rule(healthdata.RuleInvalidRequest, "a user has either demo connections or real ones")
	}
	return nil
}

// wait notes, sealed, what the next part of a try needs, unless a newer try has begun.
func (s *Service) wait(ctx context.Context, t *step, on Trigger, notes []byte, c Challenge) error {
	place := stepPlace(&t.session, t.n)
	if on == AskCode {
		place = mfaPlace(t.session.ID)
	}
	box, err := s.seal.Seal(ctx, notes, place)
	if err != nil {
		return err
	}
	_, err = s.store.UpdateSession(ctx, t.session.Team, t.session.ID, func(x *Session) error {
		if err := x.usable(t.at); err != nil {
			return err
		}
		if x.Step != t.n {
			return fail(TokenNotValidated)
		}
		x.Pending, x.Challenge = box, c
		return x.on(on)
	})
	return err
}

// mfaPlace is what the notes of a challenge are bound to: every code that is entered is
// a step of its own, and the notes outlive it.
func mfaPlace(id SessionID) []byte { return []byte("link challenge " + id.String()) }

// region returns the region to ask a provider for. Where it has a list, anything else is
// [UnsupportedRegion].
func (s *Service) region(p *healthdata.Provider, asked string) (string, error) {
	list := s.Regions(p)
	switch {
	case len(list) == 0:
		return "", nil
	case asked == "":
		return list[0], nil
	case !slices.Contains(list, asked):
		return "", fail(UnsupportedRegion)
	}
	return asked, nil
}

// connect makes the connection: it, its event, the credential and the end of the token
// are one write.
func (s *Service) connect(ctx context.Context, t *step, g Grant) (Result, error) {
	return s.establish(ctx, t, g, false)
}

func (s *Service) establish(ctx context.Context, t *step, g Grant, demo bool) (Result, error) {
	consent := healthdata.Consent{Version: t.settings.Consent.Version, Means: healthdata.ConsentByLink}
	n, err := s.adopt(ctx, t, g, healthdata.NewConnection{Demo: demo, Consent: &consent})
	if _, ok := typeOf(err); ok {
		return s.settled(ctx, t, err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("link: %w", err)
	}
	c := Completion{
		Team: t.session.Team, Session: t.session.ID, Credential: n.Credential, Sole: n.Sole,
		Change: func(x *Session, u *healthdata.User) ([]healthlab.Event, error) {
			if err := x.connects(t.provider.Slug, t.at); err != nil {
				return nil, err
			}
			return n.Change(u)
		},
	}
	done, err := s.store.Complete(ctx, c)
	if err == nil {
		out := Result{
			State: ResultSuccess, Provider: t.provider.Slug, RedirectURL: done.Options.RedirectURL,
			ExternalUserID: n.externalUserID,
		}
		out.Location = s.location(t.settings, &done, Outcome{Provider: t.provider.Slug})
		return out, nil
	}
	var taken *AccountTakenError
	switch {
	case errors.As(err, &taken):
		err = fail(DuplicateConnection)
	case errors.Is(err, healthlab.NotFound):
		err = fail(InvalidToken)
	}
	return s.settled(ctx, t, err)
}

// maxSecret is the longest secret that is kept, in bytes.
const maxSecret = 64 << 10

// sound reports whether a grant can be kept. What a provider makes up is not.
func (g *Grant) sound() bool {
	return plain(g.ExternalUserID) && plain(g.Scopes...) && len(g.Scopes) <= 200 && len(g.Secret) <= maxSecret
}

// plain reports whether texts of a provider can be kept.
func plain(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool {
		return len(s) > 512 || !utf8.ValidString(s) || strings.Contains(s, "\x00")
	})
}

// ask calls a connector within the time that a person waits.
func ask[T any](ctx context.Context, s *Service, call func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	v, err := call(ctx)
	if err == nil {
		err = ctx.Err() // an answer that comes too late is none
	}
	return v, err
}

// blame turns a connector's error into a link error: its own, if it is one that the flow
// may have, else [ProviderAPIError].
func blame(err error, allowed ...ErrorType) error {
	if t, ok := typeOf(err); ok && slices.Contains(allowed, t) {
		return &Error{Type: t}
	}
	return &Error{Type: ProviderAPIError, Cause: err}
}
