// Package linkpages serves the pages on which a person links an account: choose a source, agree, sign in, done.
// httpapi.LinkPages describes them; package page renders them.
package linkpages

import (
	"context"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/page"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Options are the options of the pages. Fields without a comment are described at httpapi.LinkPages.
type Options struct {
	// Linking, Health, NoteToken and LogFailure are required.
	Linking *linking.Service
	Health  *healthdata.Service

	Name           string
	Logos          fs.FS
	FrameAncestors []string
	Language       string
	Texts          map[string]map[string]string

	OnDevice, Manual, Demo bool
	// FirstImport returns the progress of the first import of a connection. Nil: the last page shows no progress.
	FirstImport func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (page.Import, error)

	// NoteToken is called with the link token of each request, for the access log.
	NoteToken func(ctx context.Context, token string)
	// LogFailure logs an internal error. The team is zero if it is unknown.
	LogFailure func(r *http.Request, team healthlab.TeamID, err error)
}

// Pages are the link pages. Safe for concurrent use.
type Pages struct {
	Options
	site *page.Site
	// root is the path of the pages without the host, and origin their scheme and host.
	root, origin string
	secure       bool
}

// maxForm is the largest form, in bytes.
const maxForm = 16 << 10

// New returns the pages. It returns Invalid if options contradict each other.
func New(o Options) (*Pages, error) {
	site, err := page.NewSite(page.Options{Language: o.Language, Texts: o.Texts, Logos: o.Logos})
	if err != nil {
		return nil, fmt.Errorf("link pages: %w", err)
	}
	web, err := url.Parse(o.Linking.WebURL())
	base, bad := url.Parse(o.Linking.BaseURL())
	if err != nil || bad != nil || web.Host != base.Host || web.Scheme != base.Scheme {
		return nil, fmt.Errorf("%w: linking.Options.WebURL: must have the scheme and host of linking.Options.BaseURL, because the callback reads the cookie of the link pages", healthlab.Invalid)
	}
	for _, f := range o.FrameAncestors {
		if u, err := url.Parse(f); err != nil || u.Host == "" || u.Path != "" || strings.ContainsAny(f, "; ,'\"*") {
			return nil, fmt.Errorf("%w: LinkPages.FrameAncestors: must be origins such as https://app.example", healthlab.Invalid)
		}
	}
	return &Pages{
		Options: o, site: site, root: strings.TrimSuffix(web.EscapedPath(), "/"), origin: web.Scheme + "://" + web.Host,
		secure: base.Scheme == "https",
	}, nil
}

// Operations returns the operations of the pages. Their paths begin with /link, also if the public address has a
// prefix before it: a proxy that strips the prefix must strip it from all paths.
func (a *Pages) Operations() []server.Operation {
	show := func(id, pattern string, draw func(*visit) error) server.Operation {
		return server.Operation{ID: "link_page_" + id, Pattern: pattern, MaxBody: maxForm, IgnoreUnknown: true,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return a.visit(w, r, draw) }}
	}
	return []server.Operation{
		show("list", "GET /link", a.pageList),
		show("source", "GET /link/source/{provider}", a.pageSource),
		show("submit", "POST /link/source/{provider}", a.pageSubmit),
		show("leave", "GET /link/source/{provider}/go", a.pageLeave),
		show("code", "GET /link/source/{provider}/code", a.pageCode),
		show("enter_code", "POST /link/source/{provider}/code", a.pageEnterCode),
		show("arrived", "GET /link/source/{provider}/arrived", a.pageArrived),
		show("done", "GET /link/done", a.pageDone),
		show("close", "POST /link/close", a.pageClose),
		show("closed", "GET /link/close", a.pageClosed),
		{ID: "link_page_asset", Pattern: "GET /link/assets/{name}", Handle: a.pageAsset},
	}
}

// visit is one request for a page.
type visit struct {
	w     http.ResponseWriter
	r     *http.Request
	token string
	form  url.Values // form values of a POST; nil for other methods
	view  page.View
	// session is the link session of the token. Fields that were not read yet are zero.
	session linking.Session
	// consent is the text that the person must agree to.
	consent healthdata.ConsentText
}

func (v *visit) ctx() context.Context { return v.r.Context() }

func (v *visit) provider() string { return v.r.PathValue("provider") }

// visit reads the token and language of a request, calls draw, and shows an error page if draw fails.
func (a *Pages) visit(w http.ResponseWriter, r *http.Request, draw func(*visit) error) error {
	v := &visit{w: w, r: r}
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil {
			return a.problem(r.Context(), v, &linking.Error{Type: linking.TokenNotValidated})
		}
		form = r.PostForm
		v.form = form
	}
	a.begin(r.Context(), v, form.Get("token"), form.Get("lang"))
	if err := draw(v); err != nil {
		return a.problem(r.Context(), v, err)
	}
	return nil
}

// begin initialises a visit with a token.
func (a *Pages) begin(ctx context.Context, v *visit, token, lang string) {
	if len(token) > 4096 {
		token = token[:4096] // longer than any token
	}
	v.token = token
	a.NoteToken(ctx, token)
	chosen := a.site.Language(lang, v.r.Header.Get("Accept-Language"))
	v.view = page.View{
		Root: a.root, Token: token, Lang: chosen, Asked: lang == chosen, Company: a.Name, Closable: true,
		Path: strings.TrimPrefix(strings.TrimPrefix(v.r.URL.Path, "/link"), "/"),
	}
}

// applyBrand sets the branding of a team on a page: name, colour, logo and contact.
func (a *Pages) applyBrand(v *visit, b linking.Brand) {
	if b.CompanyName != "" {
		v.view.Company = b.CompanyName
	}
	v.view.Color = b.Color
	v.view.Contact = page.Contact{Website: b.Website, Email: b.SupportEmail, Text: b.SupportContact, Address: b.Address}
	if inlineLogo.MatchString(b.LogoURL) || strings.HasPrefix(b.LogoURL, a.origin+"/") {
		v.view.Logo = template.URL(b.LogoURL) //nolint:gosec // no script runs in an image of these two kinds
	}
}

var inlineLogo = regexp.MustCompile(`^data:image/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+=*$`)

// open checks that the token is valid, and loads its session, the consent text and the branding into v.
func (a *Pages) open(v *visit) (linking.Page, error) {
	p, err := a.Linking.Page(v.ctx(), v.token)
	if err != nil {
		return p, err
	}
	v.session, v.consent = p.Session, p.Consent
	a.applyBrand(v, p.Brand)
	return p, nil
}

// draw answers with the page name. data holds the values of that page.
func (a *Pages) draw(v *visit, status int, name string, data any) error {
	v.view.Data = data
	b, err := a.site.Render(name, v.view)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Security-Policy", a.policy(v))
	h.Set("Content-Language", v.view.Lang)
	if len(a.FrameAncestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}
	privatePage(h)
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", wire.RetryAfter)
	}
	return wire.Bytes(v.w, status, "text/html; charset=utf-8", b)
}

func privatePage(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// policy returns the Content-Security-Policy of a page. It lists the targets of form redirects, because browsers apply
// form-action to redirects too.
func (a *Pages) policy(v *visit) string {
	form := "'self'"
	if t := v.session.Options.RedirectURL; t != "" {
		if u, err := url.Parse(t); err == nil && plainHost.MatchString(u.Host) {
			form += " " + sourceOf(u)
		}
	}
	frames := "'none'"
	if len(a.FrameAncestors) > 0 {
		frames = strings.Join(a.FrameAncestors, " ")
	}
	return "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action " + form +
		"; base-uri 'none'; frame-ancestors " + frames
}

// plainHost matches hosts without characters that have a special meaning in a Content-Security-Policy.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]*$`)

func sourceOf(u *url.URL) string {
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// redirect redirects a browser with status 303 after a POST, so that a form becomes a GET, and with 307 otherwise.
func (v *visit) redirect(to string) error {
	privatePage(v.w.Header())
	v.w.Header().Set("Location", to)
	status := http.StatusTemporaryRedirect
	if v.r.Method == http.MethodPost {
		status = http.StatusSeeOther
	}
	v.w.WriteHeader(status)
	return nil
}

// keyOf returns the key of the text for an error in the text catalogue, its linking.ErrorType (empty if it has none)
// and its HTTP status.
func (a *Pages) keyOf(err error) (key string, kind linking.ErrorType, status int) {
	if t, ok := linking.ErrorTypeOf(err); ok {
		return string(t), t, server.PlainFault(err).Status
	}
	f := server.FaultOf(err, nil)
	if key = strings.ToLower(f.Type); a.site.Has("problem." + key + ".title") {
		return key, "", f.Status
	}
	return "internal", "", f.Status
}

// problem shows an error page with links to continue.
func (a *Pages) problem(ctx context.Context, v *visit, err error) error {
	if server.StoreSilent(ctx) {
		err = server.ErrStoreSilent // an ended context can cause many different errors
	}
	key, kind, status := a.keyOf(err)
	if key == "internal" && status >= http.StatusInternalServerError && ctx.Err() == nil {
		a.LogFailure(v.r, v.session.Team, err)
	}
	x := v.session
	if x.Team.IsZero() {
		x, _ = a.Linking.Open(ctx, v.token)
		v.session = x
	}
	if !x.Team.IsZero() {
		if b, bad := a.Linking.Brand(ctx, x.Team); bad == nil {
			a.applyBrand(v, b)
		}
	}
	if kind == linking.TokenExpired || kind == linking.TokenConsumed {
		if to, bad := a.Linking.Location(ctx, x, linking.Outcome{Error: kind}); bad == nil && to != "" {
			return v.redirect(to)
		}
	}
	dead := slices.Contains([]string{"invalid_token", "token_expired", "token_consumed", "too_many_tries"}, key)
	out := page.ProblemPage{Key: key}
	if p := a.Health.Providers().Get(v.provider()); p != nil {
		out.Source = a.source(p)
		out.Retry = !dead && key != "invalid_provider" && key != "invalid_request"
	}
	out.Another = !dead && x.Options.Provider == "" && v.token != ""
	v.view.Closable = !dead && v.token != ""
	v.view.Event, v.view.ErrorType, v.view.Provider, v.view.Origins = "error", key, out.Source.Slug, a.FrameAncestors
	v.view.Path = "" // the link itself, in another language
	if status == http.StatusUnauthorized {
		status = http.StatusForbidden // 403, because a browser has no way to answer a 401
	}
	return a.draw(v, status, "problem", out)
}

// source returns a provider as pages show it.
func (a *Pages) source(p *healthdata.Provider) page.Source {
	way := p.AuthType
	switch {
	case p.Class == "sdk_store":
		way = "device"
	case p.Class == "manual":
		way = "manual"
	case way == "team_oauth":
		way = "oauth"
	case p.OwnSite:
		way = "site"
	}
	slugs := make([]string, len(p.Resources))
	for i, r := range p.Resources {
		slugs[i] = r.Resource
	}
	return a.site.DrawSource(a.root, page.Source{Slug: p.Slug, Name: p.Name, Description: p.Description, Way: way, Kinds: page.KindsOf(slugs)})
}

// offers returns the providers that the pages offer.
func (a *Pages) offers(p *linking.Page) []healthdata.Provider {
	out := slices.Clone(p.Providers)
	if a.OnDevice {
		out = append(out, p.OnDevice...)
	}
	if a.Manual {
		out = append(out, p.Manual...)
	}
	slices.SortFunc(out, func(x, y healthdata.Provider) int {
		return strings.Compare(healthlab.FoldText(x.Name), healthlab.FoldText(y.Name))
	})
	return out
}

// offeredProvider returns the provider that the path names. It fails if the pages do not offer that provider.
func (a *Pages) offeredProvider(v *visit) (linking.Page, *healthdata.Provider, error) {
	p, err := a.open(v)
	if err != nil {
		return p, nil, err
	}
	for _, o := range a.offers(&p) {
		if o.Slug == v.provider() {
			return p, &o, nil
		}
	}
	return p, nil, &healthlab.RuleError{Type: linking.RuleInvalidProvider, Msg: "this link token does not offer this source"}
}

func (a *Pages) pageAsset(w http.ResponseWriter, r *http.Request) error {
	f, ok := a.site.Asset(r.PathValue("name"), r.URL.Query().Get("color"))
	if !ok {
		return healthlab.NotFound
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox") // a logo may be an SVG
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "public, max-age=86400")
	if r.URL.Query().Has("v") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return wire.Bytes(w, http.StatusOK, f.Type, f.Body)
}

func appLink(to string) template.URL { return template.URL(to) } //nolint:gosec // made of configuration and hex digits
