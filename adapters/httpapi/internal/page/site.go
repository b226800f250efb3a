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

// Options are the settings that a host may choose. The zero value means the defaults.
type Options struct {
	// Language is used if neither the person nor the browser chooses one.
	Language string
	// Texts replaces texts by language and key.
	Texts map[string]map[string]string
	// Logos holds files named <slug>.svg, .png, .webp or .jpg, and brand with one of these extensions.
	Logos fs.FS
}

// Site renders pages. It is immutable and safe for concurrent use.
type Site struct {
	texts    catalogue
	language string
	version  string
	pages    map[string]map[string]*template.Template // by language and page
	logos    map[string]Asset
}

// Asset is a file that pages load, such as the stylesheet or a logo.
type Asset struct {
	Type string
	Body []byte
}

// pageNames lists the pages. Each is a template in html, rendered inside layout.html.
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
				"t": func(key string, pairs ...any) string { return texts.translate(lang, key, pairs...) },
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

// readLogos reads all logos into memory, so that no page waits for a disk.
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

// Asset returns a file that pages load, by its name; false if there is none. color is the accent of the stylesheet.
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

// languageLinks returns the languages that a person can choose, each by its own name.
func (s *Site) languageLinks() []Choice {
	var out []Choice
	for _, l := range s.texts.languages() {
		out = append(out, Choice{Key: l, Label: s.texts.translate(l, "language")})
	}
	return out
}

// Choice is one option of a list.
type Choice struct {
	Key, Label string
	Chosen     bool
}

// View holds the values that every page uses. [Site.Render] sets the fields after Data.
type View struct {
	// Root is the path of the pages, and Token the link token. Either may be empty.
	Root, Token string
	// Lang is the language, and Asked reports whether the person chose it.
	Lang  string
	Asked bool
	// Company is the name of the company for which the person links an account; it may be empty. Color is its accent
	// colour. Logo is the address of its logo, on the same origin or as a data: URL.
	Company, Color string
	Logo           template.URL
	// Contact holds the contact details of the company.
	Contact Contact
	// Closable shows a link with which the person leaves the pages.
	Closable bool
	// Path is the path of the page below Root, for links to other languages.
	Path string
	// Event (success, exit or error), Provider and ErrorType are posted to the embedding page if its origin is among
	// Origins.
	Event, Provider, ErrorType string
	Origins                    []string
	// Data holds the values of the single page.
	Data any

	Languages []Choice
	Style     string
	Script    string
}

// Contact holds the contact details of a company. Empty fields are not shown.
type Contact struct {
	// Website is an http or https address. Text is a phone number or a sentence about how to reach the company.
	Website, Email, Text, Address string
}

// Href returns a link to a page below Root with the token, the language and further query pairs.
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

// InLanguage returns a link to the same page in another language.
func (v *View) InLanguage(lang string) string {
	other := *v
	other.Lang, other.Asked = lang, true
	return other.Href(v.Path)
}

// Render returns the HTML of a page.
func (s *Site) Render(name string, v View) ([]byte, error) {
	if s.pages[v.Lang] == nil {
		v.Lang = s.language
	}
	v.Color = CleanColor(v.Color)
	if v.Company == "" {
		v.Company = s.texts.translate(v.Lang, "company.none")
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

// Source describes a data source to a person.
type Source struct {
	Slug, Name, Description string
	// Way is how a person connects the source: oauth, password, site, email, device or manual.
	Way string
	// Kinds lists the kinds of data of the source.
	Kinds []string
	// Logo is the address of the logo. If it is empty, Initials are shown on one of eight background tones.
	Logo     string
	Initials string
	Tone     int
}

// DrawSource returns a source with its Logo below root, its Initials and its Tone.
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

// initials returns the first letters of the first two words of a name.
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

// List holds the data of the page named list.
type List struct {
	Sources []Source
	Query   string
	Kinds   []Choice
	// Any reports whether the person can connect any source.
	Any bool
}

// SourcePage holds the data of the page named source.
type SourcePage struct {
	Source Source
	// Back shows the link to the list of sources. It is false if the link token names the source.
	Back    bool
	Demo    bool
	Regions []Choice
	// Consent is the URL of the consent text, and ConsentVersion its version. Both are empty if the team has no consent
	// text.
	Consent, ConsentVersion string
	// Name is the user name or address that the person entered before.
	Name string
	// Problem selects the error texts: those with the keys problem.<Problem>.title and .text. Empty means no error.
	Problem string
	// Fields maps a form field to the key of its error text.
	Fields map[string]string
}

// CodePage holds the data of the pages named mfa, code and wait.
type CodePage struct {
	Source Source
	Back   bool
	// Method and Hint describe how the provider sent the code.
	Method, Hint string
	// Code is the link code of this service, and Open the address that opens the companion app with it.
	Code string
	Open template.URL
	// Problem and Fields hold keys of error texts, as in SourcePage.
	Problem string
	Fields  map[string]string
}

// DonePage holds the data of the page named done.
type DonePage struct {
	Source Source
	Demo   bool
	Import Import
}

// Import is the progress of the first import of a connection.
type Import struct {
	// Known reports whether the progress is known.
	Known       bool
	Done, Total int
	Failed      bool
	// Days is the number of days of the longest history, and FetchedDays the number of these that are stored.
	Days, FetchedDays int
}

// Running reports whether the import is incomplete.
func (i Import) Running() bool { return i.Known && (i.Total == 0 || i.Done < i.Total) }

// ProblemPage holds the data of the page named problem.
type ProblemPage struct {
	// Key selects the error texts: those with the keys problem.<Key>.title and .text.
	Key string
	// Source is the source of the problem. Its Name is empty if the source is unknown.
	Source Source
	// Retry shows a link to the source, and Another a link to the list.
	Retry, Another bool
}
