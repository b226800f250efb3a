package aggregate

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// vec is the values of one slot in the rows of a batch. Which field holds them
// depends on the type.
type vec struct {
	typ    Type
	ints   []int64 // int64, bool, dates as days, times as microseconds
	floats []float64
	texts  []string
	lists  []tables.Cell
	nulls  []bool // nil: none is null

	// What keep reuses; the fields above may be borrowed.
	ownInts   []int64
	ownFloats []float64
	ownTexts  []string
	ownNulls  []bool
}

func (v *vec) isNull(i int) bool { return v.nulls != nil && v.nulls[i] }

// reset empties the vector and keeps the memory that is its own.
func (v *vec) reset() {
	v.ints, v.floats, v.texts = v.ownInts[:0], v.ownFloats[:0], v.ownTexts[:0]
	v.lists, v.nulls = v.lists[:0], nil
}

// add appends a value.
func (v *vec) add(c tables.Cell) {
	n := v.len()
	if !c.Valid && v.nulls == nil {
		v.nulls = slices.Grow(v.ownNulls[:0], n+1)[:n]
		clear(v.nulls)
	}
	if v.nulls != nil {
		v.nulls = append(v.nulls, !c.Valid)
		v.ownNulls = v.nulls
	}
	switch v.typ {
	case typeFloat:
		v.floats = append(v.floats, c.Float)
		v.ownFloats = v.floats
	case typeText:
		v.texts = append(v.texts, c.Text)
		v.ownTexts = v.texts
	case typeList:
		v.lists = append(v.lists, c)
	default:
		v.ints = append(v.ints, c.Int)
		v.ownInts = v.ints
	}
}

// repeat appends a value n times.
func (v *vec) repeat(c tables.Cell, n int) {
	if n == 0 {
		return
	}
	v.add(c)
	if v.nulls != nil {
		v.nulls = repeated(v.nulls, n-1)
		v.ownNulls = v.nulls
	}
	switch v.typ {
	case typeFloat:
		v.floats = repeated(v.floats, n-1)
		v.ownFloats = v.floats
	case typeText:
		v.texts = repeated(v.texts, n-1)
		v.ownTexts = v.texts
	case typeList:
		v.lists = repeated(v.lists, n-1)
	default:
		v.ints = repeated(v.ints, n-1)
		v.ownInts = v.ints
	}
}

// repeated appends the last element n times more.
func repeated[T any](s []T, n int) []T {
	k := len(s)
	s = slices.Grow(s, n)[:k+n]
	x := s[k-1]
	for i := range s[k:] {
		s[k+i] = x
	}
	return s
}

func (v *vec) len() int {
	switch v.typ {
	case typeFloat:
		return len(v.floats)
	case typeText:
		return len(v.texts)
	case typeList:
		return len(v.lists)
	default:
		return len(v.ints)
	}
}

// cell returns one value.
func (v *vec) cell(i int) tables.Cell {
	if v.isNull(i) {
		return tables.Cell{}
	}
	switch v.typ {
	case typeFloat:
		return tables.Cell{Valid: true, Float: v.floats[i]}
	case typeText:
		return tables.Cell{Valid: true, Text: v.texts[i]}
	case typeList:
		return v.lists[i]
	default:
		return tables.Cell{Valid: true, Int: v.ints[i]}
	}
}

// allNull makes a vector of n nulls.
func (v *vec) allNull(n int) {
	v.reset()
	v.repeat(tables.Cell{}, n)
}

// batch is some rows of one source, as columns.
type batch struct {
	n     int
	index []int64 // the clock of the person
	cols  []vec   // by slot

	source   int // place of the source in the order of preference
	resource int // which of the plan's resources; 0 for summaries
	serial   int // which series; rows of one series with one index are in order of time. 0: none
	start    []int64
	end      []int64   // of samples, in UTC; nil if none has one
	hold     []float64 // seconds that each sample held, where the plan asks

	ownIndex, ownStart, ownEnd []int64
	ownHold                    []float64
	tris                       [][]tri
	picks                      []int32
}

func (b *batch) reset(cols int) {
	for len(b.cols) < cols {
		b.cols = append(b.cols, vec{})
	}
	b.cols = b.cols[:cols]
	for i := range b.cols {
		b.cols[i].reset()
	}
	b.n, b.index, b.start, b.end, b.hold = 0, b.ownIndex[:0], nil, nil, nil
}

// setLen says how many rows there are, where there is no index.
func (b *batch) setLen(n int) {
	b.n = n
	for len(b.index) < n {
		b.index = append(b.index, 0)
	}
	b.ownIndex = b.index
}

// scratch lends memory for the answers of a filter.
func (b *batch) scratch() []tri {
	if k := len(b.tris) - 1; k >= 0 && cap(b.tris[k]) >= b.n {
		t := b.tris[k][:b.n]
		b.tris = b.tris[:k]
		return t
	}
	return make([]tri, b.n)
}

func (b *batch) done(t []tri) { b.tris = append(b.tris, t) }

// keep leaves the rows for which the filter is true.
func (b *batch) keep(f filter) {
	t := b.scratch()
	defer b.done(t)
	f.eval(b, t)
	b.picks = b.picks[:0]
	for i, x := range t {
		if x == isTrue {
			b.picks = append(b.picks, int32(i))
		}
	}
	b.pick(b.picks)
}

// pick leaves the rows at these ascending positions. Borrowed columns are copied.
func (b *batch) pick(at []int32) {
	if len(at) == b.n {
		return
	}
	b.index = pickInto(&b.ownIndex, b.index, at)
	if b.start != nil {
		b.start = pickInto(&b.ownStart, b.start, at)
	}
	if b.end != nil {
		b.end = pickInto(&b.ownEnd, b.end, at)
	}
	if b.hold != nil {
		b.hold = pickInto(&b.ownHold, b.hold, at)
	}
	for i := range b.cols {
		v := &b.cols[i]
		if v.len() == 0 {
			continue // a list that only a subquery reads
		}
		switch v.typ {
		case typeFloat:
			v.floats = pickInto(&v.ownFloats, v.floats, at)
		case typeText:
			v.texts = pickInto(&v.ownTexts, v.texts, at)
		case typeList:
			v.lists = pickInto(&v.lists, v.lists, at)
		default:
			v.ints = pickInto(&v.ownInts, v.ints, at)
		}
		if v.nulls != nil {
			v.nulls = pickInto(&v.ownNulls, v.nulls, at)
		}
	}
	b.n = len(at)
}

// pickInto copies the elements at ascending positions to own, which may be from itself.
func pickInto[T any](own *[]T, from []T, at []int32) []T {
	to := *own
	if cap(to) < len(at) {
		to = make([]T, len(at), max(len(at), 2*cap(to)))
	}
	to = to[:len(at)]
	for k, i := range at {
		to[k] = from[i]
	}
	*own = to
	return to
}
