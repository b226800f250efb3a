package polar

import (
	"cmp"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// workouts lists the collections of exercises.
var workouts = []rest.Collection{
	{
		Name: "exercises", Scopes: scopes, Path: "/v3/exercises", Query: url.Values{"zones": {"true"}}, Time: uploaded,
		Key: rest.KeyOf("id"), Keep: []string{"id"}, Messages: []string{"EXERCISE"}, Resources: []string{"workouts"}, Read: rest.Each(readExercise),
	},
	{
		Name: "exercise", Scopes: scopes, For: "exercises", Path: "/v3/exercises/{id}", Missing: missing,
		Query:    url.Values{"samples": {"true"}, "route": {"true"}, "zones": {"true"}},
		Messages: []string{"EXERCISE"}, Resources: []string{"workout_stream"}, Read: rest.Each(readStream),
	},
}

// uploaded returns when an exercise was uploaded; zero if unknown.
func uploaded(item json.RawMessage) time.Time {
	var v struct {
		At clock `json:"upload_time"`
	}
	_ = json.Unmarshal(item, &v) // an exercise without a time belongs to every range
	return v.At.Time.Time
}

type exercise struct {
	ID       string   `json:"id"`
	Device   string   `json:"device"`
	DeviceID string   `json:"device_id"`
	Start    clock    `json:"start_time"`
	Minutes  *float64 `json:"start_time_utc_offset"`
	Duration string   `json:"duration"`
	KCal     *float64 `json:"calories"`
	Distance *float64 `json:"distance"`
	HR       struct {
		Average *float64 `json:"average"`
		Maximum *float64 `json:"maximum"`
	} `json:"heart_rate"`
	Sport    string `json:"sport"`
	Detailed string `json:"detailed_sport_info"`
	Zones    []zone `json:"heart_rate_zones"`
	Samples  rest.List[struct {
		Rate *float64 `json:"recording-rate"`
		Type rest.ID  `json:"sample-type"`
		Data string   `json:"data"`
	}] `json:"samples"`
	Route rest.List[struct {
		Latitude  *float64 `json:"latitude"`
		Longitude *float64 `json:"longitude"`
		Time      string   `json:"time"`
	}] `json:"route"`
}

// zone is a heart rate zone, with the ISO 8601 duration for which the person was in it.
type zone struct {
	Index int    `json:"index"`
	In    string `json:"in-zone"`
}

// workout returns the workout and sets its device in out. It returns nil, and reports a problem, if the exercise has no
// start or duration.
func (v *exercise) workout(out *rest.Batch) *healthdata.Workout {
	length := rest.Duration(v.Duration)
	if length == nil || v.Start.IsZero() {
		out.Problem("missing", "an exercise must have a start_time and an ISO 8601 duration", "duration")
		return nil
	}
	start, offset := v.Start.Time.Time, rest.OffsetOf(v.Minutes, time.Minute)
	if offset != nil {
		start = start.Add(-time.Duration(*offset) * time.Second)
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID}, TimeStart: healthlab.At(start), TimeEnd: healthlab.At(start.Add(*length)), TimezoneOffset: offset,
		Sport: healthdata.SportOf(rest.Slug(cmp.Or(v.Detailed, v.Sport))), Calories: v.KCal, Distance: v.Distance,
		AverageHR: rest.Round(v.HR.Average), MaxHR: rest.Round(v.HR.Maximum),
	}
	slices.SortFunc(v.Zones, func(a, b zone) int { return cmp.Compare(a.Index, b.Index) })
	for _, z := range v.Zones {
		in := int64(0)
		if d := rest.Duration(z.In); d != nil {
			in = rest.Whole(*d)
		}
		w.HRZones = append(w.HRZones, in)
	}
	if v.Device != "" || v.DeviceID != "" {
		out.Device(&healthdata.DeviceInfo{Manufacturer: rest.Ptr("Polar"), Model: rest.Text(v.Device), ID: rest.Text(v.DeviceID)})
	}
	return w
}

func readExercise(v *exercise, out *rest.Batch) {
	if w := v.workout(out); w != nil {
		out.Summary("workouts", watch, w)
	}
}

// samples maps the supported sample types to columns of a recording, with the factor that converts the unit.
var samples = map[rest.ID]struct {
	column rest.Column
	factor float64
}{
	"0": {rest.ColumnHeartrate, 1}, "1": {rest.ColumnSpeed, 1 / 3.6}, "2": {rest.ColumnCadence, 1}, "3": {rest.ColumnAltitude, 1},
	"4": {rest.ColumnPower, 1}, "8": {rest.ColumnCadence, 2}, "9": {rest.ColumnTemperature, 1}, "10": {rest.ColumnDistance, 1},
}

func readStream(v *exercise, out *rest.Batch) {
	w := v.workout(out)
	if w == nil {
		return
	}
	var track rest.Track
	second := func(at float64) int64 { return w.TimeStart.Unix() + int64(math.Round(at)) }
	for _, s := range v.Samples.In(out, "samples") {
		of, known := samples[s.Type]
		if !known || s.Rate == nil || *s.Rate <= 0 {
			continue // samples of beats have no recording rate
		}
		for i, text := range strings.Split(s.Data, ",") {
			var value *float64
			if n, ok := healthlab.ParseNumber(text); ok {
				value = rest.Ptr(n * of.factor)
			}
			track.Put(of.column, second(float64(i)**s.Rate), value)
		}
	}
	for _, p := range v.Route.In(out, "route") {
		if at := rest.Duration(p.Time); at != nil {
			track.Put(rest.ColumnLat, second(at.Seconds()), p.Latitude)
			track.Put(rest.ColumnLng, second(at.Seconds()), p.Longitude)
		}
	}
	out.Stream(watch, w, track.Stream())
}
