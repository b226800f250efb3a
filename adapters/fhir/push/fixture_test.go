package push_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

const base = "https://api.example.com/fhir/r4"

// clock is a clock that moves when it is told.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lines is a log that many may write to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// clinic is a service with a team, a FHIR server, and what pushes to it.
type clinic struct {
	t         *testing.T
	s         *service.Service
	store     *memory.Store
	team      healthlab.TeamID
	clock     *clock
	began     time.Time
	logs      *lines
	log       *slog.Logger
	reads     http.Handler
	reader    *fhir.Reader
	pipelines *ehr.Service
	pusher    *push.Pusher
	server    *ehrServer
	url       string
}

func newClinic(t *testing.T, change ...func(*push.Options)) *clinic {
	t.Helper()
	c := &clinic{t: t, team: healthlab.TeamID{UUID: uuid.New()}, clock: &clock{at: time.Now().UTC()}, logs: &lines{}, server: &ehrServer{}}
	c.began = c.clock.now()
	log := slog.New(slog.NewTextHandler(c.logs, nil))
	c.log = log
	var resources []healthdata.ProviderResource
	for _, r := range healthdata.Resources() {
		resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources}})
	require.NoError(t, err)
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	registry, err := sandbox.Registry()
	require.NoError(t, err)
	c.store = memory.New(&memory.Options{Now: c.clock.now, Pipelines: true})
	c.s, err = service.New(t.Context(), service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "https://api.example.com", Stores: c.store.Stores, Files: c.store.Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
		Orders: orders.Options{Registry: registry}, Log: log,
		HTTP: httpapi.Config{Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: c.team}, nil }},
	})
	require.NoError(t, err)
	config := fhir.Config{API: c.s.API(), URL: base, Health: c.s.Health, Aggregate: c.s.Aggregate, Orders: c.s.Orders, Continuous: c.s.Continuous, Now: c.clock.now}
	c.reads, err = fhir.Handler(config)
	require.NoError(t, err)
	reader, err := fhir.NewReader(config)
	require.NoError(t, err)
	c.reader = reader
	c.pipelines, err = ehr.New(c.store.Pipelines(), newSealer(t), &ehr.Options{Resources: fhir.Resources(), Now: c.clock.now})
	require.NoError(t, err)
	opts := &push.Options{Client: http.DefaultClient, Now: c.clock.now, Log: log}
	for _, f := range change {
		f(opts)
	}
	c.pusher, err = push.New(c.pipelines, reader, opts)
	require.NoError(t, err)
	serving := httptest.NewServer(c.server)
	t.Cleanup(serving.Close)
	c.url = serving.URL
	return c
}

func newSealer(t *testing.T) healthlab.Sealer {
	t.Helper()
	s, err := healthlab.NewAESSealer("test", map[string][]byte{"test": bytes.Repeat([]byte{9}, 32)})
	require.NoError(t, err)
	return s
}

// person makes a user.
func (c *clinic) person(name string) healthlab.UserID {
	c.t.Helper()
	u, err := c.s.Health.CreateUser(c.t.Context(), c.team, healthdata.NewUser{ClientUserID: name})
	require.NoError(c.t, err)
	_, err = c.s.Health.Connections().ConnectLinked(c.t.Context(), c.team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(c.t, err)
	return u.ID
}

var upload = healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "app"}}

func (c *clinic) noon(d int) time.Time {
	return c.began.Truncate(24*time.Hour).AddDate(0, 0, -d).Add(12 * time.Hour)
}

// measure stores a number at a time.
func (c *clinic) measure(user healthlab.UserID, resource string, at time.Time, value float64) {
	c.t.Helper()
	_, err := c.s.Health.IngestSamples(c.t.Context(), c.team, user, resource, upload, []healthdata.Sample{{
		Timestamp: healthlab.At(at), Unit: healthdata.ResourceBySlug(resource).Unit, Value: &healthdata.Value{Number: value},
	}})
	require.NoError(c.t, err)
}

func (c *clinic) remove(user healthlab.UserID, resource string, at time.Time) {
	c.t.Helper()
	_, err := c.s.Health.RemoveSamples(c.t.Context(), c.team, user, resource, upload, "", []healthlab.Time{healthlab.At(at)})
	require.NoError(c.t, err)
}

// order places an order of a test, and lets the laboratory complete it.
func (c *clinic) order(user healthlab.UserID) orders.OrderID {
	c.t.Helper()
	var placed struct {
		Order struct {
			ID orders.OrderID `json:"id"`
		} `json:"order"`
	}
	body := `{"user_id":"` + user.String() + `","order_set":{"lab_test_ids":["5ab0c1d2-0000-4000-8000-000000000001"]},
		"patient_details":{"first_name":"Annika","last_name":"Markerson","dob":"1984-01-02","gender":"female","phone_number":"+12175550100","email":"ann@example.org"},
		"patient_address":{"receiver_name":"Annika Markerson","phone_number":"+12175550100","first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}}`
	require.NoError(c.t, json.Unmarshal(c.call(c.s.Handler(), "POST", "/v3/order", body), &placed))
	c.complete(placed.Order.ID)
	return placed.Order.ID
}

func (c *clinic) complete(id orders.OrderID) {
	c.t.Helper()
	yes := true
	_, err := c.s.Exchange.Simulate(c.t.Context(), c.team, id, orders.StatusOf(catalogue.Testkit, orders.Completed), orders.SimulationFlags{Interpretation: "abnormal", HasMissingResults: &yes})
	require.NoError(c.t, err)
}

func (c *clinic) call(h http.Handler, method, path, body string) []byte {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("x-service-api-key", "team")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, w.Code, "%s %s: %s", method, path, b)
	return b
}

// pipeline adds one to the server.
func (c *clinic) pipeline(change ...func(*ehr.NewPipeline)) ehr.Pipeline {
	c.t.Helper()
	n := ehr.NewPipeline{Title: "clinic", BaseURL: c.url}
	for _, f := range change {
		f(&n)
	}
	p, err := c.pipelines.Create(c.t.Context(), c.team, n)
	require.NoError(c.t, err)
	return p
}

// push pushes what is due, until nothing is.
func (c *clinic) push() {
	c.t.Helper()
	for {
		list, err := c.pusher.Claim(c.t.Context(), 10)
		require.NoError(c.t, err)
		if len(list) == 0 {
			return
		}
		for _, t := range list {
			require.NoError(c.t, c.pusher.Do(c.t.Context(), t))
		}
	}
}

// settle pushes until nothing waits, letting time pass.
func (c *clinic) settle(p ehr.Pipeline) {
	c.t.Helper()
	for range 200 {
		c.push()
		st, err := c.pipelines.State(c.t.Context(), c.team, p.ID)
		require.NoError(c.t, err)
		if st.Waiting == 0 {
			return
		}
		c.clock.pass(15 * time.Minute)
	}
	c.t.Fatal("something waits after 50 hours")
}

// bodies returns the resources of a search, and of the pages that follow.
func (c *clinic) bodies(path string) (out []object) {
	c.t.Helper()
	for path != "" {
		var b struct {
			Link  []struct{ Relation, URL string }
			Entry []struct{ Resource object }
		}
		require.NoError(c.t, json.Unmarshal(c.call(c.reads, "GET", path, ""), &b))
		for _, e := range b.Entry {
			out = append(out, e.Resource)
		}
		path = ""
		for _, l := range b.Link {
			if l.Relation == "next" {
				path = strings.TrimPrefix(l.URL, base)
			}
		}
	}
	return out
}

// pushed are the types that the server has as a read gives them.
var pushed = []string{"Observation", "DiagnosticReport", "ServiceRequest", "Specimen"}

// agree compares what the server has of people with what reads of FHIR give: each resource as it is, no other, and
// each once.
func (c *clinic) agree(users ...healthlab.UserID) {
	c.t.Helper()
	want := map[string]object{}
	for _, u := range users {
		for _, kind := range pushed {
			for _, r := range c.bodies("/" + kind + "?_count=500&patient=" + u.String()) {
				want[kind+"/"+r["id"].(string)] = r
			}
		}
	}
	require.NotEmpty(c.t, want)
	byPlace, have := map[string]string{}, map[string]object{}
	c.server.mu.Lock()
	for _, r := range c.server.all {
		name := r.kind + "/" + r.id
		for _, id := range identifiers(r.last()) {
			if value, ok := strings.CutPrefix(id, base+"/"+r.kind+"|"); ok {
				name = r.kind + "/" + value
			}
		}
		for place, other := range byPlace {
			require.NotEqual(c.t, other, name, "twice, at %s and %s", place, r.id)
		}
		byPlace[r.kind+"/"+r.id] = name
		if r.last()["status"] != "entered-in-error" && (want[name] != nil || contains(pushed, r.kind)) {
			have[name] = r.last()
		}
	}
	c.server.mu.Unlock()
	require.Equal(c.t, keys(want), keys(have))
	for name, r := range want {
		delete(r, "id")
		plain(r, nil)
		got := clone(c.t, have[name])
		list := got["identifier"].([]any)
		require.Equal(c.t, name, name[:strings.Index(name, "/")]+"/"+list[0].(object)["value"].(string))
		if got["identifier"] = list[1:]; len(list) == 1 {
			delete(got, "identifier")
		}
		plain(got, byPlace)
		require.Equal(c.t, clone(c.t, r), got, name)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func clone(t *testing.T, v object) (out object) {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// plain removes the version, and names references as a read does.
func plain(v any, places map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			plain(x, places)
		}
	case object:
		if m, ok := v["meta"].(object); ok {
			delete(m, "versionId")
			delete(m, "lastUpdated")
			if len(m) == 0 {
				delete(v, "meta")
			}
		}
		for _, x := range v {
			plain(x, places)
		}
		if to := places[text(v["reference"])]; to != "" {
			v["reference"] = to
		}
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
