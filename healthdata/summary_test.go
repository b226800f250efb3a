package healthdata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func ExampleService_IngestSummaries() {
	ctx := context.Background()
	providers, _ := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "acme_ring", Name: "Acme Ring", Category: "provider", Class: "cloud",
		Resources: []healthdata.ProviderResource{{Resource: "sleep"}},
	}})
	store := memory.New(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	team := healthlab.TeamID{UUID: uuid.New()}
	zone := "Europe/Paris"
	user, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-1", FallbackTimeZone: &zone})
	_, _ = health.Connections().ConnectLinked(ctx, team, user.ID, healthdata.NewConnection{Provider: "acme_ring"})

	night := func(deep int64) *healthdata.Sleep {
		start, _ := healthlab.ParseTime("2026-02-28T22:30:00Z")
		stop, _ := healthlab.ParseTime("2026-03-01T06:00:00Z")
		return &healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Light: new(int64(4 * 3600)), REM: new(int64(3600)), Deep: &deep}
	}
	up := healthdata.Upload{Provider: "acme_ring", Source: healthdata.Source{Type: healthdata.SourceRing}}
	for _, deep := range []int64{3600, 3600, 5400} {
		counts, _ := health.IngestSummaries(ctx, team, user.ID, "sleep", up, []healthdata.Summary{night(deep)})
		fmt.Printf("%+v\n", counts)
	}

	list, _ := health.Summaries(ctx, team, user.ID, healthdata.SummaryQuery{Resource: "sleep"})
	for _, s := range list {
		sleep := s.(*healthdata.Sleep)
		fmt.Println(sleep.CalendarDate, sleep.Type, *sleep.Total, "of", sleep.Duration, "s, offset", *sleep.TimezoneOffset)
	}
	// Output:
	// {New:1 Changed:0 Same:0 Dropped:0 Refused:[] RefusedCount:0}
	// {New:0 Changed:0 Same:1 Dropped:0 Refused:[] RefusedCount:0}
	// {New:0 Changed:1 Same:0 Dropped:0 Refused:[] RefusedCount:0}
	// 2026-03-01 long_sleep 23400 of 27000 s, offset 3600
}

func (s *station) list(resource string) []healthdata.Summary {
	s.Helper()
	out, err := s.Summaries(s.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: resource})
	require.NoError(s, err)
	return out
}

func only[T healthdata.Summary](s *station, resource string) T {
	s.Helper()
	out := s.list(resource)
	require.Len(s, out, 1)
	return out[0].(T)
}

func nap(length time.Duration) *healthdata.Sleep {
	return &healthdata.Sleep{BedtimeStart: ago(time.Hour + length), BedtimeStop: ago(time.Hour)}
}

func TestSleepType_isDerivedFromLengthAndStages(t *testing.T) {
	staged := func(total int64) *healthdata.Sleep {
		s := nap(5 * time.Hour)
		s.Light, s.REM, s.Deep = ptr(total-20), ptr(int64(10)), ptr(int64(10))
		return s
	}
	own := staged(60)
	own.Type = healthdata.SleepNap
	recording := staged(4 * 3600)
	recording.Type = healthdata.SleepUnknown
	strange := staged(60)
	strange.Type = "hibernation"
	told := nap(5 * time.Hour)
	told.Total = ptr(int64(2*3600 + 59*60))
	for name, c := range map[string]struct {
		in   *healthdata.Sleep
		want healthdata.SleepType
	}{
		"2:59 of stages":        {staged(2*3600 + 59*60), healthdata.SleepShort},
		"3:00 of stages":        {staged(3 * 3600), healthdata.SleepLong},
		"a second less":         {staged(3*3600 - 1), healthdata.SleepShort},
		"2:59 in bed":           {nap(2*time.Hour + 59*time.Minute), healthdata.SleepShort},
		"3:00 in bed":           {nap(3 * time.Hour), healthdata.SleepLong},
		"a total alone":         {told, healthdata.SleepShort},
		"the source's own":      {own, healthdata.SleepNap},
		"still being recorded":  {recording, healthdata.SleepUnknown},
		"nobody knows the type": {strange, "hibernation"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			s.summaries("sleep", band, c.in)
			require.Equal(t, c.want, only[*healthdata.Sleep](s, "sleep").Type)
		})
	}
}

func TestSleep_missingTotalsAndEfficiencyAreComputed(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	in := &healthdata.Sleep{
		BedtimeStart: instant(t, "2026-02-28T23:30:00Z"), BedtimeStop: instant(t, "2026-03-01T07:30:00Z"),
		TimezoneOffset: ptr(-9 * 3600), Light: ptr(int64(4 * 3600)), REM: ptr(int64(3600)), Deep: ptr(int64(3600)), Awake: ptr(int64(7200)),
		SleepStream: &healthdata.SleepStream{},
	}
	s.summaries("sleep", band, in)
	got := only[*healthdata.Sleep](s, "sleep")
	require.Equal(t, *day("2026-02-28"), got.CalendarDate, "the local day of the end")
	require.Equal(t, "2026-02-28T00:00:00+00:00", got.Date.String())
	require.Equal(t, int64(8*3600), got.Duration)
	require.Equal(t, int64(6*3600), *got.Total)
	require.Equal(t, 75.0, *got.Efficiency)
	require.Nil(t, got.SleepStream)
	require.Equal(t, s.user, got.UserID)
	require.Equal(t, "Acme Band", got.Source.Name)
}

func TestSleepStages_invalidIntervalsAreRepaired(t *testing.T) {
	type stages struct {
		start, end []int64
		kind       []healthdata.SleepStage
	}
	for name, c := range map[string]struct{ in, want stages }{
		"sound": {
			stages{[]int64{0, 60, 120}, []int64{60, 120, 3600}, []healthdata.SleepStage{4, 2, 1}},
			stages{[]int64{0, 60, 120}, []int64{60, 120, 3600}, []healthdata.SleepStage{4, 2, 1}},
		},
		"gaps stay": {
			stages{[]int64{10, 500}, []int64{60, 600}, []healthdata.SleepStage{2, 3}},
			stages{[]int64{10, 500}, []int64{60, 600}, []healthdata.SleepStage{2, 3}},
		},
		"unsorted": {
			stages{[]int64{120, 0, 60}, []int64{180, 60, 120}, []healthdata.SleepStage{1, 4, 2}},
			stages{[]int64{0, 60, 120}, []int64{60, 120, 180}, []healthdata.SleepStage{4, 2, 1}},
		},
		"overlapping": {
			stages{[]int64{0, 30, 40}, []int64{60, 120, 50}, []healthdata.SleepStage{4, 2, 1}},
			stages{[]int64{0, 60}, []int64{60, 120}, []healthdata.SleepStage{4, 2}},
		},
		"outside": {
			stages{[]int64{-60, 3500, 3600, -90}, []int64{60, 4000, 3700, -70}, []healthdata.SleepStage{4, 2, 1, 3}},
			stages{[]int64{0, 3500}, []int64{60, 3600}, []healthdata.SleepStage{4, 2}},
		},
		"empty and backwards": {
			stages{[]int64{0, 60, 90}, []int64{60, 60, 80}, []healthdata.SleepStage{4, 2, 1}},
			stages{[]int64{0}, []int64{60}, []healthdata.SleepStage{4}},
		},
		"of different length": {
			stages{[]int64{0, 60, 90}, []int64{60, 90}, []healthdata.SleepStage{4, 2, 1, 1}},
			stages{[]int64{0, 60}, []int64{60, 90}, []healthdata.SleepStage{4, 2}},
		},
		"unknown codes stay": {
			stages{[]int64{0, 60}, []int64{60, 90}, []healthdata.SleepStage{0, 77}},
			stages{[]int64{0, 60}, []int64{60, 90}, []healthdata.SleepStage{0, 77}},
		},
		"none": {stages{}, stages{[]int64{}, []int64{}, []healthdata.SleepStage{}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			s.summaries("sleep_cycle", band, &healthdata.SleepCycle{
				SessionStart: ago(2 * time.Hour), SessionEnd: ago(time.Hour),
				StageStartOffsetSecond: c.in.start, StageEndOffsetSecond: c.in.end, StageType: c.in.kind,
			})
			got := only[*healthdata.SleepCycle](s, "sleep_cycle")
			require.Equal(t, c.want, stages{got.StageStartOffsetSecond, got.StageEndOffsetSecond, got.StageType})
			require.Equal(t, "acme_band", got.SourceProvider, "the flat source agrees")
			require.Equal(t, healthdata.SourceWatch, got.SourceType)
		})
	}
}

func TestSleepCycle_isJoinedToItsSleepByStartOrExternalID(t *testing.T) {
	for name, external := range map[string]string{"by its start": "", "by the source's id": "night-77"} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			sleep := nap(6 * time.Hour)
			cycle := &healthdata.SleepCycle{SessionStart: sleep.BedtimeStart, SessionEnd: sleep.BedtimeStop}
			sleep.ExternalID, cycle.ExternalID = external, external
			up := band
			up.Source.AppID = ptr("com.example.sleep")
			s.summaries("sleep", up, sleep)
			s.summaries("sleep_cycle", up, cycle)
			require.Equal(t, only[*healthdata.Sleep](s, "sleep").ID, only[*healthdata.SleepCycle](s, "sleep_cycle").SleepID)
		})
	}
}

func TestProfile_latestChangedSourceIsRead(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	profile := func(provider string) (*healthdata.Profile, error) {
		return s.Profile(t.Context(), s.team, s.user, provider)
	}
	_, err := profile("")
	require.ErrorIs(t, err, healthlab.NotFound)

	put := func(provider string, height int64) {
		s.now = s.now.Add(time.Hour)
		s.summaries("profile", healthdata.Upload{Provider: provider}, &healthdata.Profile{Height: &height})
	}
	put("acme_band", 170)
	put("manual", 171)
	got, err := profile("")
	require.NoError(t, err)
	require.Equal(t, int64(171), *got.Height, "the newest")
	put("acme_band", 170)
	got, err = profile("")
	require.NoError(t, err)
	require.Equal(t, int64(171), *got.Height, "the same again is not newer")
	put("acme_band", 172)
	got, err = profile("")
	require.NoError(t, err)
	require.Equal(t, int64(172), *got.Height)
	require.Equal(t, "acme_band", got.Source.Provider)
	got, err = profile("manual")
	require.NoError(t, err)
	require.Equal(t, int64(171), *got.Height)
	_, err = profile("acme_float")
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Len(t, s.list("profile"), 2, "one a source")
}

func TestSummary_resentWithFewerFieldsClearsTheOthers(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	first := s.now
	put := func(a healthdata.Activity) healthdata.Counts {
		s.now = s.now.Add(time.Hour)
		a.CalendarDate = *day("2026-03-01")
		return s.summaries("activity", band, &a)
	}
	require.Equal(t, healthdata.Counts{New: 1}, put(healthdata.Activity{Steps: ptr(int64(100)), Distance: ptr(80.5)}))
	was := only[*healthdata.Activity](s, "activity")
	require.Equal(t, healthlab.At(first.Add(time.Hour)), was.CreatedAt)
	require.Equal(t, was.CreatedAt, was.UpdatedAt)

	require.Equal(t, healthdata.Counts{Same: 1}, put(healthdata.Activity{Steps: ptr(int64(100)), Distance: ptr(80.5)}))
	require.Equal(t, was, only[*healthdata.Activity](s, "activity"), "a resend changes no time")

	require.Equal(t, healthdata.Counts{Changed: 1}, put(healthdata.Activity{Steps: ptr(int64(200))}))
	got := only[*healthdata.Activity](s, "activity")
	require.Equal(t, was.ID, got.ID)
	require.Equal(t, was.CreatedAt, got.CreatedAt)
	require.Equal(t, healthlab.At(first.Add(3*time.Hour)), got.UpdatedAt)
	require.Equal(t, int64(200), *got.Steps)
	require.Nil(t, got.Distance, "fields are not merged")

	events := s.events()
	require.Len(t, events, 2)
	var said healthdata.Activity
	require.NoError(t, json.Unmarshal(events[1].Data, &said))
	require.Equal(t, got, &said, "the event and the answer say the same")

	require.Equal(t, healthdata.Counts{Changed: 1, Same: 1}, s.summaries("activity", band,
		&healthdata.Activity{CalendarDate: *day("2026-03-01")},
		&healthdata.Activity{CalendarDate: *day("2026-03-01"), Steps: ptr(int64(3))}), "of one id the last stays")
	require.Equal(t, int64(3), *only[*healthdata.Activity](s, "activity").Steps)
}

func TestSummaryID_dependsOnUserSourceAppAndItem(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id := func(resource string, up healthdata.Upload, item healthdata.Summary) uuid.UUID {
		t.Helper()
		s.summaries(resource, up, item)
		return healthdata.HeadOf(item).ID
	}
	app := func(name string) healthdata.Upload {
		up := band
		up.Source.AppID = &name
		return up
	}
	phone := band
	phone.Source.Type = healthdata.SourcePhone
	start := ago(3 * time.Hour)
	external := func(v healthdata.Summary, id string) healthdata.Summary {
		healthdata.HeadOf(v).ExternalID = id
		return v
	}
	for name, c := range map[string]struct {
		resource string
		item     func() healthdata.Summary
		natural  string
		others   []func() healthdata.Summary // with another identity
	}{
		"activity": {"activity", func() healthdata.Summary { return &healthdata.Activity{CalendarDate: *day("2026-03-01")} }, "2026-03-01",
			[]func() healthdata.Summary{func() healthdata.Summary { return &healthdata.Activity{CalendarDate: *day("2026-03-02")} }}},
		"sleep": {"sleep", func() healthdata.Summary { return &healthdata.Sleep{BedtimeStart: start, BedtimeStop: ago(0)} }, start.String(),
			[]func() healthdata.Summary{
				func() healthdata.Summary {
					return &healthdata.Sleep{BedtimeStart: ago(2 * time.Hour), BedtimeStop: ago(0)}
				},
				func() healthdata.Summary {
					return external(&healthdata.Sleep{BedtimeStart: start, BedtimeStop: ago(0)}, "n1")
				},
			}},
		"workouts with the source's id": {"workouts", func() healthdata.Summary {
			return external(&healthdata.Workout{TimeStart: start, TimeEnd: ago(0)}, "w1")
		}, "w1", []func() healthdata.Summary{func() healthdata.Summary {
			return external(&healthdata.Workout{TimeStart: start, TimeEnd: ago(0)}, "w2")
		}}},
		"meal": {"meal", func() healthdata.Summary { return &healthdata.Meal{Timestamp: start, Name: "Lunch"} }, start.String() + "\x00Lunch",
			[]func() healthdata.Summary{func() healthdata.Summary { return &healthdata.Meal{Timestamp: start, Name: "Snack"} }}},
		"body": {"body", func() healthdata.Summary { return &healthdata.Body{MeasuredAt: start} }, start.String(),
			[]func() healthdata.Summary{func() healthdata.Summary { return &healthdata.Body{MeasuredAt: ago(0)} }}},
		"electrocardiogram": {"electrocardiogram", func() healthdata.Summary {
			return &healthdata.Electrocardiogram{SessionStart: start, SessionEnd: ago(0)}
		}, start.String(), nil},
		"menstrual_cycle": {"menstrual_cycle", func() healthdata.Summary { return &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-01")} }, "2026-03-01", nil},
		"profile":         {"profile", func() healthdata.Summary { return &healthdata.Profile{Height: ptr(int64(170))} }, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := healthdata.SummaryID(s.team, s.user, "acme_band", healthdata.SourceWatch, c.resource, c.natural)
			require.Equal(t, want, id(c.resource, band, c.item()))
			require.Equal(t, want, id(c.resource, band, c.item()), "a resend")
			require.Equal(t, uuid.Version(5), want.Version())
			ids := map[uuid.UUID]bool{want: true}
			for _, up := range []healthdata.Upload{phone, {Provider: "manual", Source: band.Source}, app("a"), app("b")} {
				ids[id(c.resource, up, c.item())] = true
			}
			for _, other := range c.others {
				ids[id(c.resource, band, other())] = true
			}
			require.Len(t, ids, 5+len(c.others), "another source, app or thing is another summary")
		})
	}
	require.NotEqual(t, healthdata.SummaryID(s.team, s.user, "a", "b", "c", "d"), healthdata.SummaryID(s.team, s.user, "ab", "", "c", "d"))
}

func TestSport_decodesNamesSlugsAndObjects(t *testing.T) {
	for text, want := range map[string]healthdata.Sport{
		`""`:                                 {},
		`null`:                               {},
		`{"id":3,"name":"Run","slug":"r"}`:   {ID: 3, Name: "Run", Slug: "r"},
		` {"slug":"running"}`:                {Slug: "running"},
		`{"slug":"running","name":"Laufen"}`: {Slug: "running", Name: "Laufen"},
	} {
		var w healthdata.Workout
		require.NoError(t, json.Unmarshal([]byte(`{"sport":`+text+`}`), &w), text)
		require.Equal(t, want, w.Sport, text)
	}
	for _, text := range []string{`"running"`, `3`, `[]`, `{"id":"x"}`} {
		var s healthdata.Sport
		require.ErrorIs(t, json.Unmarshal([]byte(text), &s), healthlab.Invalid, text)
	}
	require.Equal(t, "Road biking", healthdata.SportOf("road_biking").Name)
	require.Equal(t, "other", healthdata.SportOf("").Slug)
	require.Equal(t, "Éscrime", healthdata.SportOf("éscrime").Name)
	require.Equal(t, healthdata.SportOf("running"), healthdata.SportOf("running"))

	s := newStation(t, healthdata.Options{})
	var w healthdata.Workout
	require.NoError(t, json.Unmarshal([]byte(`{"sport":"","time_start":"2026-03-01T07:00:00Z","time_end":"2026-03-01T08:00:00Z"}`), &w))
	s.summaries("workouts", band, &w)
	got := only[*healthdata.Workout](s, "workouts")
	require.Equal(t, healthdata.SportOf("other"), got.Sport)
	require.Equal(t, []int64{}, got.HRZones)
	require.Equal(t, got.ID.String(), got.ProviderID, "ours, where the source has none")
}

func TestMicroUnit_isKnownForEachNutrient(t *testing.T) {
	for nutrient, want := range map[string]string{
		"vitamin_d": "µg", "vitamin_a": "µg", "vitamin_c": "mg", "copper": "mg", "manganese": "mg", "iodine": "µg", "sodium": "mg",
		"folic_acid": "µg", "moonlight": "",
	} {
		require.Equal(t, want, healthdata.MicroUnit(nutrient), nutrient)
	}
	s := newStation(t, healthdata.Options{})
	var m healthdata.Meal
	require.NoError(t, json.Unmarshal([]byte(`{"timestamp":"2026-03-01T07:00:00Z","name":"Dinner",
		"micros":{"vitamins":{"vitamin_d":10},"trace_elements":{"copper":1},"minerals":null},"data":{"Soup":{"energy":{"value":90}}}}`), &m))
	s.summaries("meal", band, &m)
	got := only[*healthdata.Meal](s, "meal")
	require.Equal(t, 10.0, got.Micros.Vitamins["vitamin_d"])
	require.Equal(t, 1.0, got.Micros.TraceElements["copper"])
	require.Equal(t, &healthdata.Energy{Unit: "kcal", Value: 90}, got.Data["Soup"].Energy)
	require.Equal(t, healthdata.SourceNumber("acme_band"), got.SourceID)
	require.Equal(t, got.ID.String(), got.ProviderID)
}

func TestMenstrualCycle_daysAreSortedByDate(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	s.summaries("menstrual_cycle", band, &healthdata.MenstrualCycle{
		PeriodStart:   *day("2026-02-01"),
		MenstrualFlow: []healthdata.FlowDay{{Date: *day("2026-02-03"), Flow: "light"}, {Date: *day("2026-02-01"), Flow: "heavy"}},
	})
	got := only[*healthdata.MenstrualCycle](s, "menstrual_cycle")
	require.Equal(t, "heavy", got.MenstrualFlow[0].Flow)
	require.NotNil(t, got.OvulationTest, "an empty array, not null")
}

func TestSummaries_rangeUsesTheIndexDateOfEachResource(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	at := func(text string) healthlab.Time { return instant(t, text) }
	early, late := at("2026-02-13T22:00:00Z"), at("2026-02-14T06:00:00Z")
	s.summaries("activity", band, &healthdata.Activity{CalendarDate: *day("2026-02-13")})
	s.summaries("sleep", band, &healthdata.Sleep{BedtimeStart: early, BedtimeStop: late})
	s.summaries("sleep_cycle", band, &healthdata.SleepCycle{SessionStart: early, SessionEnd: late})
	s.summaries("workouts", band, &healthdata.Workout{TimeStart: early, TimeEnd: late})
	s.summaries("electrocardiogram", band, &healthdata.Electrocardiogram{SessionStart: early, SessionEnd: late})
	s.summaries("body", band, &healthdata.Body{MeasuredAt: early})
	s.summaries("meal", band, &healthdata.Meal{Timestamp: early, Name: "Supper"})
	s.summaries("menstrual_cycle", band, &healthdata.MenstrualCycle{PeriodStart: *day("2026-02-13")})

	dayOf := func(text string) (from, to time.Time) {
		d := day(text)
		return d.At(time.UTC), d.AddDays(1).At(time.UTC).Add(-time.Microsecond)
	}
	found := func(from, to time.Time) (out []string) {
		for _, r := range healthdata.Summaries() {
			list, err := s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: r.Slug, From: from, To: to})
			require.NoError(t, err)
			if len(list) > 0 {
				out = append(out, r.Slug)
			}
		}
		return out
	}
	byStart := []string{"activity", "body", "workouts", "meal", "menstrual_cycle", "electrocardiogram"}
	require.ElementsMatch(t, byStart, found(dayOf("2026-02-13")))
	require.ElementsMatch(t, []string{"sleep", "sleep_cycle"}, found(dayOf("2026-02-14")), "sleep is found by its end")
	require.Empty(t, found(dayOf("2026-02-12")))
	require.Empty(t, found(dayOf("2026-02-15")))
	// Both bounds belong to the range; days have no clock.
	require.ElementsMatch(t, byStart, found(early.Time, early.Time))
	noon := at("2026-02-13T12:00:00Z").Time
	require.ElementsMatch(t, []string{"activity", "menstrual_cycle"}, found(noon, noon))
	require.ElementsMatch(t, []string{"sleep", "sleep_cycle"}, found(late.Time, time.Time{}))
	_, err := s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "sleep", From: late.Time, To: early.Time})
	require.Equal(t, []string{"end_date: order"}, problems(t, err))
}

func TestSummaries_areOrderedByDateAndFilteredByProvider(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	for _, provider := range []string{"manual", "acme_band"} {
		for _, d := range []string{"2026-03-02", "2026-03-01", "2026-03-03"} {
			s.summaries("activity", healthdata.Upload{Provider: provider}, &healthdata.Activity{CalendarDate: *day(d)})
		}
	}
	got := s.list("activity")
	require.Len(t, got, 6, "sources are not merged")
	require.True(t, slices.IsSortedFunc(got, func(a, b healthdata.Summary) int {
		x, y := a.(*healthdata.Activity), b.(*healthdata.Activity)
		if c := x.CalendarDate.Compare(y.CalendarDate); c != 0 {
			return c
		}
		return strings.Compare(x.ID.String(), y.ID.String())
	}))
	list, err := s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "activity", Provider: "manual"})
	require.NoError(t, err)
	require.Len(t, list, 3)
	list, err = s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "activity", Provider: "nobody"})
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestRawRecords_areKeptOnlyIfTheTeamWantsThem(t *testing.T) {
	raw := func(t *testing.T, keep bool) (*station, []healthdata.RawRecord) {
		s := newStation(t, healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
			return healthdata.TeamSettings{ProviderRawData: keep}, nil
		}})
		w := &healthdata.Workout{TimeStart: ago(2 * time.Hour), TimeEnd: ago(time.Hour), Sport: healthdata.SportOf("running")}
		w.ExternalID, w.Raw = "w-9", json.RawMessage(`{"kind": 7, "exact":1.10}`)
		plain := &healthdata.Workout{TimeStart: ago(5 * time.Hour), TimeEnd: ago(4 * time.Hour)}
		s.summaries("workouts", band, w, plain)
		out, err := s.RawSummaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "workouts"})
		require.NoError(t, err)
		return s, out
	}
	t.Run("kept", func(t *testing.T) {
		s, got := raw(t, true)
		require.Len(t, got, 1, "those that came with a payload")
		require.Equal(t, `{"kind": 7, "exact":1.10}`, string(got[0].Data), "byte for byte")
		require.Equal(t, "w-9", got[0].ProviderID)
		require.Equal(t, "running", got[0].Sport.Slug)
		require.Equal(t, ago(2*time.Hour).Time, got[0].At)
		require.Equal(t, "Acme Band", got[0].Source.Name)
		again := &healthdata.Workout{TimeStart: ago(2 * time.Hour), TimeEnd: ago(time.Hour), Sport: healthdata.SportOf("running")}
		again.ExternalID, again.Raw = "w-9", json.RawMessage(`{"kind":8}`)
		require.Equal(t, healthdata.Counts{Changed: 1}, s.summaries("workouts", band, again))
		for _, w := range s.list("workouts") {
			require.Nil(t, healthdata.HeadOf(w).Raw, "plain reads have no payload")
			require.Empty(t, healthdata.HeadOf(w).ExternalID)
		}
		for _, e := range s.events() {
			require.NotContains(t, string(e.Data), "exact")
			require.NotContains(t, string(e.Data), "external_id")
		}
	})
	t.Run("not kept", func(t *testing.T) {
		_, got := raw(t, false)
		require.Empty(t, got)
	})
	t.Run("unknown times", func(t *testing.T) {
		var at healthlab.Time
		require.NoError(t, json.Unmarshal([]byte(`"0001-01-01T00:00:00Z"`), &at))
		require.True(t, at.IsZero(), "year 1 means that nobody knows")
	})
}

func TestIngestionWindow_summariesOutsideOfItAreDropped(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{
		IngestionStart: healthdata.SetTo(*day("2026-03-02")), IngestionEnd: healthdata.SetTo(*day("2026-03-02")),
	})
	require.NoError(t, err)
	session := func(from, to string) (a, b healthlab.Time) { return instant(t, from), instant(t, to) }
	in1, in2 := session("2026-03-01T22:00:00Z", "2026-03-02T06:00:00Z")
	for resource, items := range map[string][2]healthdata.Summary{ // kept, dropped
		"activity":        {&healthdata.Activity{CalendarDate: *day("2026-03-02")}, &healthdata.Activity{CalendarDate: *day("2026-03-03")}},
		"sleep":           {&healthdata.Sleep{BedtimeStart: in1, BedtimeStop: in2}, &healthdata.Sleep{BedtimeStart: in2, BedtimeStop: instant(t, "2026-03-03T01:00:00Z")}},
		"sleep_cycle":     {&healthdata.SleepCycle{SessionStart: in1, SessionEnd: in2}, &healthdata.SleepCycle{SessionStart: in2, SessionEnd: instant(t, "2026-03-03T01:00:00Z")}},
		"workouts":        {&healthdata.Workout{TimeStart: in2, TimeEnd: healthlab.At(in2.Add(time.Hour))}, &healthdata.Workout{TimeStart: in1, TimeEnd: in2}},
		"body":            {&healthdata.Body{MeasuredAt: in2}, &healthdata.Body{MeasuredAt: in1}},
		"meal":            {&healthdata.Meal{Timestamp: in2}, &healthdata.Meal{Timestamp: in1}},
		"menstrual_cycle": {&healthdata.MenstrualCycle{PeriodStart: *day("2026-03-02")}, &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-01")}},
		"electrocardiogram": {
			&healthdata.Electrocardiogram{SessionStart: in2, SessionEnd: in2}, &healthdata.Electrocardiogram{SessionStart: in1, SessionEnd: in2},
		},
	} {
		require.Equal(t, healthdata.Counts{New: 1, Dropped: 1}, s.summaries(resource, band, items[0], items[1]), resource)
		require.Len(t, s.list(resource), 1, resource)
		require.Len(t, s.events(), 1, resource)
	}
	require.Equal(t, healthdata.Counts{New: 1}, s.summaries("profile", band, &healthdata.Profile{}), "a profile has no day")
}

func TestIngestSummaries_refusesOnlyTheInvalidSummary(t *testing.T) {
	nan := ptr(math.NaN())
	start, stop := ago(2*time.Hour), ago(time.Hour)
	for name, c := range map[string]struct {
		resource string
		bad      healthdata.Summary
		want     []string
	}{
		"activity without a day":   {"activity", &healthdata.Activity{}, []string{"data 1 calendar_date: missing"}},
		"activity of NaN":          {"activity", &healthdata.Activity{CalendarDate: *day("2026-03-01"), Distance: nan, HeartRate: &healthdata.ActivityHeartRate{AvgBPM: nan}}, []string{"data 1 distance: not_finite", "data 1 heart_rate avg_bpm: not_finite"}},
		"zone":                     {"activity", &healthdata.Activity{CalendarDate: *day("2026-03-01"), TimeZone: ptr("Mars/Olympus")}, []string{"data 1 time_zone: unknown_zone"}},
		"offset":                   {"activity", &healthdata.Activity{CalendarDate: *day("2026-03-01"), TimezoneOffset: ptr(18*3600 + 1)}, []string{"data 1 timezone_offset: range"}},
		"sleep without bounds":     {"sleep", &healthdata.Sleep{}, []string{"data 1 bedtime_start: missing", "data 1 bedtime_stop: missing"}},
		"sleep offset":             {"sleep", &healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, TimezoneOffset: ptr(-18*3600 - 1)}, []string{"data 1 timezone_offset: range"}},
		"body without an instant":  {"body", &healthdata.Body{Weight: ptr(70.0)}, []string{"data 1 measured_at: missing"}},
		"workout with NUL":         {"workouts", &healthdata.Workout{TimeStart: start, TimeEnd: stop, Title: ptr("a\x00b")}, []string{"data 1 title: nul"}},
		"workout of bytes":         {"workouts", &healthdata.Workout{TimeStart: start, TimeEnd: stop, Title: ptr("\xff")}, []string{"data 1 title: encoding"}},
		"workout with a long text": {"workouts", &healthdata.Workout{TimeStart: start, TimeEnd: stop, Title: ptr(strings.Repeat("x", 20_000))}, []string{"data 1 title: too_long"}},
		"meal in furlongs":         {"meal", &healthdata.Meal{Timestamp: start, Energy: &healthdata.Energy{Unit: "furlong", Value: 1}}, []string{"data 1 energy unit: unit"}},
		"food in furlongs":         {"meal", &healthdata.Meal{Timestamp: start, Data: map[string]healthdata.Food{"Soup": {Energy: &healthdata.Energy{Unit: "furlong", Value: 1}}}}, []string{"data 1 data * energy unit: unit"}},
		"cycle":                    {"menstrual_cycle", &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-01"), PeriodEnd: day("2026-02-01"), CycleEnd: day("2026-02-01")}, []string{"data 1 period_end: order", "data 1 cycle_end: order"}},
		"recording":                {"electrocardiogram", &healthdata.Electrocardiogram{SessionStart: start, SessionEnd: stop, VoltageSampleCount: -1, InconclusiveCause: ptr("poor_reading")}, []string{"data 1 inconclusive_cause: not_allowed", "data 1 voltage_sample_count: out_of_bounds"}},
		"another resource":         {"sleep", &healthdata.Body{MeasuredAt: start}, []string{"data 1: type"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			good := map[string]healthdata.Summary{
				"activity": &healthdata.Activity{CalendarDate: *day("2026-03-02")}, "sleep": nap(time.Hour), "body": &healthdata.Body{MeasuredAt: start},
				"sleep_cycle": &healthdata.SleepCycle{SessionStart: start, SessionEnd: stop}, "workouts": &healthdata.Workout{TimeStart: start, TimeEnd: stop},
				"profile": &healthdata.Profile{}, "meal": &healthdata.Meal{Timestamp: start}, "menstrual_cycle": &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-02")},
				"electrocardiogram": &healthdata.Electrocardiogram{SessionStart: start, SessionEnd: stop},
			}[c.resource]
			items := []healthdata.Summary{good, c.bad}
			_, err := s.IngestSummaries(t.Context(), s.team, s.user, c.resource, atomic(band), items)
			require.Equal(t, c.want, problems(t, err))
			require.Empty(t, s.list(c.resource), "nothing is stored")
			require.Empty(t, s.events())

			got, err := s.IngestSummaries(t.Context(), s.team, s.user, c.resource, band, items)
			require.NoError(t, err)
			require.Equal(t, c.want, refusedAt(t, got, 1))
			require.Len(t, s.list(c.resource), 1)
			require.Len(t, s.events(), 1)

			_, err = s.IngestSummaries(t.Context(), s.team, s.user, c.resource, band, []healthdata.Summary{c.bad})
			require.ErrorIs(t, err, healthlab.Invalid, "no summary is left")
		})
	}
}

func TestEvents_tooLargeSummaryOmitsItsLargestParts(t *testing.T) {
	s := newStation(t, healthdata.Options{BatchBytes: 20_000})
	long := strings.Repeat("_p~iF~ps|U", 4_000)
	foods := map[string]healthdata.Food{}
	vitamins := map[string]float64{}
	for i := range 2_000 {
		foods[fmt.Sprint("food ", i)] = healthdata.Food{Energy: &healthdata.Energy{Value: 1}}
		vitamins[fmt.Sprint("vitamin ", i)] = 1
	}
	many := func(n int) (start, end []int64, kind []healthdata.SleepStage) {
		for i := range n {
			start, end, kind = append(start, int64(i)), append(end, int64(i+1)), append(kind, 1)
		}
		return start, end, kind
	}
	cycle := &healthdata.SleepCycle{SessionStart: ago(9 * time.Hour), SessionEnd: ago(time.Hour)}
	cycle.StageStartOffsetSecond, cycle.StageEndOffsetSecond, cycle.StageType = many(5_000)
	period := &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-01")}
	for range 2_000 {
		period.MenstrualFlow = append(period.MenstrualFlow, healthdata.FlowDay{Date: *day("2026-03-01"), Flow: "light"})
	}
	for name, c := range map[string]struct {
		resource string
		in       healthdata.Summary
	}{
		"map":    {"workouts", &healthdata.Workout{TimeStart: ago(time.Hour), TimeEnd: ago(0), Map: &healthdata.Map{Polyline: &long}}},
		"zones":  {"workouts", &healthdata.Workout{TimeStart: ago(30 * time.Hour), TimeEnd: ago(20 * time.Hour), HRZones: slices.Repeat([]int64{1}, 30_000)}},
		"foods":  {"meal", &healthdata.Meal{Timestamp: ago(time.Hour), Data: foods}},
		"micros": {"meal", &healthdata.Meal{Timestamp: ago(2 * time.Hour), Micros: &healthdata.Micros{Vitamins: vitamins}}},
		"stages": {"sleep_cycle", cycle},
		"days":   {"menstrual_cycle", period},
	} {
		t.Run(name, func(t *testing.T) {
			s.summaries(c.resource, band, c.in)
			events := s.events()
			require.Len(t, events, 1)
			require.LessOrEqual(t, len(events[0].Data), 20_000)
			var said map[string]any
			require.NoError(t, json.Unmarshal(events[0].Data, &said))
			require.Equal(t, true, said["truncated"])
			whole, err := json.Marshal(c.in)
			require.NoError(t, err)
			var stored map[string]any
			require.NoError(t, json.Unmarshal(whole, &stored))
			keys := slices.DeleteFunc(slices.Sorted(maps.Keys(said)), func(k string) bool { return k == "truncated" })
			require.Equal(t, slices.Sorted(maps.Keys(stored)), keys, "no key is gone, only what was in it")
			list := s.list(c.resource)
			kept, err := json.Marshal(list[0])
			require.NoError(t, err)
			require.Greater(t, len(kept), 20_000, "the answer has all of it")
		})
	}
	require.Equal(t, healthdata.Counts{New: 1}, s.summaries("workouts", band, &healthdata.Workout{TimeStart: ago(9 * time.Hour), TimeEnd: ago(6 * time.Hour)}))
	require.NotContains(t, string(s.events()[0].Data), "truncated")
}
