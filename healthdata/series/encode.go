package series

import (
	"encoding/binary"
	"math"
	"slices"
)

// Encode appends the stored form of b to dst. The errors are those of [Block.Validate] (Invalid), and Invalid
// for an empty block or one of more than [MaxLen] samples. On an error dst is returned unchanged. Most callers
// use [NewChunk], which adds the header.
func Encode(dst []byte, b *Block) ([]byte, error) {
	n := b.Len()
	if n == 0 || n > MaxLen {
		return dst, invalid("a chunk has between 1 and 65536 samples")
	}
	if err := b.validShape(); err != nil {
		return dst, err
	}
	values := planValues(b.Value)
	var seconds valuePlan
	if b.Value2 != nil {
		seconds = planValues(b.Value2)
	}
	// Decimal values are finite, so only raw values need the check.
	if values.scale == rawScale && !finite(b.Value) || seconds.scale == rawScale && !finite(b.Value2) {
		return dst, errNotFinite
	}
	at := len(dst)
	out := append(dst, make([]byte, fixedBytes)...)
	out[at] = formatOne
	out[at+3], out[at+4] = noColumn, noColumn
	binary.LittleEndian.PutUint32(out[at+8:], uint32(n))

	out[at+2] = values.spec()
	binary.LittleEndian.PutUint64(out[at+28:], uint64(values.base))
	if b.Value2 != nil {
		out[at+3] = seconds.spec()
		out = binary.LittleEndian.AppendUint64(out, uint64(seconds.base))
	}
	var ends endPlan
	if b.End != nil {
		if ends = planEnds(b); ends.any {
			out[at+4] = byte(ends.unit<<4 | ends.width)
			if ends.some {
				out[at+5] = 1
			}
			out = binary.LittleEndian.AppendUint64(out, uint64(ends.base))
		}
	}

	times := planTimes(b.Time)
	out[at+1] = byte(times.unit<<4 | times.width)
	binary.LittleEndian.PutUint16(out[at+6:], uint16(times.gaps))
	binary.LittleEndian.PutUint64(out[at+12:], uint64(b.Time[0]/units[times.unit]))
	binary.LittleEndian.PutUint64(out[at+20:], uint64(times.least/units[times.unit]))
	out = times.append(out, b.Time)
	out = values.append(out, b.Value)
	out = seconds.append(out, b.Value2)
	if ends.any {
		out = ends.append(out, b)
	}
	return appendAttrs(out, b.Runs), nil
}

// timePlan is how times are encoded.
type timePlan struct {
	unit  int   // index in units
	least int64 // smallest delta, in microseconds
	width int
	gaps  int
}

func planTimes(t []int64) timePlan {
	unit := len(units) - 1
	for unit > 0 && t[0]%units[unit] != 0 {
		unit--
	}
	if len(t) == 1 {
		return timePlan{unit: unit}
	}
	// This loop compares without branches: a branch that depends on the data would cost more than the loop.
	by := exact[unit]
	last := t[0]
	least, most := t[1]-last, t[1]-last
	for _, x := range t[1:] {
		d := x - last
		last = x
		if d < least {
			least = d
		}
		if d > most {
			most = d
		}
		for unit > 0 && by.divide(uint64(d)) > by.most {
			unit--
			by = exact[unit]
		}
	}
	p := timePlan{unit: unit, least: least}
	if most == least {
		return p
	}
	// Use the width that holds every delta, or a smaller one with exceptions as gaps.
	p.width = widthFor(uint64(most-least) / uint64(units[unit]))
	best := p.width * (len(t) - 1)
	for _, width := range [...]int{0, 1, 2, 4} {
		over := units[unit]
		if width > 0 {
			over <<= 8 * width
		}
		if most-least < over {
			break
		}
		gaps := deltasFrom(t, least+over)
		if cost := width*(len(t)-1) + gapBytes*gaps; cost < best {
			best, p.width, p.gaps = cost, width, gaps
		}
	}
	return p
}

// deltasFrom counts the intervals between neighbouring times of t that are d or longer.
func deltasFrom(t []int64, d int64) (n int) {
	last := t[0]
	for _, x := range t[1:] {
		if x-last >= d {
			n++
		}
		last = x
	}
	return n
}

func (p timePlan) append(out []byte, t []int64) []byte {
	by := exact[p.unit]
	limit := uint64(math.MaxUint64)
	if p.width < 8 {
		limit = 1<<(8*p.width) - 1
	}
	if p.gaps > 0 {
		for i := 1; i < len(t); i++ {
			if x := by.divide(uint64(t[i] - t[i-1] - p.least)); x > limit {
				out = binary.LittleEndian.AppendUint32(out, uint32(i))
				out = binary.LittleEndian.AppendUint64(out, x)
			}
		}
	}
	if p.width == 0 {
		return out
	}
	out, to := extend(out, p.width*(len(t)-1))
	last := t[0] + p.least
	for i, x := range t[1:] {
		code := by.divide(uint64(x - last))
		last = x + p.least
		if code > limit {
			code = 0
		}
		put(to, p.width, i, code)
	}
	return out
}

// valuePlan is how a column of values is encoded.
type valuePlan struct {
	scale int
	base  int64
	width int
}

func (p valuePlan) spec() byte { return byte(p.scale<<4 | p.width) }

const (
	// decimalLimit is the limit of the integer of a decimal. Below the limit, the sum with roundMagic rounds to the
	// nearest integer, and float64 can represent every integer.
	decimalLimit = 1 << 51
	// roundMagic is 1.5 * 2^52: a float64 of that size has no fraction.
	roundMagic = 3 << 51
	// probes is about how many values of a column planValues tries first to find a scale; it tries all values of a
	// column with fewer than 2 * probes.
	probes = 16
)

// decimal returns v times p as an integer. p is a power of ten. The result is false if the integer divided by p is not
// exactly v, or is too large.
func decimal(v, p float64) (int64, bool) {
	x := v * p
	if !(math.Abs(x) < decimalLimit) {
		return 0, false
	}
	r := (x + roundMagic) - roundMagic
	return int64(r), math.Float64bits(r/p) == math.Float64bits(v)
}

// planValues returns the plan with the smallest scale at which every value is an exact decimal, or a plan of raw
// float64 if there is no such scale. A value that is exact at one scale is exact at every higher one, up to
// decimalLimit.
func planValues(v []float64) valuePlan {
	scale := 0
	for i := 0; i < len(v); i += max(1, len(v)/probes) {
		for scale <= maxScale {
			if _, ok := decimal(v[i], pow10[scale]); ok {
				break
			}
			scale++
		}
		if scale > maxScale {
			return valuePlan{scale: rawScale, width: 8}
		}
	}
	for ; scale <= maxScale; scale++ {
		if lo, hi, ok := decimalRange(v, pow10[scale]); ok {
			return valuePlan{scale, lo, widthFor(uint64(hi - lo))}
		}
	}
	return valuePlan{scale: rawScale, width: 8}
}

// decimalRange returns the smallest and the largest of the values times p, as integers. p is a power of ten. ok is
// false if a value is not a decimal of that scale.
func decimalRange(v []float64, p float64) (lo, hi int64, ok bool) {
	lo, hi = math.MaxInt64, math.MinInt64
	for _, x := range v {
		c, ok := decimal(x, p)
		if !ok {
			return 0, 0, false
		}
		if c < lo {
			lo = c
		}
		if c > hi {
			hi = c
		}
	}
	return lo, hi, true
}

func (p valuePlan) append(out []byte, v []float64) []byte {
	if p.width == 0 || len(v) == 0 {
		return out
	}
	out, to := extend(out, p.width*len(v))
	if p.scale == rawScale {
		for i, x := range v {
			binary.LittleEndian.PutUint64(to[8*i:], math.Float64bits(x))
		}
		return out
	}
	scale := pow10[p.scale]
	integer := func(x float64) int64 { return int64((x*scale+roundMagic)-roundMagic) - p.base }
	switch p.width {
	case 1:
		to = to[:len(v)]
		for i, x := range v {
			to[i] = byte(integer(x))
		}
	case 2:
		for i, x := range v {
			binary.LittleEndian.PutUint16(to[2*i:], uint16(integer(x)))
		}
	default:
		for i, x := range v {
			put(to, p.width, i, uint64(integer(x)))
		}
	}
	return out
}

// endPlan is how ends are encoded.
type endPlan struct {
	any, some bool
	unit      int
	base      int64 // smallest end minus time, in the unit
	width     int
}

func planEnds(b *Block) endPlan {
	p := endPlan{unit: len(units) - 1}
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	var seen int64
	for i, e := range b.End {
		if e == NoEnd {
			p.some = true
			continue
		}
		p.any = true
		d := e - b.Time[i]
		if d == seen && i > 0 {
			lo, hi = min(lo, d), max(hi, d)
			continue
		}
		seen = d
		lo, hi = min(lo, d), max(hi, d)
		abs := uint64(max(d, -d))
		for p.unit > 0 && exact[p.unit].divide(abs) > exact[p.unit].most {
			p.unit--
		}
	}
	if !p.any {
		return endPlan{}
	}
	p.base = lo / units[p.unit]
	most := uint64(hi-lo) / uint64(units[p.unit])
	if p.some {
		most++
	}
	p.width = widthFor(most)
	return p
}

func (p endPlan) append(out []byte, b *Block) []byte {
	if p.width == 0 {
		return out
	}
	out, to := extend(out, p.width*len(b.End))
	by := exact[p.unit]
	base := p.base * units[p.unit]
	var none uint64
	if p.some {
		none = 1
	}
	for i, e := range b.End {
		if e == NoEnd {
			put(to, p.width, i, 0)
			continue
		}
		put(to, p.width, i, by.divide(uint64(e-b.Time[i]-base))+none)
	}
	return out
}

func extend(b []byte, n int) (all, added []byte) {
	b = slices.Grow(b, n)
	all = b[:len(b)+n]
	return all, all[len(b):]
}

// put writes code as integer i of the column to. width is the number of bytes of an integer.
func put(to []byte, width, i int, code uint64) {
	switch width {
	case 1:
		to[i] = byte(code)
	case 2:
		binary.LittleEndian.PutUint16(to[2*i:], uint16(code))
	case 4:
		binary.LittleEndian.PutUint32(to[4*i:], uint32(code))
	default:
		binary.LittleEndian.PutUint64(to[8*i:], code)
	}
}
