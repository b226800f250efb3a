package aggregate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// Sixteen readings of two days, worked by hand from the formulas of the papers that docs/concepts/glucose.md
// names. The readings in mg/dL:
//
//	50 100 150 200 260 120  60 100
//	60 110 140 220 250 100  80 120
//
// Their sum is 2120 and their mean 132.5; the sum of the squared distances from it is 66,700, so the standard
// deviation is the root of 66,700 / 15, 66.683331.
func TestGlucoseFunctions_equalTheExampleWorkedByHand(t *testing.T) {
	first := readings(50, 100, 150, 200, 260, 120, 60, 100)
	second := readings(60, 110, 140, 220, 250, 100, 80, 120)
	for i := range second {
		second[i].Time += 24 * time.Hour.Microseconds()
	}
	both := append(first, second...)
	for name, c := range map[string]struct {
		of   aggregate.Aggregate
		want float64
	}{
		// 3.31 + 0.02392 * 132.5
		"gmi": {glucose(aggregate.GMI), 6.4794},
		// 100 * 66.683331 / 132.5
		"cv": {glucose(aggregate.CV), 50.327042},
		// Nine of sixteen are from 70 to 180.
		"time in range": {aggregate.TimeInRange.In(aggregate.InTarget), 56.25},
		// One is below 54, two from 54 to 69, three from 181 to 250, one above: 100/16 * (3.0 + 2 * 2.4 + 3 * 0.8 + 1.6).
		"gri": {glucose(aggregate.GRI), 73.75},
		// Over one deviation: up 50 to 260, down 260 to 60; after the night up 60 to 250, down 250 to 80. The first
		// is a rise, so (210 + 190) / 2 = 200 mg/dL, by 18.0182.
		"mage": {glucose(aggregate.MAGE), 11.099887891},
		// (10 + 10 + 10 + 20 + 10 + 20 + 20 + 20) / 8 = 15 mg/dL, by 18.0182.
		"modd": {glucose(aggregate.MODD), 0.832491592},
		// 10 f² of 50: 22.500445; of 60, twice: 13.570602; of 80: 4.015354; of 100, three times: 0.482051;
		// of 110: 0.017775. Their sum by 16.
		"lbgi": {glucose(aggregate.LBGI), 3.445058239},
		// 10 f² of 120, twice: 0.144131; of 140: 1.664988; of 150: 2.885654; of 200: 11.604748; of 220:
		// 15.793741; of 250: 22.436200; of 260: 24.710297. Their sum by 16.
		"hbgi": {glucose(aggregate.HBGI), 4.961493180},
	} {
		t.Run(name, func(t *testing.T) { requireMeasure(t, c.want, c.of, both...) })
	}
}

// excursionsByElimination is mage in the way of Baghurst, Diabetes Technol Ther 2011;13:296-302: what is no local
// extreme goes, then the smallest swing of up to one deviation, until all that are left are larger. Of these,
// the mean height of those in the direction of the first, over all stretches without a gap.
func excursionsByElimination(list []series.Sample) (mage float64, ok bool) {
	sum, squares := 0.0, 0.0
	for _, s := range list {
		sum += s.Value
	}
	mean := sum / float64(len(list))
	for _, s := range list {
		squares += (s.Value - mean) * (s.Value - mean)
	}
	deviation := math.Sqrt(squares / float64(len(list)-1))

	var swings []float64
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].Time-list[to-1].Time <= 3*time.Hour.Microseconds() {
			to++
		}
		var turns []float64
		for _, s := range list[from:to] {
			turns = append(turns, s.Value)
		}
		turns = extremes(turns)
		for len(turns) > 1 {
			at, least := 0, math.Inf(1)
			for i := 1; i < len(turns); i++ {
				if swing := math.Abs(turns[i] - turns[i-1]); swing < least {
					at, least = i, swing
				}
			}
			if least > deviation {
				break
			}
			switch at { // a swing at an end has one turning point that is no extreme without it
			case 1:
				turns = turns[1:]
			case len(turns) - 1:
				turns = turns[:at]
			default:
				turns = slices.Delete(turns, at-1, at+1)
			}
			turns = extremes(turns)
		}
		for i := 1; i < len(turns); i++ {
			swings = append(swings, turns[i]-turns[i-1])
		}
		from = to
	}
	if len(swings) == 0 {
		return 0, false
	}
	total, n := 0.0, 0
	for _, s := range swings {
		if s > 0 == (swings[0] > 0) {
			total += math.Abs(s)
			n++
		}
	}
	return total / float64(n), true
}

// extremes keeps both ends and the local extremes.
func extremes(values []float64) (out []float64) {
	values = slices.Compact(values)
	for i, v := range values {
		if i == 0 || i == len(values)-1 || v > values[i-1] == (v > values[i+1]) {
			out = append(out, v)
		}
	}
	return out
}

// Two ways to find excursions agree on random days: walks, noise, steps and steady values, with gaps.
func TestMAGE_twoMethodsAgreeOnRandomDays(t *testing.T) {
	const daysAtOnce = 100
	random := rand.New(rand.NewPCG(46, 1))
	for range prove.Count(3, 100) {
		var all []series.Sample
		var days [][]series.Sample
		for day := range daysAtOnce {
			trace := randomTrace(random, at("2026-03-01T00:00:00Z")+int64(day)*24*time.Hour.Microseconds())
			days, all = append(days, trace), append(all, trace...)
		}
		p := queryoracle.NewPerson()
		p.Measure(t, sensor, series.PerFiveMinutes, false, all...)
		q := aggregate.Query{Select: []aggregate.Expr{glucose(aggregate.MAGE)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}}
		out, err := service(t, p, nil).Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(daysAtOnce, date("2026-03-01").AddDays(daysAtOnce-1)), q))
		require.NoError(t, err)
		f := &out.Frames[0]
		require.Equal(t, daysAtOnce, f.Len())
		for day, trace := range days {
			got := f.Columns[len(f.Columns)-1].Value(day)
			want, ok := excursionsByElimination(trace)
			if !ok {
				require.Nil(t, got)
				continue
			}
			require.InDelta(t, want, got, 1e-6)
		}
	}
}

// randomTrace is up to a day of readings from midnight on.
func randomTrace(random *rand.Rand, midnight int64) (out []series.Sample) {
	kind, noise := random.IntN(4), random.Float64()*40
	v := 60 + random.Float64()*200
	minute := 0
	for i := range 2 + random.IntN(286) {
		switch kind {
		case 0:
			v += random.NormFloat64() * noise
		case 1:
			v = 150 + random.NormFloat64()*noise
		case 2:
			v += float64(random.IntN(3)-1) * 20
		}
		v = min(max(v, 40), 400)
		if i%48 < 40 || random.IntN(2) == 0 {
			out = append(out, series.Sample{Time: midnight + int64(minute)*time.Minute.Microseconds(), Value: mgdL(math.Round(v))})
		}
		minute += 5
		if random.IntN(60) == 0 { // a gap of up to four hours
			minute += random.IntN(240)
		}
		if minute >= 24*60 {
			break
		}
	}
	return out
}
