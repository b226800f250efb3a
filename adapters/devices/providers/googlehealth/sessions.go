package googlehealth

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/recording"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// sessions lists the collections of sleep, exercises and other sessions, and of devices.
var sessions = []rest.Collection{
	sleeps(), exercises(),
	{
		Name: "exercise-tcx", Scopes: []string{activity, place}, For: "exercise", Path: types + "exercise/dataPoints/{id}:exportExerciseTcx", Media: true,
		Query: url.Values{"alt": {"media"}}, Missing: []int{http.StatusNotFound}, Messages: []string{"exercise"},
		Resources: []string{"workout_stream"}, Read: readTrack,
	},
	list("nutrition-log", eaten, "interval.start_time", "1000", rest.Range{}, rest.Each(readFood), "meal"),
	listSince("electrocardiogram", ecg, `electrocardiogram.interval.start_time >= "{from}"`, rest.Each(readECG), "electrocardiogram", "electrocardiogram_voltage"),
	listSince("irregular-rhythm-notification", rhythm, "", rest.Each(readRhythm), "heart_rate_alert"),
	{
		Name: "pairedDevices", Scopes: []string{settings}, Path: "/v4/users/me/pairedDevices", Pages: rest.Cursor("pageToken", "nextPageToken"),
		Items: "pairedDevices", Resources: []string{"device"}, Read: rest.Each(readDevice),
	},
}

// ofSleep lists the collections that are joined to the sleep that ended on their day.
var ofSleep = []string{"daily-heart-rate-variability", "daily-respiratory-rate", "daily-sleep-temperature-derivations"}

func sleeps() rest.Collection {
	k := list("sleep", asleep, "interval.end_time", "25", rest.Range{}, rest.Each(readSleep), "sleep", "sleep_cycle")
	k.Key, k.Keep, k.Join, k.JoinFor = sleepKey, []string{"sleep.interval"}, ofSleep, []string{"sleep"}
	k.Messages = append(k.Messages, ofSleep...)
	return k
}

func exercises() rest.Collection {
	k := list("exercise", activity, "interval.civil_start_time", "25", rest.Range{Format: rest.Zoneless, Before: rest.Day, After: rest.Day},
		rest.Each(readExercise), "workouts")
	k.Key, k.Keep = exerciseKey, []string{"name", "dataSource", "exercise"}
	return k
}

// listSince returns a collection that is requested with the start of the range only, by filter, or without a range if
// filter is empty. Items outside of the requested range are dropped.
func listSince(name, scope, filter string, read func(json.RawMessage, *rest.Batch), resources ...string) rest.Collection {
	k := list(name, scope, "", "25", rest.Range{}, read, resources...)
	if k.Range.Filter = filter; filter == "" {
		k.Range = rest.Range{}
	}
	k.Time = func(item json.RawMessage) time.Time { return startOf(item, camel(name)) }
	return k
}

// sports maps exercise types to slugs where the slug is not the type in lower case.
var sports = map[string]string{"BIKING": "cycling", "WEIGHTLIFTING": "strength_training", "OTHER": "", "EXERCISE_TYPE_UNSPECIFIED": ""}

// exercisePoint is a workout.
type exercisePoint struct {
	point
	Exercise struct {
		Interval interval `json:"interval"`
		Type     string   `json:"exerciseType"`
		Title    *string  `json:"displayName"`
		Active   *seconds `json:"activeDuration"`
		Metrics  struct {
			KCal     *rest.Float `json:"caloriesKcal"`
			Distance *rest.Float `json:"distanceMillimeters"`
			Steps    *rest.Float `json:"steps"`
			HR       *rest.Float `json:"averageHeartRateBeatsPerMinute"`
			Climb    *rest.Float `json:"elevationGainMillimeters"`
			Speed    *rest.Float `json:"averageSpeedMillimetersPerSecond"`
			Zones    *struct {
				Light    seconds `json:"lightTime"`
				Moderate seconds `json:"moderateTime"`
				Vigorous seconds `json:"vigorousTime"`
				Peak     seconds `json:"peakTime"`
			} `json:"heartRateZoneDurations"`
		} `json:"metricsSummary"`
	} `json:"exercise"`
}

func (v *exercisePoint) workout() *healthdata.Workout {
	x := &v.Exercise
	sport, known := sports[x.Type]
	if !known {
		sport = strings.ToLower(x.Type)
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.id()}, Title: x.Title, Sport: healthdata.SportOf(sport), TimeStart: x.Interval.Start.Time,
		TimeEnd: x.Interval.End.Time, TimezoneOffset: x.Interval.StartOffset.offset(), SessionOffsets: x.Interval.offsets(), Calories: x.Metrics.KCal.Over(1),
		Distance: x.Metrics.Distance.Over(1000), Steps: rest.Round(x.Metrics.Steps.Over(1)), AverageHR: rest.Round(x.Metrics.HR.Over(1)),
		TotalElevationGain: x.Metrics.Climb.Over(1000), AverageSpeed: x.Metrics.Speed.Over(1000),
	}
	if x.Active != nil {
		w.MovingTime = rest.Ptr(x.Active.wholeSeconds())
	}
	if z := x.Metrics.Zones; z != nil {
		w.HRZones = []int64{z.Light.wholeSeconds(), z.Moderate.wholeSeconds(), z.Vigorous.wholeSeconds(), z.Peak.wholeSeconds()}
	}
	return w
}

func readExercise(v *exercisePoint, out *rest.Batch) {
	out.Summary("workouts", v.source(out), v.workout())
}

func exerciseKey(item json.RawMessage) string {
	var v point
	_ = json.Unmarshal(item, &v) // an exercise without a name has no track
	return v.id()
}

// readTrack reads a TCX file, or a JSON document that contains one, as the recording of the joined exercise. From a
// stored file it also reads the workouts.
func readTrack(file json.RawMessage, out *rest.Batch) {
	if text, err := rest.AccountIn(file, "tcxData"); err == nil {
		file = json.RawMessage(text)
	}
	recording.Add(out, Slug, file, healthdata.SourceUnknown, func() (healthdata.SourceType, *healthdata.Workout) {
		var of exercisePoint
		if json.Unmarshal(out.Joined("exercise", out.ID()), &of) != nil {
			return "", nil
		}
		return of.source(out), of.workout()
	})
}

// stages maps the stages of a sleep. Other stages are gaps.
var stages = map[string]healthdata.SleepStage{
	"AWAKE": healthdata.SleepStageAwake, "LIGHT": healthdata.SleepStageLight, "DEEP": healthdata.SleepStageDeep, "REM": healthdata.SleepStageREM,
	"RESTLESS": healthdata.SleepStageAwake, "ASLEEP": healthdata.SleepStageMissing,
}

func readSleep(v *struct {
	point
	Sleep struct {
		Interval interval `json:"interval"`
		Stages   rest.List[struct {
			Start rest.Instant `json:"startTime"`
			End   rest.Instant `json:"endTime"`
			Type  string       `json:"type"`
		}] `json:"stages"`
		Summary struct {
			Asleep  *rest.Float `json:"minutesAsleep"`
			Awake   *rest.Float `json:"minutesAwake"`
			Latency *rest.Float `json:"minutesToFallAsleep"`
			Stages  []struct {
				Type    string     `json:"type"`
				Minutes rest.Float `json:"minutes"`
			} `json:"stagesSummary"`
		} `json:"summary"`
		Metadata struct {
			Nap       bool  `json:"nap"`
			Processed *bool `json:"processed"`
		} `json:"metadata"`
	} `json:"sleep"`
}, out *rest.Batch,
) {
	x := &v.Sleep
	if x.Interval.End.IsZero() {
		return // the sleep is not finished
	}
	minutes := func(n *rest.Float) *int64 { return rest.Round(rest.Times(n.Over(1), 60)) }
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.id()}, BedtimeStart: x.Interval.Start.Time, BedtimeStop: x.Interval.End.Time,
		SessionOffsets: x.Interval.offsets(),
		TimezoneOffset: x.Interval.EndOffset.offset(), Latency: minutes(x.Summary.Latency), Total: minutes(x.Summary.Asleep), Awake: minutes(x.Summary.Awake),
	}
	for i := range x.Summary.Stages {
		of := &x.Summary.Stages[i]
		switch of.Type {
		case "LIGHT":
			s.Light = minutes(&of.Minutes)
		case "DEEP":
			s.Deep = minutes(&of.Minutes)
		case "REM":
			s.REM = minutes(&of.Minutes)
		}
	}
	if x.Metadata.Nap {
		s.Type = healthdata.SleepNap
	} else {
		day := rest.LocalDay(x.Interval.End.Time, x.Interval.EndOffset.offset())
		temperature := joinedDay(out, ofSleep[2], day).Temperature
		s.AverageHRV, s.RespiratoryRate = joinedDay(out, ofSleep[0], day).HRV.Average.Value(), joinedDay(out, ofSleep[1], day).Breathing.Rate.Value()
		s.SkinTemperature, s.TemperatureDelta = temperature.Night.Value(), temperature.delta()
	}
	if x.Metadata.Processed != nil {
		s.State = rest.Ptr("confirmed")
		if !*x.Metadata.Processed {
			s.State = rest.Ptr("tentative")
		}
	}
	source := v.source(out)
	out.Summary("sleep", source, s)
	of := rest.Stages{}
	for _, part := range x.Stages.In(out, "sleep", "stages") {
		if stage, known := stages[part.Type]; known {
			of.Add(rest.Whole(part.Start.Sub(s.BedtimeStart.Time)), rest.Whole(part.End.Sub(s.BedtimeStart.Time)), stage)
		}
	}
	out.Cycle(source, v.id(), s.BedtimeStart, s.BedtimeStop, &of)
}

// sleepKey returns the local day on which a sleep ended, as YYYY-MM-DD; empty for a nap or an unfinished sleep.
func sleepKey(item json.RawMessage) string {
	var v struct {
		Sleep struct {
			Interval interval           `json:"interval"`
			Metadata struct{ Nap bool } `json:"metadata"`
		} `json:"sleep"`
	}
	end := &v.Sleep.Interval
	if json.Unmarshal(item, &v) != nil || v.Sleep.Metadata.Nap || end.End.IsZero() {
		return ""
	}
	return rest.LocalDay(end.End.Time, end.EndOffset.offset()).String()
}

// startOf returns the start of the interval in a member of an item; zero if it has none.
func startOf(item json.RawMessage, member string) time.Time {
	var members map[string]json.RawMessage
	var v struct {
		Interval interval `json:"interval"`
	}
	if json.Unmarshal(item, &members) == nil {
		_ = json.Unmarshal(members[member], &v) // an item without a start belongs to every range
	}
	return v.Interval.Start.Time.Time
}

// causes maps the reasons for which an electrocardiogram is inconclusive.
var causes = map[string]string{"INCONCLUSIVE_HIGH_HEART_RATE": "high_heart_rate", "INCONCLUSIVE_LOW_HEART_RATE": "low_heart_rate"}

func readECG(v *struct {
	point
	ECG struct {
		Interval interval      `json:"interval"`
		BPM      *rest.Float   `json:"beatsPerMinuteAvg"`
		Result   string        `json:"resultClassification"`
		Samples  []*rest.Float `json:"waveformSamples"`
		Hz       *rest.Float   `json:"samplingFrequencyHertz"`
		PerMV    *rest.Float   `json:"millivoltsScalingFactor"`
	} `json:"electrocardiogram"`
}, out *rest.Batch,
) {
	x, source := &v.ECG, v.source(out)
	start, hz, scale := x.Interval.Start.Time, x.Hz.Positive(), x.PerMV.Positive()
	if start.IsZero() {
		out.Problem("missing", "an electrocardiogram must have a start time", "electrocardiogram", "interval", "startTime")
		return
	}
	e := &healthdata.Electrocardiogram{
		Head: healthdata.Head{ExternalID: v.id()}, SessionStart: start, SessionEnd: start, VoltageSampleCount: int64(len(x.Samples)),
		HeartRateMean: rest.Round(x.BPM.Positive()), SamplingFrequencyHz: hz,
	}
	if end := x.Interval.End.Time; end.After(start.Time) {
		e.SessionEnd = end
	}
	at := func(i int) healthlab.Time {
		return healthlab.At(start.Add(time.Duration(float64(i) / *hz * float64(time.Second))))
	}
	if hz != nil && at(len(x.Samples)).After(e.SessionEnd.Time) {
		e.SessionEnd = at(len(x.Samples))
	}
	switch {
	case x.Result == "NORMAL_SINUS_RHYTHM":
		e.Classification = rest.Ptr("sinus_rhythm")
	case x.Result == "ATRIAL_FIBRILLATION":
		e.Classification = rest.Ptr("atrial_fibrillation")
	case strings.HasPrefix(x.Result, "INCONCLUSIVE"):
		e.Classification = rest.Ptr("inconclusive")
		if cause, known := causes[x.Result]; known {
			e.InconclusiveCause = &cause
		}
	}
	out.Summary("electrocardiogram", source, e)
	for i, raw := range x.Samples {
		if hz != nil && scale != nil {
			out.Sample("electrocardiogram_voltage", source, healthdata.Sample{
				Timestamp: at(i), TimezoneOffset: x.Interval.StartOffset.offset(), Type: rest.Ptr("lead_1"), Unit: "mV", Value: rest.Number(raw.Over(*scale)),
			})
		}
	}
}

func readRhythm(v *struct {
	point
	Alert struct {
		Interval interval `json:"interval"`
	} `json:"irregularRhythmNotification"`
}, out *rest.Batch,
) {
	x := &v.Alert.Interval
	if x.Start.IsZero() {
		out.Problem("missing", "a notification must have a start time", "irregularRhythmNotification", "interval", "startTime")
		return
	}
	s := healthdata.Sample{
		Timestamp: x.Start.Time, Start: &x.Start.Time, End: &x.End.Time, TimezoneOffset: x.StartOffset.offset(), Type: rest.Ptr("irregular_rhythm"),
		Unit: "count", Value: healthdata.Number(1),
	}
	if x.End.IsZero() {
		s.End = &x.Start.Time
	}
	out.Sample("heart_rate_alert", v.source(out), s)
}

// grams is the mass of a nutrient in grams.
type grams struct {
	Grams *rest.Float `json:"grams"`
}

func readFood(v *struct {
	point
	Log struct {
		Interval interval `json:"interval"`
		Food     string   `json:"foodDisplayName"`
		Meal     string   `json:"mealType"`
		Carbs    grams    `json:"totalCarbohydrate"`
		Fat      grams    `json:"totalFat"`
		Energy   struct {
			KCal *rest.Float `json:"kcal"`
		} `json:"energy"`
		Nutrients []struct {
			Name   string `json:"nutrient"`
			Amount grams  `json:"quantity"`
		} `json:"nutrients"`
	} `json:"nutritionLog"`
}, out *rest.Batch,
) {
	x := &v.Log
	if x.Interval.Start.IsZero() {
		out.Problem("missing", "a meal must have a start time", "nutritionLog", "interval", "startTime")
		return
	}
	of := map[string]*float64{}
	for _, n := range x.Nutrients {
		of[n.Name] = n.Amount.Grams.Value()
	}
	m := &healthdata.Meal{
		Head: healthdata.Head{ExternalID: v.id()}, Timestamp: x.Interval.Start.Time, Name: cmp.Or(strings.ToLower(x.Meal), x.Food),
		CalendarDate: rest.LocalDay(x.Interval.Start.Time, x.Interval.StartOffset.offset()),
	}
	macros := healthdata.Macros{
		Carbs: x.Carbs.Grams.Value(), Protein: of["PROTEIN"], Fibre: of["DIETARY_FIBER"], Sugar: of["SUGAR"], Cholesterol: of["CHOLESTEROL"],
	}
	if fats := (healthdata.Fats{Total: x.Fat.Grams.Value(), Saturated: of["SATURATED_FAT"]}); fats != (healthdata.Fats{}) {
		macros.Fats = &fats
	}
	if macros != (healthdata.Macros{}) {
		m.Macros = &macros
	}
	if kcal := x.Energy.KCal.Value(); kcal != nil {
		m.Energy = &healthdata.Energy{Unit: "kcal", Value: *kcal}
	}
	if x.Food != "" {
		m.Data = map[string]healthdata.Food{x.Food: {Energy: m.Energy, Macros: m.Macros}}
	}
	out.Summary("meal", healthdata.SourceApp, m)
}

// deviceTypes maps the types of paired devices to source types.
var deviceTypes = map[string]healthdata.SourceType{
	"TRACKER": healthdata.SourceWatch, "SMARTWATCH": healthdata.SourceWatch, "SCALE": healthdata.SourceScale,
}

func readDevice(v *struct {
	Name    string  `json:"name"`
	Type    string  `json:"deviceType"`
	Version *string `json:"deviceVersion"`
}, out *rest.Batch,
) {
	source, known := deviceTypes[v.Type]
	if !known {
		source = healthdata.SourceUnknown
	}
	out.Listed(source, healthdata.DeviceInfo{ID: rest.Text((&point{Name: v.Name}).id()), Model: v.Version})
}
