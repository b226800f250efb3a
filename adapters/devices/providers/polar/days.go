package polar

import (
	"net/url"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// days lists the collections of activity and heart rate.
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

// stepped holds the number of steps of an interval. The number applies to each interval from the instant to the next
// element, because the service leaves out equal neighbours.
type stepped struct {
	Steps float64 `json:"steps"`
	At    clock   `json:"timestamp"`
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
			Interval float64            `json:"interval_ms"`
			Samples  rest.List[stepped] `json:"samples"`
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
	list := v.Samples.Steps.Samples.In(out, "samples", "steps", "samples")
	list = slices.DeleteFunc(list, func(s stepped) bool {
		away := s.At.Sub(date.At(time.UTC)) // time since the start of the day
		if away < -rest.Day || away > 2*rest.Day {
			out.Problem("time", "must be a time on the day of samples.date, on the day before or on the day after", "samples", "steps", "samples", "timestamp")
			return true
		}
		return false
	})
	slices.SortStableFunc(list, func(a, b stepped) int { return a.At.Compare(b.At.Time.Time) })
	for i, s := range list {
		until := s.At.Add(interval)
		if next := slices.IndexFunc(list[i:], func(o stepped) bool { return o.At.After(s.At.Time.Time) }); next > 0 {
			until = list[i+next].At.Time.Time
		}
		if s.Steps <= 0 {
			continue
		}
		for at := s.At.Time.Time; at.Before(until); at = at.Add(interval) {
			start, end := healthlab.At(at), healthlab.At(at.Add(interval))
			out.Sample("steps", watch, healthdata.Sample{Timestamp: start, Start: &start, End: &end, Unit: "count", Value: healthdata.Number(s.Steps)})
		}
	}
}

// heartRates holds the heart rates of a day.
type heartRates struct {
	Date    healthlab.Date `json:"date"`
	Samples rest.List[struct {
		BPM *float64 `json:"heart_rate"`
		At  string   `json:"sample_time"`
	}] `json:"heart_rate_samples"`
}

// readHeartRate reads a document that contains the heart rates of one day, or a list of days.
func readHeartRate(v *struct {
	heartRates
	Days rest.List[heartRates] `json:"heart_rates"`
}, out *rest.Batch,
) {
	for _, of := range append(v.Days.In(out, "heart_rates"), v.heartRates) {
		for _, s := range of.Samples.In(out, "heart_rate_samples") {
			at, err := time.Parse("15:04:05", s.At)
			if err != nil || of.Date.IsZero() {
				rule := "must be a time of day as HH:MM:SS"
				if err == nil {
					rule = "must have a day: the member date beside heart_rate_samples must be set"
				}
				out.Problem("time", rule, "heart_rate_samples", "sample_time")
				continue
			}
			h, m, sec := at.Clock()
			clock := of.Date.At(time.UTC).Add(time.Duration(h*3600+m*60+sec) * time.Second)
			out.Sample("heartrate", watch, healthdata.Sample{Timestamp: healthlab.At(clock), Unit: "bpm", Value: rest.Number(s.BPM)})
		}
	}
}
