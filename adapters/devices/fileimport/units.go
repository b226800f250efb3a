package fileimport

import "github.com/healthlab-dev/healthlab/healthdata"

// inUnit converts a number of an export to a unit of the catalogue. It returns false if the unit cannot be
// converted. An export writes a percentage as a fraction, and an index without a unit.
func inUnit(v float64, unit []byte, to string) (float64, bool) {
	from := string(unit)
	switch {
	case from == "%" && to == "%":
		from = "fraction"
	case from == "" && to == "index":
		from = to
	case from == "":
		return 0, false
	}
	if to == "count" { // the recovery of the heart rate is a difference in beats per minute
		if n, ok := healthdata.ConvertUnit(v, from, "bpm"); ok {
			return n, true
		}
	}
	if to == glucose.Unit {
		return glucose.Convert(v, from, "")
	}
	return healthdata.ConvertUnit(v, from, to)
}

// glucose is the resource glucose, the only resource in mmol/L that exports contain.
var glucose = healthdata.ResourceBySlug("glucose")

// mgPerDecilitre is the unit of glucose in exports.
const mgPerDecilitre = "mg/dL"
