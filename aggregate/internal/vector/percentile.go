package vector

import (
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Rank finds the value at a place in the order of all: the median, a percentile.
// Measurements repeat (a heart rate is one of some 200 numbers), so floats are counted
// and not kept.
type Rank struct {
	Percent int
	In      tables.ColumnType
	ints    []int64
	tally   tally
	held    int  // values that are kept
	Left    *int // how many more all groups together may keep
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

// place returns the positions of the two values that the result lies between, and how
// far it is from the first to the second.
func (a *Rank) place(n int64) (lo, hi int64, share float64) {
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
		lo, hi, share := a.place(a.tally.n)
		x, y := a.tally.at(lo, hi)
		return FloatCell(between(x, y, share)), nil
	}
	if len(a.ints) == 0 {
		return tables.Cell{}, nil
	}
	slices.Sort(a.ints)
	lo, hi, share := a.place(int64(len(a.ints)))
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

// tally counts numbers. Those that are multiples of 1, 0.1 or 0.01 inside a window are
// counted in an array; the others are kept, and put together when they are many.
type tally struct {
	n      int64
	rest   []float64
	scale  float64 // 0: no array yet
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
	tallyStart  = 128     // so many numbers are kept before an array is made
	tallyRest   = 4096    // so many are kept beside it
	tallyWindow = 1 << 16 // entries of the array
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

// addTimes adds one number n times.
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

// begin makes the array from what came so far, and counts that.
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

// compact sorts what is kept and puts equal numbers together.
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

// each visits the numbers in ascending order, each once unless it is in both places.
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

// at returns the numbers at two places in the order, counted from 0.
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
