package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed html/*.html
var htmlFiles embed.FS

//go:embed assets/style.css
var style []byte

//go:embed assets/link.js
var script []byte

// Options are what a host chooses. The zero value is good.
type Options struct {
	// Language is the one where neither the person nor the browser chooses.
	Language string
	// Texts are the host's own words by language and key.
	Texts map[string]map[string]string
	// Logos are files named <slug>.svg, .png, .webp or .jpg, and brand.*.
	Logos fs.FS
}

// Site draws pages. Immutable, and safe for concurrent use.
type Site struct {
	texts    catalogue
	language string
	version  string
	pages    map[string]map[string]*template.Template // by language and page
	logos    map[string]Asset
}

// Asset is a file that pages ask for.
type Asset struct {
	Type string
	Body []byte
}

// pageNames are the pages. Each is a file in html, drawn inside layout.html.
var pageNames = []string{"list", "source", "mfa", "code", "wait", "done", "problem", "closed"}

// parsedPages returns the templates of the pages by name, without texts. They are parsed once in a
// process and never executed, so that each site and language can clone them.
var parsedPages = sync.OnceValues(func() (map[string]*template.Template, error) {
	noTexts := template.FuncMap{"t": func(string, ...any) string { return "" }}
	shared, err := template.New("layout.html").Funcs(noTexts).ParseFS(htmlFiles, "html/layout.html", "html/parts.html")
	if err != nil {
		return nil, err
	}
	out := map[string]*template.Template{}
	for _, name := range pageNames {
		t, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if out[name], err = t.ParseFS(htmlFiles, "html/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return out, nil
})

// NewSite reads texts, templates and logos.
func NewSite(o Options) (*Site, error) {
	texts, err := readTexts(o.Texts)
	if err != nil {
		return nil, fmt.Errorf("link pages: texts: %w", err)
	}
	sum := sha256.Sum256(append(bytes.Clone(style), script...))
	s := &Site{
		texts: texts, language: o.Language, version: hex.EncodeToString(sum[:6]),
		pages: map[string]map[string]*template.Template{},
	}
	if texts[s.language] == nil {
		s.language = DefaultLanguage
	}
	parsed, err := parsedPages()
	if err != nil {
		return nil, fmt.Errorf("link pages: %w", err)
	}
	for _, lang := range texts.languages() {
		s.pages[lang] = map[string]*template.Template{}
		for name, page := range parsed {
			t, err := page.Clone()
			if err != nil {
				return nil, fmt.Errorf("link pages: %w", err)
			}
			s.pages[lang][name] = t.Funcs(template.FuncMap{
				"t": func(key string, pairs ...any) string { return texts.say(lang, key, pairs...) },
			})
		}
	}
	if s.logos, err = readLogos(o.Logos); err != nil {
		return nil, fmt.Errorf("link pages: logos: %w", err)
	}
	return s, nil
}

var logoTypes = map[string]string{
	".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp", ".jpg": "image/jpeg",
}

// readLogos reads all logos: a page must not wait for a disk.
func readLogos(files fs.FS) (map[string]Asset, error) {
	out := map[string]Asset{}
	if files == nil {
		return out, nil
	}
	list, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		kind := logoTypes[path.Ext(f.Name())]
		if f.IsDir() || kind == "" {
			continue
		}
		b, err := fs.ReadFile(files, f.Name())
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(f.Name(), path.Ext(f.Name()))] = Asset{kind, b}
	}
	return out, nil
}

// Asset returns a file that pages ask for, by name; color is for the stylesheet.
func (s *Site) Asset(name, color string) (Asset, bool) {
	switch name {
	case "style.css":
		return Asset{"text/css; charset=utf-8", append([]byte(theme(color)), style...)}, true
	case "link.js":
		return Asset{"text/javascript; charset=utf-8", script}, true
	}
	slug, ok := strings.CutPrefix(name, "logo-")
	a, found := s.logos[slug]
	return a, ok && found
}

// Languages are those that a person can choose, by their own names.
func (s *Site) languageLinks() []Choice {
	var out []Choice
	for _, l := range s.texts.languages() {
		out = append(out, Choice{Key: l, Label: s.texts.say(l, "language")})
	}
	return out
}

// Choice is one of several.
type Choice struct {
	Key, Label string
	Chosen     bool
}

// View is what every page knows. The fields below Data are set by Render.
type View struct {
	// Root is the path of the pages, and Token the link token; empty where there is none.
	Root, Token string
	// Lang is the language, and Asked whether the person chose it.
	Lang  string
	Asked bool
	// Company is who the person links for; empty if it is not set. Color is its colour, and
	// Logo where its logo is, on our own origin or in a data: URL.
	Company, Color string
	Logo           template.URL
	// Contact says where the company is found.
	Contact Contact
	// Closable shows the way out.
	Closable bool
	// Path is the page's own path below Root, for another language.
	Path string
	// Event, Provider and ErrorType are posted to the page that embeds ours, if its origin is
	// among Origins: success, exit or error.
	Event, Provider, ErrorType string
	Origins                    []string
	// Data is the page's own.
	Data any

	Languages []Choice
	Style     string
	Script    string
}

// Contact says where a company is found. What is empty is left out.
type Contact struct {
	// Website is an address of http or https, Text a phone number or a sentence.
	Website, Email, Text, Address string
}

// Href is a link to a page below Root, with the token and the language, and more pairs.
func (v *View) Href(to string, pairs ...string) string {
	q := url.Values{}
	if v.Token != "" {
		q.Set("token", v.Token)
	}
	if v.Asked {
		q.Set("lang", v.Lang)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	href := v.Root
	if to != "" {
		href += "/" + to
	}
	if len(q) == 0 {
		return href
	}
	return href + "?" + q.Encode()
}

// InLanguage is the page itself in another language.
func (v *View) InLanguage(lang string) string {
	other := *v
	other.Lang, other.Asked = lang, true
	return other.Href(v.Path)
}

// Render draws a page.
func (s *Site) Render(name string, v View) ([]byte, error) {
	if s.pages[v.Lang] == nil {
		v.Lang = s.language
	}
	v.Color = CleanColor(v.Color)
	if v.Company == "" {
		v.Company = s.texts.say(v.Lang, "company.none")
	}
	if _, ok := s.logos["brand"]; ok && v.Logo == "" {
		v.Logo = template.URL(v.Root + "/assets/logo-brand") //nolint:gosec // of configuration
	}
	for _, l := range s.languageLinks() {
		l.Chosen = l.Key == v.Lang
		v.Languages = append(v.Languages, l)
	}
	v.Style = v.Root + "/assets/style.css?color=" + v.Color + "&v=" + s.version
	v.Script = v.Root + "/assets/link.js?v=" + s.version
	var b bytes.Buffer
	if err := s.pages[v.Lang][name].Execute(&b, &v); err != nil {
		return nil, fmt.Errorf("draw link page: %w", err)
	}
	return b.Bytes(), nil
}

// Source is a source as pages show it.
type Source struct {
	Slug, Name, Description string
	// Way is how it is connected: oauth, password, site, email, device, manual.
	Way string
	// Kinds are the kinds of data that it has.
	Kinds []string
	// Logo is where its logo is; empty shows Initials on a ground of one of eight tones.
	Logo     string
	Initials string
	Tone     int
}

// DrawSource returns a source with its Logo, below root, its Initials and its Tone.
func (s *Site) DrawSource(root string, out Source) Source {
	out.Initials = initials(out.Name)
	if _, ok := s.logos[out.Slug]; ok {
		out.Logo = root + "/assets/logo-" + out.Slug
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(out.Slug))
	out.Tone = int(h.Sum32() % 8)
	return out
}

// initials are the first letters of the first two words.
func initials(name string) string {
	var out []rune
	for _, word := range strings.Fields(name) {
		r, _ := utf8.DecodeRuneInString(word)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, unicode.ToUpper(r))
		}
		if len(out) == 2 {
			break
		}
	}
	return string(out)
}

// List is the page list.
type List struct {
	Sources []Source
	Query   string
	Kinds   []Choice
	// Any says that there is something to connect at all.
	Any bool
}

// SourcePage is the page source.
type SourcePage struct {
	Source Source
	// Back leads to the list; not where the token names the source.
	Back    bool
	Demo    bool
	Regions []Choice
	// Consent is the address of the text that the person agrees to, and ConsentVersion its
	// version; empty where the team names none.
	Consent, ConsentVersion string
	// Name is what the person entered before: the user name or the address.
	Name string
	// Problem is what is wrong with it: a key of the catalogue below problem, or empty.
	Problem string
	// Fields are what is wrong with single fields: keys of the catalogue by field.
	Fields map[string]string
}

// CodePage is the pages mfa, code and wait.
type CodePage struct {
	Source Source
	Back   bool
	// Method and Hint say how a code came.
	Method, Hint string
	// Code is one of ours, and Open opens the companion app with it.
	Code string
	Open template.URL
	// Problem and Fields are as those of SourcePage.
	Problem string
	Fields  map[string]string
}

// DonePage is the page done.
type DonePage struct {
	Source Source
	Demo   bool
	Import Import
}

// Import is how far the first import has come.
type Import struct {
	// Known is false where it is not known.
	Known       bool
	Done, Total int
	Failed      bool
	// Days is how many days the longest history has, and FetchedDays how many of them are there.
	Days, FetchedDays int
}

// Running reports whether there is more to come.
func (i Import) Running() bool { return i.Known && (i.Total == 0 || i.Done < i.Total) }

// ProblemPage is the page problem.
type ProblemPage struct {
	// Key is below problem in the catalogue.
	Key string
	// Source is whose it is; its Name is empty if it is not known.
	Source Source
	// Retry leads back to the source, Another to the list.
	Retry, Another bool
}
