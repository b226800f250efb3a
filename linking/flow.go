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

// oauthNotes is the state between the start of a sign-in with OAuth and its callback. It is stored encrypted.
type oauthNotes struct {
	Verifier, RedirectURL string
	Scopes                []string
	// Client is the team's own OAuth client of the sign-in; empty for that of the deployment.
	Client string `json:",omitempty"`
	// Browser is the hash of the browser secret of the start; empty if any browser may come back.
	Browser []byte
}

// OAuthSignIn describes a sign-in at a provider's own page.
type OAuthSignIn struct {
	healthlab.Private

	Provider string
	// Browser is the secret of the person's browser, from [Service.NewBrowserSecret]. The callback then works only in
	// this browser. It is empty if the link pages are not used; the package comment describes the risk.
	Browser string
}

// Authorization is the URL of the provider's page for a sign-in with OAuth.
type Authorization struct {
	healthlab.Private

	URL      string
	Provider healthdata.Provider
}

// browserBytes is the number of random bytes of a browser's secret.
const browserBytes = 32

// NewBrowserSecret returns a random secret for a cookie that identifies a browser.
func (s *Service) NewBrowserSecret() (string, error) {
	var b [browserBytes]byte
	if _, err := io.ReadFull(s.opts.Random, b[:]); err != nil {
		return "", fmt.Errorf("draw browser secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// IsBrowserSecret reports whether a text has the form of a secret of [Service.NewBrowserSecret].
func IsBrowserSecret(secret string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	return err == nil && len(b) == browserBytes
}

func hashBrowser(secret string) []byte {
	sum := sha256.Sum256([]byte("link browser " + secret))
	return sum[:]
}

// Authorize begins a sign-in at the provider's own page. It cancels a try of the session that is still running, at any
// provider. The state parameter is the link token, bound to the session and, if d.Browser is set, to the browser.
//
// Errors: those of [Service.Open]; a [*healthlab.RuleError] of type [RuleInvalidProvider] (also without d.Browser if
// the team allows only the link pages) or [RuleTooManyTries], or of type healthdata.RuleInvalidRequest if the user has
// generated data; an [*Error] of type [ProviderAPIError].
func (s *Service) Authorize(ctx context.Context, token string, d OAuthSignIn) (Authorization, error) {
	t, err := s.begin(ctx, token, d.Provider, authOAuth, authTeamOAuth)
	if err != nil {
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	notes := oauthNotes{RedirectURL: t.settings.callbackURL(d.Provider, serviceCallback(s.opts.BaseURL, d.Provider)), Scopes: t.scopes().ask, Client: t.client}
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
	where, err := callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (string, error) {
		return t.conn.OAuth.Authorize(ctx, AuthorizeRequest{
			State: token, RedirectURL: notes.RedirectURL, Scopes: slices.Clone(notes.Scopes),
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
		})
	})
	if u, bad := url.Parse(where); err != nil || bad != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		_, err := t.recordFailure(ctx, &Error{Type: ProviderAPIError, Cause: err})
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	doc, err := json.Marshal(notes)
	if err == nil {
		err = t.savePending(ctx, HandOut, doc, Challenge{})
	}
	if err != nil {
		return Authorization{}, fmt.Errorf("authorize: %w", err)
	}
	return Authorization{URL: where, Provider: *t.provider}, nil
}

// Callback has the parameters of a provider's callback.
type Callback struct {
	healthlab.Private

	// Provider is the slug of the provider.
	Provider string
	// State is the link token.
	State string
	// Code is the authorization code; empty if the provider refused.
	Code string
	// Error is the provider's error parameter; any text means that the provider refused.
	Error string
	// Browser is the secret of the browser that came back; empty if it has none.
	Browser string
}

// Callback ends a sign-in at the provider's own page. Failures, including those of the token, are in the Result; the
// error is for failures that a person cannot solve. A callback works once: a repeated callback fails and changes
// nothing. A callback in another browser ends the try with [TokenNotValidated], because an attacker may have tricked a
// person into finishing the attacker's sign-in.
func (s *Service) Callback(ctx context.Context, c Callback) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, c.State, at)
	if err != nil {
		return s.result(ctx, x, err)
	}
	t := &linkAttempt{service: s, at: at, session: x}
	if t.provider, t.settings, err = s.offers.find(ctx, x.Team, c.Provider, authOAuth, authTeamOAuth); err != nil {
		return s.result(ctx, x, fail(TokenNotValidated))
	}
	var box healthlab.Sealed
	err = t.updateSession(ctx, func(x *Session) error {
		if err := x.usable(t.at); err != nil {
			return err
		}
		if x.State != StateAwaitingProvider || x.Provider != c.Provider || x.Pending.Box == nil {
			return fail(TokenNotValidated)
		}
		box = x.Pending
		x.Pending = healthlab.Sealed{}
		return x.signIn(t.at, s.signInLimit())
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
		return t.failed(ctx, fail(TokenNotValidated))
	}
	t.client = notes.Client
	if t.conn, err = s.connectors.forClient(ctx, x.Team, c.Provider, t.client); err != nil {
		return t.failed(ctx, &Error{Type: ProviderAPIError, Cause: err})
	}
	if c.Error != "" || c.Code == "" || len(c.Code) > 4096 {
		return t.failed(ctx, fail(ProviderCredentialError))
	}
	grant, err := callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (Grant, error) {
		return t.conn.OAuth.Exchange(ctx, ExchangeRequest{
			Code: c.Code, RedirectURL: notes.RedirectURL, Verifier: notes.Verifier, Scopes: notes.Scopes,
		})
	})
	if err != nil {
		return t.failed(ctx, asLinkError(err, ProviderCredentialError, RequiredScopesNotGranted))
	}
	if grant.Scopes == nil {
		grant.Scopes = notes.Scopes // the scopes of the request, even if the team has changed them since
	}
	grant.Client = t.client
	t.markProven(ctx, notes.RedirectURL)
	return t.connect(ctx, grant)
}

// PasswordSignIn has the fields of the sign-in form.
type PasswordSignIn struct {
	healthlab.Private

	Provider           string
	Username, Password string
	// Region is the region of the account; empty for the provider's default.
	Region string
}

// SignIn signs in with a name and a password. Failures that the person can solve, also those of the token, are in the
// Result. A missing token is an error. Of parallel sign-ins at one provider with one token, in any process and flow, one
// runs at a time, because a provider may end earlier grants at each sign-in; the others wait, and get [TokenConsumed] after
// a success.
//
// Errors: a [*healthlab.RuleError] of type [RuleMissingLinkToken], [RuleInvalidProvider] or [RuleTooManyTries], or of
// type healthdata.RuleInvalidRequest if the user has generated data.
func (s *Service) SignIn(ctx context.Context, token string, in PasswordSignIn) (Result, error) {
	t, err := s.begin(ctx, token, in.Provider, authPassword)
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	region, err := chooseRegion(s.Regions(t.provider), in.Region)
	if err != nil {
		return t.failed(ctx, err)
	}
	got, err := callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (PasswordResponse, error) {
		return t.conn.Password.SignIn(ctx, PasswordRequest{Username: in.Username, Password: in.Password, Region: region})
	})
	if err != nil {
		return t.failed(ctx, asLinkError(err, ProviderCredentialError, ProviderPasswordExpired, UnsupportedRegion))
	}
	if got.Challenge == nil {
		if got.Grant.ExternalUserID == "" {
			got.Grant.ExternalUserID = in.Username
		}
		return t.connect(ctx, got.Grant)
	}
	notes, err := json.Marshal(mfaNotes{Username: in.Username, Notes: got.Notes})
	if err == nil && !validTexts(got.Challenge.Method, got.Challenge.Hint) {
		return t.failed(ctx, fail(ProviderAPIError))
	}
	if err == nil {
		err = t.savePending(ctx, AskCode, notes, *got.Challenge)
	}
	if err != nil {
		return t.failed(ctx, err)
	}
	return Result{
		State: ResultPending, Provider: in.Provider, RedirectURL: t.session.Options.RedirectURL, Challenge: got.Challenge,
	}, nil
}

// mfaNotes is the state of a sign-in for which the provider requires a code. It is stored encrypted.
type mfaNotes struct {
	Username string
	Notes    []byte
}

// CompleteMFA sends the code that a provider required. After a wrong code the person may try again. Errors and
// results are those of [Service.SignIn]. If provider differs from that of the sign-in, the error is a
// [*healthlab.RuleError] of type [RuleInvalidProvider].
func (s *Service) CompleteMFA(ctx context.Context, token, provider, code string) (Result, error) {
	at := s.now()
	x, err := s.open(ctx, token, at)
	if err != nil {
		return s.result(ctx, x, err)
	}
	t := &linkAttempt{service: s, at: at, session: x}
	if t.provider, t.settings, err = s.offers.find(ctx, x.Team, provider, authPassword); err != nil {
		return Result{}, fmt.Errorf("complete sign-in: %w", err)
	}
	t.conn = s.connectors.byProvider[provider]
	if x.State != StateAwaitingMFA || x.Pending.Box == nil {
		return s.result(ctx, x, fail(TokenNotValidated))
	}
	if x.Provider != provider {
		return Result{}, fmt.Errorf("complete sign-in: %w", errProvider())
	}
	// Every entered code is counted, so that codes cannot be guessed.
	err = t.updateSession(ctx, func(x *Session) error {
		if err := x.usable(t.at); err != nil {
			return err
		}
		if x.State != StateAwaitingMFA || x.Provider != provider || x.Pending.Box == nil {
			return fail(TokenNotValidated)
		}
		if len(x.Attempts) >= maxAttempts {
			return &healthlab.RuleError{Kind: healthlab.Exhausted, Type: RuleTooManyTries, Msg: "too many tries with this link token; create a new one"}
		}
		x.Step++
		x.Attempts = append(x.Attempts, Attempt{At: t.at, Provider: provider})
		return x.signIn(t.at, s.signInLimit())
	})
	if err != nil {
		return s.result(ctx, t.session, err)
	}
	var notes mfaNotes
	doc, err := s.seal.Open(ctx, t.session.Pending, mfaPlace(t.session.ID))
	if err == nil {
		err = json.Unmarshal(doc, &notes)
	}
	if err != nil {
		return Result{}, fmt.Errorf("complete sign-in: %w", err)
	}
	grant, err := callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (Grant, error) {
		return t.conn.Password.CompleteMFA(ctx, MFARequest{Code: code, Notes: notes.Notes})
	})
	if err != nil {
		return t.failed(ctx, asLinkError(err, IncorrectMFACode, ProviderCredentialError, ProviderPasswordExpired))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = notes.Username
	}
	return t.connect(ctx, grant)
}

// EmailSignIn has the fields of the e-mail form.
type EmailSignIn struct {
	healthlab.Private

	Provider, Email string
	// Region is the region of the account; empty for the provider's default.
	Region string
}

// SignInByEmail connects an e-mail address that the provider knows. Errors and results are those of
// [Service.SignIn].
func (s *Service) SignInByEmail(ctx context.Context, token string, in EmailSignIn) (Result, error) {
	t, err := s.begin(ctx, token, in.Provider, authEmail)
	if err != nil {
		return s.tokenResult(ctx, token, err)
	}
	region, err := chooseRegion(s.Regions(t.provider), in.Region)
	if err != nil {
		return t.failed(ctx, err)
	}
	grant, err := callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (Grant, error) {
		return t.conn.Email.SignInByEmail(ctx, EmailRequest{Email: in.Email, Region: region, Practice: t.settings.Practice})
	})
	if err != nil {
		return t.failed(ctx, asLinkError(err, ProviderCredentialError, UnsupportedRegion))
	}
	if only := t.settings.Practice; only != "" && grant.Practice != "" && healthlab.FoldText(only) != healthlab.FoldText(grant.Practice) {
		return t.failed(ctx, fail(ProviderCredentialError))
	}
	if grant.ExternalUserID == "" {
		grant.ExternalUserID = in.Email
	}
	return t.connect(ctx, grant)
}

// chooseRegion returns asked, or the first region of list if asked is empty. It returns an [UnsupportedRegion] error
// for a region that is not in list. Without a list, there is no region.
func chooseRegion(list []string, asked string) (string, error) {
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

// markProven records that a person came back through the team's own OAuth client.
func (t *linkAttempt) markProven(ctx context.Context, redirectURL string) {
	s := t.service
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
