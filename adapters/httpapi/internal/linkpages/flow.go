package linkpages

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/page"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// pageList shows the list of sources or, if the link token names one source, that source. Its URL is link_web_url.
func (a *Pages) pageList(v *visit) error {
	p, err := a.open(v)
	if err != nil {
		return err
	}
	if v.session, err = a.Linking.Start(v.ctx(), v.token, ""); err != nil {
		return err
	}
	if fixed := p.Session.Options.Provider; fixed != "" {
		v.r.SetPathValue("provider", fixed)
		if at := a.Health.Providers().Get(fixed); at != nil && a.source(at).Way == "oauth" && !framed(v.r) {
			return a.pageLeave(v)
		}
		return v.redirect(v.view.Href("source/" + fixed))
	}
	q := v.r.URL.Query()
	out := page.List{Query: truncate(q.Get("q"), 100)}
	kind := q.Get("data")
	has := map[string]bool{}
	for _, o := range a.offers(&p) {
		s := a.source(&o)
		out.Any = true
		match := kind == ""
		for _, k := range s.Kinds {
			has[k] = true
			match = match || k == kind
		}
		if match && strings.Contains(healthlab.FoldText(s.Name), healthlab.FoldText(strings.TrimSpace(out.Query))) {
			out.Sources = append(out.Sources, s)
		}
	}
	for _, k := range page.AllKinds() {
		if has[k] {
			out.Kinds = append(out.Kinds, page.Choice{Key: k, Chosen: k == kind})
		}
	}
	return a.draw(v, http.StatusOK, "list", out)
}

func framed(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "iframe" || dest == "frame"
}

// truncate returns at most the first most characters of a text that a person entered.
func truncate(s string, most int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most])
	}
	return s
}

func (a *Pages) pageSource(v *visit) error {
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	if v.session, err = a.Linking.Start(v.ctx(), v.token, ""); err != nil {
		return err
	}
	if a.source(p).Way == "oauth" {
		// The cookie is set on the first page, so that a second click has the same cookie as the first.
		if _, err := a.browser(v); err != nil {
			return err
		}
	}
	return a.drawSource(v, http.StatusOK, p, page.SourcePage{})
}

func (a *Pages) drawSource(v *visit, status int, p *healthdata.Provider, out page.SourcePage) error {
	out.Source = a.source(p)
	out.Consent, out.ConsentVersion = v.consent.URL, v.consent.Version
	out.Back = v.session.Options.Provider == ""
	out.Demo = a.Demo && p.Demo && a.Linking.Environment() == healthlab.Sandbox
	chosen := v.form.Get("region")
	if out.Source.Way == "password" || out.Source.Way == "site" || out.Source.Way == "email" {
		for _, r := range a.Linking.Regions(p) {
			c := page.Choice{Key: r, Label: a.site.Say(v.view.Lang, "region."+r), Chosen: r == chosen}
			if c.Label == "region."+r {
				c.Label = strings.ToUpper(r)
			}
			out.Regions = append(out.Regions, c)
		}
	}
	if out.Fields == nil {
		out.Fields = map[string]string{}
	}
	v.view.Path = "source/" + p.Slug
	return a.draw(v, status, "source", out)
}

// MaxField is the longest name, password, code or address, in characters.
const MaxField = 512

// field returns the value of a form field. If the value is invalid, field sets wrong[name] to the key of the error
// text.
func field(v *visit, name string, wrong map[string]string) string {
	s := v.form.Get(name)
	if name != "password" {
		s = strings.TrimSpace(s)
	}
	switch {
	case s == "":
		wrong[name] = "required"
	case utf8.RuneCountInString(s) > MaxField || !utf8.ValidString(s) || strings.Contains(s, "\x00"):
		wrong[name] = "field.long"
	}
	return s
}

// pageSubmit handles a form with a name and password, an e-mail address, or a confirmation.
func (a *Pages) pageSubmit(v *visit) error {
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	wrong := map[string]string{}
	var done linking.Result
	var name string
	form := v.form
	switch way := a.source(p).Way; {
	case form.Get("demo") != "" && a.Demo:
		done, err = a.Linking.Accept(v.ctx(), v.token, linking.Acceptance{Provider: p.Slug, Demo: true})
	case way == "manual":
		done, err = a.Linking.Accept(v.ctx(), v.token, linking.Acceptance{Provider: p.Slug})
	case way == "device":
		n := healthdata.NewConsent{Provider: p.Slug, Version: v.consent.Version, Means: healthdata.ConsentByLink}
		if _, err := a.Health.Connections().RecordConsent(v.ctx(), v.session.Team, v.session.User, n); err != nil {
			return err
		}
		return a.showCode(v, p)
	case way == "password", way == "site":
		in := linking.PasswordSignIn{Provider: p.Slug, Username: field(v, "username", wrong), Password: field(v, "password", wrong), Region: form.Get("region")}
		if name = in.Username; len(wrong) == 0 {
			done, err = a.Linking.SignIn(v.ctx(), v.token, in)
		}
	case way == "email":
		in := linking.EmailSignIn{Provider: p.Slug, Email: field(v, "email", wrong), Region: form.Get("region")}
		if name = in.Email; len(wrong) == 0 {
			done, err = a.Linking.SignInByEmail(v.ctx(), v.token, in)
		}
	default:
		return v.redirect(v.view.Href("source/" + p.Slug))
	}
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return a.drawSource(v, http.StatusUnprocessableEntity, p, page.SourcePage{Name: truncate(name, MaxField), Fields: wrong})
	}
	if done.State == linking.ResultPending {
		return v.redirect(v.view.Href("source/" + p.Slug + "/code"))
	}
	return a.endForm(v, done, func(problem string) error {
		return a.drawSource(v, http.StatusOK, p, page.SourcePage{Name: truncate(name, MaxField), Problem: problem})
	})
}

// endForm answers a form with a redirect to the team's page, with the last page, or, by calling again, with the same
// form and an error. problem is the key of the error text.
func (a *Pages) endForm(v *visit, done linking.Result, again func(problem string) error) error {
	switch {
	case done.State == linking.ResultSuccess && done.Location != "":
		return v.redirect(done.Location)
	case done.State == linking.ResultSuccess:
		return v.redirect(v.view.Href("done"))
	case isFinalError(done.Error):
		return &linking.Error{Type: done.Error}
	case v.session.Options.OnError != "" && done.Location != "":
		return v.redirect(done.Location)
	default:
		return again(string(done.Error))
	}
}

// isFinalError reports whether an error means that the link token can no longer be used, so that sending the form again
// is useless.
func isFinalError(t linking.ErrorType) bool {
	switch t {
	case linking.InvalidToken, linking.TokenExpired, linking.TokenConsumed, linking.TokenNotValidated:
		return true
	default:
		return false
	}
}

// pageLeave redirects the person to the provider's sign-in page.
func (a *Pages) pageLeave(v *visit) error {
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	browser, err := a.browser(v)
	if err != nil {
		return err
	}
	to, err := a.Linking.Authorize(v.ctx(), v.token, linking.OAuthSignIn{Provider: p.Slug, Browser: browser})
	if err == nil {
		v.view.Token = ""
		return v.redirect(to.URL)
	}
	if t, ok := linking.ErrorTypeOf(err); ok && !isFinalError(t) {
		if back, bad := a.Linking.Location(v.ctx(), v.session, linking.Outcome{Error: t}); bad == nil && back != "" {
			return v.redirect(back)
		}
	}
	return err
}

// browser returns the secret in the browser's cookie, and sets the cookie if there is none.
func (a *Pages) browser(v *visit) (string, error) {
	secret := a.BrowserOf(v.r)
	if secret == "" {
		var err error
		if secret, err = a.Linking.NewBrowserSecret(); err != nil {
			return "", err
		}
	}
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // Secure wherever the service is not plain http
		Name: a.cookie(), Value: secret, Path: "/", MaxAge: int(linking.TokenLife.Seconds()),
		HttpOnly: true, Secure: a.secure, SameSite: http.SameSiteLaxMode,
	})
	return secret, nil
}

// BrowserOf returns the secret that the link pages have stored in a cookie of the browser; empty if there is none.
func (a *Pages) BrowserOf(r *http.Request) string {
	c, err := r.Cookie(a.cookie())
	if err != nil || !linking.IsBrowserSecret(c.Value) {
		return ""
	}
	return c.Value
}

func (a *Pages) cookie() string {
	if a.secure {
		return "__Host-link"
	}
	return "link"
}

// Result answers the redirect from a provider with a page, for teams without a page to which the person is redirected.
func (a *Pages) Result(w http.ResponseWriter, r *http.Request, token string, done linking.Result) error {
	v := &visit{w: w, r: r}
	a.begin(r.Context(), v, token, "")
	if done.State == linking.ResultSuccess {
		return v.redirect(v.view.Href("done"))
	}
	r.SetPathValue("provider", done.Provider)
	return a.problem(r.Context(), v, &linking.Error{Type: done.Error})
}

func (a *Pages) pageCode(v *visit) error {
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	if v.session.State != linking.StateAwaitingMFA || v.session.Provider != p.Slug {
		return v.redirect(v.view.Href("source/" + p.Slug))
	}
	return a.drawCode(v, http.StatusOK, p, page.CodePage{})
}

func (a *Pages) drawCode(v *visit, status int, p *healthdata.Provider, out page.CodePage) error {
	out.Source, out.Back = a.source(p), v.session.Options.Provider == ""
	out.Method, out.Hint = v.session.Challenge.Method, v.session.Challenge.Hint
	if out.Fields == nil {
		out.Fields = map[string]string{}
	}
	v.view.Path = "source/" + p.Slug + "/code"
	return a.draw(v, status, "mfa", out)
}

func (a *Pages) pageEnterCode(v *visit) error {
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	wrong := map[string]string{}
	code := field(v, "mfa_code", wrong)
	if len(wrong) > 0 && v.session.State == linking.StateAwaitingMFA {
		return a.drawCode(v, http.StatusUnprocessableEntity, p, page.CodePage{Fields: wrong})
	}
	done, err := a.Linking.CompleteMFA(v.ctx(), v.token, p.Slug, code)
	if err != nil {
		return err
	}
	return a.endForm(v, done, func(problem string) error {
		if done.Error == linking.IncorrectMFACode {
			return a.drawCode(v, http.StatusOK, p, page.CodePage{Problem: problem})
		}
		return a.drawSource(v, http.StatusOK, p, page.SourcePage{Problem: problem})
	})
}

// showCode answers with a page that shows a link code for the companion app.
func (a *Pages) showCode(v *visit, p *healthdata.Provider) error {
	code, err := a.Linking.DeviceCode(v.ctx(), v.token, p.Slug)
	if err != nil {
		return err
	}
	v.view.Path = "source/" + p.Slug
	return a.draw(v, http.StatusOK, "code", page.CodePage{
		Source: a.source(p), Back: v.session.Options.Provider == "", Code: code.Code, Open: appLink(code.ExchangeURL),
	})
}

// pageArrived shows the page that waits for the companion app. If the query has look, it answers the script of that
// page with the text waiting or arrived.
func (a *Pages) pageArrived(v *visit) error {
	done, err := a.Linking.CompleteDeviceCode(v.ctx(), v.token, v.provider())
	if err != nil {
		return err
	}
	if v.r.URL.Query().Has("look") {
		word := "arrived"
		if done.State == linking.ResultWaiting {
			word = "waiting"
		}
		privatePage(v.w.Header())
		return wire.Bytes(v.w, http.StatusOK, "text/plain; charset=utf-8", []byte(word))
	}
	if done.State != linking.ResultWaiting {
		return a.endForm(v, done, func(string) error { return &linking.Error{Type: done.Error} })
	}
	_, p, err := a.offeredProvider(v)
	if err != nil {
		return err
	}
	return a.draw(v, http.StatusOK, "wait", page.CodePage{Source: a.source(p), Back: v.session.Options.Provider == ""})
}

// pageDone shows that a source is connected. If the session is not connected, it redirects to the first page.
func (a *Pages) pageDone(v *visit) error {
	x, err := a.Linking.Open(v.ctx(), v.token)
	if x.State != linking.StateConnected {
		if err == nil {
			return v.redirect(v.view.Href(""))
		}
		return err
	}
	v.session = x
	brand, err := a.Linking.Brand(v.ctx(), x.Team)
	if err != nil {
		return err
	}
	a.applyBrand(v, brand)
	p := a.Health.Providers().Get(x.Provider)
	if p == nil {
		return healthlab.NotFound
	}
	out := page.DonePage{Source: a.source(p)}
	u, err := a.Health.User(v.ctx(), x.Team, x.User)
	if err != nil {
		return err
	}
	if c := u.Connection(p.Slug); c != nil {
		out.Demo = c.Demo
	}
	if a.FirstImport != nil && p.Class == "cloud" {
		if out.Import, err = a.FirstImport(v.ctx(), x.Team, x.User, p.Slug); err != nil {
			return err
		}
	}
	v.view.Closable, v.view.Event, v.view.Provider, v.view.Origins = false, "success", p.Slug, a.FrameAncestors
	return a.draw(v, http.StatusOK, "done", out)
}

// pageClose ends the session and redirects the person to the team's page.
func (a *Pages) pageClose(v *visit) error {
	if _, err := a.open(v); err != nil {
		return err
	}
	done, err := a.Linking.Close(v.ctx(), v.token)
	if err != nil {
		return err
	}
	if v.session.Options.OnClose != "" && done.Location != "" {
		return v.redirect(done.Location)
	}
	return v.redirect(v.view.Href("close"))
}

func (a *Pages) pageClosed(v *visit) error {
	if _, err := a.open(v); err != nil {
		return err
	}
	v.view.Closable, v.view.Event, v.view.Origins = false, "exit", a.FrameAncestors
	return a.draw(v, http.StatusOK, "closed", nil)
}
