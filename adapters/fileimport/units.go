package fileimport

import "strings"

// scale turns a number of one unit into another: (v - sub) * mul / div.
type scale struct{ sub, mul, div float64 }

func (c scale) of(v float64) float64 { return (v - c.sub) * c.mul / c.div }

func times(f float64) scale { return scale{mul: f, div: 1} }
func over(f float64) scale  { return scale{mul: 1, div: f} }

// unitScales says, for each unit of the catalogue, how the units of phone stores are
// turned into it. The factors for pounds, miles, degrees Fahrenheit, kilojoules and
// glucose (molar mass 180.182 g/mol) are those of the ingestion; a percentage is
// written as a fraction in an export.
var unitScales = map[string]map[string]scale{
	"count": {"count": times(1)},
	"index": {"count": times(1), "": times(1)},
	"bpm":   {"count/min": times(1), "count/s": times(60), "bpm": times(1)},
	"%":     {"%": times(100)},
	"ms":    {"ms": times(1), "s": times(1000)},
	"kg": {
		"kg": times(1), "g": over(1000), "lb": times(0.45359237), "st": times(6.35029318),
		"oz": times(0.028349523125),
	},
	"m": {
		"m": times(1), "km": times(1000), "cm": over(100), "mi": times(1609.344), "ft": times(0.3048),
		"yd": times(0.9144), "in": times(0.0254),
	},
	"cm": {"cm": times(1), "m": times(100), "mm": over(10), "in": times(2.54), "ft": times(30.48)},
	"kcal": {
		"kcal": times(1), "Cal": times(1), "cal": over(1000), "kJ": over(4.184), "J": over(4184),
	},
	"min": {"min": times(1), "s": over(60), "sec": over(60), "hr": times(60)},
	"°C": {
		"degC": times(1), "degF": {sub: 32, mul: 1, div: 1.8}, "K": {sub: 273.15, mul: 1, div: 1},
	},
	"mmol/L":    {"mmol/L": times(1), "mg/dL": over(18.0182)},
	"mmHg":      {"mmHg": times(1), "kPa": times(7.500615613026439)},
	"mL/kg/min": {"mL/min·kg": times(1), "mL/kg·min": times(1)},
	"L":         {"L": times(1), "mL": over(1000)},
	"L/min":     {"L/min": times(1), "L/s": times(60), "mL/min": over(1000)},
	"ml": {
		"mL": times(1), "cL": times(10), "dL": times(100), "L": times(1000),
		"fl_oz_us": times(29.5735295625), "fl_oz_imp": times(28.4130625),
		"cup_us": times(236.5882365), "cup_imp": times(284.130625),
		"pt_us": times(473.176473), "pt_imp": times(568.26125),
	},
	"g": {
		"g": times(1), "mg": over(1000), "mcg": over(1e6), "kg": times(1000), "oz": times(28.349523125),
	},
	"m/s": {"m/s": times(1), "km/hr": over(3.6), "mi/hr": times(0.44704)},
	"W":   {"W": times(1), "kW": times(1000)},
}

// scaleTo finds how a unit of a file is turned into one of the catalogue.
func scaleTo(catalogue string, unit []byte) (scale, bool) {
	c, ok := unitScales[catalogue][string(unit)]
	if !ok && catalogue == "mmol/L" {
		// Stores write the molar mass into the unit: mmol<180.1558800000541>/L.
		u := string(unit)
		if strings.HasPrefix(u, "mmol<") && strings.HasSuffix(u, ">/L") {
			return times(1), true
		}
	}
	return c, ok
}
