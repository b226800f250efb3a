package linkpages_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
)

// A person opens the pages in a real browser. Every page that is seen is checked with
// axe-core, light and dark, and photographed. A plain run takes the first five walks.
func TestLinkPages_areAccessibleInABrowser(t *testing.T) {
	b := browse.Start(t)
	b.LoadAxe()
	walks := []struct {
		name string
		walk func(*testing.T, *browse.Browser)
	}{
		{"sign in at the provider", walkOAuth},
		{"name and password", walkPassword},
		{"keyboard", walkKeyboard},
		{"without a script", walkWithoutScript},
		{"embedded", walkEmbedded},
		{"own site", walkOwnSite},
		{"address", walkEmail},
		{"on a phone", walkDevice},
		{"no sign-in", walkAccept},
		{"one source", walkFixed},
		{"closing", walkClose},
		{"errors go back", walkOnError},
		{"dead links", walkDeadLinks},
		{"failures", walkFailures},
		{"another browser", walkAnotherBrowser},
		{"searching", walkSearch},
	}
	for _, one := range walks[:prove.Counts(5, len(walks), len(walks))] {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			one.walk(t, b)
		})
	}
}

func seen(tab *browse.Tab, name string) {
	tab.Check()
	tab.Shot(name)
}

// clean checks that the pages sent requests to our own host only, and that they broke no
// content security policy.
func (w *linkFixture) clean(t *testing.T, tab *browse.Tab) {
	t.Helper()
	for _, asked := range tab.Asked() {
		u, err := url.Parse(asked)
		require.NoError(t, err)
		require.Contains(t, []string{w.ours.URL, w.provider.URL, w.customer.URL}, u.Scheme+"://"+u.Host, "a third party was asked")
		if u.Path != "/favicon.ico" && !strings.HasPrefix(asked, w.ours.URL) {
			require.NotContains(t, u.Path, ".", "a page of ours loads a file of somebody else's")
		}
	}
	require.Empty(t, tab.Refusals())
	w.set(func() {
		require.Empty(t, w.referrers, "the token stands in the address")
		require.Zero(t, w.forms, "what a person filled in is nobody else's")
	})
}

func walkOAuth(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/done?visit=7#top"})
	tab.Go(issued.WebURL)
	tab.See("Northside Clinic", "Connect a source", "Acme Ring", "A ring for sleep and recovery.")
	tab.Miss("Willow Clinic")
	seen(tab, "list")
	tab.Press("Acme Band")
	tab.See("Connect Acme Band", "Northside Clinic will be able to read:", "Activity and steps", "Sleep", "You can disconnect at any time.")
	seen(tab, "consent")
	tab.Press("Continue to Acme Band")
	tab.See("Sign in at the provider")
	tab.Press("Answer right")
	tab.See("Back at the clinic")
	require.Equal(t, w.customer.URL+"/done?visit=7&state=success&provider=acme_band#top", tab.At())
	require.Equal(t, []string{"acme_band"}, w.connected(issued))
	w.clean(t, tab)

	// Without a redirect the last page is ours, and shows the first import.
	issued = w.invite(linking.NewToken{})
	w.set(func() { w.imported = httpapi.FirstImport{Total: 4, Done: 1, Days: 90, FetchedDays: 34} })
	tab.Go(issued.WebURL)
	tab.Press("Acme Ring")
	tab.Press("Continue to Acme Ring")
	tab.Press("Answer right")
	tab.See("Acme Ring is connected", "34 of 90 days are here", "1 of 4 kinds of data are here")
	seen(tab, "done-importing")
	w.set(func() { w.imported = httpapi.FirstImport{Total: 4, Done: 3} })
	tab.Wait("3 of 4 kinds of data are here") // by itself
	w.set(func() { w.imported = httpapi.FirstImport{Total: 4, Done: 4} })
	tab.Press("Update")
	tab.See("Everything that Acme Ring has is here.")
	seen(tab, "done")
	w.set(func() { w.imported = httpapi.FirstImport{Total: 4, Done: 4, Failed: 1} })
	tab.Go(tab.At())
	tab.See("It is tried again later by itself.")
	require.NotContains(t, tab.At(), "code=")
	w.clean(t, tab)
}

func walkPassword(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{Desktop: true})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/done"})
	tab.Go(issued.WebURL)
	tab.Press("Birch Pump")
	tab.See("Glucose and insulin", "Your account at Birch Pump", "Northside Clinic never sees the password", "Country of your account")
	seen(tab, "password")
	tab.Press("Sign in and connect")
	tab.See("Please fill in this field.")
	seen(tab, "password-empty")
	for entered, told := range map[string]string{
		"wrong":     "Birch Pump did not accept the sign-in",
		"old":       "Birch Pump wants a new password",
		"down":      "Birch Pump does not answer",
		"slow":      "Birch Pump does not answer",
		"nonsense":  "Birch Pump does not answer",
		"elsewhere": "Birch Pump does not serve this country",
	} {
		tab.Enter("User name or e-mail", entered)
		tab.Enter("Password", "secret")
		tab.Press("Sign in and connect")
		tab.See(told)
		kept := browse.Eval[[]string](tab, "['username', 'password'].map(id => document.getElementById(id).value)")
		require.Equal(t, []string{entered, ""}, kept, "a password is never sent back")
		require.Empty(t, w.connected(issued))
		tab.Check()
	}
	tab.Shot("password-wrong")
	tab.Enter("User name or e-mail", "mfa-sms")
	tab.Enter("Password", "secret")
	tab.Choose("Country", "ca")
	tab.Press("Sign in and connect")
	tab.See("Enter the code from Birch Pump", "has sent you a text message", "a number that ends in 42")
	seen(tab, "mfa")
	tab.Press("Confirm")
	tab.See("Please fill in this field.")
	tab.Enter("Code", "000000")
	tab.Press("Confirm")
	tab.See("The code is wrong", "a number that ends in 42")
	seen(tab, "mfa-wrong")
	tab.Enter("Code", "999999")
	tab.Press("Confirm")
	tab.See("Birch Pump did not accept the sign-in", "Your account at Birch Pump")
	tab.Enter("User name or e-mail", "mfa-email")
	tab.Enter("Password", "secret")
	tab.Press("Sign in and connect")
	tab.See("has sent you an e-mail")
	tab.Press("Sign in again for another code")
	tab.Enter("User name or e-mail", "mfa-carrier-pigeon")
	tab.Enter("Password", "secret")
	tab.Press("Sign in and connect")
	tab.See("has sent you a code")
	require.Empty(t, w.connected(issued))
	tab.Enter("Code", "123456")
	tab.Press("Confirm")
	tab.See("Back at the clinic")
	require.Equal(t, w.customer.URL+"/done?state=success&provider=birch_pump", tab.At())
	require.Equal(t, []string{"birch_pump"}, w.connected(issued))
	w.clean(t, tab)
}

// A provider that people run themselves: they enter its address and a token.
func walkOwnSite(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	w.health.Providers().Get("cedar_sleep").OwnSite = true // before the first request
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/done"})
	tab.Go(issued.WebURL)
	tab.Press("Cedar Sleep")
	tab.See("Your own Cedar Sleep site", "a token of it that may read", "Northside Clinic never sees the token")
	tab.Miss("User name")
	seen(tab, "site")
	tab.Press("Sign in and connect")
	tab.See("Please fill in this field.")
	tab.Enter("Address of your site", "wrong")
	tab.Enter("Token or API secret", "secret")
	tab.Press("Sign in and connect")
	tab.See("Cedar Sleep did not accept the sign-in")
	seen(tab, "site-wrong")
	require.Empty(t, w.connected(issued))
	tab.Enter("Address of your site", "right")
	tab.Enter("Token or API secret", "secret")
	tab.Press("Sign in and connect")
	tab.See("Back at the clinic")
	require.Equal(t, w.customer.URL+"/done?state=success&provider=cedar_sleep", tab.At())
	require.Equal(t, []string{"cedar_sleep"}, w.connected(issued))
	w.clean(t, tab)
}

func walkEmail(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{})
	tab.Go(issued.WebURL)
	tab.Press("Acme CGM")
	tab.See("Your address at Acme CGM", "Hong Kong")
	seen(tab, "email")
	tab.Press("Connect")
	tab.See("Please fill in this field.")
	tab.Enter("E-mail address", "wrong@example.com")
	tab.Press("Connect")
	tab.See("Acme CGM did not accept the sign-in")
	seen(tab, "email-wrong")
	tab.Enter("E-mail address", "right@example.com")
	tab.Choose("Country", "hk")
	tab.Press("Connect")
	tab.See("Acme CGM is connected")
	require.Equal(t, []string{"acme_cgm"}, w.connected(issued))
	w.clean(t, tab)
}

// The companion app redeems a code and connects the store, as its backend would.
func walkDevice(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/done"})
	tab.Go(issued.WebURL)
	tab.See("Health Connect", "On this phone")
	tab.Press("Health Connect")
	tab.See("in the app of Northside Clinic, with a code")
	tab.Press("Get a code")
	tab.See("Enter this code in the app")
	seen(tab, "code")
	code := browse.Eval[string](tab, "document.querySelector('output').textContent")
	require.Regexp(t, `^skus[0-9a-f]{8}$`, code)
	open := browse.Eval[string](tab, "Array.from(document.links).find(a => a.textContent.includes('on this phone')).href")
	require.Equal(t, "healthlab://link?code="+code, open)
	tab.Press("I have entered the code")
	tab.See("Waiting for your phone")
	seen(tab, "waiting")
	user, err := w.links.Redeem(t.Context(), team, "phone", code)
	require.NoError(t, err)
	_, err = w.health.Connections().Connect(t.Context(), team, user, healthdata.NewConnection{Provider: "health_connect"})
	require.NoError(t, err)
	tab.Wait("Back at the clinic") // the page goes on by itself
	require.Equal(t, w.customer.URL+"/done?state=success&provider=health_connect", tab.At())
	require.Equal(t, []string{"health_connect"}, w.connected(issued))
	w.clean(t, tab)
}

func walkAccept(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{})
	tab.Go(issued.WebURL)
	tab.Press("Your own notes")
	tab.See("Weight and body", "needs no account")
	seen(tab, "manual")
	tab.Press("Turn on")
	tab.See("Your own notes is connected")
	tab.Miss("First import")
	require.Equal(t, []string{"manual"}, w.connected(issued))

	issued = w.invite(linking.NewToken{})
	tab.Go(issued.WebURL)
	tab.Press("Acme Band")
	tab.See("Only trying it out?")
	tab.Press("Use made-up data")
	tab.See("Acme Band is connected", "The data is made up.")
	require.Equal(t, []string{"acme_band"}, w.connected(issued))
	x, _ := w.links.Open(t.Context(), issued.Token)

	// Made-up and real data do not mix.
	tab.Go(w.invite(linking.NewToken{User: x.User}).WebURL)
	tab.Press("Your own notes")
	tab.Press("Turn on")
	tab.See("Made-up and real data do not mix")
	seen(tab, "problem-mixed")
	w.clean(t, tab)
}

func walkFixed(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	tab.Go(w.invite(linking.NewToken{Provider: "acme_band"}).WebURL)
	tab.See("Sign in at the provider")
	tab.Press("Deny")
	tab.See("Acme Band did not accept the sign-in")
	tab.Miss("Choose another source")
	tab.Press("Try again")
	tab.See("Connect Acme Band")
	tab.Miss("Back")
	tab.Press("Continue to Acme Band")
	tab.Press("Answer right")
	tab.See("Acme Band is connected")

	tab.Go(w.invite(linking.NewToken{Provider: "cedar_sleep"}).WebURL)
	tab.See("Your account at Cedar Sleep")
	tab.Miss("Back", "Country")

	issued := w.invite(linking.NewToken{FilterOnProviders: []string{"acme_ring", "health_connect"}})
	tab.Go(issued.WebURL)
	tab.See("Acme Ring", "Health Connect", "Sources: 2")
	tab.Miss("Acme Band", "Cedar Sleep")
	tab.Go(strings.Replace(issued.WebURL, "/link?", "/link/source/acme_band?", 1))
	tab.See("This source cannot be connected here")
	seen(tab, "problem-source")
	tab.Press("Choose another source")
	tab.See("Acme Ring")
	tab.Go(strings.Replace(issued.WebURL, "/link?", "/link/source/nobody?", 1))
	tab.See("This source cannot be connected here")
	w.clean(t, tab)
}

func walkClose(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x?keep=1"})
	tab.Go(issued.WebURL)
	tab.Press("Close")
	tab.See("You can close this page", "Nothing was connected.")
	seen(tab, "closed")
	x, err := w.links.Open(t.Context(), issued.Token)
	require.NoError(t, err)
	require.Equal(t, linking.StateCancelled, x.State)
	tab.Press("Go on connecting a source")
	tab.See("Connect a source")

	tab.Go(w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x?keep=1", OnClose: "redirect"}).WebURL)
	tab.Press("Cedar Sleep")
	tab.Press("Close")
	tab.See("Back at the clinic")
	require.Equal(t, w.customer.URL+"/x?keep=1&state=error&error_type=user_cancelled&error=user_cancelled&error_description=the%20person%20closed%20the%20link%20pages", tab.At())
	w.clean(t, tab)
}

func walkOnError(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x", OnError: "redirect"})
	for entered, kind := range map[string]linking.ErrorType{
		"wrong": linking.ProviderCredentialError, "old": linking.ProviderPasswordExpired, "down": linking.ProviderAPIError,
		"slow": linking.ProviderAPIError, "nonsense": linking.ProviderAPIError, "elsewhere": linking.UnsupportedRegion,
	} {
		tab.Go(issued.WebURL)
		tab.Press("Cedar Sleep")
		tab.Enter("User name or e-mail", entered)
		tab.Enter("Password", "secret")
		tab.Press("Sign in and connect")
		tab.See("Back at the clinic")
		require.Equal(t, linking.Outcome{Error: kind}.Redirect(w.customer.URL+"/x"), tab.At())
	}
	tab.Go(issued.WebURL)
	tab.Press("Cedar Sleep")
	tab.Enter("User name or e-mail", "mfa-sms")
	tab.Enter("Password", "secret")
	tab.Press("Sign in and connect")
	tab.Enter("Code", "1")
	tab.Press("Confirm")
	require.Equal(t, linking.Outcome{Error: linking.IncorrectMFACode}.Redirect(w.customer.URL+"/x"), tab.At())
	require.Empty(t, w.connected(issued))
	w.clean(t, tab)
}

// Tokens that do not work: what the person sees, where the customer gets them.
func walkDeadLinks(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{})
	foreign := newLinkFixture(t, nil, nil).invite(linking.NewToken{}) // of another service with the same key
	gone := w.invite(linking.NewToken{})
	x, err := w.links.Open(t.Context(), gone.Token)
	require.NoError(t, err)
	require.NoError(t, w.health.Deletions().Delete(t.Context(), team, x.User))
	parts := strings.Split(issued.Token, ".")
	for name, token := range map[string]string{
		"none": "", "nonsense": "x", "truncated": issued.Token[:len(issued.Token)-4], "foreign": foreign.Token, "of a user who is gone": gone.Token,
		"forged": parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), "unsigned": parts[0] + "." + parts[1] + ".",
		"long": strings.Repeat(issued.Token, 20),
	} {
		tab.Go(w.ours.URL + "/link?token=" + url.QueryEscape(token))
		tab.See("This link does not work", "open the link from there")
		tab.Miss("Try again", "Close", "Choose another source")
		require.NotEmpty(t, name)
	}
	seen(tab, "problem-invalid")

	used := w.invite(linking.NewToken{})
	tab.Go(used.WebURL)
	tab.Press("Your own notes")
	tab.Press("Turn on")
	for _, at := range []string{"/link", "/link/source/acme_band", "/link/source/acme_band/go", "/link/source/cedar_sleep/code", "/link/close"} {
		tab.Go(w.ours.URL + at + "?token=" + url.QueryEscape(used.Token))
		tab.See("This link was used already")
		tab.Miss("Try again", "Close")
	}
	seen(tab, "problem-consumed")
	back := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x"})
	tab.Go(back.WebURL)
	tab.Press("Your own notes")
	tab.Press("Turn on")
	tab.Go(back.WebURL)
	tab.See("Back at the clinic")
	require.Equal(t, linking.Outcome{Error: linking.TokenConsumed}.Redirect(w.customer.URL+"/x"), tab.At())

	// A person who comes back too late, in the middle of a form.
	late, lateBack := w.invite(linking.NewToken{}), w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x"})
	tab.Go(late.WebURL)
	tab.Press("Cedar Sleep")
	tab.Enter("User name or e-mail", "right")
	tab.Enter("Password", "secret")
	w.later(linking.TokenLife)
	tab.Press("Sign in and connect")
	tab.See("This link has expired", "for one hour only")
	seen(tab, "problem-expired")
	tab.Go(lateBack.WebURL)
	require.Equal(t, linking.Outcome{Error: linking.TokenExpired}.Redirect(w.customer.URL+"/x"), tab.At())
	require.Empty(t, w.connected(late))
	w.clean(t, tab)
}

// Sign-ins at the provider's page that fail, with a customer's page and without one.
func walkFailures(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	w.set(func() {
		w.settings.RejectDuplicates = true
		w.settings.Scopes = map[string]linking.ScopeRequirement{"acme_band": {MustGrant: []string{"sleep"}, MayGrant: []string{"move"}}}
	})
	first := w.invite(linking.NewToken{Provider: "acme_band"})
	tab := b.Open(t, browse.Person{})
	tab.Go(first.WebURL)
	tab.Press("Answer shared")
	tab.See("Acme Band is connected")
	pictured := map[linking.ErrorType]bool{}
	home, away := w.invite(linking.NewToken{}), w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x"})
	for answer, want := range map[string]struct {
		kind linking.ErrorType
		seen string
	}{
		"Deny":            {linking.ProviderCredentialError, "Acme Band did not accept the sign-in"},
		"Answer refused":  {linking.ProviderCredentialError, "Acme Band did not accept the sign-in"},
		"Answer down":     {linking.ProviderAPIError, "Acme Band does not answer"},
		"Answer slow":     {linking.ProviderAPIError, "Acme Band does not answer"},
		"Answer nonsense": {linking.ProviderAPIError, "Acme Band does not answer"},
		"Answer partial":  {linking.RequiredScopesNotGranted, "Something you need to allow is missing"},
		"Answer shared":   {linking.DuplicateConnection, "This account is connected already"},
	} {
		tab.Go(home.WebURL)
		tab.Press("Acme Band")
		tab.Press("Continue to Acme Band")
		tab.Press(answer)
		tab.See(want.seen, "Try again", "Choose another source")
		if !pictured[want.kind] {
			pictured[want.kind] = true
			seen(tab, "problem-"+string(want.kind))
		}
		replay := tab.At()
		tab.Press("Try again")
		tab.See("Continue to Acme Band")
		tab.Go(replay)
		tab.See("Please start this step again") // a callback works once
		tab.Press("Choose another source")
		tab.See("Connect a source")

		tab.Go(away.WebURL)
		tab.Press("Acme Band")
		tab.Press("Continue to Acme Band")
		tab.Press(answer)
		require.Equal(t, linking.Outcome{Error: want.kind}.Redirect(w.customer.URL+"/x"), tab.At())
	}
	require.Empty(t, w.connected(home))
	require.Empty(t, w.connected(away))

	// A provider that cannot even be asked where to sign in.
	w.set(func() { w.settings.Scopes["acme_band"] = linking.ScopeRequirement{MustGrant: []string{"broken"}} })
	tab.Go(home.WebURL)
	tab.Press("Acme Band")
	tab.Press("Continue to Acme Band")
	tab.See("Acme Band does not answer")
	tab.Go(away.WebURL)
	tab.Press("Acme Band")
	tab.Press("Continue to Acme Band")
	require.Equal(t, linking.Outcome{Error: linking.ProviderAPIError}.Redirect(w.customer.URL+"/x"), tab.At())

	// Too many tries.
	guessing := w.invite(linking.NewToken{})
	for range 30 {
		_, err := w.links.SignIn(t.Context(), guessing.Token, linking.PasswordSignIn{Provider: "cedar_sleep", Username: "wrong", Password: "x"})
		require.NoError(t, err)
	}
	tab.Go(guessing.WebURL)
	tab.Press("Cedar Sleep")
	tab.Enter("User name or e-mail", "right")
	tab.Enter("Password", "secret")
	tab.Press("Sign in and connect")
	tab.See("Too many tries", "this link is locked")
	seen(tab, "problem-tries")
	require.Empty(t, w.connected(guessing))
	w.clean(t, tab)
}

// An attacker begins a sign-in and makes another person finish it.
func walkAnotherBrowser(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	begins, victim := b.Open(t, browse.Person{}), b.Open(t, browse.Person{})
	issued := w.invite(linking.NewToken{})
	begins.Go(issued.WebURL)
	begins.Press("Acme Band")
	begins.Press("Continue to Acme Band")
	victim.Go(begins.At()) // the provider's page, with the state of the other
	victim.Press("Answer right")
	victim.See("Please start this step again", "begun in another window or browser", "Nothing was connected.")
	seen(victim, "problem-browser")
	require.Empty(t, w.connected(issued))
	begins.Press("Answer right")
	begins.See("Please start this step again")
	begins.Press("Try again")
	begins.Press("Continue to Acme Band")
	begins.Press("Answer right")
	begins.See("Acme Band is connected")
	require.Equal(t, []string{"acme_band"}, w.connected(issued))
}

func walkSearch(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{Desktop: true})
	issued := w.invite(linking.NewToken{})
	tab.Go(issued.WebURL)
	tab.Enter("Search sources", "aCme")
	tab.See("Acme Band", "Sources: 3")
	tab.Miss("Cedar Sleep")
	tab.Enter("Search sources", "zzz")
	tab.See("No source matches.", "Sources: 0")
	seen(tab, "list-none")
	tab.Press("Show all sources")
	tab.See("Cedar Sleep")
	tab.ChooseTo("Show sources with", "glucose") // as with a mouse: the page's script sends the form
	tab.See("Birch Pump", "Acme CGM", "Sources: 2")
	tab.Miss("Cedar Sleep")
	tab.ChooseTo("Show sources with", "")
	tab.Enter("Search sources", "<b>&\"'")
	tab.Press("Search")
	tab.See("No source matches.")
	tab.Press("Deutsch")
	tab.See("Quelle verbinden", "Cedar Sleep")
	seen(tab, "list-german")
	tab.Press("Cedar Sleep")
	tab.See("Schlaf", "Ihr Konto bei Cedar Sleep")
	tab.Press("English")
	tab.See("Your account at Cedar Sleep")

	// A team without anything to connect.
	w.set(func() { w.settings.OwnOAuth = nil })
	none := w.invite(linking.NewToken{FilterOnProviders: []string{"willow_clinic"}})
	tab.Go(none.WebURL)
	tab.See("There is nothing to connect at the moment.")
	seen(tab, "list-empty")
	w.clean(t, tab)
}

// Tab, Enter and typing are enough.
func walkKeyboard(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{Desktop: true, Dark: true})
	tab.Go(w.invite(linking.NewToken{Provider: "cedar_sleep"}).WebURL)
	focus := func() string {
		return browse.Eval[string](tab, "(document.activeElement.id || document.activeElement.textContent).trim()")
	}
	for _, want := range []string{"Skip to content", "Close", "username"} {
		tab.Keys("\t")
		require.Equal(t, want, focus())
	}
	tab.Keys("right")
	tab.Keys("\t")
	require.Equal(t, "password", focus())
	tab.Keys("secret")
	tab.KeysTo("\r")
	tab.See("Cedar Sleep is connected")
}

// A browser that runs no script, German, in the dark.
func walkWithoutScript(t *testing.T, b *browse.Browser) {
	w := newLinkFixture(t, nil, nil)
	tab := b.Open(t, browse.Person{NoScript: true, Dark: true, Language: "de-AT,de;q=0.9,en;q=0.5"})
	issued := w.invite(linking.NewToken{RedirectURL: w.customer.URL + "/x"})
	tab.Go(issued.WebURL)
	tab.See("Quelle verbinden")
	tab.Enter("Quellen suchen", "cedar")
	tab.Press("Suchen")
	tab.See("Cedar Sleep", "Quellen: 1")
	tab.Miss("Acme")
	tab.Press("Cedar Sleep")
	tab.Enter("Benutzername oder E-Mail", "wrong")
	tab.Enter("Passwort", "geheim")
	tab.Press("Anmelden und verbinden")
	tab.See("Cedar Sleep hat die Anmeldung nicht angenommen")
	tab.Enter("Benutzername oder E-Mail", "mfa-sms")
	tab.Enter("Passwort", "geheim")
	tab.Press("Anmelden und verbinden")
	tab.See("Geben Sie den Code von Cedar Sleep ein")
	tab.Enter("Code", "123456")
	tab.Press("Bestätigen")
	require.Equal(t, w.customer.URL+"/x?state=success&provider=cedar_sleep", tab.At())

	tab.Go(w.invite(linking.NewToken{}).WebURL)
	tab.Press("Health Connect")
	tab.Press("Code anfordern")
	code := browse.Eval[string](tab, "document.querySelector('output').textContent")
	tab.Press("Ich habe den Code eingegeben")
	tab.See("Warten auf Ihr Telefon")
	user, err := w.links.Redeem(t.Context(), team, "phone", code)
	require.NoError(t, err)
	_, err = w.health.Connections().Connect(t.Context(), team, user, healthdata.NewConnection{Provider: "health_connect"})
	require.NoError(t, err)
	tab.Press("Noch einmal prüfen")
	tab.See("Health Connect ist verbunden")
	tab.Go(w.invite(linking.NewToken{}).WebURL)
	tab.Press("Acme Ring")
	tab.Press("Weiter zu Acme Ring")
	tab.Press("Answer down")
	tab.See("Acme Ring antwortet nicht")
	tab.Press("Noch einmal versuchen")
	tab.Press("Weiter zu Acme Ring")
	tab.Press("Answer right")
	tab.See("Acme Ring ist verbunden", "Der Import Ihrer Daten beginnt gleich.")
	tab.Go(w.invite(linking.NewToken{}).WebURL)
	tab.Press("Schließen")
	tab.See("Sie können diese Seite schließen")
	w.clean(t, tab)
}

// A page of the customer's that has ours in it is told how it ended.
func walkEmbedded(t *testing.T, b *browse.Browser) {
	var host string
	w := newLinkFixture(t, func(p *httpapi.LinkPages) { p.FrameAncestors = []string{"https://app.example"} }, nil)
	host = w.customer.URL
	tab := b.Open(t, browse.Person{})
	frame := func(issued linking.IssuedToken) {
		tab.Go(host + "/")
		browse.Eval[int](tab, `window.said = []; addEventListener('message', e => said.push([e.origin, e.data.event, e.data.provider, e.data.error_type]));
			document.body.innerHTML = '<iframe width=380 height=700 src="`+issued.WebURL+`"></iframe>'; 1`)
	}
	frame(w.invite(linking.NewToken{}))
	require.Eventually(t, func() bool { return len(tab.Refusals()) > 0 }, 20*time.Second, 20*time.Millisecond, "this origin may not embed us")

	w = newLinkFixture(t, func(p *httpapi.LinkPages) { p.FrameAncestors = []string{host} }, nil)
	issued := w.invite(linking.NewToken{})
	x, err := w.links.Accept(t.Context(), issued.Token, linking.Acceptance{Provider: "manual"})
	require.NoError(t, err)
	require.Equal(t, linking.ResultSuccess, x.State)
	issued.WebURL = strings.Replace(issued.WebURL, "/link?", "/link/done?", 1)
	frame(issued)
	tab.WaitFor("said.length > 0")
	require.Equal(t, [][]string{{w.ours.URL, "success", "manual", ""}}, browse.Eval[[][]string](tab, "said"))
}
