package healthdata

import (
	"strings"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// unitCodes has the UCUM code of each unit of the catalogue, and of m/s and W.
var unitCodes = map[string]string{
	"kg": "kg", "m": "m", "cm": "cm", "kcal": "kcal", "°C": "Cel", "%": "%", "g": "g", "ml": "mL", "L": "L", "L/min": "L/min", "min": "min", "bpm": "/min", "rmssd": "ms", "ms": "ms",
	"mL/kg/min": "mL/kg/min", "mV": "mV", "mmHg": "mm[Hg]", "unit": "[iU]", "count": "1", "index": "1", "mmol/L": "mmol/L", "m/s": "m/s", "W": "W",
}

// statistics maps names that sources send as units and that UCUM does not have, in lower case, to the catalogue's
// units.
var statistics = map[string]string{"rmssd": "rmssd", "sdnn": "ms", "fsu": "FSU", "index": "index"}

// millimetreOfMercury has conversion factors with more digits than the table of UCUM, where 1 mmHg is 133.322
// Pa: 1 mmHg is 13.5951 · 9.80665 Pa.
var millimetreOfMercury = map[string]ucum.Conversion{
	"kPa": {Times: 7.500615758456563, Over: 1}, "cm[H2O]": {Times: 0.7355591, Over: 1}, "hPa": {Times: 0.7500615758456563, Over: 1}, "Pa": {Times: 7.500615758456563, Over: 1000},
}

// ConvertUnit converts a value to a unit of the catalogue, or to m/s or W. It returns false if from is not a
// convertible unit. [ucum.ParseAs] reads from. Upper and lower case matter if they change the meaning: S is
// siemens, not second.
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
		// A fraction, a number and a percentage have the same dimension, so the text must name one of them.
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

// GlucoseMilligrams is the number of mg/dL of glucose in 1 mmol/L.
const GlucoseMilligrams = ucum.GlucoseMass / 10

// massUnits returns the conversion from mass per volume to amount per volume, which depends on the substance:
// glucose, cholesterol or triglycerides.
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

// Convert converts a value to the unit of the resource, as [ConvertUnit] does, and a value of a Difference by the size
// of its unit alone. It returns false if the unit cannot be converted. The sample type decides the substance, for
// cholesterol.
func (r *Resource) Convert(v float64, unit, sampleType string) (float64, bool) {
	c, ok := r.conversion(unit, sampleType)
	if !ok {
		return 0, false
	}
	return c.Of(v), true
}

// conversion returns the conversion from a unit to that of the resource. A difference has no zero point.
func (r *Resource) conversion(unit, sampleType string) (ucum.Conversion, bool) {
	if unit == r.Unit {
		return ucum.Conversion{Times: 1, Over: 1}, true
	}
	if c, ok := massUnits(r.Slug, sampleType, unit); ok {
		return c, true
	}
	c, ok := conversionOf(unit, r.Unit)
	if r.Difference {
		c.Minus = 0
	}
	return c, ok
}

// exampleUnits are units that people and devices often send in place of the resource's unit.
var exampleUnits = []string{"mg/dL", "lb", "kJ", "mi", "in", "[degF]", "1/min", "min", "h", "mL", "L", "g", "mg", "m", "cm", "mmol/L", "s", "ms", "mmHg", "kPa", "fraction", "IU/mL"}

// unitWords returns the text of the error for a unit that cannot be converted.
func (r *Resource) unitWords(sampleType string) string {
	for _, unit := range exampleUnits {
		if _, ok := r.conversion(unit, sampleType); ok && unit != r.Unit {
			return "must be " + r.Unit + " or a unit that is converted to it, such as " + unit
		}
	}
	return "must be " + r.Unit
}
