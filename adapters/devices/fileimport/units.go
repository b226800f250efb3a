package fileimport

import "github.com/healthlab-dev/healthlab/healthdata"

// inUnit returns a number of an export in a unit of the catalogue. False if the unit cannot be turned
// into it. An export writes a percentage as a fraction, and an index without a unit.
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
	if to == "count" { // a recovery of the heart rate is beats per minute
		if n, ok := healthdata.ConvertUnit(v, from, "bpm"); ok {
			return n, true
		}
	}
	if to == glucose.Unit {
		return glucose.Convert(v, from, "")
	}
	return healthdata.ConvertUnit(v, from, to)
}

// glucose is the resource glucose, the only one of exports in mmol/L.
var glucose = healthdata.ResourceBySlug("glucose")

// mgPerDecilitre is the unit of glucose in exports.
const mgPerDecilitre = "mg/dL"
