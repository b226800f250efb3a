package series

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// Acc is the aggregate of the samples in a bucket of time. The zero value is an empty bucket.
type Acc struct {
	healthlab.Private

	// N is the number of samples.
	N int
	// Sum is the sum of the values; Min and Max are the extremes.
	Sum      Sum
	Min, Max float64
	// First and Last are the values at the earliest and the latest time, and FirstAt and LastAt those times on
	// the clock of the buckets: local if the buckets are. If two samples have one local time, because the clock
	// was set back, First is the one that was recorded first and Last the one that was recorded last.
	First, Last     float64
	FirstAt, LastAt int64
}

// Mean returns the mean of the values; 0 for an empty bucket.
func (a *Acc) Mean() float64 {
	if a.N == 0 {
		return 0
	}
	return a.Sum.over(float64(a.N)).Hi
}

// Add adds another bucket, whose samples are later, to combine the parts of a range.
func (a *Acc) Add(b *Acc) {
	if b.N > 0 {
		a.add(b.N, b.FirstAt, b.LastAt, &total{b.Sum, b.Min, b.Max, b.First, b.Last})
	}
}

func (a *Acc) add(n int, firstAt, lastAt int64, t *total) {
	if a.N == 0 {
		*a = Acc{
			N: n, Sum: t.sum, Min: t.min, Max: t.max, First: t.first, Last: t.last,
			FirstAt: firstAt, LastAt: lastAt,
		}
		return
	}
	a.N += n
	a.Sum = a.Sum.Plus(t.sum)
	if t.min < a.Min {
		a.Min = t.min
	}
	if t.max > a.Max {
		a.Max = t.max
	}
	if firstAt < a.FirstAt {
		a.First, a.FirstAt = t.first, firstAt
	}
	if lastAt >= a.LastAt {
		a.Last, a.LastAt = t.last, lastAt
	}
}

// addSample adds a sample with the value v at the time at. It is faster than computing a total for a few samples.
func (a *Acc) addSample(at int64, v float64) {
	if a.N == 0 {
		a.N, a.Sum.Hi = 1, v
		a.Min, a.Max, a.First, a.Last = v, v, v, v
		a.FirstAt, a.LastAt = at, at
		return
	}
	a.add(1, at, at, &total{Sum{v, 0}, v, v, v, v})
}

// Reduction describes the buckets and values to aggregate.
type Reduction struct {
	// Edges are the borders of the buckets, strictly ascending, at least two, in microseconds: bucket i holds
	// the samples from Edges[i] (inclusive) to Edges[i+1] (exclusive). Samples outside of all buckets are
	// ignored.
	Edges []int64
	// Local reports whether the edges are local times: a sample is in the bucket of its time plus its own
	// offset. Otherwise edges are instants.
	Local bool
	// Second aggregates Value2 instead of Value.
	Second bool
	// Filter keeps only values from AtLeast to AtMost, both inclusive.
	Filter          bool
	AtLeast, AtMost float64
}

// Reducer aggregates a series by buckets of time. It uses only the header of a chunk that lies in one bucket,
// adds stored integers without decoding if possible, and reuses its memory. Sums are exact to about twice the
// digits of a float64 (see [Sum]), so they do not depend on how a series is cut into chunks.
type Reducer struct {
	r       Reduction
	accs    []Acc
	bucket  int // the bucket of the last search, where the next one starts
	times   []int64
	values  []float64
	scratch Block
	layout  layout
}

// NewReducer returns a reducer with empty buckets. The error is Invalid: fewer than two edges, edges that do not
// ascend, or that leave the years 1 to 9999 by more than a day (for a bucket without end take MaxTime+1). The
// caller must not change the edges.
func NewReducer(r Reduction) (*Reducer, error) {
	if len(r.Edges) < 2 {
		return nil, invalid("a reduction needs two edges or more")
	}
	for i := 1; i < len(r.Edges); i++ {
		if r.Edges[i] <= r.Edges[i-1] {
			return nil, invalid("edges must ascend")
		}
	}
	if r.Edges[0] < MinTime-dayMicros || r.Edges[len(r.Edges)-1] > MaxTime+1+dayMicros {
		return nil, invalid("edges leave the years 1 to 9999 by more than a day")
	}
	return &Reducer{r: r, accs: make([]Acc, len(r.Edges)-1)}, nil
}

// Buckets returns one Acc per bucket, len(Edges)-1 of them. They belong to the reducer and change when samples
// are added.
func (r *Reducer) Buckets() []Acc { return r.accs }

// NeedsData reports whether [Reducer.Chunk] must decode the chunk. If not, its Data may be nil. A chunk that a pending
// segment overlaps must be read with a [Scanner] and added with [Reducer.Block].
func (r *Reducer) NeedsData(h *Header) bool {
	_, answered := r.headerSuffices(h)
	return !answered
}

// Chunk adds one chunk. The error is [ErrCorrupt].
func (r *Reducer) Chunk(c *Chunk) error {
	if bucket, ok := r.headerSuffices(&c.Header); ok {
		if bucket >= 0 {
			shift := r.shift(c.Offset)
			r.accs[bucket].add(c.N, c.Start+shift, c.Stop+shift, &total{c.Sum, c.Min, c.Max, c.First, c.Last})
		}
		return nil
	}
	if r.r.Local && !c.OneOffset {
		if err := c.Decode(&r.scratch); err != nil {
			return err
		}
		r.Block(&r.scratch)
		return nil
	}
	l := &r.layout // a local variable would be allocated on the heap
	if err := l.read(c.Data); err != nil {
		return err
	}
	if l.n != c.N {
		return corrupt("header of another chunk")
	}
	col, err := r.column(l)
	if err != nil {
		return err
	}
	var k clock
	if start, step, ok := l.regular(); ok {
		k = clock{n: l.n, start: start, step: step}
	} else {
		r.times = grown(r.times, l.n, l.n)
		if err := l.decodeTimes(r.times); err != nil {
			return err
		}
		k = clock{n: l.n, times: r.times}
	}
	r.add(k, col, r.shift(c.Offset))
	return nil
}

// Block adds the samples of a block. The block must be valid.
func (r *Reducer) Block(b *Block) {
	values := b.Value
	if r.r.Second {
		values = b.Value2
		if values == nil {
			r.values = grown(r.values, b.Len(), b.Len())
			clear(r.values)
			values = r.values
		}
	}
	if !r.r.Local {
		r.add(clock{n: b.Len(), times: b.Time}, column{floats: values}, 0)
		return
	}
	for at, i := 0, 0; i < len(b.Runs); {
		offset, to := b.Runs[i].Offset, at
		for i < len(b.Runs) && b.Runs[i].Offset == offset {
			to += b.Runs[i].N
			i++
		}
		r.add(clock{n: to - at, times: b.Time[at:to]}, column{floats: values[at:to]}, r.shift(offset))
		at = to
	}
}

func (r *Reducer) shift(offset int32) int64 {
	if r.r.Local {
		return int64(offset) * 1_000_000
	}
	return 0
}

// headerSuffices reports whether the header of a chunk is enough, and returns its bucket; -1 if it is in none.
func (r *Reducer) headerSuffices(h *Header) (bucket int, ok bool) {
	e := r.r.Edges
	start, stop := h.Start, h.Stop
	if r.r.Local {
		if !h.OneOffset {
			return -1, stop+dayMicros < e[0] || start-dayMicros >= e[len(e)-1]
		}
		start, stop = start+r.shift(h.Offset), stop+r.shift(h.Offset)
	}
	switch {
	case stop < e[0], start >= e[len(e)-1]:
		return -1, true
	case r.r.Second:
		return -1, false
	case r.r.Filter && (h.Max < r.r.AtLeast || h.Min > r.r.AtMost):
		return -1, true
	case r.r.Filter && (h.Min < r.r.AtLeast || h.Max > r.r.AtMost), start < e[0]:
		return -1, false
	}
	bucket = r.bucketAt(start)
	return bucket, stop < e[bucket+1]
}

// bucketAt returns the bucket of t, which must be between the first and the last edge. It starts at the last result.
func (r *Reducer) bucketAt(t int64) int {
	e := r.r.Edges
	b := r.bucket
	if t >= e[b] {
		b = seek(e, b, t+1) - 1
	} else {
		i, found := slices.BinarySearch(e[:b], t)
		if b = i; !found {
			b--
		}
	}
	r.bucket = b
	return b
}

// column has the values of samples as numbers or as stored integers.
type column struct {
	floats []float64
	ints   *numbers
}

func (c *column) at(i int) float64 {
	if c.ints != nil {
		return c.ints.value(c.ints.at(i))
	}
	return c.floats[i]
}

func (c *column) total(i, j int) total {
	if c.ints != nil {
		return c.ints.total(i, j)
	}
	return totalOf(c.floats[i:j])
}

// column returns the column to aggregate. Raw numbers are decoded, and all values if there is a filter.
func (r *Reducer) column(l *layout) (column, error) {
	ints := &l.values
	if r.r.Second {
		ints = &l.seconds // without second values they are zero
	}
	if ints.scale != rawScale && !r.r.Filter {
		return column{ints: ints}, nil
	}
	r.values = grown(r.values, l.n, l.n)
	if err := ints.decode(r.values, 0); err != nil {
		return column{}, err
	}
	return column{floats: r.values}, nil
}

// clock has the times of samples, as a list or, if times is nil, as n times with a constant interval.
type clock struct {
	n           int
	times       []int64
	start, step int64
}

func (k *clock) at(i int) int64 {
	if k.times != nil {
		return k.times[i]
	}
	return k.start + int64(i)*k.step
}

// firstAt returns the first position from i on whose time is at or after t. guess is the expected distance from i,
// usually the length of the last run; with a constant interval it is nearly always right.
func (k *clock) firstAt(i, guess int, t int64) int {
	if g := i + guess; g < k.n {
		if k.at(g) >= t && (guess == 0 || k.at(g-1) < t) {
			return g
		}
	}
	if k.times != nil {
		return seek(k.times, i, t)
	}
	if k.start+int64(i)*k.step >= t {
		return i
	}
	if k.step == 0 {
		return k.n
	}
	return min(k.n, int((t-k.start+k.step-1)/k.step))
}

// add adds a column to the buckets. shift is added to each time.
func (r *Reducer) add(k clock, c column, shift int64) {
	if r.r.Filter {
		k, c = r.filtered(k, c)
	}
	e := r.r.Edges
	i := k.firstAt(0, 0, e[0]-shift)
	if i >= k.n || k.at(i)+shift >= e[len(e)-1] {
		return
	}
	b := r.bucketAt(k.at(i) + shift)
	// A decimal fraction is added with the part that float64 cannot hold; see Sum.
	whole := c.ints == nil || c.ints.scale == 0 && c.ints.width < 8
	for run := 0; ; {
		j := k.firstAt(i, run, e[b+1]-shift)
		run = j - i
		switch {
		case run == 0:
		case run == 1 && whole:
			r.accs[b].addSample(k.at(i)+shift, c.at(i))
		default:
			t := c.total(i, j)
			r.accs[b].add(run, k.at(i)+shift, k.at(j-1)+shift, &t)
		}
		if i = j; i >= k.n {
			break
		}
		if b++; b == len(r.accs) {
			break
		}
		if k.at(i)+shift >= e[b+1] { // the bucket is empty, or several are
			if k.at(i)+shift >= e[len(e)-1] {
				break
			}
			r.bucket = b
			b = r.bucketAt(k.at(i) + shift)
		}
	}
	r.bucket = min(b, len(r.accs)-1)
}

// filtered returns the samples whose values pass the filter.
func (r *Reducer) filtered(k clock, c column) (clock, column) {
	lo, hi := r.r.AtLeast, r.r.AtMost
	times := grown(r.times, k.n, k.n)
	values := grown(r.values, k.n, k.n)
	n := 0
	for i, v := range c.floats {
		// The value is always written and only counted if it passes. That avoids a branch that is hard to
		// predict.
		values[n], times[n] = v, k.at(i)
		if v >= lo && v <= hi {
			n++
		}
	}
	r.times, r.values = times, values
	return clock{n: n, times: times[:n:n]}, column{floats: values[:n]}
}
