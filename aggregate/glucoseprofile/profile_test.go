package glucoseprofile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

var sensor = healthdata.SeriesKey{Resource: "glucose", Provider: "acme_cgm", SourceType: healthdata.SourceAutomatic}

var to = healthlab.Date{Year: 2026, Month: 3, Day: 31}

// profile asks over samples, on the clock of UTC.
func profile(t require.TestingT, q glucoseprofile.Question, samples ...series.Sample) glucoseprofile.Profile {
	p := queryoracle.NewPerson()
	if len(samples) > 0 {
		p.Measure(t, sensor, series.PerFiveMinutes, false, samples...)
	}
	s, err := aggregate.New(p, nil)
	require.NoError(t, err)
	out, err := glucoseprofile.Of(contextOf(t), s, queryoracle.Team, queryoracle.User, q)
	require.NoError(t, err)
	return out
}

// days are readings every five minutes of n days that end with to.
func days(n int, value func(day, slot int) float64) (out []series.Sample) {
	first := to.AddDays(1 - n).At(time.UTC)
	for d := range n {
		for i := range 288 {
			out = append(out, series.Sample{Time: first.AddDate(0, 0, d).Add(time.Duration(i) * 5 * time.Minute).UnixMicro(), Value: value(d, i)})
		}
	}
	return out
}

func Example() {
	samples := days(14, func(day, slot int) float64 { return 5 + float64(slot/96)*2 + float64(day%2) })
	p := profile(failing{}, glucoseprofile.Question{To: to}, samples...)
	fmt.Printf("%s to %s: %d readings on %d days, mean %.1f %s, GMI %.1f %%, in range %.0f %%\n", p.From, p.To, p.Readings, p.DaysWithReadings, *p.Mean, p.Unit, *p.GMI, *p.Bands[2].Percent)
	fmt.Printf("at noon the median is %.1f\n", *p.Clock[48].P50)
	// Output:
	// 2026-03-18 to 2026-03-31: 4032 readings on 14 days, mean 7.5 mmol/L, GMI 6.5 %, in range 100 %
	// at noon the median is 7.5
}

// Percentiles by the time of day equal those of a loop over all readings, in both units.
func TestProfile_percentilesByTimeOfDayEqualANaiveComputation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	samples := days(20, func(int, int) float64 { return 3 + 12*random.Float64() })
	for _, unit := range glucoseprofile.Units() {
		factor := map[glucoseprofile.Unit]float64{glucoseprofile.Millimoles: 1, glucoseprofile.Milligrams: 18.0182}[unit]
		p := profile(t, glucoseprofile.Question{To: to, Days: 20, Unit: unit}, samples...)
		require.Equal(t, int64(20*288), p.Readings)
		require.Equal(t, 20, p.DaysWithReadings)
		require.Len(t, p.Clock, glucoseprofile.Quarters)
		for k, c := range p.Clock {
			require.Equal(t, 15*k, c.Minute)
			below := map[float64]int{}
			n := 0
			for i, s := range samples {
				if i%288/3 != k {
					continue
				}
				n++
				for at, limit := range map[float64]*float64{5: c.P5, 25: c.P25, 50: c.P50, 75: c.P75, 95: c.P95} {
					if s.Value*factor <= *limit+1e-9 {
						below[at]++
					}
				}
			}
			require.Equal(t, 60, n)
			for at, count := range below {
				require.InDelta(t, at/100*59, float64(count-1), 1, "%v %% of quarter %d", at, k)
			}
		}
		require.Len(t, p.Daily, 14)
		require.Equal(t, to.AddDays(-13), p.Daily[0].Date)
		last := samples[19*288+3 : 19*288+6]
		require.InDelta(t, factor*(last[0].Value+last[1].Value+last[2].Value)/3, *p.Daily[13].Means[1], 1e-9)
		sum := 0.0
		for _, b := range p.Bands {
			sum += *b.Percent
		}
		require.InDelta(t, 100, sum, 1e-9)
	}
}

// Ends of bands are those that the consensus prints in the unit.
func TestProfile_bandLimitsAreThoseOfTheUnit(t *testing.T) {
	for unit, want := range map[glucoseprofile.Unit][2]float64{glucoseprofile.Millimoles: {3.9, 10}, glucoseprofile.Milligrams: {70, 180}} {
		p := profile(t, glucoseprofile.Question{To: to, Unit: unit}, days(1, func(int, int) float64 { return 7 })...)
		require.Equal(t, aggregate.InTarget, p.Bands[2].Name)
		require.Equal(t, want, [2]float64{*p.Bands[2].Low, *p.Bands[2].High})
		require.Nil(t, p.Bands[0].Low)
		require.Nil(t, p.Bands[4].High)
	}
}

// No data is null, and never 0.
func TestProfile_withoutReadingsIsNullNotZero(t *testing.T) {
	p := profile(t, glucoseprofile.Question{To: to})
	require.Zero(t, p.Readings)
	require.Nil(t, p.Mean)
	require.Nil(t, p.Clock[0].P50)
	require.Nil(t, p.Bands[2].Percent)
	require.Len(t, p.Daily, 14)
	one := profile(t, glucoseprofile.Question{To: to, Days: 1}, series.Sample{Time: to.At(time.UTC).Add(100 * time.Minute).UnixMicro(), Value: 6})
	require.InDelta(t, 6, *one.Clock[6].P5, 1e-12)
	require.InDelta(t, 6, *one.Clock[6].P95, 1e-12)
	require.Nil(t, one.Clock[7].P50)
	require.Nil(t, one.CV)
}

func TestProfile_refusesInvalidDaysUnitsAndUsers(t *testing.T) {
	s, err := aggregate.New(queryoracle.NewPerson(), nil)
	require.NoError(t, err)
	for _, q := range []glucoseprofile.Question{{}, {To: to, Days: 91}, {To: to, Days: -1}, {To: to, Unit: "mol"}} {
		_, err := glucoseprofile.Of(t.Context(), s, queryoracle.Team, queryoracle.User, q)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	_, err = glucoseprofile.Of(t.Context(), s, queryoracle.Team, healthlab.UserID{}, glucoseprofile.Question{To: to})
	require.ErrorIs(t, err, healthlab.NotFound)
}

// failing fails an example.
type failing struct{}

func (failing) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (failing) FailNow()                          { panic("example failed") }

func contextOf(t require.TestingT) context.Context {
	if of, ok := t.(*testing.T); ok {
		return of.Context()
	}
	return context.Background()
}
