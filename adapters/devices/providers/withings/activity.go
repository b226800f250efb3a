package withings

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// active lists the collections of activity and workouts.
var active = []rest.Collection{
	{
		Name: "getactivity", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: days, Pages: pages, Items: "body.activities",
		Query: action("getactivity", "steps", "distance", "elevation", "soft", "moderate", "intense", "calories", "totalcalories",
			"hr_average", "hr_min", "hr_max"),
		Messages: []string{"16"}, Resources: []string{"activity"}, Read: rest.Each(readActivity),
	},
	{
		Name: "getintradayactivity", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: oneDay, Items: "body.series",
		Query: action("getintradayactivity", "steps", "distance", "elevation", "calories", "duration", "heart_rate", "spo2_auto", "rmssd"),
		MessagesFor: map[string][]string{
			"16": {"steps", "distance", "calories_active", "floors_climbed", "heartrate", "blood_oxygen"}, "62": {"hrv"},
		},
		Resources: []string{"steps", "distance", "calories_active", "floors_climbed", "heartrate", "blood_oxygen", "hrv"},
		Read:      rest.Each(readIntraday),
	},
	{
		Name: "getworkouts", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: days, Pages: pages, Items: "body.series",
		Query: action("getworkouts", "calories", "distance", "steps", "hr_average", "hr_max", "hr_zone_0", "hr_zone_1", "hr_zone_2", "hr_zone_3",
			"pause_duration", "manual_calories", "manual_distance"),
		Messages: []string{"16"}, Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
	},
}

const (
	minutes = 1.0 / 60
	foreign = 18 // brand of a day whose activity was recorded by another vendor's app
)

func readActivity(v *struct {
	hardware
	Date     healthlab.Date `json:"date"`
	Zone     string         `json:"timezone"`
	Brand    int            `json:"brand"`
	Steps    *float64       `json:"steps"`
	Distance *float64       `json:"distance"`
	Floors   *float64       `json:"elevation"`
	Soft     *float64       `json:"soft"`
	Moderate *float64       `json:"moderate"`
	Intense  *float64       `json:"intense"`
	Active   *float64       `json:"calories"`
	Total    *float64       `json:"totalcalories"`
	HR       *float64       `json:"hr_average"`
	HRMin    *float64       `json:"hr_min"`
	HRMax    *float64       `json:"hr_max"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	source := v.device(out)
	if v.Brand == foreign {
		source = orUnknown(source, healthdata.SourceApp)
	}
	a := &healthdata.Activity{
		CalendarDate: v.Date, Steps: rest.Round(v.Steps), Distance: v.Distance, FloorsClimbed: rest.Round(v.Floors), CaloriesActive: v.Active,
		CaloriesTotal: v.Total, Low: rest.Times(v.Soft, minutes), Medium: rest.Times(v.Moderate, minutes), High: rest.Times(v.Intense, minutes),
		TimeZone: rest.Text(v.Zone),
	}
	if hr := (healthdata.ActivityHeartRate{AvgBPM: rest.Positive(v.HR), MinBPM: rest.Positive(v.HRMin), MaxBPM: rest.Positive(v.HRMax)}); hr != (healthdata.ActivityHeartRate{}) {
		a.HeartRate = &hr
	}
	out.Summary("activity", orUnknown(source, healthdata.SourceWatch), a)
}

type intraday struct {
	hardware
	Steps    *float64 `json:"steps"`
	Distance *float64 `json:"distance"`
	Floors   *float64 `json:"elevation"`
	KCal     *float64 `json:"calories"`
	Duration float64  `json:"duration"`
	HR       *float64 `json:"heart_rate"`
	SpO2     *float64 `json:"spo2_auto"`
	RMSSD    *float64 `json:"rmssd"`
}

func readIntraday(v *byTime[intraday], out *rest.Batch) {
	for _, at := range slices.Sorted(maps.Keys(*v)) {
		x := (*v)[at]
		out.Device(nil)
		source := orUnknown(x.device(out), healthdata.SourceWatch)
		start, end := at.time(), (at + unix(max(x.Duration, 0))).time()
		interval := func(resource, unit string, value *float64) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: start, Start: &start, End: &end, Unit: unit, Value: rest.Number(value)})
		}
		interval("steps", "count", x.Steps)
		interval("distance", "m", x.Distance)
		interval("calories_active", "kcal", x.KCal)
		interval("floors_climbed", "count", x.Floors)
		instant := func(resource, unit string, value *float64) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: start, Unit: unit, Value: rest.Number(value)})
		}
		instant("heartrate", "bpm", rest.Positive(x.HR))
		instant("blood_oxygen", "%", rest.Positive(x.SpO2))
		instant("hrv", "rmssd", rest.Positive(x.RMSSD))
	}
}

func readWorkout(v *struct {
	hardware
	ID       rest.ID `json:"id"`
	Category int     `json:"category"`
	Zone     string  `json:"timezone"`
	Attrib   int     `json:"attrib"`
	Start    unix    `json:"startdate"`
	End      unix    `json:"enddate"`
	Data     details[struct {
		KCal           *float64 `json:"calories"`
		Distance       *float64 `json:"distance"`
		Steps          *float64 `json:"steps"`
		HR             *float64 `json:"hr_average"`
		HRMax          *float64 `json:"hr_max"`
		Zone0          *float64 `json:"hr_zone_0"`
		Zone1          float64  `json:"hr_zone_1"`
		Zone2          float64  `json:"hr_zone_2"`
		Zone3          float64  `json:"hr_zone_3"`
		Pause          *float64 `json:"pause_duration"`
		ManualKCal     *float64 `json:"manual_calories"`
		ManualDistance *float64 `json:"manual_distance"`
	}] `json:"data"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	source, x := orUnknown(v.device(out), healthdata.SourceWatch), &v.Data.v
	if manual(v.Attrib) {
		source = healthdata.SourceApp
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID.String()}, Sport: healthdata.SportOf(sports[v.Category]), TimeStart: v.Start.time(), TimeEnd: v.End.time(),
		Calories: cmp.Or(rest.Positive(x.ManualKCal), x.KCal), Distance: cmp.Or(rest.Positive(x.ManualDistance), x.Distance), Steps: rest.Round(x.Steps),
		AverageHR: rest.Round(rest.Positive(x.HR)), MaxHR: rest.Round(rest.Positive(x.HRMax)),
	}
	if x.Zone0 != nil && x.HR != nil && *x.HR > 0 {
		w.HRZones = []int64{int64(*x.Zone0), int64(x.Zone1), int64(x.Zone2), int64(x.Zone3)}
	}
	if x.Pause != nil {
		w.MovingTime = rest.Ptr(max(int64(v.End-v.Start)-int64(*x.Pause), 0))
	}
	out.Summary("workouts", source, w)
}
