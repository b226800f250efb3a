package healthdata_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// An item with an impossible value or time is refused alone; the others are stored.
func TestIngest_refusesOnlyTheImpossibleSampleAndNamesItsField(t *testing.T) {
	at := ago(time.Hour)
	pressure := func(high, low float64) healthdata.Sample {
		return healthdata.Sample{Timestamp: at, Unit: "mmHg", Systolic: &high, Diastolic: &low}
	}
	for _, c := range []struct {
		name, resource string
		good, bad      healthdata.Sample
		field, msg     string
	}{
		{"glucose below zero", "glucose", reading("mmol/L", at, 5), reading("mmol/L", ago(time.Minute), -5), "value", "must be 0.1 to 150 mmol/L"},
		{"glucose of 1e300", "glucose", reading("mmol/L", at, 5), reading("mmol/L", ago(time.Minute), 1e300), "value", "must be 0.1 to 150 mmol/L"},
		{"glucose in another unit", "glucose", reading("mmol/L", at, 5), reading("mg/dL", ago(time.Minute), 0.1), "value", "must be 0.1 to 150 mmol/L"},
		{"no heart rate", "heartrate", reading("bpm", at, 60), reading("bpm", ago(time.Minute), 0), "value", "must be 10 to 400 bpm"},
		{"heart rate of 5,000", "heartrate", reading("bpm", at, 60), reading("bpm", ago(time.Minute), 5000), "value", "must be 10 to 400 bpm"},
		{"SpO2 of 250 %", "blood_oxygen", reading("%", at, 97), reading("%", ago(time.Minute), 250), "value", "must be 10 to 100 %"},
		{"negative steps", "steps", bucket("count", at, time.Minute, 1), bucket("count", ago(time.Minute), time.Second, -1), "value", "must be 0 to 500000 count"},
		{"steps of 1e12", "steps", bucket("count", at, time.Minute, 1), bucket("count", ago(time.Minute), time.Second, 1e12), "value", "must be 0 to 500000 count"},
		{"systolic", "blood_pressure", pressure(120, 80), pressure(900, 80), "systolic", "must be 20 to 400 mmHg"},
		{"of the day after tomorrow", "heartrate", reading("bpm", at, 60), reading("bpm", ago(-48*time.Hour), 60), "timestamp", "must be at most 24 hours ahead of the present"},
		{"of 1899", "heartrate", reading("bpm", at, 60), reading("bpm", instant(t, "1899-12-31T23:59:59Z"), 60), "timestamp", "must be 1900-01-01 or later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			got, err := s.IngestSamples(t.Context(), s.team, s.user, c.resource, band, []healthdata.Sample{c.bad, c.good})
			require.NoError(t, err)
			require.Equal(t, 1, got.New)
			require.Len(t, got.Refused, 1)
			require.Equal(t, 0, got.Refused[0].Index)
			require.Equal(t, c.field, got.Refused[0].Problems[0].Field)
			require.Equal(t, c.msg, got.Refused[0].Problems[0].Msg)
			require.Len(t, s.read(c.resource), 1)
			// Nothing but refused items is an error.
			_, err = s.IngestSamples(t.Context(), s.team, s.user, c.resource, band, []healthdata.Sample{c.bad})
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func TestIngest_refusesOnlyTheImpossibleSummaryAndNamesItsField(t *testing.T) {
	start, stop := ago(10*time.Hour), ago(2*time.Hour)
	for _, c := range []struct {
		name  string
		bad   healthdata.Sleep
		field string
	}{
		{"efficiency of 180", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Efficiency: ptr(180.0)}, "efficiency"},
		{"a duration of 48 hours", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Duration: 48 * 3600}, "duration"},
		{"36 hours and a second", healthdata.Sleep{BedtimeStart: ago(38*time.Hour + time.Second), BedtimeStop: stop}, "bedtime_stop"},
		{"no time", healthdata.Sleep{BedtimeStart: stop, BedtimeStop: stop}, "bedtime_stop"},
		{"from its end to its start", healthdata.Sleep{BedtimeStart: stop, BedtimeStop: start}, "bedtime_stop"},
		{"of no year", healthdata.Sleep{BedtimeStart: healthlab.Time{Time: start.AddDate(-3000, 0, 0)}, BedtimeStop: stop}, "bedtime_stop"},
		{"longer than its session", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Total: ptr(int64(9 * 3600))}, "total"},
		{"stages longer than its session", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, REM: ptr(int64(2 * 3600)), Light: ptr(int64(5 * 3600)), Deep: ptr(int64(2 * 3600))}, "total"},
		{"one stage longer than its session", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Light: ptr(int64(24 * 3600)), Total: ptr(int64(3600))}, "total"},
		{"awake for longer than its session", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Awake: ptr(int64(9 * 3600)), Total: ptr(int64(3600))}, "awake"},
		{"asleep after the end of its session", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, Latency: ptr(int64(9 * 3600))}, "latency"},
		{"negative", healthdata.Sleep{BedtimeStart: start, BedtimeStop: stop, REM: ptr(int64(-1))}, "rem"},
		{"of tomorrow", healthdata.Sleep{BedtimeStart: start, BedtimeStop: ago(-25 * time.Hour)}, "bedtime_stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			got, err := s.IngestSummaries(t.Context(), s.team, s.user, "sleep", band, []healthdata.Summary{nap(time.Hour), &c.bad})
			require.NoError(t, err)
			require.Equal(t, 1, got.New)
			require.Len(t, got.Refused, 1)
			require.Equal(t, 1, got.Refused[0].Index)
			require.Equal(t, c.field, got.Refused[0].Problems[0].Field)
			require.Len(t, s.list("sleep"), 1)
		})
	}
}

// A source may round its times to minutes, so the time asleep may be a minute longer than the session. The efficiency that
// is computed from it is at most 100 %.
func TestSleep_efficiencyIsAtMost100(t *testing.T) {
	for _, seconds := range []int64{1, 1800, 3600, 3601, 3660, 3661, 7200, 100_800} {
		for name, item := range map[string]*healthdata.Sleep{
			"total": {Total: &seconds}, "one stage": {Light: &seconds}, "stages": {REM: ptr(seconds / 2), Light: ptr(int64(0)), Deep: ptr(seconds - seconds/2), Total: ptr(int64(60))},
		} {
			s := newStation(t, healthdata.Options{})
			item.BedtimeStart, item.BedtimeStop = ago(2*time.Hour), ago(time.Hour)
			_, err := s.IngestSummaries(t.Context(), s.team, s.user, "sleep", band, []healthdata.Summary{item})
			if seconds > 3660 {
				require.Equal(t, []string{"data 0 total: out_of_bounds"}, problems(t, err), "%s of %d s", name, seconds)
				continue
			}
			require.NoError(t, err)
			got := only[*healthdata.Sleep](s, "sleep")
			require.Equal(t, seconds, *got.Total)
			require.InDelta(t, min(100, float64(seconds)/36), *got.Efficiency, 1e-9, "%s of %d s", name, seconds)
		}
	}
}

// fill sets every pointer inside v, and gives every list and map one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		of := reflect.New(v.Type().Elem()).Elem()
		fill(of)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), of)
	}
}

// Every number that a source measures has bounds. The others are offsets, numbers of the service, and stages, which
// are cut to their session.
func TestBounds_coverEveryNumberOfSummaries(t *testing.T) {
	for _, r := range healthdata.Summaries() {
		item := r.New()
		fill(reflect.ValueOf(item).Elem())
		bounds := r.PartBounds()
		check.EachField(reflect.ValueOf(item), nil, func(v reflect.Value, path []any) {
			var names []string
			for _, part := range path {
				if _, index := part.(int); index {
					part = "*"
				}
				names = append(names, part.(string))
			}
			name := strings.Join(names, ".")
			if !v.CanInt() && !v.CanFloat() || v.Type().PkgPath() != "" || strings.HasSuffix(name, "timezone_offset") || strings.HasPrefix(name, "stage_") {
				return
			}
			if slices.Contains([]string{"priority_id", "source_id", "sport.id"}, name) || strings.HasPrefix(name, "sleep_stream") {
				return
			}
			require.Contains(t, bounds, name, r.Slug)
		})
	}
}

// A summary with a number on one of its bounds is stored; one beyond it is refused, and the field is named.
func TestIngest_refusesNumbersOfSummariesBeyondTheirBounds(t *testing.T) {
	for _, r := range healthdata.Summaries() {
		for name, b := range r.PartBounds() {
			t.Run(r.Slug+" "+name, func(t *testing.T) {
				s := newStation(t, healthdata.Options{})
				send := func(v float64) error {
					doc := json.RawMessage(strconv.FormatFloat(v, 'f', -1, 64))
					parts := strings.Split(name, ".")
					for i := len(parts) - 1; i >= 0; i-- {
						form := `{"` + parts[i] + `":%s}`
						if list := i > 0 && (parts[i-1] == "basal_body_temperature" || parts[i-1] == "hr_zones"); parts[i] == "*" && list {
							form = `[%s]`
						}
						if parts[i] == "value" && i > 1 {
							form = `{"date":"2026-03-01","value":%s}`
						}
						doc = json.RawMessage(fmt.Sprintf(form, doc))
					}
					item := smallest[r.Slug]("")
					require.NoError(t, json.Unmarshal(doc, item))
					_, err := s.IngestSummaries(t.Context(), s.team, s.user, r.Slug, band, []healthdata.Summary{item})
					return err
				}
				for _, v := range []float64{b.Low - 2, b.High + 1, 10 * b.High} {
					var invalid *healthlab.InvalidError
					require.ErrorAs(t, send(v), &invalid, "%g", v)
					require.Len(t, invalid.Problems, 1)
					path := strings.ReplaceAll(strings.Trim(fmt.Sprint(invalid.Problems[0].Path[2:]), "[]"), " ", ".")
					require.Equal(t, name, strings.ReplaceAll(path, ".0", ".*"))
				}
				longest := map[string]float64{"sleep": 8 * 3600, "workouts": 3600}[r.Slug] // the session of smallest
				if v := b.Low; v != 0 {
					require.NoError(t, send(v))
				}
				if longest == 0 || b.Unit != "s" || name == "duration" || name == "moving_time" {
					require.NoError(t, send(b.High))
				} else {
					require.NoError(t, send(longest))
					require.Error(t, send(longest+61))
				}
			})
		}
	}
}

// A birth date in the future is refused, as that of a user is: no age follows from it.
func TestProfile_birthDateInTheFutureIsRefused(t *testing.T) {
	for date, future := range map[string]bool{"1900-01-01": false, "2026-03-01": false, "2026-03-02": true, "2027-05-01": true, "9999-12-31": true} {
		s := newStation(t, healthdata.Options{})
		s.now = instant(t, "2026-03-01T12:00:00Z").Time
		_, err := s.IngestSummaries(t.Context(), s.team, s.user, "profile", band, []healthdata.Summary{&healthdata.Profile{BirthDate: day(date)}})
		_, ofUser := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackBirthDate: healthdata.SetTo(*day(date))})
		if !future {
			require.NoError(t, err, date)
			require.NoError(t, ofUser, date)
			continue
		}
		require.Equal(t, []string{"data 0 birth_date: future"}, problems(t, err), date)
		require.Equal(t, []string{"fallback_birth_date: future"}, problems(t, ofUser), date)
	}
}

// The zones of a workout are parts of it. A source may round each of them.
func TestWorkout_heartRateZonesAreAtMostItsLength(t *testing.T) {
	for _, c := range []struct {
		zones []int64
		ok    bool
	}{
		{[]int64{100, 100, 100, 100, 100, 100}, true}, {[]int64{110, 110, 110, 110, 110, 110}, true}, {[]int64{600}, true},
		{[]int64{111, 110, 110, 110, 110, 110}, false}, {slices.Repeat([]int64{100_000}, 6), false}, {[]int64{-1, 0, 0, 0, 0, 0}, false},
	} {
		s := newStation(t, healthdata.Options{})
		run := &healthdata.Workout{TimeStart: ago(time.Hour), TimeEnd: ago(50 * time.Minute), HRZones: c.zones}
		_, err := s.IngestSummaries(t.Context(), s.team, s.user, "workouts", band, []healthdata.Summary{run})
		if c.ok {
			require.NoError(t, err, c.zones)
			continue
		}
		require.ErrorIs(t, err, healthlab.Invalid)
		require.Contains(t, problems(t, err)[0], "data 0 hr_zones")
	}
}

// An energy is compared in kilocalories, whatever unit it comes in.
func TestMeal_energyIsBoundedInKilocalories(t *testing.T) {
	for _, c := range []struct {
		unit  string
		value float64
		ok    bool
	}{
		{"J", 4.184e6, true}, {"cal", 1e6, true}, {"kJ", 836.8, true}, {"", 800, true},
		{"kJ", -5, false}, {"", -5, false}, {"kJ", 1e6, false}, {"kcal", 1e12, false},
	} {
		for path, meal := range map[string]func(e *healthdata.Energy) *healthdata.Meal{
			"energy value": func(e *healthdata.Energy) *healthdata.Meal { return &healthdata.Meal{Energy: e} },
			"data * energy value": func(e *healthdata.Energy) *healthdata.Meal {
				return &healthdata.Meal{Data: map[string]healthdata.Food{"Soup": {Energy: e}}}
			},
		} {
			s := newStation(t, healthdata.Options{})
			item := meal(&healthdata.Energy{Unit: c.unit, Value: c.value})
			item.Timestamp = ago(time.Hour)
			_, err := s.IngestSummaries(t.Context(), s.team, s.user, "meal", band, []healthdata.Summary{item})
			if c.ok {
				require.NoError(t, err, "%g %s", c.value, c.unit)
				continue
			}
			require.Error(t, err, "%g %s", c.value, c.unit)
			require.Equal(t, []string{"data 0 " + path + ": out_of_bounds"}, problems(t, err))
		}
	}
}

// Intervals have the lengths of their resource, and sessions those of theirs. What has another
// length is refused alone.
func TestIngest_refusesOnlyTheItemWhoseDurationIsOutOfBounds(t *testing.T) {
	const most, hour = 24 * time.Hour, time.Hour
	offset := 3600
	kept := func(s *station, resource string, from time.Time, length time.Duration) bool {
		start, end := healthlab.At(from), healthlab.At(from.Add(length))
		r := healthdata.ResourceBySlug(resource)
		switch r.Class {
		case healthdata.ClassTimeseries:
			bounds, _ := r.Bounds()
			v := healthdata.Sample{Start: &start, End: &end, Timestamp: start, TimezoneOffset: &offset, Unit: r.Unit, Value: healthdata.Number(max(1, bounds.Low))}
			if r.Value == healthdata.ValueText {
				v.Value = healthdata.Text("a")
			}
			if r.TypeRequired {
				v.Type = &r.Types[0]
			}
			good := v
			goodEnd := healthlab.At(from.Add(-hour))
			goodStart := healthlab.At(from.Add(-2 * hour))
			good.Timestamp, good.Start, good.End = goodStart, &goodStart, &goodEnd
			up := band
			if r.Key == healthdata.KeyWorkout {
				up.Source.WorkoutID, up.Source.Sport = ptr(uuid.New()), ptr("running")
			}
			got, err := s.IngestSamples(t.Context(), s.team, s.user, resource, up, []healthdata.Sample{good, v})
			require.NoError(t, err, resource)
			for _, refused := range got.Refused {
				require.Equal(t, "end", refused.Problems[0].Field)
			}
			return len(got.Refused) == 0
		default:
			item := map[string]healthdata.Summary{
				"sleep":       &healthdata.Sleep{BedtimeStart: start, BedtimeStop: end},
				"sleep_cycle": &healthdata.SleepCycle{SessionStart: start, SessionEnd: end, StageStartOffsetSecond: []int64{}, StageEndOffsetSecond: []int64{}, StageType: []healthdata.SleepStage{}},
				"workouts":    &healthdata.Workout{TimeStart: start, TimeEnd: end},
			}[resource]
			_, err := s.IngestSummaries(t.Context(), s.team, s.user, resource, band, []healthdata.Summary{item})
			return err == nil
		}
	}
	s := newStation(t, healthdata.Options{})
	spring := instant(t, "2026-02-01T00:00:00Z").Time
	longest := map[string]time.Duration{"afib_burden": 8 * most, "sleep": 36 * hour, "sleep_cycle": 36 * hour, "workouts": 7 * most}
	for _, r := range healthdata.Resources() {
		session := r.Slug == "sleep" || r.Slug == "sleep_cycle" || r.Slug == "workouts"
		if !session && (r.Class != healthdata.ClassTimeseries || r.Shape == healthdata.Discrete) {
			continue
		}
		limit := longest[r.Slug]
		if limit == 0 {
			limit = most
		}
		require.True(t, kept(s, r.Slug, spring, limit), r.Slug)
		require.False(t, kept(s, r.Slug, spring, limit+time.Microsecond), r.Slug)
		require.False(t, kept(s, r.Slug, spring, 400*most), r.Slug)
		require.True(t, kept(s, r.Slug, spring, time.Microsecond), r.Slug)
		require.False(t, kept(s, r.Slug, spring, -time.Microsecond), r.Slug)
		require.Equal(t, !session && !r.Spans, kept(s, r.Slug, spring, 0), r.Slug)
	}

	// A local day may have 25 hours.
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo("America/New_York")})
	require.NoError(t, err)
	autumn := instant(t, "2025-11-02T04:00:00Z").Time
	require.True(t, kept(s, "steps", autumn, 25*hour))
	require.False(t, kept(s, "steps", autumn, 25*hour+time.Microsecond))
	require.False(t, kept(s, "steps", spring, 25*hour))
}

// The offsets of a sample show a local day of 25 hours, whatever the zone of the user.
func TestBounds_offsetsOfAnIntervalShowADayOf25Hours(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	const hour = time.Hour
	for _, c := range []struct {
		from, to int // seconds east of UTC
		length   time.Duration
		kept     bool
	}{
		{7200, 3600, 25 * hour, true},
		{39600, 37800, 24*hour + 30*time.Minute, true},
		{39600, 37800, 25 * hour, false},
		{3600, 3600, 25 * hour, false},
		{3600, 7200, 25 * hour, false},
		{7200, 3600, 25*hour + time.Second, false},
		{7200, -36000, 36 * hour, false},
	} {
		start := time.Date(2025, 10, 26, 0, 0, 0, 0, time.FixedZone("", c.from))
		v := healthdata.Sample{
			Timestamp: healthlab.Time{Time: start}, End: &healthlab.Time{Time: start.Add(c.length).In(time.FixedZone("", c.to))},
			Unit: "count", Value: healthdata.Number(1),
		}
		good := v
		good.Timestamp, good.End = healthlab.At(start.Add(-2*hour)), new(healthlab.At(start.Add(-hour)))
		got, err := s.IngestSamples(t.Context(), s.team, s.user, "steps", band, []healthdata.Sample{good, v})
		require.NoError(t, err)
		require.Equal(t, c.kept, len(got.Refused) == 0, c)
	}
}

// The embedded tables name resources and fields that exist.
func TestBounds_nameExistingResourcesAndFields(t *testing.T) {
	for _, r := range healthdata.Resources() {
		if b, ok := r.Bounds(); ok {
			require.Less(t, b.Low, b.High, r.Slug)
			require.Equal(t, r.Unit, b.Unit)
		}
	}
}

var update = flag.Bool("update", false, "write docs/bounds.md")

// docs/bounds.md lists the bounds of every resource.
func TestBounds_documentListsEveryResource(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Bounds of values

An item with a value outside these bounds is refused alone, as every item that cannot be read or
cannot be true: the answer names its index, the field and the bounds, and the rest of the upload is
stored ([what is left out](concepts/data.md#what-is-left-out)). The bounds are wide: what a body
or a device can do. Times are 1900-01-01 to 24 hours ahead of the present. A resource or
field that is not listed takes every finite number.

| resource | field | bounds |
|---|---|---|
`)
	for _, r := range healthdata.Resources() {
		if bounds, ok := r.Bounds(); ok {
			fmt.Fprintf(&b, "| `%s` | `value` | %s |\n", r.Slug, bounds)
		}
		if interval, ok := r.IntervalBounds(); ok {
			lengths := "at most"
			if interval.Positive {
				lengths = "more than 0 and at most"
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s %g hours after `%s` |\n", r.Slug, interval.End, lengths, interval.Longest.Hours(), interval.Start)
		}
		parts := r.PartBounds()
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.Slug, name, parts[name])
		}
	}
	b.WriteString("\nAn interval of a whole local day may be longer by the hour that the end of summer time adds: in the zone of the\n")
	b.WriteString("user, or where the written offsets of its start and its end differ by as much.\n")
	b.WriteString("An asterisk stands for each element of a list, and for each name of a map.\n")
	b.WriteString("The birth date of a profile is not in the future. The `hr_zones` of a workout together are at most the time from\n" +
		"`time_start` to `time_end`, and 60 s more, because a source may round each of them.\n")
	b.WriteString("The sleep of a session (`total`, or `light`, `rem` and `deep` together), its `awake` and its `latency` are each at most the\n" +
		"time from `bedtime_start` to `bedtime_stop`, and 60 s more, because a source may round its times to minutes.\n")
	const file = "../docs/bounds.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./healthdata -run TestBounds_documentListsEveryResource -update")
}

func TestDates_before1900AreRefusedAsTooEarly(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	birth := *day("1899-12-31")
	_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackBirthDate: healthdata.SetTo(birth)})
	require.Equal(t, []string{"fallback_birth_date: too_early"}, problems(t, err))
	_, err = s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackBirthDate: healthdata.SetTo(*day("1900-01-01"))})
	require.NoError(t, err)
	for resource, item := range map[string]healthdata.Summary{
		"profile":         &healthdata.Profile{BirthDate: &birth},
		"activity":        &healthdata.Activity{CalendarDate: birth},
		"sleep":           &healthdata.Sleep{CalendarDate: birth, BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour)},
		"menstrual_cycle": &healthdata.MenstrualCycle{PeriodStart: birth},
	} {
		_, err := s.IngestSummaries(t.Context(), s.team, s.user, resource, band, []healthdata.Summary{item})
		require.Len(t, problems(t, err), 1, resource)
		require.Contains(t, problems(t, err)[0], "too_early")
	}
}
