package linking_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/linking"
)

// Only the token that was issued opens a session.
func FuzzOpen(f *testing.F) {
	f.Add("")
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.AA")
	f.Fuzz(func(t *testing.T, text string) {
		p := newPlace(t)
		s := p.service(sealer(t, "a", map[string][]byte{"a": key(1)}), linking.Options{}, key(2))
		issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
		require.NoError(t, err)
		parts := strings.Split(issued.Token, ".")
		for _, forged := range []string{text, issued.Token + text, parts[0] + "." + text + "." + parts[2], text + "." + parts[1] + "." + parts[2]} {
			_, err := s.Open(t.Context(), forged)
			if forged == issued.Token {
				require.NoError(t, err)
				continue
			}
			require.Error(t, err)
		}
	})
}

// An outcome does not change where an allowed URL leads, to any reader of URLs.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{
		"https://app.example/done?x=1#f", "myapp://link", "https://app.example@evil.example/", "https:app.example", "https://app.example\\@evil.example",
		"https://app.example:8443?", "https://app.example/?&#", "HTTPS://APP.EXAMPLE", "https://app.example%2eevil.example/",
	} {
		f.Add(s)
	}
	rules := linking.RedirectRules{Schemes: []string{"https", "myapp"}, Hosts: []string{"app.example"}}
	f.Fuzz(func(t *testing.T, target string) {
		if !rules.Allows(target) {
			return
		}
		before, err := url.Parse(target)
		require.NoError(t, err)
		for _, e := range append(linking.ErrorTypes(), "") {
			got := linking.Outcome{Provider: "acme_band", Error: e}.Redirect(target)
			after, err := url.Parse(got)
			require.NoError(t, err)
			require.True(t, slices.Contains(rules.Schemes, after.Scheme))
			require.True(t, after.Scheme != "https" || strings.EqualFold(after.Hostname(), "app.example"))
			require.Equal(t, []string{before.Scheme, before.Host, before.Opaque, before.Path, before.Fragment},
				[]string{after.Scheme, after.Host, after.Opaque, after.Path, after.Fragment})
			require.True(t, strings.HasPrefix(got, strings.SplitN(target, "#", 2)[0]))
			state := "success"
			if e != "" {
				state = "error"
			}
			require.Contains(t, after.RawQuery, "state="+state)
		}
	})
}
