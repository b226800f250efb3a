package labhistory_test

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

func TestConvert_convertsMassToAmountByMolarMass(t *testing.T) {
	for _, c := range []struct {
		name, code, from, to string
		value, want          float64
	}{
		{"mass to amount", "2345-7", "mg/dL", "mmol/L", 90, 90 * 10 / 180.156},
		{"amount under the code of a mass", "2345-7", "mmol/L", "mmol/L", 5, 5},
		{"the code of an amount", "14749-6", "mmol/L", "mmol/L", 5, 5},
		{"mass under the code of an amount", "14749-6", "mg/dl", "mmol/L", 90, 90 * 10 / 180.156},
		{"other specimen", "2161-8", "mg/dL", "umol/L", 100, 100 * 10000 / 113.118},
		{"creatinine", "2160-0", "mg/dL", "umol/L", 1, 10000 / 113.118},
		{"hemoglobin stays a mass", "718-7", "g/L", "g/dL", 140, 14},
		{"hemoglobin from an amount", "59260-0", "mmol/L", "g/dL", 9, 9 * 1.6114},
		{"monovalent ions", "2951-2", "meq/L", "mmol/L", 140, 140},
		{"bivalent ions", "17861-6", "meq/L", "mmol/L", 5, 2.5},
		{"a scale without a factor", "2744-1", "[pH]", "[pH]", 7.4, 7.4},
		{"HbA1c of IFCC", "4548-4", "mmol/mol", "%", 48, 48/10.929 + 2.15},
		{"HbA1c of NGSP", "4548-4", "%", "%", 6.5, 6.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			unit, ok := labhistory.UnitOf(c.code)
			require.True(t, ok)
			require.Equal(t, c.to, unit)
			v, ok := labhistory.Convert(c.code, c.value, c.from)
			require.True(t, ok)
			require.InEpsilon(t, c.want, v, 1e-12)
		})
	}
}

func TestConvert_unknownCodeOrUnitIsRefused(t *testing.T) {
	for name, c := range map[string][2]string{
		"unknown code":                              {"1-8", "mg/dL"},
		"no code":                                   {"", "mg/dL"},
		"no unit":                                   {"2345-7", ""},
		"unknown unit":                              {"2345-7", "drops"},
		"another quantity":                          {"2345-7", "mm/h"},
		"no constant fits lipoprotein(a)":           {"10835-7", "nmol/L"},
		"international units are no substance":      {"20448-7", "pmol/L"},
		"percent under a code of IFCC":              {"59261-8", "%"},
		"charges of an ion whose charge is unknown": {"2777-1", "meq/L"},
		"enzymes are no international units":        {"1742-6", "[IU]/L"},
	} {
		_, ok := labhistory.Convert(c[0], 5, c[1])
		require.False(t, ok, name)
	}
}

// All codes of one component that measure a concentration have one unit, whatever else they are.
func TestUnitOf_allCodesOfAConcentrationHaveOneUnit(t *testing.T) {
	units := map[string]string{}
	checked := 0
	for _, term := range loinc.Embedded().All() {
		unit, ok := labhistory.UnitOf(term.Code)
		if !ok || term.Property != "MCnc" && term.Property != "SCnc" {
			continue
		}
		checked++
		if units[term.Component] == "" {
			units[term.Component] = unit
		}
		require.Equal(t, units[term.Component], unit, term.Code)
	}
	require.Greater(t, checked, 100)
}

// What is converted is linear, but for HbA1c, and keeps its order.
func TestConvert_isLinearExceptForHbA1c(t *testing.T) {
	for _, term := range loinc.Embedded().All() {
		for _, unit := range term.Units {
			one, ok := labhistory.Convert(term.Code, 1, unit)
			if !ok || term.Component == "Hemoglobin A1c/Hemoglobin.total" {
				continue
			}
			many, ok := labhistory.Convert(term.Code, 250, unit)
			require.True(t, ok)
			require.InEpsilon(t, 250*one, many, 1e-12, "%s in %s", term.Code, unit)
			require.False(t, math.Signbit(one), "%s in %s", term.Code, unit)
		}
	}
}

// 10,000 values, each written in the unit of its analyte, equal the factors that the table of
// laboratory units has with six digits, for the codes of both sides.
func TestConvert_equalsTheTableOfLaboratoryUnits(t *testing.T) {
	file, err := os.Open("../../internal/ucum/data/ucum_lab_units.csv")
	require.NoError(t, err)
	defer file.Close()
	r := csv.NewReader(file)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	rows = slices.DeleteFunc(rows, func(row []string) bool {
		// No molar mass of methylmalonate is sure, and lactate counts as lactic acid and not as the ion.
		return row[0] != "molar" || row[9] == "" || row[3] == "Methylmalonate" || row[3] == "Lactate"
	})
	require.Greater(t, len(rows), 50)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		row := rows[n%len(rows)]
		factor, err := strconv.ParseFloat(row[8], 64)
		require.NoError(t, err)
		v := math.Exp(random.Float64()*14 - 7)
		for _, code := range []string{row[4], row[6]} {
			if _, ok := labhistory.UnitOf(code); !ok {
				continue // a code that the table of terms does not have
			}
			mass, ok := labhistory.Convert(code, v, row[5])
			require.True(t, ok, "%s from %s", code, row[5])
			amount, ok := labhistory.Convert(code, v*factor, row[7])
			require.True(t, ok, "%s from %s", code, row[7])
			require.InEpsilon(t, amount, mass, 1e-5, "%s from %s and %s", code, row[5], row[7])
		}
	}
}

// 10,000 values equal the factors of published tables that the molar masses do not come from, to the last
// digit that a table prints, for every code of the component.
func TestConvert_equalsPublishedFactors(t *testing.T) {
	rows := tableRows(t, "testdata/published_factors.csv")[1:]
	codes := map[string][]string{}
	for _, term := range loinc.Embedded().All() {
		if term.Property == "MCnc" || term.Property == "SCnc" {
			codes[term.Component] = append(codes[term.Component], term.Code)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	compared := map[string]bool{}
	for n := range 10_000 {
		component, from, printed, to, source := rows[n%len(rows)][0], rows[n%len(rows)][1], rows[n%len(rows)][2], rows[n%len(rows)][3], rows[n%len(rows)][4]
		factor, err := strconv.ParseFloat(printed, 64)
		require.NoError(t, err)
		_, fraction, _ := strings.Cut(printed, ".")
		last := math.Pow(10, -float64(len(fraction))) / factor // the last printed digit, as a share of the factor
		if len(source) > 1 {
			last = 0.06 // another form of the substance
		}
		require.NotEmpty(t, codes[component], component)
		v := math.Exp(random.Float64()*14 - 7)
		for _, code := range codes[component] {
			mass, ok := labhistory.Convert(code, v, from)
			require.True(t, ok, "%s from %s", code, from)
			amount, ok := labhistory.Convert(code, v*factor, to)
			require.True(t, ok, "%s from %s", code, to)
			require.InEpsilon(t, amount, mass, last, "%s (%s) from %s and %s", component, code, from, to)
			compared[component] = true
		}
	}
	require.Greater(t, len(compared), 35)
}

// Forms of a substance whose molar masses differ: what laboratories print decides.
func TestConvert_usesTheMolarMassOfTheFormThatLabsReport(t *testing.T) {
	for component, c := range map[string]struct {
		from   string
		factor float64
	}{
		"Lactate":                        {"mg/dL", 0.1110},  // as lactic acid
		"Dehydroepiandrosterone sulfate": {"ug/dL", 0.02714}, // as the acid
	} {
		checked := 0
		for _, term := range loinc.Embedded().All() {
			if term.Component != component || term.Property != "MCnc" && term.Property != "SCnc" {
				continue
			}
			got, ok := labhistory.Convert(term.Code, 1, c.from)
			require.True(t, ok, term.Code)
			require.InEpsilon(t, c.factor, got, 0.005, term.Code)
			checked++
		}
		require.Positive(t, checked, component)
	}
}

// A component without a molar mass is never converted between a mass and an amount.
func TestConvert_withoutAMolarMassIsRefused(t *testing.T) {
	known := map[string]bool{}
	for _, row := range tableRows(t, "data/molar_mass.csv") {
		known[row[0]] = row[1] != ""
	}
	checked := 0
	for _, term := range loinc.Embedded().All() {
		component, _, _ := strings.Cut(term.Component, "^") // "Glucose^post CFst" is glucose
		if known[component] || term.Property != "MCnc" && term.Property != "SCnc" {
			continue
		}
		_, mass := labhistory.Convert(term.Code, 1, "mg/dL")
		_, amount := labhistory.Convert(term.Code, 1, "mmol/L")
		require.False(t, mass && amount, term.Code)
		checked++
	}
	require.Greater(t, checked, 30)
}

// tableRows reads a table with its header.
func tableRows(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	r := csv.NewReader(file)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	return rows
}
