package labhistory

import (
	_ "embed"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

//go:embed data/molar_mass.csv
var molarMassCSV string

// Notices names the sources and licences of the table of molar masses. It goes with every copy of
// the package.
//
//go:embed data/NOTICES.md
var Notices string

// substance has the properties of a LOINC component that conversions need.
type substance struct {
	molarMass float64 // g/mol; 0 if unknown
	charge    float64 // charge of the ion; 0 if unknown
	unit      string  // UCUM unit of its concentrations
}

// analyte is a LOINC code with its one unit.
type analyte struct {
	term *loinc.Term
	// name is the component, with the specimen unless that is blood or a part of blood.
	name string
	substance
	unit ucum.Unit
}

// glycated is the component hemoglobin A1c, whose two scales (NGSP and IFCC) have no constant factor between
// them.
const glycated = "Hemoglobin A1c/Hemoglobin.total"

// Kinds of units of concentration: of a mass, of an amount of substance, and of units of an assay. They measure
// the same quantity.
const (
	massKind      = "mass"
	amountKind    = "substance"
	arbitraryKind = "arbitrary"
)

// quantity returns the quantity of a kind of unit, such as massKind. The three kinds of concentration have one
// quantity; any other kind is its own quantity.
func quantity(kind string) string {
	switch kind {
	case massKind, amountKind, arbitraryKind:
		return "concentration"
	}
	return kind
}

// analytes are the LOINC codes that have a unit, by code.
var analytes = sync.OnceValue(func() map[string]analyte {
	substances := readSubstances(molarMassCSV)
	out := map[string]analyte{}
	units := map[[2]string]string{} // by component and quantity: that of the most common code
	terms := loinc.Embedded().All()
	slices.SortStableFunc(terms, func(a, b loinc.Term) int { return rankOf(a) - rankOf(b) })
	for i := range terms {
		t := &terms[i]
		kind, own := kindOf(t)
		if kind == "" {
			continue
		}
		a := analyte{term: t, name: nameOf(t), substance: substances[baseOf(t.Component)]}
		code := own
		switch key := [2]string{t.Component, quantity(kind)}; {
		case t.Component == glycated:
			code = "%"
		case a.substance.unit != "" && (kind == massKind || kind == amountKind):
			code = a.substance.unit
		case units[key] == "":
			units[key] = own
		default:
			code = units[key]
		}
		unit, err := ucum.FromCode(code)
		if err != nil || unit.Kind() == "" {
			continue
		}
		a.unit = unit
		out[t.Code] = a
	}
	return out
})

func rankOf(t loinc.Term) int {
	if t.Rank == 0 {
		return math.MaxInt32
	}
	return t.Rank
}

// nameOf returns the name of a component, with the specimen unless that is blood: glucose in urine is a
// different analyte from glucose.
func nameOf(t *loinc.Term) string {
	system := strings.ToLower(t.System)
	for _, blood := range []string{"", "serum", "plasma", "blood", "ser/plas"} {
		if system == blood || blood != "" && strings.Contains(system, blood) && !strings.Contains(system, "cord") {
			return t.Component
		}
	}
	return t.Component + " in " + t.System
}

func baseOf(component string) string {
	base, _, _ := strings.Cut(component, "^")
	return base
}

// kindOf returns the quantity that the units of a LOINC term measure, and the first of the units; empty if it
// has none.
func kindOf(t *loinc.Term) (kind, unit string) {
	for _, code := range t.Units {
		u, err := ucum.FromCode(code)
		if err == nil && u.Kind() != "" && !equivalents(u) {
			return u.Kind(), u.UCUM
		}
	}
	switch t.Property {
	case "MCnc":
		return massKind, "g/L"
	case "SCnc":
		return amountKind, "mmol/L"
	}
	return "", ""
}

func readSubstances(text string) map[string]substance {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		panic("labhistory: table of molar masses: " + err.Error())
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil && s != "" {
			panic("labhistory: table of molar masses: " + err.Error())
		}
		return v
	}
	out := map[string]substance{}
	for _, row := range rows[1:] {
		out[row[0]] = substance{molarMass: number(row[1]), unit: row[2], charge: number(row[3])}
	}
	return out
}

// UnitOf returns the UCUM unit in which values of a LOINC code are written. All codes of a component that
// measure the same quantity have one unit; concentrations of mass, of amount of substance and of assay units
// are the same quantity. It returns false for an unknown code or a code without a unit.
func UnitOf(code string) (string, bool) {
	a, ok := analytes()[code]
	return a.unit.UCUM, ok
}

// Convert returns a value of a LOINC code in the unit of [UnitOf]. unit is a UCUM code or a text that
// laboratories print. It returns false for an unknown code, for an unknown unit or a unit of another quantity,
// and for a conversion between mass and amount of substance without a known molar mass.
func Convert(code string, value float64, unit string) (float64, bool) {
	a, ok := analytes()[code]
	if !ok {
		return 0, false
	}
	u, ok := ucum.Parse(unit)
	if !ok {
		var err error
		if u, err = ucum.FromCode(unit); err != nil {
			return 0, false
		}
	}
	v, ok := a.convert(value, u)
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

func (a *analyte) convert(v float64, u ucum.Unit) (float64, bool) {
	if a.term.Component == glycated {
		return a.convertGlycated(v, u)
	}
	if u.UCUM == a.unit.UCUM {
		return v, true
	}
	charge := 1.0
	if equivalents(u) {
		if charge = a.charge; charge == 0 {
			return 0, false
		}
	}
	from, to := u.Kind(), a.unit.Kind()
	switch {
	case from == to:
		f, ok := u.Factor(a.unit)
		return v * f / charge, ok
	case a.molarMass == 0:
		return 0, false
	case from == massKind && to == amountKind:
		f, ok1 := u.Factor(gramPerLitre)
		g, ok2 := molePerLitre.Factor(a.unit)
		return v * f / a.molarMass * g, ok1 && ok2
	case from == amountKind && to == massKind:
		f, ok1 := u.Factor(molePerLitre)
		g, ok2 := gramPerLitre.Factor(a.unit)
		return v * f / charge * a.molarMass * g, ok1 && ok2
	}
	return 0, false
}

// convertGlycated converts hemoglobin A1c to percent of NGSP by the master equation of IFCC and NGSP, mmol/mol = 10.929
// * (percent - 2.15): Hoelzel et al., Clin Chem 2004;50:166-174. It returns false for other units than percent and
// mmol/mol, and for percent under an IFCC code, which is ambiguous.
func (a *analyte) convertGlycated(v float64, u ucum.Unit) (float64, bool) {
	switch {
	case u.UCUM == "mmol/mol":
		return v/10.929 + 2.15, true
	case u.UCUM == "%" && slices.Contains(a.term.Units, "%") && !slices.Contains(a.term.Units, "mmol/mol"):
		return v, true
	}
	return 0, false
}

func equivalents(u ucum.Unit) bool {
	amount, _, _ := strings.Cut(u.UCUM, "/")
	return strings.HasSuffix(amount, "eq")
}

var gramPerLitre, molePerLitre = mustUnit("g/L"), mustUnit("mol/L")

func mustUnit(code string) ucum.Unit {
	u, err := ucum.FromCode(code)
	if err != nil {
		panic("labhistory: unit: " + err.Error())
	}
	return u
}
