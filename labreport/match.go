package labreport

import (
	"cmp"
	"slices"
	"strings"
)

// question is all that decides which term a row means.
type question struct {
	name     string
	unit     Unit
	unitText string
	panel    string
	specimen Specimen
	// inOrder is what the value is: Qn, Ord or Titr; empty if unknown.
	scale string
	low   *float64
	high  *float64
}

// candidate is a term with the score it got.
type candidate struct {
	term  *Term
	score float64
	clash bool
	// guessed says that nothing shows which specimen was examined.
	guessed bool
}

// rank weighs the terms that a name may mean by unit, specimen and kind of value.
// The scores are 0 to 1, best first, ties by code.
func rank(c Catalogue, q question) ([]candidate, error) {
	found, err := c.Find(q.name)
	if err != nil {
		return nil, err
	}
	if q.panel != "" && len(found) == 0 {
		// Sub-results are often printed without their subject: "Titer", "IgG".
		if found, err = c.Find(q.panel + " " + q.name); err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Likeness *= 0.9
		}
	}
	specimen := specimenOf(q.name)
	if specimen == NoSpecimen {
		specimen = q.specimen
	}
	guessed := specimen == OtherSpecimen || specimen == NoSpecimen && implied(found) == NoSpecimen
	out := make([]candidate, 0, len(found))
	for _, f := range found {
		if !specimen.compatible(systemOf(f.Term.System)) {
			continue
		}
		s, clash := weigh(f, q, specimen)
		out = append(out, candidate{f.Term, s, clash, guessed})
	}
	order := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(rankOf(a.term), rankOf(b.term)), strings.Compare(a.term.Code, b.term.Code))
	}
	slices.SortFunc(out, order)
	// Terms that differ in the method only: a report rarely says which, the most
	// common one stands for them.
	seen := map[string]int{}
	for i := range out {
		t := out[i].term
		key := t.Component + "|" + t.Property + "|" + string(systemOf(t.System)) + "|" + t.Scale
		out[i].score -= 0.07 * float64(min(seen[key], 3))
		seen[key]++
	}
	slices.SortFunc(out, order)
	for i := range out {
		out[i].score = min(0.99, max(0, out[i].score))
	}
	return out, nil
}

// weigh scores one term.
func weigh(f Found, q question, specimen Specimen) (score float64, clash bool) {
	t := f.Term
	score = 0.77 - 1.6*(1-f.Likeness)
	byUnit, clash := unitScore(t, q)
	score += byUnit + scaleScore(t, q) + specimenScore(t, specimen)
	if strings.Contains(q.unit.UCUM, "FEU") && strings.Contains(t.Component, "DDU") ||
		strings.Contains(q.unit.UCUM, "DDU") && strings.Contains(t.Component, "FEU") {
		score, clash = score-0.4, true // they differ by a factor of two
	}
	low := strings.ToLower(t.System)
	if strings.Contains(low, "24h") && specimen != dayUrine && q.unit.kind != "perday" && !strings.Contains(fold(q.name), "24") {
		score -= 0.15
	}
	if (strings.Contains(low, "arterial") || strings.Contains(low, "venous")) && !strings.Contains(fold(q.name+" "+q.panel), "arter") {
		score -= 0.1
	}
	// What is measured most is meant most.
	r := rankOf(t)
	switch {
	case r <= 50:
	case r <= 300:
		score -= 0.01
	case r <= 1500:
		score -= 0.025
	default:
		score -= 0.045
	}
	return score, clash
}

// unitScore weighs the unit; clash means that the term is measured in another kind.
func unitScore(t *Term, q question) (score float64, clash bool) {
	kind := propertyKind(t)
	switch {
	case q.unit.UCUM != "" && slices.ContainsFunc(t.Units, func(u string) bool { return sameUnit(u, q.unit.UCUM) }):
		score = 0.16
	case q.unit.UCUM != "" && kindsAgree(kind, q.unit.kind):
		score = 0.14
	case q.unit.UCUM != "" && kind == "":
		score = 0.02
	case q.unit.UCUM != "":
		score, clash = -0.5, true
	case q.scale == "Qn" && (kind == "ratio" || kind == "ph" || kind == "gravity"):
		score = 0.15
	case q.scale == "Qn" && q.unitText == "":
		score = 0.04 + byMagnitude(t, q)
	default:
		score = 0.08
	}
	return score, clash
}

// complete reports whether value and unit are those of the term: a number has the unit that
// the property needs, a unit is one that is known, and a word is no value of a number.
func complete(t *Term, q question) bool {
	if q.unitText != "" && q.unit.UCUM == "" || q.scale == "" || q.scale == "Ord" && t.Scale == "Qn" || !nearUnit(t.Units, q.unit.UCUM) {
		return false
	}
	switch propertyKind(t) {
	case "ratio", "ph", "gravity", "titer", "":
		return true
	}
	return q.scale != "Qn" || q.unit.UCUM != "" || strings.Contains(q.name, "%")
}

// scaleScore weighs whether the value is a number, a word or a titer.
func scaleScore(t *Term, q question) (score float64) {
	switch {
	case q.scale == "Ord" && (t.Scale == "Ord" || t.Scale == "Nom" || t.Scale == "Qn/Ord" || t.Scale == "OrdQn"):
		score = 0.07
	case q.scale == "Ord" && t.Scale == "Qn" && q.unit.UCUM == "":
		score = -0.08
	case q.scale == "Titr" && (t.Property == "Titr" || t.Scale == "Qn/Ord"):
		score = 0.09
	case q.scale == "Titr":
		score = -0.2
	case q.scale == "Qn" && (t.Scale == "Ord" || t.Scale == "Nom"):
		score = -0.3
	case q.scale == "Qn" && t.Property == "Titr":
		score = -0.25
	}
	return score
}

// specimenScore weighs what was examined.
func specimenScore(t *Term, specimen Specimen) (score float64) {
	of := systemOf(t.System)
	switch {
	case specimen != NoSpecimen && of == specimen:
		score = 0.08
	case specimen == Urine && of == dayUrine:
		score = 0.08
	case specimen == NoSpecimen && of.published() == Urine:
		score = -0.12
	case specimen == NoSpecimen && of == Blood:
		score = 0.05
	}
	return score
}

// byMagnitude compares a term with the printed range, for a row without a unit: a
// percentage and a count of the same cells differ in size. The value itself is not
// asked, it may be sick.
func byMagnitude(t *Term, q question) float64 {
	if q.high == nil {
		return 0
	}
	switch propertyKind(t) {
	case "fraction":
		if *q.high > 100 {
			return -0.3
		}
		if q.low != nil && *q.high >= 10 {
			return 0.03
		}
	case "number":
		if *q.high > 100 {
			return 0.05
		}
	}
	return 0
}

// propertyKind maps a LOINC property to the kinds of unitKind.
func propertyKind(t *Term) string {
	if strings.HasPrefix(t.Component, "Hemoglobin A1c/") && strings.Contains(t.Name, "IFCC") {
		return "molarfraction" // mmol/mol
	}
	return kindOfProperty(t)
}

func kindOfProperty(t *Term) string {
	switch t.Property {
	case "MCnc":
		return "mass"
	case "SCnc":
		return "substance"
	case "NCnc":
		return "number"
	case "ACnc", "LACnc", "LnCnc":
		return "arbitrary"
	case "CCnc":
		return "catalytic"
	case "NFr", "MFr", "VFr", "SFr", "RelACnc", "AFr", "Fr":
		return "fraction"
	case "Ratio":
		if slices.Contains(t.Units, "%") {
			return "fraction"
		}
		return "ratio"
	case "MRto", "SRto":
		if slices.ContainsFunc(t.Units, func(u string) bool { return strings.Contains(u, "creat") }) && !strings.Contains(t.Component, "Urea") {
			return "massratio"
		}
		return "ratio"
	case "RelTime", "RelRto":
		return "ratio"
	case "Time":
		if slices.Contains(t.Units, "%") {
			return "fraction"
		}
		return "time"
	case "EntVol":
		return "entvol"
	case "EntMass", "EntSub":
		return "entmass"
	case "Vel":
		return "velocity"
	case "ArVRat", "VRat":
		return "rate"
	case "PPres":
		return "pressure"
	case "Osmol":
		return "osmolality"
	case "Titr":
		return "titer"
	case "Naric":
		return "field"
	case "MRat", "SRat", "ARat":
		return "perday"
	case "LsCnc":
		return "ph"
	case "Rden":
		return "gravity"
	}
	return ""
}

func kindsAgree(term, unit string) bool {
	if term == unit {
		return true
	}
	switch [2]string{term, unit} {
	case [2]string{"arbitrary", "catalytic"}, [2]string{"catalytic", "arbitrary"}, [2]string{"arbitrary", "ratio"},
		[2]string{"ratio", "massratio"}, [2]string{"ratio", "molarfraction"}, [2]string{"ratio", "fraction"}:
		return true
	}
	return false
}

// sameUnit reports whether two UCUM codes are the same amount of the same thing.
func sameUnit(a, b string) bool {
	a, b = canonUnit(a), canonUnit(b)
	if a == b {
		return true
	}
	p, ok1 := parseUCUM(a)
	q, ok2 := parseUCUM(b)
	return ok1 && ok2 && p.equal(q)
}

// canonUnit writes alike the units that laboratories use for the same though UCUM tells
// them apart.
func canonUnit(u string) string {
	switch strings.ToLower(u) {
	case "m[iu]/l", "u[iu]/ml", "10*-3.[iu]/l", "mu/l":
		return "m[IU]/L"
	case "k[iu]/l", "[iu]/ml", "ku/l":
		return "[IU]/mL"
	case "u/l", "[u]/l":
		return "U/L"
	case "u/ml", "[u]/ml", "[arb'u]/ml", "[arb'u]", "k[u]/l":
		return "[arb'U]"
	case "mg/g{creat}", "ug/mg{creat}", "mg/g":
		return "mg/g{creat}"
	case "ug/ml{feu}", "mg/l{feu}":
		return "mg/L{FEU}"
	case "ng/ml{feu}", "ug/l{feu}":
		return "ng/mL{FEU}"
	case "{ratio}", "{inr}", "{index_val}", "":
		return "{ratio}"
	}
	return u
}
