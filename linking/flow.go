package linking

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
)

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

// OAuthSignIn is how a person leaves for a provider's own page.
type OAuthSignIn struct {
	healthlab.Private

	Provider string
	// Browser is a secret of the browser that leaves, as [Service.NewBrowserSecret] makes one.
	// The callback works only with the same one. Empty where our pages are not involved:
	// the package's comment says what that means.
	Browser string
}

// Authorization is where to send a person who links by OAuth.
type Authorization struct {
	healthlab.Private

	URL      string
	Provider healthdata.Provider
}

// browserBytes is how many random bytes a browser's secret has.
const browserBytes = 32

// NewBrowserSecret returns a random secret for a cookie, by which a browser is recognised.
func (s *Service) NewBrowserSecret() (string, error) {
	var b [browserBytes]byte
	if _, err := io.ReadFull(s.opts.Random, b[:]); err != nil {
		return "", fmt.Errorf("draw browser secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// IsBrowserSecret reports whether a text can be a secret of [Service.NewBrowserSecret].
func IsBrowserSecret(secret string) bool {
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
func (s *Service) Authorize(ctx context.Context, token string, d OAuthSignIn) (Authorization, error) {
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
	where, err := callConnector(ctx, s, func(ctx context.Context) (string, error) {
		return t.conn.OAuth.Authorize(ctx, AuthorizeRequest{
			State: token, RedirectURL: notes.RedirectURL, Scopes: slices.Clone(notes.Scopes),
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
		})
	})
	if u, bad := url.Parse(where); err != nil || bad != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		_, err := s.recordFailure(ctx, t, &Error{Type: ProviderAPIError, Cause: err})
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	doc, err := json.Marshal(notes)
	if err == nil {
		err = s.savePending(ctx, t, HandOut, doc, Challenge{})
	}
	if err != nil {
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	return Authorization{URL: where, Provider: *t.provider}, nil
}

// Callback is what a provider sent a person back with.
type Callback struct {
	healthlab.Private

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
	t := &linkAttempt{at: at, session: x}
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
		return s.failedResult(ctx, t, fail(TokenNotValidated))
	}
	t.client = notes.Client
	if t.conn, err = s.connectors.forClient(ctx, x.Team, c.Provider, t.client); err != nil {
		return s.failedResult(ctx, t, &Error{Type: ProviderAPIError, Cause: err})
	}
	if c.Error != "" || c.Code == "" || len(c.Code) > 4096 {
		return s.failedResult(ctx, t, fail(ProviderCredentialError))
	}
	grant, err := callConnector(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.OAuth.Exchange(ctx, ExchangeRequest{
			Code: c.Code, RedirectURL: notes.RedirectURL, Verifier: notes.Verifier, Scopes: notes.Scopes,
		})
	})
	if err != nil {
		return s.failedResult(ctx, t, asLinkError(err, ProviderCredentialError, RequiredScopesNotGranted))
	}
	if grant.Scopes == nil {
		grant.Scopes = notes.Scopes // what was asked for, whatever the team asks for by now
	}
	grant.Client = t.client
	s.markProven(ctx, t, notes.RedirectURL)
	return s.connect(ctx, t, grant)
}

// PasswordSignIn is what a person filled in.
type PasswordSignIn struct {
	healthlab.Private

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
		return s.failedResult(ctx, t, err)
	}
	got, err := callConnector(ctx, s, func(ctx context.Context) (PasswordResponse, error) {
		return t.conn.Password.SignIn(ctx, PasswordRequest{Username: in.Username, Password: in.Password, Region: region})
	})
	if err != nil {
		return s.failedResult(ctx, t, asLinkError(err, ProviderCredentialError, ProviderPasswordExpired, UnsupportedRegion))
	}
	if got.Challenge == nil {
		if got.Grant.ExternalUserID == "" {
			got.Grant.ExternalUserID = in.Username
		}
		return s.connect(ctx, t, got.Grant)
	}
	notes, err := json.Marshal(mfaNotes{Username: in.Username, Notes: got.Notes})
	if err == nil && !plain(got.Challenge.Method, got.Challenge.Hint) {
		return s.failedResult(ctx, t, fail(ProviderAPIError))
	}
	if err == nil {
		err = s.savePending(ctx, t, AskCode, notes, *got.Challenge)
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
	t := &linkAttempt{at: at, session: x, n: x.Step}
	if t.provider, t.settings, err = s.offered(ctx, x.Team, provider, authPassword); err != nil {
		return Result{}, fmt.Errorf("complete sign-in: %w", err)
	}
	t.conn = s.connectors.byProvider[provider]
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
	grant, err := callConnector(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.Password.CompleteMFA(ctx, MFARequest{Code: code, Notes: notes.Notes})
	})
	if err != nil {
		return s.failedResult(ctx, t, asLinkError(err, IncorrectMFACode, ProviderCredentialError, ProviderPasswordExpired))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = notes.Username
	}
	return s.connect(ctx, t, grant)
}

// EmailSignIn is what a person filled in.
type EmailSignIn struct {
	healthlab.Private

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
		return s.failedResult(ctx, t, err)
	}
	grant, err := callConnector(ctx, s, func(ctx context.Context) (Grant, error) {
		return t.conn.Email.SignInByEmail(ctx, EmailRequest{Email: in.Email, Region: region, Practice: t.settings.Practice})
	})
	if err != nil {
		return s.failedResult(ctx, t, asLinkError(err, ProviderCredentialError, UnsupportedRegion))
	}
	if only := t.settings.Practice; only != "" && grant.Practice != "" && healthlab.FoldText(only) != healthlab.FoldText(grant.Practice) {
		return s.failedResult(ctx, t, fail(ProviderCredentialError))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = in.Email
	}
	return s.connect(ctx, t, grant)
}

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

// markProven notes that a person came back through a team's own client.
func (s *Service) markProven(ctx context.Context, t *linkAttempt, redirectURL string) {
	if t.client == "" {
		return
	}
	if c := t.settings.teamClients[t.provider.Slug]; c.ClientID == t.client && c.ProvenURL == redirectURL {
		return
	}
	if err := s.connectors.clients.ProveClient(ctx, t.session.Team, t.provider.Slug, t.client, redirectURL, t.at); err != nil {
		s.opts.Log.WarnContext(ctx, "own client not marked as proven", "provider", t.provider.Slug, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
}
