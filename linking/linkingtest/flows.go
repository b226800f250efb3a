package linkingtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
)

// RunFlows runs linking.Service on a store under random actions of people and attackers, while time passes. It checks
// that no token works twice, after its end, or for another user; that a redirect only goes to the team's allowed URLs;
// and that two concurrent completions of one token make one connection. Every sequence of actions has its own teams, so
// one store is enough.
func RunFlows(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	h := newStore(t)
	for range prove.Counts(2, 5, 100) {
		rapid.Check(t, func(rt *rapid.T) { linkAtRandom(t, rt, h) })
	}
}

func linkAtRandom(t *testing.T, rt *rapid.T, h StoreHarness) {
	w := newLinkWorld(t, h)
	rt.Repeat(map[string]func(*rapid.T){
		"create":    w.create,
		"wait":      w.wait,
		"start":     w.start,
		"close":     w.close,
		"authorize": w.authorize,
		"callback":  w.callback,
		"password":  w.password,
		"code":      w.code,
		"email":     w.email,
		"accept":    w.accept,
		"phone":     w.connectByCode,
		"forge":     w.forge,
		"race":      w.race,
		"remove":    w.remove,
		"":          w.glance,
	})
	w.check(rt)
}

// linkWorld is the fixture of RunFlows: a service, and the state that it should have.
type linkWorld struct {
	t       *testing.T
	health  *healthdata.Service
	service *linking.Service
	users   []healthdata.UserRef
	tokens  []*knownToken
	owner   map[string]healthlab.UserID // the user who connected each account
	now     time.Time
	account atomic.Int64
	steps   int
	linked  bool // a connection was made since the last check
}

type knownToken struct {
	linking.IssuedToken
	ref      healthdata.UserRef
	redirect string
	used     bool
	removed  bool   // the user was removed
	left     string // the browser in which the person last went to the provider's page
	by       string // the provider that the token connected
}

var linkProviders = map[string]string{"acme_band": "oauth", "acme_scale": "password", "acme_cgm": "email"}

var linkRules = linking.RedirectRules{Schemes: []string{"https", "myapp"}, Hosts: []string{"app.example"}}

func newLinkWorld(t *testing.T, h StoreHarness) *linkWorld {
	w := &linkWorld{t: t, now: noon, owner: map[string]healthlab.UserID{}}
	var list []healthdata.Provider
	for slug, auth := range linkProviders {
		list = append(list, healthdata.Provider{Slug: slug, Name: slug, AuthType: auth, Class: "cloud", Category: "provider"})
	}
	list = append(list, healthdata.Provider{Slug: "manual", Name: "manual", Class: "manual", Category: "app"},
		healthdata.Provider{Slug: "health_connect", Name: "store", AuthType: "sdk", Class: "sdk_store", Category: "app"})
	providers, err := healthdata.NewProviders(list)
	require.NoError(t, err)
	clock := func() time.Time { return w.now }
	w.health, err = healthdata.New(h.Users, h.Data, providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	flows := linkFlows{w}
	w.service, err = linking.New(h.Linking, w.health, map[string]linking.ProviderConnector{
		"acme_band": {OAuth: flows}, "acme_scale": {Password: flows}, "acme_cgm": {Email: flows},
	}, sealer, &linking.Options{
		SigningKeys: [][]byte{bytes.Repeat([]byte{8}, 32)},
		Environment: healthlab.Sandbox,
		Now:         clock, BaseURL: "https://api.example",
		Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
			return linking.TeamSettings{Redirects: linkRules}, nil
		},
	})
	require.NoError(t, err)
	for range 2 {
		team := healthlab.TeamID{UUID: uuid.New()}
		for i := range 2 {
			u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint("person ", i)})
			require.NoError(t, err)
			w.users = append(w.users, healthdata.UserRef{Team: team, User: u.ID})
		}
	}
	return w
}

// linkFlows is a provider that accepts inputs with the prefix "good", and returns a different account for each
// person.
type linkFlows struct{ w *linkWorld }

func (f linkFlows) grant(word string) (linking.Grant, error) {
	switch {
	case strings.HasPrefix(word, "good"):
		return linking.Grant{ExternalUserID: fmt.Sprint("account ", f.w.account.Add(1)), Secret: []byte(word)}, nil
	case word == "down":
		return linking.Grant{}, healthlab.Unavailable
	case word == "nonsense":
		return linking.Grant{ExternalUserID: "a\x00b"}, nil
	default:
		return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
}

func (f linkFlows) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	return "https://provider.example/sign-in?state=" + url.QueryEscape(r.State), nil
}

func (f linkFlows) Exchange(_ context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	if r.Verifier == "" || r.RedirectURL != "https://api.example/v2/link/connect/acme_band" {
		return linking.Grant{}, errors.New("nothing to exchange with")
	}
	return f.grant(r.Code)
}

func (f linkFlows) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if r.Password == "mfa" {
		return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "sms", Hint: "42"}, Notes: []byte("notes")}, nil
	}
	g, err := f.grant(r.Password)
	return linking.PasswordResponse{Grant: g}, err
}

func (f linkFlows) CompleteMFA(_ context.Context, r linking.MFARequest) (linking.Grant, error) {
	if string(r.Notes) != "notes" {
		return linking.Grant{}, errors.New("not my notes")
	}
	if r.Code == "wrong" {
		return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
	}
	return f.grant(r.Code)
}

func (f linkFlows) SignInByEmail(_ context.Context, r linking.EmailRequest) (linking.Grant, error) {
	return f.grant(r.Email)
}

func (w *linkWorld) create(t *rapid.T) {
	k := &knownToken{ref: rapid.SampledFrom(w.users).Draw(t, "user")}
	target := rapid.SampledFrom([]string{
		"", "https://app.example/done?x=1#f", "myapp://link", "https://evil.example/", "javascript:alert(1)",
		"https://app.example@evil.example/",
	}).Draw(t, "redirect")
	issued, err := w.service.CreateToken(w.t.Context(), k.ref.Team, linking.NewToken{User: k.ref.User, RedirectURL: target})
	if target != "" && !linkRules.Allows(target) {
		require.ErrorIs(t, err, healthlab.Invalid)
		return
	}
	if has, _ := w.health.HasUser(w.t.Context(), k.ref.Team, k.ref.User); !has {
		require.ErrorIs(t, err, healthlab.Precondition)
		return
	}
	require.NoError(t, err)
	k.IssuedToken, k.redirect = issued, target
	w.tokens = append(w.tokens, k)
}

func (w *linkWorld) wait(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 20, 59, 60}).Draw(t, "minutes")) * time.Minute)
}

func (w *linkWorld) pick(t *rapid.T) *knownToken {
	if len(w.tokens) == 0 {
		return nil
	}
	return rapid.SampledFrom(w.tokens).Draw(t, "token")
}

func (w *linkWorld) works(k *knownToken) bool {
	return !k.used && !k.removed && w.now.Before(k.ExpiresAt)
}

// checkResult fails if a result or an error of a try with the token k contradicts the expected state, and updates that
// state.
func (w *linkWorld) checkResult(t *rapid.T, k *knownToken, r linking.Result, err error) {
	if err != nil {
		require.Contains(t, []healthlab.ErrorKind{healthlab.Exhausted, healthlab.Precondition}, healthlab.KindOf(err), "%v", err)
		return
	}
	if r.Location != "" {
		require.True(t, linkRules.Allows(r.Location))
		require.True(t, strings.HasPrefix(r.Location, strings.SplitN(k.redirect, "#", 2)[0]))
	}
	if r.State != linking.ResultSuccess {
		require.True(t, r.State == linking.ResultPending || r.Error != "")
		return
	}
	require.True(t, w.works(k), "a token that is used up, expired or somebody's who is gone worked")
	k.used, k.by, w.linked = true, r.Provider, true
	u, err := w.health.User(w.t.Context(), k.ref.Team, k.ref.User)
	require.NoError(t, err)
	c := u.Connection(r.Provider)
	require.Equal(t, healthdata.Connected, c.Status)
	require.Equal(t, r.ExternalUserID, c.ExternalUserID)
	if r.ExternalUserID != nil {
		w.owner[*r.ExternalUserID] = k.ref.User
	}
}

func (w *linkWorld) start(t *rapid.T) {
	if k := w.pick(t); k != nil {
		_, err := w.service.Start(w.t.Context(), k.Token, rapid.SampledFrom([]string{"", "acme_band", "acme_scale"}).Draw(t, "provider"))
		require.Equal(t, w.works(k), err == nil, "%v", err)
	}
}

func (w *linkWorld) close(t *rapid.T) {
	if k := w.pick(t); k != nil {
		r, err := w.service.Close(w.t.Context(), k.Token)
		require.Equal(t, w.works(k), err == nil, "%v", err)
		if err == nil {
			require.Equal(t, linking.UserCancelled, r.Error)
			w.checkResult(t, k, r, nil)
		}
	}
}

func (w *linkWorld) authorize(t *rapid.T) {
	if k := w.pick(t); k != nil {
		d := linking.OAuthSignIn{Provider: "acme_band", Browser: linkBrowsers.Draw(t, "browser")}
		a, err := w.service.Authorize(w.t.Context(), k.Token, d)
		if err == nil {
			k.left = d.Browser
			require.True(t, w.works(k))
			u, err := url.Parse(a.URL)
			require.NoError(t, err)
			require.Equal(t, k.Token, u.Query().Get("state"))
		}
	}
}

// linkBrowsers draws the secret of one of two browsers, or the empty one of a page that is not the service's.
var linkBrowsers = rapid.SampledFrom([]string{"", "one", "two"})

var linkWords = rapid.SampledFrom([]string{"good", "good", "bad", "down", "nonsense"})

func (w *linkWorld) callback(t *rapid.T) {
	if k := w.pick(t); k != nil {
		browser := linkBrowsers.Draw(t, "browser")
		r, err := w.service.Callback(w.t.Context(), linking.Callback{
			Browser:  browser,
			Provider: rapid.SampledFrom([]string{"acme_band", "acme_band", "acme_scale", "nobody"}).Draw(t, "provider"),
			State:    k.Token, Code: linkWords.Draw(t, "code"), Error: rapid.SampledFrom([]string{"", "", "access_denied"}).Draw(t, "error"),
		})
		require.NoError(t, err)
		if r.State == linking.ResultSuccess {
			require.True(t, k.left == "" || k.left == browser, "another browser finished what one began")
		}
		w.checkResult(t, k, r, err)
	}
}

func (w *linkWorld) password(t *rapid.T) {
	if k := w.pick(t); k != nil {
		r, err := w.service.SignIn(w.t.Context(), k.Token, linking.PasswordSignIn{
			Provider: "acme_scale", Username: "x", Password: rapid.OneOf(linkWords, rapid.Just("mfa")).Draw(t, "password"),
		})
		w.checkResult(t, k, r, err)
	}
}

func (w *linkWorld) code(t *rapid.T) {
	if k := w.pick(t); k != nil {
		r, err := w.service.CompleteMFA(w.t.Context(), k.Token, "acme_scale", rapid.OneOf(linkWords, rapid.Just("wrong")).Draw(t, "code"))
		w.checkResult(t, k, r, err)
	}
}

func (w *linkWorld) email(t *rapid.T) {
	if k := w.pick(t); k != nil {
		r, err := w.service.SignInByEmail(w.t.Context(), k.Token, linking.EmailSignIn{Provider: "acme_cgm", Email: linkWords.Draw(t, "email")})
		w.checkResult(t, k, r, err)
	}
}

func (w *linkWorld) accept(t *rapid.T) {
	if k := w.pick(t); k != nil {
		r, err := w.service.Accept(w.t.Context(), k.Token, linking.Acceptance{
			Provider: rapid.SampledFrom([]string{"manual", "manual", "acme_band", "health_connect"}).Draw(t, "provider"),
		})
		w.checkResult(t, k, r, err)
	}
}

// connectByCode requests a link code with a token. Sometimes the app redeems the code and connects. Then connectByCode
// calls CompleteDeviceCode as the link page does.
func (w *linkWorld) connectByCode(t *rapid.T) {
	k := w.pick(t)
	if k == nil {
		return
	}
	const store = "health_connect"
	code, err := w.service.DeviceCode(w.t.Context(), k.Token, store)
	if err == nil {
		require.True(t, w.works(k), "a token that does not work gave a code")
		if rapid.Bool().Draw(t, "redeemed") {
			user, err := w.service.Redeem(w.t.Context(), k.ref.Team, "phone", code.Code)
			require.NoError(t, err)
			require.Equal(t, k.ref.User, user)
			_, err = w.health.Connections().Connect(w.t.Context(), k.ref.Team, user, healthdata.NewConnection{Provider: store})
			require.NoError(t, err)
		}
	}
	r, err := w.service.CompleteDeviceCode(w.t.Context(), k.Token, store)
	if err == nil && (r.State == linking.ResultWaiting || k.used && k.by == store && r.State == linking.ResultSuccess) {
		return // the app has not connected yet, or the connection was already counted
	}
	w.checkResult(t, k, r, err)
}

// forge makes a token from two others, or damages one, and checks that the service refuses it.
func (w *linkWorld) forge(t *rapid.T) {
	a, b := w.pick(t), w.pick(t)
	if a == nil || b == nil {
		return
	}
	parts, other := strings.Split(a.Token, "."), strings.Split(b.Token, ".")
	part := rapid.IntRange(0, 2).Draw(t, "part")
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		parts[part] = other[part]
	case 1:
		at := rapid.IntRange(0, len(parts[part])-1).Draw(t, "at")
		spoilt := []byte(parts[part])
		spoilt[at] = map[bool]byte{true: 'A', false: 'B'}[spoilt[at] != 'A']
		parts[part] = string(spoilt)
	case 2:
		parts[part] = parts[part][:rapid.IntRange(0, len(parts[part])-1).Draw(t, "cut")]
	}
	forged := strings.Join(parts, ".")
	if forged == a.Token || forged == b.Token {
		return
	}
	r, err := w.service.SignIn(w.t.Context(), forged, linking.PasswordSignIn{Provider: "acme_scale", Username: "x", Password: "good"})
	require.NoError(t, err)
	require.Equal(t, linking.Result{State: linking.ResultError, Error: linking.InvalidToken}, r)
}

// race makes several successful sign-ins with one token concurrently.
func (w *linkWorld) race(t *rapid.T) {
	k := w.pick(t)
	if k == nil {
		return
	}
	ways := rapid.SliceOfN(rapid.IntRange(0, 2), 2, 3).Draw(t, "ways")
	if _, err := w.service.Authorize(w.t.Context(), k.Token, linking.OAuthSignIn{Provider: "acme_band"}); err == nil {
		k.left = ""
	}
	results := make([]linking.Result, len(ways))
	errs := conformance.Together(len(ways), func(i int) (err error) {
		switch ways[i] {
		case 0:
			results[i], err = w.service.Callback(w.t.Context(), linking.Callback{Provider: "acme_band", State: k.Token, Code: "good"})
		case 1:
			results[i], err = w.service.SignIn(w.t.Context(), k.Token, linking.PasswordSignIn{Provider: "acme_scale", Username: "x", Password: "good"})
		case 2:
			results[i], err = w.service.SignInByEmail(w.t.Context(), k.Token, linking.EmailSignIn{Provider: "acme_cgm", Email: "good"})
		}
		return err
	})
	for i, r := range results {
		w.checkResult(t, k, r, errs[i]) // which lets the token work once
	}
}

func (w *linkWorld) remove(t *rapid.T) {
	if rapid.IntRange(0, 19).Draw(t, "chance") > 0 {
		return
	}
	w.check(t) // while the users exist
	ref := rapid.SampledFrom(w.users).Draw(t, "user")
	_ = w.health.Deletions().Delete(w.t.Context(), ref.Team, ref.User)
	for _, k := range w.tokens {
		k.removed = k.removed || k.ref == ref
	}
}

func (w *linkWorld) glance(t *rapid.T) {
	if w.steps++; w.linked || w.steps%4 == 0 {
		w.check(t)
	}
}

// check requires that no user has an account that another user connected.
func (w *linkWorld) check(t *rapid.T) {
	w.linked = false
	for _, ref := range w.users {
		u, err := w.health.User(w.t.Context(), ref.Team, ref.User)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		require.NoError(t, err)
		for _, c := range u.Connections {
			if c.ExternalUserID != nil {
				require.Equal(t, ref.User, w.owner[*c.ExternalUserID])
			}
		}
	}
}

// BenchFlows measures CreateToken and, for comparison, the write of a session alone.
func BenchFlows(b *testing.B, newStore func(t testing.TB) StoreHarness) {
	h := newStore(b)
	ref := healthdata.UserRef{Team: healthlab.TeamID{UUID: uuid.New()}}
	providers, err := healthdata.NewProviders(nil)
	require.NoError(b, err)
	health, err := healthdata.New(h.Users, h.Data, providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(b, err)
	u, err := health.CreateUser(b.Context(), ref.Team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(b, err)
	sealer, err := healthlab.NewAESSealer("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
	require.NoError(b, err)
	service, err := linking.New(h.Linking, health, nil, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{8}, 32)}})
	require.NoError(b, err)
	b.Run("CreateToken", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := service.CreateToken(b.Context(), ref.Team, linking.NewToken{User: u.ID}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("InsertSession", func(b *testing.B) {
		b.ReportAllocs()
		s := linkSession("a", "ann", "1")
		s.Team, s.User, s.Options.User = ref.Team, u.ID, u.ID
		for b.Loop() {
			s.ID = linking.SessionID{UUID: uuid.New()}
			if err := h.Linking.InsertSession(b.Context(), s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
