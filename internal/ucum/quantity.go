package ucum

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// dimensions is the number of base units in the UCUM table.
const dimensions = 7

// The base units of UCUM, in the order of its table, and the mole. UCUM defines the mole as a number. This package
// makes it a base unit, so that an amount of substance is not compared with a number of cells.
const (
	dimLength = iota
	dimTime
	dimMass
	_ // angle
	_ // temperature
	_ // charge
	_ // luminous intensity
	dimAmount
	exponents
)

// avogadro is the number of particles in a mole.
var avogadro = rational("6.02214076e23")

// quantity is a UCUM expression converted to base units.
type quantity struct {
	factor *big.Rat // of the base units, the mole among them; never nil, zero or negative
	dims   [exponents]int
	// of maps the names of dimensionless units that must not be mixed to their exponents: arbitrary units,
	// annotations, and laboratory units that UCUM defines as numbers.
	of map[string]int
	// scale is the special unit (such as Cel) of the expression; nil if there is none.
	scale *special
	// mixed is true if a special unit is part of a product, which has no meaning in UCUM.
	mixed bool
}

func number(r *big.Rat) quantity { return quantity{factor: r} }

func one() quantity { return number(big.NewRat(1, 1)) }

// rational parses a number of the UCUM table, and panics if it is none.
func rational(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("ucum: not a number in the table: " + s)
	}
	return r
}

// power returns r to the power of n. r is not zero.
func power(r *big.Rat, n int) *big.Rat {
	num, den := r.Num(), r.Denom()
	if n < 0 {
		num, den, n = den, num, -n
	}
	e := big.NewInt(int64(n))
	return new(big.Rat).SetFrac(new(big.Int).Exp(num, e, nil), new(big.Int).Exp(den, e, nil))
}

// times returns q multiplied by r to the power of n.
func (q quantity) times(r quantity, n int) quantity {
	out := quantity{factor: new(big.Rat).Mul(q.factor, power(r.factor, n)), dims: q.dims, of: maps.Clone(q.of), mixed: q.mixed || r.mixed}
	for i := range r.dims {
		out.dims[i] += n * r.dims[i]
	}
	for name, e := range r.of {
		out.add(name, n*e)
	}
	switch {
	case q.scale == nil && r.scale == nil:
	case r.scale == nil && r.isNumber():
		out.scale = q.scale
	case q.scale == nil && q.isNumber() && n == 1:
		out.scale = r.scale
	default:
		out.mixed = true
	}
	return out
}

func (q *quantity) add(name string, exponent int) {
	if q.of == nil {
		q.of = map[string]int{}
	}
	if q.of[name] += exponent; q.of[name] == 0 {
		delete(q.of, name)
	}
}

func (q quantity) isNumber() bool {
	return q.dims == [exponents]int{} && len(q.arbitrary()) == 0 && q.scale == nil && !q.mixed
}

// arbitrary returns those of q's named units that UCUM converts to no other unit, with their exponents.
func (q quantity) arbitrary() map[string]int {
	out := map[string]int{}
	for name, e := range q.of {
		if name[0] != '{' && !apart[name] {
			out[name] = e
		}
	}
	return out
}

func (q quantity) commensurable(r quantity) bool {
	return q.dims == r.dims && maps.Equal(q.of, r.of) && q.scale == nil && r.scale == nil && !q.mixed && !r.mixed
}

func (q quantity) equal(r quantity) bool {
	if q.scale != nil && r.scale != nil && !q.mixed && !r.mixed {
		return q.scale == r.scale && q.factor.Cmp(r.factor) == 0
	}
	return q.commensurable(r) && q.factor.Cmp(r.factor) == 0
}

func (q quantity) ratio(r quantity) float64 {
	f, _ := new(big.Rat).Quo(q.factor, r.factor).Float64()
	return f
}

func (q quantity) hasUnit(name string) bool {
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		return q.of[rest] < 0
	}
	return q.of[name] > 0
}

// names returns the sorted names of q's dimensionless units (see of); a slash before a name means a negative
// exponent.
func (q quantity) names() []string {
	var out []string
	for name, e := range q.of {
		if e < 0 {
			name = "/" + name
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// countWords are annotations of counts of cells. Units with them equal the units without.
var countWords = fold.Set("cells cell count # rbcs events")

// Factor returns the number of v in one u: for g/L and mg/dL, 100. It returns false if a laboratory does not treat
// u and v as the same quantity: mass and amount of substance (the conversion needs the analyte), amount of
// substance and number, enzyme unit and international unit, or different annotations such as {FEU} and {DDU}.
// Unlike Factor, [Convert] follows the rules of UCUM alone.
func (u Unit) Factor(v Unit) (float64, bool) {
	a, ok1 := parseCode(u.UCUM)
	b, ok2 := parseCode(v.UCUM)
	if !ok1 || !ok2 || !a.commensurable(b) {
		return 0, false
	}
	return a.ratio(b), true
}

func dims(mass, length, time, amount int) (out [exponents]int) {
	out[dimMass], out[dimLength], out[dimTime], out[dimAmount] = mass, length, time, amount
	return out
}

// kindOf returns the LOINC property (what kind of thing is measured, such as "mass") of a quantity.
func (q quantity) kindOf() string {
	first := ""
	if names := q.names(); len(names) > 0 {
		first = names[0]
	}
	d := q.dims
	switch {
	case q.scale != nil || q.mixed:
		return "other"
	case q.hasUnit("/[HPF]"), q.hasUnit("/[LPF]"):
		return "field"
	case q.hasUnit("osm"):
		return "osmolality"
	case q.hasUnit("/{creat}"):
		return "massratio"
	case d == dims(0, 0, 0, 0) && q.factor.Cmp(hundredth) == 0:
		return "fraction"
	case d == dims(0, 0, 0, 0) && strings.HasPrefix(first, "{") && !q.hasUnit("{copies}"):
		return "ratio"
	case strings.HasPrefix(first, "["), q.hasUnit("{copies}"), q.hasUnit("{EU}"):
		if d == dims(0, 0, 0, 0) || d == dims(0, -3, 0, 0) {
			return "arbitrary"
		}
	case d == dims(1, -3, 0, 0):
		return "mass"
	case d == dims(0, -3, 0, 1):
		return "substance"
	case d == dims(0, -3, -1, 1):
		return "catalytic"
	case d == dims(0, -3, 0, 0) && first == "":
		return "number"
	case d == dims(1, 0, -1, 0), d == dims(0, 0, -1, 1) && q.factor.Cmp(millionth) < 0:
		return "perday"
	case d == dims(0, 3, -1, 0):
		return "rate"
	case d == dims(1, 0, 0, 0):
		return "entmass"
	case d == dims(0, 0, 1, 0):
		return "time"
	case d == dims(0, 1, -1, 0):
		return "velocity"
	case d == dims(1, -1, -2, 0):
		return "pressure"
	case d == dims(d[dimMass], 0, 0, -d[dimMass]):
		return "massratio"
	}
	return "other"
}

var hundredth, millionth = big.NewRat(1, 100), big.NewRat(1, 1_000_000)

// Same reports whether the UCUM codes a and b mean the same amount of the same quantity. Different codes that
// laboratories use for one unit count as the same.
func Same(a, b string) bool {
	a, b = canonUnit(a), canonUnit(b)
	if a == b {
		return true
	}
	p, ok1 := parseCode(a)
	q, ok2 := parseCode(b)
	return ok1 && ok2 && p.equal(q)
}

// canonUnit returns one code for all codes that laboratories use for the same unit. Enzyme unit and international
// unit keep different codes.
func canonUnit(u string) string {
	switch strings.ToLower(u) {
	case "[u]/l":
		return "U/L"
	case "[u]/ml", "[arb'u]/ml", "[arb'u]":
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
