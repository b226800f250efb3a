package healthdata_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// station is a service with one user who has connected a few sources, and a record of
// every event that was written.
type station struct {
	*testing.T
	*healthdata.Service
	store     *memory.Store
	providers *healthdata.Providers

	log  webhook.Log
	team healthlab.TeamID
	user healthlab.UserID
	now  time.Time
	ids  []uuid.UUID
	seen int
}

// stationNow is when all of this happens.
var stationNow = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func newStation(t *testing.T, opts healthdata.Options) *station {
	logo := "https://cdn.example/band.png"
	resources := func(a healthdata.Affinity) (out []healthdata.ProviderResource) {
		for _, r := range healthdata.Resources() {
			out = append(out, healthdata.ProviderResource{Resource: r.Slug, Affinity: a})
		}
		return out
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources("")},
		{Slug: "acme_band", Name: "Acme Band", Logo: &logo, AuthType: "oauth", Category: "provider", Class: "cloud", Resources: resources("")},
		{Slug: "acme_store", Name: "Acme Store", Category: "app", Class: "sdk_store", Resources: resources("")},
		{Slug: "acme_float", Name: "Acme Float", AuthType: "oauth", Category: "provider", Class: "cloud", Resources: resources(healthdata.AffinityFloating)},
	})
	require.NoError(t, err)
	store := memory.New(nil)
	s := &station{T: t, store: store, providers: providers, log: store.WebhookLog(), team: healthlab.TeamID{UUID: uuid.New()}, now: stationNow}
	opts.Environment = cmp.Or(opts.Environment, healthlab.Sandbox)
	opts.Now = func() time.Time { return s.now }
	opts.NewID = func() uuid.UUID {
		id := uuid.New()
		s.ids = append(s.ids, id)
		return id
	}
	s.Service, err = healthdata.New(store.Users(), store.Data(), providers, &opts)
	require.NoError(t, err)
	u, err := s.CreateUser(t.Context(), s.team, healthdata.NewUser{ClientUserID: "member-1"})
	require.NoError(t, err)
	s.user = u.ID
	for _, p := range []string{"manual", "acme_band", "acme_float"} {
		_, err := s.Connections().ConnectLinked(t.Context(), s.team, s.user, healthdata.NewConnection{Provider: p})
		require.NoError(t, err)
	}
	s.seen = len(s.ids)
	return s
}

// body is the part of an event's message that the tests look at.
type body struct {
	EventType string          `json:"event_type"`
	Data      json.RawMessage `json:"data"`
}

// events returns the events since the last call.
func (s *station) events() (out []body) {
	s.Helper()
	for _, id := range s.ids[s.seen:] {
		m, err := s.log.Message(s.Context(), s.team, id)
		if err != nil {
			continue // an id of something else
		}
		var b body
		require.NoError(s, json.Unmarshal(m.Body, &b))
		out = append(out, b)
	}
	s.seen = len(s.ids)
	return out
}

var band = healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}}

func (s *station) samples(resource string, up healthdata.Upload, samples ...healthdata.Sample) healthdata.Counts {
	s.Helper()
	c, err := s.IngestSamples(s.Context(), s.team, s.user, resource, up, samples)
	require.NoError(s, err)
	return c
}

func (s *station) summaries(resource string, up healthdata.Upload, items ...healthdata.Summary) healthdata.Counts {
	s.Helper()
	c, err := s.IngestSummaries(s.Context(), s.team, s.user, resource, up, items)
	require.NoError(s, err)
	return c
}

func (s *station) read(resource string) []healthdata.Sample {
	s.Helper()
	out, err := s.AllSamples(s.Context(), s.team, s.user, healthdata.SampleQuery{Resource: resource})
	require.NoError(s, err)
	return out
}

func instant(t *testing.T, text string) healthlab.Time {
	t.Helper()
	at, err := healthlab.ParseTime(text)
	require.NoError(t, err)
	return at
}

func ago(d time.Duration) healthlab.Time { return healthlab.At(stationNow.Add(-d)) }

func reading(unit string, at healthlab.Time, v float64) healthdata.Sample {
	return healthdata.Sample{Timestamp: at, Unit: unit, Value: healthdata.Number(v)}
}

func bucket(unit string, at healthlab.Time, length time.Duration, v float64) healthdata.Sample {
	end := healthlab.At(at.Add(length))
	return healthdata.Sample{Timestamp: at, Start: &at, End: &end, Unit: unit, Value: healthdata.Number(v)}
}

func ExampleService_IngestSamples() {
	ctx := context.Background()
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", Category: "app", Class: "manual",
		Resources: []healthdata.ProviderResource{{Resource: "glucose"}},
	}})
	store := memory.New(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	team := healthlab.TeamID{UUID: uuid.New()}
	zone := "Europe/Paris"
	user, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-1", FallbackTimeZone: &zone})
	_, _ = health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})

	// A reading in mg/dL, without a zone of its own.
	breakfast, _ := healthlab.ParseTime("2026-03-01T07:30:00Z")
	samples := []healthdata.Sample{{Timestamp: breakfast, Unit: "mg/dL", Value: healthdata.Number(90.091)}}
	up := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceFingerprick}}
	counts, _ := health.IngestSamples(ctx, team, user.ID, "glucose", up, samples)
	fmt.Println("new:", counts.New)

	page, _ := health.Samples(ctx, team, user.ID, healthdata.SampleQuery{Resource: "glucose"})
	for s := range page.Groups[0].All() {
		fmt.Printf("%v %+d s: %.1f %s\n", s.Timestamp, *s.TimezoneOffset, s.Value.Number, s.Unit)
	}
	// Output:
	// new: 1
	// 2026-03-01T07:30:00+00:00 +3600 s: 5.0 mmol/L
}

func TestSamples_oneInstantHasOneSampleOfEachType(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	at := ago(time.Hour)
	ldl, hdl := reading("mmol/L", at, 2.9), reading("mmol/L", at, 1.4)
	ldl.Type, hdl.Type = ptr("cholesterol/ldl"), ptr("cholesterol/hdl")
	require.Equal(t, healthdata.Counts{New: 2}, s.samples("cholesterol", band, ldl, hdl))
	require.Len(t, s.read("cholesterol"), 2)
	events := s.events()
	require.Len(t, events, 1, "one source, one event")
	require.Equal(t, "daily.data.cholesterol.created", events[0].EventType)

	// A verdict on an hour is replaced by a later verdict.
	idle, stood := bucket("count", at, time.Hour, 1), bucket("count", at, time.Hour, 1)
	idle.Type, stood.Type = ptr("idle"), ptr("stood")
	s.samples("stand_hour", band, idle)
	s.samples("stand_hour", band, stood)
	got := s.read("stand_hour")
	require.Len(t, got, 1)
	require.Equal(t, "stood", *got[0].Type)
}

func TestSamples_sameStartReplacesAndIdenticalResendIsANoOp(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	at := ago(2 * time.Hour)
	require.Equal(t, healthdata.Counts{New: 1}, s.samples("steps", band, bucket("count", at, 10*time.Minute, 120)))
	// The bucket fills: same start, later end, another value.
	require.Equal(t, healthdata.Counts{Changed: 1}, s.samples("steps", band, bucket("count", at, time.Hour, 900)))
	require.Equal(t, healthdata.Counts{Same: 1}, s.samples("steps", band, bucket("count", at, time.Hour, 900)))
	require.Equal(t, healthdata.Counts{New: 1, Same: 1}, s.samples("steps", band,
		bucket("count", ago(time.Hour), time.Minute, 1), bucket("count", ago(time.Hour), time.Minute, 2)), "the last of a batch stays")
	got := s.read("steps")
	require.Len(t, got, 2)
	require.Equal(t, 900.0, got[0].Value.Number)
	require.Equal(t, 2.0, got[1].Value.Number)
	require.Len(t, s.events(), 3, "an identical resend tells nobody")
}

func TestSamples_ofDifferentSourcesAreNotMerged(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	at := ago(time.Hour)
	phone := band
	phone.Source.Type = healthdata.SourcePhone
	s.samples("heartrate", band, reading("bpm", at, 60))
	s.samples("heartrate", phone, reading("bpm", at, 62))
	s.samples("heartrate", healthdata.Upload{Provider: "manual"}, reading("bpm", at, 64))
	require.Len(t, s.read("heartrate"), 3)
}

func TestVerbMode_decidesBetweenCreatedAndUpdatedEvents(t *testing.T) {
	for mode, want := range map[healthdata.VerbMode][]string{
		healthdata.VerbUpsert: {"created", "created", "created"},
		healthdata.VerbSplit:  {"created", "updated", "created"},
	} {
		s := newStation(t, healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
			return healthdata.TeamSettings{VerbMode: mode}, nil
		}})
		known := ago(time.Hour)
		s.samples("glucose", band, reading("mmol/L", known, 5))
		s.samples("glucose", band, reading("mmol/L", known, 6))
		s.samples("glucose", band, reading("mmol/L", known, 7), reading("mmol/L", ago(time.Minute), 7))
		var got []string
		for _, e := range s.events() {
			got = append(got, strings.TrimPrefix(e.EventType, "daily.data.glucose."))
		}
		require.Equal(t, want, got, mode)

		s.summaries("activity", band, &healthdata.Activity{CalendarDate: *day("2026-03-01"), Steps: ptr(int64(1))})
		s.summaries("activity", band, &healthdata.Activity{CalendarDate: *day("2026-03-01"), Steps: ptr(int64(2))})
		events := s.events()
		require.Len(t, events, 2)
		require.Equal(t, "daily.data.activity."+want[1], events[1].EventType, mode)
	}
}

func TestEvents_batchOf5001SamplesIsSplitInTwo(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	many := make([]healthdata.Sample, 5001)
	for i := range many {
		many[i] = reading("bpm", ago(time.Duration(len(many)-i)*time.Second), 60)
	}
	s.samples("heartrate", band, many...)
	events := s.events()
	require.Len(t, events, 2)
	var sizes []int
	for _, e := range events {
		var b healthdata.Batch
		require.NoError(t, json.Unmarshal(e.Data, &b))
		require.Less(t, len(e.Data), 1<<20)
		require.Equal(t, s.user, b.UserID)
		require.Equal(t, healthdata.SourceNumber("acme_band"), b.SourceID)
		sizes = append(sizes, len(b.Data))
	}
	require.Equal(t, []int{5000, 1}, sizes)
}

func TestEvents_sampleBatchHasTheDocumentedJSON(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	up := band
	up.Source.AppID = ptr("com.example.run")
	sm := bucket("count", instant(t, "2026-03-01T07:00:00Z"), time.Hour, 431)
	sm.TimezoneOffset = ptr(3600)
	s.samples("steps", up, sm)
	events := s.events()
	require.Len(t, events, 1)
	require.JSONEq(t, `{
		"user_id": "`+s.user.String()+`", "source_id": `+fmt.Sprint(healthdata.SourceNumber("acme_band"))+`,
		"source": {"name": "Acme Band", "slug": "acme_band", "logo": "https://cdn.example/band.png", "provider": "acme_band",
			"type": "watch", "app_id": "com.example.run", "device_id": null, "sport": null, "workout_id": null},
		"data": [{"timestamp": "2026-03-01T07:00:00+00:00", "start": "2026-03-01T07:00:00+00:00",
			"end": "2026-03-01T08:00:00+00:00", "timezone_offset": 3600, "type": null, "unit": "count", "value": 431}]
	}`, string(events[0].Data))
}

func TestEvents_historicalDataIsSentOnlyIfTheTeamWantsIt(t *testing.T) {
	for push, want := range map[bool]int{false: 0, true: 2} {
		s := newStation(t, healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
			return healthdata.TeamSettings{PushHistoricalData: push}, nil
		}})
		old := band
		old.Stage = healthdata.StageHistorical
		s.samples("glucose", old, reading("mmol/L", ago(time.Hour), 5))
		s.summaries("body", old, &healthdata.Body{MeasuredAt: ago(time.Hour), Weight: ptr(70.0)})
		require.Len(t, s.events(), want)
		s.samples("glucose", band, reading("mmol/L", ago(time.Hour), 5))
		require.Empty(t, s.events(), "the same again is nothing new")
	}
}

func TestFloatingTimes_areReadInTheUsersZone(t *testing.T) {
	floating := healthdata.Upload{Provider: "acme_float"}
	clock := instant(t, "2023-09-27T07:48:00Z")

	s := newStation(t, healthdata.Options{})
	s.samples("heartrate", floating, reading("bpm", clock, 60))
	got := s.read("heartrate")
	require.Equal(t, "2023-09-27T07:48:00+00:00", got[0].Timestamp.String(), "the default zone is UTC")
	require.Equal(t, 0, *got[0].TimezoneOffset)

	zone := healthdata.UserPatch{}
	zone.FallbackTimeZone = healthdata.SetTo("America/New_York")
	_, err := s.PatchUser(t.Context(), s.team, s.user, zone)
	require.NoError(t, err)
	s.samples("hrv", floating, reading("rmssd", clock, 40))
	got = s.read("hrv")
	require.Equal(t, "2023-09-27T11:48:00+00:00", got[0].Timestamp.String())
	require.Equal(t, -14400, *got[0].TimezoneOffset)

	verbatim := newStation(t, healthdata.Options{Floating: healthdata.FloatingVerbatim})
	_, err = verbatim.PatchUser(t.Context(), verbatim.team, verbatim.user, zone)
	require.NoError(t, err)
	verbatim.samples("hrv", floating, reading("rmssd", clock, 40))
	got = verbatim.read("hrv")
	require.Equal(t, "2023-09-27T07:48:00+00:00", got[0].Timestamp.String())
	require.Equal(t, 0, *got[0].TimezoneOffset)
}

func TestReinterpret_resolvesSkippedAndRepeatedLocalTimes(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	for digits, want := range map[string]string{
		"2023-09-27T07:48:00Z": "2023-09-27T11:48:00+00:00",
		"2026-03-08T02:30:00Z": "2026-03-08T07:30:00+00:00", // skipped: becomes 03:30
		"2026-03-08T03:00:00Z": "2026-03-08T07:00:00+00:00",
		"2026-11-01T01:30:00Z": "2026-11-01T05:30:00+00:00", // twice: the earlier
		"2026-11-01T02:00:00Z": "2026-11-01T07:00:00+00:00",
	} {
		require.Equal(t, want, healthdata.Reinterpret(instant(t, digits), newYork).String(), digits)
	}
}

func TestIngestionWindow_samplesOutsideOfItAreDropped(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{
		IngestionStart: healthdata.SetTo(*day("2026-03-01")), IngestionEnd: healthdata.SetTo(*day("2026-03-03")),
	})
	require.NoError(t, err)
	early := reading("bpm", instant(t, "2026-03-01T03:00:00Z"), 60)
	early.TimezoneOffset = ptr(-5 * 3600) // still February there
	require.Equal(t, healthdata.Counts{New: 2, Dropped: 2}, s.samples("heartrate", band,
		early,
		reading("bpm", instant(t, "2026-03-01T00:00:00Z"), 60),
		reading("bpm", instant(t, "2026-03-03T23:59:59Z"), 60),
		reading("bpm", instant(t, "2026-03-04T00:00:00Z"), 60)))
	require.Equal(t, healthdata.Counts{Dropped: 1}, s.summaries("activity", band, &healthdata.Activity{CalendarDate: *day("2026-02-28")}))
	require.Len(t, s.events(), 1, "what is dropped tells nobody")
}

func TestUnits_areConvertedToTheResourcesUnit(t *testing.T) {
	for _, c := range []struct {
		resource, kind, unit string
		in, want             float64
	}{
		{"glucose", "", "mg/dL", 180.182, 10},
		{"cholesterol", "cholesterol/ldl", "mg/dL", 386.7, 10},
		{"cholesterol", "cholesterol/triglycerides", "mg/dL", 885.7, 10},
		{"weight", "", "lb", 100, 45.359237},
		{"distance", "", "mi", 1, 1609.344},
		{"body_temperature", "", "°F", 98.6, 37},
		{"calories_active", "", "kJ", 4.184, 1},
		{"blood_oxygen", "", "fraction", 0.97, 97},
		{"caffeine", "", "mg", 80, 0.08},
	} {
		r := healthdata.ResourceBySlug(c.resource)
		got, ok := r.Convert(c.in, c.unit, c.kind)
		require.True(t, ok, c.resource)
		require.InEpsilon(t, c.want, got, 1e-12, c.resource)
	}
	_, ok := healthdata.ResourceBySlug("steps").Convert(1, "furlong", "")
	require.False(t, ok)
}

func TestIngestSamples_refusesOnlyTheInvalidSample(t *testing.T) {
	at := ago(time.Hour)
	good := reading("bpm", at, 60)
	change := func(f func(*healthdata.Sample)) healthdata.Sample {
		sm := good
		f(&sm)
		return sm
	}
	for name, c := range map[string]struct {
		resource string
		bad      healthdata.Sample
		want     []string // path and code of each problem
	}{
		"no timestamp": {"heartrate", change(func(s *healthdata.Sample) { s.Timestamp = healthlab.Time{} }), []string{"data 1 timestamp: missing"}},
		"no value":     {"heartrate", change(func(s *healthdata.Sample) { s.Value = nil }), []string{"data 1 value: missing"}},
		"no unit":      {"heartrate", change(func(s *healthdata.Sample) { s.Unit = "" }), []string{"data 1 unit: missing"}},
		"unit":         {"heartrate", change(func(s *healthdata.Sample) { s.Unit = "kg" }), []string{"data 1 unit: unit"}},
		"NaN":          {"heartrate", change(func(s *healthdata.Sample) { s.Value = healthdata.Number(math.NaN()) }), []string{"data 1 value: not_finite"}},
		"infinite":     {"heartrate", change(func(s *healthdata.Sample) { s.Value = healthdata.Number(math.Inf(-1)) }), []string{"data 1 value: not_finite"}},
		"text":         {"heartrate", change(func(s *healthdata.Sample) { s.Value = healthdata.Text("60") }), []string{"data 1 value: type"}},
		"offset":       {"heartrate", change(func(s *healthdata.Sample) { s.TimezoneOffset = ptr(18*3600 + 1) }), []string{"data 1 timezone_offset: range"}},
		"year":         {"heartrate", change(func(s *healthdata.Sample) { s.Timestamp.Time = s.Timestamp.AddDate(-3000, 0, 0) }), []string{"data 1 timestamp: year"}},
		"end's year":   {"steps", healthdata.Sample{Timestamp: at, End: ptr(healthlab.Time{Time: at.AddDate(9000, 0, 0)}), Unit: "count", Value: healthdata.Number(1)}, []string{"data 1 end: year"}},
		"nul":          {"heartrate", change(func(s *healthdata.Sample) { s.Type = ptr("a\x00b") }), []string{"data 1 type: nul"}},
		"field":        {"heartrate", change(func(s *healthdata.Sample) { s.SensorLocation = ptr("ear") }), []string{"data 1 sensor_location: not_allowed"}},
		"no end":       {"steps", reading("count", at, 1), []string{"data 1 end: missing"}},
		"no type":      {"cholesterol", reading("mmol/L", at, 1), []string{"data 1 type: missing"}},
		"pressure":     {"blood_pressure", healthdata.Sample{Timestamp: at, Unit: "mmHg", Systolic: ptr(120.0)}, []string{"data 1 diastolic: missing"}},
		"several": {"blood_pressure", healthdata.Sample{Unit: "kg", Systolic: ptr(math.NaN()), Diastolic: ptr(1.0)}, []string{
			"data 1 timestamp: missing", "data 1 systolic: not_finite", "data 1 unit: unit",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first := good
			switch c.resource {
			case "steps":
				first = bucket("count", at, time.Minute, 1)
			case "cholesterol":
				first = reading("mmol/L", at, 1)
				first.Type = ptr("cholesterol/ldl")
			case "blood_pressure":
				first = healthdata.Sample{Timestamp: at, Unit: "mmHg", Systolic: ptr(120.0), Diastolic: ptr(80.0)}
			}
			s := newStation(t, healthdata.Options{})
			samples := []healthdata.Sample{first, c.bad}
			_, err := s.IngestSamples(t.Context(), s.team, s.user, c.resource, atomic(band), samples)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Equal(t, c.want, problems(t, err))
			require.Empty(t, s.read(c.resource), "one bad sample, nothing stored")
			require.Empty(t, s.events())

			got, err := s.IngestSamples(t.Context(), s.team, s.user, c.resource, band, samples)
			require.NoError(t, err)
			require.Equal(t, c.want, refusedAt(t, got, 1))
			require.Equal(t, 1, got.New)
			require.Len(t, s.read(c.resource), 1)
			require.NotEmpty(t, s.events())

			_, err = s.IngestSamples(t.Context(), s.team, s.user, c.resource, band, []healthdata.Sample{c.bad, c.bad})
			require.ErrorIs(t, err, healthlab.Invalid, "no sample is left")
		})
	}
}

func atomic(up healthdata.Upload) healthdata.Upload {
	up.Atomic = true
	return up
}

// refusedAt lists the problems of the only refused item in the form of problems.
func refusedAt(t *testing.T, c healthdata.Counts, index int) (out []string) {
	t.Helper()
	require.Equal(t, 1, c.RefusedCount)
	require.Len(t, c.Refused, 1)
	require.Equal(t, index, c.Refused[0].Index)
	for _, p := range c.Refused[0].Problems {
		place := fmt.Sprint("data ", index)
		if p.Field != "" {
			place += " " + strings.ReplaceAll(p.Field, ".", " ")
		}
		out = append(out, place+": "+p.Type)
	}
	return out
}

// problems lists the place and code of every problem.
func problems(t *testing.T, err error) (out []string) {
	t.Helper()
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	for _, p := range invalid.Problems {
		out = append(out, strings.Trim(fmt.Sprint(p.Path), "[]")+": "+p.Code)
	}
	return out
}

func TestIngestSamples_refusesInvalidUploadFields(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	one := []healthdata.Sample{reading("bpm", ago(time.Hour), 60)}
	ingest := func(up healthdata.Upload) error {
		_, err := s.IngestSamples(t.Context(), s.team, s.user, "heartrate", up, one)
		return err
	}
	require.Equal(t, []string{"provider: unknown_provider", "stage: enum", "time_zone: unknown_zone"},
		problems(t, ingest(healthdata.Upload{Provider: "nobody", Stage: "weekly", TimeZone: "Mars/Olympus"})))
	require.NoError(t, s.Connections().Disconnect(t.Context(), s.team, s.user, "acme_band"))
	requireRule(t, healthdata.RuleNoConnection, ingest(band))
	_, err := s.IngestSamples(t.Context(), healthlab.TeamID{UUID: uuid.New()}, s.user, "heartrate", band, one)
	require.ErrorIs(t, err, healthlab.NotFound, "another team's user")
	_, err = s.IngestSamples(t.Context(), s.team, s.user, "sleep", band, one)
	require.ErrorIs(t, err, healthlab.NotFound, "not a timeseries")
	_, err = s.IngestSamples(t.Context(), s.team, s.user, "workout_distance", healthdata.Upload{Provider: "manual"}, one)
	require.Equal(t, []string{"source workout_id: missing", "source sport: missing"}, problems(t, err))
}

func TestSamples_ofEveryResourceAreReadAsWritten(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	workout := uuid.New()
	for _, r := range healthdata.Timeseries() {
		up := band
		up.Source.DeviceID, up.Source.Sport, up.Source.WorkoutID = ptr(uuid.New()), ptr("running"), &workout
		sm := reading(r.Unit, ago(time.Hour), 12.5)
		if r.Shape != healthdata.Discrete {
			sm = bucket(r.Unit, ago(time.Hour), time.Minute, 12.5)
		}
		sm.TimezoneOffset = ptr(-3600)
		switch {
		case len(r.Types) > 0:
			sm.Type = &r.Types[0]
		case r.TypeRequired:
			sm.Type = ptr("some_kind")
		}
		switch r.Value {
		case healthdata.ValuePressure:
			sm.Value, sm.Systolic, sm.Diastolic = nil, ptr(120.0), ptr(80.0)
		case healthdata.ValueText:
			sm.Value = healthdata.Text("tea \"with\" milk ☕")
		}
		for _, f := range r.Fields {
			switch f {
			case "sensor_location":
				sm.SensorLocation = ptr("ear")
			case "intensity":
				sm.Intensity = ptr("low")
			case "tags":
				sm.Tags = []string{"food", "exercise"}
			case "delivery_mode":
				sm.DeliveryMode = ptr("bolus")
			}
		}
		require.Equal(t, healthdata.Counts{New: 1}, s.samples(r.Slug, up, sm), r.Slug)
		got := s.read(r.Slug)
		require.Equal(t, []healthdata.Sample{sm}, got, r.Slug)

		var back healthdata.Sample
		require.NoError(t, json.Unmarshal(r.AppendSample(nil, &got[0]), &back), r.Slug)
		require.Equal(t, sm, back, r.Slug)

		page, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: r.Slug})
		require.NoError(t, err)
		require.Len(t, page.Groups, 1)
		require.Equal(t, up.Source.DeviceID, page.Groups[0].Source.DeviceID)
		require.JSONEq(t, string(r.AppendSample(nil, &got[0])),
			string(mustData(t, page.Groups[0].AppendJSON(nil))), r.Slug)

		events := s.events()
		if !r.Events {
			require.Empty(t, events, r.Slug)
			continue
		}
		require.Equal(t, "daily.data."+r.Slug+".created", events[0].EventType)
	}
}

// mustData returns the only sample of a group's JSON.
func mustData(t *testing.T, group []byte) json.RawMessage {
	t.Helper()
	var g struct {
		Data []json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(group, &g))
	require.Len(t, g.Data, 1)
	return g.Data[0]
}

func ptr[T any](v T) *T { return &v }

// The offset that a time is written with is that of the item, where it has none of its own.
func TestOffsets_itemTakesTheOffsetWrittenInItsTime(t *testing.T) {
	written := func(text string, seconds int) healthlab.Time {
		return healthlab.Time{Time: instant(t, text).In(time.FixedZone("", seconds))}
	}
	tokyo, paris := written("2026-03-01T15:30:00Z", 9*3600), written("2026-03-01T16:30:00Z", 3600)
	utc, laterUTC := instant(t, "2026-03-01T15:30:00Z"), instant(t, "2026-03-01T16:30:00Z")
	const newYork = -5 * 3600
	for name, c := range map[string]struct {
		start, end healthlab.Time
		own        *int
		want       int // where the start counts
		atEnd      int // where the end counts
	}{
		"both":             {tokyo, paris, nil, 9 * 3600, 3600},
		"start":            {tokyo, laterUTC, nil, 9 * 3600, 9 * 3600},
		"end":              {utc, paris, nil, 3600, 3600},
		"none":             {utc, laterUTC, nil, newYork, newYork},
		"zero":             {written("2026-03-01T15:30:00Z", 0), laterUTC, nil, 0, 0},
		"an offset beside": {tokyo, paris, ptr(7200), 7200, 7200},
		"of this machine":  {healthlab.Time{Time: utc.In(time.Local)}, laterUTC, nil, newYork, newYork},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo("America/New_York")})
			require.NoError(t, err)
			day := func(offset int) string {
				return utc.Add(time.Duration(offset) * time.Second).Format(time.DateOnly)
			}
			_, err = s.IngestSamples(t.Context(), s.team, s.user, "steps", band, []healthdata.Sample{{
				Timestamp: c.start, Start: &c.start, End: &c.end, TimezoneOffset: c.own, Unit: "count", Value: healthdata.Number(1),
			}})
			require.NoError(t, err)
			got := s.read("steps")[0]
			require.Equal(t, c.want, *got.TimezoneOffset)
			require.Equal(t, utc, got.Timestamp)

			s.summaries("workouts", band, &healthdata.Workout{TimeStart: c.start, TimeEnd: c.end, TimezoneOffset: c.own})
			w := s.list("workouts")[0].(*healthdata.Workout)
			require.Equal(t, c.want, *w.TimezoneOffset)
			require.Equal(t, day(c.want), w.CalendarDate.String())
			require.Equal(t, utc, w.TimeStart)

			s.summaries("sleep", band, &healthdata.Sleep{BedtimeStart: c.start, BedtimeStop: c.end, TimezoneOffset: c.own})
			sleep := s.list("sleep")[0].(*healthdata.Sleep)
			require.Equal(t, c.atEnd, *sleep.TimezoneOffset)
			require.Equal(t, w.SessionOffsets, sleep.SessionOffsets)
			require.Equal(t, w.TimezoneOffset, w.StartTimezoneOffset)
			require.Equal(t, sleep.TimezoneOffset, sleep.EndTimezoneOffset)
			s.summaries("sleep_cycle", band, &healthdata.SleepCycle{SessionStart: c.start, SessionEnd: c.end, TimezoneOffset: c.own})
			require.Equal(t, sleep.SessionOffsets, s.list("sleep_cycle")[0].(*healthdata.SleepCycle).SessionOffsets)

			if c.own == nil {
				s.summaries("body", band, &healthdata.Body{MeasuredAt: c.start})
				if c.start.Location() != time.UTC {
					require.Equal(t, day(c.want), s.list("body")[0].(*healthdata.Body).CalendarDate.String())
					require.Equal(t, c.want, *s.list("body")[0].(*healthdata.Body).TimezoneOffset)
				}
			}
		})
	}
}

// Both offsets of a session are kept: of a flight, and of a night in which the clocks change.
func TestOffsets_sessionKeepsItsStartAndEndOffsets(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo("America/New_York")})
	require.NoError(t, err)
	offsets := func(start, end int) healthdata.SessionOffsets {
		return healthdata.SessionOffsets{StartTimezoneOffset: &start, EndTimezoneOffset: &end}
	}
	start, end := instant(t, "2025-11-02T03:00:00Z"), instant(t, "2025-11-02T11:00:00Z") // from summer time to winter time
	for name, c := range map[string]struct {
		given healthdata.SessionOffsets
		own   *int
		zone  *string
		want  healthdata.SessionOffsets
	}{
		"of the zone of the person": {want: offsets(-4*3600, -5*3600)},
		"of the zone of the item":   {zone: ptr("Europe/Paris"), want: offsets(3600, 3600)},
		"both":                      {given: offsets(-4*3600, 7200), want: offsets(-4*3600, 7200)},
		"the start":                 {given: healthdata.SessionOffsets{StartTimezoneOffset: ptr(7200)}, want: offsets(7200, 7200)},
		"the start and one":         {given: healthdata.SessionOffsets{StartTimezoneOffset: ptr(7200)}, own: ptr(3600), want: offsets(7200, 3600)},
		"one":                       {own: ptr(3600), want: offsets(3600, 3600)},
	} {
		t.Run(name, func(t *testing.T) {
			s.summaries("sleep_cycle", band, &healthdata.SleepCycle{SessionStart: start, SessionEnd: end, TimezoneOffset: c.own, TimeZone: c.zone, SessionOffsets: c.given})
			got := s.list("sleep_cycle")[0].(*healthdata.SleepCycle)
			require.Equal(t, c.want, got.SessionOffsets)
			require.Equal(t, c.want.EndTimezoneOffset, got.TimezoneOffset)
		})
	}
	_, err = s.IngestSummaries(t.Context(), s.team, s.user, "sleep", band, []healthdata.Summary{
		&healthdata.Sleep{BedtimeStart: start, BedtimeStop: end, SessionOffsets: offsets(18*3600+1, -18*3600-1)},
	})
	require.Equal(t, []string{"data 0 timezone_offset: range", "data 0 start_timezone_offset: range", "data 0 end_timezone_offset: range"}, problems(t, err))

	// A resend keeps them when the zone of the person changes.
	s.summaries("sleep", band, &healthdata.Sleep{BedtimeStart: start, BedtimeStop: end})
	s.now = s.now.Add(time.Minute)
	_, err = s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo("Asia/Tokyo")})
	require.NoError(t, err)
	require.Equal(t, healthdata.Counts{Same: 1}, s.summaries("sleep", band, &healthdata.Sleep{BedtimeStart: start, BedtimeStop: end}))
	require.Equal(t, offsets(-4*3600, -5*3600), s.list("sleep")[0].(*healthdata.Sleep).SessionOffsets)
}
