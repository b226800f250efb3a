package fhir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders"
)

// Config is what a mount consists of.
type Config struct {
	// API says who calls, what is recorded and what is limited. Its Authenticate is required.
	API httpapi.Config
	// URL is where the handler is mounted, without a slash at the end: https://api.example.com/fhir/r4.
	// Required.
	URL string
	// Health and Aggregate are required.
	Health    *healthdata.Service
	Aggregate *aggregate.Service
	// Orders stands behind laboratory resources and names. Nil: there are none.
	Orders *orders.Service
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// server answers requests.
type server struct{ Config }

// caller is who calls.
type caller = httpapi.Access

// kind is a type of resources.
type kind struct {
	name   string
	scopes organisation.Scopes
	params []string // beside _count and _after
	read   func(ctx context.Context, by caller, id string) (resource, error)
	search func(ctx context.Context, by caller, q *query) (found, error)
}

func (s *server) kinds() []kind {
	out := []kind{
		{"Patient", organisation.Scopes{organisation.DataRead, organisation.OrdersRead}, []string{"_id"}, s.readPatient, s.searchPatients},
		{"Observation", organisation.Scopes{organisation.DataRead, organisation.OrdersRead}, clinicalParams, s.readObservation, s.searchObservations},
	}
	if s.Orders != nil {
		lab := organisation.Scopes{organisation.OrdersRead}
		out = append(out, kind{"DiagnosticReport", lab, clinicalParams, s.readReport, s.searchReports},
			kind{"ServiceRequest", lab, clinicalParams, s.readRequest, s.searchRequests})
	}
	return out
}

var clinicalParams = []string{"_id", "_lastUpdated", "patient", "code", "category", "date", "status"}

// Handler serves FHIR at the paths below Config.URL, such as /metadata and /Patient/{id}. It is safe for
// concurrent use. Invalid lists what is missing in c or wrong.
func Handler(c Config) (http.Handler, error) {
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
		return nil, fmt.Errorf("%w: fhir: Config.%s: must be set; URL must be an address without a slash at the end", healthlab.Invalid, strings.Join(missing, ", Config."))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &server{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metadata", func(w http.ResponseWriter, _ *http.Request) { _ = write(w, http.StatusOK, s.capability()) })
	for _, k := range s.kinds() {
		reads := func(w http.ResponseWriter, r *http.Request, by caller) error { return s.read(w, r, by, &k) }
		searches := func(w http.ResponseWriter, r *http.Request, by caller) error { return s.search(w, r, by, &k) }
		name := strings.ToLower(k.name)
		h := httpapi.Extend(c.API,
			httpapi.Extension{ID: "fhir_read_" + name, Scopes: k.scopes, Handle: reads, Refuse: refuse},
			httpapi.Extension{ID: "fhir_search_" + name, Scopes: k.scopes, Handle: searches, Refuse: refuse})
		mux.Handle("GET /"+k.name+"/{id}", h[0])
		mux.Handle("GET /"+k.name, h[1])
		mux.Handle("POST /"+k.name+"/_search", h[1])
	}
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		_ = refuse(w, httpapi.Refusal{Status: http.StatusNotFound, Msg: "no such resource type or operation; /metadata lists those that there are"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_ = refuse(w, httpapi.Refusal{Status: http.StatusMethodNotAllowed, Msg: "only read and search are supported", Header: http.Header{"Allow": {"GET, HEAD"}}})
	})
	return mux, nil
}

func (s *server) read(w http.ResponseWriter, r *http.Request, by caller, k *kind) error {
	found, err := k.read(r.Context(), by, r.PathValue("id"))
	if errors.Is(err, healthlab.NotFound) {
		return refuse(w, httpapi.Refusal{Status: http.StatusNotFound, Msg: "the team has no " + k.name + " with this id"})
	}
	if err != nil {
		return err
	}
	if err := seal(found); err != nil {
		return err
	}
	m := found.start().Meta
	w.Header().Set("ETag", `W/"`+m.VersionID+`"`)
	if r.Header.Get("If-None-Match") == `W/"`+m.VersionID+`"` {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return write(w, http.StatusOK, found)
}

// formLimit bounds the form of a search.
const formLimit = 64 << 10

func (s *server) search(w http.ResponseWriter, r *http.Request, by caller, k *kind) error {
	text := r.URL.RawQuery
	if r.Method == http.MethodPost {
		form, err := io.ReadAll(io.LimitReader(r.Body, formLimit+1))
		if err != nil {
			return fmt.Errorf("read form: %w", err)
		}
		if len(form) > formLimit {
			return refuse(w, httpapi.Refusal{Status: http.StatusRequestEntityTooLarge, Msg: fmt.Sprintf("the form of a search must have at most %d bytes", formLimit)})
		}
		text = strings.Trim(text+"&"+string(form), "&")
	}
	q, problems := readQuery(text, k)
	if len(problems) > 0 {
		return refuse(w, httpapi.Refusal{Status: http.StatusBadRequest, Problems: problems})
	}
	out, err := k.search(r.Context(), by, q)
	if err != nil {
		return err
	}
	b, err := s.bundle(k, q, out)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, b)
}
