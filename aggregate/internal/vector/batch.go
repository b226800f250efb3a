package vector

import "github.com/healthlab-dev/healthlab/healthdata/tables"

// Batch is a set of rows of one source, stored as columns.
type Batch struct {
	N     int
	Index []int64 // the index of each row, in microseconds since 1970: local time, but UTC for a profile
	Cols  []Vec   // by number of the column in the plan

	Source   int // rank of the source in the order of preference
	Resource int // index in the plan's resources; 0 for summaries
	Serial   int // number of the series, from 1; 0 for none. Rows of one series with the same index are in order of time
	Start    []int64
	End      []int64   // end of each sample, in UTC; nil if no sample has an end
	Rank     []uint32  // series.Attrs.Rank of each sample; nil if all are 0
	Hold     []float64 // duration of each sample in seconds, if the plan needs durations

	OwnIndex, ownStart, ownEnd []int64
	OwnRank                    []uint32
	OwnHold                    []float64
	tris                       [][]Tri
	Picks                      []int32
}

// Reset empties the batch for rows of the given columns, and reuses its memory.
func (b *Batch) Reset(cols int) {
	for len(b.Cols) < cols {
		b.Cols = append(b.Cols, Vec{})
	}
	b.Cols = b.Cols[:cols]
	for i := range b.Cols {
		b.Cols[i].reset()
	}
	b.N, b.Index, b.Start, b.End, b.Rank, b.Hold = 0, b.OwnIndex[:0], nil, nil, nil, nil
}

// SetLen sets the number of rows of a batch without an index.
func (b *Batch) SetLen(n int) {
	b.N = n
	for len(b.Index) < n {
		b.Index = append(b.Index, 0)
	}
	b.OwnIndex = b.Index
}

// Scratch returns memory for the results of a filter, one for each row. The caller returns it with Done.
func (b *Batch) Scratch() []Tri {
	if k := len(b.tris) - 1; k >= 0 && cap(b.tris[k]) >= b.N {
		t := b.tris[k][:b.N]
		b.tris = b.tris[:k]
		return t
	}
	return make([]Tri, b.N)
}

// Done makes memory from Scratch available to the next Scratch.
func (b *Batch) Done(t []Tri) { b.tris = append(b.tris, t) }

// Keep removes the rows for which the filter is not true.
func (b *Batch) Keep(f Filter) {
	t := b.Scratch()
	defer b.Done(t)
	f.Eval(b, t)
	b.Picks = b.Picks[:0]
	for i, x := range t {
		if x == IsTrue {
			b.Picks = append(b.Picks, int32(i))
		}
	}
	b.Pick(b.Picks)
}

// Pick removes all rows except those at the positions in at, which are ascending. Columns that share memory with
// another owner are copied.
func (b *Batch) Pick(at []int32) {
	if len(at) == b.N {
		return
	}
	b.Index = pickInto(&b.OwnIndex, b.Index, at)
	if b.Start != nil {
		b.Start = pickInto(&b.ownStart, b.Start, at)
	}
	if b.End != nil {
		b.End = pickInto(&b.ownEnd, b.End, at)
	}
	if b.Rank != nil {
		b.Rank = pickInto(&b.OwnRank, b.Rank, at)
	}
	if b.Hold != nil {
		b.Hold = pickInto(&b.OwnHold, b.Hold, at)
	}
	for i := range b.Cols {
		v := &b.Cols[i]
		if v.Len() == 0 {
			continue // a list that only a subquery reads
		}
		switch v.Type {
		case tables.TypeFloat64:
			v.Floats = pickInto(&v.OwnFloats, v.Floats, at)
		case tables.TypeString:
			v.Texts = pickInto(&v.ownTexts, v.Texts, at)
		case tables.TypeList:
			v.lists = pickInto(&v.lists, v.lists, at)
		default:
			v.Ints = pickInto(&v.OwnInts, v.Ints, at)
		}
		if v.Nulls != nil {
			v.Nulls = pickInto(&v.ownNulls, v.Nulls, at)
		}
	}
	b.N = len(at)
}

// pickInto copies the elements at ascending positions of from to own; both may be the same slice.
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
