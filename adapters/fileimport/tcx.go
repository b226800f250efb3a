package fileimport

import (
	"bytes"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// activityTCX is an activity of a TCX file: one workout.
type activityTCX struct {
	sport                       string
	start                       int64 // Unix micros; 0 is not known
	seconds, distance, calories float64
	points                      []point
	offset                      *int
}

// importTCX hands over every activity that has points or laps.
func importTCX(out *output, data []byte) error {
	r := &tcxReader{trackScanner: newTrackScanner(data, TCX, out.opts.MaxPoints)}
	activities, err := r.read()
	if err != nil {
		return err
	}
	if len(activities) == 0 {
		return &FileError{Format: TCX, Offset: int64(len(data)), Line: 1 + bytes.Count(data, []byte{'\n'}), Msg: "the file has no activity with a time"}
	}
	for i := range activities {
		a := &activities[i]
		w := &healthdata.Workout{Sport: healthdata.SportOf(a.sport), TimezoneOffset: a.offset}
		w.Source = out.recordedBy(healthdata.SourceUnknown)
		rec := recording{points: a.points, onFoot: onFoot(a.sport)}
		rec.measure()
		start := a.start
		if n := len(rec.points); n > 0 && (start == 0 || rec.points[0].micros < start) {
			start = rec.points[0].micros
		}
		end := start + int64(math.Round(a.seconds*1e6))
		if n := len(rec.points); n > 0 {
			end = max(end, rec.points[n-1].micros)
		}
		w.TimeStart, w.TimeEnd = atMicros(start), atMicros(end)
		if a.distance > 0 {
			w.Distance = &a.distance
		}
		if a.calories > 0 {
			w.Calories = &a.calories
		}
		rec.fill(w)
		if err := out.handOver(w, &rec); err != nil {
			return err
		}
	}
	return nil
}

// tcxReader reads the activities of a TCX file (Training Center XML, version 2). Courses and
// planned workouts are skipped.
type tcxReader struct {
	trackScanner
	activities []activityTCX
	activity   int // depth of the current Activity, 0 outside
	lap        int
	within     string // the parent of a Value
}

func (r *tcxReader) read() ([]activityTCX, error) {
	err := r.scan(func() bool { return r.activity > 0 }, r.start, r.end)
	return slices.DeleteFunc(r.activities, func(a activityTCX) bool { return a.start == 0 && len(a.points) == 0 }), err
}

func (r *tcxReader) start() error {
	depth := len(r.sc.opens)
	switch name := localName(r.sc.name); {
	case depth == 1 && name != "TrainingCenterDatabase":
		return r.sc.here("the document's element must be TrainingCenterDatabase")
	case r.activity == 0 && name == "Activity":
		if len(r.activities) >= mostTracks {
			return r.sc.here("too many activities")
		}
		r.activity = depth
		a := activityTCX{sport: "other"}
		for _, at := range r.sc.attrs {
			if localName(at.name) == "Sport" {
				a.sport = gpxSport(string(r.sc.value(at)))
			}
		}
		r.activities = append(r.activities, a)
	case r.activity == 0:
	case name == "Lap" && r.lap == 0:
		r.lap = depth
		return r.startLap()
	case name == "Track":
		r.gap = true
	case name == "Trackpoint" && r.pt == 0:
		return r.startPoint(depth)
	case name != "Value":
		r.within = name
	}
	return nil
}

// startLap reads when a lap begins.
func (r *tcxReader) startLap() error {
	a := r.current()
	for _, at := range r.sc.attrs {
		if localName(at.name) != "StartTime" {
			continue
		}
		micros, err := r.time(string(r.sc.value(at)), &a.offset)
		if err != nil {
			return err
		}
		if a.start == 0 || micros < a.start {
			a.start = micros
		}
	}
	return nil
}

func (r *tcxReader) current() *activityTCX { return &r.activities[len(r.activities)-1] }

// end handles the end of an element.
func (r *tcxReader) end(text string) error {
	depth := len(r.sc.opens) + 1
	name := localName(r.sc.name)
	switch {
	case r.activity == 0:
	case depth == r.activity:
		r.activity = 0
	case depth == r.lap:
		r.lap = 0
	case r.lap == 0:
	case r.pt == 0:
		return r.total(depth, name, text)
	case depth == r.pt:
		return r.endPoint()
	case depth == r.pt+1 && name == "Time":
		return r.pointTime(text, &r.current().offset)
	case text != "":
		return r.measurement(name, text)
	}
	return nil
}

// total adds a total of a lap to the activity.
func (r *tcxReader) total(depth int, name, text string) error {
	a := r.current()
	into := map[string]*float64{"TotalTimeSeconds": &a.seconds, "DistanceMeters": &a.distance, "Calories": &a.calories}[name]
	if into == nil || depth != r.lap+1 || text == "" {
		return nil
	}
	v, err := r.number(text)
	if err == nil && v > 0 {
		*into += v
	}
	return err
}

// measurement reads a value of a point, and of its extension, whatever the name space.
func (r *tcxReader) measurement(name, text string) error {
	if name == "Value" {
		name = r.within
	}
	var into *float64
	bound := 1e9
	switch name {
	case "LatitudeDegrees":
		into, bound = &r.p.lat, 90
	case "LongitudeDegrees":
		into, bound = &r.p.lng, 180
	case "AltitudeMeters":
		into = &r.p.alt
	case "DistanceMeters":
		into = &r.p.dist
	case "HeartRateBpm":
		into = &r.p.heart
	case "Cadence", "RunCadence":
		into = &r.p.cadence
	case "Speed":
		into = &r.p.speed
	case "Watts":
		into = &r.p.power
	default:
		return nil
	}
	v, err := r.number(text)
	switch {
	case err != nil:
		return err
	case math.Abs(v) > bound:
		return r.sc.here("a position is a latitude from -90 to 90 and a longitude from -180 to 180")
	}
	r.measure(into, v)
	return nil
}

// endPoint keeps a point that has a time and a measurement: devices write empty ones at pauses.
func (r *tcxReader) endPoint() error {
	r.pt = 0
	if math.IsNaN(r.p.lat) != math.IsNaN(r.p.lng) {
		return r.sc.here("a position needs both LatitudeDegrees and LongitudeDegrees")
	}
	a := r.current()
	switch {
	case !r.timed:
		return r.sc.here("a track point without a time")
	case r.p.empty():
		return nil
	}
	r.p.gap = r.gap && len(a.points) > 0
	r.gap = false
	a.points = append(a.points, r.p)
	return nil
}
