package vector

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Acc accumulates the values of one group into the result of a function.
type Acc interface {
	// Add adds the rows i to j (exclusive) of v, which is a column of b.
	Add(v *Vec, b *Batch, i, j int)
	// Merge adds the values of another Acc of the same kind.
	Merge(o Acc)
	// Result returns the function's value. The error is healthlab.Invalid if the result's type cannot hold the
	// number.
	Result() (tables.Cell, error)
}

var errOverflow = healthlab.Problems{{Code: "numeric_overflow", Msg: "must have sums of whole numbers that fit into 64 bits"}}.Err()

var errValues = healthlab.Problems{{Code: "too_many_values", Msg: "must have fewer distinct values, or fewer groups, for medians, percentiles and measures of glucose"}}.Err()

// Count counts the values that are not null.
type Count struct{ n int64 }

// Add implements [Acc].
func (a *Count) Add(v *Vec, _ *Batch, i, j int) {
	if v.Nulls == nil {
		a.n += int64(j - i)
		return
	}
	for _, null := range v.Nulls[i:j] {
		if !null {
			a.n++
		}
	}
}

// Merge implements [Acc].
func (a *Count) Merge(o Acc) { a.n += o.(*Count).n }

// Result implements [Acc].
func (a *Count) Result() (tables.Cell, error) { return IntCell(a.n), nil }

// FloatSum adds up numbers with about twice the digits of a float64.
type FloatSum struct {
	sum  series.Sum
	n    int
	Mean bool
}

// Add implements [Acc].
func (a *FloatSum) Add(v *Vec, _ *Batch, i, j int) {
	if v.Nulls == nil {
		a.sum = a.sum.Plus(sumOf(v.Floats[i:j]))
		a.n += j - i
		return
	}
	for ; i < j; i++ {
		if !v.Nulls[i] {
			a.sum = a.sum.Plus(series.Sum{Hi: v.Floats[i]})
			a.n++
		}
	}
}

// sumOf adds up numbers and carries the rounding error of each addition (Neumaier). Two independent sums hide
// the latency of an addition.
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

// Merge implements [Acc].
func (a *FloatSum) Merge(o Acc) {
	b := o.(*FloatSum)
	a.sum, a.n = a.sum.Plus(b.sum), a.n+b.n
}

// Result implements [Acc].
func (a *FloatSum) Result() (tables.Cell, error) {
	switch {
	case a.n == 0:
		return tables.Cell{}, nil
	case a.Mean:
		acc := series.Acc{N: a.n, Sum: a.sum}
		return FloatCell(acc.Mean()), nil
	default:
		return FloatCell(a.sum.Float64()), nil
	}
}

// IntSum adds up integers in 128 bits; times are integers too.
type IntSum struct {
	hi, lo uint64 // halves of the sum, in two's complement
	n      int64
	Mean   bool
	In     tables.ColumnType
}

func (a *IntSum) plus(x int64) {
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, uint64(x), 0)
	a.hi, _ = bits.Add64(a.hi, uint64(x>>63), carry)
}

// Add implements [Acc].
func (a *IntSum) Add(v *Vec, _ *Batch, i, j int) {
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		x := v.Ints[i]
		if a.In == tables.TypeDate {
			x *= microsOfDay // the mean of days is a time
		}
		a.plus(x)
		a.n++
	}
}

// Merge implements [Acc].
func (a *IntSum) Merge(o Acc) {
	b := o.(*IntSum)
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, b.lo, 0)
	a.hi, _ = bits.Add64(a.hi, b.hi, carry)
	a.n += b.n
}

// Result implements [Acc].
func (a *IntSum) Result() (tables.Cell, error) {
	if a.n == 0 {
		return tables.Cell{}, nil
	}
	if !a.Mean {
		sum := int64(a.lo)
		if a.hi != uint64(sum>>63) {
			return tables.Cell{}, errOverflow
		}
		return IntCell(sum), nil
	}
	if a.In == tables.TypeInt64 {
		if int64(a.hi) < 0 {
			lo, borrow := bits.Sub64(0, a.lo, 0)
			hi, _ := bits.Sub64(0, a.hi, borrow)
			return FloatCell(-(float64(hi)*(1<<64) + float64(lo)) / float64(a.n)), nil
		}
		return FloatCell((float64(a.hi)*(1<<64) + float64(a.lo)) / float64(a.n)), nil
	}
	return IntCell(a.floor()), nil
}

// floor returns the mean, rounded down. It fits into 64 bits, because a mean is not larger than its largest
// value.
func (a *IntSum) floor() int64 {
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

// Deviation adds up numbers and their squares, with about twice the digits of a float64, so that a small spread
// of large numbers is computed accurately.
type Deviation struct {
	// Ratio selects the deviation in percent of the mean, which is null unless the mean is positive.
	Ratio bool

	sum, squares series.Sum
	n            int
}

// Add implements [Acc].
func (a *Deviation) Add(v *Vec, _ *Batch, i, j int) {
	// s and q are the sums of these rows, se and qe the rounding errors of their additions.
	var s, se, q, qe float64
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		var x float64
		if v.Type == tables.TypeFloat64 {
			x = v.Floats[i]
		} else {
			x = float64(v.Ints[i])
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

// Merge implements [Acc].
func (a *Deviation) Merge(o Acc) {
	b := o.(*Deviation)
	a.sum, a.squares, a.n = a.sum.Plus(b.sum), a.squares.Plus(b.squares), a.n+b.n
}

// Result implements [Acc].
func (a *Deviation) Result() (tables.Cell, error) {
	if a.n < 2 {
		return tables.Cell{}, nil
	}
	// squares - sum*sum/n, in twice the digits.
	n := float64(a.n)
	acc := series.Acc{N: a.n, Sum: a.sum}
	m := acc.Mean()
	rest := a.sum.Plus(series.Sum{Hi: -m * n, Lo: -math.FMA(m, n, -(m * n))}) // sum - m*n
	p := m * m
	e := math.FMA(m, m, -p)
	spread := a.squares
	// Σ(x-m)² = Σx² - 2mΣx + nm² = Σx² - nm² - 2m·rest
	pn := p * n
	spread = spread.Plus(series.Sum{Hi: -pn, Lo: -math.FMA(p, n, -pn)}).Plus(series.Sum{Hi: -e * n})
	spread = spread.Plus(series.Sum{Hi: -2 * m * rest.Float64()})
	v := spread.Float64()/(n-1) - rest.Float64()*rest.Float64()/n/(n-1)
	v = math.Sqrt(max(v, 0))
	switch {
	case !a.Ratio:
		return FloatCell(v), nil
	case m > 0:
		return FloatCell(100 * v / m), nil
	default:
		return tables.Cell{}, nil
	}
}

// Extreme finds the smallest or the largest value.
type Extreme struct {
	best tables.Cell
	Max  bool
	Type tables.ColumnType
}

// Add implements [Acc].
func (a *Extreme) Add(v *Vec, _ *Batch, i, j int) {
	if a.Type == tables.TypeFloat64 && v.Nulls == nil && i < j {
		x := v.Floats[i]
		for _, y := range v.Floats[i+1 : j] {
			if a.Max == (y > x) && y != x {
				x = y
			}
		}
		a.addCell(tables.Cell{Valid: true, Float: x})
		return
	}
	for ; i < j; i++ {
		if !v.IsNull(i) {
			a.addCell(v.Cell(i))
		}
	}
}

func (a *Extreme) addCell(c tables.Cell) {
	if !a.best.Valid {
		a.best = c
		return
	}
	if d := compareCells(a.Type, c, a.best); d != 0 && a.Max == (d > 0) {
		a.best = c
	}
}

// Merge implements [Acc].
func (a *Extreme) Merge(o Acc) {
	if b := o.(*Extreme); b.best.Valid {
		a.addCell(b.best)
	}
}

// Result implements [Acc].
func (a *Extreme) Result() (tables.Cell, error) { return a.best, nil }

// compareCells compares two values of one type that are not null.
func compareCells(t tables.ColumnType, a, b tables.Cell) int {
	switch t {
	case tables.TypeFloat64:
		return compareFloat(a.Float, b.Float)
	case tables.TypeString:
		switch {
		case a.Text < b.Text:
			return -1
		case a.Text > b.Text:
			return 1
		default:
			return 0
		}
	default:
		return cmp.Compare(a.Int, b.Int)
	}
}

// Edge finds the value of the row with the smallest index, or with the largest if Newest is true. Of several such rows
// the first one counts. With Newest, the last one of the same series counts, which has the later instant: within a
// series an index repeats where the clock was set back.
type Edge struct {
	best   tables.Cell
	at     int64
	serial int
	Newest bool
}

// Add implements [Acc].
func (a *Edge) Add(v *Vec, b *Batch, i, j int) {
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		at := b.Index[i]
		switch {
		case !a.best.Valid, a.Newest && at > a.at, !a.Newest && at < a.at,
			a.Newest && at == a.at && b.Serial != 0 && b.Serial == a.serial:
			a.best, a.at, a.serial = v.Cell(i), at, b.Serial
		}
	}
}

// Merge implements [Acc].
func (a *Edge) Merge(o Acc) {
	b := o.(*Edge)
	if b.best.Valid && (!a.best.Valid || a.Newest && b.at > a.at || !a.Newest && b.at < a.at) {
		a.best, a.at, a.serial = b.best, b.at, b.serial
	}
}

// Result implements [Acc].
func (a *Edge) Result() (tables.Cell, error) { return a.best, nil }

// OverTime weights each value by the duration of its sample (Batch.Hold). With Mean it computes the weighted mean, else
// the percentage of the time in which the value was from Low to High.
type OverTime struct {
	inside, whole series.Sum
	Low, High     float64
	Mean          bool
}

// Add implements [Acc].
func (a *OverTime) Add(v *Vec, b *Batch, i, j int) {
	for ; i < j; i++ {
		if v.IsNull(i) {
			continue
		}
		w, x := b.Hold[i], v.Floats[i]
		a.whole = a.whole.Plus(series.Sum{Hi: w})
		switch {
		case a.Mean:
			p := w * x
			a.inside = a.inside.Plus(series.Sum{Hi: p, Lo: math.FMA(w, x, -p)})
		case x >= a.Low && x <= a.High:
			a.inside = a.inside.Plus(series.Sum{Hi: w})
		}
	}
}

// Merge implements [Acc].
func (a *OverTime) Merge(o Acc) {
	b := o.(*OverTime)
	a.inside, a.whole = a.inside.Plus(b.inside), a.whole.Plus(b.whole)
}

// Result implements [Acc].
func (a *OverTime) Result() (tables.Cell, error) {
	if a.whole.Float64() == 0 {
		return tables.Cell{}, nil
	}
	v := a.inside.Float64() / a.whole.Float64()
	if !a.Mean {
		v *= 100
	}
	return FloatCell(v), nil
}
