package loinc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// questionOf is a row that is printed with a name of a term and its first example unit.
func questionOf(t *loinc.Term, name string) loinc.Question {
	q := loinc.Question{Name: name, Specimen: t.Specimen(), Scale: t.Scale}
	switch t.Scale {
	case "Qn/Ord":
		q.Scale = "Titr"
	case "Nom":
		q.Scale = "Ord"
	}
	if len(t.Units) > 0 && t.Scale == "Qn" {
		q.UnitText = t.Units[0]
		q.Unit, _ = ucum.FromCode(t.Units[0])
	}
	return q
}

func alike(a, b *loinc.Term) bool {
	return a.Component == b.Component && a.Property == b.Property && a.Specimen() == b.Specimen() && a.Scale == b.Scale
}

func lists(t *loinc.Term, name string) bool {
	key := loinc.Key(name)
	return slices.ContainsFunc(t.Names, func(n string) bool { return slices.Equal(loinc.Key(n), key) })
}

// A row with a name, a unit and a specimen of a term is not matched without review to something else.
// The name that is listed first, of a term with a name of its own, leads to the term.
func TestRank_embeddedNamesLeadToTheirTerm(t *testing.T) {
	rows, first, own, auto, wrong := 0, 0, 0, 0, 0
	for _, term := range loinc.Embedded().All() {
		for n, name := range term.Names {
			q := questionOf(&term, name)
			got, err := loinc.Rank(loinc.Embedded(), q)
			require.NoError(t, err)
			rows++
			right := len(got) > 0 && (got[0].Term.Code == term.Code || alike(got[0].Term, &term))
			if n == 0 {
				own++
				if right {
					first++
				}
			}
			// A name that another term lists as well may lead to that one.
			if loinc.Certain(got, q) {
				auto++
				if !right && !lists(got[0].Term, name) {
					wrong++
					t.Logf("%q (%s) of %s %s is %s %s", name, q.UnitText, term.Code, term.Name, got[0].Term.Code, got[0].Term.Name)
				}
			}
		}
	}
	t.Logf("%d names, %d without review, %d of them of another term; first names %d of %d", rows, auto, wrong, first, own)
	require.LessOrEqual(t, wrong*2000, auto)
	require.GreaterOrEqual(t, float64(first)/float64(own), 0.9)
}

// A mass and an amount of substance of an analyte have the same names; the unit tells them apart.
func TestRank_unitDecidesBetweenMassAndSubstance(t *testing.T) {
	all := loinc.Embedded().All()
	pairs := 0
	for i := range all {
		for j := range all {
			mass, substance := &all[i], &all[j]
			_, a, _ := strings.Cut(mass.Name, "]")
			_, b, _ := strings.Cut(substance.Name, "]")
			if mass.Property != "MCnc" || substance.Property != "SCnc" || mass.Component != substance.Component || mass.System != substance.System || a != b || len(substance.Units) == 0 || len(mass.Names) == 0 {
				continue
			}
			pairs++
			q := questionOf(substance, mass.Names[0])
			got, err := loinc.Rank(loinc.Embedded(), q)
			require.NoError(t, err)
			require.NotEmpty(t, got, "%s in %s", q.Name, q.UnitText)
			require.Equal(t, "SCnc", got[0].Term.Property, "%s in %s is %s", q.Name, q.UnitText, got[0].Term.Name)
		}
	}
	require.Greater(t, pairs, 80)
}

func TestRank_ironAndFastingGlucoseHaveTheirCodes(t *testing.T) {
	for code, rows := range map[string][]string{
		"2498-4":  {"ug/dL", "IRON, TOTAL", "Iron Total", "Eisen gesamt"},
		"14798-3": {"umol/L", "IRON, TOTAL", "Iron Total", "Eisen gesamt"},
		"1558-6": {"mg/dL", "Glucose, fasting", "Fasting Glucose", "FBS", "Glukose nüchtern", "Nüchternglukose", "Nüchternblutzucker", "BZ nüchtern", "Blutzucker nüchtern", "Glucosa en ayunas",
			"Glucosa basal", "Glucemia basal", "Glycémie à jeun", "Glucose à jeun", "Glicemia a digiuno", "Glucose (fasting) plasma"},
		"14771-0": {"mmol/L", "Glucose, fasting", "Fasting Glucose", "Glukose nüchtern", "Nüchternglukose", "Glucosa en ayunas", "Glucosa basal", "Glycémie à jeun", "Glucose à jeun"},
	} {
		unit, err := ucum.FromCode(rows[0])
		require.NoError(t, err)
		for _, name := range rows[1:] {
			q := loinc.Question{Name: name, Unit: unit, UnitText: rows[0], Scale: "Qn", Specimen: loinc.Blood}
			got, err := loinc.Rank(loinc.Embedded(), q)
			require.NoError(t, err)
			require.NotEmpty(t, got, name)
			require.Equal(t, code, got[0].Term.Code, "%s in %s", name, rows[0])
		}
	}
}

// A name with blood and without serum or plasma may mean whole blood: no term of serum or plasma is
// certain.
func TestRank_nameWithBloodIsNoCertainMatchOfASerumTerm(t *testing.T) {
	rows := 0
	for _, term := range loinc.Embedded().All() {
		if term.Scale != "Qn" || term.Specimen() != loinc.Blood || len(term.Names) == 0 {
			continue
		}
		for _, name := range []string{term.Names[0] + ", Blood", "Blood " + term.Names[0], term.Names[0] + " im Blut", term.Names[0] + " en sangre", term.Names[0] + " (sang)"} {
			words := loinc.Key(name)
			if slices.Contains(words, "serum") || slices.Contains(words, "plasma") || strings.Contains(name, "Blood Urea Nitrogen") {
				continue
			}
			q := questionOf(&term, name)
			got, err := loinc.Rank(loinc.Embedded(), q)
			require.NoError(t, err)
			rows++
			if loinc.Certain(got, q) {
				system := strings.ToLower(got[0].Term.System)
				require.False(t, strings.HasPrefix(system, "serum") && !strings.Contains(system, "blood") || system == "plasma" || system == "platelet-poor plasma", "%s is %s", name, got[0].Term.Name)
			}
		}
	}
	require.Greater(t, rows, 1500)
	unit, _ := ucum.FromCode("mg/dL")
	q := loinc.Question{Name: "Blood Urea Nitrogen", Unit: unit, UnitText: "mg/dL", Scale: "Qn"}
	got, err := loinc.Rank(loinc.Embedded(), q)
	require.NoError(t, err)
	require.True(t, loinc.Certain(got, q))
}
