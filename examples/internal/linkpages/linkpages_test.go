package linkpages_test

import (
	"crypto/tls"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/linking"
)

// visitor asks for pages without a browser, and follows no redirect.
type visitor struct {
	t      *testing.T
	w      *linkFixture
	client *http.Client
	header http.Header
}

func (w *linkFixture) visitor() *visitor {
	return &visitor{t: w.t, w: w, header: http.Header{}, client: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type seenPage struct {
	*http.Response
	body string
}

func (v *visitor) do(method, path string, form url.Values) seenPage {
	v.t.Helper()
	if !strings.HasPrefix(path, "https://") {
		path = v.w.ours.URL + path
	}
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, path, body)
	require.NoError(v.t, err)
	r.Header = v.header.Clone()
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(v.t, err)
	return seenPage{answer, string(b)}
}

func (v *visitor) get(path string) seenPage { v.t.Helper(); return v.do("GET", path, nil) }

func tokenQuery(o linking.IssuedToken) string { return "?token=" + url.QueryEscape(o.Token) }

// Every page has the security headers.
func TestLinkPages_haveSecurityHeaders(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	v := w.visitor()
	issued := w.invite(linking.NewToken{RedirectURL: "https://app.example/x"})
	for _, path := range []string{"/link", "/link/source/acme_band", "/link/source/cedar_sleep", "/link/close", "/link/source/nobody", "/link/done"} {
		p := v.get(path + tokenQuery(issued))
		require.Equal(t, "no-referrer", p.Header.Get("Referrer-Policy"), path)
		require.Equal(t, "no-store", p.Header.Get("Cache-Control"), path)
		require.Equal(t, "nosniff", p.Header.Get("X-Content-Type-Options"), path)
		if p.StatusCode == http.StatusTemporaryRedirect {
			continue
		}
		require.Equal(t, "text/html; charset=utf-8", p.Header.Get("Content-Type"))
		require.Equal(t, "DENY", p.Header.Get("X-Frame-Options"))
		require.Equal(t, "en", p.Header.Get("Content-Language"))
		require.Equal(t, "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "+
			"form-action 'self' https://app.example; base-uri 'none'; frame-ancestors 'none'", p.Header.Get("Content-Security-Policy"), path)
		require.NotRegexp(t, `(?i)<style|<script>| style=| on[a-z]+=|javascript:`, p.body, path)
		for _, m := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(p.body, -1) {
			require.Regexp(t, `^(/link|#main$|data:,$)`, m[1], path)
		}
	}
	app := v.get("/link" + tokenQuery(w.invite(linking.NewToken{RedirectURL: "myapp://back"})))
	require.Contains(t, app.Header.Get("Content-Security-Policy"), "form-action 'self' myapp:;")

	odd := v.get("/link" + tokenQuery(w.invite(linking.NewToken{RedirectURL: "https://a;script-src,*/"})))
	require.Contains(t, odd.Header.Get("Content-Security-Policy"), "form-action 'self'; base-uri")

	style := v.get("/link/assets/style.css?color=ff0000&v=1")
	require.Equal(t, "public, max-age=31536000, immutable", style.Header.Get("Cache-Control"))
	require.Contains(t, style.body, "--accent:#")
	require.Equal(t, http.StatusNotFound, v.get("/link/assets/nothing").StatusCode)
}

func TestLinkPages_mayBeEmbeddedByAllowedSites(t *testing.T) {
	w := newLinkFixture(t, func(p *httpapi.LinkPages) {
		p.FrameAncestors = []string{"https://app.example", "https://b.example:8443"}
	}, nil)
	v := w.visitor()
	p := v.get("/link" + tokenQuery(w.invite(linking.NewToken{})))
	require.Contains(t, p.Header.Get("Content-Security-Policy"), "frame-ancestors https://app.example https://b.example:8443")
	require.Empty(t, p.Header.Get("X-Frame-Options"))

	// A provider's page does not let itself be shown in a frame: the person leaves by a link.
	fixed := tokenQuery(w.invite(linking.NewToken{Provider: "acme_band"}))
	require.Contains(t, v.get("/link"+fixed).Header.Get("Location"), w.provider.URL)
	v.header.Set("Sec-Fetch-Dest", "iframe")
	require.Contains(t, v.get("/link"+fixed).Header.Get("Location"), "/link/source/acme_band?")
	require.Contains(t, v.get("/link/source/acme_band"+fixed).body, `target="_top"`)
}

func TestLinkPages_callbackRequiresTheCookieOfItsBrowser(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	v := w.visitor()
	issued := w.invite(linking.NewToken{})
	require.Empty(t, v.get("/link"+tokenQuery(issued)).Cookies(), "nobody needs it yet")
	given := v.get("/link/source/acme_band" + tokenQuery(issued)).Cookies()
	require.Len(t, given, 1)
	c := given[0]
	require.Equal(t, []any{"__Host-link", "/", "", 3600, true, true, http.SameSiteLaxMode},
		[]any{c.Name, c.Path, c.Domain, c.MaxAge, c.HttpOnly, c.Secure, c.SameSite})
	require.True(t, linking.IsBrowserSecret(c.Value))

	leave := func(cookie string) seenPage {
		v.header.Set("Cookie", cookie)
		return v.get("/link/source/acme_band/go" + tokenQuery(issued))
	}
	back := func(cookie string) seenPage {
		v.header.Set("Cookie", cookie)
		return v.get("/v2/link/connect/acme_band?" + url.Values{"state": {issued.Token}, "code": {"right"}}.Encode())
	}
	require.Equal(t, c.Value, leave("__Host-link=" + c.Value).Cookies()[0].Value, "a browser stays who it is")
	other := leave("__Host-link=planted").Cookies()[0].Value
	require.NotEqual(t, "planted", other, "what is not ours is replaced")
	for _, cookie := range []string{"", "__Host-link=planted", "__Host-link=" + c.Value, "link=" + other} {
		leave("__Host-link=" + other)
		p := back(cookie)
		require.Equal(t, http.StatusBadRequest, p.StatusCode)
		require.Contains(t, p.body, "Please start this step again")
		require.Empty(t, w.connected(issued))
	}
	leave("__Host-link=" + other)
	require.Contains(t, back("__Host-link="+other).Header.Get("Location"), "/link/done?")
	require.Equal(t, []string{"acme_band"}, w.connected(issued))
}

// With a team's custom widget, the callback is the first request of the browser to us; a team
// without a widget can refuse sign-ins that did not begin on our pages.
func TestLinkPages_callbackOfACustomWidgetNeedsNoCookie(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	v := w.visitor()
	issued := w.invite(linking.NewToken{})
	v.header.Set("x-service-link-token", issued.Token)
	require.Equal(t, http.StatusOK, v.get("/v2/link/provider/oauth/acme_band").StatusCode)
	w.set(func() { w.settings.PagesOnly = true })
	refused := v.get("/v2/link/provider/oauth/acme_band")
	require.Equal(t, http.StatusBadRequest, refused.StatusCode)
	require.Contains(t, refused.body, "INVALID_PROVIDER")
	back := "/v2/link/connect/acme_band?" + url.Values{"state": {issued.Token}, "code": {"right"}}.Encode()
	require.Equal(t, http.StatusBadRequest, v.get(back).StatusCode)
	require.Empty(t, w.connected(issued))
	w.set(func() { w.settings.PagesOnly = false })
	require.Equal(t, http.StatusOK, v.get("/v2/link/provider/oauth/acme_band").StatusCode)
	require.Contains(t, v.get(back).Header.Get("Location"), "/link/done?")
	require.Equal(t, []string{"acme_band"}, w.connected(issued))
}

// The final redirect goes to a URL that the team allows at that time, and a form is answered
// with 303, so that the browser does not send its fields on.
func TestLinkPages_redirectOnlyToURLsThatTheTeamAllows(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	v := w.visitor()
	form := func(o linking.IssuedToken) url.Values {
		return url.Values{"token": {o.Token}, "username": {"right"}, "password": {"secret"}}
	}
	p := v.do("POST", "/link/source/cedar_sleep", form(w.invite(linking.NewToken{RedirectURL: "myapp://back#x"})))
	require.Equal(t, http.StatusSeeOther, p.StatusCode)
	require.Equal(t, "myapp://back?state=success&provider=cedar_sleep#x", p.Header.Get("Location"))
	require.Equal(t, "no-referrer", p.Header.Get("Referrer-Policy"))

	issued := w.invite(linking.NewToken{RedirectURL: "https://app.example/x", OnClose: "redirect", OnError: "redirect"})
	w.set(func() { w.settings.Redirects.Hosts = []string{"clinic.example"} })
	for _, c := range []struct {
		path string
		form url.Values
	}{
		{"/link/close", url.Values{"token": {issued.Token}}},
		{"/link/source/cedar_sleep", url.Values{"token": {issued.Token}, "username": {"wrong"}, "password": {"x"}}},
		{"/link/source/cedar_sleep", form(issued)},
		{"/link/source/cedar_sleep", form(issued)}, // used up by now
	} {
		p := v.do("POST", c.path, c.form)
		require.NotContains(t, p.Header.Get("Location"), "app.example")
	}
	require.NotContains(t, v.get("/link"+tokenQuery(issued)).Header.Get("Location"), "app.example")
}

// No value of a form appears in a page or a log, except the name in its own field, and no
// page shows the cause of an internal error.
func TestLinkPages_showAndLogNoFormValue(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	v := w.visitor()
	const mark = "Zq7Marker"
	issued := w.invite(linking.NewToken{})
	for path, form := range map[string]url.Values{
		"/link/source/cedar_sleep":      {"username": {"a"}, "password": {mark}, "region": {mark}},
		"/link/source/birch_pump":       {"username": {"a"}, "password": {mark}, "region": {mark}},
		"/link/source/acme_cgm":         {"email": {"a@b"}, "region": {mark}},
		"/link/source/cedar_sleep/code": {"mfa_code": {mark}},
		"/link/source/" + mark:          {"username": {mark}},
		"/link/source/manual":           {"demo": {mark}},
		"/link/close":                   {"lang": {mark}},
	} {
		for _, token := range []string{issued.Token, mark} {
			form.Set("token", token)
			p := v.do("POST", path, form)
			require.NotContains(t, strings.ReplaceAll(p.body, "token="+mark, ""), `>`+mark, path)
			if token == issued.Token {
				require.NotContains(t, p.body, mark, path)
			}
			require.Less(t, p.StatusCode, 500, path)
		}
	}
	for _, query := range []string{"?data=" + mark, "?q=a&data=" + mark, "?lang=" + mark} {
		require.NotContains(t, v.get("/link"+query+"&token="+url.QueryEscape(issued.Token)).body, mark)
	}
	require.Equal(t, http.StatusBadRequest, v.do("POST", "/link/source/cedar_sleep", url.Values{"token": {issued.Token}, "password": {strings.Repeat("x", 20<<10)}}).StatusCode)
	for _, name := range []string{strings.Repeat("x", 513), "a\x00b", "\xff"} {
		p := v.do("POST", "/link/source/cedar_sleep", url.Values{"token": {issued.Token}, "username": {name}, "password": {"x"}})
		require.Equal(t, http.StatusUnprocessableEntity, p.StatusCode)
		require.Contains(t, p.body, "This is too long.")
	}
	w.set(func() { require.NotContains(t, w.logs.String(), mark) })
}

// When the team's settings cannot be read, the page shows a general error, and the service
// logs it.
func TestLinkPages_unreadableSettingsShowAGeneralError(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	issued := w.invite(linking.NewToken{})
	w.set(func() { w.broken = healthlab.Unavailable })
	p := w.visitor().get("/link" + tokenQuery(issued))
	require.Equal(t, http.StatusServiceUnavailable, p.StatusCode)
	require.Contains(t, p.body, "Something went wrong on our side")
	w.set(func() { require.Contains(t, w.logs.String(), "link page failed") })
}

func TestLinkPages_panicWithoutRequiredServices(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	whose := func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil }
	handler := func(c httpapi.Config) func() {
		c.Authenticate = whose
		return func() { httpapi.Handler(c) }
	}
	require.Panics(t, handler(httpapi.Config{Parts: (&httpapi.Services{LinkPages: &httpapi.LinkPages{}}).Parts()}))
	for _, origin := range []string{"*", "app.example", "https://app.example/path", "https://app.example; script-src *", "https://*.example"} {
		require.Panics(t, handler(httpapi.Config{Parts: (&httpapi.Services{LinkPages: &httpapi.LinkPages{FrameAncestors: []string{origin}}, Linking: w.links, Health: w.health}).Parts()}), origin)
	}
	require.Panics(t, func() {
		newLinkFixture(t, nil, func(o *linking.Options) { o.WebURL = "https://elsewhere.example/link" })
	})
	require.NotPanics(t, handler(httpapi.Config{Parts: (&httpapi.Services{LinkPages: &httpapi.LinkPages{}, Linking: w.links, Health: w.health}).Parts()}))
	for _, r := range httpapi.Routes(httpapi.Config{Authenticate: whose, Parts: (&httpapi.Services{Linking: w.links, Health: w.health}).Parts()}) {
		require.NotContains(t, r.ID, "link_page")
	}
}

// Pages of a host that mounts the service below a path, with logos of its own.
func TestLinkPages_workBelowAPathWithOwnLogos(t *testing.T) {
	logo := "data:image/svg+xml;base64,PHN2Zy8+"
	w := newLinkFixture(t, func(p *httpapi.LinkPages) {
		p.Logos = fstest.MapFS{"acme_ring.svg": {Data: []byte("<svg/>")}}
		p.OnDevice, p.Manual, p.Demo = false, false, false
	}, func(o *linking.Options) { o.WebURL = o.BaseURL + "/api/link" })
	w.set(func() { w.settings.Brand.LogoURL = logo })
	p := w.visitor().get("/link" + tokenQuery(w.invite(linking.NewToken{})))
	require.Contains(t, p.body, `href="/api/link/source/acme_ring?`)
	require.Contains(t, p.body, `src="/api/link/assets/logo-acme_ring"`)
	require.Contains(t, html.UnescapeString(p.body), `src="`+logo+`"`)
	require.NotContains(t, p.body, "Health Connect")
	require.NotContains(t, p.body, "Your own notes")
	w.set(func() { w.settings.Brand.LogoURL = "https://cdn.example/logo.png" })
	p = w.visitor().get("/link" + tokenQuery(w.invite(linking.NewToken{})))
	require.NotContains(t, p.body, "cdn.example", "a third party learns of nobody's visit")
	require.NotContains(t, p.body, "<address")
	w.set(func() {
		w.settings.Brand.Website, w.settings.Brand.SupportEmail = "https://riverside.example/?a=1&b=<2>", "help@riverside.example"
		w.settings.Brand.SupportContact, w.settings.Brand.Address = "Mondays <in person>", "1 Example Street"
	})
	p = w.visitor().get("/link" + tokenQuery(w.invite(linking.NewToken{})))
	for _, want := range []string{`href="https://riverside.example/?a=1&amp;b=%3c2%3e"`, `href="mailto:help@riverside.example"`, "Mondays &lt;in person&gt;", "1 Example Street"} {
		require.Contains(t, p.body, want)
	}
	svg := w.visitor().get("/link/assets/logo-acme_ring")
	require.Equal(t, "image/svg+xml", svg.Header.Get("Content-Type"))
	require.Contains(t, svg.Header.Get("Content-Security-Policy"), "sandbox")
	demo := w.visitor().do("POST", "/link/source/acme_band", url.Values{"token": {w.invite(linking.NewToken{}).Token}, "demo": {"1"}})
	require.Contains(t, demo.Header.Get("Location"), "/link/source/acme_band", "nothing is made up where it is not offered")
}

// For a provider whose servers people run themselves, the form and the list for custom
// widgets ask for an address and a token, in every language.
func TestLinkPages_ownServerFormAsksForAddressAndToken(t *testing.T) {
	w := newLinkFixture(t, nil, nil)
	w.health.Providers().Get("cedar_sleep").OwnSite = true // before the first request
	v := w.visitor()
	issued := w.invite(linking.NewToken{})
	where := "/link/source/cedar_sleep" + tokenQuery(issued)
	p := v.get(where)
	require.Contains(t, p.body, `<label for="username">Address of your site</label>`)
	require.Contains(t, p.body, `<label for="password">Token or API secret</label>`)
	require.NotContains(t, p.body, "User name")
	require.Contains(t, v.get(where+"&lang=de").body, "Adresse Ihrer Seite")
	require.Contains(t, v.get("/link/source/birch_pump"+tokenQuery(issued)).body, "User name or e-mail")

	v.header.Set("x-service-link-token", issued.Token)
	require.Contains(t, v.get("/v2/link/providers").body, `"label":"Token or API secret"`)
	v.header = http.Header{}
	p = v.do("POST", "/link/source/cedar_sleep", url.Values{"token": {issued.Token}, "username": {"right"}, "password": {"secret"}})
	require.Equal(t, http.StatusSeeOther, p.StatusCode, p.body)
}
