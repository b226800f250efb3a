package fileimport

import (
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// workoutRecord is the workout that is being read.
type workoutRecord struct {
	w     *healthdata.Workout
	route string // path of the file with its track, relative to the export
	id    string // id that the source has given it
	name  uuid.UUID

	activity     string             // such as Running
	distances    map[string]float64 // metres by type, such as DistanceCycling; NaN if not read
	power, speed string             // first types of power and of speed
}

func (e *export) startWorkout() error {
	start, offset, ok := parseStamp(e.attr("startDate"))
	if !ok {
		return &itemError{"workout whose startDate is not a date-time with an offset"}
	}
	end, endOffset, ok := parseStamp(e.attr("endDate"))
	if !ok {
		return &itemError{"workout whose endDate is not a date-time with an offset"}
	}
	if end < start {
		return &itemError{"workout that ends before it starts"}
	}
	if !e.out.inTime(start * 1e6) {
		return &itemError{"workout before 1990 or in the future"}
	}
	var from *origin
	name := append([]byte(nil), e.attr("sourceName")...)
	from, e.key = e.origins.get(name, e.attr("device"), e.key)
	w := &healthdata.Workout{
		Head: e.head(from), TimezoneOffset: &offset, SessionOffsets: healthdata.SessionOffsets{StartTimezoneOffset: &offset, EndTimezoneOffset: &endOffset},
		TimeStart: instant(start), TimeEnd: instant(end),
	}
	e.workout = workoutRecord{w: w, name: from.id, activity: strings.TrimPrefix(string(e.attr("workoutActivityType")), "HKWorkoutActivityType")}
	w.Sport = healthdata.SportOf(exportSport(e.workout.activity))
	if minutes := e.quantity("duration", "durationUnit", "min"); minutes != nil {
		w.MovingTime = new(int64(math.Round(*minutes * 60)))
	}
	w.Distance = e.quantity("totalDistance", "totalDistanceUnit", "m")
	w.Calories = e.quantity("totalEnergyBurned", "totalEnergyBurnedUnit", "kcal")
	e.out.removeBadTotals(w)
	return nil
}

// quantity reads the number in the attribute name, whose unit is in the attribute unitName, and converts it to the unit
// to. It returns nil if the number is absent, unreadable or in an unknown unit.
func (e *export) quantity(name, unitName, to string) *float64 {
	raw := e.attr(name)
	if raw == nil {
		return nil
	}
	v, isNumber := healthlab.ParseNumber(string(raw))
	converted, ok := inUnit(v, e.attr(unitName), to)
	if !isNumber || math.IsInf(converted, 0) {
		e.skipHere("value that is no number: " + name)
		return nil
	}
	if !ok {
		return nil
	}
	return &converted
}

// workoutDetail reads the current element, which is inside a workout. name is the name of the element.
func (e *export) workoutDetail(name string) {
	w := e.workout.w
	switch name {
	case "WorkoutStatistics":
		e.statistics(w)
	case "MetadataEntry":
		switch string(e.attr("key")) {
		case "HKTimeZone":
			if loc := e.zones.get(e.attr("value")); loc != nil {
				start, end := offsetIn(loc, w.TimeStart.Unix()), offsetIn(loc, w.TimeEnd.Unix())
				w.TimezoneOffset, w.SessionOffsets = &start, healthdata.SessionOffsets{StartTimezoneOffset: &start, EndTimezoneOffset: &end}
			}
		case "HKElevationAscended":
			v, unit, _ := strings.Cut(string(e.attr("value")), " ")
			n, isNumber := healthlab.ParseNumber(v)
			if metres, ok := inUnit(n, []byte(unit), "m"); ok && isNumber && !math.IsInf(metres, 0) {
				w.TotalElevationGain = &metres
			}
		case "HKExternalUUID", "HKMetadataKeySyncIdentifier":
			if e.workout.id == "" {
				e.workout.id = string(e.attr("value"))
			}
		}
	}
}

// statistics reads a WorkoutStatistics element, in which newer exports write a total or a mean of a workout.
func (e *export) statistics(w *healthdata.Workout) {
	kind := strings.TrimPrefix(string(e.attr("type")), "HKQuantityTypeIdentifier")
	read := func(attribute, to string, into **float64) {
		if v := e.quantity(attribute, "unit", to); v != nil {
			*into = v
		}
	}
	whole := func(attribute, to string, into **int64) {
		if v := e.quantity(attribute, "unit", to); v != nil && math.Abs(*v) < 1e15 {
			n := int64(math.Round(*v))
			*into = &n
		}
	}
	switch {
	case kind == "HeartRate":
		whole("average", "bpm", &w.AverageHR)
		whole("maximum", "bpm", &w.MaxHR)
	case kind == "StepCount":
		whole("sum", "count", &w.Steps)
	case kind == "ActiveEnergyBurned":
		read("sum", "kcal", &w.Calories)
	case strings.HasPrefix(kind, "Distance"):
		if e.workout.distances == nil {
			e.workout.distances = map[string]float64{}
		}
		e.workout.distances[kind] = nan
		if v := e.quantity("sum", "unit", "m"); v != nil {
			e.workout.distances[kind] = *v
		}
	case strings.HasSuffix(kind, "Power"):
		e.meanOf(kind, &e.workout.power, "W", &w.AverageWatts, &w.MaxWatts)
		w.DeviceWatts = w.AverageWatts
	case strings.HasSuffix(kind, "Speed"):
		e.meanOf(kind, &e.workout.speed, "m/s", &w.AverageSpeed, &w.MaxSpeed)
	}
	e.out.removeBadTotals(w)
}

// meanOf reads the mean and the maximum of a type, such as RunningPower, in a unit. first is the first such type of the
// workout. The parts of a workout of several sports have means of their own, so that it has none.
func (e *export) meanOf(kind string, first *string, unit string, mean, maximum **float64) {
	if high := e.quantity("maximum", "unit", unit); high != nil && (*maximum == nil || *high > **maximum) {
		*maximum = high
	}
	switch *first {
	case "", kind:
		*first, *mean = kind, e.quantity("average", "unit", unit)
	default:
		*mean = nil
		e.skipHere("mean of one of several sports of a workout: " + kind)
	}
}

// sportDistances are the types of distance of a sport. A phone may state others beside them, such as the steps beside a
// bicycle, or the same distance twice. The distance of several types is their sum.
var sportDistances = map[string][]string{
	"SwimBikeRun":  {"DistanceSwimming", "DistanceCycling", "DistanceWalkingRunning"},
	"Swimming":     {"DistanceSwimming"},
	"Cycling":      {"DistanceCycling"},
	"HandCycling":  {"DistanceCycling"},
	"Running":      {"DistanceWalkingRunning"},
	"Walking":      {"DistanceWalkingRunning"},
	"Hiking":       {"DistanceWalkingRunning"},
	"Rowing":       {"DistanceRowing"},
	"PaddleSports": {"DistancePaddleSports"},

	"SkatingSports":      {"DistanceSkatingSports"},
	"CrossCountrySkiing": {"DistanceCrossCountrySkiing"},
	"DownhillSkiing":     {"DistanceDownhillSnowSports"},
	"Snowboarding":       {"DistanceDownhillSnowSports"},
	"WheelchairWalkPace": {"DistanceWheelchair"},
	"WheelchairRunPace":  {"DistanceWheelchair"},
}

// setDistance sets the distance of the workout from its statistics. If they have several types, and the sport does not
// say which of them count, the distance stays as it is.
func (e *export) setDistance() {
	r := &e.workout
	kinds := sportDistances[r.activity]
	if len(r.distances) == 1 {
		kinds = slices.Collect(maps.Keys(r.distances))
	}
	total, known := 0.0, false
	for _, kind := range kinds {
		if v, ok := r.distances[kind]; ok {
			total, known = total+v, true
		}
	}
	switch {
	case known && !math.IsNaN(total):
		r.w.Distance = &total
		e.out.removeBadTotals(r.w)
	case len(r.distances) > 1:
		e.skipHere("distances of several types, of which the total is not sure")
	}
}

func (e *export) endWorkout() error {
	r, w := &e.workout, e.workout.w
	e.setDistance()
	w.ExternalID = printable(r.id)
	if r.id == "" {
		w.ExternalID = uuid.NewSHA1(r.name, []byte("workout "+w.TimeStart.String())).String()
	}
	w.ProviderID = w.ExternalID
	if r.route == "" || e.beside == nil {
		e.workouts = append(e.workouts, w)
		if len(e.workouts) >= min(1000, e.out.opts.BatchSize) {
			return e.flushWorkouts()
		}
		return nil
	}
	stream, ok := e.readRoute(r.route, w)
	refused := e.out.rep.Refused["workouts"]
	if err := e.out.summaries("workouts", w); err != nil || !ok {
		return err
	}
	if e.out.rep.Refused["workouts"] > refused {
		e.out.countSkipped("stream of a workout that is refused", 1)
		return nil
	}
	return e.out.stream(w, stream)
}

// readRoute reads the track of a workout from the file name, and sets totals of w that the export lacks. It returns
// false if the track is missing or malformed.
func (e *export) readRoute(name string, w *healthdata.Workout) (healthdata.WorkoutStream, bool) {
	var none healthdata.WorkoutStream
	f, err := e.beside(strings.TrimPrefix(path.Clean("/"+name), "/"))
	if err != nil {
		e.out.note("the track of a workout is missing")
		return none, false
	}
	defer func() { _ = f.Close() }()
	data, err := readLimited(&ctxReader{ctx: e.out.ctx, r: f}, e.out.opts, GPX)
	if err != nil {
		e.out.note("the track of a workout cannot be read")
		return none, false
	}
	tracks, err := parseGPX(e.out, data)
	if err != nil || len(tracks) == 0 {
		e.out.note("the track of a workout cannot be read")
		return none, false
	}
	rec := recording{onFoot: onFoot(w.Sport.Slug)}
	for _, t := range tracks {
		rec.points = append(rec.points, t.points...)
	}
	rec.measure()
	rec.fill(w)
	e.out.removeBadTotals(w)
	return rec.stream(), true
}

func (e *export) flushWorkouts() error {
	items := e.workouts
	e.workouts = nil
	return e.out.summaries("workouts", items...)
}

// activityDay reads one activity day. The source of the day is the health store, which merges several devices.
func (e *export) activityDay() error {
	date, err := healthlab.ParseDate(string(e.attr("dateComponents")))
	if err != nil {
		return &itemError{"activity summary without its day"}
	}
	if !e.out.inTime(date.At(time.UTC).UnixMicro()) {
		return &itemError{"activity summary of a day before 1990 or in the future"}
	}
	a := &healthdata.Activity{CalendarDate: date}
	a.Source = healthdata.Source{Provider: e.provider(), Type: healthdata.SourceMultiple}
	a.CaloriesActive = e.quantity("activeEnergyBurned", "activeEnergyBurnedUnit", "kcal")
	if raw := e.attr("appleExerciseTime"); raw != nil {
		if v, ok := healthlab.ParseNumber(string(raw)); ok {
			a.Medium = &v
		} else {
			e.skipHere("value that is no number: appleExerciseTime")
		}
	}
	e.days = append(e.days, a)
	if len(e.days) >= min(1000, e.out.opts.BatchSize) {
		return e.flushDays()
	}
	return nil
}

func (e *export) flushDays() error {
	items := e.days
	e.days = nil
	return e.out.summaries("activity", items...)
}

// exportSports maps activity types of the phone's health store to sport slugs, for types whose slug is not their name
// in snake_case.
var exportSports = map[string]string{
	"TraditionalStrengthTraining":   "strength_training",
	"FunctionalStrengthTraining":    "functional_strength_training",
	"HighIntensityIntervalTraining": "hiit",
	"PaddleSports":                  "paddling",
	"StairClimbing":                 "stair_climbing",
	"Stairs":                        "stair_climbing",
	"MindAndBody":                   "mind_and_body",
	"WheelchairWalkPace":            "wheelchair_pushing",
	"WheelchairRunPace":             "wheelchair_pushing",
}

// exportSport turns an activity type into the slug of a sport.
func exportSport(activity string) string {
	name := strings.TrimPrefix(activity, "HKWorkoutActivityType")
	if slug, ok := exportSports[name]; ok {
		return slug
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			return "other"
		case i > 0 && unicode.IsUpper(r):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	if b.Len() == 0 || b.Len() > 60 {
		return "other"
	}
	return b.String()
}
