package healthdata_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

func ExampleService_Samples() {
	ctx := context.Background()
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", Category: "app", Class: "manual",
		Resources: []healthdata.ProviderResource{{Resource: "heartrate"}},
	}})
	store := memory.New(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, PageSize: 2})
	team := healthlab.TeamID{UUID: uuid.New()}
	user, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-1"})
	_, _ = health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})
	seven, _ := healthlab.ParseTime("2026-03-01T07:00:00Z")
	var samples []healthdata.Sample
	for i := range 5 {
		at := healthlab.At(seven.Add(time.Duration(i) * time.Minute))
		samples = append(samples, healthdata.Sample{Timestamp: at, Unit: "bpm", Value: healthdata.Number(float64(60 + i))})
	}
	_, _ = health.IngestSamples(ctx, team, user.ID, "heartrate", healthdata.Upload{Provider: "manual"}, samples)

	// All that varies from page to page is the cursor.
	q := healthdata.SampleQuery{Resource: "heartrate", From: seven.Time}
	for {
		page, err := health.Samples(ctx, team, user.ID, q)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, group := range page.Groups {
			for s := range group.All() {
				fmt.Println(group.Source.Provider, s.Timestamp, s.Value.Number)
			}
		}
		if page.Next == "" {
			return
		}
		q.Cursor = page.Next
	}
	// Output:
	// manual 2026-03-01T07:00:00+00:00 60
	// manual 2026-03-01T07:01:00+00:00 61
	// manual 2026-03-01T07:02:00+00:00 62
	// manual 2026-03-01T07:03:00+00:00 63
	// manual 2026-03-01T07:04:00+00:00 64
}

func (s *station) page(q healthdata.SampleQuery) *healthdata.SamplePage {
	s.Helper()
	p, err := s.Samples(s.Context(), s.team, s.user, q)
	require.NoError(s, err)
	return &p
}

// seen is a sample as a page shows it, with what identifies it.
type seen struct {
	Provider   string
	SourceType healthdata.SourceType
	Type       string
	At         string
	Value      float64
}

// all lists the samples of a page.
func all(p *healthdata.SamplePage) (out []seen) {
	for i := range p.Groups {
		g := &p.Groups[i]
		for s := range g.All() {
			v := seen{Provider: g.Source.Provider, SourceType: g.Source.Type, At: s.Timestamp.String(), Value: s.Value.Number}
			if s.Type != nil {
				v.Type = *s.Type
			}
			out = append(out, v)
		}
	}
	return out
}

// everyMinute is so many samples of heart rate.
func everyMinute(n int) []healthdata.Sample {
	out := make([]healthdata.Sample, n)
	for i := range out {
		out[i] = reading("bpm", ago(time.Duration(n-i)*time.Minute), float64(50+i%90))
	}
	return out
}

func TestSamplePages_have5000SamplesByDefault(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	in := everyMinute(12_000)
	s.samples("heartrate", band, in...)
	q := healthdata.SampleQuery{Resource: "heartrate"}
	var sizes []int
	var got []healthdata.Sample
	for {
		p := s.page(q)
		sizes = append(sizes, len(all(p)))
		require.Len(t, p.Groups, 1, "one source")
		got = slices.AppendSeq(got, p.Groups[0].All())
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	require.Equal(t, []int{5000, 5000, 2000}, sizes)
	require.Equal(t, s.read("heartrate"), got)
	require.Len(t, got, len(in))
}

func TestSamplePages_fullLastPageHasNoCursor(t *testing.T) {
	s := newStation(t, healthdata.Options{PageSize: 4})
	s.samples("heartrate", band, everyMinute(8)...)
	q := healthdata.SampleQuery{Resource: "heartrate"}
	q.Cursor = s.page(q).Next
	require.NotEmpty(t, q.Cursor)
	last := s.page(q)
	require.Len(t, all(last), 4)
	require.Empty(t, last.Next)
}

func TestSamplePages_cursorOfAnotherQueryIsRefused(t *testing.T) {
	s := newStation(t, healthdata.Options{PageSize: 2})
	s.samples("heartrate", band, everyMinute(9)...)
	s.samples("hrv", band, reading("rmssd", ago(time.Minute), 40))
	mary, err := s.CreateUser(t.Context(), s.team, healthdata.NewUser{ClientUserID: "member-2"})
	require.NoError(t, err)
	q := healthdata.SampleQuery{Resource: "heartrate", From: ago(time.Hour).Time, To: ago(0).Time, Provider: "acme_band"}
	q.Cursor = s.page(q).Next
	require.Len(t, all(s.page(q)), 2, "as it is, it goes on")

	plain, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	require.NoError(t, err)
	with := func(change func(*healthdata.SampleQuery)) healthdata.SampleQuery {
		other := q
		change(&other)
		return other
	}
	cursor := func(text string) healthdata.SampleQuery {
		return with(func(q *healthdata.SampleQuery) { q.Cursor = text })
	}
	refused := func(t *testing.T, user healthlab.UserID, q healthdata.SampleQuery) {
		t.Helper()
		_, err := s.Samples(t.Context(), s.team, user, q)
		require.Equal(t, []string{"next_cursor: cursor"}, problems(t, err))
		require.EqualError(t, err, "read samples: invalid: next_cursor: must be the next_cursor of an earlier page of the same query, unchanged")
	}
	for name, other := range map[string]healthdata.SampleQuery{
		"resource":      with(func(q *healthdata.SampleQuery) { q.Resource = "hrv" }),
		"from":          with(func(q *healthdata.SampleQuery) { q.From = q.From.Add(time.Microsecond) }),
		"no from":       with(func(q *healthdata.SampleQuery) { q.From = time.Time{} }),
		"to":            with(func(q *healthdata.SampleQuery) { q.To = q.To.Add(-time.Second) }),
		"no to":         with(func(q *healthdata.SampleQuery) { q.To = time.Time{} }),
		"provider":      with(func(q *healthdata.SampleQuery) { q.Provider = "manual" }),
		"any provider":  with(func(q *healthdata.SampleQuery) { q.Provider = "" }),
		"cut":           cursor(q.Cursor[:len(q.Cursor)-1]),
		"half":          cursor(q.Cursor[:len(q.Cursor)/2]),
		"longer":        cursor(q.Cursor + "AA"),
		"twice":         cursor(q.Cursor + q.Cursor),
		"not base64":    cursor("?" + q.Cursor),
		"a word":        cursor("next"),
		"padded":        cursor(q.Cursor + "="),
		"empty object":  cursor(base64.RawURLEncoding.EncodeToString([]byte("{}"))),
		"null":          cursor(base64.RawURLEncoding.EncodeToString([]byte("null"))),
		"another place": cursor(base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(plain), `"t":1`, `"t":2`, 1)))),
	} {
		t.Run(name, func(t *testing.T) { refused(t, s.user, other) })
	}
	t.Run("user", func(t *testing.T) { refused(t, mary.ID, q) })
	// Whatever single bit was lost on the way.
	for i := range plain {
		for bit := range 8 {
			bent := slices.Clone(plain)
			bent[i] ^= 1 << bit
			other := cursor(base64.RawURLEncoding.EncodeToString(bent))
			refused(t, s.user, other)
		}
	}
}

// A cursor stays valid when the installation's page size changes.
func TestSamplePages_cursorStaysValidWhenThePageSizeChanges(t *testing.T) {
	s := newStation(t, healthdata.Options{PageSize: 3})
	s.samples("heartrate", band, everyMinute(20)...)
	wider, err := healthdata.New(s.store.Users(), s.store.Data(), s.providers, &healthdata.Options{Environment: healthlab.Sandbox, PageSize: 100})
	require.NoError(t, err)
	q := healthdata.SampleQuery{Resource: "heartrate"}
	first := s.page(q)
	q.Cursor = first.Next
	rest, err := wider.Samples(t.Context(), s.team, s.user, q)
	require.NoError(t, err)
	require.Len(t, all(&rest), 17)
	require.Empty(t, rest.Next)
	whole := s.read("heartrate")
	for i, v := range append(all(first), all(&rest)...) {
		require.Equal(t, whole[i].Timestamp.String(), v.At)
	}
}

func TestSamplePages_writesBetweenPagesNeverRepeatASample(t *testing.T) {
	s := newStation(t, healthdata.Options{PageSize: 3})
	s.samples("heartrate", band, everyMinute(6)...)
	q := healthdata.SampleQuery{Resource: "heartrate"}
	first := s.page(q)
	last := all(first)[2]
	// Behind the cursor, at it with another value, and ahead of it.
	s.samples("heartrate", band, reading("bpm", ago(24*time.Hour), 1), reading("bpm", instant(t, last.At), 200), reading("bpm", ago(30*time.Second), 99))
	q.Cursor = first.Next
	second := s.page(q)
	for _, v := range all(second) {
		require.Greater(t, v.At, last.At)
	}
	q.Cursor = second.Next
	require.Equal(t, 99.0, all(s.page(q))[0].Value)
}

func TestSamplePages_haveOneGroupPerSourceContext(t *testing.T) {
	s := newStation(t, healthdata.Options{PageSize: 100})
	device, workout := uuid.New(), uuid.New()
	at := ago(time.Hour)
	put := func(provider string, source healthdata.Source, minute int) {
		v := bucket("m", healthlab.At(at.Add(time.Duration(minute)*time.Minute)), time.Minute, float64(minute))
		s.samples("distance", healthdata.Upload{Provider: provider, Source: source}, v)
	}
	put("manual", healthdata.Source{Type: healthdata.SourceApp, Sport: ptr("wheelchair_push")}, 9)
	put("acme_band", healthdata.Source{Type: healthdata.SourceWatch}, 3)
	put("acme_band", healthdata.Source{Type: healthdata.SourceWatch, DeviceID: &device}, 2)
	put("acme_band", healthdata.Source{Type: healthdata.SourceWatch, AppID: ptr("b.example")}, 1)
	put("acme_band", healthdata.Source{Type: healthdata.SourceWatch}, 0)
	put("acme_band", healthdata.Source{}, 5)
	p := s.page(healthdata.SampleQuery{Resource: "distance"})
	require.Empty(t, p.Next)
	type group struct {
		source healthdata.Source
		values []float64
	}
	var got []group
	for i := range p.Groups {
		g := group{source: p.Groups[i].Source}
		require.Equal(t, p.Groups[i].Len(), len(slices.Collect(p.Groups[i].All())))
		for v := range p.Groups[i].All() {
			g.values = append(g.values, v.Value.Number)
		}
		got = append(got, g)
	}
	of := func(provider string, t healthdata.SourceType) healthdata.Source {
		name := map[string]string{"acme_band": "Acme Band", "manual": "Manual"}[provider]
		src := healthdata.Source{Provider: provider, Slug: provider, Name: name, Type: t}
		if provider == "acme_band" {
			src.Logo = "https://cdn.example/band.png"
		}
		return src
	}
	plain, app, dev := of("acme_band", "watch"), of("acme_band", "watch"), of("acme_band", "watch")
	app.AppID, dev.DeviceID = ptr("b.example"), &device
	chair := of("manual", "app")
	chair.Sport = ptr("wheelchair_pushing")
	require.Equal(t, []group{
		{of("acme_band", "unknown"), []float64{5}},
		{plain, []float64{0, 3}},
		{dev, []float64{2}},
		{app, []float64{1}},
		{chair, []float64{9}},
	}, got)

	// One provider only, and an unknown one.
	require.Len(t, all(s.page(healthdata.SampleQuery{Resource: "distance", Provider: "manual"})), 1)
	require.Empty(t, s.page(healthdata.SampleQuery{Resource: "distance", Provider: "nobody"}).Groups)

	// Two workouts of one minute are two samples.
	for _, id := range []uuid.UUID{workout, uuid.New()} {
		s.samples("workout_distance", healthdata.Upload{Provider: "manual", Source: healthdata.Source{WorkoutID: &id, Sport: ptr("running")}},
			bucket("m", at, time.Minute, 100))
	}
	require.Len(t, s.page(healthdata.SampleQuery{Resource: "workout_distance"}).Groups, 2)
}

func TestSamples_rangeIncludesBothEnds(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	times := []string{
		"2023-02-12T23:59:59.999999Z", "2023-02-13T00:00:00Z", "2023-02-13T23:59:59Z", "2023-02-13T23:59:59.999Z", "2023-02-14T00:00:00Z",
	}
	for i, at := range times {
		s.samples("heartrate", band, reading("bpm", instant(t, at), float64(60+i)))
	}
	read := func(from, to string) (out []float64) {
		q := healthdata.SampleQuery{Resource: "heartrate"}
		if from != "" {
			q.From = instant(t, from).Time
		}
		if to != "" {
			q.To = instant(t, to).Time
		}
		list, err := s.AllSamples(t.Context(), s.team, s.user, q)
		require.NoError(t, err)
		for _, v := range list {
			out = append(out, v.Value.Number)
		}
		var paged []float64
		for _, v := range all(s.page(q)) {
			paged = append(paged, v.Value)
		}
		require.Equal(t, out, paged)
		return out
	}
	require.Equal(t, []float64{60, 61, 62, 63, 64}, read("", ""))
	require.Equal(t, []float64{61, 62, 63}, read("2023-02-13T00:00:00Z", "2023-02-13T23:59:59.999999Z"))
	require.Equal(t, []float64{61, 62}, read("2023-02-13T00:00:00Z", "2023-02-13T23:59:59Z"))
	require.Equal(t, []float64{64}, read("2023-02-14T00:00:00Z", "2023-02-14T00:00:00Z"))
	require.Nil(t, read("2023-02-14T00:00:00.000001Z", ""))
	_, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{
		Resource: "heartrate", From: instant(t, times[2]).Time, To: instant(t, times[1]).Time,
	})
	require.Equal(t, []string{"end_date: order"}, problems(t, err))
}

// Samples and AllSamples return NotFound for an unknown team, user or resource.
func TestSamples_unknownTeamUserOrResourceIsNotFound(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	s.samples("heartrate", band, reading("bpm", ago(time.Hour), 60))
	read := func(team healthlab.TeamID, user healthlab.UserID, resource string) error {
		q := healthdata.SampleQuery{Resource: resource}
		_, err := s.Samples(t.Context(), team, user, q)
		_, err2 := s.AllSamples(t.Context(), team, user, q)
		require.Equal(t, healthlab.KindOf(err), healthlab.KindOf(err2))
		return err
	}
	require.NoError(t, read(s.team, s.user, "heartrate"))
	require.ErrorIs(t, read(healthlab.TeamID{UUID: uuid.New()}, s.user, "heartrate"), healthlab.NotFound)
	require.ErrorIs(t, read(s.team, healthlab.UserID{UUID: uuid.New()}, "heartrate"), healthlab.NotFound)
	require.ErrorIs(t, read(s.team, s.user, "activity"), healthlab.NotFound, "not a timeseries")
	require.ErrorIs(t, read(s.team, s.user, "body_weight"), healthlab.NotFound, "a path, not a slug")
	require.NoError(t, s.Deletions().Delete(t.Context(), s.team, s.user))
	require.ErrorIs(t, read(s.team, s.user, "heartrate"), healthlab.NotFound)
}

// Pages of any size, with writes between them, show what was there once each, and
// without writes they are what an unpaged read shows.
func TestSamplePages_showEachSampleOnceWhateverTheirSize(t *testing.T) {
	quiet := 0
	walk := func(rt *rapid.T) {
		s := newStation(t, healthdata.Options{})
		services := make([]*healthdata.Service, 3)
		for i := range services {
			var err error
			services[i], err = healthdata.New(s.store.Users(), s.store.Data(), s.providers, &healthdata.Options{
				Environment: healthlab.Sandbox,
				PageSize:    rapid.IntRange(1, 40).Draw(rt, "page size"), Now: func() time.Time { return s.now },
			})
			require.NoError(rt, err)
		}
		write := func(most int) {
			up := healthdata.Upload{
				Provider: rapid.SampledFrom([]string{"acme_band", "manual"}).Draw(rt, "provider"),
				Source: healthdata.Source{
					Type:  rapid.SampledFrom([]healthdata.SourceType{"lab", "watch"}).Draw(rt, "source type"),
					AppID: rapid.SampledFrom([]*string{nil, ptr("a"), ptr("b")}).Draw(rt, "app"),
				},
			}
			var in []healthdata.Sample
			for range rapid.IntRange(1, most).Draw(rt, "samples") {
				v := reading("mmol/L", ago(time.Duration(rapid.IntRange(1, 300).Draw(rt, "seconds"))*time.Second), float64(rapid.IntRange(1, 9).Draw(rt, "value")))
				v.Type = ptr(rapid.SampledFrom([]string{"cholesterol/ldl", "cholesterol/hdl", "other"}).Draw(rt, "type"))
				in = append(in, v)
			}
			_, err := s.IngestSamples(t.Context(), s.team, s.user, "cholesterol", up, in)
			require.NoError(rt, err)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "uploads") {
			write(40)
		}
		before := map[seen]bool{}
		whole, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "cholesterol"})
		require.NoError(rt, err)
		for _, v := range all(&whole) {
			v.Value = 0
			before[v] = true
		}
		disturb := rapid.Bool().Draw(rt, "writes between")
		var got []seen
		q := healthdata.SampleQuery{Resource: "cholesterol"}
		for {
			service := rapid.SampledFrom(services).Draw(rt, "service")
			p, err := service.Samples(t.Context(), s.team, s.user, q)
			require.NoError(rt, err)
			got = append(got, all(&p)...)
			if p.Next == "" {
				break
			}
			q.Cursor = p.Next
			if disturb && rapid.IntRange(0, 3).Draw(rt, "write") == 0 {
				write(5)
			}
		}
		ids := map[seen]bool{}
		for _, v := range got {
			v.Value = 0
			require.False(rt, ids[v], "twice")
			ids[v] = true
			delete(before, v)
		}
		require.Empty(rt, before, "lost")
		if disturb {
			return
		}
		quiet++
		require.ElementsMatch(rt, all(&whole), got)
		plain, err := s.AllSamples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "cholesterol"})
		require.NoError(rt, err)
		require.Len(rt, plain, len(got))
		require.True(rt, slices.IsSortedFunc(plain, func(a, b healthdata.Sample) int { return a.Timestamp.Compare(b.Timestamp.Time) }))
	}
	for range prove.Count(1, 30) {
		rapid.Check(t, walk)
	}
	require.Positive(t, quiet)
}

func TestGroupAppendJSON_allocatesOncePerGroupNotPerSample(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	s.samples("heartrate", band, everyMinute(5000)...)
	p := s.page(healthdata.SampleQuery{Resource: "heartrate"})
	buf := p.Groups[0].AppendJSON(nil)
	var whole healthdata.Group
	require.NoError(t, json.Unmarshal(buf, &whole))
	require.Equal(t, slices.Collect(p.Groups[0].All()), whole.Data)
	// The source is encoded once; samples cost nothing of their own.
	allocs := testing.AllocsPerRun(20, func() { buf = p.Groups[0].AppendJSON(buf[:0]) })
	require.LessOrEqual(t, allocs, 12.0)
}

// Whatever text comes as a cursor: never a panic, and nothing but a page of the query
// or a refusal that names it.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "eyJxIjoi", "AAAA", "e30", "bnVsbA", "eyJwIjoiYSIsInQiOjF9"} {
		f.Add(seed)
	}
	store := memory.New(nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", Category: "app", Class: "manual",
		Resources: []healthdata.ProviderResource{{Resource: "heartrate"}},
	}})
	require.NoError(f, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox,
		PageSize:    3, Now: func() time.Time { return stationNow },
		NewUserID: func() uuid.UUID { return uuid.MustParse("6f1c0b52-0000-4000-8000-000000000001") },
	})
	require.NoError(f, err)
	team := healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000a")}
	user, err := health.CreateUser(f.Context(), team, healthdata.NewUser{ClientUserID: "member-1"})
	require.NoError(f, err)
	_, err = health.Connections().Connect(f.Context(), team, user.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(f, err)
	_, err = health.IngestSamples(f.Context(), team, user.ID, "heartrate", healthdata.Upload{Provider: "manual"}, everyMinute(10))
	require.NoError(f, err)
	q := healthdata.SampleQuery{Resource: "heartrate"}
	first, err := health.Samples(f.Context(), team, user.ID, q)
	require.NoError(f, err)
	f.Add(first.Next)
	f.Fuzz(func(t *testing.T, cursor string) {
		q := q
		q.Cursor = cursor
		p, err := health.Samples(t.Context(), team, user.ID, q)
		if err != nil {
			require.Equal(t, []string{"next_cursor: cursor"}, problems(t, err))
			return
		}
		for _, v := range all(&p) {
			require.Equal(t, "manual", v.Provider)
		}
		if cursor != "" {
			require.Greater(t, all(&p)[0].At, all(&first)[2].At)
		}
	})
}

// A name that is no resource is answered with the nearest ones, and a resource of another shape with its class, by
// each method that takes one.
func TestResource_unknownNameIsAnsweredWithTheNearestNames(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	calls := map[string]func(resource string) error{
		"Samples": func(r string) error {
			_, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: r})
			return err
		},
		"AllSamples": func(r string) error {
			_, err := s.AllSamples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: r})
			return err
		},
		"IngestSamples": func(r string) error {
			_, err := s.IngestSamples(t.Context(), s.team, s.user, r, band, nil)
			return err
		},
		"ReceiveSamples": func(r string) error {
			_, err := s.ReceiveSamples(t.Context(), s.team, s.user, r, band, nil)
			return err
		},
		"RemoveSamples": func(r string) error {
			_, err := s.RemoveSamples(t.Context(), s.team, s.user, r, band, "", nil)
			return err
		},
	}
	summaries := map[string]func(resource string) error{
		"Summaries": func(r string) error {
			_, err := s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: r})
			return err
		},
		"RawSummaries": func(r string) error {
			_, err := s.RawSummaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: r})
			return err
		},
		"IngestSummaries": func(r string) error {
			_, err := s.IngestSummaries(t.Context(), s.team, s.user, r, band, nil)
			return err
		},
		"ReceiveSummaries": func(r string) error {
			_, err := s.ReceiveSummaries(t.Context(), s.team, s.user, r, nil)
			return err
		},
		"RemoveSummaries": func(r string) error {
			_, err := s.RemoveSummaries(t.Context(), s.team, s.user, r, band, nil)
			return err
		},
	}
	check := func(calls map[string]func(string) error, misspelt, near, other, class string) {
		for name, call := range calls {
			err := call(misspelt)
			require.ErrorIs(t, err, healthlab.NotFound, name)
			require.ErrorContains(t, err, "the nearest names are "+near+", ", name)
			require.NotContains(t, err.Error(), misspelt, name)
			err = call(other)
			require.ErrorIs(t, err, healthlab.NotFound, name)
			require.ErrorContains(t, err, other+" is of class "+class, name)
		}
	}
	check(calls, "hartrate", "heartrate", "sleep", "summary")
	check(summaries, "workouts_", "workouts", "heartrate", "timeseries")
}
