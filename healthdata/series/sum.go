package series

import "math"

// Sum is a sum of many float64 values with about twice the digits of one: Hi is the nearest float64, Lo the
// rest. Values that are short decimals are added as integers, other values with the rounding error of each
// addition. So it does not matter in which parts a series was added: the results differ, if at all, in the last
// bit of Hi (where the same samples are decimals in one piece and raw float64 in another).
//
// A sum that overflows is an infinity or NaN in Hi.
type Sum struct {
	Hi, Lo float64
}

// Float64 returns the sum as one number.
func (s Sum) Float64() float64 { return s.Hi }

// Plus returns s + o.
func (s Sum) Plus(o Sum) Sum {
	h, e := twoSum(s.Hi, o.Hi)
	if h-h != 0 {
		return Sum{h, 0}
	}
	if s.Lo == 0 && o.Lo == 0 {
		return Sum{h, e}
	}
	t, f := twoSum(s.Lo, o.Lo)
	h, e = quickTwoSum(h, e+t)
	h, e = quickTwoSum(h, e+f)
	return Sum{h, e}
}

// over returns s / p for a positive p.
func (s Sum) over(p float64) Sum {
	q := s.Hi / p
	if q-q != 0 {
		return Sum{q, 0}
	}
	rest := math.FMA(-q, p, s.Hi) + s.Lo
	h, e := quickTwoSum(q, rest/p)
	return Sum{h, e}
}

func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	v := sum - a
	return sum, (a - (sum - v)) + (b - v) // the rounding error (Knuth)
}

func quickTwoSum(a, b float64) (sum, lost float64) {
	sum = a + b // requires |a| >= |b| (Dekker)
	return sum, b - (sum - a)
}

func sumOfProduct(a, b float64) Sum {
	p := a * b
	return Sum{p, math.FMA(a, b, -p)}
}

func sumOfUint(x uint64) Sum {
	h, e := twoSum(float64(x>>32)*(1<<32), float64(x&math.MaxUint32))
	return Sum{h, e}
}

// sumOfInt returns x exactly.
func sumOfInt(x int64) Sum {
	if x > -1<<53 && x < 1<<53 {
		return Sum{float64(x), 0}
	}
	h, e := twoSum(float64(x>>32)*(1<<32), float64(x&math.MaxUint32))
	return Sum{h, e}
}
