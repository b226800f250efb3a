package aggregate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

var sensor = key("glucose", "acme_cgm", healthdata.SourceAutomatic, "")

// mgdL returns a value in the unit that is stored, as an upload is converted.
func mgdL(v float64) float64 {
	mmol, ok := healthdata.ResourceBySlug("glucose").Convert(v, "mg/dL", "")
	if !ok {
		panic("mg/dL is not converted")
	}
	return mmol
}

// readings are values in mg/dL from 8:00 on, five minutes apart; NaN is a reading that is missing.
func readings(values ...float64) (out []series.Sample) {
	for i, v := range values {
		if !math.IsNaN(v) {
			out = append(out, series.Sample{Time: at("2026-03-01T08:00:00Z") + int64(i)*5*time.Minute.Microseconds(), Value: mgdL(v)})
		}
	}
	return out
}

func several(n int, values ...float64) (out []float64) {
	for range n {
		out = append(out, values...)
	}
	return out
}

// measured asks for one function over readings of some days.
func measured(t *testing.T, a aggregate.Aggregate, samples ...series.Sample) any {
	t.Helper()
	p := queryoracle.NewPerson()
	if len(samples) > 0 {
		p.Measure(t, sensor, series.PerFiveMinutes, false, samples...)
	}
	out, err := service(t, p, nil).Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(30, date("2026-03-30")), aggregate.Query{Select: []aggregate.Expr{a}}))
	require.NoError(t, err)
	return out.Frames[0].Columns[1].Value(0)
}

func requireMeasure(t *testing.T, want any, a aggregate.Aggregate, samples ...series.Sample) {
	t.Helper()
	got := measured(t, a, samples...)
	if f, ok := want.(float64); ok {
		require.InDelta(t, f, got, 1e-6)
		return
	}
	require.Equal(t, want, got)
}

func glucose(f aggregate.Func) aggregate.Aggregate { return f.Of(aggregate.Samples("glucose")) }

// The table of Bergenstal et al. 2018: mean glucose in mg/dL and the indicator in percent.
func TestGMI_equalsThePublishedTable(t *testing.T) {
	for mean, want := range map[float64]float64{
		100: 5.7, 125: 6.3, 150: 6.9, 175: 7.5, 200: 8.1, 225: 8.7, 250: 9.3, 275: 9.9, 300: 10.5, 350: 11.7,
	} {
		v := measured(t, glucose(aggregate.GMI), readings(mean-20, mean+20)...)
		require.InDelta(t, want, math.Round(v.(float64)*10)/10, 1e-9, mean)
		require.InDelta(t, 3.31+0.02392*mean, v, 1e-9)
	}
}

// Kovatchev et al. 1997: the transformed scale has 0 at 112.5 mg/dL, and a risk of 100 at 20 and
// at 600 mg/dL; the paper's parameters have three decimals.
func TestGlucoseRiskIndexes_equalThePublishedScale(t *testing.T) {
	for _, c := range []struct{ value, low, high, off float64 }{
		{112.5, 0, 0, 1e-3}, {20, 100, 0, 0.1}, {600, 0, 100, 0.1},
	} {
		require.InDelta(t, c.low, measured(t, glucose(aggregate.LBGI), readings(c.value)...), c.off)
		require.InDelta(t, c.high, measured(t, glucose(aggregate.HBGI), readings(c.value)...), c.off)
	}
	values := []float64{40, 55, 70, 112, 113, 181, 250, 400}
	low, high := 0.0, 0.0
	for _, v := range values {
		f := 1.509 * (math.Pow(math.Log(v), 1.084) - 5.381)
		low += 10 * math.Pow(min(f, 0), 2) / float64(len(values))
		high += 10 * math.Pow(max(f, 0), 2) / float64(len(values))
	}
	requireMeasure(t, low, glucose(aggregate.LBGI), readings(values...)...)
	requireMeasure(t, high, glucose(aggregate.HBGI), readings(values...)...)
	// f has no value up to 1 mg/dL.
	requireMeasure(t, low, glucose(aggregate.LBGI), append(readings(values...), series.Sample{Time: at("2026-03-02T08:00:00Z"), Value: 0.05})...)
	requireMeasure(t, nil, glucose(aggregate.HBGI), series.Sample{Time: at("2026-03-02T08:00:00Z"), Value: 0.05})
}

// Each number that a meter shows, in either unit, is in the band in which the consensus prints
// it.
func TestGlucoseBands_agreeInBothUnits(t *testing.T) {
	share := func(band aggregate.Band, v float64) float64 {
		return measured(t, aggregate.TimeInRange.In(band), series.Sample{Time: at("2026-03-01T08:00:00Z"), Value: v}).(float64)
	}
	within := func(v float64, low, high *float64) bool {
		return (low == nil || v >= *low) && (high == nil || v <= *high)
	}
	float := func(v *int) *float64 {
		if v == nil {
			return nil
		}
		return ptr(float64(*v))
	}
	bands := aggregate.Describe().Bands
	require.Len(t, bands, 9)
	for _, b := range bands {
		for v := 20; v <= 500; v++ {
			if v > 80 && v < 130 || v > 260 && v%20 != 0 {
				continue // far from every end
			}
			want := 0.0
			if within(float64(v), float(b.Low), float(b.High)) {
				want = 100
			}
			require.InDelta(t, want, share(b.Name, mgdL(float64(v))), 0, "%d mg/dL, %s", v, b.Name)
		}
		for tenths := 20; tenths <= 160; tenths++ {
			v, want := float64(tenths)/10, 0.0
			if within(v, b.LowMmol, b.HighMmol) {
				want = 100
			}
			require.InDelta(t, want, share(b.Name, v), 0, "%.1f mmol/L, %s", v, b.Name)
		}
	}
}

// A band counts readings, whatever lies between them.
func TestGlucoseBands_countReadingsNotTime(t *testing.T) {
	gap := append(readings(100, 200), series.Sample{Time: at("2026-03-01T20:00:00Z"), Value: mgdL(50)}, series.Sample{Time: at("2026-03-02T20:00:00Z"), Value: mgdL(60)})
	requireMeasure(t, 25.0, aggregate.TimeInRange.In(aggregate.InTarget), gap...)
	requireMeasure(t, 50.0, aggregate.TimeInRange.In(aggregate.BelowRange), gap...)
	requireMeasure(t, nil, aggregate.TimeInRange.In(aggregate.BelowRange))
}

// Klonoff et al. 2023: GRI = 3.0 VLow + 2.4 Low + 1.6 VHigh + 0.8 High, at most 100.
func TestGRI_equalsThePublishedFormula(t *testing.T) {
	day := slices.Concat(several(1, 50), several(4, 60), several(70, 100), several(20, 200), several(5, 300))
	requireMeasure(t, 3.0*1+2.4*4+1.6*5+0.8*20, glucose(aggregate.GRI), readings(day...)...)
	requireMeasure(t, 0.0, glucose(aggregate.GRI), readings(100)...)
	requireMeasure(t, 100.0, glucose(aggregate.GRI), readings(several(9, 300)...)...)
	requireMeasure(t, nil, glucose(aggregate.GRI))
}

func TestCV_isNullForOneReading(t *testing.T) {
	requireMeasure(t, 100*math.Sqrt(1000)/120, glucose(aggregate.CV), readings(80, 100, 120, 140, 160)...)
	requireMeasure(t, nil, glucose(aggregate.CV), readings(100)...)
	requireMeasure(t, 0.0, glucose(aggregate.CV), readings(100, 100)...)
}

// The deviation of a series of excursions between 80 and 180 is about half of their height.
func TestMAGE_isTheMeanHeightOfLargeExcursions(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   any // mg/dL
	}{
		{"rises first", []float64{80, 130, 180, 130, 80, 130, 170}, 95.0},                          // 100 and 90
		{"falls first", []float64{180, 130, 80, 130, 170, 130, 85}, 92.5},                          // 100 and 85
		{"a small turn is part of an excursion", []float64{80, 120, 110, 180, 90, 100, 80}, 100.0}, // 80 to 180
		{"no value moves", []float64{100, 100, 100}, nil},
		{"one value", []float64{100}, nil},
		{"nothing", nil, nil},
		{"a turn of exactly one deviation does not count", []float64{100, 100}, nil},
		{"two values", []float64{100, 150}, 50.0},
	} {
		want := c.want
		if f, ok := want.(float64); ok {
			want = mgdL(f)
		}
		t.Run(c.name, func(t *testing.T) { requireMeasure(t, want, glucose(aggregate.MAGE), readings(c.values...)...) })
	}
	// A gap of three hours is bridged: 80 to 190. Over a longer one no excursion goes on: 80 to
	// 170, and 150 to 190.
	for gap, want := range map[time.Duration]float64{3 * time.Hour: 110, 3*time.Hour + time.Second: 90} {
		samples := readings(80, 170, 150, 190)
		for i := range samples[2:] {
			samples[2+i].Time += (gap - 5*time.Minute).Microseconds()
		}
		requireMeasure(t, mgdL(want), glucose(aggregate.MAGE), samples...)
	}
}

func TestMODD_comparesReadingsADayApart(t *testing.T) {
	at8 := func(day int, after time.Duration, v float64) series.Sample {
		return series.Sample{Time: at("2026-03-01T08:00:00Z") + int64(day)*24*time.Hour.Microseconds() + after.Microseconds(), Value: mgdL(v)}
	}
	requireMeasure(t, mgdL(20), glucose(aggregate.MODD), at8(0, 0, 100), at8(0, 5*time.Minute, 100), at8(1, 0, 110), at8(1, 5*time.Minute, 130))
	// The nearest of the day before, up to 7.5 minutes away; the earlier of two.
	half := 7*time.Minute + 30*time.Second
	requireMeasure(t, mgdL(10), glucose(aggregate.MODD), at8(0, 0, 100), at8(0, 15*time.Minute, 150), at8(1, half, 110))
	requireMeasure(t, nil, glucose(aggregate.MODD), at8(0, 0, 100), at8(1, half+time.Second, 110))
	requireMeasure(t, nil, glucose(aggregate.MODD), at8(0, 0, 100), at8(0, time.Hour, 110))
	// A day without readings is not bridged.
	requireMeasure(t, nil, glucose(aggregate.MODD), at8(0, 0, 100), at8(2, 0, 110))
	// Clock times count, over a change of the clock.
	winter, summer := at8(0, 0, 100), at8(1, -time.Hour, 130)
	winter.Attrs.Offset, summer.Attrs.Offset = 3600, 7200
	requireMeasure(t, mgdL(30), glucose(aggregate.MODD), winter, summer)
}

// The worked example of Danne et al. as implementations print it: of 0, 5, 10 and 15 minutes
// one is missing.
func TestSensorActive_isTheShareOfExpectedReadings(t *testing.T) {
	none := math.NaN()
	requireMeasure(t, 75.0, glucose(aggregate.SensorActive), readings(100, none, 100, 100)...)
	requireMeasure(t, 100.0, glucose(aggregate.SensorActive), readings(100, 100, 100)...)
	requireMeasure(t, 50.0, glucose(aggregate.SensorActive), readings(slices.Concat(several(6, 100), several(11, none), several(5, 100))...)...)
	requireMeasure(t, nil, glucose(aggregate.SensorActive), readings(100)...)
	requireMeasure(t, nil, glucose(aggregate.SensorActive), readings(100, none, none, none, 100)...) // every 20 minutes
	requireMeasure(t, 100.0, glucose(aggregate.SensorActive), readings(100, none, none, 100)...)     // every 15 minutes
}

func TestEpisodes_areCountedAfter15MinutesOutsideTheBand(t *testing.T) {
	none := math.NaN()
	fine := several(10, 100)
	for _, c := range []struct {
		name   string
		band   aggregate.Band
		values []float64
		want   any
	}{
		{"three readings of five minutes last 15", aggregate.BelowRange, slices.Concat(fine, several(3, 60), fine), int64(1)},
		{"two last 10", aggregate.BelowRange, slices.Concat(fine, several(2, 60), fine), int64(0)},
		{"70 is not below range", aggregate.BelowRange, slices.Concat(fine, several(5, 70), fine), int64(0)},
		{"180 is not above range", aggregate.AboveRange, slices.Concat(fine, several(5, 180), fine), int64(0)},
		{"181 is", aggregate.AboveRange, slices.Concat(fine, several(5, 181), fine), int64(1)},
		{"a return of 10 minutes ends none", aggregate.BelowRange, slices.Concat(fine, several(3, 60), several(2, 100), several(3, 60), fine), int64(1)},
		{"a return of 15 minutes does", aggregate.BelowRange, slices.Concat(fine, several(3, 60), several(3, 100), several(3, 60), fine), int64(2)},
		{"stretches do not add up before an episode begins", aggregate.BelowRange, slices.Concat(fine, several(2, 60), several(1, 100), several(2, 60), fine), int64(0)},
		{"both levels are below range", aggregate.BelowRange, slices.Concat(fine, several(2, 60), several(2, 50), fine), int64(1)},
		{"the lower level has its own", aggregate.VeryLow, slices.Concat(fine, several(2, 60), several(2, 50), fine), int64(0)},
		{"very high", aggregate.VeryHigh, slices.Concat(fine, several(3, 251), fine), int64(1)},
		{"at both ends", aggregate.AboveRange, slices.Concat(several(3, 200), fine, several(3, 200)), int64(2)},
		{"a gap of 15 minutes more than usual is bridged", aggregate.BelowRange, slices.Concat(fine, several(1, 60), several(3, none), several(1, 60), fine), int64(1)},
		{"a longer one is not", aggregate.BelowRange, slices.Concat(fine, several(2, 60), several(4, none), several(2, 60), fine), int64(0)},
		{"a gap ends an episode", aggregate.BelowRange, slices.Concat(fine, several(3, 60), several(4, none), several(3, 60), fine), int64(2)},
		{"one reading before a gap", aggregate.BelowRange, slices.Concat(fine, several(1, 60), several(50, none), fine), int64(0)},
		{"none", aggregate.BelowRange, fine, int64(0)},
		{"one reading says nothing", aggregate.BelowRange, several(1, 60), nil},
		{"no data is not 0", aggregate.BelowRange, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) { requireMeasure(t, c.want, aggregate.Episodes.In(c.band), readings(c.values...)...) })
	}
	// Clocks of sensors are not exact.
	late := readings(slices.Concat(fine, several(3, 60), fine)...)
	for i := range late {
		late[i].Time -= int64(i) * time.Second.Microseconds()
	}
	requireMeasure(t, int64(1), aggregate.Episodes.In(aggregate.BelowRange), late...)
	// Fingersticks are no sensor.
	sticks := readings(100, 60, 60, 100)
	for i := range sticks {
		sticks[i].Time += int64(i) * time.Hour.Microseconds()
	}
	requireMeasure(t, nil, aggregate.Episodes.In(aggregate.BelowRange), sticks...)
}

// Readings of one instant count as their mean where time matters.
func TestGlucoseFunctions_readingsOfOneInstantAreAveraged(t *testing.T) {
	p := queryoracle.NewPerson()
	other := key("glucose", "acme_meter", healthdata.SourceAutomatic, "")
	p.Measure(t, sensor, series.PerFiveMinutes, false, readings(100, 100, 60, 60, 60, 100, 100)...)
	p.Measure(t, other, series.PerFiveMinutes, false, readings(100, 100, 90, 90, 90, 100, 100)...)
	req := aggregate.Ask(aggregate.Last(1, date("2026-03-01")), aggregate.Query{Select: []aggregate.Expr{
		aggregate.Episodes.In(aggregate.BelowRange), glucose(aggregate.MAGE), glucose(aggregate.SensorActive),
	}})
	for policy, want := range map[aggregate.OverlapPolicy][]any{
		aggregate.MergeSources: {int64(1), mgdL(40), 100.0}, aggregate.AllSources: {int64(0), mgdL(25), 100.0},
	} {
		req.Config.OverlapPolicy = policy
		out, err := service(t, p, nil).Query(t.Context(), team, user, req)
		require.NoError(t, err)
		f := &out.Frames[0]
		require.Equal(t, want[0], f.Columns[1].Value(0), policy)
		require.InDelta(t, want[1], f.Columns[2].Value(0), 1e-9, policy)
		require.InDelta(t, want[2], f.Columns[3].Value(0), 1e-9, policy)
	}
}

// glucoseFunctions are all functions for glucose.
func glucoseFunctions() (out []aggregate.Aggregate) {
	for _, f := range []aggregate.Func{
		aggregate.GMI, aggregate.CV, aggregate.GRI, aggregate.LBGI, aggregate.HBGI, aggregate.MAGE, aggregate.MODD, aggregate.SensorActive,
	} {
		out = append(out, glucose(f))
	}
	return append(out, aggregate.TimeInRange.In(aggregate.InTarget), aggregate.Episodes.In(aggregate.AboveRange))
}

// Storage decides nothing: a log of segments gives what chunks give, and each week asked alone
// what weeks in a group give. Values that are kept are limited.
func TestGlucoseFunctions_groupedWeeksEqualSeparateQueries(t *testing.T) {
	year := yearOfGlucose(28 * 288)
	var frames []aggregate.Frame
	for _, inLog := range []bool{false, true} {
		p := queryoracle.NewPerson()
		p.Measure(t, sensor, series.PerFiveMinutes, inLog, year...)
		q := aggregate.Query{GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))}}
		for _, a := range glucoseFunctions() {
			q.Select = append(q.Select, a)
		}
		s := service(t, p, nil)
		out, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(28, date("2026-02-01")), q))
		require.NoError(t, err)
		frames = append(frames, out.Frames[0])
		require.Equal(t, 4, out.Frames[0].Len())
		q.GroupBy = nil
		for week := range 4 {
			alone, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(7, date("2026-01-11").AddDays(7*week)), q))
			require.NoError(t, err)
			for i, c := range alone.Frames[0].Columns[1:] {
				require.NotNil(t, c.Value(0), c.Name)
				require.Equal(t, c.Value(0), out.Frames[0].Columns[i+1].Value(week), c.Name)
			}
		}
		_, err = service(t, p, &aggregate.Options{Limits: aggregate.Limits{Values: 1000}}).Query(t.Context(), team, user,
			aggregate.Ask(aggregate.Last(28, date("2026-02-01")), aggregate.Query{Select: []aggregate.Expr{glucose(aggregate.MAGE)}}))
		require.Equal(t, []string{"too_many_values at queries.0"}, faults(t, err))
	}
	require.Equal(t, frames[0], frames[1])
}

// yearOfGlucose is readings every five minutes from 2026-01-05 on.
func yearOfGlucose(n int) []series.Sample {
	r := rand.New(rand.NewPCG(1, 2))
	v := 120.0
	return tick("2026-01-05T00:00:00Z", n, 5*time.Minute, 0, func(i int) float64 {
		v = min(max(v+r.NormFloat64()*6+(125-v)*0.02, 40), 400)
		return mgdL(math.Round(v))
	})
}

// BenchmarkGlucose asks for each function over a year of readings every five minutes. The bar
// is 10 ms.
func BenchmarkGlucose(b *testing.B) {
	p := queryoracle.NewPerson()
	p.Measure(b, sensor, series.PerFiveMinutes, false, yearOfGlucose(365*288)...)
	s := service(b, p, &aggregate.Options{Parallel: 1})
	for _, a := range glucoseFunctions() {
		req := aggregate.Ask(aggregate.Timeframe{Anchor: date("2027-01-10"), Past: aggregate.Years(2)}, aggregate.Query{Select: []aggregate.Expr{a}})
		b.Run(string(a.Func), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Query(b.Context(), team, user, req)
				require.NoError(b, err)
			}
		})
	}
}
