package series

import (
	"encoding/binary"
	"math"
)

// total is the aggregate of a sequence of values.
type total struct {
	sum                   Sum
	min, max, first, last float64
}

// totalOf aggregates at least one value. Its sum is exact to about twice the digits of a float64.
func totalOf(v []float64) total {
	if len(v) >= 16 {
		if t, ok := totalFast(v); ok {
			return t
		}
	}
	return totalPlain(v)
}

// totalPlain aggregates any values.
func totalPlain(v []float64) total {
	var s, lost float64
	for _, a := range v {
		var e float64
		s, e = twoSum(s, a)
		lost += e
	}
	lo, hi := extremes(v)
	return total{sumOf(s, lost), lo, hi, v[0], v[len(v)-1]}
}

// extremes compares with branches, which the processor predicts well. The built-in min and max handle NaN and
// take three times as long.
func extremes(v []float64) (lo, hi float64) {
	lo, hi = v[0], v[0]
	for _, a := range v {
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
	}
	return lo, hi
}

// totalFast starts each sum at a bias far above the sum of all values. Every addition is then one of a large and a
// small number, so its rounding error is found with two operations instead of five, and at the end the bias is
// subtracted without a rounding error. The bias is guessed from three values; totalFast returns false if the guess is
// too small. Two independent sums hide the latency of an addition; they are joined in a fixed order.
//
// The extremes are compared as integers, which the processor does in parallel with the sums. Integers have the order of
// the numbers if no number is negative. A negative number looks like a very large integer; the values are then compared
// again as numbers.
func totalFast(v []float64) (total, bool) {
	const slack = 4096
	n := float64(len(v))
	bias := slack * n * max(math.Abs(v[0]), math.Abs(v[len(v)/2]), math.Abs(v[len(v)-1]))
	if bias == 0 || bias > math.MaxFloat64/4 {
		return total{}, false
	}
	s, t := bias, bias
	var lostS, lostT float64
	lo := math.Float64bits(v[0])
	hi, lo2, hi2 := lo, lo, lo
	w := v
	for len(w) >= 4 {
		a, b, c, d := w[0], w[1], w[2], w[3]
		w = w[4:]
		i, j, k, l := math.Float64bits(a), math.Float64bits(b), math.Float64bits(c), math.Float64bits(d)
		s2, t2 := s+a, t+b
		lostS += a - (s2 - s)
		lostT += b - (t2 - t)
		s, t = s2+c, t2+d
		lostS += c - (s - s2)
		lostT += d - (t - t2)
		if i < lo {
			lo = i
		}
		if i > hi {
			hi = i
		}
		if j < lo2 {
			lo2 = j
		}
		if j > hi2 {
			hi2 = j
		}
		if k < lo {
			lo = k
		}
		if k > hi {
			hi = k
		}
		if l < lo2 {
			lo2 = l
		}
		if l > hi2 {
			hi2 = l
		}
	}
	for _, a := range w {
		s2 := s + a
		lostS += a - (s2 - s)
		s = s2
		i := math.Float64bits(a)
		lo, hi = min(lo, i), max(hi, i)
	}
	lo, hi = min(lo, lo2), max(hi, hi2)
	least, most := math.Float64frombits(lo), math.Float64frombits(hi)
	if hi>>63 != 0 {
		least, most = extremes(v)
	}
	if max(-least, most)*n > bias/2 {
		return total{}, false
	}
	sum := sumOf(s-bias, lostS).Plus(sumOf(t-bias, lostT))
	return total{sum, least, most, v[0], v[len(v)-1]}, true
}

// sumOf returns s + e as a Sum. s is a rounded sum and e the sum of its rounding errors.
func sumOf(s, e float64) Sum {
	if s-s != 0 {
		return Sum{s, 0}
	}
	h, l := twoSum(s, e)
	return Sum{h, l}
}

// total aggregates the values of the positions i to j, which must be decimals; there must be at least one. It
// adds integers, so the sum is exact up to the one division at the end.
func (c *numbers) total(i, j int) total {
	n := j - i
	p := pow10[c.scale]
	var t total
	switch c.width {
	case 0:
		v := float64(c.base) / p
		t = total{min: v, max: v, first: v, last: v}
		t.sum = c.scaled(n, 0, 0)
	case 1:
		d := c.data[i:j]
		sum, lo, hi := total8(d)
		t.sum = c.scaled(n, sum, 0)
		t.min, t.max = c.value(uint64(lo)), c.value(uint64(hi))
		t.first, t.last = c.value(uint64(d[0])), c.value(uint64(d[n-1]))
	case 2:
		d := c.data[2*i : 2*j]
		sum, lo, hi := total16(d)
		t.sum = c.scaled(n, sum, 0)
		t.min, t.max = c.value(uint64(lo)), c.value(uint64(hi))
		t.first, t.last = c.value(c.at(i)), c.value(c.at(j-1))
	default:
		sum, top, lo, hi := c.totalWide(i, j)
		t.sum = c.scaled(n, sum, top)
		t.min, t.max = c.value(lo), c.value(hi)
		t.first, t.last = c.value(c.at(i)), c.value(c.at(j-1))
	}
	return t
}

// value returns the number that a code stands for: base + code, in the decimal places of c.
func (c *numbers) value(code uint64) float64 {
	v := float64(c.base + int64(code))
	if c.scale > 0 {
		v /= pow10[c.scale]
	}
	return v
}

// scaled returns the sum of n values whose codes add up to sum + top*2^32.
func (c *numbers) scaled(n int, sum, top uint64) Sum {
	var s Sum
	if top == 0 && sum < 1<<62 && c.base > -1<<45 && c.base < 1<<45 { // no overflow, because n is at most 2^16
		s = sumOfInt(c.base*int64(n) + int64(sum))
	} else {
		s = sumOfProduct(float64(c.base), float64(n)).Plus(sumOfUint(sum))
		t := sumOfUint(top)
		s = s.Plus(Sum{t.Hi * (1 << 32), t.Lo * (1 << 32)})
	}
	if c.scale > 0 {
		s = s.over(pow10[c.scale])
	}
	return s
}

func total8(d []byte) (sum uint64, lo, hi uint8) {
	lo, hi = d[0], d[0]
	var s0, s1, s2, s3 uint64
	for len(d) >= 4 {
		a, b, c, e := d[0], d[1], d[2], d[3]
		d = d[4:]
		s0 += uint64(a)
		s1 += uint64(b)
		s2 += uint64(c)
		s3 += uint64(e)
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
		if b < lo {
			lo = b
		}
		if b > hi {
			hi = b
		}
		if c < lo {
			lo = c
		}
		if c > hi {
			hi = c
		}
		if e < lo {
			lo = e
		}
		if e > hi {
			hi = e
		}
	}
	for _, a := range d {
		s0 += uint64(a)
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
	}
	return s0 + s1 + s2 + s3, lo, hi
}

func total16(d []byte) (sum uint64, lo, hi uint16) {
	lo = binary.LittleEndian.Uint16(d)
	hi = lo
	var s0, s1, s2, s3 uint64
	for len(d) >= 8 {
		x := binary.LittleEndian.Uint64(d)
		d = d[8:]
		a, b, c, e := uint16(x), uint16(x>>16), uint16(x>>32), uint16(x>>48)
		s0 += uint64(a)
		s1 += uint64(b)
		s2 += uint64(c)
		s3 += uint64(e)
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
		if b < lo {
			lo = b
		}
		if b > hi {
			hi = b
		}
		if c < lo {
			lo = c
		}
		if c > hi {
			hi = c
		}
		if e < lo {
			lo = e
		}
		if e > hi {
			hi = e
		}
	}
	for ; len(d) >= 2; d = d[2:] {
		a := binary.LittleEndian.Uint16(d)
		s0 += uint64(a)
		if a < lo {
			lo = a
		}
		if a > hi {
			hi = a
		}
	}
	return s0 + s1 + s2 + s3, lo, hi
}

// totalWide adds codes of four or eight bytes in halves, which cannot overflow. The sum of the codes is sum + top*2^32;
// lo and hi are the codes of the least and the greatest value. It compares the values, not the codes, because base +
// code may overflow if a whole int64 range is stored.
func (c *numbers) totalWide(i, j int) (sum, top, lo, hi uint64) {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for ; i < j; i++ {
		x := c.at(i)
		sum += x & math.MaxUint32
		top += x >> 32
		if v := c.base + int64(x); v < least {
			least, lo = v, x
		}
		if v := c.base + int64(x); v > most {
			most, hi = v, x
		}
	}
	return sum, top, lo, hi
}
