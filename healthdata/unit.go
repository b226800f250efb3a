package healthdata

import "strings"

// conversion turns a value of another unit into the resource's: (v - Minus) * Times.
type conversion struct {
	times, minus float64
}

// unitsFor lists, by the unit that we keep, the units that we can turn into it. Units
// of amount of substance need to know the substance, see massUnits.
//
// Exact factors: international pound and mile (1959), thermochemical calorie. Letter
// case counts: ml and mL are listed both, because sources write both.
var unitsFor = map[string]map[string]conversion{
	"kg":        {"lb": {times: 0.45359237}, "lbs": {times: 0.45359237}, "g": {times: 0.001}, "st": {times: 6.35029318}},
	"m":         {"km": {times: 1000}, "mi": {times: 1609.344}, "ft": {times: 0.3048}, "yd": {times: 0.9144}, "cm": {times: 0.01}},
	"cm":        {"in": {times: 2.54}, "m": {times: 100}, "mm": {times: 0.1}, "ft": {times: 30.48}},
	"kcal":      {"kJ": {times: 1 / 4.184}, "Cal": {times: 1}, "J": {times: 1 / 4184.0}},
	"°C":        {"°F": {times: 1 / 1.8, minus: 32}, "degF": {times: 1 / 1.8, minus: 32}, "degC": {times: 1}, "K": {times: 1, minus: 273.15}},
	"%":         {"fraction": {times: 100}},
	"g":         {"mg": {times: 0.001}, "oz": {times: 28.349523125}, "kg": {times: 1000}, "mcg": {times: 1e-6}},
	"ml":        {"mL": {times: 1}, "L": {times: 1000}, "l": {times: 1000}, "fl_oz_us": {times: 29.5735295625}, "cup_us": {times: 236.5882365}},
	"L":         {"l": {times: 1}, "ml": {times: 0.001}, "mL": {times: 0.001}},
	"L/min":     {"l/min": {times: 1}, "ml/min": {times: 0.001}, "mL/min": {times: 0.001}},
	"min":       {"s": {times: 1 / 60.0}, "hr": {times: 60}, "h": {times: 60}},
	"bpm":       {"count/min": {times: 1}, "/min": {times: 1}, "count/s": {times: 60}},
	"rmssd":     {"ms": {times: 1}, "s": {times: 1000}},
	"mL/kg/min": {"ml/kg/min": {times: 1}, "mL/min·kg": {times: 1}, "ml/(kg*min)": {times: 1}},
	"mV":        {"V": {times: 1000}, "µV": {times: 0.001}, "uV": {times: 0.001}, "mcV": {times: 0.001}},
	"mmHg":      {"mm[Hg]": {times: 1}, "kPa": {times: 7.500615758456563}},
	"unit":      {"IU": {times: 1}, "U": {times: 1}, "count": {times: 1}},
	"index":     {"count": {times: 1}, "kg/m²": {times: 1}, "kg/m2": {times: 1}},
}

// massUnits turns mass per volume into amount per volume, which depends on the
// substance: mg/dL of glucose (molar mass 180.182), of cholesterol (386.7) and of
// triglycerides (885.7).
func massUnits(resource, sampleType, unit string) (conversion, bool) {
	if !strings.EqualFold(unit, "mg/dL") {
		return conversion{}, false
	}
	switch {
	case resource == "glucose":
		return conversion{times: 1 / 18.0182}, true
	case resource == "cholesterol" && sampleType == "cholesterol/triglycerides":
		return conversion{times: 1 / 88.57}, true
	case resource == "cholesterol":
		return conversion{times: 1 / 38.67}, true
	}
	return conversion{}, false
}

// Convert returns a value in the unit of the resource, and whether it knows how to
// get there. A sample type is needed where the substance decides.
func (r *Resource) Convert(v float64, unit, sampleType string) (float64, bool) {
	if unit == r.Unit {
		return v, true
	}
	c, ok := unitsFor[r.Unit][unit]
	if !ok || unit == "" {
		if c, ok = massUnits(r.Slug, sampleType, unit); !ok {
			return 0, false
		}
	}
	return (v - c.minus) * c.times, true
}
