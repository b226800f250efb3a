package vector

import (
	"cmp"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

const (
	microsOfMinute = 60_000_000
	// sensorMinutes is the longest median distance of readings at which they count as those of a continuous
	// sensor.
	sensorMinutes = 15
	// traceGap is the longest gap within a glycemic excursion.
	traceGap = 180 * microsOfMinute
	// sameClock is the largest difference between the clock times of two readings that MODD compares.
	sameClock = 15 * microsOfMinute / 2
	// episodeMinutes is the time beyond a threshold after which an episode begins, and the time back within it
	// after which the episode ends.
	episodeMinutes = 15
)

// reading is a value and its time in microseconds.
type reading struct {
	at int64
	v  float64
}

// Trace stores the readings of a group in order of time and computes a measure of them.
type Trace struct {
	// Clock is true if readings are ordered by the person's local time, false if they are ordered by UTC time.
	Clock bool
	// Measure computes the measure; null if there are too few readings. The readings ascend, and no two have
	// the same time.
	Measure func([]reading) tables.Cell
	// Left is the number of values that all groups together may still store.
	Left *int

	list []reading
}

// Add implements [Acc].
func (a *Trace) Add(v *Vec, b *Batch, i, j int) {
	if *a.Left -= j - i; *a.Left < 0 {
		a.list = nil
		return
	}
	at := b.Start
	if a.Clock {
		at = b.Index
	}
	a.list = slices.Grow(a.list, j-i)
	for ; i < j; i++ {
		if !v.IsNull(i) {
			a.list = append(a.list, reading{at[i], v.Floats[i]})
		}
	}
}

// Merge implements [Acc].
func (a *Trace) Merge(o Acc) { a.list = append(a.list, o.(*Trace).list...) }

// Result implements [Acc].
func (a *Trace) Result() (tables.Cell, error) {
	if *a.Left < 0 {
		return tables.Cell{}, errValues
	}
	return a.Measure(onePerTime(a.list)), nil
}

// onePerTime sorts readings and replaces readings of the same time by their mean.
func onePerTime(list []reading) []reading {
	if ascending(list) {
		return list
	}
	order := func(a, b reading) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.v, b.v)) }
	slices.SortFunc(list, order)
	out := list[:0]
	for i := 0; i < len(list); {
		j, sum := i, 0.0
		for ; j < len(list) && list[j].at == list[i].at; j++ {
			sum += list[j].v
		}
		out = append(out, reading{list[i].at, sum / float64(j-i)})
		i = j
	}
	return out
}

func ascending(list []reading) bool {
	for i := 1; i < len(list); i++ {
		if list[i].at <= list[i-1].at {
			return false
		}
	}
	return true
}

// Excursions returns the mean amplitude of glycemic excursions (MAGE): the mean of the rises or falls by more
// than one standard deviation, in the direction of the first one. Null without one.
func Excursions(list []reading) tables.Cell {
	sd, ok := deviationOf(list)
	if !ok {
		return tables.Cell{}
	}
	var sums [2]float64 // of falls and rises
	var counts [2]int
	first := -1
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].at-list[n-1].at <= traceGap {
			n++
		}
		excursions(list[:n], sd, func(from, to float64) {
			rise := 0
			if to > from {
				rise = 1
			}
			if first < 0 {
				first = rise
			}
			sums[rise] += math.Abs(to - from)
			counts[rise]++
		})
		list = list[n:]
	}
	if first < 0 {
		return tables.Cell{}
	}
	return FloatCell(sums[first] / float64(counts[first]))
}

func deviationOf(list []reading) (float64, bool) {
	var d Deviation
	v := Vec{Type: tables.TypeFloat64, Floats: make([]float64, len(list))}
	for i, r := range list {
		v.Floats[i] = r.v
	}
	d.Add(&v, nil, 0, len(list))
	c, _ := d.Result()
	return c.Float, c.Valid
}

// excursions calls a function for each pair of consecutive turning points that differ by more than least.
func excursions(list []reading, least float64, visit func(from, to float64)) {
	low, high := list[0].v, list[0].v // since the last turning point
	rising, falling := false, false
	for _, r := range list[1:] {
		switch {
		case rising && r.v > high:
			high = r.v
		case rising && high-r.v > least:
			visit(low, high)
			rising, falling, low = false, true, r.v
		case falling && r.v < low:
			low = r.v
		case falling && r.v-low > least:
			visit(high, low)
			rising, falling, high = true, false, r.v
		case rising || falling:
		default:
			low, high = min(low, r.v), max(high, r.v)
			rising, falling = r.v-low > least, high-r.v > least
		}
	}
	if rising {
		visit(low, high)
	} else if falling {
		visit(high, low)
	}
}

// DailyDifferences returns the mean of daily differences (MODD): between each reading and the reading nearest
// to the same clock time a day earlier. Null if no reading has such a partner.
func DailyDifferences(list []reading) tables.Cell {
	sum, n, k := 0.0, 0, 0
	for _, r := range list {
		at := r.at - microsOfDay
		for k+1 < len(list) && distance(list[k+1].at, at) < distance(list[k].at, at) {
			k++
		}
		if distance(list[k].at, at) <= sameClock {
			sum += math.Abs(r.v - list[k].v)
			n++
		}
	}
	if n == 0 {
		return tables.Cell{}
	}
	return FloatCell(sum / float64(n))
}

func distance(a, b int64) int64 {
	if a < b {
		return b - a
	}
	return a - b
}

// usualMinutes returns the median distance of readings in whole minutes (the smaller of the two in the middle), and
// whether it is short enough for a continuous sensor.
func usualMinutes(list []reading) (int64, bool) {
	if len(list) < 2 {
		return 0, false
	}
	var counts [sensorMinutes + 1]int // by minutes; longer distances are not counted
	for i, r := range list[1:] {
		if m := max(1, minutes(r.at-list[i].at)); m <= sensorMinutes {
			counts[m]++
		}
	}
	before := 0
	for m, n := range counts {
		if before += n; before > (len(list)-2)/2 {
			return int64(m), true
		}
	}
	return 0, false
}

func minutes(micros int64) int64 { return (micros + microsOfMinute/2) / microsOfMinute }

// SensorActive returns the percentage of the time from the first to the last reading in which the sensor delivered
// readings. Each reading counts for the usual distance, see usualMinutes. Null if the readings are not those of a
// sensor.
func SensorActive(list []reading) tables.Cell {
	usual, ok := usualMinutes(list)
	if !ok {
		return tables.Cell{}
	}
	whole := minutes(list[len(list)-1].at - list[0].at)
	missing := int64(0)
	for i, r := range list[1:] {
		if apart := minutes(r.at - list[i].at); apart > usual {
			missing += apart - usual
		}
	}
	slots := func(m int64) float64 { return math.Round(float64(m) / float64(usual)) }
	expected := slots(whole) + 1
	return FloatCell(100 * (expected - slots(missing)) / expected)
}

// Episodes returns a measure: the number of times that readings are in a range for 15 minutes or more.
func Episodes(in Range) func([]reading) tables.Cell {
	return func(list []reading) tables.Cell {
		usual, ok := usualMinutes(list)
		if !ok {
			return tables.Cell{}
		}
		n := int64(0)
		inside := false // an episode has begun and not ended
		for i := 0; i < len(list); {
			// A run is readings that are all in the range or all out of it, without a gap.
			j := i + 1
			same, gap := in.contains(list[i].v), false
			for ; j < len(list) && in.contains(list[j].v) == same; j++ {
				if gap = minutes(list[j].at-list[j-1].at) > usual+episodeMinutes; gap {
					break
				}
			}
			until := list[j-1].at + usual*microsOfMinute
			if j < len(list) {
				gap = gap || minutes(list[j].at-list[j-1].at) > usual+episodeMinutes
				if !gap {
					until = list[j].at
				}
			}
			if long := minutes(until-list[i].at) >= episodeMinutes; same && long && !inside {
				n++
				inside = true
			} else if !same && long {
				inside = false
			}
			inside = inside && !gap
			i = j
		}
		return IntCell(n)
	}
}
