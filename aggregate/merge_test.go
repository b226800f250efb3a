package aggregate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// sums asks for one sum by day, by week, by month and ungrouped, and returns the total of
// each answer.
func sums(t *testing.T, s *aggregate.Service, value aggregate.Expr, days int64, anchor string, config aggregate.Config) []float64 {
	t.Helper()
	var out []float64
	for _, by := range [][]aggregate.Expr{
		{aggregate.By(aggregate.Hours(1))}, {aggregate.By(aggregate.Days(1))}, {aggregate.By(aggregate.Weeks(1))},
		{aggregate.By(aggregate.Months(1))}, {aggregate.ByPart(aggregate.Weekday)}, nil,
	} {
		req := aggregate.Ask(aggregate.Last(days, date(anchor)), aggregate.Query{Select: []aggregate.Expr{aggregate.Sum.Of(value)}, GroupBy: by})
		req.Config = config
		got, err := s.Query(t.Context(), team, user, req)
		require.NoError(t, err)
		total := 0.0
		column := columnOf(t, &got.Frames[0], "sum")
		for i := range column.Len() {
			total += number(column.Value(i))
		}
		out = append(out, total)
	}
	return out
}

func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	default:
		return 0
	}
}

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// A phone counts 8,000 steps on each of 7 days, a watch 9,000 on the last: 57,000, however
// the question groups them.
func TestMergeSources_totalDoesNotDependOnTheGrouping(t *testing.T) {
	p := queryoracle.NewPerson()
	for d := range 7 {
		from := at(fmt.Sprintf("2026-03-%02dT08:00:00Z", 2+d))
		p.Measure(t, key("steps", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false, series.Sample{Time: from, End: from + 12*3600e6, Value: 8000})
		day := time.Date(2026, 3, 2+d, 0, 0, 0, 0, time.UTC)
		p.Put(t, "activity", "acme_phone", healthdata.SourcePhone, day, 0, &healthdata.Activity{CalendarDate: healthlab.DateOf(day), Steps: ptr(int64(8000)), Distance: ptr(5000.0)})
		if d == 6 {
			p.Measure(t, key("steps", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, series.Sample{Time: from - 3600e6, End: from + 13*3600e6, Value: 9000})
			p.Put(t, "activity", "acme_watch", healthdata.SourceWatch, day, 0, &healthdata.Activity{CalendarDate: healthlab.DateOf(day), Steps: ptr(int64(9000))})
		}
	}
	s := service(t, p, nil)
	require.Equal(t, repeat(57_000, 6), sums(t, s, aggregate.Samples("steps"), 7, "2026-03-08", aggregate.Config{}))
	require.Equal(t, repeat(57_000, 6), sums(t, s, aggregate.Col("activity", "steps"), 7, "2026-03-08", aggregate.Config{}))
	// The watch has no distance: the phone's counts on all days.
	require.Equal(t, repeat(35_000, 6), sums(t, s, aggregate.Col("activity", "distance_meter"), 7, "2026-03-08", aggregate.Config{}))
	phoneFirst := aggregate.Config{ProviderPriorityOverrides: []string{"acme_phone"}}
	require.Equal(t, repeat(56_000, 6), sums(t, s, aggregate.Col("activity", "steps"), 7, "2026-03-08", phoneFirst))
	// The watch keeps the two hours that the phone does not cover.
	require.InDeltaSlice(t, repeat(56_000+9000*2/14.0, 6), sums(t, s, aggregate.Samples("steps"), 7, "2026-03-08", phoneFirst), 1e-6)
	require.Equal(t, []float64{65_000, 65_000, 65_000, 65_000, 65_000, 65_000}, sums(t, s, aggregate.Samples("steps"), 7, "2026-03-08", aggregate.Config{OverlapPolicy: aggregate.AllSources}))
}

func TestMergeSources_betterSourceCoversOverlappingIntervals(t *testing.T) {
	s := service(t, steps(t), nil)
	for _, row := range []struct{ name, query, config, want string }{
		{"by day", `{` + sumSteps + `,` + byDay + `}`, ``, `{"index":["2026-03-01T00:00:00"],"sum":[1400]}`},
		{"ungrouped", `{` + sumSteps + `}`, ``, `{"index":[0],"sum":[1400]}`},
		{"the condition comes first", `{` + sumSteps + `,"where":"source_type != 'watch'"}`, ``, `{"index":[0],"sum":[1350]}`},
		{"an override", `{` + sumSteps + `}`, `"provider_priority_overrides":["p2"]`, `{"index":[0],"sum":[1400]}`},
		{"all", `{` + sumSteps + `}`, `"overlap_policy":"all"`, `{"index":[0],"sum":[2050]}`},
		{
			"by one source column", `{"select":[{"group_key":0},{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],"group_by":[{"source":"source_provider"}]}`, ``,
			`{"index":[0,1],"group_key.0":["p1","p2"],"sum":[1350,50]}`,
		},
		{
			"plain rows", `{"select":[{"timeseries":"steps","field":"value"},{"timeseries":"steps","field":"duration"}]}`, ``,
			`{"index":["2026-03-01T08:00:00","2026-03-01T08:30:00","2026-03-01T09:00:00","2026-03-01T23:30:00"],"steps.value":[450,700,200,50],"steps.duration":[1800,3600,1800,2400]}`,
		},
		{
			"the source is selected", `{"select":[{"source":"source_type"},{"timeseries":"steps","field":"value"}],"where":"index < '2026-03-01T09:00:00'"}`, ``,
			`{"index":["2026-03-01T08:00:00","2026-03-01T08:30:00"],"source_type":["phone","watch"],"steps.value":[900,700]}`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.JSONEq(t, row.want, table(t, s, configured(over("3", "2026-03-02", row.query), row.config)))
		})
	}
}

// An interval of a better source that crosses the border of the window covers what lies
// inside, as it does for a longer window.
func TestMergeSources_intervalAcrossTheWindowEdgeReplacesWorseOnes(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("steps", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false,
		series.Sample{Time: at("2026-03-01T23:00:00Z"), End: at("2026-03-02T01:00:00Z"), Value: 100})
	p.Measure(t, key("steps", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false,
		series.Sample{Time: at("2026-03-02T00:00:00Z"), End: at("2026-03-02T02:00:00Z"), Value: 60})
	s := service(t, p, nil)
	require.JSONEq(t, `{"index":[0],"sum":[30]}`, table(t, s, over("1", "2026-03-02", `{`+sumSteps+`}`)))
	require.JSONEq(t, `{"index":[0],"sum":[130]}`, table(t, s, over("2", "2026-03-02", `{`+sumSteps+`}`)))
}

// For points, the best source of each local hour counts; values that cannot be summed are
// never cut.
func TestMergeSources_pointValuesComeFromTheBestSourceOfEachHour(t *testing.T) {
	p := queryoracle.NewPerson()
	measure := func(resource, provider string, st healthdata.SourceType, list ...series.Sample) {
		p.Measure(t, key(resource, provider, st, ""), series.PerMinute, false, list...)
	}
	point := func(when string, v float64) series.Sample {
		return series.Sample{Time: at(when), Value: v, Attrs: series.Attrs{Offset: 3600}}
	}
	measure("heartrate", "acme_watch", healthdata.SourceWatch, point("2026-03-01T08:10:00Z", 60), point("2026-03-01T10:10:00Z", 62))
	measure("heartrate", "acme_phone", healthdata.SourcePhone, point("2026-03-01T08:50:00Z", 90), point("2026-03-01T09:00:00Z", 70), point("2026-03-01T10:59:00Z", 91))
	measure("body_temperature", "acme_watch", healthdata.SourceWatch, series.Sample{Time: at("2026-03-01T08:00:00Z"), End: at("2026-03-01T09:00:00Z"), Value: 36.5})
	measure("body_temperature", "acme_phone", healthdata.SourcePhone, series.Sample{Time: at("2026-03-01T08:30:00Z"), End: at("2026-03-01T09:30:00Z"), Value: 37})
	s := service(t, p, nil)
	require.JSONEq(t, `{"index":["2026-03-01T09:10:00","2026-03-01T10:00:00","2026-03-01T11:10:00"],"heartrate.value":[60,70,62]}`,
		table(t, s, over("1", "2026-03-01", `{"select":[{"timeseries":"heartrate","field":"value"}]}`)))
	require.JSONEq(t, `{"index":[0],"mean":[36.75]}`,
		table(t, s, over("1", "2026-03-01", `{"select":[{"func":"mean","arg":{"timeseries":"body_temperature","field":"value"}}]}`)))
}

// A session is dropped if a better source's covers more than half of the shorter one.
func TestMergeSources_sessionCoveredByABetterSourceIsDropped(t *testing.T) {
	p := queryoracle.NewPerson()
	night := func(id byte, provider string, st healthdata.SourceType, from, to string) {
		stop := time.UnixMicro(at(to)).UTC()
		sleep := &healthdata.Sleep{BedtimeStart: healthlab.At(time.UnixMicro(at(from))), BedtimeStop: healthlab.At(stop), Type: healthdata.SleepLong,
			CalendarDate: healthlab.DateOf(stop), Duration: (at(to) - at(from)) / 1e6}
		sleep.ID = uuid.UUID{id}
		p.Put(t, "sleep", provider, st, stop, 0, sleep)
	}
	night(1, "acme_watch", healthdata.SourceWatch, "2026-03-01T22:00:00Z", "2026-03-02T06:00:00Z")
	night(2, "northring", healthdata.SourceRing, "2026-03-01T22:30:00Z", "2026-03-02T05:00:00Z") // the same night
	night(3, "northring", healthdata.SourceRing, "2026-03-02T13:00:00Z", "2026-03-02T14:00:00Z") // a nap
	night(4, "acme_phone", healthdata.SourcePhone, "2026-03-02T05:30:00Z", "2026-03-02T07:00:00Z")
	s := service(t, p, nil)
	require.Equal(t, repeat((8+1+1.5)*3600, 6), sums(t, s, aggregate.Col("sleep", "duration_second"), 3, "2026-03-03", aggregate.Config{}))
}

// Sources that tell one session with different offsets tell the same time, also where their local days differ: the one
// that counts is on its own day.
func TestMergeSources_sessionWithAnotherOffsetIsTheSameSession(t *testing.T) {
	columns := map[string]aggregate.Expr{"sleep": aggregate.Col("sleep", "duration_second"), "workout": aggregate.Col("workout", "duration_active_second")}
	for table, column := range columns {
		for _, offsets := range [][2]int{{0, 7200}, {7200, 0}, {-3600, 20700}, {50400, -39600}, {-12600, -12600}} {
			p := queryoracle.NewPerson()
			put := func(id byte, provider string, offset int) {
				from, to := time.UnixMicro(at("2026-03-02T09:00:00Z")).UTC(), time.UnixMicro(at("2026-03-02T11:00:00Z")).UTC()
				day := healthlab.DateOf(to.Add(time.Duration(offset) * time.Second))
				if table == "sleep" {
					v := &healthdata.Sleep{BedtimeStart: healthlab.At(from), BedtimeStop: healthlab.At(to), Type: healthdata.SleepLong, CalendarDate: day, Duration: 7200}
					v.ID = uuid.UUID{id}
					p.Put(t, "sleep", provider, healthdata.SourceWatch, to, offset, v)
					return
				}
				v := &healthdata.Workout{TimeStart: healthlab.At(from), TimeEnd: healthlab.At(to), CalendarDate: day, MovingTime: ptr(int64(7200))}
				v.ID = uuid.UUID{id}
				p.Put(t, "workouts", provider, healthdata.SourceWatch, from, offset, v)
			}
			put(1, "acme_watch", offsets[0])
			put(2, "northring", offsets[1])
			s := service(t, p, nil)
			total := 0.0
			for _, day := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
				total += sums(t, s, column, 1, day, aggregate.Config{})[0]
			}
			require.InDelta(t, 7200, total, 1e-9, "%s with offsets %v, day by day", table, offsets)
			require.InDelta(t, 7200, sums(t, s, column, 3, "2026-03-03", aggregate.Config{})[0], 1e-9, "%s with offsets %v", table, offsets)
		}
	}
}

// Dated summaries are merged column by column; rows of one date that cannot be one row keep
// the columns that they are used for.
func TestMergeSources_datedSummariesMergeByColumn(t *testing.T) {
	p := queryoracle.NewPerson()
	body := func(provider string, st healthdata.SourceType, when string, weight, fat *float64) {
		at := time.UnixMicro(at(when)).UTC()
		p.Put(t, "body", provider, st, at, 0, &healthdata.Body{MeasuredAt: healthlab.At(at), CalendarDate: healthlab.DateOf(at), Weight: weight, Fat: fat})
	}
	body("acme_scale", healthdata.SourceScale, "2026-03-01T07:00:00Z", ptr(70.0), nil)
	body("acme_scale", healthdata.SourceScale, "2026-03-01T19:00:00Z", ptr(71.0), nil)
	body("acme_phone", healthdata.SourcePhone, "2026-03-01T08:00:00Z", ptr(80.0), ptr(20.0))
	body("acme_phone", healthdata.SourcePhone, "2026-03-02T08:00:00Z", ptr(72.0), nil)
	s := service(t, p, nil)
	require.JSONEq(t, `{"index":[0],"count":[3],"mean.weight_kilogram":[71],"mean.fat_mass_percentage":[20]}`, table(t, s, over("3", "2026-03-02",
		`{"select":[{"func":"count","arg":{"index":"body"}},{"func":"mean","arg":{"body":"weight_kilogram"}},{"func":"mean","arg":{"body":"fat_mass_percentage"}}]}`)))
}

func TestExplain_countsUsedAndReplacedSamplesOfEachSource(t *testing.T) {
	s := service(t, steps(t), nil)
	req, err := s.Decode([]byte(configured(over("3", "2026-03-02", `{`+sumSteps+`}`), `"explain":true`)), false)
	require.NoError(t, err)
	out, err := s.Query(t.Context(), team, user, &req)
	require.NoError(t, err)
	e := out.Explain[0]
	require.Equal(t, aggregate.MergeSources, e.OverlapPolicy)
	source := func(provider string, kind healthdata.SourceType) aggregate.Recorder {
		return aggregate.Recorder{Source: aggregate.Source{Provider: provider, Type: kind}}
	}
	watch, phone, other := source("p1", "watch"), source("p1", "phone"), source("p2", "phone")
	require.Equal(t, &aggregate.Merged{
		Shares: []aggregate.Share{
			{Recorder: watch, Resource: "steps", From: "2026-03-01T08:30:00", To: "2026-03-01T09:30:00", Unit: "interval", Count: 1, Used: "all"},
			{Recorder: phone, Resource: "steps", From: "2026-03-01T08:00:00", To: "2026-03-01T10:00:00", Unit: "interval", Count: 2, Used: "part", LostTo: &watch, Rule: "source_type"},
			{Recorder: other, Resource: "steps", From: "2026-03-01T23:30:00", To: "2026-03-02T00:10:00", Unit: "interval", Count: 1, Used: "all"},
		},
		Totals: []aggregate.ShareTotal{{Recorder: watch, Resource: "steps", Used: 1}, {Recorder: phone, Resource: "steps", Part: 2}, {Recorder: other, Resource: "steps", Used: 1}},
	}, e.Merged)
}

// An explanation names the app and the device of what was used, and of what it lost to.
func TestExplain_namesAppAndDeviceOfEachShare(t *testing.T) {
	p := queryoracle.NewPerson()
	watch := uuid.UUID{7}
	of := func(app string, device uuid.UUID) healthdata.SeriesKey {
		k := key("steps", "p1", healthdata.SourceWatch, "")
		k.Origin = healthdata.Origin{App: app, Device: device}
		return k
	}
	walk := func(k healthdata.SeriesKey, from, to string, v float64) {
		p.Measure(t, k, series.PerMinute, false, series.Sample{Time: at(from), End: at(to), Value: v})
	}
	walk(of("com.a", uuid.Nil), "2026-03-01T08:00:00Z", "2026-03-01T08:30:00Z", 1000)
	walk(of("com.b", watch), "2026-03-01T08:01:00Z", "2026-03-01T08:31:00Z", 1010)
	walk(of("com.b", watch), "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 600)
	walk(of("com.b", watch), "2026-03-01T10:10:00Z", "2026-03-01T10:20:00Z", 100)
	req, err := aggregate.Decode([]byte(configured(over("3", "2026-03-02", `{`+sumSteps+`}`), `"explain":true`)))
	require.NoError(t, err)
	out, err := service(t, p, nil).Query(t.Context(), team, user, &req)
	require.NoError(t, err)
	require.InDelta(t, 1000.0/30+1010+500+100, out.Frames[0].Columns[1].Value(0), 1e-9)
	source := aggregate.Source{Provider: "p1", Type: "watch"}
	a, b := aggregate.Recorder{Source: source, AppID: "com.a"}, aggregate.Recorder{Source: source, AppID: "com.b", DeviceID: watch.String()}
	require.Equal(t, &aggregate.Merged{
		Shares: []aggregate.Share{
			{Recorder: a, Resource: "steps", From: "2026-03-01T08:00:00", To: "2026-03-01T08:30:00", Unit: "interval", Count: 1, Used: "part", LostTo: &b, Rule: "origin"},
			{Recorder: b, Resource: "steps", From: "2026-03-01T08:01:00", To: "2026-03-01T08:31:00", Unit: "interval", Count: 1, Used: "all"},
			{Recorder: b, Resource: "steps", From: "2026-03-01T10:00:00", To: "2026-03-01T11:00:00", Unit: "interval", Count: 1, Used: "part", LostTo: &b, Rule: "overlap"},
			{Recorder: b, Resource: "steps", From: "2026-03-01T10:10:00", To: "2026-03-01T10:20:00", Unit: "interval", Count: 1, Used: "all"},
		},
		Totals: []aggregate.ShareTotal{{Recorder: a, Resource: "steps", Part: 1}, {Recorder: b, Resource: "steps", Used: 2, Part: 1}},
	}, out.Explain[0].Merged)
}
