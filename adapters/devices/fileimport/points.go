package fileimport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	// untimed is the time of a point without a readable time.
	untimed = math.MinInt64
	// mostAhead is the longest time by which a timestamp may be in the future.
	mostAhead = 24 * time.Hour
	// maxWorkoutSeconds is the longest accepted duration of a workout.
	maxWorkoutSeconds = 7 * 24 * 3600
)

// firstInstant is the earliest accepted time of a point, in Unix microseconds.
var firstInstant = healthdata.FirstPoint.UnixMicro()

func (o *output) inTime(micros int64) bool {
	return micros >= firstInstant && micros <= o.opts.Now().Add(mostAhead).UnixMicro()
}

// plausiblePoints returns the plausible points of a recording, sorted by time. It drops a point whose time is missing
// or implausible. From other points it removes only the implausible values. The report counts both.
func (o *output) plausiblePoints(points []point) []point {
	drop := func(why string, bad func(*point) bool) {
		kept := points[:0]
		gap := false // the pause before a left-out point, which moves to the next point
		for i := range points {
			p := points[i]
			if bad(&p) {
				gap = gap || p.gap
				o.countSkipped(why, 1)
				continue
			}
			p.gap, gap = p.gap || gap && len(kept) > 0, false
			kept = append(kept, p)
		}
		points = kept
	}
	drop("point without a time", func(p *point) bool { return p.micros == untimed })
	drop("point before 1990 or in the future", func(p *point) bool { return !o.inTime(p.micros) })
	if len(points) == 0 {
		return nil
	}
	median := medianTime(points)
	drop("point more than 7 days from the median", func(p *point) bool {
		return math.Abs(float64(p.micros-median)) > float64(healthdata.MostStray.Microseconds())
	})
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.micros, b.micros) })
	o.removeBadPositions(points)
	o.removeBadValues(points)
	return points
}

func medianTime(points []point) int64 {
	times := make([]int64, len(points))
	for i := range points {
		times[i] = points[i].micros
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// removeBadPositions removes positions that are incomplete, out of range, or at 0, 0 without another position nearby.
func (o *output) removeBadPositions(points []point) {
	lat, lng := make([]float64, len(points)), make([]float64, len(points))
	for i := range points {
		lat[i], lng[i] = points[i].lat, points[i].lng
	}
	away := func(what string, indices []int) {
		for _, i := range indices {
			points[i].lat, points[i].lng = nan, nan
		}
		o.countSkipped(what, len(indices))
	}
	outOfRange, atZero := healthdata.ImpossiblePositions(lat, lng)
	away("position out of range", outOfRange)
	away("position at 0, 0", atZero)
}

// measured describes a value of a point and its allowed range.
type measured struct {
	name      string
	of        func(*point) *float64
	low, high float64
}

// mostByte is the largest heart rate and cadence of a recording. Devices store them in a byte, in which 255 means no
// value.
const mostByte = 254

// measurements describes the values of a point, with the bounds of the catalogue.
func measurements() []measured {
	workout := healthdata.ResourceBySlug("workouts").PartBounds()
	bounds := func(slug string) healthdata.Bounds {
		b, _ := healthdata.ResourceBySlug(slug).Bounds()
		return b
	}
	in := func(name string, b healthdata.Bounds, of func(*point) *float64) measured {
		return measured{name, of, b.Low, b.High}
	}
	return []measured{
		{"altitude", func(p *point) *float64 { return &p.alt }, healthdata.LowestAltitude, healthdata.HighestAltitude},
		in("distance", workout["distance"], func(p *point) *float64 { return &p.dist }),
		in("speed", workout["max_speed"], func(p *point) *float64 { return &p.speed }),
		in("power", workout["max_watts"], func(p *point) *float64 { return &p.power }),
		{"heart rate", func(p *point) *float64 { return &p.heart }, bounds("heartrate").Low, mostByte},
		in("breathing rate", bounds("respiratory_rate"), func(p *point) *float64 { return &p.breath }),
		{"cadence", func(p *point) *float64 { return &p.cadence }, 0, mostByte},
		{"temperature", func(p *point) *float64 { return &p.temp }, -100, 100},
	}
}

// removeBadValues removes values outside of their range.
func (o *output) removeBadValues(points []point) {
	for _, m := range measurements() {
		n := 0
		for i := range points {
			if v := m.of(&points[i]); *v < m.low || *v > m.high {
				*v = nan
				n++
			}
		}
		o.countSkipped(m.name+" out of range", n)
	}
}

// removeBadTotals removes impossible totals of a workout, so that they are derived from the points.
func (o *output) removeBadTotals(w *healthdata.Workout) {
	bounds := healthdata.ResourceBySlug("workouts").PartBounds()
	bad := func(name string, v float64) bool {
		b := bounds[name]
		if v >= b.Low && v <= b.High {
			return false
		}
		o.countSkipped("total out of range: "+name, 1)
		return true
	}
	for name, v := range map[string]**float64{
		"distance": &w.Distance, "calories": &w.Calories, "average_speed": &w.AverageSpeed, "max_speed": &w.MaxSpeed,
		"average_watts": &w.AverageWatts, "max_watts": &w.MaxWatts, "device_watts": &w.DeviceWatts,
		"weighted_average_watts": &w.WeightedAverageWatts, "total_elevation_gain": &w.TotalElevationGain,
		"elev_high": &w.ElevHigh, "elev_low": &w.ElevLow,
	} {
		if *v != nil && bad(name, **v) {
			*v = nil
		}
	}
	for name, v := range map[string]**int64{
		"average_hr": &w.AverageHR, "max_hr": &w.MaxHR, "moving_time": &w.MovingTime, "steps": &w.Steps,
	} {
		if *v != nil && bad(name, float64(**v)) {
			*v = nil
		}
	}
	for _, v := range []**float64{&w.ElevHigh, &w.ElevLow} {
		if *v != nil && (**v < healthdata.LowestAltitude || **v > healthdata.HighestAltitude) {
			*v = nil
			o.countSkipped("altitude out of range", 1)
		}
	}
}

func (o *output) countSkipped(what string, n int) {
	if n > 0 {
		count(&o.rep.Skipped, what, n)
	}
}

// skipAt counts a part of the file that is left out as what. For the first mostRemarks parts it adds a note with the
// position place.
func (o *output) skipAt(place, what string) {
	o.countSkipped(what, 1)
	if o.places++; o.places <= mostRemarks {
		o.note(fmt.Sprintf("%s: left out: %s", place, what))
	} else if o.places == mostRemarks+1 {
		o.note("more parts of the file are left out and counted, but not listed here")
	}
}
