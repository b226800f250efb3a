package httpapi

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/linkpages"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/linking"
)

// maxCredential is the longest name, password, code or address that a person may enter, in characters.
const maxCredential = linkpages.MaxField

// oauthSource is a provider with the address of its sign-in page.
type oauthSource struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug"`
	Description string  `json:"description"`
	Logo        *string `json:"logo"`
	OAuthURL    *string `json:"oauth_url"`
	Group       *string `json:"group"`
	AuthType    string  `json:"auth_type"`
	SourceType  string  `json:"source_type"`
	Active      bool    `json:"is_active"`
	Backfill    *int    `json:"backfill_num_days"`
}

func (a api) linkOAuth(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token, slug := a.linkToken(in), in.PathText("oauth_provider", 256)
	if err := in.Err(); err != nil {
		return err
	}
	to, err := a.Linking.Authorize(r.Context(), token, linking.OAuthSignIn{Provider: slug})
	if err != nil {
		return err
	}
	p := to.Provider
	out := oauthSource{
		ID: sourceNumber(p.Slug), Name: p.Name, Slug: p.Slug, Description: p.Description, Logo: p.Logo, OAuthURL: &to.URL,
		Group: orNull(p.Group), AuthType: p.AuthType, SourceType: p.Category, Active: true,
	}
	if days := p.Backfill.DefaultDays; days > 0 {
		out.Backfill = &days
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, out)
}

// finishOAuth answers the redirect from a provider's sign-in page. It ignores query parameters that the provider adds.
func (a api) finishOAuth(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	slug := in.PathText("provider", 256)
	code, state, failed := in.OptText("code", 4096), in.OptText("state", 4096), in.OptText("error", 4096)
	if err := in.Err(); err != nil {
		return err
	}
	secretReply(w)
	done := linking.Result{State: linking.ResultError, Error: linking.InvalidToken}
	if orEmpty(state) != "" {
		var err error
		if done, err = a.Linking.Callback(r.Context(), linking.Callback{
			Provider: slug, State: orEmpty(state), Code: orEmpty(code), Error: orEmpty(failed), Browser: a.browserOf(r),
		}); err != nil {
			return err
		}
	}
	switch {
	case done.Location == "" && a.pages != nil:
		return a.pages.Result(w, r, orEmpty(state), done)
	case done.Location == "":
		return wire.JSON(w, http.StatusOK, linkResultFrom(done))
	}
	w.Header().Set("Location", done.Location)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

func (a api) browserOf(r *http.Request) string {
	if a.pages == nil {
		return ""
	}
	return a.pages.BrowserOf(r)
}

// emailResult is the result of linking by e-mail.
type emailResult struct {
	State       string  `json:"state"`
	RedirectURL *string `json:"redirect_url"`
	ErrorType   *string `json:"error_type"`
	// Error describes the error to developers. Programs must not interpret it.
	Error *string `json:"error"`
	// ProviderMFA describes how the provider sends a code to the person; null if the provider asks for no code.
	ProviderMFA *providerMFA `json:"provider_mfa"`
}

// linkResult is the result of linking with a password. Its fields besides emailResult are deprecated.
type linkResult struct {
	emailResult
	Provider   string  `json:"provider"`
	Connected  bool    `json:"connected"`
	ProviderID *string `json:"provider_id"`
}

// providerMFA describes how a provider sends a code to the person.
type providerMFA struct {
	Method string `json:"method"`
	Hint   string `json:"hint"`
}

func emailResultFrom(r linking.Result) emailResult {
	out := emailResult{State: r.State, RedirectURL: orNull(r.RedirectURL), ErrorType: orNull(r.Error)}
	if r.Error != "" {
		out.Error = orNull(r.Error.Text())
	}
	if r.Challenge != nil {
		out.ProviderMFA = &providerMFA{r.Challenge.Method, r.Challenge.Hint}
	}
	return out
}

func linkResultFrom(r linking.Result) linkResult {
	return linkResult{
		emailResult: emailResultFrom(r), Provider: r.Provider, Connected: r.State == linking.ResultSuccess, ProviderID: r.ExternalUserID,
	}
}

// flowProvider reads the provider of the path, which must support the flow.
func (a api) flowProvider(in *wire.In, flow string) string {
	slug := in.PathText("provider", 256)
	if !a.signsInBy(slug, flow) {
		in.Problem("not_allowed", "must be a provider whose auth_type is "+flow+"; GET /v2/link/providers lists them", "path", "provider")
	}
	return slug
}

func (a api) signsInBy(slug, flow string) bool {
	p := a.Health.Providers().Get(slug)
	return p != nil && p.AuthType == flow
}

// credential records a problem if v, the text of the field name, is empty or too long.
func credential(in *wire.In, v, name string) {
	switch {
	case v == "":
		in.Problem("empty", "must not be empty", "body", name)
	case utf8.RuneCountInString(v) > maxCredential:
		in.Problem("too_long", fmt.Sprintf("must have at most %d characters", maxCredential), "body", name)
	}
}

// passwordIn is the user name and password that a person entered.
type passwordIn struct {
	Username string  `json:"username"`
	Password string  `json:"password"`
	Region   *string `json:"region"`
}

func (a api) linkPassword(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token, slug := a.linkToken(in), a.flowProvider(in, "password")
	var body passwordIn
	in.Body(&body)
	if in.Err() == nil {
		credential(in, body.Username, "username")
		credential(in, body.Password, "password")
	}
	if err := in.Err(); err != nil {
		return err
	}
	done, err := a.Linking.SignIn(r.Context(), token, linking.PasswordSignIn{
		Provider: slug, Username: body.Username, Password: body.Password, Region: orEmpty(body.Region),
	})
	if err != nil {
		return err
	}
	return a.answerLink(w, slug, done)
}

func (a api) answerLink(w http.ResponseWriter, slug string, done linking.Result) error {
	done.Provider = slug
	secretReply(w)
	return wire.JSON(w, http.StatusOK, linkResultFrom(done))
}

// mfaIn is the code that a person entered.
type mfaIn struct {
	Code string `json:"mfa_code"`
}

func (a api) completeMFA(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token, slug := a.linkToken(in), a.flowProvider(in, "password")
	var body mfaIn
	in.Body(&body)
	if in.Err() == nil {
		credential(in, body.Code, "mfa_code")
	}
	if err := in.Err(); err != nil {
		return err
	}
	done, err := a.Linking.CompleteMFA(r.Context(), token, slug, body.Code)
	if err != nil {
		return err
	}
	return a.answerLink(w, slug, done)
}

// emailIn is the e-mail address that a person entered.
type emailIn struct {
	Email  string  `json:"email"`
	Region *string `json:"region"`
	// Provider is deprecated and ignored.
	Provider *string `json:"provider"`
}

func (a api) linkEmail(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token, slug := a.linkToken(in), a.flowProvider(in, "email")
	var body emailIn
	in.Body(&body)
	if in.Err() == nil {
		credential(in, body.Email, "email")
	}
	if err := in.Err(); err != nil {
		return err
	}
	done, err := a.Linking.SignInByEmail(r.Context(), token, linking.EmailSignIn{Provider: slug, Email: body.Email, Region: orEmpty(body.Region)})
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, emailResultFrom(done))
}

// linkAuthIn is the body of the deprecated link operations.
type linkAuthIn struct {
	Provider string  `json:"provider"`
	AuthType string  `json:"auth_type"`
	Username *string `json:"username"`
	Password *string `json:"password"`
	Email    *string `json:"email"`
	Region   *string `json:"region"`
}

func legacy(done linking.Result) error {
	if done.Error != linking.ProviderCredentialError {
		return nil
	}
	return &wire.Fault{Status: http.StatusBadRequest, Type: "INVALID_CREDENTIALS", Msg: done.Error.Text()}
}

func (a api) linkAuth(w http.ResponseWriter, r *http.Request) error {
	return a.linkOld(w, r, "password")
}

func (a api) linkAuthEmail(w http.ResponseWriter, r *http.Request) error {
	return a.linkOld(w, r, "email")
}

func (a api) linkOld(w http.ResponseWriter, r *http.Request, flow string) error {
	in := wire.From(r)
	token := a.linkToken(in)
	var body linkAuthIn
	in.Body(&body)
	if in.Err() == nil {
		switch {
		case body.AuthType != flow:
			in.Problem("not_allowed", "must be "+flow, "body", "auth_type")
		case flow == "email":
			credential(in, orEmpty(body.Email), "email")
		default:
			credential(in, orEmpty(body.Username), "username")
			credential(in, orEmpty(body.Password), "password")
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	if flow == "email" {
		done, err := a.Linking.SignInByEmail(r.Context(), token, linking.EmailSignIn{
			Provider: body.Provider, Email: orEmpty(body.Email), Region: orEmpty(body.Region),
		})
		if err == nil {
			err = legacy(done)
		}
		if err != nil {
			return err
		}
		secretReply(w)
		return wire.JSON(w, http.StatusOK, emailResultFrom(done))
	}
	done, err := a.Linking.SignIn(r.Context(), token, linking.PasswordSignIn{
		Provider: body.Provider, Username: orEmpty(body.Username), Password: orEmpty(body.Password), Region: orEmpty(body.Region),
	})
	if err == nil {
		err = legacy(done)
	}
	if err != nil {
		return err
	}
	if a.signsInBy(body.Provider, flow) {
		return a.answerLink(w, body.Provider, done)
	}
	return wire.JSON(w, http.StatusOK, linkResultFrom(done))
}
