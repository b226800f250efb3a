package ucum_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// amount is what an expression is by the table alone: the logarithm of its factor to base 10, and the
// exponents of base units and arbitrary units by their codes.
type amount struct {
	log  float64
	dims map[string]int
}

func (a *amount) multiply(b amount, n int) {
	a.log += float64(n) * b.log
	for code, e := range b.dims {
		if a.dims[code] += n * e; a.dims[code] == 0 {
			delete(a.dims, code)
		}
	}
}

// code writes the base units of an amount.
func (a amount) code() string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(a.dims)) {
		parts = append(parts, code+strconv.Itoa(a.dims[code]))
	}
	if len(parts) == 0 {
		return "1"
	}
	return strings.Join(parts, ".")
}

// reference computes amounts from the table. It shares no code with the package.
type reference struct {
	atoms    map[string]essenceUnit
	prefixes map[string]essenceUnit
	known    map[string]amount
}

func newReference(t testing.TB) *reference {
	table, atoms := readEssence(t)
	r := &reference{map[string]essenceUnit{}, map[string]essenceUnit{}, map[string]amount{}}
	for _, b := range table.Bases {
		r.known[b.Code] = amount{0, map[string]int{b.Code: 1}}
	}
	for _, a := range atoms {
		r.atoms[a.Code] = a
	}
	for _, p := range table.Prefixes {
		r.prefixes[p.Code] = p
	}
	return r
}

func logOf(t testing.TB, number string) float64 {
	f, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err)
	return math.Log10(f)
}

// atom returns what an atom is by its definition. It is none of a special unit.
func (r *reference) atom(t testing.TB, code string) amount {
	if a, ok := r.known[code]; ok {
		return a
	}
	row := r.atoms[code]
	require.NotEmpty(t, row.Value.Unit, code)
	out := r.definition(t, row.Value.Unit)
	out.log += logOf(t, row.Value.Number)
	if row.Arbitrary == "yes" && !slices.ContainsFunc(slices.Collect(maps.Keys(out.dims)), func(c string) bool { return r.atoms[c].Arbitrary == "yes" }) {
		out.dims[code]++
	}
	r.known[code] = out
	return out
}

// definition reads the unit of a definition: units and numbers, with points and slashes between them.
func (r *reference) definition(t testing.TB, text string) amount {
	out, sign, brackets, part := amount{0, map[string]int{}}, 1, 0, ""
	flush := func() {
		if part == "" {
			return
		}
		symbol := strings.TrimRight(part, "0123456789")
		n, err := strconv.Atoi(part[len(symbol):])
		switch {
		case symbol == "":
			out.log += float64(sign) * logOf(t, part)
			part = ""
			return
		case err != nil:
			n = 1
		case strings.HasSuffix(symbol, "-"):
			n = -n
		}
		symbol = strings.TrimRight(symbol, "+-")
		if _, ok := r.atoms[symbol]; ok {
			out.multiply(r.atom(t, symbol), sign*n)
			part = ""
			return
		}
		for p, row := range r.prefixes {
			if a, ok := r.atoms[strings.TrimPrefix(symbol, p)]; ok && strings.HasPrefix(symbol, p) && a.Metric == "yes" {
				scaled := r.atom(t, a.Code)
				out.multiply(amount{scaled.log + logOf(t, row.Value.Number), scaled.dims}, sign*n)
				part = ""
				return
			}
		}
		require.Fail(t, "a definition is not read", text)
	}
	for _, c := range text {
		switch {
		case c == '[':
			brackets++
		case c == ']':
			brackets--
		case brackets == 0 && (c == '.' || c == '/'):
			flush()
			sign = 1
			if c == '/' {
				sign = -1
			}
			continue
		}
		part += string(c)
	}
	flush()
	return out
}

// Every unit that is on no scale is the amount of base units that its definition says, alone and with every
// prefix, in both forms of the code.
func TestConvert_everyUnitEqualsItsDefinition(t *testing.T) {
	r := newReference(t)
	checked := 0
	check := func(code, upper string, want amount) {
		got, err := ucum.Convert(1, code, want.code())
		require.NoError(t, err, "%s to %s", code, want.code())
		require.InDelta(t, want.log, math.Log10(got), 1e-9, code)
		u, err := ucum.FromInsensitiveCode(upper)
		require.NoError(t, err, upper)
		require.True(t, ucum.Same(code, u.UCUM), "%s is %s and not %s", upper, u.UCUM, code)
		checked++
	}
	for code, row := range r.atoms {
		if row.Special == "yes" {
			continue
		}
		a := r.atom(t, code)
		check(code, strings.ToUpper(row.Upper), a)
		for p, prefix := range r.prefixes {
			if _, own := r.atoms[p+code]; row.Metric == "yes" && !own {
				check(p+code, strings.ToUpper(prefix.Upper+row.Upper), amount{a.log + logOf(t, prefix.Value.Number), a.dims})
			}
		}
	}
	t.Logf("%d units", checked)
	require.Greater(t, checked, 2000)
}

// A unit on a scale converts to every unit of the amount under the scale, with every prefix, there and
// back; alone it is a unit, in a product it is none that converts.
func TestConvert_specialUnitsConvertAloneAndNotInProducts(t *testing.T) {
	under := map[string]string{
		"Cel": "K", "[degF]": "K", "[degRe]": "K", "[p'diop]": "rad", "%[slope]": "deg", "[hp'_X]": "1", "[hp'_C]": "1", "[hp'_M]": "1", "[hp'_Q]": "1", "[pH]": "mol/L", "Np": "1", "B": "1",
		"B[SPL]": "Pa", "B[V]": "V", "B[mV]": "V", "B[uV]": "V", "B[10.nV]": "V", "B[W]": "W", "B[kW]": "W", "bit_s": "1", "[m/s2/Hz^(1/2)]": "m2/s4/Hz",
	}
	table, atoms := readEssence(t)
	for _, a := range atoms {
		if a.Special != "yes" {
			continue
		}
		proper, ok := under[a.Code]
		require.True(t, ok, a.Code)
		codes := []string{a.Code}
		for _, p := range table.Prefixes {
			if a.Metric == "yes" {
				codes = append(codes, p.Code+a.Code)
			}
		}
		read := 0
		for _, code := range codes {
			v, err := ucum.Convert(0.125, code, a.Code)
			require.NoError(t, err, code)
			got, err := ucum.Convert(0.125, code, proper)
			if err != nil || got == 0 {
				require.NotEqual(t, a.Code, code) // a yottabel is more than a number can express
				continue
			}
			back, err := ucum.Convert(got, proper, a.Code)
			require.NoError(t, err, code)
			require.InDelta(t, v, back, 1e-9*max(1, math.Abs(v)), code)
			read++
		}
		require.Positive(t, read, a.Code)
		for _, product := range []string{a.Code + "/m", a.Code + "2", "m." + a.Code, a.Code + "." + a.Code} {
			require.NoError(t, ucum.Check(product), product)
			_, err := ucum.Convert(1, product, product)
			require.ErrorIs(t, err, healthlab.Invalid, product)
		}
	}
}

// An arbitrary unit is compared with itself alone.
func TestConvert_refusesArbitraryUnits(t *testing.T) {
	r := newReference(t)
	for a, row := range r.atoms {
		if row.Arbitrary != "yes" {
			continue
		}
		for b := range r.atoms {
			_, err := ucum.Convert(1, a, b)
			same := row.Special != "yes" && r.atoms[b].Special != "yes" && maps.Equal(r.atom(t, a).dims, r.atom(t, b).dims)
			require.Equal(t, a == b || same, err == nil, "%s to %s", a, b)
		}
	}
}

// expressions writes random expressions in both forms, with what they are.
type expressions struct {
	*rand.Rand
	*reference
	codes []string
	t     testing.TB
}

func (g expressions) component(depth int) (code, upper string, out amount) {
	switch k := g.IntN(10); {
	case k == 0:
		n := strconv.Itoa(1 + g.IntN(500))
		return n, n, amount{logOf(g.t, n), map[string]int{}}
	case k == 1:
		return "{Any}", "{Any}", amount{0, map[string]int{}}
	case k < 4 && depth > 0:
		code, upper, out = g.term(depth - 1)
		return "(" + code + ")", "(" + upper + ")", out
	}
	code = g.codes[g.IntN(len(g.codes))]
	row := g.atoms[code]
	upper, a := row.Upper, g.atom(g.t, code)
	out = amount{a.log, maps.Clone(a.dims)}
	if row.Metric == "yes" && g.IntN(2) == 0 {
		for p, prefix := range g.prefixes { // a random one
			if _, own := g.atoms[p+code]; !own {
				code, upper, out.log = p+code, prefix.Upper+upper, out.log+logOf(g.t, prefix.Value.Number)
			}
			break
		}
	}
	if g.IntN(3) == 0 {
		n := 1 + g.IntN(3)
		sign := []string{"", "+", "-"}[g.IntN(3)]
		code, upper = code+sign+strconv.Itoa(n), upper+sign+strconv.Itoa(n)
		if sign == "-" {
			n = -n
		}
		powered := amount{0, map[string]int{}}
		powered.multiply(out, n)
		out = powered
	}
	if g.IntN(5) == 0 {
		code, upper = code+"{note}", upper+"{note}"
	}
	return code, upper, out
}

func (g expressions) term(depth int) (code, upper string, out amount) {
	out = amount{0, map[string]int{}}
	sign := 1
	for {
		c, u, a := g.component(depth)
		code, upper = code+c, upper+u
		out.multiply(a, sign)
		if g.IntN(2) == 0 {
			return code, upper, out
		}
		by := []string{".", "/"}[g.IntN(2)]
		code, upper, sign = code+by, upper+by, map[string]int{".": 1, "/": -1}[by]
	}
}

// A random expression is the amount that its parts are by their definitions, in both forms.
func TestConvert_randomExpressionEqualsItsParts(t *testing.T) {
	g := expressions{rand.New(rand.NewPCG(5, 6)), newReference(t), nil, t}
	for _, code := range slices.Sorted(maps.Keys(g.atoms)) {
		if g.atoms[code].Special != "yes" {
			g.codes = append(g.codes, code)
		}
	}
	for range 5000 {
		code, upper, want := g.term(2)
		if g.IntN(6) == 0 {
			inverse := amount{0, map[string]int{}}
			// A slash at the start divides the first component alone.
			first, firstUpper, a := g.component(1)
			inverse.multiply(a, -1)
			inverse.multiply(want, 1)
			code, upper, want = "/"+first+"."+code, "/"+firstUpper+"."+upper, inverse
		}
		if len(code) > 200 || math.Abs(want.log) > 250 {
			continue
		}
		got, err := ucum.Convert(1, code, want.code())
		require.NoError(t, err, "%s to %s", code, want.code())
		require.InDelta(t, want.log, math.Log10(got), 1e-8, code)
		u, err := ucum.FromInsensitiveCode(strings.ToUpper(upper))
		require.NoError(t, err, upper)
		got, err = ucum.Convert(1, u.UCUM, code)
		require.NoError(t, err, "%s is %s", upper, u.UCUM)
		require.InDelta(t, 1, got, 1e-9, "%s is %s", upper, u.UCUM)
	}
}
