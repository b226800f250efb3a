package loinc

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// Question has the fields of a printed row that decide its term.
type Question struct {
	Name string
	// Unit is the zero value if the unit is not known; UnitText is the unit as it is printed.
	Unit     ucum.Unit
	UnitText string
	// Panel is the heading above the row; it may be empty.
	Panel string
	// Specimen is the specimen that the report states. A specimen in Name has priority.
	Specimen Specimen
	// Scale is the kind of value: Qn, Ord or Titr; empty if unknown.
	Scale string
	// Low and High are the ends of the printed range; nil if it has none.
	Low, High *float64
}

// Candidate is a possible term of a row.
type Candidate struct {
	Term *Term
	// Score is 0 to 0.99.
	Score float64
	// Clash reports whether the term is measured in another kind of unit than the row has.
	Clash bool
	// Guessed reports whether the specimen is neither stated nor implied by the name, or the kind of blood may be
	// another one than that of the term.
	Guessed bool
}

// Rank returns the possible terms of a row, scored by name, unit, specimen and kind of value: best first, ties
// by rank and then by code. Terms of another specimen are left out. The error is that of the catalogue.
func Rank(c Catalogue, q Question) ([]Candidate, error) {
	found, err := c.Find(q.Name)
	if err != nil {
		return nil, err
	}
	if q.Panel != "" && len(found) == 0 {
		// Parts of a panel are often printed without their subject: "Titer", "IgG".
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
		kind = anyBlood // blood is venous unless the report states otherwise
	}
	out := make([]Candidate, 0, len(found))
	for _, f := range found {
		if !specimen.Compatible(f.Term.Specimen()) {
			continue
		}
		s, clash := scoreTerm(f, q, specimen, kind)
		out = append(out, Candidate{f.Term, s, clash, guessed || !kind.certain(f.Term)})
	}
	order := func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(rankOf(a.Term), rankOf(b.Term)), strings.Compare(a.Term.Code, b.Term.Code))
	}
	slices.SortFunc(out, order)
	// Of terms that differ only in the method, the most common one is used, because a report rarely states the
	// method.
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

// scoreTerm returns the score of one possible term for a row. clash is true if the row's unit does not fit the term.
func scoreTerm(f Found, q Question, specimen Specimen, kind bloodKind) (score float64, clash bool) {
	t := f.Term
	score = 0.77 - 1.6*(1-f.Likeness)
	byUnit, clash := unitScore(t, q)
	score += byUnit + scaleScore(t, q) + specimenScore(t, specimen)
	if strings.Contains(q.Unit.UCUM, "FEU") && strings.Contains(t.Component, "DDU") ||
		strings.Contains(q.Unit.UCUM, "DDU") && strings.Contains(t.Component, "FEU") {
		score, clash = score-0.4, true // FEU and DDU differ by a factor of two
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
	// Frequent terms are more probable.
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

// unitScore scores how well the row's unit fits a term. clash is true if the term is measured in another kind of
// unit.
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

// Certain reports whether the best candidate needs no review: its score is high and well above the second, its
// specimen is stated or implied, and value and unit are valid for the term.
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

// complete reports whether value and unit are valid for the term: a number has the unit that the property needs,
// the unit is known, and a numeric term has no value in words.
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

// scaleScore scores whether the kind of the row's value (number, word or titer) fits the scale of a term.
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

// specimenScore scores whether the specimen of a row fits that of a term.
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

// byMagnitude scores whether the upper end of the printed range fits a term, for a row without a unit: a percentage
// and a count of the same cells differ in size. The value is not used, because it may be abnormal.
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

// Kind returns the kind of quantity of the term, by the names of [ucum.Unit.Kind]; empty if no unit decides it.
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

// MeasuredIn reports whether the values of a term can have the unit, or one of the same kind.
func MeasuredIn(t *Term, unit ucum.Unit) bool {
	return unit.UCUM != "" && (ucum.IsAmong(unit.UCUM, t.Units) || kindsAgree(t.Kind(), unit.Kind()))
}

// Belong reports whether at least one of the terms can have the unit. A term without a known kind of unit can have any.
// Unlike [MeasuredIn] it does not accept every unit of the kind of a term.
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
