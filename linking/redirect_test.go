package linking_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/linking"
)

func TestRedirect_addsTheOutcomeToTheURL(t *testing.T) {
	failed := linking.Outcome{Error: linking.UserCancelled}
	for _, c := range []struct {
		name, target string
		outcome      linking.Outcome
		want         string
	}{
		{"success", "https://a.example/done", linking.Outcome{Provider: "acme_band"}, "https://a.example/done?state=success&provider=acme_band"},
		{"query kept", "https://a.example/?x=1&y=%20", linking.Outcome{Provider: "acme_band"}, "https://a.example/?x=1&y=%20&state=success&provider=acme_band"},
		{"fragment last", "https://a.example/#/home?tab=2", linking.Outcome{Provider: "a"}, "https://a.example/?state=success&provider=a#/home?tab=2"},
		{"query and fragment", "https://a.example/p?q#f", linking.Outcome{Provider: "a"}, "https://a.example/p?q&state=success&provider=a#f"},
		{"empty query", "https://a.example/p?", linking.Outcome{Provider: "a"}, "https://a.example/p?state=success&provider=a"},
		{"app", "myapp://link", failed, "myapp://link?state=error&error_type=user_cancelled&error=user_cancelled&error_description=the%20person%20closed%20the%20link%20pages"},
		{"opaque app", "myapp:back", linking.Outcome{Provider: "a"}, "myapp:back?state=success&provider=a"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.outcome.Redirect(c.target)) })
	}
}

func TestRedirect_containsTypeAndTextOfEveryError(t *testing.T) {
	require.Len(t, linking.ErrorTypes(), 12)
	for _, e := range linking.ErrorTypes() {
		u, err := url.Parse(linking.Outcome{Error: e}.Redirect("https://a.example/?keep=1"))
		require.NoError(t, err)
		q := u.Query()
		require.Equal(t, []string{"1", "error", string(e), string(e), e.Text()},
			[]string{q.Get("keep"), q.Get("state"), q.Get("error_type"), q.Get("error"), q.Get("error_description")})
	}
}

func TestRedirectRules_allowOnlyListedHostsAndSchemes(t *testing.T) {
	open := linking.RedirectRules{}
	hosts := linking.RedirectRules{Hosts: []string{"app.example", "*.clinic.example"}}
	schemes := linking.RedirectRules{Schemes: []string{"https", "myapp"}, Hosts: []string{"app.example"}}
	for _, c := range []struct {
		name   string
		rules  linking.RedirectRules
		target string
		want   bool
	}{
		{"https", open, "https://a.example/x?y#z", true},
		{"app", open, "myapp://link", true},
		{"plain http", open, "http://a.example/", false},
		{"plain http here", open, "http://localhost:3000/cb", true},
		{"relative", open, "/done", false},
		{"no scheme", open, "//a.example/", false},
		{"empty host", open, "https:///a.example", false},
		{"opaque web", open, "https:a.example", false},
		{"script", open, "javascript:alert(1)", false},
		{"script in capitals", open, "JavaScript://a.example/%0aalert(1)", false},
		{"data", open, "data:text/html,x", false},
		{"file", open, "file:///etc/hosts", false},
		{"user name", open, "https://app.example@evil.example/", false},
		{"backslash", open, `https://evil.example\@app.example/`, false},
		{"white space", open, " https://a.example/", false},
		{"line break", open, "https://a.example/\r\nx", false},
		{"not ASCII", open, "https://ä.example/", false},
		{"long", open, "https://a.example/" + strings.Repeat("x", 2048), false},
		{"host of the list", hosts, "https://APP.example:8443/", true},
		{"host not of the list", hosts, "https://evil.example/", false},
		{"list as a suffix", hosts, "https://evilapp.example/", false},
		{"list as a prefix", hosts, "https://app.example.evil.example/", false},
		{"below", hosts, "https://a.b.clinic.example/", true},
		{"not the top", hosts, "https://clinic.example/", false},
		{"below, glued", hosts, "https://evilclinic.example/", false},
		{"apps stay free", hosts, "myapp://link", true},
		{"scheme of the list", schemes, "MYAPP://link", true},
		{"scheme not of the list", schemes, "other://link", false},
		{"host under schemes", schemes, "https://evil.example/", false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.rules.Allows(c.target)) })
	}
	require.False(t, linking.RedirectRules{Schemes: []string{"javascript"}}.Allows("javascript://x"), "no list allows it")
}

// Whatever is in an allowed URL, the outcome leads to the same place, which is on the
// list.
func TestRedirect_neverLeavesTheAllowedHost(t *testing.T) {
	rules := linking.RedirectRules{Schemes: []string{"https", "myapp"}, Hosts: []string{"app.example", "*.clinic.example"}}
	piece := rapid.SampledFrom([]string{
		"https://", "https:", "myapp://", "javascript:", "app.example", "a.clinic.example", "evil.example", "@", ":", "/", "//",
		"?", "#", "&", "=", "%2e", "%00", ".", "\\", "x", "state=success", "[", "]", "8443", "\t", "é", ";",
	})
	rapid.Check(t, func(t *rapid.T) {
		target := strings.Join(rapid.SliceOfN(piece, 1, 10).Draw(t, "pieces"), "")
		if !rules.Allows(target) {
			return
		}
		before, err := url.Parse(target)
		require.NoError(t, err)
		for _, o := range []linking.Outcome{{Provider: "acme_band"}, {Error: linking.TokenExpired}} {
			got := o.Redirect(target)
			after, err := url.Parse(got)
			require.NoError(t, err)
			require.True(t, slices.Contains(rules.Schemes, after.Scheme))
			if after.Scheme == "https" {
				h := after.Hostname()
				require.True(t, strings.EqualFold(h, "app.example") || strings.HasSuffix(h, ".clinic.example"), h)
			}
			require.Equal(t, []string{before.Scheme, before.Host, before.Opaque, before.Path, before.Fragment},
				[]string{after.Scheme, after.Host, after.Opaque, after.Path, after.Fragment})
			require.True(t, strings.HasPrefix(after.RawQuery, before.RawQuery))
		}
	})
}
