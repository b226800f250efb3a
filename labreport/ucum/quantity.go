package ucum

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport/internal/fold"
)

// Dimensions of the units that laboratories use.
const (
	dimMass = iota
	dimLength
	dimTime
	dimAmount
	dimensions
)

// quantity is a UCUM expression in grams, metres, seconds and moles.
type quantity struct {
	factor float64
	dims   [dimensions]int8
	// of holds what has no dimension and still tells units apart, sorted: arbitrary units
	// and annotations. UCUM compares no arbitrary unit with another one.
	of []string
}

// atom is a unit without a prefix.
type atom struct {
	quantity
	metric bool // may have a prefix
}

func base(factor float64, dims ...int8) atom {
	q := quantity{factor: factor}
	copy(q.dims[:], dims)
	return atom{q, true}
}

func fixed(a atom) atom { a.metric = false; return a }

func arbitrary(name string, metric bool) atom {
	return atom{quantity{factor: 1, of: []string{name}}, metric}
}

// atoms are the units of UCUM that laboratories use. Source: the UCUM specification,
// section 4 (tables of units).
var atoms = map[string]atom{
	"g": base(1, 1), "m": base(1, 0, 1), "s": base(1, 0, 0, 1), "mol": base(1, 0, 0, 0, 1), "eq": base(1, 0, 0, 0, 1),
	"L": base(1e-3, 0, 3), "l": base(1e-3, 0, 3), "kat": base(1, 0, 0, -1, 1), "U": base(1e-6/60, 0, 0, -1, 1),
	"Pa": base(1e3, 1, -1, -2), "m[Hg]": base(133.322e6, 1, -1, -2), "bar": base(1e8, 1, -1, -2), "J": base(1e3, 1, 2, -2), "cal": base(4184, 1, 2, -2),
	"min": fixed(base(60, 0, 0, 1)), "h": fixed(base(3600, 0, 0, 1)), "d": fixed(base(86400, 0, 0, 1)), "wk": fixed(base(604800, 0, 0, 1)),
	"%": fixed(base(1e-2)), "[ppth]": fixed(base(1e-3)), "[ppm]": fixed(base(1e-6)),
	"osm":  {quantity{factor: 1, dims: [dimensions]int8{dimAmount: 1}, of: []string{"osm"}}, true},
	"[IU]": arbitrary("[IU]", true), "[iU]": arbitrary("[IU]", true), "[arb'U]": arbitrary("[arb'U]", false), "[CFU]": arbitrary("[CFU]", true),
	"[GPL'U]": arbitrary("[GPL'U]", false), "[MPL'U]": arbitrary("[MPL'U]", false), "[APL'U]": arbitrary("[APL'U]", false), "[EU]": arbitrary("[EU]", false),
	"[HPF]": arbitrary("[HPF]", false), "[LPF]": arbitrary("[LPF]", false), "[pH]": arbitrary("[pH]", false), "[U]": arbitrary("[U]", true),
	"[copies]": arbitrary("[copies]", false),
}

var ucumPrefixes = []struct {
	text   string
	factor float64
}{{"da", 1e1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"h", 1e2}, {"d", 1e-1}, {"c", 1e-2}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}, {"f", 1e-15}, {"a", 1e-18}}

// countWords are annotations of numbers of cells, which do not tell units apart.
var countWords = fold.Set("cells cell count # rbcs events")

// parseCode reads a case-sensitive UCUM expression.
func parseCode(code string) (quantity, bool) {
	if code == "" || len(code) > 60 {
		return quantity{}, false
	}
	p := ucumParser{rest: code}
	q, ok := p.term(0)
	slices.Sort(q.of)
	return q, ok && p.rest == ""
}

type ucumParser struct{ rest string }

// term reads components joined by points and slashes.
func (p *ucumParser) term(depth int) (quantity, bool) {
	q := quantity{factor: 1}
	sign := int8(1)
	if strings.HasPrefix(p.rest, "/") {
		p.rest, sign = p.rest[1:], -1
	}
	for depth < 4 {
		c, ok := p.component(depth)
		if !ok {
			return q, false
		}
		q = q.times(c, sign)
		switch {
		case strings.HasPrefix(p.rest, "."):
			sign = 1
		case strings.HasPrefix(p.rest, "/"):
			sign = -1
		default:
			return q, true
		}
		p.rest = p.rest[1:]
	}
	return q, false
}

// component reads a number, a unit with its exponent and annotation, or a term in
// parentheses.
func (p *ucumParser) component(depth int) (quantity, bool) {
	if strings.HasPrefix(p.rest, "(") {
		p.rest = p.rest[1:]
		q, ok := p.term(depth + 1)
		if !ok || !strings.HasPrefix(p.rest, ")") {
			return q, false
		}
		p.rest = p.rest[1:]
		return q, true
	}
	end, brackets := 0, 0
	for end < len(p.rest) {
		c := p.rest[end]
		if c == '[' {
			brackets++
		} else if c == ']' {
			brackets--
		} else if brackets == 0 && strings.IndexByte("./(){", c) >= 0 {
			break
		}
		end++
	}
	text := p.rest[:end]
	p.rest = p.rest[end:]
	q := quantity{factor: 1}
	ok := true
	if text != "" {
		q, ok = unitWithExponent(text)
	}
	if strings.HasPrefix(p.rest, "{") {
		i := strings.IndexByte(p.rest, '}')
		if i < 0 {
			return q, false
		}
		if note := strings.ToLower(p.rest[1:i]); !countWords[note] {
			q.of = append(slices.Clone(q.of), p.rest[:i+1])
		}
		p.rest = p.rest[i+1:]
		return q, ok
	}
	return q, ok && text != ""
}

// unitWithExponent reads "m2", "10*3", "10*-3" or a number.
func unitWithExponent(text string) (quantity, bool) {
	for _, ten := range []string{"10*", "10^"} {
		if exp, ok := strings.CutPrefix(text, ten); ok {
			n, err := strconv.Atoi(exp)
			return quantity{factor: math.Pow(10, float64(n))}, err == nil && n > -30 && n < 30
		}
	}
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return quantity{factor: float64(n)}, n > 0
	}
	exponent := int8(1)
	if i := strings.LastIndexFunc(text, func(r rune) bool { return !fold.IsDigit(r) && r != '-' && r != '+' }); i >= 0 && i+1 < len(text) {
		n, err := strconv.ParseInt(text[i+1:], 10, 8)
		if err != nil || n == 0 || n < -6 || n > 6 {
			return quantity{}, false
		}
		text, exponent = text[:i+1], int8(n)
	}
	if a, ok := atoms[text]; ok {
		return quantity{factor: 1}.times(a.quantity, exponent), true
	}
	for _, prefix := range ucumPrefixes {
		if rest, ok := strings.CutPrefix(text, prefix.text); ok {
			if a, ok := atoms[rest]; ok && a.metric {
				a.factor *= prefix.factor
				return quantity{factor: 1}.times(a.quantity, exponent), true
			}
		}
	}
	return quantity{}, false
}

// times multiplies q by a power of r.
func (q quantity) times(r quantity, power int8) quantity {
	q.factor *= math.Pow(r.factor, float64(power))
	for i := range q.dims {
		q.dims[i] += power * r.dims[i]
	}
	side := ""
	if power < 0 {
		side = "/"
	}
	q.of = slices.Clone(q.of)
	for _, name := range r.of {
		q.of = append(q.of, side+name)
	}
	return q
}

// commensurable reports whether the two measure the same.
func (q quantity) commensurable(r quantity) bool {
	return q.dims == r.dims && slices.Equal(q.of, r.of)
}

// equal reports whether the two are the same amount of the same.
func (q quantity) equal(r quantity) bool {
	return q.commensurable(r) && math.Abs(q.factor/r.factor-1) < 1e-6
}

// Factor returns how many of v one of u is: 1 g/L is 100 mg/dL. It is false if the two do
// not measure the same. A mass is no amount of substance: that conversion needs the
// analyte.
func (u Unit) Factor(v Unit) (float64, bool) {
	a, ok1 := parseCode(u.UCUM)
	b, ok2 := parseCode(v.UCUM)
	if !ok1 || !ok2 || !a.commensurable(b) {
		return 0, false
	}
	return a.factor / b.factor, true
}

// kindOf says what a quantity measures, as a LOINC property.
func (q quantity) kindOf() string {
	has := func(name string) bool { return slices.Contains(q.of, name) }
	d := q.dims
	volume := func(top [dimensions]int8) bool { top[dimLength] -= 3; return d == top }
	switch {
	case has("/[HPF]"), has("/[LPF]"):
		return "field"
	case has("osm"):
		return "osmolality"
	case has("/{creat}"):
		return "massratio"
	case d == [dimensions]int8{} && q.factor == 0.01:
		return "fraction"
	case d == [dimensions]int8{} && len(q.of) > 0 && strings.HasPrefix(q.of[0], "{") && !has("{copies}"):
		return "ratio"
	case len(q.of) > 0 && strings.HasPrefix(q.of[0], "["), has("{copies}"), has("{EU}"):
		if d == ([dimensions]int8{}) || volume([dimensions]int8{}) {
			return "arbitrary"
		}
	case volume([dimensions]int8{dimMass: 1}):
		return "mass"
	case volume([dimensions]int8{dimAmount: 1}):
		return "substance"
	case volume([dimensions]int8{dimAmount: 1, dimTime: -1}):
		return "catalytic"
	case volume([dimensions]int8{}) && len(q.of) == 0:
		return "number"
	case d == [dimensions]int8{dimMass: 1, dimTime: -1}, d == [dimensions]int8{dimAmount: 1, dimTime: -1} && q.factor < 1e-6:
		return "perday"
	case d == [dimensions]int8{dimLength: 3, dimTime: -1}:
		return "rate"
	case d == [dimensions]int8{dimMass: 1}:
		return "entmass"
	case d == [dimensions]int8{dimTime: 1}:
		return "time"
	case d == [dimensions]int8{dimLength: 1, dimTime: -1}:
		return "velocity"
	case d == [dimensions]int8{dimMass: 1, dimLength: -1, dimTime: -2}:
		return "pressure"
	case d[dimMass]+d[dimAmount] == 0 && d[dimLength] == 0 && d[dimTime] == 0, d == [dimensions]int8{dimAmount: 1, dimMass: -1}:
		return "massratio"
	}
	return "other"
}

// Same reports whether two UCUM codes are the same amount of the same thing.
func Same(a, b string) bool {
	a, b = canonUnit(a), canonUnit(b)
	if a == b {
		return true
	}
	p, ok1 := parseCode(a)
	q, ok2 := parseCode(b)
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
