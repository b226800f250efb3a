package googlehealth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// days lists the collections of daily sums and daily values.
var days = []rest.Collection{
	total(), rollUp("steps"), rollUp("distance"), rollUp("floors"), rollUp("active-energy-burned"),
	joined(daily("daily-resting-heart-rate", metrics, rest.Each(readDay), "activity")),
	daily("daily-vo2-max", activity, readAtNoon("vo2_max", "mL/kg/min", func(p *dayPoint) *rest.Float { return p.VO2Max.Value }), "vo2_max"),
	joined(daily("daily-heart-rate-variability", metrics, readAtNoon("hrv", "rmssd", func(p *dayPoint) *rest.Float { return p.HRV.Average }), "hrv")),
	joined(daily("daily-respiratory-rate", metrics, readAtNoon("respiratory_rate", "bpm", func(p *dayPoint) *rest.Float { return p.Breathing.Rate }), "respiratory_rate")),
	temperatures(),
}

// rollUp returns the collection of the daily sums of the data type name. The collection of total calories joins it by
// the day.
func rollUp(name string) rest.Collection {
	midnight := func(d healthlab.Date) any {
		return map[string]civil{"date": {d.Year, int(d.Month), d.Day}}
	}
	return rest.Collection{
		Name: "daily " + name, Path: types + name + "/dataPoints:dailyRollUp", Range: rest.Range{Max: 12 * rest.Day}, Items: "rollupDataPoints",
		Body: func(first, last healthlab.Date) any {
			return map[string]any{"range": map[string]any{"start": midnight(first), "end": midnight(last.AddDays(1))}, "windowSizeDays": 1}
		},
		Key: dayKey, Stored: []string{"activity"}, Read: rest.Each(readDay),
	}
}

// total returns the collection of total calories, to which the other daily sums are joined.
func total() rest.Collection {
	k := rollUp("total-calories")
	k.Scopes, k.Resources, k.Stored = []string{activity}, k.Stored, nil
	k.Join = []string{"daily steps", "daily distance", "daily floors", "daily active-energy-burned", "daily-resting-heart-rate"}
	k.Messages = []string{"steps", "distance", "floors", "active-energy-burned", "total-calories", "daily-resting-heart-rate"}
	return k
}

func daily(name, scope string, read func(json.RawMessage, *rest.Batch), resources ...string) rest.Collection {
	// If the person has not granted the scope of a joined collection, the join leaves that collection out.
	k := list(name, scope, "date", "1000", rest.Range{Days: true, Before: rest.Day, After: rest.Day}, read, resources...)
	k.Key, k.Missing = dayKey, []int{http.StatusForbidden}
	return k
}

func joined(k rest.Collection) rest.Collection {
	// Pages that were stored are read on their own, without a join.
	k.Resources, k.Stored = nil, k.Resources
	return k
}

func temperatures() rest.Collection {
	k := daily("daily-sleep-temperature-derivations", metrics, rest.Each(readTemperature), "body_temperature_delta")
	k.Scopes, k.Join, k.Messages = []string{metrics, asleep}, []string{"sleep"}, append(k.Messages, "sleep")
	return k
}

// dayPoint is a sum or a value of a day.
type dayPoint struct {
	Start struct {
		Date civil `json:"date"`
	} `json:"civilStartTime"`
	Steps struct {
		Sum *rest.Float `json:"countSum"`
	} `json:"steps"`
	Floors struct {
		Sum *rest.Float `json:"countSum"`
	} `json:"floors"`
	Distance struct {
		Sum *rest.Float `json:"millimetersSum"`
	} `json:"distance"`
	Active struct {
		Sum *rest.Float `json:"kcalSum"`
	} `json:"activeEnergyBurned"`
	Total struct {
		Sum *rest.Float `json:"kcalSum"`
	} `json:"totalCalories"`
	Resting struct {
		BPM *rest.Float `json:"beatsPerMinute"`
	} `json:"dailyRestingHeartRate"`
	VO2Max struct {
		Value *rest.Float `json:"vo2Max"`
	} `json:"dailyVo2Max"`
	HRV struct {
		Average *rest.Float `json:"averageHeartRateVariabilityMilliseconds"`
	} `json:"dailyHeartRateVariability"`
	Breathing struct {
		Rate *rest.Float `json:"breathsPerMinute"`
	} `json:"dailyRespiratoryRate"`
	Temperature temperature `json:"dailySleepTemperatureDerivations"`

	day healthlab.Date
}

// temperature is the skin temperature of a night, and the person's baseline in °C.
type temperature struct {
	Night    *rest.Float `json:"nightlyTemperatureCelsius"`
	Baseline *rest.Float `json:"baselineTemperatureCelsius"`
}

func (t *temperature) delta() *float64 {
	night, baseline := t.Night.Value(), t.Baseline.Value()
	if night == nil || baseline == nil {
		return nil
	}
	return rest.Ptr(*night - *baseline)
}

// UnmarshalJSON reads a point, and finds the day of its value in the point or in any of its members.
func (p *dayPoint) UnmarshalJSON(b []byte) error {
	type plain dayPoint
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(b, (*plain)(p)), json.Unmarshal(b, &members)); err != nil {
		return fmt.Errorf("point of a day: %w", err)
	}
	p.day = p.Start.Date.date()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var v struct {
			Date civil `json:"date"`
		}
		if json.Unmarshal(members[name], &v) == nil && p.day.IsZero() {
			p.day = v.Date.date()
		}
	}
	return nil
}

func (p *dayPoint) dated(out *rest.Batch) bool {
	if p.day.IsZero() {
		out.Problem("missing", "must be set", "date")
	}
	return !p.day.IsZero()
}

// dayKey returns the day of a point as YYYY-MM-DD; empty if it is unknown.
func dayKey(item json.RawMessage) string {
	var v dayPoint
	if json.Unmarshal(item, &v) != nil || v.day.IsZero() {
		return ""
	}
	return v.day.String()
}

func joinedDay(out *rest.Batch, kind string, day healthlab.Date) (p dayPoint) {
	if json.Unmarshal(out.Joined(kind, day.String()), &p) != nil {
		return dayPoint{}
	}
	return p
}

// readDay reads a daily total with the joined values of the day. On a stored page it reads the one value in v.
func readDay(v *dayPoint, out *rest.Batch) {
	if !v.dated(out) {
		return
	}
	if !out.Stored() {
		v.Steps, v.Floors = joinedDay(out, "daily steps", v.day).Steps, joinedDay(out, "daily floors", v.day).Floors
		v.Distance, v.Active = joinedDay(out, "daily distance", v.day).Distance, joinedDay(out, "daily active-energy-burned", v.day).Active
		v.Resting = joinedDay(out, "daily-resting-heart-rate", v.day).Resting
	}
	a := &healthdata.Activity{
		CalendarDate: v.day, Steps: rest.Round(v.Steps.Sum.Value()), FloorsClimbed: rest.Round(v.Floors.Sum.Value()),
		Distance: v.Distance.Sum.Over(1000), CaloriesActive: v.Active.Sum.Value(), CaloriesTotal: v.Total.Sum.Value(),
	}
	if bpm := v.Resting.BPM.Value(); bpm != nil {
		a.HeartRate = &healthdata.ActivityHeartRate{RestingBPM: bpm}
	}
	out.Summary("activity", healthdata.SourceMultiple, a)
}

// readAtNoon returns a function that reads a daily value as a sample at noon, because the value has no time. of selects
// the value.
func readAtNoon(resource, unit string, of func(*dayPoint) *rest.Float) func(json.RawMessage, *rest.Batch) {
	return rest.Each(func(v *dayPoint, out *rest.Batch) {
		if v.dated(out) {
			out.Sample(resource, healthdata.SourceUnknown, healthdata.Sample{Timestamp: out.Noon(v.day), Unit: unit, Value: rest.Number(of(v).Value())})
		}
	})
}

// readTemperature reads the skin temperature of a night as a sample during the joined sleep, or at noon on a stored
// page, where the sleep is unknown. Without a joined sleep it reads nothing.
func readTemperature(v *dayPoint, out *rest.Batch) {
	if !v.dated(out) {
		return
	}
	s := healthdata.Sample{Timestamp: out.Noon(v.day), Unit: "°C", Value: rest.Number(v.Temperature.delta()), SensorLocation: rest.Ptr("wrist")}
	if !out.Stored() {
		var of struct {
			Span interval `json:"sleep.interval"`
		}
		if json.Unmarshal(out.Joined("sleep", v.day.String()), &of) != nil {
			return // another request returns this value
		}
		s.Timestamp, s.Start, s.End, s.TimezoneOffset = of.Span.Start.Time, &of.Span.Start.Time, &of.Span.End.Time, of.Span.StartOffset.offset()
	}
	out.Sample("body_temperature_delta", healthdata.SourceWatch, s)
}
