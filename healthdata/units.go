package healthdata

import (
	"strings"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// unitCodes are the codes of UCUM for the units of the catalogue, and for m/s and W.
var unitCodes = map[string]string{
	"kg": "kg", "m": "m", "cm": "cm", "kcal": "kcal", "°C": "Cel", "%": "%", "g": "g", "ml": "mL", "L": "L", "L/min": "L/min", "min": "min", "bpm": "/min", "rmssd": "ms", "ms": "ms",
	"mL/kg/min": "mL/kg/min", "mV": "mV", "mmHg": "mm[Hg]", "unit": "[iU]", "count": "1", "index": "1", "mmol/L": "mmol/L", "m/s": "m/s", "W": "W",
}

// statistics are the texts of units that name what is measured.
var statistics = map[string]string{"rmssd": "rmssd", "sdnn": "ms", "fsu": "FSU", "index": "index"}

// millimetreOfMercury holds factors of more digits than the table of UCUM has, which says 133.322 Pa:
// 1 mmHg is 13.5951 · 9.80665 Pa.
var millimetreOfMercury = map[string]ucum.Conversion{
	"kPa": {Times: 7.500615758456563, Over: 1}, "cm[H2O]": {Times: 0.7355591, Over: 1}, "hPa": {Times: 0.7500615758456563, Over: 1}, "Pa": {Times: 7.500615758456563, Over: 1000},
}

// ConvertUnit returns a value in one of the units of the catalogue, or in m/s or W, and whether the text
// names a unit that can be turned into it. The texts are those of [ucum.ParseAs]; where the case
// changes the meaning, the text must have it: S is siemens and no second.
func ConvertUnit(v float64, from, to string) (float64, bool) {
	if from == to {
		return v, true
	}
	c, ok := conversionOf(from, to)
	if !ok {
		return 0, false
	}
	return c.Of(v), true
}

func conversionOf(from, to string) (ucum.Conversion, bool) {
	same := ucum.Conversion{Times: 1, Over: 1}
	if statistics[strings.ToLower(strings.TrimSpace(from))] == to {
		return same, true
	}
	code, ok := unitCodes[to]
	if !ok {
		return same, false
	}
	switch to {
	case "count", "index", "%":
		// A fraction, a number and a percentage are of one dimension: the text must say which one it is.
		if text := strings.ToLower(strings.TrimSpace(from)); to == "%" && (text == "fraction" || text == "1") {
			return ucum.Conversion{Times: 100, Over: 1}, true
		}
		u, ok := ucum.ParseAs(from, code)
		return same, ok && u.UCUM == code || to == "index" && bodyMass(from)
	case "mmHg":
		if u, ok := ucum.ParseAs(from, code); ok {
			if c, ok := millimetreOfMercury[u.UCUM]; ok {
				return c, true
			}
		}
	}
	return ucum.ConversionAs(from, code)
}

func bodyMass(text string) bool {
	u, ok := ucum.ParseAs(text, "kg/m2")
	return ok && ucum.Same(u.UCUM, "kg/m2")
}

// GlucoseMilligrams is how many mg/dL of glucose are 1 mmol/L.
const GlucoseMilligrams = ucum.GlucoseMass / 10

// massUnits turns mass per volume into amount per volume, which depends on the
// substance: glucose, cholesterol or triglycerides.
func massUnits(resource, sampleType, unit string) (ucum.Conversion, bool) {
	var perMillimole float64 // mg/dL of 1 mmol/L
	switch {
	case resource == "glucose":
		perMillimole = GlucoseMilligrams
	case resource == "cholesterol" && sampleType == "cholesterol/triglycerides":
		perMillimole = ucum.TriglycerideMass / 10
	case resource == "cholesterol":
		perMillimole = ucum.CholesterolMass / 10
	default:
		return ucum.Conversion{}, false
	}
	mass, ok := ucum.ConversionAs(unit, "mg/dL")
	mass.Over *= perMillimole
	return mass, ok
}

// Convert returns a value in the unit of the resource, and whether it knows how to
// get there, as [ConvertUnit] does. A sample type is needed where the substance decides.
func (r *Resource) Convert(v float64, unit, sampleType string) (float64, bool) {
	c, ok := r.conversion(unit, sampleType)
	if !ok {
		return 0, false
	}
	return c.Of(v), true
}

// conversion returns how values of a unit turn into those of the resource.
func (r *Resource) conversion(unit, sampleType string) (ucum.Conversion, bool) {
	if unit == r.Unit {
		return ucum.Conversion{Times: 1, Over: 1}, true
	}
	if c, ok := massUnits(r.Slug, sampleType, unit); ok {
		return c, true
	}
	return conversionOf(unit, r.Unit)
}

// exampleUnits are units in which people and devices send what has another unit here.
var exampleUnits = []string{"mg/dL", "lb", "kJ", "mi", "in", "[degF]", "1/min", "min", "h", "mL", "L", "g", "mg", "m", "cm", "mmol/L", "s", "ms", "mmHg", "kPa", "fraction", "IU/mL"}

// unitWords says what must be in place of a unit that is not converted.
func (r *Resource) unitWords(sampleType string) string {
	for _, unit := range exampleUnits {
		if _, ok := r.conversion(unit, sampleType); ok && unit != r.Unit {
			return "must be " + r.Unit + " or a unit that is converted to it, such as " + unit
		}
	}
	return "must be " + r.Unit
}
