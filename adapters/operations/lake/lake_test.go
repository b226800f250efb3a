package lake_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

var errCrash = errors.New("crash")

// crashingPlace keeps files in memory. It fails after a number of steps, like a process that
// is killed: every later step fails too.
type crashingPlace struct {
	mu    sync.Mutex
	files map[string][]byte
	steps int // until the crash; below zero there is none
}

func newPlace() *crashingPlace { return &crashingPlace{files: map[string][]byte{}, steps: -1} }

// step takes one step. Call it with the lock held.
func (p *crashingPlace) step() error {
	switch {
	case p.steps == 0:
		return errCrash
	case p.steps > 0:
		p.steps--
	}
	return nil
}

func (p *crashingPlace) Write(_ context.Context, name string, content io.Reader) error {
	text, err := io.ReadAll(content)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(err, p.step()); err != nil {
		return err
	}
	p.files[name] = text
	return p.step() // written, and killed before the writer knows
}

func (p *crashingPlace) Open(_ context.Context, name string) (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := p.files[name]
	if !ok {
		return nil, healthlab.NotFound
	}
	return io.NopCloser(bytes.NewReader(text)), p.step()
}

func (p *crashingPlace) Remove(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	delete(p.files, name)
	return p.step()
}

func (p *crashingPlace) List(_ context.Context, name func(string) error) error {
	p.mu.Lock()
	var names []string
	for n := range p.files {
		names = append(names, n)
	}
	err := p.step()
	p.mu.Unlock()
	for _, n := range names {
		err = errors.Join(err, name(n))
	}
	return err
}

// exported is a team with its health service and its lake.
type exported struct {
	t      require.TestingT
	ctx    context.Context
	now    time.Time
	team   healthlab.TeamID
	health *healthdata.Service
	place  *crashingPlace
	opts   lake.Options
	users  []healthlab.UserID
}

func newExported(ctx context.Context, t require.TestingT) *exported {
	x := &exported{t: t, ctx: ctx, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), place: newPlace(), team: healthlab.TeamID{UUID: uuid.New()}}
	clock := func() time.Time { return x.now }
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	store := memory.New(&memory.Options{Now: clock})
	x.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	x.opts = lake.Options{Now: clock, Log: slog.New(slog.DiscardHandler), Workers: 2}
	return x
}

func (x *exported) addUser() healthlab.UserID {
	u, err := x.health.CreateUser(x.ctx, x.team, healthdata.NewUser{ClientUserID: uuid.NewString()})
	require.NoError(x.t, err)
	_, err = x.health.Connections().Connect(x.ctx, x.team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(x.t, err)
	x.users = append(x.users, u.ID)
	return u.ID
}

var upload = healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}

func (x *exported) ingest(user healthlab.UserID, resource, unit string, at []time.Time, values []float64) {
	samples := make([]healthdata.Sample, len(at))
	for i := range at {
		end := healthlab.At(at[i].Add(time.Minute))
		samples[i] = healthdata.Sample{Timestamp: healthlab.At(at[i]), End: &end, Unit: unit, Value: healthdata.Number(values[i])}
		if resource == "heartrate" {
			samples[i].End = nil
		}
	}
	_, err := x.health.IngestSamples(x.ctx, x.team, user, resource, upload, samples)
	require.NoError(x.t, err)
}

func (x *exported) export() (lake.Manifest, error) {
	e, err := lake.New(x.place, x.health, func(context.Context) ([]healthlab.TeamID, error) { return []healthlab.TeamID{x.team}, nil },
		bytes.Repeat([]byte{9}, 32), &x.opts)
	require.NoError(x.t, err)
	return e.Export(x.ctx, x.team)
}

func (x *exported) manifest() (m lake.Manifest) {
	x.place.mu.Lock()
	defer x.place.mu.Unlock()
	if text := x.place.files["team="+x.team.String()+"/manifest.json"]; text != nil {
		require.NoError(x.t, json.Unmarshal(text, &m))
	}
	return m
}

// row is a sample or a summary.
type row struct {
	User  string  `parquet:"user,optional"`
	Time  int64   `parquet:"time,optional"`
	Index int64   `parquet:"index,optional"`
	Value float64 `parquet:"value,optional"`
	Fat   float64 `parquet:"body_fat_percentage,optional"`
}

// rows reads the files that the manifest names, by resource.
func (x *exported) rows(m lake.Manifest) map[string][]row {
	out := map[string][]row{}
	for _, f := range m.Files {
		text, ok := x.place.files[f.Path]
		require.True(x.t, ok, "the manifest names %s", f.Path)
		require.Len(x.t, text, int(f.Bytes))
		got, err := pq.Read[row](bytes.NewReader(text), int64(len(text)))
		require.NoError(x.t, err)
		require.Len(x.t, got, int(f.Rows))
		for _, r := range got {
			require.Equal(x.t, f.Month, time.UnixMicro(max(r.Time, r.Index)).UTC().Format("2006-01"))
		}
		out[f.Resource] = append(out[f.Resource], got...)
	}
	return out
}

// truth reads the same from the API. Pseudonyms are left out; users are told apart by values.
func (x *exported) truth() map[string][]row {
	out := map[string][]row{}
	for _, user := range x.users {
		for _, resource := range []string{"steps", "heartrate"} {
			samples, err := x.health.AllSamples(x.ctx, x.team, user, healthdata.SampleQuery{
				Resource: resource, From: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
			})
			if errors.Is(err, healthlab.NotFound) {
				continue // deleted
			}
			require.NoError(x.t, err)
			for _, s := range samples {
				out[resource] = append(out[resource], row{Time: s.Timestamp.UnixMicro(), Value: s.Value.Number})
			}
		}
	}
	return out
}

func (x *exported) same(m lake.Manifest) {
	got, want := x.rows(m), x.truth()
	require.Len(x.t, got, len(want))
	order := func(a, b row) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Value, b.Value)) }
	for resource := range want {
		for i := range got[resource] {
			got[resource][i].User = ""
		}
		slices.SortFunc(got[resource], order)
		slices.SortFunc(want[resource], order)
		require.Equal(x.t, want[resource], got[resource], resource)
	}
}

// Random writes, corrections, removals and deletions, with exports that are killed at any
// step: the files of the manifest can always be read, no sample is there twice, and a whole
// export equals the API.
func TestExport_equalsTheAPIAfterCrashes(t *testing.T) {
	for range prove.Count(1, 40) {
		rapid.Check(t, func(t *rapid.T) {
			x := newExported(context.Background(), t)
			at := func() time.Time {
				return time.Date(2026, time.Month(rapid.IntRange(1, 3).Draw(t, "month")), rapid.SampledFrom([]int{1, 15, 28}).Draw(t, "day"),
					rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, time.UTC)
			}
			user := func(t *rapid.T) healthlab.UserID {
				if len(x.users) == 0 {
					t.Skip("no users")
				}
				return rapid.SampledFrom(x.users).Draw(t, "user")
			}
			live := func(t *rapid.T) healthlab.UserID {
				u := user(t)
				if ok, _ := x.health.HasUser(x.ctx, x.team, u); !ok {
					t.Skip("deleted")
				}
				return u
			}
			t.Repeat(map[string]func(*rapid.T){
				"add user": func(t *rapid.T) {
					if len(x.users) > 5 {
						t.Skip("enough users")
					}
					x.addUser()
				},
				"write": func(t *rapid.T) {
					u, n := live(t), rapid.IntRange(1, 4).Draw(t, "n")
					var times []time.Time
					var values []float64
					for range n {
						times, values = append(times, at()), append(values, float64(rapid.IntRange(40, 60).Draw(t, "value")))
					}
					slices.SortFunc(times, time.Time.Compare)
					times = slices.Compact(times)
					if rapid.Bool().Draw(t, "steps") {
						x.ingest(u, "steps", "count", times, values[:len(times)])
					} else {
						x.ingest(u, "heartrate", "bpm", times, values[:len(times)])
					}
				},
				"remove": func(t *rapid.T) {
					_, err := x.health.RemoveSamples(x.ctx, x.team, live(t), "steps", upload, "", []healthlab.Time{healthlab.At(at())})
					require.NoError(t, err)
				},
				"delete": func(t *rapid.T) { require.NoError(t, x.health.Deletions().Delete(x.ctx, x.team, live(t))) },
				"erase":  func(t *rapid.T) { require.NoError(t, x.health.Deletions().Erase(x.ctx, x.team, live(t))) },
				"restore": func(t *rapid.T) {
					u, err := x.health.Deletions().Undo(x.ctx, x.team, healthdata.DeletedUser{User: user(t)})
					if errors.Is(err, healthlab.NotFound) {
						t.Skip("not deleted")
					}
					require.NoError(t, err)
					_, err = x.health.Connections().Connect(x.ctx, x.team, u.ID, healthdata.NewConnection{Provider: "manual"})
					require.NoError(t, err)
				},
				"wait": func(t *rapid.T) {
					x.now = x.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
				},
				"lose a file": func(t *rapid.T) {
					if m := x.manifest(); len(m.Files) > 0 {
						path := rapid.SampledFrom(m.Files).Draw(t, "file").Path
						delete(x.place.files, path)
						x.must()
					}
				},
				"crash": func(t *rapid.T) {
					x.place.steps = rapid.IntRange(0, 20).Draw(t, "steps")
					_, err := x.export()
					x.place.steps = -1
					if err != nil {
						require.ErrorIs(t, err, errCrash)
					}
				},
				"export": func(*rapid.T) { x.must() },
				"": func(*rapid.T) {
					x.rows(x.manifest())
				},
			})
			x.must()
			x.now = x.now.Add(7 * time.Hour) // longer than the grace, and than the age of abandoned parts
			x.must()
			require.Len(t, x.place.files, 1+len(x.manifest().Files), "nothing but the manifest and its files is left")
		})
	}
}

func (x *exported) must() {
	x.now = x.now.Add(21 * time.Hour) // so that the export verifies
	m, err := x.export()
	require.NoError(x.t, err)
	x.same(m)
}

// Without verification an export sees writes, corrections, removals and deletions too.
func TestExport_withoutVerificationIncludesChangesAndDeletions(t *testing.T) {
	x := newExported(t.Context(), t)
	day := time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)
	first, second := x.addUser(), x.addUser()
	x.ingest(first, "steps", "count", []time.Time{day, day.Add(time.Hour)}, []float64{10, 20})
	x.ingest(second, "steps", "count", []time.Time{day}, []float64{30})
	follow := func(changed bool) {
		before := x.manifest()
		x.now = x.now.Add(time.Minute)
		m, err := x.export()
		require.NoError(t, err)
		x.same(m)
		require.Equal(t, changed, !slices.Equal(before.Files, m.Files))
	}
	follow(true)
	follow(false)
	x.ingest(first, "steps", "count", []time.Time{day}, []float64{11})
	follow(true)
	_, err := x.health.RemoveSamples(t.Context(), x.team, first, "steps", upload, "", []healthlab.Time{healthlab.At(day)})
	require.NoError(t, err)
	follow(true)
	require.NoError(t, x.health.Deletions().Delete(t.Context(), x.team, second))
	follow(true)
	require.NoError(t, x.health.Deletions().Delete(t.Context(), x.team, first))
	follow(true)
	require.Empty(t, x.manifest().Files)
	x.now = x.now.Add(time.Hour)
	follow(false)
	require.Len(t, x.place.files, 1, "the manifest alone is left")
}

// The files have pseudonyms, unless the options ask for ids. A change of the options exports
// everything.
func TestExport_usesPseudonymsUnlessIdentified(t *testing.T) {
	x := newExported(t.Context(), t)
	user := x.addUser()
	x.ingest(user, "steps", "count", []time.Time{time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)}, []float64{10})
	id := func() string {
		m, err := x.export()
		require.NoError(t, err)
		return x.rows(m)["steps"][0].User
	}
	pseudonym := id()
	require.Len(t, pseudonym, 32)
	require.NotContains(t, strings.ReplaceAll(user.String(), "-", ""), pseudonym)
	require.Equal(t, pseudonym, id())
	x.opts.Identified = true
	require.Equal(t, user.String(), id())
}

// A user's data is written once the access is recorded; an export that writes nothing of a user
// records none.
func TestExport_recordsAccessBeforeWritingAUser(t *testing.T) {
	x := newExported(t.Context(), t)
	x.opts.Workers = 1
	var mu sync.Mutex
	var users []healthlab.UserID
	fault := errors.New("not recorded")
	x.opts.Accessed = func(_ context.Context, _ healthlab.TeamID, user healthlab.UserID) error {
		mu.Lock()
		defer mu.Unlock()
		users = append(users, user)
		return fault
	}
	ann, ben := x.addUser(), x.addUser()
	for _, user := range []healthlab.UserID{ann, ben} {
		x.ingest(user, "steps", "count", []time.Time{x.now.AddDate(0, -1, 0), x.now.AddDate(0, 0, -1)}, []float64{10, 20})
	}
	_, err := x.export()
	require.ErrorIs(t, err, fault)
	require.Empty(t, x.rows(x.manifest()))

	fault, users = nil, nil
	_, err = x.export()
	require.NoError(t, err)
	require.ElementsMatch(t, []healthlab.UserID{ann, ben}, users)
	users = nil
	_, err = x.export()
	require.NoError(t, err)
	require.Empty(t, users)
}

// An export that takes minutes logs each minute how many of the users it has read, and how many of
// the months it has written.
func TestExport_logsItsProgress(t *testing.T) {
	x := newExported(t.Context(), t)
	for range 3 {
		user := x.addUser()
		for month := range 3 {
			x.ingest(user, "heartrate", "bpm", []time.Time{x.now.AddDate(0, -1-month, 0)}, []float64{60})
		}
	}
	var lines bytes.Buffer
	x.opts.Log = slog.New(slog.NewJSONHandler(&lines, nil))
	x.opts.Workers = 1
	x.opts.Now = func() time.Time {
		x.now = x.now.Add(time.Minute)
		return x.now
	}
	_, err := x.export()
	require.NoError(t, err)
	type line struct {
		Msg, Step string
		Done, Of  int
	}
	var told []line
	for text := range strings.Lines(lines.String()) {
		var l line
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		if l.Step != "" {
			told = append(told, l)
		}
	}
	const msg = "exporting to the lake"
	require.Equal(t, []line{
		{msg, "users read", 1, 3}, {msg, "users read", 2, 3},
		{msg, "months written", 1, 3}, {msg, "months written", 2, 3},
	}, told)
}
