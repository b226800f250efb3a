package vector

import (
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Rank finds the value at a position in the sorted values: the median or a percentile. Measurements repeat (a
// heart rate is one of some 200 numbers), so floats are counted by value.
type Rank struct {
	Percent int
	In      tables.ColumnType
	ints    []int64
	tally   tally
	held    int  // number of values that this Rank stores
	Left    *int // number of values that all groups together may still store
}

func (a *Rank) charge() bool {
	// Beyond the limit no value is kept, and the result is an error.
	now := len(a.ints) + len(a.tally.rest) + len(a.tally.sorted)
	*a.Left -= now - a.held
	a.held = now
	return *a.Left >= 0
}

// Add implements [Acc].
func (a *Rank) Add(v *Vec, _ *Batch, i, j int) {
	if !a.charge() {
		return
	}
	switch {
	case a.In == tables.TypeFloat64 && v.Nulls == nil:
		a.tally.add(v.Floats[i:j])
	case a.In == tables.TypeFloat64:
		for ; i < j; i++ {
			if !v.Nulls[i] {
				a.tally.add(v.Floats[i : i+1])
			}
		}
	default:
		for ; i < j; i++ {
			if v.IsNull(i) {
				continue
			}
			x := v.Ints[i]
			if a.In == tables.TypeDate {
				x *= microsOfDay
			}
			a.ints = append(a.ints, x)
		}
	}
}

// Merge implements [Acc].
func (a *Rank) Merge(o Acc) {
	b := o.(*Rank)
	a.ints = append(a.ints, b.ints...)
	b.tally.each(func(x float64, n int64) { a.tally.addTimes(x, n) })
}

// positions returns the positions, from 0, of the two of n sorted values between which the result is. share is the part
// of their difference that is added to the lower value, 0 to 1.
func (a *Rank) positions(n int64) (lo, hi int64, share float64) {
	at := float64(a.Percent) / 100 * float64(n-1)
	lo = int64(at)
	hi = min(lo+1, n-1)
	share = at - float64(lo)
	if share == 0 {
		hi = lo
	}
	return lo, hi, share
}

// Result implements [Acc].
func (a *Rank) Result() (tables.Cell, error) {
	if *a.Left < 0 {
		return tables.Cell{}, errValues
	}
	if a.In == tables.TypeFloat64 {
		if a.tally.n == 0 {
			return tables.Cell{}, nil
		}
		lo, hi, share := a.positions(a.tally.n)
		x, y := a.tally.at(lo, hi)
		return FloatCell(between(x, y, share)), nil
	}
	if len(a.ints) == 0 {
		return tables.Cell{}, nil
	}
	slices.Sort(a.ints)
	lo, hi, share := a.positions(int64(len(a.ints)))
	x, y := a.ints[lo], a.ints[hi]
	if a.In == tables.TypeInt64 {
		return FloatCell(between(float64(x), float64(y), share)), nil
	}
	if share == 0.5 {
		return IntCell(x + (y-x)>>1), nil
	}
	return IntCell(x + int64(math.Floor(float64(y-x)*share))), nil
}

func between(x, y, share float64) float64 {
	switch share {
	case 0:
		return x
	case 0.5:
		return x/2 + y/2
	default:
		return x + (y-x)*share
	}
}

// tally counts numbers. Multiples of 1, 0.1 or 0.01 inside a window are counted in an array. The others are
// stored in a list, in which equal numbers are combined when it is long.
type tally struct {
	n      int64
	rest   []float64
	scale  float64 // numbers times scale are counted in the array; 0 while there is no array
	first  int64
	counts []int64
	sorted []times
}

// times is a number and how often it occurs.
type times struct {
	x float64
	n int64
}

const (
	tallyStart  = 128     // length of the list at which the array is made
	tallyRest   = 4096    // length of the list at which equal numbers in it are combined, once there is an array
	tallyWindow = 1 << 16 // number of entries of the array
)

func (t *tally) add(v []float64) {
	t.n += int64(len(v))
	if t.scale == 0 {
		t.rest = append(t.rest, v...)
		if len(t.rest) >= tallyStart {
			t.begin()
		}
		return
	}
	counts, first := t.counts, t.first
	if t.scale == 1 {
		for _, x := range v {
			k := int64(x)
			if i := uint64(k - first); i < uint64(len(counts)) && float64(k) == x {
				counts[i]++
				continue
			}
			t.put(x)
		}
		return
	}
	scale := t.scale
	for _, x := range v {
		k := int64(math.Floor(x*scale + 0.5))
		if i := uint64(k - first); i < uint64(len(counts)) && float64(k)/scale == x {
			counts[i]++
			continue
		}
		t.put(x)
	}
}

// addTimes adds the number x n times.
func (t *tally) addTimes(x float64, n int64) {
	t.n += n
	t.sorted = append(t.sorted, times{x, n})
	if len(t.sorted) > 2*tallyRest {
		t.compact()
	}
}

func (t *tally) put(x float64) {
	t.rest = append(t.rest, x)
	if len(t.rest) >= tallyRest {
		t.compact()
	}
}

// begin makes the array from the numbers in the list.
func (t *tally) begin() {
	seen := t.rest
	t.rest = nil
	t.n -= int64(len(seen))
	t.scale = 1
	for _, x := range seen {
		for t.scale < 100 && math.Floor(x*t.scale+0.5)/t.scale != x {
			t.scale *= 10
		}
	}
	lo, hi := slices.Min(seen)*t.scale, slices.Max(seen)*t.scale
	if hi-lo < tallyWindow/2 && math.Abs(lo) < 1<<50 {
		slack := int64(hi-lo)/2 + 64
		t.first = int64(math.Floor(lo)) - slack
		t.counts = make([]int64, int64(hi-lo)+2*slack+2)
	}
	t.add(seen)
}

// compact sorts the list and combines equal numbers.
func (t *tally) compact() {
	for _, x := range t.rest {
		t.sorted = append(t.sorted, times{x, 1})
	}
	t.rest = t.rest[:0]
	slices.SortFunc(t.sorted, func(a, b times) int { return compareFloat(a.x, b.x) })
	out := t.sorted[:0]
	for _, e := range t.sorted {
		if k := len(out) - 1; k >= 0 && out[k].x == e.x {
			out[k].n += e.n
			continue
		}
		out = append(out, e)
	}
	t.sorted = out
}

// each calls a function for each number in ascending order; twice if the number is both in the array and in the
// list.
func (t *tally) each(visit func(x float64, n int64)) {
	t.compact()
	k := 0
	for i, n := range t.counts {
		if n == 0 {
			continue
		}
		x := float64(t.first+int64(i)) / t.scale
		for k < len(t.sorted) && t.sorted[k].x < x {
			visit(t.sorted[k].x, t.sorted[k].n)
			k++
		}
		visit(x, n)
	}
	for ; k < len(t.sorted); k++ {
		visit(t.sorted[k].x, t.sorted[k].n)
	}
}

// at returns the numbers at two positions of the sorted values, counted from 0.
func (t *tally) at(i, j int64) (x, y float64) {
	var before int64
	t.each(func(v float64, n int64) {
		if before <= i {
			x = v
		}
		if before <= j {
			y = v
		}
		before += n
	})
	return x, y
}
