package series

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/healthlab-dev/healthlab"
)

const (
	// MinTime is the earliest time and end that a sample can have: the beginning of
	// year 1, in microseconds since 1970.
	MinTime int64 = -62135596800000000
	// MaxTime is the latest time that a sample can have: the last microsecond of year 9999.
	MaxTime int64 = 253402300799999999

	// NoEnd is the end of a sample without an end. It is zero, so that a Sample literal need not set it. As a
	// consequence no interval can end at the first microsecond of 1970.
	NoEnd int64 = 0

	// MaxLen is the largest number of samples of an encoded block. [Decode] refuses more, so that a few
	// malicious bytes cannot allocate much memory.
	MaxLen = 1 << 16

	maxOffset = 24 * 60 * 60 // exclusive, in seconds
)

// Sample is one measurement. Inside of a program samples are passed as a [Block].
type Sample struct {
	healthlab.Private

	// Time is when the sample was measured, or when the interval began, in microseconds since 1970 UTC. It
	// identifies the sample in its series.
	Time int64
	// End is when the interval ended, or [NoEnd]. It may be before Time, because the value of the source is stored
	// unchanged.
	End int64
	// Value is the measurement in the unit of the series: finite.
	Value float64
	// Value2 is the second number of a pair (diastolic); zero if there is none.
	Value2 float64
	Attrs
}

// Run has the attributes of the next N samples of a block.
type Run struct {
	N int
	Attrs
}

// Block is a list of samples of one series as columns, in strictly ascending order of time. The zero value is an
// empty block. Callers may read and write the fields; a block that was written by hand should pass
// [Block.Validate].
type Block struct {
	healthlab.Private

	// Time is the time of each sample, in microseconds since 1970 UTC.
	Time []int64
	// End is the end of each sample, or [NoEnd]. It is nil if no sample has an end.
	End []int64
	// Value has the value of each sample.
	Value []float64
	// Value2 has the second numbers of pairs. It is nil if all are zero.
	Value2 []float64
	// Runs has the attributes. The N of all runs add up to the number of samples.
	Runs []Run

	// Buffers that Reset and Decode reuse.
	spareEnd []int64
	spareSec []float64
	dict     []Attrs
}

// Len returns the number of samples.
func (b *Block) Len() int { return len(b.Time) }

// Reset empties the block and keeps its memory.
func (b *Block) Reset() {
	b.Time, b.Value, b.Runs = b.Time[:0], b.Value[:0], b.Runs[:0]
	if b.End != nil {
		b.spareEnd, b.End = b.End[:0], nil
	}
	if b.Value2 != nil {
		b.spareSec, b.Value2 = b.Value2[:0], nil
	}
}

func (b *Block) grow(n int) {
	b.Time, b.Value = slices.Grow(b.Time, n), slices.Grow(b.Value, n)
}

// Append adds s after the last sample. It does not check the order; a [Builder] accepts samples in any order.
func (b *Block) Append(s Sample) {
	n := len(b.Time)
	b.Time = append(b.Time, s.Time)
	b.Value = append(b.Value, s.Value)
	if s.End != NoEnd || b.End != nil {
		b.needEnds(n)
		b.End = append(b.End, s.End)
	}
	if math.Float64bits(s.Value2) != 0 || b.Value2 != nil {
		b.needSeconds(n)
		b.Value2 = append(b.Value2, s.Value2)
	}
	b.addRun(&s.Attrs, 1)
}

// At returns sample i. It searches for the attributes of the sample, so use [Block.All] to loop over all
// samples.
func (b *Block) At(i int) Sample {
	k := i
	for r := range b.Runs {
		if k -= b.Runs[r].N; k < 0 {
			return b.sample(i, r)
		}
	}
	panic("series: a sample outside its block, or runs that do not cover it")
}

// All yields the samples with their positions, in ascending order of time.
func (b *Block) All() iter.Seq2[int, Sample] {
	return func(yield func(int, Sample) bool) {
		i := 0
		for r := range b.Runs {
			for range b.Runs[r].N {
				if !yield(i, b.sample(i, r)) {
					return
				}
				i++
			}
		}
	}
}

// Search returns the position of the first sample at or after t, or Len if there is none.
func (b *Block) Search(t int64) int {
	return sort.Search(len(b.Time), func(i int) bool { return b.Time[i] >= t })
}

// Part returns the samples of the positions i (inclusive) to j (exclusive). The
// columns are shared with b; the runs are a copy.
func (b *Block) Part(i, j int) Block { return b.part(i, j, nil) }

// part is Part with a buffer for the runs.
func (b *Block) part(i, j int, runs []Run) Block {
	p := Block{Time: b.Time[i:j:j], Value: b.Value[i:j:j], Runs: runs}
	if b.End != nil {
		p.End = b.End[i:j:j]
	}
	if b.Value2 != nil {
		p.Value2 = b.Value2[i:j:j]
	}
	at := 0
	for r := range b.Runs {
		lo, hi := max(at, i), min(at+b.Runs[r].N, j)
		if lo < hi {
			p.Runs = append(p.Runs, Run{hi - lo, b.Runs[r].Attrs})
		}
		at += b.Runs[r].N
	}
	p.dropEmptyColumns()
	return p
}

// Keep fills dst, which must be another block, with the samples for whose position keep returns true.
func (b *Block) Keep(dst *Block, keep func(i int) bool) {
	dst.Reset()
	c := cursor{b: b}
	for i := 0; i < b.Len(); {
		if !keep(i) {
			c.skip(1)
			i++
			continue
		}
		j := i + 1
		for j < b.Len() && keep(j) {
			j++
		}
		dst.appendFrom(&c, j-i)
		if i = j; i < b.Len() {
			c.skip(1) // keep(j) returned false
			i++
		}
	}
	dst.dropEmptyColumns()
}

// Validate checks the conditions that every other function of the package requires: columns of one length, times
// strictly ascending and in bounds, ends in bounds, finite values, runs that cover all samples, offsets of less
// than a day. The error is [healthlab.Invalid]; it names the broken rule and no value.
func (b *Block) Validate() error {
	if err := b.validShape(); err != nil {
		return err
	}
	if !finite(b.Value) || !finite(b.Value2) {
		return errNotFinite
	}
	return nil
}

var errNotFinite = invalid("a value is not a finite number")

// validShape is Validate without the check of values.
func (b *Block) validShape() error {
	n := len(b.Time)
	switch {
	case len(b.Value) != n, b.End != nil && len(b.End) != n, b.Value2 != nil && len(b.Value2) != n:
		return invalid("columns differ in length")
	case !ascending(b.Time):
		return invalid("times do not ascend, or leave the years 1 to 9999")
	}
	for _, e := range b.End {
		if e < MinTime || e > MaxTime {
			return invalid("an end leaves the years 1 to 9999")
		}
	}
	covered := 0
	for r := range b.Runs {
		run := &b.Runs[r]
		if run.N < 1 || run.N > n-covered {
			return invalid("runs do not cover the samples")
		}
		if run.Offset <= -maxOffset || run.Offset >= maxOffset {
			return invalid("an offset is a day or more")
		}
		covered += run.N
	}
	if covered != n {
		return invalid("runs do not cover the samples")
	}
	return nil
}

func invalid(rule string) error { return fmt.Errorf("%w: %s", healthlab.Invalid, rule) }

// ascending reports whether times are strictly ascending between MinTime and MaxTime.
func ascending(t []int64) bool {
	if len(t) == 0 {
		return true
	}
	last := t[0]
	for _, x := range t[1:] {
		if x <= last {
			return false
		}
		last = x
	}
	return t[0] >= MinTime && last <= MaxTime
}

func finite(v []float64) bool {
	for _, x := range v {
		if x-x != 0 { // true for infinities and NaN
			return false
		}
	}
	return true
}

func (b *Block) sample(i, run int) Sample {
	s := Sample{Time: b.Time[i], Value: b.Value[i], Attrs: b.Runs[run].Attrs}
	if b.End != nil {
		s.End = b.End[i]
	}
	if b.Value2 != nil {
		s.Value2 = b.Value2[i]
	}
	return s
}

func (b *Block) needEnds(n int) {
	if b.End == nil {
		b.End = grown(b.spareEnd, n, n+1)
		clear(b.End)
	}
}

func (b *Block) needSeconds(n int) {
	if b.Value2 == nil {
		b.Value2 = grown(b.spareSec, n, n+1)
		clear(b.Value2)
	}
}

// addRun adds attributes for the next n samples.
func (b *Block) addRun(a *Attrs, n int) {
	if k := len(b.Runs) - 1; k >= 0 && b.Runs[k].Attrs == *a {
		b.Runs[k].N += n
		return
	}
	b.Runs = append(b.Runs, Run{n, *a})
}

// dropEmptyColumns removes empty columns, so that equal samples have equal blocks.
func (b *Block) dropEmptyColumns() {
	if b.End != nil && !slices.ContainsFunc(b.End, func(e int64) bool { return e != NoEnd }) {
		b.spareEnd, b.End = b.End[:0], nil
	}
	if b.Value2 != nil && !slices.ContainsFunc(b.Value2, func(v float64) bool { return math.Float64bits(v) != 0 }) {
		b.spareSec, b.Value2 = b.Value2[:0], nil
	}
}

func grown[T any](s []T, n, c int) []T {
	// The content is undefined, and never nil.
	if s == nil || cap(s) < c {
		return make([]T, n, max(c, 2*cap(s)))
	}
	return s[:n]
}
