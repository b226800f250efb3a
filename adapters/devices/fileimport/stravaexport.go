package fileimport

import (
	"bufio"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// stravaActivities reads the activity list of a Strava export. The list refers to the recordings, which are separate
// files.
var stravaActivities = csvFile{
	format: StravaExport, name: stravaList, read: readStravaActivities,
	keys:  []string{"Activity ID", "Activity Date", "Activity Name", "Activity Type", "Filename", "Moving Time"},
	twice: []string{"Elapsed Time", "Distance"}, // first as displayed, then in seconds and metres
	also: columnNames(
		"Activity ID|Aktivitäts-ID", "Activity Date|Aktivitätsdatum", "Activity Name|Name der Aktivität", "Activity Type|Aktivitätsart", "Filename|Dateiname",
		"Moving Time|Bewegungszeit", "Elapsed Time|Verstrichene Zeit", "Distance|Distanz", "Calories|Kalorien",
		"Max Heart Rate|Max. Herzfrequenz|Maximale Herzfrequenz", "Average Heart Rate|Durchschnittliche Herzfrequenz", "Average Watts|Durchschnittliche Wattzahl",
	),
}

// stravaFolder is the folder of the recordings, and stravaList the file that refers to them.
const stravaFolder, stravaList = "activities", "activities.csv"

var stravaColumns = []value[healthdata.Workout]{
	{"Moving Time", 0, longestWorkout, func(w *healthdata.Workout, n float64) { w.MovingTime = roundedNumber(n) }},
	{"Distance", 0, 20_000_000, func(w *healthdata.Workout, n float64) { w.Distance = &n }},
	{"Max Speed", 0, 400, func(w *healthdata.Workout, n float64) { w.MaxSpeed = &n }},
	{"Average Speed", 0, 400, func(w *healthdata.Workout, n float64) { w.AverageSpeed = &n }},
	{"Elevation Gain", 0, 100_000, func(w *healthdata.Workout, n float64) { w.TotalElevationGain = &n }},
	{"Elevation Low", -12_000, 100_000, func(w *healthdata.Workout, n float64) { w.ElevLow = &n }},
	{"Elevation High", -12_000, 100_000, func(w *healthdata.Workout, n float64) { w.ElevHigh = &n }},
	{"Max Heart Rate", 20, 300, func(w *healthdata.Workout, n float64) { w.MaxHR = roundedNumber(n) }},
	{"Average Heart Rate", 20, 300, func(w *healthdata.Workout, n float64) { w.AverageHR = roundedNumber(n) }},
	{"Max Watts", 0, 10_000, func(w *healthdata.Workout, n float64) { w.MaxWatts = &n }},
	{"Average Watts", 0, 10_000, func(w *healthdata.Workout, n float64) { w.AverageWatts = &n }},
	{"Weighted Average Power", 0, 10_000, func(w *healthdata.Workout, n float64) { w.WeightedAverageWatts = &n }},
	{"Calories", 1, 100_000, func(w *healthdata.Workout, n float64) { w.Calories = &n }},
}

var stravaElapsed = []value[float64]{{"Elapsed Time", 0, longestWorkout, func(v *float64, n float64) { *v = n }}}

// longestWorkout is the longest accepted workout, in seconds.
const longestWorkout = 90 * 86400

// stravaSports maps activity types, in lower case without blanks and hyphens, to sport slugs. The slug of any other
// type is that of [wordsOf].
var stravaSports = map[string]string{
	"run": "running", "virtualrun": "running", "trailrun": "trail_running", "ride": "cycling", "virtualride": "indoor_cycling",
	"mountainbikeride": "mountain_biking", "gravelride": "gravel_cycling", "ebikeride": "e_biking", "swim": "swimming", "walk": "walking",
	"hike": "hiking", "weighttraining": "strength_training",
	"lauf": "running", "traillauf": "trail_running", "radfahrt": "cycling", "spaziergang": "walking", "wanderung": "hiking", "schwimmen": "swimming", "krafttraining": "strength_training",
}

func stravaStart(r *rows) (time.Time, bool) {
	if t, ok := writtenTime(r.text("Activity Date")); ok {
		return t, true
	}
	r.refuse("Activity Date", "a time such as Mar 9, 2026, 5:30:12 PM")
	return time.Time{}, false
}

// stravaWorkout reads the workout of a row. It returns false if id, start or length is unreadable.
func stravaWorkout(r *rows) (*healthdata.Workout, bool) {
	id := r.text("Activity ID")
	if id == "" || len(id) > 20 || strings.Trim(id, "0123456789") != "" {
		r.refuse("Activity ID", "a number")
		return nil, false
	}
	start, ok := stravaStart(r)
	if !ok {
		return nil, false
	}
	elapsed := nan
	readValues(r, stravaElapsed, &elapsed)
	if elapsed != elapsed {
		if r.text("Elapsed Time") == "" {
			r.refuse("Elapsed Time", "seconds")
		}
		return nil, false
	}
	kind := r.text("Activity Type")
	sport := stravaSports[strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(kind))]
	if sport == "" {
		sport = wordsOf(kind)
	}
	w := &healthdata.Workout{
		TimeStart: healthlab.At(start), TimeEnd: healthlab.At(start.Add(time.Duration(elapsed * float64(time.Second)))), Sport: healthdata.SportOf(sport),
	}
	w.ExternalID = id
	if title := printable(r.text("Activity Name")); title != "" {
		w.Title = &title
	}
	readValues(r, stravaColumns, w)
	return w, true
}

// readStravaActivities stores activities with the streams of their recordings.
func readStravaActivities(r *rows) error {
	seen := map[string]bool{}
	expect(r, stravaColumns)
	for {
		more, err := r.next()
		if err != nil || !more {
			return err
		}
		w, ok := stravaWorkout(r)
		if !ok {
			continue
		}
		if seen[w.ExternalID] {
			r.skipRow("activity with the id of another")
			continue
		}
		seen[w.ExternalID] = true
		// An activity without a file was typed in.
		w.Source = r.out.recordedBy(healthdata.SourceApp)
		var stream *healthdata.WorkoutStream
		if file := r.text("Filename"); file != "" {
			w.Source = r.out.recordedBy(healthdata.SourceWatch)
			if stream, err = stravaRecording(r, file, w); err != nil {
				return err
			}
		}
		refused := r.out.rep.Refused["workouts"]
		if err := r.out.summaries("workouts", w); err != nil {
			return err
		}
		if stream == nil {
			continue
		}
		if r.out.rep.Refused["workouts"] > refused {
			r.skipRow("stream of a workout that is refused")
			continue
		}
		if err := r.out.stream(w, *stream); err != nil {
			return err
		}
	}
}

// stravaRecording reads the recording of an activity from the file name. It returns the stream, and sets the route and
// the UTC offset of w. If the file is missing or unreadable, it adds a note and returns a nil stream.
func stravaRecording(r *rows, name string, w *healthdata.Workout) (*healthdata.WorkoutStream, error) {
	if r.beside == nil {
		r.skipRow("recording beside the file")
		return nil, nil
	}
	if name = path.Clean(strings.ReplaceAll(name, `\`, "/")); path.Dir(name) != stravaFolder {
		r.refuse("Filename", "a file in the folder "+stravaFolder)
		return nil, nil
	}
	f, err := r.beside(name)
	if err != nil {
		r.refuse("Filename", "a file of the export")
		return nil, nil
	}
	defer func() { _ = f.Close() }()
	all, err := readRecorded(r.out, f)
	switch {
	case r.out.ctx.Err() != nil:
		return nil, r.out.ctx.Err()
	case errors.Is(err, healthlab.Invalid):
		r.refuse("Filename", "a FIT, GPX or TCX file that can be read")
		return nil, nil
	case err != nil:
		return nil, err
	}
	const slack = 10 * time.Minute
	all = slices.DeleteFunc(all, func(v Recording) bool {
		return v.Workout.TimeStart.Before(w.TimeStart.Add(-slack)) || v.Workout.TimeStart.After(w.TimeEnd.Add(slack))
	})
	if len(all) == 0 {
		r.refuse("Filename", "a recording of the time of the activity")
		return nil, nil
	}
	nearest := all.Nearest(w.TimeStart.Time)
	w.Map, w.TimezoneOffset = nearest.Workout.Map, nearest.Workout.TimezoneOffset
	return &nearest.Stream, nil
}

// readRecorded reads the workouts of a recording.
func readRecorded(out *output, r io.Reader) (Recordings, error) {
	text := bufio.NewReaderSize(&ctxReader{ctx: out.ctx, r: r}, detectBytes)
	head, err := text.Peek(detectBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	format, err := detect(head)
	if err != nil {
		return nil, err
	}
	var kept Recordings
	err = importRecording(&output{ctx: out.ctx, sink: &kept, rep: &Report{}, opts: out.opts}, text, format)
	return kept, err
}
