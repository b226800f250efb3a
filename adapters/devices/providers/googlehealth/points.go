package googlehealth

import (
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// points lists the collections of single values.
var points = []rest.Collection{
	intervals("steps", activity, "steps", "count", "count"),
	intervals("distance", activity, "distance", "mm", "millimeters"),
	intervals("floors", activity, "floors_climbed", "count", "count"),
	intervals("active-energy-burned", activity, "calories_active", "kcal", "kcal"),
	intervals("basal-energy-burned", activity, "calories_basal", "kcal", "kcal"),
	intervals("hydration-log", eaten, "water", "ml", "amountConsumed.milliliters"),
	samples("heart-rate", metrics, "heartrate", "bpm", "beatsPerMinute"),
	samples("heart-rate-variability", metrics, "hrv", "rmssd", "rootMeanSquareOfSuccessiveDifferencesMilliseconds"),
	samples("oxygen-saturation", metrics, "blood_oxygen", "%", "percentage"),
	samples("core-body-temperature", metrics, "body_temperature", "°C", "temperatureCelsius"),
	samples("blood-glucose", metrics, "glucose", "mg/dL", "bloodGlucoseMilligramsPerDeciliter"),
	samples("weight", metrics, "weight", "g", "weightGrams"),
	samples("body-fat", metrics, "fat", "%", "percentage"),
	samples("vo2-max", activity, "vo2_max", "mL/kg/min", "vo2Max"),
	samples("run-vo2-max", activity, "vo2_max", "mL/kg/min", "runVo2Max"),
	samples("respiratory-rate-sleep-summary", metrics, "respiratory_rate", "bpm", "fullSleepStats.breathsPerMinute"),
	{
		Name: "height", Scopes: []string{metrics}, Path: types + "height/dataPoints", Query: url.Values{"pageSize": {"1000"}}, Whole: true,
		Items: "dataPoints", Messages: []string{"height"}, Resources: []string{"profile"}, Read: rest.Each(readHeight),
	},
}

func intervals(name, scope, resource, unit, member string) rest.Collection {
	return list(name, scope, "interval.start_time", "5000", rest.Range{}, readValue(name, resource, unit, member), resource)
}

func samples(name, scope, resource, unit, member string) rest.Collection {
	return list(name, scope, "sample_time.physical_time", "5000", rest.Range{}, readValue(name, resource, unit, member), resource)
}

// readValue returns a function that reads points with one value: the member of the data type name, in unit. In an
// interval, an absent member means zero.
func readValue(name, resource, unit, member string) func(json.RawMessage, *rest.Batch) {
	return func(item json.RawMessage, out *rest.Batch) {
		var (
			p       point
			members map[string]json.RawMessage
			v       struct {
				Interval *interval `json:"interval"`
				At       struct {
					Time   rest.Instant `json:"physicalTime"`
					Offset *seconds     `json:"utcOffset"`
				} `json:"sampleTime"`
			}
			n rest.Float
		)
		err := errors.Join(json.Unmarshal(item, &p), json.Unmarshal(item, &members))
		doc := members[camel(name)]
		err = errors.Join(err, json.Unmarshal(doc, &v))
		text, absent := rest.AccountIn(doc, member)
		if absent == nil {
			err = errors.Join(err, n.UnmarshalJSON([]byte(text)))
		}
		s := healthdata.Sample{Timestamp: v.At.Time.Time, TimezoneOffset: v.At.Offset.offset(), Unit: unit, Value: rest.Number(n.Value())}
		if x := v.Interval; x != nil {
			s.Timestamp, s.Start, s.End, s.TimezoneOffset = x.Start.Time, &x.Start.Time, &x.End.Time, x.StartOffset.offset()
		}
		if err != nil || s.Timestamp.IsZero() || s.Value == nil {
			out.Problem("shape", "the item must have the form that the provider documents", camel(name))
			return
		}
		if v.Interval != nil || absent == nil {
			out.Sample(resource, p.source(out), s)
		}
	}
}

type heightPoint struct {
	Height struct {
		At struct {
			Time rest.Instant `json:"physicalTime"`
		} `json:"sampleTime"`
		Millimeters *rest.Float `json:"heightMillimeters"`
	} `json:"height"`
}

func readHeight(v *rest.List[heightPoint], out *rest.Batch) {
	var last *int64
	at := time.Time{}
	for _, p := range v.In(out) {
		cm := rest.Height(p.Height.Millimeters.Over(10))
		if t := p.Height.At.Time.Time.Time; cm != nil && !t.Before(at) {
			last, at = cm, t
		}
	}
	if last != nil {
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: last})
	}
}
