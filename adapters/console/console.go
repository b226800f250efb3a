package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed html/*.html
var pages embed.FS

//go:embed assets
var assets embed.FS

// Config selects the API and the team of the console. All fields except Path, KeyHeader, Secure, Log and Now are
// required.
type Config struct {
	API http.Handler
	// Org and Team are ids; Environment is sandbox or production.
	Org, Team, Environment string
	// TeamKey is the API key of Team. The console sends it only for signed-in requests.
	TeamKey string
	// KeyHeader is the header of TeamKey. Default: x-service-api-key.
	KeyHeader string
	// Path is the path below which the console is served. Default: /console.
	Path string
	// Secure marks the session cookie as Secure. Set it if callers use HTTPS.
	Secure bool
	// Log receives errors. Default: slog.Default().
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Console is the handler of the pages. It is safe for concurrent use.
type Console struct {
	Config
	mux      *http.ServeMux
	handler  http.Handler // mux behind a check that requests come from the console's origin
	pages    map[string]*template.Template
	sessions sessions

	contractMu   sync.Mutex
	contractRead *contract
}

// New returns the handler of all paths below Config.Path.
func New(c Config) (*Console, error) {
	if c.API == nil || c.Org == "" || c.Team == "" || c.Environment == "" || c.TeamKey == "" {
		return nil, errors.New("console: API, Org, Team, Environment and TeamKey are required")
	}
	c.Path = cmp.Or(strings.TrimSuffix(c.Path, "/"), "/console")
	c.KeyHeader = cmp.Or(c.KeyHeader, "x-service-api-key")
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Console{Config: c, mux: http.NewServeMux(), pages: map[string]*template.Template{}, sessions: newSessions(c.Now)}
	names, err := pages.ReadDir("html")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if n.Name() == "layout.html" || n.Name() == "parts.html" {
			continue
		}
		t, err := template.New("layout.html").Funcs(functions).ParseFS(pages, "html/layout.html", "html/parts.html", "html/"+n.Name())
		if err != nil {
			return nil, err
		}
		s.pages[strings.TrimSuffix(n.Name(), ".html")] = t
	}
	if err := s.serveAssets(); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("GET "+c.Path+"/sign-in", func(w http.ResponseWriter, r *http.Request) {
		s.render(w, r, nil, http.StatusOK, "signin", "Sign in", nil)
	})
	s.mux.HandleFunc("POST "+c.Path+"/sign-in", s.signIn)
	s.mux.HandleFunc("GET "+c.Path+"/links/{link}", s.openLink)
	s.mux.HandleFunc("POST "+c.Path+"/links/{link}", s.useLink)
	s.mux.Handle("GET "+c.Path, http.RedirectHandler(c.Path+"/", http.StatusSeeOther))
	for pattern, h := range map[string]pageHandler{
		"GET /{$}": s.home, "POST /sign-out": s.signOut, "GET /users": s.users, "GET /people": s.suggestUsers, "GET /users/{id}": s.person,
		"GET /users/{id}/sleep": s.sleep, "GET /users/{id}/workouts": s.workouts, "GET /users/{id}/labs": s.labs,
		"GET /orders": s.orders, "GET /orders/{id}": s.order,
		"GET /orders/{id}/documents/{document...}": s.document, "POST /orders/{id}/simulate": s.simulate,
		"GET /reviews": s.reviews, "GET /reviews/{id}": s.review, "POST /reviews/{id}": s.decide,
		"GET /critical": s.criticalResults, "GET /critical/{id}": s.criticalResult, "POST /critical/{id}": s.acknowledge,
		"GET /events": s.events, "POST /endpoints": s.makeEndpoint, "GET /endpoints/{webhook}": s.endpoint, "POST /endpoints/{webhook}": s.changeEndpoint,
		"POST /endpoints/{webhook}/{action}": s.actOnEndpoint, "GET /endpoints/{webhook}/{action}": s.toEndpoint,
		"POST /events/{webhook}/messages/{message}": s.resend,
		"POST /events/{webhook}/recover":            s.recover, "GET /signature": s.signature, "POST /signature": s.signature,
		"GET /query": s.query, "POST /query": s.query,
		"GET /reports": s.reports, "GET /reports/{id}": s.report, "POST /reports/{id}": s.decideReport, "GET /reports/{id}/pages/{page}": s.reportImage,
		"GET /team": s.team, "POST /team/keys": s.makeKey, "POST /team/keys/{id}/rotate": s.rotateKey, "POST /team/keys/{id}/delete": s.deleteKey,
		"POST /team/settings": s.changeSettings, "POST /team/teams": s.makeTeam, "GET /sources": s.sourcesBehind,
		"GET /providers": s.providers, "GET /sandbox": s.sandbox, "POST /sandbox/people": s.makePerson, "POST /sandbox/data": s.pushData,
		"POST /sandbox/orders": s.placeOrder, "POST /sandbox/results": s.sendUnmatchedResult, "POST /users/{id}/refresh": s.refresh,
		"GET /team/": s.toTeam, "GET /": notFound,
	} {
		method, below, _ := strings.Cut(pattern, " ")
		if strings.HasPrefix(below, "/users/{id}") {
			h = s.ofUser(h)
		}
		s.mux.HandleFunc(method+" "+c.Path+below, s.signedIn(h))
	}
	s.handler = http.NewCrossOriginProtection().Handler(s.mux)
	return s, nil
}

// serveAssets serves the style sheet, the scripts and the icon.
func (s *Console) serveAssets() error {
	list, err := assets.ReadDir("assets")
	if err != nil {
		return err
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, one := range list {
		file, err := assets.ReadFile("assets/" + one.Name())
		if err != nil {
			return err
		}
		kind := kinds[path.Ext(one.Name())]
		s.mux.HandleFunc("GET "+s.Path+"/"+one.Name(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(file)
		})
	}
	return nil
}

// ServeHTTP serves a request of the console. It sets the security headers that all answers share.
func (s *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	s.handler.ServeHTTP(w, r)
}

// pageHandler answers a request of a signed-in browser. If it returns an error, [Console.signedIn] renders the error
// page.
type pageHandler func(http.ResponseWriter, *http.Request, *session) error

// signedIn calls h for requests with a session. Without one, or if the API refuses the session's key, it redirects
// to the sign-in page. It checks the CSRF token of forms.
func (s *Console) signedIn(h pageHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		on := s.sessions.find(r)
		if on == nil {
			http.Redirect(w, r, s.Path+"/sign-in", http.StatusSeeOther)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		if r.Method == http.MethodPost && !on.hasCSRFToken(r.PostFormValue("csrf")) {
			s.render(w, r, on, http.StatusForbidden, "problem", "Form expired", "Open the page once more and send the form.")
			return
		}
		who, err := s.checkKey(r, on.key)
		var failed *apiError
		if errors.As(err, &failed) && (failed.Status == http.StatusUnauthorized || failed.Status == http.StatusNotFound) {
			s.sessions.remove(r) // the key was revoked
			http.Redirect(w, r, s.Path+"/sign-in", http.StatusSeeOther)
			return
		}
		r = r.WithContext(context.WithValue(context.WithValue(r.Context(), sessionKey{}, on), holderKey{}, who))
		if err == nil {
			err = h(w, r, on)
		}
		switch {
		case err == nil:
		case errors.Is(r.Context().Err(), context.Canceled): // the person left
		case errors.As(err, &failed):
			s.render(w, r, on, failed.Status, "problem", "The API refused the request", failed.Message)
		default:
			s.Log.ErrorContext(r.Context(), "console page failed", "path", r.Pattern, "error", err) //nolint:contextcheck // the request's own
			s.render(w, r, on, http.StatusInternalServerError, "problem", "The page failed", "The log has the error.")
		}
	}
}

func notFound(http.ResponseWriter, *http.Request, *session) error {
	return &apiError{Status: http.StatusNotFound, Message: "page not found"}
}

// holderKey is the context key of the [holder] of the session's management key.
type holderKey struct{}

func holderOf(r *http.Request) *holder {
	if who, ok := r.Context().Value(holderKey{}).(*holder); ok {
		return who
	}
	return new(holder)
}

// entry is an entry of the navigation, shown to sessions with the role. Pages with personal data require the role
// admin, and lab reports the role reviewer.
type entry struct{ Path, Title, role string }

var entries = []entry{
	{"users", "Users", "admin"}, {"orders", "Orders", "admin"}, {"reviews", "Results", "admin"}, {"critical", "Critical", "admin"}, {"reports", "Reports", "reviewer"},
	{"events", "Events", "viewer"}, {"query", "Query", "admin"}, {"sources", "Sources", "admin"}, {"team", "Team", "viewer"}, {"sandbox", "Sandbox", "admin"},
}

// view holds what the template of every page gets. Data holds what only one page gets.
type view struct {
	Path, Title, Section, CSRF, Environment string
	Back                                    string // address of the page with the form that was sent; "" if unknown
	SignedIn                                bool
	Holder                                  *holder
	Entries                                 []entry
	Data                                    any
}

// render renders a page to memory, so that a failure can still become an error page, and sends it.
func (s *Console) render(w http.ResponseWriter, r *http.Request, on *session, status int, page, title string, data any) {
	v := view{Path: s.Path, Title: title, Environment: s.Environment, Data: data}
	v.Section, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, s.Path), "/"), "/")
	if from, err := url.Parse(r.Referer()); err == nil && r.Method == http.MethodPost && from.Host == r.Host && strings.HasPrefix(from.Path, s.Path+"/") {
		v.Back = from.RequestURI()
	}
	if on != nil {
		v.SignedIn, v.CSRF = true, on.csrf
	}
	v.Holder = holderOf(r)
	for _, e := range entries {
		if v.Holder.May(e.role) && (e.Path != "sandbox" || s.Environment == "sandbox") {
			v.Entries = append(v.Entries, e)
		}
	}
	var b bytes.Buffer
	if err := s.pages[page].Execute(&b, v); err != nil {
		s.Log.ErrorContext(r.Context(), "console page does not render", "page", page, "error", err)
		http.Error(w, "The page failed. The log has the error.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func (s *Console) show(w http.ResponseWriter, r *http.Request, on *session, page, title string, data any) error {
	s.render(w, r, on, http.StatusOK, page, title, data)
	return nil
}

func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

var functions = template.FuncMap{
	"when":   func(t time.Time) template.HTML { return timeElement(t, "2006-01-02 15:04 UTC") },
	"moment": func(t time.Time) template.HTML { return timeElement(t, "2006-01-02 15:04:05 UTC") },
	"words":  words,
	"round":  func(v *float64) string { return fmt.Sprintf("%.0f", *v) },
	// last returns the last part of a status, after the last dot.
	"last":     func(status string) string { return words(status[strings.LastIndexByte(status, '.')+1:]) },
	"add":      func(a, b int) int { return a + b },
	"duration": func(seconds int) string { return fmt.Sprintf("%d:%02d\u00a0h", seconds/3600, seconds/60%60) },
	// day returns the date at the beginning of a time.
	"day": func(text string) string { return text[:min(len(text), len(time.DateOnly))] },
	"count": func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	},
}

// timeElement returns a time as an HTML element; "" for the zero time.
func timeElement(t time.Time, layout string) template.HTML {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(layout) + `</time>`) //nolint:gosec // digits and letters of a time alone
}
