package console

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// glucoseProfile is the ambulatory glucose profile of some days: all days laid over one day. Its
// numbers are those of the query language, and so are the ends of the target range.
type glucoseProfile struct {
	Chart            *chart
	Below, In, Above string // percent of the readings
	Mean, GMI, CV    string
	Unit, Low, High  string
	Days             int
}

// glucoseProfile reads the merged glucose of some days; nil if there is none.
func (s *Console) glucoseProfile(r *http.Request, schema *querySchema, res resource, days rangeOf) (*glucoseProfile, error) {
	merged, err := s.steps(r, userPath(r), res, days, buckets[1], "merge")
	if err != nil {
		return nil, err
	}
	p := &glucoseProfile{Unit: res.Unit()}
	var points []point
	seen := map[string]bool{}
	for i := range merged["index"] {
		at, err := time.Parse(floating, merged.text("index", i))
		v := merged.number(res.column("mean", res.fields[0]), i)
		if err != nil || math.IsNaN(v) {
			continue
		}
		points = append(points, point{at, v})
		seen[at.Format(time.DateOnly)] = true
	}
	if len(points) == 0 {
		return nil, nil //nolint:nilnil // days without glucose have no profile
	}
	p.Days = len(seen)
	if err := s.glucoseMeasures(r, res, days, p); err != nil {
		return nil, err
	}
	target := schema.targetRange(p)
	lines := overlay(points)
	p.Chart = draw("glucose by time of day", panel{
		title: "glucose", unit: p.Unit, ranges: []reference{target},
		bands: []band{
			{name: "5th to 95th percentile", class: "band0", lower: lines[0], upper: lines[4]},
			{name: "25th to 75th percentile", class: "band1", lower: lines[1], upper: lines[3]},
		},
		lines: []line{{name: "median", points: lines[2]}},
	})
	p.Chart.Summary = strings.ReplaceAll(p.Chart.Summary, "2000-01-01 ", "")
	for i := range p.Chart.Rows {
		p.Chart.Rows[i].Time = strings.TrimPrefix(p.Chart.Rows[i].Time, "2000-01-01 ")
	}
	return p, nil
}

// glucoseMeasures asks for the measures of a profile.
func (s *Console) glucoseMeasures(r *http.Request, res resource, days rangeOf, p *glucoseProfile) error {
	arg := res.arg(res.fields[0])
	var selected []any
	for _, name := range []string{"mean", "gmi", "cv"} {
		selected = append(selected, map[string]any{"func": name, "arg": arg})
	}
	for _, name := range []string{"below_range", targetBand, "above_range"} {
		selected = append(selected, map[string]any{"func": "time_in_range", "band": name, "arg": arg})
	}
	got, err := s.ask(r, userPath(r), days, "merge", map[string]any{"select": selected})
	if err != nil {
		return err
	}
	for name, into := range map[string]*string{
		"mean": &p.Mean, "gmi": &p.GMI, "cv": &p.CV,
		"time_in_range_below_range": &p.Below, "time_in_range_" + targetBand: &p.In, "time_in_range_above_range": &p.Above,
	} {
		if v := got.number(res.column(name, res.fields[0]), 0); !math.IsNaN(v) {
			*into = fmt.Sprintf("%.1f", v)
		}
	}
	return nil
}

// targetBand is the name of the target range.
const targetBand = "in_range"

// targetRange returns the target range in the unit of a profile, and notes its ends as text.
func (q *querySchema) targetRange(p *glucoseProfile) (out reference) {
	for _, b := range q.Bands {
		if b.Name != targetBand {
			continue
		}
		layout := "%.1f"
		if out.low, out.high = b.LowMmol, b.HighMmol; p.Unit == "mg/dL" {
			out.low, out.high, layout = b.Low, b.High, "%.0f"
		}
		if out.low != nil && out.high != nil {
			p.Low, p.High = fmt.Sprintf(layout, *out.low), fmt.Sprintf(layout, *out.high)
		}
	}
	return out
}

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
