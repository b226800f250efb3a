package fileimport

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Files of the export of a WHOOP account. Their times are local, in the zone that the row states.
var (
	whoopCycles = csvFile{
		format: WHOOPExport, name: "physiological_cycles.csv", read: readWHOOPCycles,
		keys: []string{cycleStart, cycleEnd, cycleZone, sleepOnset, wakeOnset, "Recovery score %"},
	}
	whoopSleeps = csvFile{
		format: WHOOPExport, name: "sleeps.csv", read: readWHOOPSleeps,
		keys: []string{cycleZone, sleepOnset, wakeOnset, "Nap"},
	}
	whoopWorkouts = csvFile{
		format: WHOOPExport, name: "workouts.csv", read: readWHOOPWorkouts,
		keys: []string{cycleZone, workoutStart, workoutEnd, "Activity name"},
	}
)

// Columns with times.
const (
	cycleStart   = "Cycle start time"
	cycleEnd     = "Cycle end time"
	cycleZone    = "Cycle timezone"
	sleepOnset   = "Sleep onset"
	wakeOnset    = "Wake onset"
	workoutStart = "Workout start time"
	workoutEnd   = "Workout end time"
)

// whoopCycle is a row of physiological_cycles.csv: a day from sleep to sleep, with the recovery of
// its night.
type whoopCycle struct {
	activity healthdata.Activity
	heart    healthdata.ActivityHeartRate
	sleep    healthdata.Sleep
	oxygen   *float64 // percent
}

var whoopCycleColumns = []value[whoopCycle]{
	{"Recovery score %", 0, 100, func(c *whoopCycle, n float64) { c.sleep.RecoveryReadinessScore = roundedNumber(n) }},
	{"Resting heart rate (bpm)", 20, 250, func(c *whoopCycle, n float64) { c.sleep.HRResting = roundedNumber(n) }},
	{"Heart rate variability (ms)", 0, 1000, func(c *whoopCycle, n float64) { c.sleep.AverageHRV = positive(&n) }},
	{"Skin temp (celsius)", 10, 50, func(c *whoopCycle, n float64) { c.sleep.SkinTemperature = &n }},
	{"Blood oxygen %", 1, 100, func(c *whoopCycle, n float64) { c.oxygen = &n }},
	{"Energy burned (cal)", 0, 50_000, func(c *whoopCycle, n float64) { c.activity.CaloriesTotal = &n }}, // kcal
	{"Max HR (bpm)", 20, 300, func(c *whoopCycle, n float64) { c.heart.MaxBPM = &n }},
	{"Average HR (bpm)", 20, 300, func(c *whoopCycle, n float64) { c.heart.AvgBPM = &n }},
}

// whoopSleepColumns lists the columns that both sleep files share.
var whoopSleepColumns = []value[healthdata.Sleep]{
	{"Sleep performance %", 0, 100, func(s *healthdata.Sleep, n float64) { s.Score = roundedNumber(n) }},
	{"Respiratory rate (rpm)", 1, 100, func(s *healthdata.Sleep, n float64) { s.RespiratoryRate = &n }},
	{"Asleep duration (min)", 0, 2880, func(s *healthdata.Sleep, n float64) { s.Total = roundedNumber(60 * n) }},
	{"Light sleep duration (min)", 0, 2880, func(s *healthdata.Sleep, n float64) { s.Light = roundedNumber(60 * n) }},
	{"Deep (SWS) duration (min)", 0, 2880, func(s *healthdata.Sleep, n float64) { s.Deep = roundedNumber(60 * n) }},
	{"REM duration (min)", 0, 2880, func(s *healthdata.Sleep, n float64) { s.REM = roundedNumber(60 * n) }},
	{"Awake duration (min)", 0, 2880, func(s *healthdata.Sleep, n float64) { s.Awake = roundedNumber(60 * n) }},
	{"Sleep efficiency %", 0, 100, func(s *healthdata.Sleep, n float64) { s.Efficiency = positive(&n) }},
}

var whoopWorkoutColumns = []value[healthdata.Workout]{
	{"Energy burned (cal)", 0, 50_000, func(w *healthdata.Workout, n float64) { w.Calories = &n }}, // kcal
	{"Max HR (bpm)", 20, 300, func(w *healthdata.Workout, n float64) { w.MaxHR = roundedNumber(n) }},
	{"Average HR (bpm)", 20, 300, func(w *healthdata.Workout, n float64) { w.AverageHR = roundedNumber(n) }},
}

// whoopTrackColumns lists the columns that the file of workouts may lack.
var whoopTrackColumns = []value[healthdata.Workout]{
	{"Distance (meters)", 0, 2_000_000, func(w *healthdata.Workout, n float64) { w.Distance = &n }},
	{"Altitude gain (meters)", 0, 50_000, func(w *healthdata.Workout, n float64) { w.TotalElevationGain = &n }},
}

// whoopZone reads the zone of a row: UTC-04:00, UTCZ, or an IANA name.
func whoopZone(r *rows) (*time.Location, bool) {
	text := plainText(r.text(cycleZone))
	if strings.Contains(text, "/") {
		if zone, err := time.LoadLocation(text); err == nil {
			return zone, true
		}
	}
	if len(text) > 3 && strings.HasSuffix(text, "Z") { // UTCZ
		text = text[:3]
	}
	offset, err := healthlab.ParseOffset(text)
	if err != nil {
		r.refuse(cycleZone, "an offset such as UTC-04:00")
		return nil, false
	}
	return time.FixedZone("", offset), true
}

// whoopTime reads a local time. It returns false if the cell is empty or unreadable.
func whoopTime(r *rows, column string, zone *time.Location) (time.Time, bool) {
	if r.text(column) == "" {
		return time.Time{}, false
	}
	clock, zoned, ok := timeOf(r, column, "2026-03-01 22:50:05")
	if ok && zoned && clock.Location() == time.UTC {
		clock = clock.In(zone)
	}
	if !ok || zoned {
		return clock, ok
	}
	at := clockTimes(clock, zone)
	if len(at) != 1 {
		r.skipRow("row of the hour in which the clock changed")
		return time.Time{}, false
	}
	return at[0], true
}

// whoopSpan reads the start and the end of a session from the columns from and to. If one is missing or the end is
// before the start, it adds a note and returns false.
func whoopSpan(r *rows, zone *time.Location, from, to string) (start, end time.Time, ok bool) {
	start, ok1 := whoopTime(r, from, zone)
	end, ok2 := whoopTime(r, to, zone)
	for _, column := range []string{from, to} {
		if r.text(column) == "" {
			r.refuse(column, "a time")
		}
	}
	if ok1 && ok2 && end.Before(start) {
		r.refuse(to, "a time that is not before the "+from)
		return start, end, false
	}
	return start, end, ok1 && ok2
}

// offsetOf returns the offset of a time; nil if its location is time.UTC, which stands for a time without an offset.
func offsetOf(t time.Time) *int {
	if t.Location() == time.UTC {
		return nil
	}
	_, offset := t.Zone()
	return &offset
}

// longestOfDay is the activity of a day, with the length of the cycle that it comes from.
type longestOfDay struct {
	length   time.Duration
	activity *healthdata.Activity
}

// readWHOOPCycles stores nights with their recovery, and days. The day of a cycle is the local date twelve hours after
// its start.
func readWHOOPCycles(r *rows) error {
	b := newBatch(r.out, r.out.recordedBy(healthdata.SourceWatch))
	days, nights := map[healthlab.Date]longestOfDay{}, map[int64]bool{}
	expect(r, whoopCycleColumns)
	expect(r, whoopSleepColumns)
	err := r.each(func() error {
		zone, ok := whoopZone(r)
		if !ok {
			return nil
		}
		var c whoopCycle
		readValues(r, whoopCycleColumns, &c)
		addWHOOPDay(r, days, &c, zone)
		if r.text(sleepOnset) == "" && r.text(wakeOnset) == "" {
			return nil // a cycle without a night
		}
		from, to, ok := whoopSpan(r, zone, sleepOnset, wakeOnset)
		if !ok {
			return nil
		}
		if err := handOverNight(r, b, nights, &c.sleep, from, to); err != nil {
			return err
		}
		if err := handOverRecovery(b, &c, to); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, day := range slices.SortedFunc(maps.Keys(days), healthlab.Date.Compare) {
		if err := b.summary("activity", days[day].activity); err != nil {
			return err
		}
	}
	return b.flush()
}

// addWHOOPDay adds the activity of a cycle to days, under the day of the cycle. If a day has several cycles, the
// longest one is stored.
func addWHOOPDay(r *rows, days map[healthlab.Date]longestOfDay, c *whoopCycle, zone *time.Location) {
	start, ok := whoopTime(r, cycleStart, zone)
	if !ok || c.activity.CaloriesTotal == nil && c.heart == (healthdata.ActivityHeartRate{}) {
		return
	}
	day := longestOfDay{activity: &c.activity}
	if end, ok := whoopTime(r, cycleEnd, zone); ok { // the last cycle has not ended
		day.length = end.Sub(start)
	}
	c.activity.CalendarDate, c.activity.TimezoneOffset = healthlab.DateOf(start.Add(12*time.Hour)), offsetOf(start)
	if c.heart != (healthdata.ActivityHeartRate{}) {
		c.activity.HeartRate = &c.heart
	}
	before, taken := days[c.activity.CalendarDate]
	if taken {
		r.skipRow("cycle of a day with a longer cycle")
	}
	if !taken || day.length > before.length {
		days[c.activity.CalendarDate] = day
	}
}

// handOverNight stores a sleep, unless one with the same start was stored. The sleep is partial, because another file of
// the export may have more columns of it.
func handOverNight(r *rows, b *batch, seen map[int64]bool, s *healthdata.Sleep, from, to time.Time) error {
	if seen[from.Unix()] {
		r.skipRow("sleep with the start of another")
		return nil
	}
	seen[from.Unix()] = true
	readValues(r, whoopSleepColumns, s)
	s.BedtimeStart, s.BedtimeStop, s.TimezoneOffset, s.Partial = healthlab.At(from), healthlab.At(to), offsetOf(to), true
	return b.summary("sleep", s)
}

// handOverRecovery stores the samples of a recovery at the end of its night.
func handOverRecovery(b *batch, c *whoopCycle, at time.Time) error {
	wrist := "wrist"
	for _, m := range []struct {
		resource string
		value    *float64
		place    *string
	}{
		{"hrv", c.sleep.AverageHRV, nil},
		{"blood_oxygen", c.oxygen, nil},
		{"body_temperature", c.sleep.SkinTemperature, &wrist},
	} {
		if m.value == nil {
			continue
		}
		s := healthdata.Sample{Timestamp: healthlab.At(at), TimezoneOffset: offsetOf(at), Value: healthdata.Number(*m.value), SensorLocation: m.place}
		if err := b.sample(m.resource, s); err != nil {
			return err
		}
	}
	return nil
}

// readWHOOPSleeps stores naps and nights. The recovery of a night is in physiological_cycles.csv.
func readWHOOPSleeps(r *rows) error {
	b, seen := newBatch(r.out, r.out.recordedBy(healthdata.SourceWatch)), map[int64]bool{}
	expect(r, whoopSleepColumns)
	err := r.each(func() error {
		zone, ok := whoopZone(r)
		if !ok {
			return nil
		}
		from, to, ok := whoopSpan(r, zone, sleepOnset, wakeOnset)
		if !ok {
			return nil
		}
		var s healthdata.Sleep
		switch nap := r.text("Nap"); {
		case strings.EqualFold(nap, "true"):
			s.Type = healthdata.SleepNap
		case nap != "" && !strings.EqualFold(nap, "false"):
			r.refuse("Nap", "true or false")
			return nil
		}
		if err := handOverNight(r, b, seen, &s, from, to); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.flush()
}

// readWHOOPWorkouts stores workouts.
func readWHOOPWorkouts(r *rows) error {
	b, seen := newBatch(r.out, r.out.recordedBy(healthdata.SourceWatch)), map[int64]bool{}
	expect(r, whoopWorkoutColumns)
	err := r.each(func() error {
		zone, ok := whoopZone(r)
		if !ok {
			return nil
		}
		from, to, ok := whoopSpan(r, zone, workoutStart, workoutEnd)
		if !ok {
			return nil
		}
		if seen[from.Unix()] {
			r.skipRow("workout with the start of another")
			return nil
		}
		seen[from.Unix()] = true
		w := &healthdata.Workout{
			TimeStart: healthlab.At(from), TimeEnd: healthlab.At(to), TimezoneOffset: offsetOf(from), Sport: healthdata.SportOf(wordsOf(r.text("Activity name"))),
		}
		readValues(r, whoopWorkoutColumns, w)
		readValues(r, whoopTrackColumns, w)
		if err := b.summary("workouts", w); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.flush()
}
