package page

import (
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func site(t *testing.T, o Options) *Site {
	t.Helper()
	s, err := NewSite(o)
	require.NoError(t, err)
	return s
}

var places = regexp.MustCompile(`\{[a-z]+\}`)

// Every language has every text, with the same places to fill.
func TestTexts_everyLanguageHasEveryTextWithTheSamePlaceholders(t *testing.T) {
	all, err := readTexts(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"de", "en"}, all.languages())
	for lang, words := range all {
		require.Equal(t, slices.Sorted(maps.Keys(all["en"])), slices.Sorted(maps.Keys(words)), lang)
		for key, text := range words {
			require.NotEmpty(t, strings.TrimSpace(text), "%s %s", lang, key)
			a, b := places.FindAllString(all["en"][key], -1), places.FindAllString(text, -1)
			slices.Sort(a)
			slices.Sort(b)
			require.Equal(t, slices.Compact(a), slices.Compact(b), "%s %s", lang, key)
		}
	}
}

// Every text that a template names is in the catalogue, and a template names every text of
// the catalogue.
func TestTexts_areExactlyThoseThatTemplatesUse(t *testing.T) {
	s := site(t, Options{})
	used := map[string]bool{"company.none": true, "language": true, "required": true, "field.long": true}
	said := regexp.MustCompile(`\(?\bt "([a-z._]+)"`)
	files, err := htmlFiles.ReadDir("html")
	require.NoError(t, err)
	for _, f := range files {
		b, err := htmlFiles.ReadFile("html/" + f.Name())
		require.NoError(t, err)
		for _, m := range said.FindAllStringSubmatch(string(b), -1) {
			require.True(t, s.Has(m[1]), "%s says %s", f.Name(), m[1])
			used[m[1]] = true
		}
	}
	for key := range s.texts["en"] {
		if !used[key] {
			require.True(t, slices.ContainsFunc([]string{"problem.", "kind.", "region."}, func(p string) bool {
				return strings.HasPrefix(key, p)
			}), "nobody says %s", key)
		}
	}
	for _, e := range linking.ErrorTypes() {
		require.True(t, s.Has("problem."+string(e)+".title"), e)
		require.True(t, s.Has("problem."+string(e)+".text"), e)
	}
	for _, r := range []string{linking.RuleTooManyTries, linking.RuleInvalidProvider, healthdata.RuleInvalidRequest} {
		require.True(t, s.Has("problem."+strings.ToLower(r)+".title"), r)
	}
}

func TestOptions_textsReplaceAndAddLanguages(t *testing.T) {
	s := site(t, Options{Language: "fr", Texts: map[string]map[string]string{"en": {"close": "Leave"}, "fr": {"close": "Fermer", "language": "Français"}}})
	require.Equal(t, "Leave", s.Say("en", "close"))
	require.Equal(t, "Fermer", s.Say("fr", "close"))
	require.Equal(t, "Back", s.Say("fr", "back"), "what a language lacks is English")
	require.Equal(t, "fr", s.Language("", ""))
}

func TestLanguage_followsTheQueryThenAcceptLanguage(t *testing.T) {
	s := site(t, Options{})
	for _, c := range []struct{ asked, accept, want string }{
		{"", "", "en"}, {"de", "en", "de"}, {"xx", "de", "de"}, {"", "de-AT,de;q=0.9,en;q=0.5", "de"}, {"", "fr,en;q=0.3,de;q=0.8", "de"},
		{"", "fr, *;q=0.1", "en"}, {"", "de;q=0", "en"}, {"", "de;q=nonsense,en", "en"}, {"", "de;q=NaN", "en"}, {"", ";;,,;q=", "en"}, {"../de", "", "en"},
	} {
		require.Equal(t, c.want, s.Language(c.asked, c.accept), "%+v", c)
	}
}

// Every resource of the catalogue is of a kind that people know, and of one alone.
func TestKinds_everyResourceBelongsToOneKind(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds {
		for _, r := range k.resources {
			require.False(t, seen[r], r)
			seen[r] = true
			require.NotNil(t, healthdata.ResourceBySlug(r), r)
		}
	}
	for _, r := range healthdata.Resources() {
		require.NotEmpty(t, kindOf[r.Slug], r.Slug)
	}
	require.Equal(t, []string{"activity", "sleep"}, KindsOf([]string{"sleep", "steps", "sleep_cycle", "nobody"}))
	require.Len(t, AllKinds(), len(kinds))
}

// For any brand colour, text in it and text on it has enough contrast (WCAG 2, AA: 4.5).
func TestBrandColor_anyColorHasEnoughContrast(t *testing.T) {
	css := string(style)
	grounds := map[bool][]rgb{}
	light, dark, ok := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	require.True(t, ok)
	named := regexp.MustCompile(`--(?:ground|card|hover): #([0-9a-f]{6})`)
	for _, m := range named.FindAllStringSubmatch(light, -1) {
		grounds[false] = append(grounds[false], parseColor(m[1]))
	}
	for _, m := range named.FindAllStringSubmatch(dark, -1) {
		grounds[true] = append(grounds[true], parseColor(m[1]))
	}
	require.Len(t, grounds[false], 3)
	require.Len(t, grounds[true], 3)
	pair := regexp.MustCompile(`--accent:#([0-9a-f]{6});--on-accent:#([0-9a-f]{6})`)
	rapid.Check(t, func(t *rapid.T) {
		css := theme(rapid.StringMatching(`#?[0-9a-f]{6}|[0-9A-F]{3}`).Draw(t, "color"))
		found := pair.FindAllStringSubmatch(css, -1)
		require.Len(t, found, 2)
		for i, m := range found {
			accent := parseColor(m[1])
			require.GreaterOrEqual(t, contrast(parseColor(m[2]), accent), 4.5)
			for _, g := range grounds[i == 1] {
				require.GreaterOrEqual(t, contrast(accent, g), 4.5)
			}
		}
	})
}

func TestCleanColor_replacesInvalidColorsByTheDefault(t *testing.T) {
	for in, want := range map[string]string{
		"": DefaultColor, "#0AF": "00aaff", "123456": "123456", "red": DefaultColor, "#12345": DefaultColor, "url(x)": DefaultColor, "fff;}": DefaultColor,
	} {
		require.Equal(t, want, CleanColor(in), in)
	}
	require.InDelta(t, 21, contrast(white, black), 0.001)
	require.InDelta(t, 4.54, contrast(parseColor("767676"), white), 0.01)
}

func TestLogos_areServedFromTheirFileSystem(t *testing.T) {
	s := site(t, Options{Logos: fstest.MapFS{
		"acme_ring.svg": {Data: []byte("<svg/>")}, "brand.png": {Data: []byte("png")}, "readme.txt": {Data: []byte("x")}, "more/x.svg": {Data: []byte("x")},
	}})
	a, ok := s.Asset("logo-acme_ring", "")
	require.True(t, ok)
	require.Equal(t, Asset{"image/svg+xml", []byte("<svg/>")}, a)
	for _, name := range []string{"logo-readme", "logo-", "logo-x", "acme_ring", "../style.css", ""} {
		_, ok := s.Asset(name, "")
		require.False(t, ok, name)
	}
	require.Equal(t, "/link/assets/logo-acme_ring", s.DrawSource("/link", Source{Slug: "acme_ring", Name: "Acme Ring", Way: "oauth"}).Logo)
	src := s.DrawSource("/link", Source{Slug: "acme_band", Name: "2nd Élan of three", Way: "oauth"})
	require.Empty(t, src.Logo)
	require.Equal(t, "2É", src.Initials)
	b, err := s.Render("closed", View{Root: "/link", Lang: "xx"})
	require.NoError(t, err)
	require.Contains(t, string(b), `src="/link/assets/logo-brand"`)
	require.Contains(t, string(b), `lang="en"`)
}

// Texts of a provider, a customer or a person are always escaped.
func TestRender_escapesUntrustedTexts(t *testing.T) {
	s := site(t, Options{})
	const evil = `"><script>alert(1)</script>{{.Token}}'`
	src := Source{Slug: "x", Name: evil, Description: evil, Initials: evil, Way: "password", Kinds: []string{evil}}
	for _, way := range []string{"oauth", "password", "email", "device", "manual"} {
		src.Way = way
		v := View{Root: "/link", Token: evil, Company: evil, Closable: true, Logo: template.URL(evil), Event: "error", Provider: evil, ErrorType: evil, Origins: []string{evil}}
		for name, data := range map[string]any{
			"list":    List{Sources: []Source{src}, Query: evil, Any: true, Kinds: []Choice{{Key: evil}}},
			"source":  SourcePage{Source: src, Back: true, Demo: true, Regions: []Choice{{Key: evil, Label: evil}}, Name: evil, Fields: map[string]string{"username": evil}},
			"mfa":     CodePage{Source: src, Back: true, Method: evil, Hint: evil, Fields: map[string]string{"mfa_code": evil}},
			"code":    CodePage{Source: src, Code: evil, Open: template.URL("app://x?code=1")},
			"wait":    CodePage{Source: src},
			"done":    DonePage{Source: src, Demo: true, Import: Import{Known: true, Total: 3, Done: 1, Failed: true}},
			"problem": ProblemPage{Key: "provider_api_error", Source: src, Retry: true, Another: true},
			"closed":  nil,
		} {
			v.Data = data
			b, err := s.Render(name, v)
			require.NoError(t, err)
			require.NotContains(t, string(b), "<script>alert", name)
		}
	}
}
