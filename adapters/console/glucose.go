package console

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// The target range of glucose in mmol/L, and its value in mg/dL. Source: Battelino et al.,
// Clinical Targets for Continuous Glucose Monitoring Data Interpretation, Diabetes Care 2019;42(8).
const (
	targetLow, targetHigh = 3.9, 10.0
	mgPerMmol             = healthdata.GlucoseMilligrams
)

// glucoseProfile is the ambulatory glucose profile of some days: all days laid over one day.
type glucoseProfile struct {
	Chart              *chart
	Below, In, Above   int // percent of the values
	Mean               float64
	Unit, Low, High    string
	Days, ValuesOfDays int
}

// glucoseProfile reads the merged glucose of some days by five minutes; nil if there is none.
func (s *Console) glucoseProfile(r *http.Request, res resource, days rangeOf) (*glucoseProfile, error) {
	merged, err := s.steps(r, userPath(r), res, days, buckets[1], "merge")
	if err != nil {
		return nil, err
	}
	low, high, layout := targetLow, targetHigh, "%.1f"
	if res.Unit() == "mg/dL" {
		low, high, layout = targetLow*mgPerMmol, targetHigh*mgPerMmol, "%.0f"
	}
	p := &glucoseProfile{Unit: res.Unit(), Low: fmt.Sprintf(layout, low), High: fmt.Sprintf(layout, high)}
	var points []point
	seen := map[string]bool{}
	below, above, sum := 0, 0, 0.0
	for i := range merged["index"] {
		at, err := time.Parse(floating, merged.text("index", i))
		v := merged.number(valueColumn(res, res.fields[0]), i)
		if err != nil || math.IsNaN(v) {
			continue
		}
		points = append(points, point{at, v})
		seen[at.Format(time.DateOnly)] = true
		sum += v
		switch {
		case v < low:
			below++
		case v > high:
			above++
		}
	}
	if len(points) == 0 {
		return nil, nil //nolint:nilnil // days without glucose have no profile
	}
	n := len(points)
	p.Days, p.ValuesOfDays, p.Mean = len(seen), n, sum/float64(n)
	p.Below, p.Above = percent(below, n), percent(above, n)
	p.In = 100 - p.Below - p.Above
	lines := overlay(points)
	p.Chart = draw("glucose by time of day", panel{
		title: "glucose (" + p.Unit + ")", low: &low, high: &high,
		bands: []band{
			{name: "5th to 95th percentile", class: "band0", lower: lines[0], upper: lines[4]},
			{name: "25th to 75th percentile", class: "band1", lower: lines[1], upper: lines[3]},
		},
		lines: []line{{name: "median", points: lines[2]}},
	})
	p.Chart.Summary = strings.ReplaceAll(p.Chart.Summary, "2000-01-01 ", "")
	return p, nil
}

func percent(part, of int) int { return int(math.Round(100 * float64(part) / float64(of))) }

// overlay lays days over one day: the percentiles 5, 25, 50, 75 and 95 of each half hour, each as
// a line of 48 points, NaN where no day has a value.
func overlay(points []point) (lines [5][]point) {
	const slots = 48
	var by [slots][]float64
	for _, p := range points {
		i := p.at.Hour()*2 + p.at.Minute()/30
		by[i] = append(by[i], p.value)
	}
	for i, values := range by {
		at := time.Date(2000, 1, 1, i/2, i%2*30, 0, 0, time.UTC)
		slices.Sort(values)
		for k, share := range []float64{.05, .25, .5, .75, .95} {
			v := math.NaN()
			if len(values) > 0 {
				v = values[int(math.Round(share*float64(len(values)-1)))]
			}
			lines[k] = append(lines[k], point{at, v})
		}
	}
	return lines
}
