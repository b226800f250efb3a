package ucum

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"strconv"

	"github.com/healthlab-dev/healthlab"
)

// function is the scale of a special unit such as degrees Celsius. to converts a number of the underlying unit
// (kelvin) to the scale, and from converts it back.
type function struct {
	to, from func(float64) float64
	// offset is what to adds, if it only adds a constant; to and from are nil then. Nil for other functions.
	offset *big.Rat
}

// special is a unit whose numbers are a function of an amount of another unit (of): degrees Celsius, pH, decibels.
type special struct {
	function
	of quantity
}

func affine(offset string) function { return function{offset: rational(offset)} }

func logarithm(times, base float64) function {
	return function{
		to:   func(x float64) float64 { return times * math.Log(x) / math.Log(base) },
		from: func(x float64) float64 { return math.Pow(base, x/times) },
	}
}

var tangent = function{
	to: func(x float64) float64 {
		if math.Abs(x) >= math.Pi/2 {
			return math.NaN() // an angle of 90 degrees or more has no slope
		}
		return 100 * math.Tan(x)
	},
	from: func(x float64) float64 { return math.Atan(x / 100) },
}

// functions maps the function names in the UCUM table to the functions that section 3.2 of the UCUM specification
// defines.
var functions = map[string]function{
	"Cel": affine("-273.15"), "degF": affine("-459.67"), "degRe": affine("-218.52"),
	"pH": logarithm(-1, 10), "lg": logarithm(1, 10), "lgTimes2": logarithm(2, 10), "ld": logarithm(1, 2), "ln": logarithm(1, math.E),
	"hpX": logarithm(-1, 10), "hpC": logarithm(-1, 100), "hpM": logarithm(-1, 1000), "hpQ": logarithm(-1, 50_000),
	"tanTimes100": tangent, "100tan": tangent,
	"sqrt": {to: math.Sqrt, from: func(x float64) float64 { return x * x }},
}

// Convert returns a value in another unit, by the rules of UCUM: a mole is a number, an annotation has no
// meaning, and an arbitrary unit converts to itself only. The value is read as its shortest decimal form. If
// the units have a constant factor, the result is the nearest float64 to the exact one. It returns
// [healthlab.Invalid] if a unit is no UCUM code, if the units have different dimensions, or if the result is
// not finite.
func Convert(value float64, from, to string) (float64, error) {
	for _, code := range []string{from, to} {
		if err := Check(code); err != nil {
			return 0, err
		}
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%w: value: must be a finite number", healthlab.Invalid)
	}
	a, _ := parseCode(from)
	b, _ := parseCode(to)
	if a.mixed || b.mixed {
		return 0, fmt.Errorf("%w: unit: a special unit such as Cel must not be part of a product or power", healthlab.Invalid)
	}
	under, over := a.proper(), b.proper()
	if !under.isCommensurable(over) {
		return 0, fmt.Errorf("%w: unit: the two units must have the same dimension", healthlab.Invalid)
	}
	x := rational(strconv.FormatFloat(value, 'g', -1, 64))
	if a.scale != nil && a.scale == b.scale {
		x.Mul(x, a.factor).Quo(x, b.factor)
	} else if x = a.toProper(x); x != nil {
		x = b.fromProper(x.Mul(x, under.expandedFactor()).Quo(x, over.expandedFactor()))
	}
	if x == nil {
		return 0, fmt.Errorf("%w: value: must be within the range of the special unit", healthlab.Invalid)
	}
	out, _ := x.Float64()
	if math.IsInf(out, 0) {
		return 0, fmt.Errorf("%w: value: the result must be within the range of float64", healthlab.Invalid)
	}
	return out, nil
}

func (q quantity) proper() quantity {
	if q.scale != nil {
		return q.scale.of
	}
	return q
}

func (q quantity) isCommensurable(r quantity) bool {
	return [dimensions]int(q.dims[:dimensions]) == [dimensions]int(r.dims[:dimensions]) && maps.Equal(q.arbitrary(), r.arbitrary())
}

func (q quantity) expandedFactor() *big.Rat {
	return new(big.Rat).Mul(q.factor, power(avogadro, q.dims[dimAmount]))
}

// toProper converts a number of a special unit to its underlying unit; nil if the result is not finite. Numbers of
// other units stay.
func (q quantity) toProper(x *big.Rat) *big.Rat {
	if q.scale == nil {
		return x
	}
	x.Mul(x, q.factor)
	if q.scale.offset != nil {
		return x.Sub(x, q.scale.offset)
	}
	return apply(q.scale.from, x)
}

// fromProper converts a number of the underlying unit to the special unit of q: the inverse of toProper.
func (q quantity) fromProper(x *big.Rat) *big.Rat {
	if q.scale == nil {
		return x
	}
	if q.scale.offset != nil {
		x.Add(x, q.scale.offset)
	} else if x = apply(q.scale.to, x); x == nil {
		return nil
	}
	return x.Quo(x, q.factor)
}

func apply(f func(float64) float64, x *big.Rat) *big.Rat {
	n, _ := x.Float64()
	n = f(n)
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return new(big.Rat).SetFloat64(n)
}

// linear returns the conversion of values in q to r, whose dimensions must be equal. ok is false if a scale is not
// linear. If the factor or its inverse is an integer, Times or Over is exact, so that [Conversion.Of] rounds only
// once.
func (q quantity) linear(r quantity) (Conversion, bool) {
	if q.scale != nil && q.scale.offset == nil || r.scale != nil && r.scale.offset == nil {
		return Conversion{}, false
	}
	factor := new(big.Rat).Quo(q.slope(), r.slope())
	// A number x of q is x*q.factor - q.scale.offset of the unit below the scale.
	zero := new(big.Rat)
	if r.scale != nil {
		zero.Quo(r.scale.offset, r.factor) // the number of r at the zero of the unit below
		zero.Quo(zero, factor)             // the same distance in steps of q
		zero.Neg(zero)
	}
	if q.scale != nil {
		zero.Add(zero, new(big.Rat).Quo(q.scale.offset, q.factor))
	}
	c := Conversion{Times: 1, Over: 1}
	c.Minus, _ = zero.Float64()
	inverse := new(big.Rat).Inv(factor)
	_, exact := factor.FloatPrec()
	_, inverseExact := inverse.FloatPrec()
	if inverse.IsInt() && !factor.IsInt() || inverseExact && !exact {
		c.Over, _ = inverse.Float64()
	} else {
		c.Times, _ = factor.Float64()
	}
	return c, true
}

func (q quantity) slope() *big.Rat {
	if q.scale == nil {
		return q.factor
	}
	return new(big.Rat).Mul(q.factor, q.scale.of.factor)
}
