package aggregate

import (
	"math"
	"math/bits"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// acc takes in the values of one group, in stretches of rows.
type acc interface {
	// add takes the rows i to j of v, which is a column of b.
	add(v *vec, b *batch, i, j int)
	// merge takes in what another acc of the same kind has.
	merge(o acc)
	// result returns the value. The fault is healthlab.Invalid: a number that its
	// type cannot hold.
	result() (tables.Cell, error)
}

// newAcc returns an empty acc for a function. left is how many values those that must
// keep some may still keep.
func newAcc(a *agg, left *int) acc {
	switch a.fn {
	case Count:
		return &countAcc{}
	case Sum, Mean:
		if a.in == typeFloat {
			return &floatAcc{mean: a.fn == Mean}
		}
		return &intAcc{mean: a.fn == Mean, in: a.in}
	case StdDev:
		return &deviationAcc{}
	case Min, Max:
		return &extremeAcc{max: a.fn == Max, typ: a.in}
	case Oldest, Newest:
		return &edgeAcc{newest: a.fn == Newest}
	case TimeInRange, TimeWeightedMean:
		out := &overTimeAcc{mean: a.fn == TimeWeightedMean, low: math.Inf(-1), high: math.Inf(1)}
		if a.low != nil {
			out.low = *a.low
		}
		if a.high != nil {
			out.high = *a.high
		}
		return out
	}
	rank := 50
	if p, ok := a.fn.percent(); ok {
		rank = p
	}
	return &rankAcc{percent: rank, in: a.in, left: left}
}

var errOverflow = healthlab.Problems{{Code: "numeric_overflow", Msg: "makes a sum that an int64 cannot hold"}}.Err()

var errValues = healthlab.Problems{{Code: "too_many_values", Msg: "has more distinct values than can be put in order at once"}}.Err()

func floatCell(v float64) tables.Cell {
	if v-v != 0 {
		return tables.Cell{}
	}
	return tables.Cell{Valid: true, Float: v}
}

func intCell(v int64) tables.Cell { return tables.Cell{Valid: true, Int: v} }

// countAcc counts.
type countAcc struct{ n int64 }

func (a *countAcc) add(v *vec, _ *batch, i, j int) {
	if v.nulls == nil {
		a.n += int64(j - i)
		return
	}
	for _, null := range v.nulls[i:j] {
		if !null {
			a.n++
		}
	}
}

func (a *countAcc) merge(o acc) { a.n += o.(*countAcc).n }

func (a *countAcc) result() (tables.Cell, error) { return intCell(a.n), nil }

// floatAcc adds up numbers with about twice the digits of one.
type floatAcc struct {
	sum  series.Sum
	n    int
	mean bool
}

func (a *floatAcc) add(v *vec, _ *batch, i, j int) {
	if v.nulls == nil {
		a.sum = a.sum.Plus(sumOf(v.floats[i:j]))
		a.n += j - i
		return
	}
	for ; i < j; i++ {
		if !v.nulls[i] {
			a.sum = a.sum.Plus(series.Sum{Hi: v.floats[i]})
			a.n++
		}
	}
}

// sumOf adds up numbers, with the error of each addition carried along (Neumaier). Two
// lanes hide the latency of an addition.
func sumOf(v []float64) series.Sum {
	var s0, s1, e0, e1 float64
	for len(v) >= 2 {
		a, b := v[0], v[1]
		v = v[2:]
		t := s0 + a
		z := t - s0
		e0 += (s0 - (t - z)) + (a - z)
		s0 = t
		t = s1 + b
		z = t - s1
		e1 += (s1 - (t - z)) + (b - z)
		s1 = t
	}
	out := series.Sum{Hi: s0}.Plus(series.Sum{Hi: e0}).Plus(series.Sum{Hi: s1}).Plus(series.Sum{Hi: e1})
	if len(v) == 1 {
		out = out.Plus(series.Sum{Hi: v[0]})
	}
	return out
}

func (a *floatAcc) merge(o acc) {
	b := o.(*floatAcc)
	a.sum, a.n = a.sum.Plus(b.sum), a.n+b.n
}

func (a *floatAcc) result() (tables.Cell, error) {
	switch {
	case a.n == 0:
		return tables.Cell{}, nil
	case a.mean:
		acc := series.Acc{N: a.n, Sum: a.sum}
		return floatCell(acc.Mean()), nil
	default:
		return floatCell(a.sum.Float64()), nil
	}
}

// intAcc adds up integers in 128 bits, and times, which are integers.
type intAcc struct {
	hi, lo uint64 // two's complement
	n      int64
	mean   bool
	in     Type
}

func (a *intAcc) plus(x int64) {
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, uint64(x), 0)
	a.hi, _ = bits.Add64(a.hi, uint64(x>>63), carry)
}

func (a *intAcc) add(v *vec, _ *batch, i, j int) {
	for ; i < j; i++ {
		if v.isNull(i) {
			continue
		}
		x := v.ints[i]
		if a.in == typeDate {
			x *= day // the mean of days is a time
		}
		a.plus(x)
		a.n++
	}
}

func (a *intAcc) merge(o acc) {
	b := o.(*intAcc)
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, b.lo, 0)
	a.hi, _ = bits.Add64(a.hi, b.hi, carry)
	a.n += b.n
}

func (a *intAcc) result() (tables.Cell, error) {
	if a.n == 0 {
		return tables.Cell{}, nil
	}
	if !a.mean {
		sum := int64(a.lo)
		if a.hi != uint64(sum>>63) {
			return tables.Cell{}, errOverflow
		}
		return intCell(sum), nil
	}
	if a.in == typeInt {
		if int64(a.hi) < 0 {
			lo, borrow := bits.Sub64(0, a.lo, 0)
			hi, _ := bits.Sub64(0, a.hi, borrow)
			return floatCell(-(float64(hi)*(1<<64) + float64(lo)) / float64(a.n)), nil
		}
		return floatCell((float64(a.hi)*(1<<64) + float64(a.lo)) / float64(a.n)), nil
	}
	return intCell(a.floor()), nil
}

// floor returns the mean, rounded down. The mean of values is one of their size, so it
// fits.
func (a *intAcc) floor() int64 {
	hi, lo := a.hi, a.lo
	negative := int64(hi) < 0
	if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	q, r := bits.Div64(hi, lo, uint64(a.n))
	if !negative {
		return int64(q)
	}
	if r != 0 {
		q++
	}
	return -int64(q)
}

// deviationAcc adds up numbers and their squares, with about twice the digits of a
// float64, so that a small spread of large numbers does not drown.
type deviationAcc struct {
	sum, squares series.Sum
	n            int
}

func (a *deviationAcc) add(v *vec, _ *batch, i, j int) {
	// Sums of one stretch, each with the error of its additions beside it.
	var s, se, q, qe float64
	for ; i < j; i++ {
		if v.isNull(i) {
			continue
		}
		var x float64
		if v.typ == typeFloat {
			x = v.floats[i]
		} else {
			x = float64(v.ints[i])
		}
		a.n++
		t := s + x
		z := t - s
		se += (s - (t - z)) + (x - z)
		s = t
		p := x * x
		t = q + p
		z = t - q
		qe += (q - (t - z)) + (p - z) + math.FMA(x, x, -p)
		q = t
	}
	a.sum = a.sum.Plus(series.Sum{Hi: s}).Plus(series.Sum{Hi: se})
	a.squares = a.squares.Plus(series.Sum{Hi: q}).Plus(series.Sum{Hi: qe})
}

func (a *deviationAcc) merge(o acc) {
	b := o.(*deviationAcc)
	a.sum, a.squares, a.n = a.sum.Plus(b.sum), a.squares.Plus(b.squares), a.n+b.n
}

func (a *deviationAcc) result() (tables.Cell, error) {
	if a.n < 2 {
		return tables.Cell{}, nil
	}
	// squares - sum*sum/n, in twice the digits.
	n := float64(a.n)
	acc := series.Acc{N: a.n, Sum: a.sum}
	m := acc.Mean()
	rest := a.sum.Plus(series.Sum{Hi: -m * n, Lo: -math.FMA(m, n, -(m * n))}) // what m leaves of the sum
	p := m * m
	e := math.FMA(m, m, -p)
	spread := a.squares
	// Σ(x-m)² = Σx² - 2mΣx + nm² = Σx² - nm² - 2m·rest
	pn := p * n
	spread = spread.Plus(series.Sum{Hi: -pn, Lo: -math.FMA(p, n, -pn)}).Plus(series.Sum{Hi: -e * n})
	spread = spread.Plus(series.Sum{Hi: -2 * m * rest.Float64()})
	v := spread.Float64()/(n-1) - rest.Float64()*rest.Float64()/n/(n-1)
	return floatCell(math.Sqrt(max(v, 0))), nil
}

// extremeAcc finds the smallest or the largest value.
type extremeAcc struct {
	best tables.Cell
	max  bool
	typ  Type
}

func (a *extremeAcc) add(v *vec, _ *batch, i, j int) {
	if a.typ == typeFloat && v.nulls == nil && i < j {
		x := v.floats[i]
		for _, y := range v.floats[i+1 : j] {
			if a.max == (y > x) && y != x {
				x = y
			}
		}
		a.take(tables.Cell{Valid: true, Float: x})
		return
	}
	for ; i < j; i++ {
		if !v.isNull(i) {
			a.take(v.cell(i))
		}
	}
}

func (a *extremeAcc) take(c tables.Cell) {
	if !a.best.Valid {
		a.best = c
		return
	}
	if d := compareCells(a.typ, c, a.best); d != 0 && a.max == (d > 0) {
		a.best = c
	}
}

func (a *extremeAcc) merge(o acc) {
	if b := o.(*extremeAcc); b.best.Valid {
		a.take(b.best)
	}
}

func (a *extremeAcc) result() (tables.Cell, error) { return a.best, nil }

// compareCells compares two values of one type that are not null.
func compareCells(t Type, a, b tables.Cell) int {
	switch t {
	case typeFloat:
		return compareFloat(a.Float, b.Float)
	case typeText:
		switch {
		case a.Text < b.Text:
			return -1
		case a.Text > b.Text:
			return 1
		default:
			return 0
		}
	default:
		return compareInt(a.Int, b.Int)
	}
}

// edgeAcc finds the value of the first or the last row. Rows come in the order that
// decides between equal indexes: the first of them stays; but inside one series, where
// the clock was set back, the later instant is newer.
type edgeAcc struct {
	best   tables.Cell
	at     int64
	serial int
	newest bool
}

func (a *edgeAcc) add(v *vec, b *batch, i, j int) {
	for ; i < j; i++ {
		if v.isNull(i) {
			continue
		}
		at := b.index[i]
		switch {
		case !a.best.Valid, a.newest && at > a.at, !a.newest && at < a.at,
			a.newest && at == a.at && b.serial != 0 && b.serial == a.serial:
			a.best, a.at, a.serial = v.cell(i), at, b.serial
		}
	}
}

func (a *edgeAcc) merge(o acc) {
	b := o.(*edgeAcc)
	if b.best.Valid && (!a.best.Valid || a.newest && b.at > a.at || !a.newest && b.at < a.at) {
		a.best, a.at, a.serial = b.best, b.at, b.serial
	}
}

func (a *edgeAcc) result() (tables.Cell, error) { return a.best, nil }

// overTimeAcc weighs values with the time that they held.
type overTimeAcc struct {
	inside, whole series.Sum
	low, high     float64
	mean          bool
}

func (a *overTimeAcc) add(v *vec, b *batch, i, j int) {
	for ; i < j; i++ {
		if v.isNull(i) {
			continue
		}
		w, x := b.hold[i], v.floats[i]
		a.whole = a.whole.Plus(series.Sum{Hi: w})
		switch {
		case a.mean:
			p := w * x
			a.inside = a.inside.Plus(series.Sum{Hi: p, Lo: math.FMA(w, x, -p)})
		case x >= a.low && x <= a.high:
			a.inside = a.inside.Plus(series.Sum{Hi: w})
		}
	}
}

func (a *overTimeAcc) merge(o acc) {
	b := o.(*overTimeAcc)
	a.inside, a.whole = a.inside.Plus(b.inside), a.whole.Plus(b.whole)
}

func (a *overTimeAcc) result() (tables.Cell, error) {
	if a.whole.Float64() == 0 {
		return tables.Cell{}, nil
	}
	v := a.inside.Float64() / a.whole.Float64()
	if !a.mean {
		v *= 100
	}
	return floatCell(v), nil
}
