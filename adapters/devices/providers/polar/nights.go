package polar

import (
	"encoding/json"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// nights lists the collections of sleep.
var nights = []rest.Collection{
	{
		Name: "sleep", Scopes: scopes, Path: users + "/sleep", Items: "nights", Key: rest.KeyOf("date"),
		Keep: []string{"sleep_start_time", "sleep_end_time"}, Join: []string{"nightly_recharge", "skintemperature"}, JoinFor: []string{"sleep"},
		Messages: []string{"SLEEP"}, Resources: []string{"sleep", "sleep_cycle"}, Stored: []string{"heartrate"}, Read: rest.Each(readSleep),
	},
	{
		Name: "nightly_recharge", Scopes: scopes, Path: users + "/nightly-recharge", Items: "recharges", Key: rest.KeyOf("date"),
		Keep: []string{"heart_rate_avg", "heart_rate_variability_avg", "breathing_rate_avg"}, Join: []string{"sleep"},
		Messages: []string{"SLEEP"}, Resources: []string{"hrv", "respiratory_rate"}, Read: rest.Each(readRecharge),
	},
	{
		Name: "skintemperature", Scopes: scopes, Path: users + "/biosensing/skintemperature", Key: rest.KeyOf("sleep_date"), Missing: missing,
		Join: []string{"sleep"}, Messages: []string{"SLEEP"}, Resources: []string{"body_temperature_delta"}, Read: rest.Each(readSkin),
	},
}

// stages maps the numbers of a hypnogram to sleep stages.
var stages = map[float64]healthdata.SleepStage{
	0: healthdata.SleepStageAwake, 1: healthdata.SleepStageREM, 2: healthdata.SleepStageLight, 3: healthdata.SleepStageLight, 4: healthdata.SleepStageDeep,
}

func readSleep(v *struct {
	span
	Date      healthlab.Date `json:"date"`
	Awake     *float64       `json:"total_interruption_duration"`
	Light     *float64       `json:"light_sleep"`
	REM       *float64       `json:"rem_sleep"`
	Deep      *float64       `json:"deep_sleep"`
	Score     *float64       `json:"sleep_score"`
	Hypnogram clocks         `json:"hypnogram"`
	HR        clocks         `json:"heart_rate_samples"`
}, out *rest.Batch,
) {
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.Date.String()}, CalendarDate: v.Date, BedtimeStart: v.Start.Time, BedtimeStop: v.End.Time,
		SessionOffsets: rest.SessionOffsets(v.Start, v.End),
		TimezoneOffset: v.End.Offset, Awake: rest.Round(v.Awake), Light: rest.Round(v.Light), REM: rest.Round(v.REM), Deep: rest.Round(v.Deep), Score: rest.Round(v.Score),
	}
	var r recharge
	if json.Unmarshal(out.Joined("nightly_recharge", v.Date.String()), &r) == nil {
		s.HRAverage, s.AverageHRV, s.RespiratoryRate = rest.Round(r.HR), r.HRV, r.Breath
	}
	var t skin
	if json.Unmarshal(out.Joined("skintemperature", v.Date.String()), &t) == nil {
		s.SkinTemperature, s.TemperatureDelta = t.Temperature, t.Delta
	}
	for _, m := range v.HR.sorted(v.Start) {
		if bpm := rest.Round(rest.Positive(&m.value)); bpm != nil && (s.HRLowest == nil || *bpm < *s.HRLowest) {
			s.HRLowest = bpm
		}
		if out.Stored() {
			out.Sample("heartrate", watch, healthdata.Sample{Timestamp: m.at, TimezoneOffset: v.Start.Offset, Unit: "bpm", Value: healthdata.Number(m.value)})
		}
	}
	out.Summary("sleep", watch, s)
	length := rest.Whole(v.End.Sub(v.Start.Time.Time))
	at := func(m moment) int64 { return min(max(rest.Whole(m.at.Sub(v.Start.Time.Time)), 0), length) }
	var found rest.Stages
	list := v.Hypnogram.sorted(v.Start)
	for i, m := range list {
		end := length
		if i+1 < len(list) {
			end = at(list[i+1])
		}
		stage, known := stages[m.value]
		if !known {
			stage = healthdata.SleepStageMissing
		}
		if at(m) < end {
			found.Add(at(m), end, stage)
		}
	}
	out.Cycle(watch, v.Date.String(), v.Start.Time, v.End.Time, &found)
}

type recharge struct {
	Date    healthlab.Date `json:"date"`
	HR      *float64       `json:"heart_rate_avg"`
	HRV     *float64       `json:"heart_rate_variability_avg"`
	Breath  *float64       `json:"breathing_rate_avg"`
	HRVs    clocks         `json:"hrv_samples"`
	Breaths clocks         `json:"breathing_samples"`
}

// night returns the start and end of the joined night of a date. ok is false if there is no such night. On a stored
// page, where nights are unknown, the night begins at 15:00 of the day before, without a zone.
func night(date healthlab.Date, out *rest.Batch) (of span, ok bool) {
	if out.Stored() {
		of.Start.Time = healthlab.At(date.At(time.UTC).Add(-9 * time.Hour))
		return of, true
	}
	return of, json.Unmarshal(out.Joined("sleep", date.String()), &of) == nil && !of.Start.IsZero()
}

func readRecharge(v *recharge, out *rest.Batch) {
	of, ok := night(v.Date, out)
	if !ok {
		return
	}
	for _, series := range []struct {
		resource, unit string
		values         clocks
	}{{"hrv", "rmssd", v.HRVs}, {"respiratory_rate", "bpm", v.Breaths}} {
		for _, m := range series.values.sorted(of.Start) {
			out.Sample(series.resource, watch, healthdata.Sample{
				Timestamp: m.at, TimezoneOffset: of.Start.Offset, Unit: series.unit, Value: healthdata.Number(m.value),
			})
		}
	}
}

type skin struct {
	Date        healthlab.Date `json:"sleep_date"`
	Temperature *float64       `json:"sleep_time_skin_temperature_celsius"`
	Delta       *float64       `json:"deviation_from_baseline_celsius"`
}

func readSkin(v *skin, out *rest.Batch) {
	of, ok := night(v.Date, out)
	if !ok {
		return
	}
	if out.Stored() {
		of.Start.Time = out.Noon(v.Date)
	}
	s := healthdata.Sample{
		Timestamp: of.Start.Time, TimezoneOffset: of.Start.Offset, Unit: "°C", Value: rest.Number(v.Delta), SensorLocation: rest.Ptr("wrist"),
	}
	if !of.End.IsZero() {
		s.Start, s.End = &of.Start.Time, &of.End.Time
	}
	out.Sample("body_temperature_delta", watch, s)
}
