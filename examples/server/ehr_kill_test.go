package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
)

// mortal is a store that dies at an update: before it, or once it is committed. From then on it does nothing.
type mortal struct {
	store.Store
	dead  atomic.Bool
	left  atomic.Int64 // updates until it dies; 0 for never
	after bool         // the last one is committed
}

func (m *mortal) gone() error {
	if m.dead.Load() {
		return fmt.Errorf("%w: killed", healthlab.Unavailable)
	}
	return nil
}

func (m *mortal) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	last := m.left.Add(-1) == 0
	if last && !m.after {
		m.dead.Store(true)
	}
	if err := m.gone(); err != nil {
		return err
	}
	err := m.Store.Update(ctx, run)
	if last {
		m.dead.Store(true)
		return m.gone()
	}
	return err
}

func (m *mortal) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if err := m.gone(); err != nil {
		return nil, err
	}
	return m.Store.Read(ctx, q...)
}

// deaf is a FHIR server that takes conditional creates and updates, and dies at some requests: before it has taken a
// transaction, after that, or in the middle of its answer. What it has taken stays.
type deaf struct {
	mu     sync.Mutex
	random *rand.Rand
	whole  bool // it dies no more
	has    map[string][]map[string]any
}

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	death := 0
	if !d.whole {
		death = d.random.IntN(6)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || death == 1 {
		return nil, io.ErrUnexpectedEOF
	}
	var b struct {
		Entry []struct {
			Resource map[string]any
			Request  struct{ Method, URL, IfNoneExist string }
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	for _, e := range b.Entry {
		query := e.Request.IfNoneExist
		if e.Request.Method == http.MethodPut {
			_, query, _ = strings.Cut(e.Request.URL, "?")
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return nil, err
		}
		key := values.Get("identifier")
		if e.Request.Method == http.MethodPut || d.has[key] == nil {
			d.has[key] = append(d.has[key], e.Resource)
		}
	}
	w := httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(body))
	takeTransaction(w, r)
	out := w.Result()
	switch death {
	case 2:
		return nil, io.ErrUnexpectedEOF
	case 3:
		text := w.Body.Bytes()
		out.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), errorReader{}))
	}
	return out, nil
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// pushing is a service with a pipeline whose store is closed and opened again.
type pushing struct {
	t      *testing.T
	open   func() (store.Store, func())
	now    func() time.Time
	server *deaf
	team   healthlab.TeamID
}

// life is one life of the service, in which its store may die.
type life struct {
	*mortal
	health    *healthdata.Service
	reader    *fhir.Reader
	pipelines *ehr.Service
	pusher    *push.Pusher
	close     func()
}

func (p *pushing) begin() *life {
	p.t.Helper()
	engine, closing := p.open()
	l := &life{mortal: &mortal{Store: engine}, close: closing}
	var resources []healthdata.ProviderResource
	for _, r := range healthdata.Resources() {
		resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources}})
	require.NoError(p.t, err)
	log := slog.New(slog.DiscardHandler)
	all, err := service.New(p.t.Context(), service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "https://api.example.com", Files: memory.New(nil).Blobs(), Log: log,
		Stores: stores.New(l.mortal, &stores.Options{Events: stores.Outbox, Pipelines: true}), Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Pipelines: ehr.Options{Resources: fhir.Resources()},
	})
	require.NoError(p.t, err)
	l.health, l.pipelines = all.Health, all.Pipelines
	l.reader, err = fhir.NewReader(fhir.Config{URL: "https://api.example.com/fhir/r4", Health: all.Health, Aggregate: all.Aggregate, Now: p.now})
	require.NoError(p.t, err)
	l.pusher, err = push.New(all.Pipelines, l.reader, &push.Options{Client: &http.Client{Transport: p.server}, Now: p.now, Log: log, Entries: 3})
	require.NoError(p.t, err)
	return l
}

// push pushes what is due once, and reports whether something was.
func (l *life) push(t *testing.T) bool {
	t.Helper()
	list, err := l.pusher.Claim(t.Context(), 3)
	require.True(t, err == nil || l.dead.Load(), "%v", err)
	for _, task := range list {
		_ = l.pusher.Do(t.Context(), task) // what it could not write comes back
	}
	return len(list) > 0
}

var upload = healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "app"}}

// Pushes over each engine, while stores and the FHIR server die at every step: nothing is lost, nothing is there twice,
// and no older state of a resource comes after a newer one.
func TestPipelines_killedProcessesLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	engines := map[string]func(t *testing.T, now func() time.Time) func() (store.Store, func()){
		"SQLite": func(t *testing.T, now func() time.Time) func() (store.Store, func()) {
			file := filepath.Join(t.TempDir(), dataFile)
			return func() (store.Store, func()) {
				s, err := sqlite.Open(t.Context(), file, stores.Tables(), &sqlite.Options{Now: now})
				require.NoError(t, err)
				return s, func() { require.NoError(t, s.Close()) }
			}
		},
		"PostgreSQL": func(t *testing.T, now func() time.Time) func() (store.Store, func()) {
			database := pgtest.Empty(t)
			return func() (store.Store, func()) {
				pool, err := pgxpool.New(t.Context(), database)
				require.NoError(t, err)
				s, err := openEngine(t.Context(), pool, 0, &postgres.Options{Now: now})
				require.NoError(t, err)
				return s, pool.Close
			}
		},
	}
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range prove.Counts(1, 2, 50) {
				random := rand.New(rand.NewPCG(47, uint64(round)))
				at := atomic.Int64{}
				at.Store(time.Date(2026, time.March, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
				now := func() time.Time { return time.UnixMicro(at.Load()).UTC() }
				p := &pushing{t: t, open: open(t, now), now: now, server: &deaf{random: random, has: map[string][]map[string]any{}}, team: healthlab.TeamID{UUID: uuid.New()}}
				p.endure(random, func(d time.Duration) { at.Add(d.Microseconds()) })
			}
		})
	}
}

// endure lets a service die and live again, and checks what the FHIR server has in the end.
func (p *pushing) endure(random *rand.Rand, pass func(time.Duration)) {
	t := p.t
	l := p.begin()
	var users []healthlab.UserID
	for i := range 2 {
		u, err := l.health.CreateUser(t.Context(), p.team, healthdata.NewUser{ClientUserID: fmt.Sprint("person-", i)})
		require.NoError(t, err)
		_, err = l.health.Connections().ConnectLinked(t.Context(), p.team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(t, err)
		users = append(users, u.ID)
	}
	pipeline, err := l.pipelines.Create(t.Context(), p.team, ehr.NewPipeline{Title: "clinic", BaseURL: "https://ehr.example.com/fhir", Resources: []string{"heartrate", "weight"}})
	require.NoError(t, err)
	noon := p.now().Truncate(24 * time.Hour).Add(-12 * time.Hour)
	value := 40.0
	deaths := 0
	for range 25 {
		u := users[random.IntN(len(users))]
		switch n := random.IntN(10); {
		case n < 2:
			_, err = l.health.RemoveSamples(t.Context(), p.team, u, "weight", upload, "", []healthlab.Time{healthlab.At(noon.AddDate(0, 0, -3))})
		case n < 5:
			day := noon.AddDate(0, 0, -1-random.IntN(5))
			err = ingest(t.Context(), l.health, p.team, u, "weight", day, 60+float64(random.IntN(30)))
		default: // one day whose values grow
			value++
			err = ingest(t.Context(), l.health, p.team, u, "heartrate", noon.AddDate(0, 0, -2), value)
		}
		require.NoError(t, err)
		if l.after = random.IntN(2) == 0; random.IntN(2) == 0 {
			l.left.Store(1 + int64(random.IntN(8)))
		}
		l.push(t)
		if l.dead.Load() {
			deaths++
			l.close()
			l = p.begin()
		}
		l.left.Store(0)
		pass(time.Duration(random.IntN(600)) * time.Second)
	}
	require.NotZero(t, deaths)
	p.server.mu.Lock()
	p.server.whole = true
	p.server.mu.Unlock()
	for range 200 {
		for l.push(t) {
		}
		st, err := l.pipelines.State(t.Context(), p.team, pipeline.ID)
		require.NoError(t, err)
		if st.Waiting == 0 {
			break
		}
		pass(15 * time.Minute)
	}
	p.agrees(l, users)
	st, err := l.pipelines.State(t.Context(), p.team, pipeline.ID)
	require.NoError(t, err)
	require.Zero(t, st.Waiting)
	require.Zero(t, st.DeadLetters)
	page, err := l.pipelines.Runs(t.Context(), ehr.RunQuery{Team: p.team, Pipeline: pipeline.ID, Size: 200})
	require.NoError(t, err)
	sent, failed := 0, 0
	for _, r := range page.Runs {
		sent, failed = sent+r.Sent, failed+r.Failed
	}
	require.EqualValues(t, st.Pushed, sent)
	require.NotZero(t, failed)
	l.close()
}

func ingest(ctx context.Context, health *healthdata.Service, team healthlab.TeamID, user healthlab.UserID, resource string, at time.Time, value float64) error {
	_, err := health.IngestSamples(ctx, team, user, resource, upload, []healthdata.Sample{{
		Timestamp: healthlab.At(at), Unit: healthdata.ResourceBySlug(resource).Unit, Value: &healthdata.Value{Number: value},
	}})
	return err
}

// agrees compares what the server has with what a read gives.
func (p *pushing) agrees(l *life, users []healthlab.UserID) {
	t := p.t
	want, have := map[string]any{}, map[string]any{}
	first, last := l.reader.Bounds()
	for _, u := range users {
		for _, slug := range []string{"heartrate", "weight"} {
			for from := first; !last.Before(from); from = from.AddDays(366) {
				to := from.AddDays(365)
				if to.After(last) {
					to = last
				}
				list, err := l.reader.Days(t.Context(), p.team, u, slug, from, to)
				require.NoError(t, err)
				for _, r := range list {
					var body map[string]any
					require.NoError(t, json.Unmarshal(r.JSON, &body))
					want[r.ID] = body["valueQuantity"]
				}
			}
		}
	}
	require.NotEmpty(t, want)
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	for key, versions := range p.server.has {
		id, ok := strings.CutPrefix(key, "https://api.example.com/fhir/r4/Observation|")
		if !ok {
			continue
		}
		if r := versions[len(versions)-1]; r["status"] != "entered-in-error" {
			have[id] = r["valueQuantity"]
		}
		before := 0.0
		for _, r := range versions {
			q, ok := r["valueQuantity"].(map[string]any)
			if !ok || !strings.Contains(id, ".hr.") {
				continue
			}
			require.GreaterOrEqual(t, q["value"], before, "an older state after a newer one")
			before = q["value"].(float64)
		}
	}
	require.Equal(t, want, have)
}
