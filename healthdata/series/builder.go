package series

import "slices"

// Builder makes a [Block] from samples in any order. Of several samples with one time it keeps the one that was
// added last. The zero value is ready to use.
type Builder struct {
	raw      Block // in the order of arrival
	unsorted bool
	order    []int32
	out      Block
}

// Add takes one sample.
func (b *Builder) Add(s Sample) {
	if n := len(b.raw.Time); n > 0 && b.raw.Time[n-1] >= s.Time {
		b.unsorted = true
	}
	b.raw.Append(s)
}

// Len returns the number of added samples, including those with equal times.
func (b *Builder) Len() int { return b.raw.Len() }

// Block returns the samples in ascending order of time. The block belongs to the builder and is valid until the
// next call of Add. Values are not checked here; [Block.Validate] and [NewChunk] do that.
func (b *Builder) Block() *Block {
	if !b.unsorted {
		return &b.raw
	}
	t := b.raw.Time
	b.order = grown(b.order, len(t), len(t))
	for i := range b.order {
		b.order[i] = int32(i)
	}
	slices.SortFunc(b.order, func(i, j int32) int {
		switch {
		case t[i] < t[j]:
			return -1
		case t[i] > t[j]:
			return 1
		default:
			return int(i - j) // equal times stay in the order of arrival
		}
	})
	runs := b.runOf()
	b.out.Reset()
	for k, i := range b.order {
		if k+1 < len(b.order) && t[b.order[k+1]] == t[i] {
			continue // a later sample has the same time
		}
		b.out.Append(b.raw.sample(int(i), runs(int(i))))
	}
	b.out.dropEmptyColumns()
	return &b.out
}

// runOf returns a function that maps the position of a sample to the run of equal attributes in which the sample is.
func (b *Builder) runOf() func(int) int {
	ends := make([]int, len(b.raw.Runs))
	at := 0
	for r := range b.raw.Runs {
		at += b.raw.Runs[r].N
		ends[r] = at
	}
	return func(i int) int {
		r, found := slices.BinarySearch(ends, i)
		if found {
			r++ // ends of runs are exclusive
		}
		return r
	}
}
