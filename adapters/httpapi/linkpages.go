package httpapi

import (
	"context"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/page"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// LinkPages are the pages on which a person links an account: choose a source, agree, sign
// in, done. They are HTML that works without a script, in English and German, on phones and
// desktops, light and dark, and they ask no other origin for anything.
//
// The link token stands in their addresses, as it does in link_web_url, and is all that
// opens them: no cookie does, so that two tabs of two people stay apart and the pages can
// be embedded. The one cookie, __Host-link, only ties a sign-in at a provider's own page to
// the browser that left for it. It lives for an hour, says nothing about a person, and is
// sent to our own callback alone; where linking.Options.BaseURL is plain http it is named
// link, for browsers keep the prefix for https. A host keeps queries out of the logs of its
// servers, for the token stands there.
//
// The zero value is good. What a team's pages look like is linking.Brand: its colour is
// moved as far as it takes to be readable, and its logo is shown where it is a data: URL or
// on our own origin, so that no third party learns of the visit; Logos can hold it.
type LinkPages struct {
	// Name is shown where a team has no name. Default Health Link.
	Name string
	// Logos are files named after a provider's slug, and brand for the page's own:
	// acme_ring.svg, brand.png; also .webp and .jpg. They are read once. A source without
	// one shows its initials.
	Logos fs.FS
	// FrameAncestors are the origins that may embed the pages, as a Content-Security-Policy
	// names them: https://app.example. They are told how it ended, by postMessage with
	// {source: "link", event, provider, error_type}, where event is success, exit or error.
	// Default: no site embeds them.
	FrameAncestors []string
	// Language is used where neither the person nor the browser has chosen. Default en.
	Language string
	// Texts are a host's own words, by language and key, over ours; a language of its own
	// too. The keys are those of internal/page/text/en.json.
	Texts map[string]map[string]string
	// OnDevice offers on-device stores too: the page shows a link code, and goes on when
	// the companion app has connected.
	OnDevice bool
	// Manual offers what people enter by hand.
	Manual bool
	// Demo offers made-up data in a sandbox, at providers that have it.
	Demo bool
	// FirstImport says how far the first import of a new connection to a source in the
	// cloud has come. Nil: the last page does not speak of it.
	FirstImport func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (FirstImport, error)
}

// FirstImport is how far the first import of a connection has come.
type FirstImport struct {
	// Total is how many kinds of data there are; 0 before anybody knows. Done is how many
	// of them have come to an end, and Failed how many of those without success.
	Total, Done, Failed int
}

// pages are the link pages as they are mounted.
type pages struct {
	LinkPages
	site *page.Site
	// root is the path of the pages, and origin where they are.
	root, origin string
	secure       bool
}

// maxForm is the largest form that a person sends.
const maxForm = 16 << 10

func (a api) newPages() *pages {
	if a.LinkPages == nil {
		return nil
	}
	if a.Linking == nil || a.Health == nil {
		panic("httpapi: Config.LinkPages needs Linking and Health")
	}
	site, err := page.NewSite(page.Options{Language: a.LinkPages.Language, Texts: a.LinkPages.Texts, Logos: a.LinkPages.Logos})
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	web, err := url.Parse(a.Linking.WebURL())
	base, bad := url.Parse(a.Linking.BaseURL())
	if err != nil || bad != nil || web.Host != base.Host || web.Scheme != base.Scheme {
		panic("httpapi: the link pages are on the host of linking.Options.BaseURL: a callback needs their cookie")
	}
	for _, f := range a.LinkPages.FrameAncestors {
		if u, err := url.Parse(f); err != nil || u.Host == "" || u.Path != "" || strings.ContainsAny(f, "; ,'\"*") {
			panic("httpapi: LinkPages.FrameAncestors are origins, such as https://app.example")
		}
	}
	return &pages{
		LinkPages: *a.LinkPages, site: site, root: strings.TrimSuffix(web.EscapedPath(), "/"), origin: web.Scheme + "://" + web.Host,
		secure: base.Scheme == "https",
	}
}

// linkPageOperations are the pages. They are mounted at /link whatever the path is from
// outside: what strips a prefix from it strips that of all.
func (a api) linkPageOperations() []operation {
	if a.pages == nil {
		return nil
	}
	show := func(id, pattern string, draw func(*visit) error) operation {
		return operation{id: "link_page_" + id, pattern: pattern, maxBody: maxForm, ignoreUnknown: true,
			handle: func(w http.ResponseWriter, r *http.Request) error { return a.visit(w, r, draw) }}
	}
	return []operation{
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
		{id: "link_page_asset", pattern: "GET /link/assets/{name}", handle: a.pageAsset},
	}
}

// visit is one request for a page.
type visit struct {
	w     http.ResponseWriter
	r     *http.Request
	token string
	form  url.Values // of a POST
	view  page.View
	// session is what the token opened, as far as it is known.
	session linking.Session
	// consent is the text that the person agrees to.
	consent healthdata.ConsentText
}

func (v *visit) ctx() context.Context { return v.r.Context() }

func (v *visit) provider() string { return v.r.PathValue("provider") }

// visit reads what every page needs, and shows a person what went wrong.
func (a api) visit(w http.ResponseWriter, r *http.Request, draw func(*visit) error) error {
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

// begin sets up a visit with a token.
func (a api) begin(ctx context.Context, v *visit, token, lang string) {
	if len(token) > 4096 {
		token = token[:4096] // which no token is
	}
	v.token = token
	a.byLink(ctx, token)
	chosen := a.pages.site.Language(lang, v.r.Header.Get("Accept-Language"))
	v.view = page.View{
		Root: a.pages.root, Token: token, Lang: chosen, Asked: lang == chosen, Company: a.pages.Name, Closable: true,
		Path: strings.TrimPrefix(strings.TrimPrefix(v.r.URL.Path, "/link"), "/"),
	}
}

// dress gives a page the look of the team.
func (a api) dress(v *visit, b linking.Brand) {
	if b.CompanyName != "" {
		v.view.Company = b.CompanyName
	}
	v.view.Color = b.Color
	v.view.Contact = page.Contact{Website: b.Website, Email: b.SupportEmail, Text: b.SupportContact, Address: b.Address}
	if inlineLogo.MatchString(b.LogoURL) || strings.HasPrefix(b.LogoURL, a.pages.origin+"/") {
		v.view.Logo = template.URL(b.LogoURL) //nolint:gosec // no script runs in an image of these two kinds
	}
}

var inlineLogo = regexp.MustCompile(`^data:image/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+=*$`)

// open opens the token for a page.
func (a api) open(v *visit) (linking.Page, error) {
	p, err := a.Linking.Page(v.ctx(), v.token)
	if err != nil {
		return p, err
	}
	v.session, v.consent = p.Session, p.Consent
	a.dress(v, p.Brand)
	return p, nil
}

// draw answers with a page.
func (a api) draw(v *visit, status int, name string, data any) error {
	v.view.Data = data
	b, err := a.pages.site.Render(name, v.view)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Security-Policy", a.policy(v))
	h.Set("Content-Language", v.view.Lang)
	if len(a.pages.FrameAncestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}
	privatePage(h)
	return wire.Bytes(v.w, status, "text/html; charset=utf-8", b)
}

// privatePage keeps a page, or a way out of one, out of caches and referrers.
func privatePage(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// policy lets a page load what is ours and nothing else. A browser may hold a form to
// form-action through its redirects too, so that where a form can end is named.
func (a api) policy(v *visit) string {
	form := "'self'"
	if t := v.session.Options.RedirectURL; t != "" {
		if u, err := url.Parse(t); err == nil && plainHost.MatchString(u.Host) {
			form += " " + sourceOf(u)
		}
	}
	frames := "'none'"
	if len(a.pages.FrameAncestors) > 0 {
		frames = strings.Join(a.pages.FrameAncestors, " ")
	}
	return "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action " + form +
		"; base-uri 'none'; frame-ancestors " + frames
}

// plainHost is a host that means nothing else in a policy; a URL may have others.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]*$`)

// sourceOf is a redirect URL as a source of a policy.
func sourceOf(u *url.URL) string {
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// leave sends a browser away. A form is never sent on: what is behind a 303 gets a GET.
func (v *visit) leave(to string) error {
	privatePage(v.w.Header())
	v.w.Header().Set("Location", to)
	status := http.StatusTemporaryRedirect
	if v.r.Method == http.MethodPost {
		status = http.StatusSeeOther
	}
	v.w.WriteHeader(status)
	return nil
}

// keyOf is the name of what went wrong in the catalogue, and the status that goes with it.
func (a api) keyOf(err error) (key string, kind linking.ErrorType, status int) {
	if t, ok := linking.Reason(err); ok {
		return string(t), t, plainFault(err).Status
	}
	f := faultOf(err, nil)
	if key = strings.ToLower(f.Type); a.pages.site.Has("problem." + key + ".title") {
		return key, "", f.Status
	}
	return "internal", "", f.Status
}

// problem shows what went wrong, and the way on.
func (a api) problem(ctx context.Context, v *visit, err error) error {
	key, kind, status := a.keyOf(err)
	if key == "internal" && status >= http.StatusInternalServerError && ctx.Err() == nil {
		a.logFailure(v.r, &call{op: operation{id: "link_page"}, team: v.session.Team}, "link page failed", err)
	}
	x := v.session
	if x.Team.IsZero() {
		x, _ = a.Linking.Open(ctx, v.token)
		v.session = x
	}
	if !x.Team.IsZero() {
		if b, bad := a.Linking.Brand(ctx, x.Team); bad == nil {
			a.dress(v, b)
		}
	}
	if kind == linking.TokenExpired || kind == linking.TokenConsumed {
		if to, bad := a.Linking.Location(ctx, x, linking.Outcome{Error: kind}); bad == nil && to != "" {
			return v.leave(to)
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
	v.view.Event, v.view.ErrorType, v.view.Provider, v.view.Origins = "error", key, out.Source.Slug, a.pages.FrameAncestors
	v.view.Path = "" // the link itself, in another language
	if status == http.StatusUnauthorized {
		status = http.StatusForbidden // there is nothing that a browser could sign in with
	}
	return a.draw(v, status, "problem", out)
}

// source draws a provider.
func (a api) source(p *healthdata.Provider) page.Source {
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
	return a.pages.site.NewSource(a.pages.root, p.Slug, p.Name, p.Description, way, slugs)
}

// offers are the sources that the pages offer.
func (a api) offers(p *linking.Page) []healthdata.Provider {
	out := slices.Clone(p.Providers)
	if a.pages.OnDevice {
		out = append(out, p.OnDevice...)
	}
	if a.pages.Manual {
		out = append(out, p.Manual...)
	}
	slices.SortFunc(out, func(x, y healthdata.Provider) int {
		return strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
	})
	return out
}

// offer is the source of the path, if the pages offer it.
func (a api) offer(v *visit) (linking.Page, *healthdata.Provider, error) {
	p, err := a.open(v)
	if err != nil {
		return p, nil, err
	}
	for _, o := range a.offers(&p) {
		if o.Slug == v.provider() {
			return p, &o, nil
		}
	}
	return p, nil, &healthlab.RuleError{Type: linking.RuleInvalidProvider, Msg: "the pages of this token do not offer this source"}
}

func (a api) pageAsset(w http.ResponseWriter, r *http.Request) error {
	f, ok := a.pages.site.Asset(r.PathValue("name"), r.URL.Query().Get("color"))
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

// appLink is the address that opens the companion app, which the host configured.
func appLink(to string) template.URL { return template.URL(to) } //nolint:gosec // made of configuration and hex digits
