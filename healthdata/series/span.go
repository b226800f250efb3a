package series

import (
	"slices"
	"time"
)

// Span is the length of the grid on which a series is cut into chunks, as a power of
// two of a day: 0 is one day, 2 four days, -4 an hour and a half. The grid starts at
// 1970 UTC, so every process cuts at the same places. The zero value suits most series
// that tick while worn: a cell that gets too full is split.
//
// A series may change its span; its old chunks stay as they are until something is
// merged into them.
type Span int8

// Spans by how often a series ticks, each for 2,000 to 8,000 samples in a cell.
const (
	PerSecond      Span = -4 // an hour and a half
	PerTenSeconds  Span = 0  // a day
	PerMinute      Span = 2  // four days
	PerFiveMinutes Span = 4  // sixteen days
	Sparse         Span = 6  // sixty-four days
)

// MaxChunk is the number of samples above which a chunk is split into equal parts.
const MaxChunk = 8192

const (
	dayMicros = int64(24 * time.Hour / time.Microsecond)
	leastSpan = -10 // 84 seconds; below it a cell is no whole number of microseconds
	mostSpan  = 12
)

// SpanFor returns the span for a series with a sample every so often: the longest with
// at most 6,000 samples in a cell, [Sparse] at most.
func SpanFor(every time.Duration) Span {
	for s := Sparse; s > leastSpan; s-- {
		if s.micros()/max(1, every.Microseconds()) <= 6000 {
			return s
		}
	}
	return leastSpan
}

func (s Span) micros() int64 {
	s = min(max(s, leastSpan), mostSpan)
	if s < 0 {
		return dayMicros >> -s
	}
	return dayMicros << s
}

// Cell returns the cell of the grid that holds the time t.
func (s Span) Cell(t int64) Range {
	width := s.micros()
	from := t - ((t%width)+width)%width
	return Range{from, from + width}
}

// Cells returns the cells that hold samples of b, ascending, neighbours joined.
func (s Span) Cells(b *Block) []Range {
	var out []Range
	for i := 0; i < b.Len(); {
		cell := s.Cell(b.Time[i])
		out = join(out, cell)
		i = seek(b.Time, i, cell.To)
	}
	return out
}

// Range is a stretch of time, From inclusive, To exclusive, in microseconds since 1970
// UTC.
type Range struct {
	From, To int64
}

// join appends r, which begins at or after the last range begins.
func join(list []Range, r Range) []Range {
	if k := len(list) - 1; k >= 0 && r.From <= list[k].To {
		list[k].To = max(list[k].To, r.To)
		return list
	}
	return append(list, r)
}

// Reach tells a store what takes part when it changes a series: which pending segments
// (positions in pending, ascending) and which ranges of its body (ascending, apart from
// each other; load every chunk that overlaps one). want is what is going to be written:
// [Span.Cells] of a block, or the range of a [Delete]. For a [Fold] of everything, want
// is nil: then all segments take part.
//
// A segment takes part if it overlaps what is written, and then what it overlaps takes
// part too. Left in the log it would be younger than the body and win over samples that
// came after it. Only the headers of pending are used.
func Reach(span Span, want []Range, pending []Segment) (take []int, load []Range) {
	for _, r := range want {
		r = Range{max(r.From, MinTime), min(r.To, MaxTime+1)} // any int64 is a bound
		if r.From < r.To {
			load = append(load, Range{span.Cell(r.From).From, span.Cell(r.To - 1).To})
		}
	}
	load = sorted(load)
	taken := make([]bool, len(pending))
	for again := true; again; {
		again = false
		for i := range pending {
			h := &pending[i].Header
			if taken[i] || want != nil && !slices.ContainsFunc(load, func(r Range) bool { return h.Overlaps(r.From, r.To) }) {
				continue
			}
			taken[i], again = true, true
			load = sorted(append(load, Range{span.Cell(h.Start).From, span.Cell(h.Stop).To}))
		}
	}
	for i, in := range taken {
		if in {
			take = append(take, i)
		}
	}
	return take, load
}

// sorted puts ranges in order and joins those that touch.
func sorted(list []Range) []Range {
	slices.SortFunc(list, func(a, b Range) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		default:
			return 0
		}
	})
	out := list[:0]
	for _, r := range list {
		out = join(out, r)
	}
	return out
}
