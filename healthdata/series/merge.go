package series

import "math"

// State is the effect of merging one sample.
type State uint8

const (
	// Same means that the series already had exactly this sample.
	Same State = iota
	// New means that the series had no sample at this time.
	New
	// Changed means that the sample replaced another one of this time.
	Changed
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case New:
		return "new"
	case Changed:
		return "changed"
	default:
		return "same"
	}
}

// Outcome is the effect of a merge. The zero value is that of merging no sample.
type Outcome struct {
	// New, Changed and Same count the incoming samples. Their sum is the number of incoming samples.
	New, Changed, Same int
	// States has one entry per incoming sample, in their order.
	States []State
}

// Idle reports whether the merge changed nothing.
func (o *Outcome) Idle() bool { return o.New == 0 && o.Changed == 0 }

// Diff fills dst with the new and changed samples of in, the merged block, and returns for each whether it is
// new. dst must be another block.
func (o *Outcome) Diff(dst, in *Block) (isNew []bool) {
	in.Keep(dst, func(i int) bool { return o.States[i] != Same })
	isNew = make([]bool, 0, o.New+o.Changed)
	for _, s := range o.States {
		if s != Same {
			isNew = append(isNew, s == New)
		}
	}
	return isNew
}

// count records that the next n incoming samples have the state s.
func (o *Outcome) count(s State, n int) {
	switch s {
	case New:
		o.New += n
	case Changed:
		o.Changed += n
	default:
		o.Same += n
	}
	for range n {
		o.States = append(o.States, s)
	}
}

// merge fills dst with the samples of old and of in, and o with the outcome. If both have a sample at one time, that of
// in is used. Two samples are the same if their values (bit for bit), ends and attributes are equal. dst must be
// neither old nor in; its memory is reused. Both blocks must be valid.
//
// The result does not depend on how samples are split into batches.
func merge(dst, old, in *Block, o *Outcome) {
	dst.Reset()
	dst.grow(old.Len() + in.Len())
	co, ci := cursor{b: old}, cursor{b: in}
	for co.i < old.Len() && ci.i < in.Len() {
		switch to, ti := old.Time[co.i], in.Time[ci.i]; {
		case to < ti:
			dst.appendFrom(&co, seek(old.Time, co.i, ti)-co.i)
		case to > ti:
			n := seek(in.Time, ci.i, to) - ci.i
			o.count(New, n)
			dst.appendFrom(&ci, n)
		default:
			n := commonPrefix(old.Time[co.i:], in.Time[ci.i:])
			compare(&co, ci, n, o)
			dst.appendFrom(&ci, n)
		}
	}
	dst.appendFrom(&co, old.Len()-co.i)
	n := in.Len() - ci.i
	o.count(New, n)
	dst.appendFrom(&ci, n)
	dst.dropEmptyColumns()
}

// commonPrefix returns the number of equal times at the front of a and b.
func commonPrefix(a, b []int64) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// compare records the outcome of the next n samples of ci, whose times equal those of the next n samples of co,
// and moves co.
func compare(co *cursor, ci cursor, n int, o *Outcome) {
	for n > 0 {
		k := min(n, co.remainingInRun(), ci.remainingInRun())
		alike := *co.attrs() == *ci.attrs()
		for range k {
			s := Changed
			if alike && sameNumbers(co.b, co.i, ci.b, ci.i) {
				s = Same
			}
			o.count(s, 1)
			co.i++
			ci.i++
		}
		co.i -= k
		ci.i -= k
		co.skip(k)
		ci.skip(k)
		n -= k
	}
}

func sameNumbers(a *Block, i int, b *Block, j int) bool {
	return math.Float64bits(a.Value[i]) == math.Float64bits(b.Value[j]) &&
		a.endAt(i) == b.endAt(j) && a.secondAt(i) == b.secondAt(j)
}

func (b *Block) endAt(i int) int64 {
	if b.End == nil {
		return NoEnd
	}
	return b.End[i]
}

func (b *Block) secondAt(i int) uint64 {
	if b.Value2 == nil {
		return 0
	}
	return math.Float64bits(b.Value2[i])
}
