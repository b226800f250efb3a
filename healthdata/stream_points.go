package healthdata

import (
	"math"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// The least and the greatest altitude of a point of a recording, in metres.
const (
	LowestAltitude  = -500
	HighestAltitude = 12_000
)

// MostStray is the longest accepted time between a point and the median time of its recording.
const MostStray = 7 * 24 * time.Hour

// FirstPoint is the earliest accepted instant of a point of a recording. Earlier times come from clocks that
// were not set.
var FirstPoint = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// nearZero is the distance from 0, 0, in degrees, within which another position makes 0, 0
// plausible: 10 km.
const nearZero = 0.09

// ImpossiblePositions returns the indices of impossible positions of a recording: those that are out of range or
// have only one coordinate, and those at 0, 0 while the positions before and after are more than 10 km away from
// it. Positions are in degrees, in the order of time; where there is none, both are NaN.
func ImpossiblePositions(lat, lng []float64) (outOfRange, atZero []int) {
	var known []int // positions inside the range
	for i := range lat {
		switch none := math.IsNaN(lat[i]) && math.IsNaN(lng[i]); {
		case none:
		case math.Abs(lat[i]) <= 90 && math.Abs(lng[i]) <= 180:
			known = append(known, i)
		default:
			outOfRange = append(outOfRange, i)
		}
	}
	zero := func(i int) bool { return lat[i] == 0 && lng[i] == 0 }
	near := func(i int) bool { return math.Hypot(lat[i], lng[i]) <= nearZero }
	for from := 0; from < len(known); {
		if !zero(known[from]) {
			from++
			continue
		}
		to := from
		for to < len(known) && zero(known[to]) {
			to++
		}
		if (from == 0 || !near(known[from-1])) && (to == len(known) || !near(known[to])) {
			atZero = append(atZero, known[from:to]...)
		}
		from = to
	}
	return outOfRange, atZero
}

// leftOut lists the points and values that were left out of a recording.
type leftOut struct {
	first []ItemRefusal // at most MostRefusals entries, by the index of the point
	count int           // the number of all left-out points
}

// dropImpossible removes the points of a recording with impossible or unreadable times, and sets impossible positions
// and altitudes to null. latest is the latest possible time. unread are the values that could not be read: a time is 0,
// and another value is null already. The recording must have passed check.
func (w *WorkoutStream) dropImpossible(latest time.Time, unread *Unparsed) (out leftOut) {
	named := map[string]int{} // number of named points by field
	untimed, unplaced := map[int]bool{}, map[int]bool{}
	note := func(i int, field, code, msg string) {
		if field == "lat" && unplaced[i] {
			return // one coordinate could not be read
		}
		out.count++
		if named[field]++; named[field] <= MostRefusals {
			out.first = append(out.first, ItemRefusal{Index: i, Problems: []ItemProblem{{Field: field, Type: code, Msg: msg}}})
		}
	}
	for _, r := range unread.First {
		for _, p := range itemRefusal(r).Problems {
			note(r.Index, p.Field, p.Type, p.Msg)
			untimed[r.Index] = untimed[r.Index] || p.Field == "time"
			unplaced[r.Index] = unplaced[r.Index] || p.Field == "lat" || p.Field == "lng"
		}
	}
	out.count += unread.Count - len(unread.First)
	w.nullPositions(note)
	for i, v := range w.Altitude {
		if v != nil && (*v < LowestAltitude || *v > HighestAltitude) {
			w.Altitude[i] = nil
			note(i, "altitude", check.CodeBounds, "must be -500 to 12000 m")
		}
	}
	var inTime []int64
	for _, t := range w.Time {
		if t >= FirstPoint.Unix() && t <= latest.Unix() {
			inTime = append(inTime, t)
		}
	}
	slices.Sort(inTime)
	kept := make([]int, 0, len(w.Time))
	for i, t := range w.Time {
		switch {
		case t == 0 && untimed[i]:
		case t < FirstPoint.Unix():
			note(i, "time", check.CodeEarly, "must be 1990-01-01 or later")
		case t > latest.Unix():
			note(i, "time", check.CodeFuture, "must be at most 24 hours ahead of the present")
		case t < inTime[len(inTime)/2]-int64(MostStray/time.Second), t > inTime[len(inTime)/2]+int64(MostStray/time.Second):
			note(i, "time", check.CodeBounds, "must be at most 7 days from the median of the recording")
		default:
			kept = append(kept, i)
		}
	}
	if len(kept) < len(w.Time) {
		w.retain(kept)
	}
	slices.SortStableFunc(out.first, func(a, b ItemRefusal) int { return a.Index - b.Index })
	out.first = out.first[:min(len(out.first), MostRefusals)]
	return out
}

// nullPositions sets impossible positions to null, and passes the index, the JSON field, the code and the text of
// each problem to note.
func (w *WorkoutStream) nullPositions(note func(i int, field, code, msg string)) {
	if len(w.Lat) == 0 && len(w.Lng) == 0 {
		return
	}
	lat, lng := make([]float64, len(w.Time)), make([]float64, len(w.Time))
	for i := range w.Time {
		lat[i], lng[i] = math.NaN(), math.NaN()
		if v := valueAt(w.Lat, i); v != nil {
			lat[i] = *v
		}
		if v := valueAt(w.Lng, i); v != nil {
			lng[i] = *v
		}
	}
	away := func(indices []int, msg string) {
		for _, i := range indices {
			for _, column := range [...][]*float64{w.Lat, w.Lng} {
				if i < len(column) {
					column[i] = nil
				}
			}
			note(i, "lat", check.CodeBounds, msg)
		}
	}
	outOfRange, atZero := ImpossiblePositions(lat, lng)
	away(outOfRange, "must be a position, lat -90 to 90 and lng -180 to 180")
	away(atZero, "must not be 0, 0 away from the positions before and after")
}

// retain removes all points but those of the given indices.
func (w *WorkoutStream) retain(indices []int) {
	w.Time = pick(w.Time, indices)
	w.Heartrate = pick(w.Heartrate, indices)
	for _, column := range w.columns() {
		*column = pick(*column, indices)
	}
}

// pick returns the values at some indices. An empty column stays empty.
func pick[T any](column []T, indices []int) []T {
	if len(column) == 0 {
		return column
	}
	out := make([]T, len(indices))
	for k, i := range indices {
		out[k] = column[i]
	}
	return out
}
