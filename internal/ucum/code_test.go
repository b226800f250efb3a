package ucum_test

import (
	"encoding/xml"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// essence is the official table, as the generator of codes reads it.
type essence struct {
	Prefixes []essenceUnit `xml:"prefix"`
	Bases    []essenceUnit `xml:"base-unit"`
	Units    []essenceUnit `xml:"unit"`
}

type essenceUnit struct {
	Code      string `xml:"Code,attr"`
	Upper     string `xml:"CODE,attr"`
	Metric    string `xml:"isMetric,attr"`
	Special   string `xml:"isSpecial,attr"`
	Arbitrary string `xml:"isArbitrary,attr"`
	Value     struct {
		Unit   string `xml:"Unit,attr"`
		Number string `xml:"value,attr"`
	} `xml:"value"`
}

func readEssence(t testing.TB) (table essence, atoms []essenceUnit) {
	doc, err := os.ReadFile(filepath.Join("data", "ucum-essence.xml"))
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(doc), "?>")
	require.NoError(t, xml.Unmarshal([]byte(body), &table))
	for i := range table.Bases {
		table.Bases[i].Metric = "yes"
	}
	return table, append(table.Bases, table.Units...)
}

// Every atom is read, with every prefix if it is metric and with none if it is not; and a number with
// a prefix is its multiple.
func TestCheck_readsEveryAtomWithItsPrefixes(t *testing.T) {
	table, atoms := readEssence(t)
	codes := map[string]bool{}
	for _, a := range atoms {
		codes[a.Code] = true
	}
	for _, a := range atoms {
		require.NoError(t, ucum.Check(a.Code), a.Code)
		same, err := ucum.Convert(7.25, a.Code, a.Code)
		require.NoError(t, err, a.Code)
		require.InEpsilon(t, 7.25, same, 1e-9, a.Code)
		for _, p := range table.Prefixes {
			code := p.Code + a.Code
			if a.Metric != "yes" {
				if !codes[code] && !metricReading(table, atoms, code) {
					require.ErrorIs(t, ucum.Check(code), healthlab.Invalid, code)
				}
				continue
			}
			require.NoError(t, ucum.Check(code), code)
			if codes[code] {
				continue // cd is candela and no hundredth of a day
			}
			factor, err := strconv.ParseFloat(p.Value.Number, 64)
			require.NoError(t, err)
			got, err := ucum.Convert(1, code, a.Code)
			require.NoError(t, err, code)
			require.InEpsilon(t, factor, got, 1e-9, code)
			back, err := ucum.Convert(got, a.Code, code)
			require.NoError(t, err, code)
			require.InEpsilon(t, 1, back, 1e-9, code)
		}
	}
}

// metricReading reports whether a code is a prefix and a metric atom.
func metricReading(table essence, atoms []essenceUnit, code string) bool {
	for _, p := range table.Prefixes {
		for _, a := range atoms {
			if a.Metric == "yes" && p.Code+a.Code == code {
				return true
			}
		}
	}
	return false
}

// What the table says of a unit is what a conversion says.
func TestConvert_equalsTheValuesOfTheTable(t *testing.T) {
	_, atoms := readEssence(t)
	for _, a := range atoms {
		if a.Special == "yes" || a.Value.Number == "" || a.Arbitrary == "yes" {
			continue
		}
		want, err := strconv.ParseFloat(a.Value.Number, 64)
		require.NoError(t, err)
		got, err := ucum.Convert(1, a.Code, a.Value.Unit)
		require.NoError(t, err, a.Code)
		require.Equal(t, want, got, a.Code)
	}
}

func TestConvert_convertsUnitsOfOneDimension(t *testing.T) {
	for _, c := range []struct {
		value    float64
		from, to string
		want     float64
	}{
		{1, "m", "cm", 100}, {154, "[lb_av]", "kg", 69.85322498}, {1, "[mi_i]", "m", 1609.344}, {98.6, "[degF]", "Cel", 37}, {-40, "Cel", "[degF]", -40},
		{0, "Cel", "K", 273.15}, {80, "[degRe]", "Cel", 100}, {36_600, "mCel", "Cel", 36.6}, {7, "[pH]", "mol/L", 1e-7}, {40, "nmol/L", "[pH]", 7.397940008672037},
		{30, "dB", "B", 3}, {3, "B", "1", 1000}, {20, "dB[SPL]", "Pa", 2e-4}, {1, "Np", "1", math.E}, {3, "bit_s", "1", 8}, {45, "deg", "%[slope]", 100},
		{2, "[hp'_X]", "1", 0.01}, {4, "[m/s2/Hz^(1/2)]", "m2/s4/Hz", 16}, {1, "mol", "1", 6.02214076e23}, {1, "g%", "g/dL", 1}, {180, "deg", "[pi].rad", 1},
		{60, "ukat", "U", 3600}, {1, "kU/L", "U/mL", 1}, {1, "k[IU]/L", "[iU]/mL", 1}, {1, "meq/L", "mmol/L", 1}, {120, "mm[Hg]", "kPa", 15.99864}, {5, "10.m", "m", 50},
		{1, "Cel", "10.Cel", 0.1}, {6.5, "%{Hb}", "%", 6.5}, {1, "{beats}/min", "/min", 1}, {1, "mL/min/{1.73_m2}", "mL/min", 1}, {1, "[car_Au]", "/24", 1},
		{1, "m2.kg/s2", "J", 1}, {1, "(m.s)/(s.kg)", "m/kg", 1}, {1, "/m", "m-1", 1}, {1, "10*-3.[iU]/L", "m[IU]/L", 1}, {1, "10^3/uL", "10*9/L", 1}, {1, "m+2", "m2", 1}, {1, "Mibit", "bit", 1048576},
	} {
		got, err := ucum.Convert(c.value, c.from, c.to)
		require.NoError(t, err, "%s to %s", c.from, c.to)
		require.InEpsilon(t, c.want, got, 1e-12, "%s to %s", c.from, c.to)
	}
	for _, c := range [][2]string{
		{"m", "s"}, {"[iU]", "U"}, {"[iU]", "1"}, {"kU/L", "k[IU]/L"}, {"[arb'U]", "[USP'U]"}, {"S", "s"}, {"Cel/m", "K/m"}, {"Cel2", "K2"}, {"g", "L"}, {"xx", "m"}, {"m", "xx"}, {"[pH]", "m"},
	} {
		_, err := ucum.Convert(1, c[0], c[1])
		require.ErrorIs(t, err, healthlab.Invalid, "%s to %s", c[0], c[1])
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
		_, err := ucum.Convert(v, "Ym", "ym")
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	_, err := ucum.Convert(-1, "1", "B")
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestCheck_acceptsAndRefusesCodes(t *testing.T) {
	for _, code := range []string{
		"1", "10", "10*", "10^", "10*3", "10*-3", "10*+3", "/m", "m-1", "m+1", "{annotation}", "{}", "m{a}", "m2{a}", "100{WBCs}", "/100{WBCs}", "(8.h){shift}", "{a}/{b}", "1/{a}", "mg/dL", "mL/{hb}.m2",
		"kcal/(8.h)", "((((m))))", "m.s-1.kg2", "[in_i'H2O]", "B[10.nV]", "[m/s2/Hz^(1/2)]", "%[slope]", "10*3{RBCs}", "[D'ag'U]/mL", "4.[pt_us]/m.s", "g/(24.h)", "m0", "''", "'", "[CCID_50]", "nm/s/L", "Kibit",
	} {
		u, err := ucum.FromCode(code)
		require.NoError(t, err, code)
		require.Equal(t, code, u.UCUM)
	}
	for _, code := range []string{
		"", " ", "/", "//m", "m//s", "m/", "m.", ".m", "m..s", "m/.s", "(m", "m)", "()", "(m)2", "2m", "m s", "m ", " m", "m{", "m}", "{a{b}}", "{a b}", "{ä}", "µm", "m²", "m--1", "m+-1", "m^2", "10*-", "0", "0.m",
		"kmin", "k%", "kk", "kkg", "mmm2x", "MM[HG]", "[HG]", "m[hg]", "[in_i", "in_i]", "mg/dl{", "1.5e3", "-1", "+1", "m100", "kg/xyz", "5mg", "KG", "sec", "hr", "mcg", "IU", "cc", "{a}m", "m{a}{b}",
		strings.Repeat("m.", 200) + "m", strings.Repeat("[pi]99.", 6) + "m",
	} {
		err := ucum.Check(code)
		require.ErrorIs(t, err, healthlab.Invalid, code)
		if len(code) > 3 {
			require.NotContains(t, err.Error(), code)
		}
	}
}

// The case-insensitive form is read by its own codes.
func TestFromInsensitiveCode_readsTheCaseInsensitiveForm(t *testing.T) {
	for in, want := range map[string]string{
		"MM[HG]": "mm[Hg]", "mm[hg]": "mm[Hg]", "MG/DL": "mg/dl", "KG": "kg", "MAHZ": "MHz", "S": "s", "SIE": "S", "PAL": "Pa", "UG/ML": "ug/ml", "CEL": "Cel", "[DEGF]": "[degF]", "[DEGRE]": "[degRe]", "10*3/UL": "10*3/ul",
		"{Hb}/L": "{Hb}/l", "TNE": "t", "M[IU]/L": "m[iU]/l", "G.M/S2": "g.m/s2", "DAM": "dam", "KIBBIT": "Kibit", "X": "",
	} {
		u, err := ucum.FromInsensitiveCode(in)
		if want == "" {
			require.ErrorIs(t, err, healthlab.Invalid, in)
			continue
		}
		require.NoError(t, err, in)
		require.Equal(t, want, u.UCUM, in)
	}
	_, atoms := readEssence(t)
	for _, a := range atoms {
		for _, code := range []string{strings.ToUpper(a.Upper), strings.ToLower(a.Upper)} {
			u, err := ucum.FromInsensitiveCode(code)
			require.NoError(t, err, code)
			require.True(t, ucum.Same(a.Code, u.UCUM), "%s is %s and not %s", code, u.UCUM, a.Code)
		}
	}
}

// grammar writes random expressions of the grammar of UCUM, and what they are in base units.
type grammar struct {
	*rand.Rand
	table essence
	atoms []essenceUnit
}

func (g grammar) unit() string {
	a := g.atoms[g.IntN(len(g.atoms))]
	if a.Metric == "yes" && g.IntN(2) == 0 {
		return g.table.Prefixes[g.IntN(len(g.table.Prefixes))].Code + a.Code
	}
	return a.Code
}

func (g grammar) annotation() string {
	var b strings.Builder
	for range g.IntN(8) {
		if c := byte('!' + g.IntN('~'-'!'+1)); c != '{' && c != '}' {
			b.WriteByte(c)
		}
	}
	return "{" + b.String() + "}"
}

func (g grammar) component(depth int) string {
	switch g.IntN(8) {
	case 0:
		return strconv.Itoa(1 + g.IntN(200))
	case 1:
		return g.annotation()
	case 2:
		if depth > 0 {
			return "(" + g.term(depth-1) + ")"
		}
	}
	s := g.unit()
	if g.IntN(3) == 0 {
		s += []string{"", "+", "-"}[g.IntN(3)] + strconv.Itoa(g.IntN(5))
	}
	if g.IntN(4) == 0 {
		s += g.annotation()
	}
	return s
}

func (g grammar) term(depth int) string {
	s := g.component(depth)
	for g.IntN(2) == 0 {
		s += []string{".", "/"}[g.IntN(2)] + g.component(depth)
	}
	return s
}

func (g grammar) code() string {
	for {
		s := g.term(2)
		if g.IntN(6) == 0 {
			s = "/" + s
		}
		if len(s) <= 200 {
			return s
		}
	}
}

// Every expression of the grammar is read; one with a part that the grammar does not have is refused.
func TestCheck_readsRandomExpressionsAndRefusesBrokenOnes(t *testing.T) {
	table, atoms := readEssence(t)
	g := grammar{rand.New(rand.NewPCG(1, 2)), table, atoms}
	breaks := []func(string) string{
		func(s string) string { return s + "/" },
		func(s string) string { return s + "." },
		func(s string) string { return "." + s },
		func(s string) string { return "//" + s },
		func(s string) string { return "(" + s },
		func(s string) string { return s + ")" },
		func(s string) string { return s + "{" },
		func(s string) string { return s + "}" },
		func(s string) string { return s + " " },
		func(s string) string { return " " + s },
		func(s string) string { return s + ".{ä}" },
		func(s string) string { return s + ".xyz" },
		func(s string) string { return s + "/kmin" },
		func(s string) string { return s + ".m--2" },
		func(s string) string { return s + ".()" },
		func(s string) string { return s + "µ" },
		func(s string) string { return s + "./m" },
	}
	for range 20_000 {
		code := g.code()
		require.NoError(t, ucum.Check(code), code)
		broken := breaks[g.IntN(len(breaks))](code)
		require.ErrorIs(t, ucum.Check(broken), healthlab.Invalid, broken)
		u, err := ucum.FromCode(code)
		require.NoError(t, err)
		require.True(t, ucum.Same(code, code), code)
		if f, ok := u.Factor(u); ok {
			require.Equal(t, 1.0, f)
		}
	}
}

// There and back is the value, for units of one dimension.
func TestConvert_roundTripReturnsTheValue(t *testing.T) {
	table, atoms := readEssence(t)
	g := grammar{rand.New(rand.NewPCG(3, 4)), table, atoms}
	pairs := 0
	for _, a := range atoms {
		for _, b := range atoms {
			v := 0.5 + g.Float64()
			got, err := ucum.Convert(v, a.Code, b.Code)
			if err != nil {
				continue
			}
			pairs++
			back, err := ucum.Convert(got, b.Code, a.Code)
			if err != nil || got == 0 {
				continue // beyond what a scale can express
			}
			// An offset takes digits from a small amount.
			require.InDelta(t, v, back, 1e-6, "%s to %s", a.Code, b.Code)
		}
	}
	require.Greater(t, pairs, 1000)
}

func FuzzCode(f *testing.F) {
	for _, s := range []string{"mg/dL", "10*3/uL", "mL/min/{1.73_m2}", "[arb'U]/mL", "((g)/L)", "m-3.s2", "B[10.nV]", "[m/s2/Hz^(1/2)]", "Cel", "MM[HG]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, code string) {
		if u, err := ucum.FromInsensitiveCode(code); err == nil {
			require.NoError(t, ucum.Check(u.UCUM))
		}
		err := ucum.Check(code)
		u, ferr := ucum.FromCode(code)
		require.Equal(t, err, ferr)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		require.Equal(t, code, u.UCUM)
		require.True(t, ucum.Same(code, code))
		if got, err := ucum.Convert(1.5, code, code); err == nil {
			require.InEpsilon(t, 1.5, got, 1e-9)
		}
	})
}
