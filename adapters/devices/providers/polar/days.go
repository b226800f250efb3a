package polar

import (
	"net/url"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// days are the kinds of activity and heart rate.
var days = []rest.Collection{
	{
		Name: "activities", Scopes: scopes, Path: users + "/activities", Query: url.Values{"steps": {"true"}}, Range: wholeDays, Missing: missing,
		Messages: []string{"ACTIVITY_SUMMARY"}, Resources: []string{"activity", "steps"}, Read: rest.Each(readActivity),
	},
	{
		Name: "heart_rate", Scopes: scopes, Path: users + "/continuous-heart-rate", Range: wholeDays, Missing: missing,
		Messages: []string{"CONTINUOUS_HEART_RATE"}, Resources: []string{"heartrate"}, Read: rest.Each(readHeartRate),
	},
}

func readActivity(v *struct {
	Start    clock    `json:"start_time"`
	KCal     *float64 `json:"calories"`
	Active   *float64 `json:"active_calories"`
	Steps    *float64 `json:"steps"`
	Distance *float64 `json:"distance_from_steps"`
	Samples  struct {
		Date  healthlab.Date `json:"date"`
		Steps struct {
			Interval float64 `json:"interval_ms"`
			Samples  []struct {
				Steps float64 `json:"steps"`
				At    clock   `json:"timestamp"`
			} `json:"samples"`
		} `json:"steps"`
	} `json:"samples"`
}, out *rest.Batch,
) {
	date := v.Samples.Date
	if date.IsZero() {
		date = healthlab.DateOf(v.Start.Time.Time)
	}
	out.Summary("activity", watch, &healthdata.Activity{
		CalendarDate: date, CaloriesTotal: v.KCal, CaloriesActive: v.Active, Steps: rest.Round(v.Steps), Distance: v.Distance,
	})
	interval := time.Duration(v.Samples.Steps.Interval) * time.Millisecond
	if interval < time.Second {
		return
	}
	list := v.Samples.Steps.Samples
	for i, s := range list {
		until := s.At.Add(interval)
		if i+1 < len(list) {
			until = list[i+1].At.Time.Time
		}
		if s.Steps <= 0 || until.Sub(s.At.Time.Time) > rest.Day {
			continue
		}
		for at := s.At.Time.Time; at.Before(until); at = at.Add(interval) {
			start, end := healthlab.At(at), healthlab.At(at.Add(interval))
			out.Sample("steps", watch, healthdata.Sample{Timestamp: start, Start: &start, End: &end, Unit: "count", Value: healthdata.Number(s.Steps)})
		}
	}
}

// heartRates are the heart rates of a day.
type heartRates struct {
	Date    healthlab.Date `json:"date"`
	Samples []struct {
		BPM *float64 `json:"heart_rate"`
		At  string   `json:"sample_time"`
	} `json:"heart_rate_samples"`
}

// readHeartRate reads a day, or an object with a list of them.
func readHeartRate(v *struct {
	heartRates
	Days []heartRates `json:"heart_rates"`
}, out *rest.Batch,
) {
	for _, of := range append(v.Days, v.heartRates) {
		for _, s := range of.Samples {
			at, err := time.Parse("15:04:05", s.At)
			if err != nil || of.Date.IsZero() {
				out.Problem("time", "must be a time of day", "heart_rate_samples", "sample_time")
				continue
			}
			h, m, sec := at.Clock()
			clock := of.Date.At(time.UTC).Add(time.Duration(h*3600+m*60+sec) * time.Second)
			out.Sample("heartrate", watch, healthdata.Sample{Timestamp: healthlab.At(clock), Unit: "bpm", Value: rest.Number(s.BPM)})
		}
	}
}
