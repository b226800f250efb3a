package fileimport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// garminFile is a JSON file of the export of a Garmin account: a list of days, a list of nights, or an object with
// the list of activities.
type garminFile struct {
	// keys lists the object keys by which the file is recognised.
	keys []string
	read func(*garminReader) error
}

var garminFiles = []*garminFile{
	{[]string{"summarizedActivitiesExport"}, (*garminReader).activities},
	{[]string{"calendarDate", "sleepStartTimestampGMT"}, (*garminReader).nights},
	{[]string{"calendarDate", "sleepWindowConfirmationType"}, (*garminReader).nights},
	{[]string{"calendarDate", "totalSteps"}, (*garminReader).days},
	{[]string{"calendarDate", "wellnessStartTimeGmt"}, (*garminReader).days},
}

// garminFileOf returns the garminFile whose keys the first object in head has; nil if there is none.
func garminFileOf(head []byte) *garminFile {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, utf8BOM)))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil
		}
		keys := map[string]bool{}
		for t == json.Delim('{') && dec.More() {
			key, err := dec.Token()
			if name, ok := key.(string); err == nil && ok {
				keys[name] = true
			}
			var value json.RawMessage
			if err != nil || dec.Decode(&value) != nil {
				return garminFileWith(keys)
			}
		}
		if f := garminFileWith(keys); f != nil {
			return f
		}
		if t == json.Delim('{') {
			if _, err := dec.Token(); err != nil {
				return nil
			}
		} else if t == json.Delim('[') {
			return nil
		}
	}
	return nil
}

// garminFileWith returns the garminFile whose objects have these keys; nil if there is none.
func garminFileWith(keys map[string]bool) *garminFile {
	for _, f := range garminFiles {
		if !slices.ContainsFunc(f.keys, func(key string) bool { return !keys[key] }) {
			return f
		}
	}
	return nil
}

func garminUploads(name string) bool {
	ok, err := path.Match("UploadedFiles_*.zip", path.Base(name))
	return ok && err == nil && path.Base(path.Dir(name)) == "DI-Connect-Uploaded-Files"
}

// garminReader reads a file of the export of a Garmin account.
type garminReader struct {
	*jsonFile
	remarks remarks
}

func importGarmin(out *output, f *garminFile, r io.Reader) error {
	g := &garminReader{newJSONFile(out, GarminExport, r), remarks{out: out}}
	return f.read(g)
}

// garminEach calls do for each object of the list in a file. what names such an object in notes, and place is what with
// the number of the object. Reading errors become errors of the file.
func garminEach[T any](g *garminReader, what string, do func(place string, v *T) error) error {
	return g.result(g.list(func(n int) error {
		var raw json.RawMessage
		if err := g.value(&raw); err != nil {
			return err
		}
		place := fmt.Sprintf("%s %d", what, n)
		v := itemOf[T](raw)
		if v == nil {
			g.remarks.add(place, what, "an object of the export")
			return nil
		}
		return do(place, v)
	}))
}

// garminDay is a day of UDSFile_….json.
type garminDay struct {
	CalendarDate             string
	TotalSteps               *float64
	TotalDistanceMeters      *float64
	TotalKilocalories        *float64
	ActiveKilocalories       *float64
	ModerateIntensityMinutes *float64
	VigorousIntensityMinutes *float64
	MinHeartRate             *float64
	MaxHeartRate             *float64
	RestingHeartRate         *float64
	WellnessStartTimeGmt     string
	WellnessStartTimeLocal   string
}

// days stores activity days, which the provider merges from several devices. Of several objects for one day the last
// one is stored.
func (g *garminReader) days() error {
	b := newBatch(g.out, g.out.recordedBy(healthdata.SourceMultiple))
	days := map[healthlab.Date]*healthdata.Activity{}
	err := garminEach(g, "day", func(place string, v *garminDay) error {
		date, ok := g.date(place, v.CalendarDate)
		if !ok {
			return nil
		}
		a := &healthdata.Activity{
			CalendarDate: date, Steps: rounded(v.TotalSteps), Distance: v.TotalDistanceMeters, CaloriesTotal: positive(v.TotalKilocalories),
			CaloriesActive: v.ActiveKilocalories, Medium: v.ModerateIntensityMinutes, High: v.VigorousIntensityMinutes,
		}
		heart := healthdata.ActivityHeartRate{MinBPM: positive(v.MinHeartRate), MaxBPM: positive(v.MaxHeartRate), RestingBPM: positive(v.RestingHeartRate)}
		if heart != (healthdata.ActivityHeartRate{}) {
			a.HeartRate = &heart
		}
		if a.Steps == nil && a.HeartRate == nil && a.CaloriesTotal == nil && a.Distance == nil {
			g.out.skip("day without values")
			return nil
		}
		local, err1 := healthlab.ParseTime(v.WellnessStartTimeLocal)
		utc, err2 := healthlab.ParseTime(v.WellnessStartTimeGmt)
		if err1 == nil && err2 == nil {
			a.TimezoneOffset = offsetBetween(local.Sub(utc.Time))
		}
		days[date] = a
		return nil
	})
	if err != nil {
		return err
	}
	for _, date := range slices.SortedFunc(maps.Keys(days), healthlab.Date.Compare) {
		if err := b.summary("activity", days[date]); err != nil {
			return err
		}
	}
	return b.flush()
}

func positive(v *float64) *float64 {
	if v == nil || *v <= 0 {
		return nil
	}
	return v
}

func offsetBetween(d time.Duration) *int {
	if d%(15*time.Minute) != 0 || d < -18*time.Hour || d > 18*time.Hour {
		return nil
	}
	return new(int(d / time.Second))
}

// date reads a day. If the day is malformed, before 1990 or in the future, it returns false and adds a note that begins
// with place.
func (g *garminReader) date(place, text string) (healthlab.Date, bool) {
	date, err := healthlab.ParseDate(text)
	if err != nil || !g.out.inTime(date.At(time.UTC).UnixMicro()) {
		g.remarks.add(place, "calendarDate", "a day such as 2026-03-01, from 1990 on")
		return date, false
	}
	return date, true
}

// garminNight is a night of a …_sleepData.json file. Its times are in UTC.
type garminNight struct {
	CalendarDate           string
	SleepStartTimestampGMT string
	SleepEndTimestampGMT   string
	DeepSleepSeconds       *float64
	LightSleepSeconds      *float64
	RemSleepSeconds        *float64
	AwakeSleepSeconds      *float64
	AverageRespiration     *float64
	SleepScores            *struct{ OverallScore *float64 }
}

// nights stores nights. A night without stages was not measured and is left out.
func (g *garminReader) nights() error {
	b := newBatch(g.out, g.out.recordedBy(healthdata.SourceWatch))
	seen := map[int64]bool{}
	err := garminEach(g, "night", func(place string, v *garminNight) error {
		if v.SleepStartTimestampGMT == "" || positive(v.DeepSleepSeconds) == nil && positive(v.LightSleepSeconds) == nil && positive(v.RemSleepSeconds) == nil {
			g.out.skip("night that was not measured")
			return nil
		}
		date, ok := g.date(place, v.CalendarDate)
		start, ok1 := g.utc(place, "sleepStartTimestampGMT", v.SleepStartTimestampGMT)
		end, ok2 := g.utc(place, "sleepEndTimestampGMT", v.SleepEndTimestampGMT)
		if !ok || !ok1 || !ok2 {
			return nil
		}
		if !end.After(start) {
			g.remarks.add(place, "sleepEndTimestampGMT", "a time after the sleepStartTimestampGMT")
			return nil
		}
		if seen[start.Unix()] {
			g.out.skip("night with the start of another")
			return nil
		}
		seen[start.Unix()] = true
		s := &healthdata.Sleep{CalendarDate: date, BedtimeStart: healthlab.At(start), BedtimeStop: healthlab.At(end), RespiratoryRate: positive(v.AverageRespiration)}
		if g.out.opts.zoned {
			s.TimezoneOffset = offsetOf(end.In(g.out.opts.Zone))
			s.SessionOffsets = healthdata.SessionOffsets{StartTimezoneOffset: offsetOf(start.In(g.out.opts.Zone)), EndTimezoneOffset: s.TimezoneOffset}
		}
		for _, stage := range []struct {
			length  **int64
			field   string
			seconds *float64
		}{
			{&s.Deep, "deepSleepSeconds", v.DeepSleepSeconds}, {&s.Light, "lightSleepSeconds", v.LightSleepSeconds},
			{&s.REM, "remSleepSeconds", v.RemSleepSeconds}, {&s.Awake, "awakeSleepSeconds", v.AwakeSleepSeconds},
		} {
			if n := stage.seconds; n != nil && (*n < 0 || *n > end.Sub(start).Seconds()) {
				g.remarks.add(place, stage.field, "0 to the length of the night")
				s.Partial = true // the file has no total, and that of the other stages is none
			} else {
				*stage.length = rounded(n)
			}
		}
		if !s.Partial {
			s.Total = new(secondsOf(s.Deep) + secondsOf(s.Light) + secondsOf(s.REM))
		}
		if v.SleepScores != nil {
			s.Score = rounded(positive(v.SleepScores.OverallScore))
		}
		return b.summary("sleep", s)
	})
	if err != nil {
		return err
	}
	return b.flush()
}

// utc reads a time in UTC. If the time is malformed, has another offset, or is before 1990 or in the future, it returns
// false and adds a note that begins with place and names field.
func (g *garminReader) utc(place, field, text string) (time.Time, bool) {
	t, _, ok := readTime(text)
	if _, offset := t.Zone(); !ok || offset != 0 || !g.out.inTime(t.UnixMicro()) {
		g.remarks.add(place, field, "a time in UTC such as 2026-03-01T22:50:05.0, from 1990 to a day ahead")
		return time.Time{}, false
	}
	return t, true
}

// garminActivity is an activity of …_summarizedActivities.json: times and lengths in milliseconds,
// distances and climb in centimetres, speeds in units of 10 m/s.
type garminActivity struct {
	ActivityID      json.Number
	Name            *string
	ActivityType    string
	BeginTimestamp  *float64
	StartTimeGmt    *float64
	StartTimeLocal  *float64
	Duration        *float64
	ElapsedDuration *float64
	MovingDuration  *float64
	Distance        *float64
	ElevationGain   *float64
	AvgSpeed        *float64
	MaxSpeed        *float64
	AvgHR           *float64
	MaxHR           *float64
	AvgPower        *float64
	MaxPower        *float64
	Steps           *float64
	Parent          bool
}

// activities stores workouts. Their source is equal to that of the FIT files in the archive, so that a workout with a
// FIT file counts once.
func (g *garminReader) activities() error {
	b := newBatch(g.out, g.out.recordedBy(healthdata.SourceUnknown))
	seen := map[string]bool{}
	n := 0
	err := g.result(g.list(func(int) error {
		return g.object(func(key string) error {
			if key != "summarizedActivitiesExport" {
				return g.skip()
			}
			return g.list(func(int) error {
				var raw json.RawMessage
				if err := g.value(&raw); err != nil {
					return err
				}
				n++
				w := g.workout(fmt.Sprintf("activity %d", n), itemOf[garminActivity](raw))
				if w == nil {
					return nil
				}
				if w.ExternalID != "" && seen[w.ExternalID] {
					g.out.skip("activity with the id of another")
					return nil
				}
				seen[w.ExternalID] = true
				return b.summary("workouts", w)
			})
		})
	}))
	if err != nil {
		return err
	}
	return b.flush()
}

// workout converts an activity to a workout. It returns nil and counts the activity if it is invalid.
func (g *garminReader) workout(place string, v *garminActivity) *healthdata.Workout {
	if v == nil {
		g.remarks.add(place, "activity", "an object of the export")
		return nil
	}
	if v.Parent {
		g.out.skip("activity of several sports, whose parts are there")
		return nil
	}
	begin, length := cmp.Or(v.BeginTimestamp, v.StartTimeGmt), cmp.Or(positive(v.ElapsedDuration), positive(v.Duration))
	const latest = 4102444800e3 // the year 2100, so that the number fits an int64
	if begin == nil || *begin < 0 || *begin > latest || !g.out.inTime(int64(*begin)*1000) {
		g.remarks.add(place, "beginTimestamp", "milliseconds since 1970, from 1990 to a day ahead")
		return nil
	}
	if length == nil || *length > float64((7*24*time.Hour).Milliseconds()) {
		g.remarks.add(place, "elapsedDuration", "milliseconds, at most 7 days")
		return nil
	}
	start := time.UnixMilli(int64(*begin))
	part := func(v *float64, of float64) *float64 {
		if v = positive(v); v == nil {
			return nil
		}
		return new(*v / of)
	}
	w := &healthdata.Workout{
		TimeStart: healthlab.At(start), TimeEnd: healthlab.At(start.Add(time.Duration(*length) * time.Millisecond)), Title: v.Name,
		Sport: healthdata.SportOf(wordsOf(v.ActivityType)), MovingTime: rounded(part(v.MovingDuration, 1000)),
		Distance: part(v.Distance, 100), TotalElevationGain: part(v.ElevationGain, 100), AverageSpeed: part(v.AvgSpeed, 0.1), MaxSpeed: part(v.MaxSpeed, 0.1),
		AverageHR: rounded(positive(v.AvgHR)), MaxHR: rounded(positive(v.MaxHR)), AverageWatts: positive(v.AvgPower), MaxWatts: positive(v.MaxPower), Steps: rounded(positive(v.Steps)),
	}
	w.ExternalID = printable(v.ActivityID.String())
	w.ProviderID = w.ExternalID
	if utc := cmp.Or(v.StartTimeGmt, v.BeginTimestamp); v.StartTimeLocal != nil {
		w.TimezoneOffset = offsetBetween(time.Duration(*v.StartTimeLocal-*utc) * time.Millisecond)
	}
	g.out.removeBadTotals(w)
	return w
}
