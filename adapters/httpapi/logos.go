package httpapi

import (
	"hash/fnv"
	"html/template"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// LogoURL returns the address of the drawn logo of a provider, given the address at which the
// API is mounted: for [healthdata.Providers.WithLogos]. It is no trade mark: a coloured tile
// with the first letters of the provider's name.
func LogoURL(base, slug string) string {
	return strings.TrimSuffix(base, "/") + "/v2/providers/" + slug + "/logo.svg"
}

// logoTile is 64 by 64 units. The hue follows from the slug.
var logoTile = template.Must(template.New("logo").Parse(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64" role="img" aria-label="{{.Name}}">` +
		`<rect width="64" height="64" rx="14" fill="hsl({{.Hue}} 45% 40%)"/>` +
		`<text x="32" y="41" font-family="system-ui, sans-serif" font-size="26" font-weight="600" text-anchor="middle" fill="#fff">{{.Letters}}</text></svg>`))

// readLogo draws the logo of a provider. It needs no key: pages show it.
func (a api) readLogo(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	slug := in.PathText("provider", 64)
	if err := in.Err(); err != nil {
		return err
	}
	p := a.Health.Providers().Get(slug)
	if p == nil {
		return healthlab.NotFound
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(slug))
	var svg strings.Builder
	if err := logoTile.Execute(&svg, map[string]any{"Name": p.Name, "Hue": h.Sum32() % 360, "Letters": initials(p.Name)}); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return wire.Bytes(w, http.StatusOK, "image/svg+xml", []byte(svg.String()))
}

// initials returns the first letters of the first two words of a name.
func initials(name string) string {
	var out strings.Builder
	for _, word := range strings.Fields(name) {
		if first, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(first) || unicode.IsDigit(first) {
			out.WriteRune(unicode.ToUpper(first))
		}
		if utf8.RuneCountInString(out.String()) == 2 {
			break
		}
	}
	return out.String()
}
