package fileimport_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

const phoneAppFile = "HealthAutoExport-2026-03-28.json"

func TestHealthAutoExport_givesSamplesSummariesAndStreams(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "healthautoexport", phoneAppFile)), nil)
	require.NoError(t, err)
	require.Equal(t, fileimport.HealthAutoExport, rep.Format)
	require.Empty(t, rep.Notes)
	require.Equal(t, map[string]int{
		"resting_heart_rate": 1, "flights_climbed (a mean or total of an interval of unknown length)": 1, "symptoms": 1,
	}, rep.Skipped)
	require.Equal(t, map[string]int{
		"steps": 2, "distance": 1, "calories_active": 1, "heartrate": 2, "hrv_sdnn": 1, "blood_oxygen": 1, "blood_pressure": 1,
		"weight": 1, "fat": 1, "glucose": 1, "body_temperature": 1,
	}, rep.Samples)
	require.Equal(t, map[string]int{"sleep": 2, "sleep_cycle": 1, "body": 1, "workouts": 1}, rep.Summaries)

	steps := s.samples["steps"][0]
	require.Equal(t, []any{utc("2026-03-28 06:12:00"), utc("2026-03-28 06:13:00"), 42.0, "count", 3600}, []any{*steps.Start, healthlab.At(steps.End.Time), steps.Value.Number, steps.Unit, *steps.TimezoneOffset})
	require.Equal(t, healthdata.SourceMultiple, steps.source.Type)
	require.Equal(t, healthdata.SlugAppleHealthKit, steps.source.Provider)
	for resource, want := range map[string][]any{
		"distance": {0.031, "km"}, "calories_active": {8.4, "kJ"}, "heartrate": {88.0, "bpm"}, "blood_oxygen": {97.0, "%"},
		"weight": {150.0, "lb"}, "fat": {21.5, "%"}, "glucose": {99.0, "mg/dL"}, "hrv_sdnn": {61.2, "ms"}, "body_temperature": {35.9, "°C"},
	} {
		require.Equal(t, want, []any{s.samples[resource][0].Value.Number, s.samples[resource][0].Unit}, resource)
	}
	require.Equal(t, "wrist", *s.samples["body_temperature"][0].SensorLocation)
	require.Equal(t, []float64{121, 79}, []float64{*s.samples["blood_pressure"][0].Systolic, *s.samples["blood_pressure"][0].Diastolic})
	require.Equal(t, healthdata.SourceWatch, s.samples["heartrate"][0].source.Type)
	body := summariesOf[*healthdata.Body](t, s, "body")[0]
	require.InDelta(t, 68.04, *body.Weight, 0.01)
	require.Equal(t, 21.5, *body.Fat)

	nights := summariesOf[*healthdata.Sleep](t, s, "sleep")
	require.Equal(t, []any{utc("2026-03-27 22:00:00"), utc("2026-03-28 05:00:00")}, []any{nights[0].BedtimeStart, nights[0].BedtimeStop})
	require.Equal(t, []int64{23400, 14400, 3600, 5400, 900}, []int64{*nights[0].Total, *nights[0].Light, *nights[0].Deep, *nights[0].REM, *nights[0].Awake})
	require.Equal(t, []int64{1200, 300}, []int64{*nights[1].Total, *nights[1].Awake}, "stretches make a session")

	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, []any{"running", "6E1D8B4A-0000-4000-8000-000000000001", int64(148), int64(171)}, []any{w.Sport.Slug, w.ExternalID, *w.AverageHR, *w.MaxHR})
	require.InDelta(t, 4988.97, *w.Distance, 0.01)
	require.InDelta(t, 310.7, *w.Calories, 0.1)
	require.InDelta(t, 12.19, *w.TotalElevationGain, 0.01)
	require.Len(t, s.streams, 1)
	require.Equal(t, []any{int64(122), 52.5001}, []any{*s.streams[0].Heartrate[0], *s.streams[0].Lat[1]})
	require.Nil(t, s.streams[0].VelocitySmooth[1], "a negative speed was not measured")
}

func appBody(metrics string) []byte {
	return fmt.Appendf(nil, `{"data":{"metrics":[%s]}}`, metrics)
}

func steps(times ...string) string {
	var items []string
	for _, at := range times {
		items = append(items, `{"date":"`+at+` +0100","qty":100}`)
	}
	return `{"name":"step_count","units":"count","data":[` + strings.Join(items, ",") + `]}`
}

// How long a total lasts follows from the times, or the caller says it; else it is left out.
func TestHealthAutoExport_intervalOfTotalsIsDerivedFromTheirTimes(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		said fileimport.Aggregation
		want time.Duration // 0: left out
	}{
		"minutes":            {steps("2026-03-01 07:12:00"), "", time.Minute},
		"hours":              {steps("2026-03-01 07:00:00", "2026-03-01 09:00:00"), "", time.Hour},
		"days":               {steps("2026-03-01 00:00:00", "2026-03-02 00:00:00"), "", 24 * time.Hour},
		"a midnight":         {steps("2026-03-01 00:00:00"), "", 0},
		"a midnight, a day":  {steps("2026-03-01 00:00:00"), fileimport.AggregateDays, 24 * time.Hour},
		"an hour":            {steps("2026-03-01 07:00:00"), "", 0},
		"an hour, said":      {steps("2026-03-01 07:00:00"), fileimport.AggregateHours, time.Hour},
		"minutes, days said": {steps("2026-03-01 07:12:00"), fileimport.AggregateDays, time.Minute},
		"hours, days said":   {steps("2026-03-01 07:00:00", "2026-03-01 08:00:00"), fileimport.AggregateDays, time.Hour},
		"weeks":              {steps("2026-03-02 00:00:00", "2026-03-09 00:00:00"), "", 0},
		"seconds, days said": {steps("2026-03-01 07:12:13"), fileimport.AggregateDays, 0},
		"not aggregated":     {steps("2026-03-01 07:12:13"), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, rep, err := importBytes(t, appBody(c.body), &fileimport.Options{Aggregation: c.said})
			require.NoError(t, err)
			if c.want == 0 {
				require.Empty(t, s.samples)
				require.NotZero(t, rep.Skipped["step_count (a mean or total of an interval of unknown length)"])
				return
			}
			v := s.samples["steps"][0]
			require.Equal(t, c.want, v.End.Sub(v.Start.Time))
		})
	}
	hourly := `{"name":"heart_rate","units":"bpm","data":[{"date":"2026-03-01 07:00:00 +0100","Min":50,"Avg":70,"Max":90}]}`
	s, _, err := importBytes(t, appBody(hourly), nil)
	require.NoError(t, err)
	require.Empty(t, s.samples, "the mean of an hour is no heart rate of an instant")
}

// A day ends at the next local midnight, which the next total or the zone of the person shows. Midnight may be skipped or
// occur twice.
func TestHealthAutoExport_dayTotalEndsAtTheNextLocalMidnight(t *testing.T) {
	for name, day := range map[string]struct {
		zone string
		date healthlab.Date
		want time.Duration
	}{
		"summer begins":                    {"Europe/Berlin", healthlab.Date{Year: 2026, Month: 3, Day: 29}, 23 * time.Hour},
		"summer ends":                      {"Europe/Berlin", healthlab.Date{Year: 2025, Month: 10, Day: 26}, 25 * time.Hour},
		"an ordinary day":                  {"Europe/Berlin", healthlab.Date{Year: 2026, Month: 3, Day: 28}, 24 * time.Hour},
		"summer begins by half an hour":    {"Australia/Lord_Howe", healthlab.Date{Year: 2025, Month: 10, Day: 5}, 23*time.Hour + 30*time.Minute},
		"summer ends by half an hour":      {"Australia/Lord_Howe", healthlab.Date{Year: 2026, Month: 4, Day: 5}, 24*time.Hour + 30*time.Minute},
		"summer begins at midnight":        {"America/Santiago", healthlab.Date{Year: 2025, Month: 9, Day: 7}, 23 * time.Hour},
		"before summer begins at midnight": {"America/Santiago", healthlab.Date{Year: 2025, Month: 9, Day: 6}, 24 * time.Hour},
		"summer ends at midnight":          {"America/Santiago", healthlab.Date{Year: 2026, Month: 4, Day: 4}, 25 * time.Hour},
		"midnight twice":                   {"America/Havana", healthlab.Date{Year: 2025, Month: 11, Day: 2}, 25 * time.Hour},
		"no offset":                        {"Europe/London", healthlab.Date{Year: 2026, Month: 3, Day: 29}, 23 * time.Hour},
	} {
		zone, err := time.LoadLocation(day.zone)
		require.NoError(t, err)
		total := func(n int) string {
			return `{"date":"` + day.date.AddDays(n).At(zone).Format("2006-01-02 15:04:05 -0700") + `","qty":4600}`
		}
		file := func(totals ...string) []byte {
			return appBody(`{"name":"step_count","units":"count","data":[` + strings.Join(totals, ",") + `]}`)
		}
		check := func(t *testing.T, body []byte, opts *fileimport.Options) {
			t.Helper()
			opts.Aggregation = fileimport.AggregateDays
			s := newIngestion(t)
			_, err := fileimport.Import(t.Context(), bytes.NewReader(body), s, opts)
			require.NoError(t, err)
			page, err := s.service.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "steps"})
			require.NoError(t, err)
			for v := range page.Groups[0].All() {
				if start := day.date.At(zone); v.Start.Equal(start) {
					require.Equal(t, day.want, v.End.Sub(start))
					return
				}
			}
			require.Fail(t, "the total is missing")
		}
		t.Run(name, func(t *testing.T) {
			check(t, file(total(-1), total(0), total(1), total(2)), &fileimport.Options{})
			check(t, file(total(2), total(1), total(0), total(-1)), &fileimport.Options{})
			check(t, file(total(0)), &fileimport.Options{Zone: zone})
		})
	}
	// Without the next total and the zone, and in another zone than that of the times, a day has 24 hours.
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for at, zone := range map[string]*time.Location{"2026-03-29 00:00:00 +0100": nil, "2026-03-29 00:00:00 +0000": berlin} {
		s, _, err := importBytes(t, appBody(`{"name":"step_count","units":"count","data":[{"date":"`+at+`","qty":1}]}`), &fileimport.Options{Aggregation: fileimport.AggregateDays, Zone: zone})
		require.NoError(t, err)
		require.Equal(t, 24*time.Hour, s.samples["steps"][0].End.Sub(s.samples["steps"][0].Start.Time))
	}
}

// A night without stages has none, and a zero is no measurement.
func TestHealthAutoExport_zeroStagesOfANightAreNull(t *testing.T) {
	body := `{"name":"sleep_analysis","units":"hr","data":[
		{"date":"2026-03-01","asleep":6.5,"totalSleep":0,"core":0,"deep":0,"rem":0,"awake":0,"inBed":7,"sleepStart":"2026-02-28 23:00:00 +0100","sleepEnd":"2026-03-01 06:00:00 +0100"}]}`
	s, _, err := importBytes(t, appBody(body), nil)
	require.NoError(t, err)
	night := summariesOf[*healthdata.Sleep](t, s, "sleep")[0]
	require.EqualValues(t, 23400, *night.Total)
	require.Equal(t, []*int64{nil, nil, nil, nil}, []*int64{night.Light, night.Deep, night.REM, night.Awake})
}

// The app sends the same days on a schedule, and a day that grows: nothing is there twice.
func TestHealthAutoExport_resentDaysChangeNothing(t *testing.T) {
	dir := t.TempDir()
	file := testdata(t, "healthautoexport", phoneAppFile)
	require.NoError(t, os.WriteFile(filepath.Join(dir, phoneAppFile), []byte(file), 0o600))
	takesTwice(t, dir, nil)

	s := newIngestion(t)
	_, err := fileimport.ImportDir(t.Context(), dir, s, nil)
	require.NoError(t, err)
	stored := s.counts.New
	s.counts = healthdata.Counts{}
	grown := strings.Replace(file, `"qty": 51.5`, `"qty": 60`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, phoneAppFile), []byte(grown), 0o600))
	_, err = fileimport.ImportDir(t.Context(), dir, s, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{s.counts.New, s.counts.Changed}, "of %d", stored)
}

func TestHealthAutoExport_malformedFileIsRefused(t *testing.T) {
	for _, file := range []string{`{"data":{"metrics":`, `{"data":{"metrics":[}`, `{"data":{"metrics":[{"name":"step_count"`} {
		s, rep, err := importBytes(t, []byte(file), nil)
		require.ErrorIs(t, err, healthlab.Invalid, file)
		require.Equal(t, fileimport.HealthAutoExport, rep.Format)
		require.Zero(t, s.calls)
	}
	for _, file := range []string{`{"data":[]}`, `{"data":{"other":[]}}`, `{"metrics":[]}`, `{}`} {
		_, _, err := importBytes(t, []byte(file), nil)
		require.ErrorIs(t, err, fileimport.ErrFormat, file)
	}
	// What stands before a break is read, and told.
	whole := steps("2026-03-01 07:12:00")
	s, rep, err := importBytes(t, []byte(`{"data":{"metrics":[`+whole+`,{"name"`), nil)
	require.NoError(t, err)
	require.Len(t, s.samples["steps"], 1)
	require.Len(t, rep.Notes, 1)
	_, _, err = importBytes(t, []byte(`{"data":{"metrics":[`+steps(slices.Repeat([]string{"2026-03-01 07:12:00"}, 100)...)+`]}}`), &fileimport.Options{MaxRecordingBytes: 1000})
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A random good file with one random bad item gives what the good file gives.
func TestHealthAutoExport_skipsOnlyTheInvalidItem(t *testing.T) {
	at := func(i int) string { return race.Add(seconds(60*i + 60)).Format("2006-01-02 15:04:05 -0700") }
	lists := []struct {
		good func(i int) string
		bad  []string
		wrap string
	}{
		{
			func(i int) string {
				return fmt.Sprintf(`{"date":"%s","Min":%d,"Avg":%d,"Max":%d}`, at(i), 60+i, 61+i, 62+i)
			},
			[]string{`{}`, `null`, `[]`, `7`, `"x"`, `{"date":7,"Avg":70}`, `{"date":"x","Avg":70}`, `{"date":"2026-04-18 08:00:03 +0200","Avg":"many"}`, `{"date":"2026-04-18 08:00:03 +0200","Avg":NaN}`, `{"date":"2026-04-18 08:00:03 +0200","Avg":61,5}`, `{"date":"2026-04-18 08:00:03","Avg":70}`, `{"date":"2099-04-18 08:00:03 +0200","Avg":70}`, `{"date":"1980-04-18 08:00:03 +0200","Avg":70}`, `{"date":"2026-04-18 08:00:03 +0200"}`},
			`{"data":{"metrics":[{"name":"heart_rate","units":"bpm","data":[%s]}]}}`,
		},
		{
			func(i int) string { return fmt.Sprintf(`{"date":"%s","qty":%d}`, at(i), i) },
			[]string{`{"date":"2026-04-18 08:00:13 +0200","qty":7}`, `{"date":"2026-04-18 08:00:00 +0200"}`},
			`{"data":{"metrics":[{"name":"step_count","units":"count","data":[%s]}]}}`,
		},
		{
			func(i int) string {
				return fmt.Sprintf(`{"date":"%s","qty":%d}`, race.Truncate(time.Hour).Add(time.Duration(i+1)*time.Hour).Format("2006-01-02 15:04:05 -0700"), i)
			},
			[]string{`{"date":"2026-04-18 08:00:13 +0200","qty":7}`, `{"date":"2026-04-18 08:13:00 +0200","qty":7}`},
			`{"data":{"metrics":[{"name":"step_count","units":"count","data":[%s]}]}}`,
		},
		{
			func(i int) string {
				return fmt.Sprintf(`{"name":"step_count","units":"count","data":[{"date":"%s","qty":%d}]}`, at(i), i)
			},
			[]string{`{"data":7}`, `[]`, `7`, `{"name":"step_count","units":"furlong","data":[{"date":"2026-04-18 08:07:00 +0200","qty":7}]}`, `{"name":"step_count","data":[7]}`, `{"name":"unknown","data":[{}]}`},
			`{"data":{"metrics":[%s]}}`,
		},
		{
			func(i int) string {
				return fmt.Sprintf(`{"id":"w%d","name":"Running","start":"%s","end":"%s","distance":{"qty":%d,"units":"m"}}`, i, at(10*i), at(10*i+5), 100+i)
			},
			[]string{`{}`, `null`, `7`, `{"start":7}`, `{"start":"x","end":"y"}`, `{"start":"2026-04-18 09:00:00 +0200","end":"2026-04-18 08:00:00 +0200"}`, `{"id":[7],"start":"2026-04-18 08:00:00 +0200","end":"2026-04-18 09:00:00 +0200"}`},
			`{"data":{"workouts":[%s]}}`,
		},
	}
	for c := range prove.Sequential(300, 300, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 4))
		f := lists[c%len(lists)]
		items := make([]string, 3+random.IntN(20))
		for i := range items {
			items[i] = f.good(i)
		}
		want, _, err := importBytes(t, fmt.Appendf(nil, f.wrap, strings.Join(items, ",")), nil)
		require.NoError(t, err)
		bad := f.bad[random.IntN(len(f.bad))]
		got, rep, err := importBytes(t, fmt.Appendf(nil, f.wrap, strings.Join(slices.Insert(items, random.IntN(len(items)+1), bad), ",")), nil)
		require.NoError(t, err, "case %d: %q", c, bad)
		require.True(t, reflect.DeepEqual(want.samples, got.samples), "case %d: %q", c, bad)
		require.True(t, reflect.DeepEqual(want.summaries, got.summaries), "case %d: %q", c, bad)
		require.NotEmpty(t, rep.Skipped, "case %d: it is told: %q", c, bad)
	}
}

func FuzzJSONExport(f *testing.F) {
	f.Add([]byte(testdata(f, "healthautoexport", phoneAppFile)))
	for _, name := range garminNames {
		f.Add([]byte(testdata(f, "garmin", filepath.Base(name))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, err := importBytes(t, data, &fileimport.Options{MaxPoints: 2000, MaxArchiveBytes: 1 << 20})
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	})
}
