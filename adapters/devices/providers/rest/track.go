package rest

import (
	"maps"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Column names an array of a recording.
type Column string

// Columns, in the units of [healthdata.WorkoutStream].
const (
	ColumnHeartrate   Column = "heartrate"
	ColumnCadence     Column = "cadence"
	ColumnPower       Column = "power"
	ColumnAltitude    Column = "altitude"
	ColumnSpeed       Column = "velocity_smooth"
	ColumnDistance    Column = "distance"
	ColumnTemperature Column = "temperature"
	ColumnLat         Column = "lat"
	ColumnLng         Column = "lng"
)

// Track merges the columns of a recording by second. The zero value is empty.
type Track struct {
	values  map[Column]map[int64]float64
	seconds map[int64]bool
}

// most is larger than any plausible value of a recording.
const most = 1e6

// Put sets the value of a column at a Unix second. A nil value is a gap, and so are a heart rate of 0 and a value
// larger than any sensor reports.
func (t *Track) Put(c Column, second int64, v *float64) {
	if t.seconds == nil {
		t.values, t.seconds = map[Column]map[int64]float64{}, map[int64]bool{}
	}
	if t.seconds[second] = true; v == nil || math.Abs(*v) > most || c == ColumnHeartrate && *v <= 0 {
		return
	}
	if t.values[c] == nil {
		t.values[c] = map[int64]float64{}
	}
	t.values[c][second] = *v
}

// Stream returns the recording; nil if no column has a value. A column without a value is empty.
func (t *Track) Stream() *healthdata.WorkoutStream {
	if len(t.values) == 0 {
		return nil
	}
	s := &healthdata.WorkoutStream{Time: slices.Sorted(maps.Keys(t.seconds))}
	array := func(c Column) (list []*float64) {
		if len(t.values[c]) == 0 {
			return nil
		}
		for _, second := range s.Time {
			var value *float64
			if v, ok := t.values[c][second]; ok {
				value = &v
			}
			list = append(list, value)
		}
		return list
	}
	for _, bpm := range array(ColumnHeartrate) {
		s.Heartrate = append(s.Heartrate, Round(bpm))
	}
	s.Cadence, s.Power, s.Altitude, s.VelocitySmooth = array(ColumnCadence), array(ColumnPower), array(ColumnAltitude), array(ColumnSpeed)
	s.Distance, s.Temperature, s.Lat, s.Lng = array(ColumnDistance), array(ColumnTemperature), array(ColumnLat), array(ColumnLng)
	return s
}
