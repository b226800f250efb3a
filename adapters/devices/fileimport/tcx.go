package fileimport

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// activityTCX is an activity of a TCX file, which becomes one workout.
type activityTCX struct {
	sport                       string
	start                       int64 // Unix microseconds; 0 if unknown
	seconds, distance, calories float64
	points                      []point
	offset                      *int
	id                          string // start of the activity as written, which is its id in TCX
}

// importTCX stores every activity that has points or laps.
func importTCX(out *output, data []byte) error {
	r := &tcxReader{trackScanner: newTrackScanner(out, data, TCX)}
	activities, err := r.read()
	if err != nil {
		return err
	}
	if len(activities) == 0 {
		return &FileError{Format: TCX, Offset: int64(len(data)), Line: 1 + bytes.Count(data, []byte{'\n'}), Msg: "the file has no activity with a start time or with a point that has a time"}
	}
	for i := range activities {
		a := &activities[i]
		w := &healthdata.Workout{Sport: healthdata.SportOf(a.sport), TimezoneOffset: a.offset}
		w.Source = out.recordedBy(healthdata.SourceUnknown)
		rec := recording{points: a.points, onFoot: onFoot(a.sport)}
		rec.measure()
		if a.seconds > maxWorkoutSeconds {
			out.countSkipped("lap times of more than 7 days", 1)
			a.seconds = 0
		}
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
		out.removeBadTotals(w)
		rec.fill(w)
		out.removeBadTotals(w)
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
	activity   int // nesting depth of the current Activity; 0 outside
	lap        int
	within     string // name of the element around a Value
}

func (r *tcxReader) read() ([]activityTCX, error) {
	err := r.scan(func() bool { return r.activity > 0 }, r.start, r.end)
	for i := range r.activities {
		a := &r.activities[i]
		a.points = r.out.plausiblePoints(a.points)
		if at, _, why := r.out.trackTime(a.id); a.start == 0 && len(a.points) == 0 && why == "" && r.out.inTime(at.UnixMicro()) {
			a.start = at.UnixMicro() // used if the laps have no start
		}
		if len(a.points) == 0 || a.start == 0 {
			continue
		}
		if median := medianTime(a.points); math.Abs(float64(a.start-median)) > float64(healthdata.MostStray.Microseconds()) {
			a.start = 0
			r.out.countSkipped("lap that begins more than 7 days from the median", 1)
		}
	}
	return slices.DeleteFunc(r.activities, func(a activityTCX) bool { return a.start == 0 && len(a.points) == 0 }), err
}

func (r *tcxReader) start() error {
	depth := len(r.sc.opens)
	switch name := localName(r.sc.name); {
	case depth == 1 && name != "TrainingCenterDatabase":
		return r.sc.errorHere("the root element of the XML document must be TrainingCenterDatabase")
	case r.activity == 0 && name == "Activity":
		if len(r.activities) >= mostTracks {
			return r.sc.errorHere(fmt.Sprintf("the file must have at most %d activities", mostTracks))
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
		r.startLap()
	case name == "Track":
		r.gap = true
	case name == "Trackpoint" && r.pt == 0:
		return r.startPoint(depth)
	case name != "Value":
		r.within = name
	}
	return nil
}

// startLap reads the start of a lap from the current element, and sets the start of the activity to the earliest one.
func (r *tcxReader) startLap() {
	a := r.current()
	for _, at := range r.sc.attrs {
		if localName(at.name) != "StartTime" {
			continue
		}
		micros := r.time(string(r.sc.value(at)), &a.offset)
		if micros == untimed {
			continue
		}
		if !r.out.inTime(micros) {
			r.skipHere("lap that begins before 1990 or in the future")
			continue
		}
		if a.start == 0 || micros < a.start {
			a.start = micros
		}
	}
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
	case r.lap == 0 && depth == r.activity+1 && name == "Id":
		r.current().id = text
	case r.lap == 0:
	case r.pt == 0:
		r.total(depth, name, text)
	case depth == r.pt:
		r.endPoint()
	case depth == r.pt+1 && name == "Time":
		r.pointTime(text, &r.current().offset)
	case text != "":
		r.measurement(name, text)
	}
	return nil
}

// total adds a total of a lap to the activity. name and text are the name and the text of the element, and depth its
// nesting depth.
func (r *tcxReader) total(depth int, name, text string) {
	a := r.current()
	into := map[string]*float64{"TotalTimeSeconds": &a.seconds, "DistanceMeters": &a.distance, "Calories": &a.calories}[name]
	if into == nil || depth != r.lap+1 || text == "" {
		return
	}
	const none = 0xffff // stands for no value, in 16 bits
	switch v := r.number(name, text); {
	case name == "Calories" && v >= none:
		r.skipHere("total out of range: calories")
	case v > 0:
		*into += v
	}
}

// measurement reads a value of a point, or a value in an extension of any namespace.
func (r *tcxReader) measurement(name, text string) {
	if name == "Value" {
		name = r.within
	}
	var into *float64
	switch name {
	case "LatitudeDegrees":
		into = &r.p.lat
	case "LongitudeDegrees":
		into = &r.p.lng
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
		return
	}
	if into == &r.p.lat || into == &r.p.lng {
		*into = r.degrees(name, text)
		return
	}
	r.measure(into, r.number(name, text))
}

// endPoint stores a point with a measurement. Devices write empty points at pauses.
func (r *tcxReader) endPoint() {
	r.pt = 0
	if r.p.empty() {
		return
	}
	a := r.current()
	r.p.gap = r.gap && len(a.points) > 0
	r.gap = false
	a.points = append(a.points, r.p)
}
