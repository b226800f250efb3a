package loinc

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// Question is a printed row: all that decides which term it means.
type Question struct {
	Name string
	// Unit is the zero value if the unit is not known; UnitText is the unit as it is printed.
	Unit     ucum.Unit
	UnitText string
	// Panel is the heading over the row; may be empty.
	Panel string
	// Specimen is what the report says was examined. A specimen in Name precedes it.
	Specimen Specimen
	// Scale is what the value is: Qn, Ord or Titr; empty if unknown.
	Scale string
	// Low and High are the ends of the printed range; nil if it has none.
	Low, High *float64
}

// Candidate is a term that a row may mean.
type Candidate struct {
	Term *Term
	// Score is 0 to 0.99.
	Score float64
	// Clash says that the term is measured in another kind of unit.
	Clash bool
	// Guessed says that nothing shows which specimen was examined.
	Guessed bool
}

// Rank returns the terms that a row may mean, weighed by name, unit, specimen and kind of
// value: best first, ties by rank and then by code. A term of another specimen is no
// candidate. The error is that of the catalogue.
func Rank(c Catalogue, q Question) ([]Candidate, error) {
	found, err := c.Find(q.Name)
	if err != nil {
		return nil, err
	}
	if q.Panel != "" && len(found) == 0 {
		// Sub-results are often printed without their subject: "Titer", "IgG".
		if found, err = c.Find(q.Panel + " " + q.Name); err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Likeness *= 0.9
		}
	}
	specimen := NamedSpecimen(q.Name)
	if specimen == NoSpecimen {
		specimen = q.Specimen
	}
	guessed := specimen == OtherSpecimen || (specimen == NoSpecimen || specimen == SeveralSpecimens) && ImpliedSpecimen(found) == NoSpecimen
	kind := bloodKindOf(q, specimen)
	if kind == venousBlood && !slices.ContainsFunc(found, func(f Found) bool { return strings.Contains(strings.ToLower(f.Term.System), string(kind)) }) {
		kind = anyBlood // blood is taken from a vein unless something else is said
	}
	out := make([]Candidate, 0, len(found))
	for _, f := range found {
		if !specimen.Compatible(f.Term.Specimen()) {
			continue
		}
		s, clash := weigh(f, q, specimen, kind)
		out = append(out, Candidate{f.Term, s, clash, guessed || !kind.certain(f.Term)})
	}
	order := func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(rankOf(a.Term), rankOf(b.Term)), strings.Compare(a.Term.Code, b.Term.Code))
	}
	slices.SortFunc(out, order)
	// Terms that differ in the method only: a report rarely says which, the most
	// common one stands for them.
	seen := map[string]int{}
	for i := range out {
		t := out[i].Term
		key := t.Component + "|" + t.Property + "|" + string(t.Specimen()) + "|" + t.Scale
		out[i].Score -= 0.07 * float64(min(seen[key], 3))
		seen[key]++
	}
	slices.SortFunc(out, order)
	for i := range out {
		out[i].Score = min(0.99, max(0, out[i].Score))
	}
	return out, nil
}

// weigh scores one term.
func weigh(f Found, q Question, specimen Specimen, kind bloodKind) (score float64, clash bool) {
	t := f.Term
	score = 0.77 - 1.6*(1-f.Likeness)
	byUnit, clash := unitScore(t, q)
	score += byUnit + scaleScore(t, q) + specimenScore(t, specimen)
	if strings.Contains(q.Unit.UCUM, "FEU") && strings.Contains(t.Component, "DDU") ||
		strings.Contains(q.Unit.UCUM, "DDU") && strings.Contains(t.Component, "FEU") {
		score, clash = score-0.4, true // they differ by a factor of two
	}
	low := strings.ToLower(t.System)
	if strings.Contains(low, "24h") && specimen != dayUrine && q.Unit.Kind() != "perday" && !strings.Contains(fold.String(q.Name), "24") {
		score -= 0.15
	}
	for _, of := range []bloodKind{arterialBlood, venousBlood} {
		if strings.Contains(low, string(of)) && kind != of {
			score -= 0.1
		}
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
func unitScore(t *Term, q Question) (score float64, clash bool) {
	kind := t.Kind()
	switch {
	case q.Unit.UCUM != "" && ucum.IsAmong(q.Unit.UCUM, t.Units):
		score = 0.16
	case q.Unit.UCUM != "" && kindsAgree(kind, q.Unit.Kind()):
		score = 0.14
	case q.Unit.UCUM != "" && kind == "":
		score = 0.02
	case q.Unit.UCUM != "":
		score, clash = -0.5, true
	case q.Scale == "Qn" && (kind == "ratio" || kind == "ph" || kind == "gravity"):
		score = 0.15
	case q.Scale == "Qn" && q.UnitText == "":
		score = 0.04 + byMagnitude(t, q)
	default:
		score = 0.08
	}
	return score, clash
}

// Certain reports whether the best candidate needs no review: it is good and well before
// the second, its specimen is stated or implied, and value and unit are those of the term.
func Certain(candidates []Candidate, q Question) bool {
	const good, margin = 0.9, 0.05
	if len(candidates) == 0 {
		return false
	}
	best, second := candidates[0], 0.0
	if len(candidates) > 1 {
		second = candidates[1].Score
	}
	hundredths := func(v float64) float64 { return math.Round(v * 100) }
	return best.Score >= good && hundredths(best.Score)-hundredths(second) >= 100*margin-1e-6 && !best.Clash && !best.Guessed && complete(best.Term, q)
}

// complete reports whether value and unit are those of the term: a number has the unit that
// the property needs, a unit is one that is known, and a word is no value of a number.
func complete(t *Term, q Question) bool {
	if q.UnitText != "" && q.Unit.UCUM == "" || q.Scale == "" || q.Scale == "Ord" && t.Scale == "Qn" || !ucum.Near(t.Units, q.Unit.UCUM) {
		return false
	}
	switch t.Kind() {
	case "ratio", "ph", "gravity", "titer", "":
		return true
	}
	return q.Scale != "Qn" || q.Unit.UCUM != "" || strings.Contains(q.Name, "%")
}

// scaleScore weighs whether the value is a number, a word or a titer.
func scaleScore(t *Term, q Question) (score float64) {
	switch {
	case q.Scale == "Ord" && (t.Scale == "Ord" || t.Scale == "Nom" || t.Scale == "Qn/Ord" || t.Scale == "OrdQn"):
		score = 0.07
	case q.Scale == "Ord" && t.Scale == "Qn" && q.Unit.UCUM == "":
		score = -0.08
	case q.Scale == "Titr" && (t.Property == "Titr" || t.Scale == "Qn/Ord"):
		score = 0.09
	case q.Scale == "Titr":
		score = -0.2
	case q.Scale == "Qn" && (t.Scale == "Ord" || t.Scale == "Nom"):
		score = -0.3
	case q.Scale == "Qn" && t.Property == "Titr":
		score = -0.25
	}
	return score
}

// specimenScore weighs what was examined.
func specimenScore(t *Term, specimen Specimen) (score float64) {
	of := t.Specimen()
	switch {
	case specimen != NoSpecimen && of == specimen:
		score = 0.08
	case specimen == Urine && of == dayUrine:
		score = 0.08
	case specimen == NoSpecimen && of.Published() == Urine:
		score = -0.12
	case specimen == NoSpecimen && of == Blood:
		score = 0.05
	}
	return score
}

// byMagnitude compares a term with the printed range, for a row without a unit: a
// percentage and a count of the same cells differ in size. The value itself is not
// asked, it may be sick.
func byMagnitude(t *Term, q Question) float64 {
	if q.High == nil {
		return 0
	}
	switch t.Kind() {
	case "fraction":
		if *q.High > 100 {
			return -0.3
		}
		if q.Low != nil && *q.High >= 10 {
			return 0.03
		}
	case "number":
		if *q.High > 100 {
			return 0.05
		}
	}
	return 0
}

// Kind returns what the term measures, in the words of [ucum.Unit.Kind]; empty if no unit
// shows it.
func (t *Term) Kind() string {
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

// MeasuredIn reports whether the values of a term are given in the unit, or in one that
// measures the same.
func MeasuredIn(t *Term, unit ucum.Unit) bool {
	return unit.UCUM != "" && (ucum.IsAmong(unit.UCUM, t.Units) || kindsAgree(t.Kind(), unit.Kind()))
}

// Belong reports whether what one of the terms is can be given in the unit.
func Belong(terms []*Term, unit ucum.Unit) bool {
	return ucum.IsAmong(unit.UCUM, UnitsOf(terms)) || slices.ContainsFunc(terms, func(t *Term) bool {
		kind := t.Kind()
		return kind == "" || kindsAgree(kind, unit.Kind()) && ucum.Near(t.Units, unit.UCUM)
	})
}

// UnitsOf returns the example units of all terms.
func UnitsOf(terms []*Term) (out []string) {
	for _, t := range terms {
		out = append(out, t.Units...)
	}
	return out
}
