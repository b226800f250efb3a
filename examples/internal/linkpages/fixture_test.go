package linkpages_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

var team = healthlab.TeamID{UUID: uuid.UUID{1}}

// linkFixture is where people link on the pages: our service, a provider with a sign-in page
// of its own, and a customer whose site people return to, each on a host of its own.
type linkFixture struct {
	t                        *testing.T
	ours, provider, customer *httptest.Server
	health                   *healthdata.Service
	links                    *linking.Service
	logs                     bytes.Buffer

	mu        sync.Mutex
	now       time.Time
	settings  linking.TeamSettings
	imported  httpapi.FirstImport
	referrers []string // that the two others were told
	forms     int      // that the customer was sent
	users     int
	broken    error // what asking for a team's settings says
}

// linkProviders are one of each flow.
func linkProviders(t *testing.T) *healthdata.Providers {
	t.Helper()
	res := func(slugs ...string) (out []healthdata.ProviderResource) {
		for _, s := range slugs {
			out = append(out, healthdata.ProviderResource{Resource: s})
		}
		return out
	}
	logo := "https://cdn.example/band.png"
	list, err := healthdata.NewProviders([]healthdata.Provider{
		{
			Slug: "acme_band", Name: "Acme Band", Description: "A band for everyday activity.", Logo: &logo, AuthType: "oauth", Category: "device", Class: "cloud",
			Demo: true, Resources: res("activity", "sleep", "steps", "heartrate"),
			Scopes: map[string]healthdata.Scopes{"sleep": {Required: []string{"sleep"}}, "steps": {Optional: []string{"move"}}},
		},
		{Slug: "acme_ring", Name: "Acme Ring", Description: "A ring for sleep and recovery.", AuthType: "oauth", Category: "device", Class: "cloud",
			Resources: res("sleep", "hrv", "body_temperature_delta")},
		{Slug: "birch_pump", Name: "Birch Pump", Description: "An insulin pump.", AuthType: "password", Category: "device", Class: "cloud",
			Resources: res("glucose", "insulin_injection"), Regions: map[string][]string{"us": {"us", "ca"}}},
		{Slug: "cedar_sleep", Name: "Cedar Sleep", Description: "A device against sleep apnea.", AuthType: "password", Category: "device", Class: "cloud",
			Resources: res("sleep", "respiratory_rate")},
		{Slug: "acme_cgm", Name: "Acme CGM", Description: "A continuous glucose monitor, shared through a practice.", AuthType: "email", Category: "device", Class: "cloud",
			Resources: res("glucose"), Regions: map[string][]string{"us": {"us", "ca", "hk"}}},
		{Slug: "willow_clinic", Name: "Willow Clinic", AuthType: "team_oauth", Category: "provider", Class: "cloud"},
		{Slug: "health_connect", Name: "Health Connect", Description: "The health store of the phone.", AuthType: "sdk", Category: "app", Class: "sdk_store",
			Resources: res("steps", "sleep", "weight")},
		{Slug: "manual", Name: "Your own notes", Description: "What you measure yourself.", Category: "app", Class: "manual", Resources: res("weight", "blood_pressure", "note")},
	})
	require.NoError(t, err)
	return list
}

// newLinkFixture builds it. pages adjusts the pages, links the service; both may be nil.
func newLinkFixture(t *testing.T, pages func(*httpapi.LinkPages), links func(*linking.Options)) *linkFixture {
	t.Helper()
	w := &linkFixture{t: t, now: time.Now()}
	w.ours = httptest.NewUnstartedServer(nil)
	w.provider = httptest.NewTLSServer(http.HandlerFunc(w.signInPage))
	w.customer = httptest.NewTLSServer(http.HandlerFunc(w.customerPage))
	base := "https://" + w.ours.Listener.Addr().String()

	store := memory.New(&memory.Options{Now: w.clock})
	var err error
	w.health, err = healthdata.New(store.Users(), store.Data(), linkProviders(t), &healthdata.Options{Environment: healthlab.Sandbox, Now: w.clock})
	require.NoError(t, err)
	flows := map[string]linking.ProviderConnector{}
	for _, p := range w.health.Providers().List("") {
		if p.Class == "cloud" {
			flows[p.Slug] = linking.ProviderConnector{OAuth: townSignIn{w}, Password: townSignIn{w}, Email: townSignIn{w}}
		}
	}
	sealer, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	opts := linking.Options{
		Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)},
		Now: w.clock, BaseURL: base, Timeout: 2 * time.Second, Settings: w.teamSettings,
	}
	if links != nil {
		links(&opts)
	}
	w.links, err = linking.New(store.Linking(), w.health, flows, sealer, &opts)
	require.NoError(t, err)
	look := &httpapi.LinkPages{OnDevice: true, Manual: true, Demo: true, FirstImport: w.firstImport}
	if pages != nil {
		pages(look)
	}
	w.settings.Brand = linking.Brand{CompanyName: "Northside Clinic", Color: "#2456c8"}
	w.ours.Config.Handler = httpapi.Handler(httpapi.Config{
		Log:          slog.New(slog.NewTextHandler(&lockedWriter{w: w}, nil)),
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Parts:        (&httpapi.Services{Health: w.health, Linking: w.links, LinkPages: look}).Parts(),
	})
	w.ours.StartTLS()
	for _, s := range []*httptest.Server{w.ours, w.provider, w.customer} {
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		t.Cleanup(s.Close)
	}
	return w
}

type lockedWriter struct{ w *linkFixture }

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.logs.Write(b)
}

func (w *linkFixture) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *linkFixture) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *linkFixture) teamSettings(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settings, w.broken
}

func (w *linkFixture) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *linkFixture) firstImport(context.Context, healthlab.TeamID, healthlab.UserID, string) (httpapi.FirstImport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.imported, nil
}

// person adds one.
func (w *linkFixture) person() healthlab.UserID {
	w.t.Helper()
	w.set(func() { w.users++ })
	u, err := w.health.CreateUser(w.t.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint("p", w.users)})
	require.NoError(w.t, err)
	return u.ID
}

// invite makes a link token for a new person, and returns where they open the pages.
func (w *linkFixture) invite(n linking.NewToken) linking.IssuedToken {
	w.t.Helper()
	if n.User.IsZero() {
		n.User = w.person()
	}
	issued, err := w.links.CreateToken(w.t.Context(), team, n)
	require.NoError(w.t, err)
	return issued
}

// connected returns the connected sources of the user of a token.
func (w *linkFixture) connected(o linking.IssuedToken) []string {
	w.t.Helper()
	x, _ := w.links.Open(w.t.Context(), o.Token)
	require.False(w.t, x.User.IsZero())
	list, err := w.health.Connections().List(w.t.Context(), team, x.User)
	require.NoError(w.t, err)
	out := []string{}
	for _, c := range list {
		out = append(out, c.Slug)
	}
	return out
}

func (w *linkFixture) noteReferrer(r *http.Request) {
	w.set(func() {
		if ref := r.Referer(); strings.HasPrefix(ref, w.ours.URL) {
			w.referrers = append(w.referrers, ref)
		}
	})
}

// signInPage is the provider's own: a person chooses what it answers.
func (w *linkFixture) signInPage(out http.ResponseWriter, r *http.Request) {
	w.noteReferrer(r)
	q := r.URL.Query()
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(out, `<!doctype html><html lang="en"><title>Provider</title><h1>Sign in at the provider</h1>`)
	for _, word := range []string{"right", "refused", "down", "slow", "nonsense", "partial", "shared"} {
		to := q.Get("redirect_uri") + "?" + url.Values{"state": {q.Get("state")}, "code": {word}}.Encode()
		fmt.Fprintf(out, `<p><a href="%s">Answer %s</a></p>`, html.EscapeString(to), word)
	}
	to := q.Get("redirect_uri") + "?" + url.Values{"state": {q.Get("state")}, "error": {"access_denied"}, "error_description": {"no"}}.Encode()
	fmt.Fprintf(out, `<p><a href="%s">Deny</a></p>`, html.EscapeString(to))
}

// customerPage is where the customer takes people back.
func (w *linkFixture) customerPage(out http.ResponseWriter, r *http.Request) {
	w.noteReferrer(r)
	w.set(func() {
		if r.Method != http.MethodGet {
			w.forms++
		}
	})
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(out, `<!doctype html><html lang="en"><title>Clinic</title><h1>Back at the clinic</h1>`)
}

// townSignIn is how every provider of the town signs people in: what they enter says what
// happens.
type townSignIn struct{ w *linkFixture }

func (s townSignIn) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	if slices.Contains(r.Scopes, "broken") {
		return "", healthlab.Unavailable
	}
	return s.w.provider.URL + "/sign-in?" + url.Values{"state": {r.State}, "redirect_uri": {r.RedirectURL}}.Encode(), nil
}

func (s townSignIn) Exchange(ctx context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	return townGrant(ctx, r.Code)
}

func (s townSignIn) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if kind, ok := strings.CutPrefix(r.Username, "mfa"); ok {
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: strings.TrimPrefix(kind, "-"), Hint: "a number that ends in 42"}}, nil
	}
	g, err := townGrant(ctx, r.Username)
	return linking.PasswordResponse{Grant: g}, err
}

func (s townSignIn) CompleteMFA(ctx context.Context, r linking.MFARequest) (linking.Grant, error) {
	switch r.Code {
	case "123456":
		return townGrant(ctx, "right")
	case "999999":
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
}

func (s townSignIn) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	name, _, _ := strings.Cut(r.Email, "@")
	return townGrant(ctx, name)
}

func townGrant(ctx context.Context, word string) (linking.Grant, error) {
	switch word {
	case "right":
		return linking.Grant{Secret: []byte("grant")}, nil
	case "shared":
		return linking.Grant{ExternalUserID: "one-for-all", Secret: []byte("grant")}, nil
	case "partial":
		return linking.Grant{Scopes: []string{"move"}, Secret: []byte("grant")}, nil
	case "down":
		return linking.Grant{}, healthlab.Unavailable
	case "slow":
		<-ctx.Done()
		return linking.Grant{}, ctx.Err()
	case "nonsense":
		return linking.Grant{ExternalUserID: "\x00\xff"}, nil
	case "old":
		return linking.Grant{}, &linking.Error{Type: linking.ProviderPasswordExpired}
	case "elsewhere":
		return linking.Grant{}, &linking.Error{Type: linking.UnsupportedRegion}
	default:
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
}
