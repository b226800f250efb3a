package fhir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// Config holds the services and settings of a FHIR server.
type Config struct {
	// API is the configuration that authenticates, records and limits requests. Its Authenticate is required.
	API httpapi.Config
	// URL is the address of the handler, without a slash at the end: https://api.example.com/fhir/r4. Required.
	URL string
	// Health and Aggregate provide users and health data. Required.
	Health    *healthdata.Service
	Aggregate *aggregate.Service
	// Orders provides laboratory resources, and the names of patients. Nil: there are no such resources and names.
	Orders *orders.Service
	// Continuous provides the rows of continuous queries for [Reader.Rows]. [Handler] does not use it.
	Continuous *continuous.Service
	// Documents provides DocumentReference and Binary. Nil: there are no such resources.
	Documents *documents.Service
	// Exports stores the records of bulk exports. Nil: there are no exports and no Group.
	Exports BlobStore
	// Tokens issues and checks tokens of SMART backend services, at /auth/token. Its TokenURL must be URL +
	// "/auth/token". Nil: only API keys are accepted.
	Tokens *smart.Server
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes the ids of exports. They must not be guessable. Default: UUID version 4.
	NewID func() uuid.UUID
}

// server answers requests.
type server struct{ Config }

// caller is the authenticated caller of a request.
type caller = httpapi.Access

// Handler serves FHIR at the paths below Config.URL, such as /metadata and /Patient/{id}. It is safe for concurrent
// use. It returns Invalid, with the names of the missing or wrong fields of c.
func Handler(c Config) (http.Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.API = withTokens(c.API, c.Tokens)
	if c.NewID == nil {
		c.NewID = uuid.New
	}
	s := &server{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metadata", s.metadata)
	var extensions []httpapi.Extension
	var patterns [][]string
	add := func(e httpapi.Extension, at ...string) {
		if e.Refuse == nil {
			e.Refuse = s.refuse
		}
		extensions, patterns = append(extensions, e), append(patterns, at)
	}
	if c.Tokens != nil {
		add(httpapi.Extension{ID: "fhir_token", Public: s.token, Refuse: refuseToken}, "POST /auth/token")
		mux.HandleFunc("GET /.well-known/smart-configuration", s.smartConfiguration)
	}
	kinds := s.kinds()
	if c.Exports != nil {
		kinds = append(kinds, s.groupKind())
	}
	for _, k := range kinds {
		reads := func(w http.ResponseWriter, r *http.Request, by caller) error { return s.read(w, r, by, &k) }
		searches := func(w http.ResponseWriter, r *http.Request, by caller) error { return s.search(w, r, by, &k) }
		name := strings.ToLower(k.name)
		add(httpapi.Extension{ID: "fhir_read_" + name, Scopes: k.scopes, Handle: reads}, "GET /"+k.name+"/{id}")
		add(httpapi.Extension{ID: "fhir_search_" + name, Scopes: k.scopes, Handle: searches}, "GET /"+k.name, "POST /"+k.name+"/_search")
		if slices.Contains(k.params, "patient") { // also serve /Patient/{id}/Observation
			add(httpapi.Extension{ID: "fhir_search_" + name, Scopes: k.scopes, Handle: searches}, "GET /Patient/{patient}/"+k.name)
		}
	}
	add(httpapi.Extension{ID: "fhir_everything", Scopes: everyScope, Timeout: streamTime, Handle: s.everything}, getAndPost("/Patient/{id}/$everything")...)
	if c.Documents != nil && c.Orders != nil {
		add(httpapi.Extension{ID: "fhir_read_binary", Scopes: ordersScope, Handle: s.binary}, "GET /Binary/{id}")
	}
	if c.Exports != nil {
		add(httpapi.Extension{ID: "fhir_export", Scopes: everyScope, Handle: s.kickOff}, getAndPost("/$export", "/Patient/$export", "/Group/{id}/$export")...)
		add(httpapi.Extension{ID: "fhir_read_export", Scopes: everyScope, Handle: s.exportStatus}, "GET /$export-status/{id}")
		add(httpapi.Extension{ID: "fhir_delete_export", Scopes: everyScope, Handle: s.deleteExport}, "DELETE /$export-status/{id}")
		add(httpapi.Extension{ID: "fhir_download_export", Scopes: everyScope, Timeout: streamTime, Handle: s.exportFile}, "GET /$export-file/{id}/{type}/{n}")
	}
	for i, h := range httpapi.Extend(c.API, extensions...) { // at once: the rate limits count all of them together
		for _, p := range patterns[i] {
			mux.Handle(p, h)
		}
	}
	refuseOthers(mux)
	return mux, nil
}

// check returns Invalid, with the names of the missing or wrong fields.
func (c *Config) check() error {
	base, err := url.Parse(c.URL)
	var missing []string
	for name, is := range map[string]bool{
		"API.Authenticate": c.API.Authenticate != nil, "Health": c.Health != nil, "Aggregate": c.Aggregate != nil,
		"URL": err == nil && (base.Scheme == "http" || base.Scheme == "https") && base.Host != "" && !strings.HasSuffix(c.URL, "/"),
	} {
		if !is {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: fhir: Config.%s: must be set; URL must be an address without a slash at the end", healthlab.Invalid, strings.Join(missing, ", Config."))
	}
	if c.Tokens != nil && c.Tokens.TokenURL != c.URL+"/auth/token" {
		return fmt.Errorf("%w: fhir: Config.Tokens: TokenURL must be URL/auth/token", healthlab.Invalid)
	}
	return nil
}

func (s *server) metadata(w http.ResponseWriter, r *http.Request) {
	if !acceptsJSON(r, r.URL.Query()) {
		_ = refuseFormat(w)
		return
	}
	_ = write(w, http.StatusOK, s.capability())
}

// refuseOthers answers requests for resource types, operations and methods that the service does not support.
func refuseOthers(mux *http.ServeMux) {
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		_ = refuse(w, httpapi.Refusal{Status: http.StatusNotFound, Msg: "no such resource type or operation; /metadata lists those that there are"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_ = refuse(w, httpapi.Refusal{Status: http.StatusMethodNotAllowed, Msg: "only read, search and the operations that /metadata lists are supported", Header: http.Header{"Allow": {"GET, HEAD"}}})
	})
}

// refuse writes the answer to an error. The answer to an authentication error says how to authenticate.
func (s *server) refuse(w http.ResponseWriter, f httpapi.Refusal) error {
	if f.Status == http.StatusUnauthorized && s.Tokens != nil {
		f.Msg += ", or a token that has not ended, as Authorization: Bearer TOKEN"
		f.Header = f.Header.Clone()
		if f.Header == nil {
			f.Header = http.Header{}
		}
		f.Header.Set("WWW-Authenticate", "Bearer")
	}
	return refuse(w, f)
}

func (s *server) read(w http.ResponseWriter, r *http.Request, by caller, k *kind) error {
	if !acceptsJSON(r, r.URL.Query()) {
		return refuseFormat(w)
	}
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	if !may.reads(k.name) {
		return lacking(w, "system/"+k.name+".r")
	}
	found, err := k.read(r.Context(), by, r.PathValue("id"))
	if errors.Is(err, healthlab.NotFound) {
		return refuseUnknown(w, k.name)
	}
	if err != nil {
		return err
	}
	b, err := seal(found)
	if err != nil {
		return err
	}
	m := found.start().Meta
	w.Header().Set("ETag", `W/"`+m.VersionID+`"`)
	if m.LastUpdated != "" {
		if at, err := time.Parse(time.RFC3339, m.LastUpdated); err == nil {
			w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
		}
	}
	if unchanged(r, m.VersionID) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return write(w, http.StatusOK, json.RawMessage(b))
}

// formLimit is the largest form of a search by POST, in bytes.
const formLimit = 64 << 10

func (s *server) search(w http.ResponseWriter, r *http.Request, by caller, k *kind) error {
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	if !may.searches(k.name) {
		return lacking(w, "system/"+k.name+".s")
	}
	text := r.URL.RawQuery
	if of := r.PathValue("patient"); of != "" {
		text = strings.Trim(url.Values{"patient": {of}}.Encode()+"&"+text, "&")
	}
	if r.Method == http.MethodPost {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
			return refuse(w, httpapi.Refusal{Status: http.StatusUnsupportedMediaType, Msg: "Content-Type must be application/x-www-form-urlencoded"})
		}
		form, err := io.ReadAll(io.LimitReader(r.Body, formLimit+1))
		if err != nil {
			return fmt.Errorf("read form: %w", err)
		}
		if len(form) > formLimit {
			return refuse(w, httpapi.Refusal{Status: http.StatusRequestEntityTooLarge, Msg: fmt.Sprintf("the form of a search must have at most %d bytes", formLimit)})
		}
		text = strings.Trim(text+"&"+string(form), "&")
	}
	if values, err := url.ParseQuery(text); err == nil && !acceptsJSON(r, values) {
		return refuseFormat(w)
	}
	q, problems := readQuery(text, k, s.URL, handlingOf(r))
	if len(problems) > 0 {
		return refuse(w, httpapi.Refusal{Status: http.StatusBadRequest, Problems: problems})
	}
	out, err := k.search(r.Context(), by, q)
	if err != nil {
		return err
	}
	included, err := s.includedResources(r.Context(), by, may, q, out.all)
	if err != nil {
		return err
	}
	b, err := s.bundle(k, q, out, included)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, b)
}
