package console

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// profileDays is the largest number of days of a glucose profile.
const profileDays = 90

// glucoseProfile is the ambulatory glucose profile of a period: the readings of all its days by time of day.
type glucoseProfile struct {
	Chart         *chart
	Bands         []profileBand
	In            *profileBand // share of readings in the target range
	Mean, GMI, CV string
	Unit          string
	Days          int // number of days with readings
	Asked         int // number of requested days, which end with the last day of the page
}

// profileBand is the share, in percent, of the readings between two glucose values. Ends holds the two values.
type profileBand struct {
	Name, Ends, Percent string
}

// profileAnswer is the API's answer with a glucose profile.
type profileAnswer struct {
	Days  int      `json:"days_with_readings"`
	Mean  *float64 `json:"mean"`
	GMI   *float64 `json:"gmi_percent"`
	CV    *float64 `json:"cv_percent"`
	Bands []struct {
		Name    string   `json:"name"`
		Low     *float64 `json:"low"`
		High    *float64 `json:"high"`
		Percent *float64 `json:"percent"`
	} `json:"bands"`
	Clock []struct {
		Minute int      `json:"minute"`
		P5     *float64 `json:"p5"`
		P25    *float64 `json:"p25"`
		P50    *float64 `json:"p50"`
		P75    *float64 `json:"p75"`
		P95    *float64 `json:"p95"`
	} `json:"clock"`
}

// targetBand is the name of the band with the target range in the API's answer.
const targetBand = "in_range"

// glucoseProfile reads the profile of the last 90 days of a range, or of all its days if it is shorter. It returns nil
// if these days have no reading.
func (s *Console) glucoseProfile(r *http.Request, unit string, days rangeOf) (*glucoseProfile, error) {
	p := &glucoseProfile{Unit: unit, Asked: min(days.days(), profileDays)}
	var in profileAnswer
	err := s.optional(s.get(r, "/v2/user/"+userPath(r)+"/glucose_profile", url.Values{
		"end_date": {days.to.Format(time.DateOnly)}, "days": {strconv.Itoa(p.Asked)}, "unit": {unit},
	}, &in))
	if err != nil || in.Days == 0 {
		return nil, err
	}
	p.Days = in.Days
	p.Mean, p.GMI, p.CV = tenths(in.Mean), tenths(in.GMI), tenths(in.CV)
	digits := "%.1f"
	if unit == "mg/dL" {
		digits = "%.0f"
	}
	var target reference
	for _, b := range in.Bands {
		one := profileBand{Name: words(b.Name), Ends: bandLimits(digits, b.Low, b.High), Percent: tenths(b.Percent)}
		p.Bands = append(p.Bands, one)
		if b.Name == targetBand {
			p.In, target = &one, reference{low: b.Low, high: b.High}
		}
	}
	var lines [5][]point
	for _, q := range in.Clock {
		at := time.Date(2000, 1, 1, 0, q.Minute, 0, 0, time.UTC)
		for i, v := range []*float64{q.P5, q.P25, q.P50, q.P75, q.P95} {
			one := point{at, math.NaN()}
			if v != nil {
				one.value = *v
			}
			lines[i] = append(lines[i], one)
		}
	}
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

func tenths(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *v)
}

// bandLimits returns the limits of a glucose band as text. digits is the fmt verb of a limit; a nil limit is open.
func bandLimits(digits string, low, high *float64) string {
	switch {
	case low == nil && high == nil:
		return ""
	case low == nil:
		return fmt.Sprintf("up to "+digits, *high)
	case high == nil:
		return fmt.Sprintf("from "+digits, *low)
	}
	return fmt.Sprintf(digits+" to "+digits, *low, *high)
}
