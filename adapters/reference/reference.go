// Package reference renders the contract of a service as HTML pages: operations by subject with a
// curl command each, events, types, and a search. The pages are made on the server, without scripts
// and without files of other hosts, so they work offline.
//
//	http.Handle("/docs/", reference.Handler(api))
//
// The contract is the OpenAPI 3.1 document that the API itself serves at /openapi.json, with
// the names of headers that its host chose.
package reference

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
)

// Path is the path at which [Handler] must be mounted.
const Path = "/docs/"

//go:embed pages/*.html pages/style.css
var files embed.FS

// Handler returns the pages of the contract that api serves at /openapi.json. It reads the
// contract at the first request. Mount it at [Path]. Safe for concurrent use.
func Handler(api http.Handler) http.Handler {
	var once sync.Once
	var set *pageSet
	var failed error
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		once.Do(func() { set, failed = render(context.WithoutCancel(r.Context()), api) }) //nolint:contextcheck // the pages outlive the first request
		if failed != nil {
			http.Error(w, "the contract cannot be shown", http.StatusInternalServerError)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, Path)
		page, ok := set.pages[name]
		if name == searchPage {
			text := r.URL.Query().Get("q")
			found, err := set.search(text[:min(len(text), longestSearch)])
			page, ok = found, err == nil
		}
		if !ok {
			http.Error(w, "page not found; the list of pages is at "+Path, http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		if name == "style.css" {
			h.Set("Content-Type", "text/css; charset=utf-8")
		}
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(page) //nolint:gosec // html/template escapes the search text
	})
}

// searchPage is the name of the search page.
const searchPage = "search"

// pageSet holds the rendered pages by name, and the search index.
type pageSet struct {
	pages     map[string][]byte
	templates *template.Template
	service   string
	tags      []tag
	hits      []hit
}

// render requests the contract from api, and renders all pages except the search page.
func render(ctx context.Context, api http.Handler) (*pageSet, error) {
	text, err := fetch(ctx, api)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	templates, err := template.New("").Funcs(template.FuncMap{"parts": parts}).ParseFS(files, "pages/*.html")
	if err != nil {
		return nil, err
	}
	style, err := files.ReadFile("pages/style.css")
	if err != nil {
		return nil, err
	}
	events, types := d.events(), d.types()
	set := &pageSet{pages: map[string][]byte{"style.css": style}, templates: templates, service: d.Info.Title, tags: d.tags()}
	set.hits = hits(set.tags, events, types)
	var errs []error
	add := func(name, kind, title string, data any) {
		page, err := set.page(name, kind, title, data)
		errs = append(errs, err)
		set.pages[name] = page
	}
	add("", "index.html", "Reference", d.Info)
	for _, t := range set.tags {
		add(t.Name, "operations.html", t.Name, t)
	}
	add("events", "events.html", "Events", events)
	add("types", "types.html", "Types", types)
	return set, errors.Join(errs...)
}

// page renders one page with the template kind, an HTML file.
func (s *pageSet) page(name, kind, title string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := s.templates.ExecuteTemplate(&b, kind, map[string]any{
		"Name": name, "Title": title, "Service": s.service, "Tags": s.tags, "Data": data,
	})
	return b.Bytes(), err
}

// search renders the page with the results of a search for text.
func (s *pageSet) search(text string) ([]byte, error) {
	found := search(s.hits, text)
	data := struct {
		Query string
		Count int
		More  bool
		Found []hit
	}{strings.TrimSpace(strings.ToValidUTF8(text, "")), len(found), len(found) > mostHits, found[:min(len(found), mostHits)]}
	return s.page(searchPage, "search.html", "Search", data)
}

// fetch requests the contract from api.
func fetch(ctx context.Context, api http.Handler) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/openapi.json", http.NoBody)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "127.0.0.1:0"
	w := &answer{header: http.Header{}, status: http.StatusOK}
	api.ServeHTTP(w, r)
	if w.status != http.StatusOK {
		return nil, fmt.Errorf("contract: GET /openapi.json: status must be 200, not %d", w.status)
	}
	return w.body.Bytes(), nil
}

// answer is a ResponseWriter that stores the answer.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader stores the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write stores the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
