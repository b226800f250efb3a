package withings

import (
	"math"
	"net/http"
	"net/url"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// measured lists the collections of scales, blood pressure cuffs and thermometers.
var measured = []rest.Collection{
	{
		Name: "getmeas", Scopes: metrics, Method: http.MethodPost, Path: "/measure", Range: instants, Pages: pages, Items: "body.measuregrps",
		Query: url.Values{"action": {"getmeas"}, "category": {"1"}, "meastypes": {"1,5,6,8,9,10,11,12,54,71,73,76,77,88,123,170"}},
		MessagesFor: map[string][]string{
			"1": {"weight", "fat", "lean_body_mass", "body", "heartrate"}, "2": {"body_temperature"}, "4": {"blood_pressure", "heartrate", "blood_oxygen"},
		},
		Resources: []string{"weight", "fat", "lean_body_mass", "body", "blood_pressure", "heartrate", "body_temperature", "blood_oxygen", "vo2_max"},
		Read:      rest.Each(readMeasures),
	},
	{
		Name: "height", Scopes: metrics, Method: http.MethodPost, Path: "/measure", Items: "body",
		Query:    url.Values{"action": {"getmeas"}, "category": {"1"}, "meastypes": {"4"}},
		Messages: []string{"46"}, Resources: []string{"profile"}, Read: rest.Each(readHeight),
	},
}

// Types of measures.
const (
	weight, height, fatFree, fatRatio, fatMass  = 1, 4, 5, 6, 8
	diastolic, systolic, pulse                  = 9, 10, 11
	temperature, bodyTemperature, skin          = 12, 71, 73
	spo2, muscle, water, bone, vo2Max, visceral = 54, 76, 77, 88, 123, 170
)

const (
	wholeBody = 7 // position of a measure of the whole body
	ambiguous = 1 // attrib of a measurement that may belong to another person
	real      = 1 // category of measurements; that of goals is 2

	impossible = 1e6 // values from this number on are not plausible
)

func manual(attrib int) bool { return attrib == 2 || attrib == 4 }

// measures holds the measures that were taken at one instant.
type measures struct {
	hardware
	ID       rest.ID            `json:"grpid"`
	Attrib   int                `json:"attrib"`
	Date     unix               `json:"date"`
	Category *int               `json:"category"`
	Measures rest.List[measure] `json:"measures"`

	read []measure
}

// measure is one value of a type: Value × 10^Unit.
type measure struct {
	Value    *float64 `json:"value"`
	Type     int      `json:"type"`
	Unit     *int     `json:"unit"`
	Position *int     `json:"position"`
}

// firstOf returns the value of the first of types that m contains; nil if it contains none.
func (m *measures) firstOf(types ...int) *float64 {
	for _, of := range types {
		var found *float64
		for _, x := range m.read {
			whole := x.Position == nil || *x.Position == wholeBody
			composition := of == fatFree || of == fatRatio || of == fatMass || of >= muscle && of <= bone
			if x.Type != of || x.Value == nil || x.Unit == nil || *x.Unit < -15 || *x.Unit > 15 || found != nil && !whole || composition && !whole {
				continue
			}
			v := *x.Value * math.Pow10(*x.Unit)
			if *x.Unit < 0 {
				v = *x.Value / math.Pow10(-*x.Unit) // division rounds once, multiplication by the inverse twice
			}
			if v > 0 && v < impossible {
				found = &v
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

func possible(v *float64, resource string) *float64 {
	if b, ok := healthdata.ResourceBySlug(resource).Bounds(); v == nil || ok && (*v < b.Low || *v > b.High) {
		return nil
	}
	return v
}

func percent(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return rest.Ptr(*part / *whole * 100)
}

func readMeasures(v *measures, out *rest.Batch) {
	if v.Attrib == ambiguous || v.Category != nil && *v.Category != real {
		return
	}
	out.Zone(out.Answer("body.timezone"))
	v.read = v.Measures.In(out, "measures")
	kg, fat := v.firstOf(weight), v.firstOf(fatRatio)
	if fat == nil {
		fat = percent(v.firstOf(fatMass), v.firstOf(weight))
	}
	source := v.device(out)
	switch {
	case manual(v.Attrib):
		source = healthdata.SourceApp
	case v.firstOf(systolic) != nil:
		source = orUnknown(source, healthdata.SourceCuff)
	case kg != nil || fat != nil:
		source = orUnknown(source, healthdata.SourceScale)
	}
	sample := func(resource, unit string, value *float64) {
		out.Sample(resource, source, healthdata.Sample{Timestamp: v.Date.time(), Unit: unit, Value: rest.Number(value)})
	}
	sample("weight", "kg", kg)
	sample("fat", "%", fat)
	sample("lean_body_mass", "kg", v.firstOf(fatFree))
	sample("blood_oxygen", "%", v.firstOf(spo2))
	sample("vo2_max", "mL/kg/min", v.firstOf(vo2Max))
	if bpm := v.firstOf(pulse); bpm != nil && *bpm > 0 {
		sample("heartrate", "bpm", bpm)
	}
	if celsius := possible(v.firstOf(bodyTemperature, temperature), "body_temperature"); celsius != nil {
		sample("body_temperature", "°C", celsius)
	} else if celsius = v.firstOf(skin); celsius != nil {
		out.Sample("body_temperature", source, healthdata.Sample{
			Timestamp: v.Date.time(), Unit: "°C", Value: rest.Number(celsius), SensorLocation: rest.Ptr("skin"),
		})
	}
	if high, low := v.firstOf(systolic), v.firstOf(diastolic); high != nil && low != nil {
		out.Sample("blood_pressure", source, healthdata.Sample{Timestamp: v.Date.time(), Unit: "mmHg", Systolic: high, Diastolic: low})
	}
	b := &healthdata.Body{
		Head: healthdata.Head{ExternalID: v.ID.String()}, MeasuredAt: v.Date.time(), Weight: kg, Fat: fat, LeanBodyMassKilogram: v.firstOf(fatFree),
		MuscleMassPercentage: percent(v.firstOf(muscle), kg), WaterPercentage: percent(v.firstOf(water), kg), BoneMassPercentage: percent(v.firstOf(bone), kg),
		VisceralFatIndex: v.firstOf(visceral),
	}
	if kg != nil || fat != nil || b.LeanBodyMassKilogram != nil || b.VisceralFatIndex != nil {
		out.Summary("body", source, b)
	}
}

func readHeight(v *struct {
	Groups rest.List[measures] `json:"measuregrps"`
}, out *rest.Batch,
) {
	var last *measures
	for i, g := range v.Groups.In(out, "measuregrps") {
		g.read = g.Measures.In(out, "measuregrps", i, "measures")
		if rest.Height(rest.Times(g.firstOf(height), 100)) != nil && (last == nil || g.Date > last.Date) {
			last = &g
		}
	}
	if last != nil {
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: rest.Height(rest.Times(last.firstOf(height), 100))})
	}
}
