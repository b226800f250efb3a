package ucum

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCode_returnsFactorAndDimension(t *testing.T) {
	for _, c := range []struct {
		code   string
		factor float64
		dims   [exponents]int
	}{
		{"g/L", 1e3, dims(1, -3, 0, 0)},
		{"mg/dL", 10, dims(1, -3, 0, 0)},
		{"10*3/uL", 1e12, dims(0, -3, 0, 0)},
		{"10*9/L", 1e12, dims(0, -3, 0, 0)},
		{"{cells}/uL", 1e9, dims(0, -3, 0, 0)},
		{"/uL", 1e9, dims(0, -3, 0, 0)},
		{"mm/h", 1e-3 / 3600, dims(0, 1, -1, 0)},
		{"mg/(24.h)", 1e-3 / 86400, dims(1, 0, -1, 0)},
		{"U/L", 1e-3 / 60, dims(0, -3, -1, 1)},
		{"mm[Hg]", 133322, dims(1, -1, -2, 0)},
		{"kg/m2", 1e3, dims(1, -2, 0, 0)},
		{"%", 0.01, dims(0, 0, 0, 0)},
	} {
		q, ok := parseCode(c.code)
		require.True(t, ok, c.code)
		f, _ := q.factor.Float64()
		require.InEpsilon(t, c.factor, f, 1e-15, c.code)
		require.Equal(t, c.dims, q.dims, c.code)
	}
}

func TestParse_readsPrintedUnits(t *testing.T) {
	for in, want := range map[string]string{
		"mg/dL": "mg/dL", "mg/dl": "mg/dL", "Tsd./µl": "10*3/uL", "Tsd/μl": "10*3/uL", "/nl": "10*3/uL", "/pl": "10*6/uL", "G/L": "10*9/L", "g/L": "g/L", "g/l": "g/L", "T/L": "10*12/L",
		"x10E3/uL": "10*3/uL", "10³/µL": "10*3/uL", "Mio./µl": "10*6/uL", "mcg/dL": "ug/dL", "E/l": "U/L", "UI/L": "[IU]/L", "mL/min/1,73m²": "mL/min/{1.73_m2}", "µUI/mL": "m[IU]/L", "%": "%",
		"mm/1h": "mm/h", "cells/mcL": "/uL", "(calc)": "{ratio}",
	} {
		u, ok := Parse(in)
		require.True(t, ok, in)
		require.Equal(t, want, u.UCUM, in)
	}
	for _, in := range []string{"", "apples", "EUR", "01", "High", "kg", "12/03"} {
		_, ok := Parse(in)
		require.False(t, ok, in)
	}
}

func TestFactor_convertsOnlyWithinADimension(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     float64 // 0: not the same dimension
	}{
		{"g/L", "mg/dL", 100}, {"ng/mL", "ug/L", 1}, {"Tsd./µl", "G/L", 1}, {"mmol/L", "umol/L", 1000}, {"meq/L", "mmol/L", 1}, {"mg/24h", "g/24h", 1e-3},
		{"ug/g creat", "mg/g creat", 1e-3}, {"ukat/L", "U/L", 60}, {"mg/L", "mmol/L", 0}, {"IU/mL", "ng/mL", 0}, {"ng/mL FEU", "ng/mL DDU", 0},
		{"/HPF", "/uL", 0}, {"mOsm/L", "mmol/L", 0}, {"CFU/mL", "/mL", 0},
	} {
		a, ok1 := Parse(c.from)
		b, ok2 := Parse(c.to)
		require.True(t, ok1 && (ok2 || c.to == "/mL"), "%s %s", c.from, c.to)
		got, ok := a.Factor(b)
		require.Equal(t, c.want != 0, ok, "%s %s", c.from, c.to)
		require.InDelta(t, c.want, got, 1e-9, "%s %s", c.from, c.to)
	}
}

// Units that no table prints are read by the grammar.
func TestParse_readsUnitsByTheGrammar(t *testing.T) {
	for printed, ucum := range map[string]string{
		"#/uL": "/uL", "mOsm/L": "mosm/L", "fg": "fg", "ug/g creat": "ug/g{creat}", "µg/g Kreatinin": "ug/g{creat}", "mmol/mmol creat": "mmol/mmol{creat}", "CFU/mL": "[CFU]/mL", "KBE/ml": "[CFU]/mL",
		"MoM": "{M.o.M}", "mL/24h": "mL/(24.h)", "nmol/mmol creat": "nmol/mmol{creat}", "mmol/kg": "mmol/kg", "pg/L": "pg/L", "ng/mL/h": "ng/mL/h", "mmol/d": "mmol/d", "nmol/d": "nmol/d", "umol/24h": "umol/(24.h)", "10*3/mL": "10*3/mL",
	} {
		u, ok := Parse(printed)
		require.True(t, ok, printed)
		require.Equal(t, ucum, u.UCUM, printed)
	}
	for _, word := range []string{"a/b", "m", "g", "H/L", "or/and", "page/2", "M/F", "12/24", "mm/dd", "Na/K", "AST/ALT", "and/or", "h", "s/o"} {
		_, ok := Parse(word)
		require.False(t, ok, word)
	}
}

// A unit that is printed for several units is unknown, and is not mended to one of them.
func TestParse_ambiguousUnitIsUnknown(t *testing.T) {
	for _, printed := range []string{"mil/uL", "MIL/uL", "mil/µl", "mil/mm3", "mil/mm³", "mil./uL", "mil/cumm", "mil/mcL"} {
		_, ok := Parse(printed)
		require.False(t, ok, printed)
		_, _, ok = Repair(printed)
		require.False(t, ok, printed)
		_, ok = RepairAmong(printed, []string{"10*6/uL", "10*12/L"})
		require.False(t, ok, printed)
	}
	_, ok := Parse("S")
	require.False(t, ok)
	for printed, code := range map[string]string{"mill/uL": "10*6/uL", "miles/uL": "10*3/uL", "kU/L": "kU/L", "kUA/L": "k[IU]/L", "kIU/L": "k[IU]/L", "mU/L": "mU/L", "mIU/L": "m[IU]/L", "s": "s"} {
		u, ok := Parse(printed)
		require.True(t, ok, printed)
		require.Equal(t, code, u.UCUM, printed)
	}
	// An enzyme unit is compared with an international unit where an analyte may have either, and is
	// never converted to it.
	enzyme, _ := Parse("kU/L")
	international, _ := Parse("kIU/L")
	_, ok = enzyme.Factor(international)
	require.False(t, ok)
	require.False(t, Same("kU/L", "k[IU]/L"))
	require.True(t, IsAmong("kU/L", []string{"[IU]/mL"}))
}
