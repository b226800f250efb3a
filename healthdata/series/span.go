package series

import (
	"slices"
	"time"
)

// Span is the length of the cells of time into which a series is cut, as a power of two of a day: 0 is one day, 2 four
// days, -4 an hour and a half. The cells begin at 1970 UTC, so every process cuts at the same times. A cell has one
// chunk, or several if it has too many samples. The zero value is good for most wearables. The span of a series may
// change; old chunks stay unchanged until samples are merged into them.
type Span int8

// Spans by the interval between samples, each for 2,000 to 8,000 samples in a cell.
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
	leastSpan = -10 // 84 seconds; a shorter cell is not a whole number of microseconds
	mostSpan  = 12
)

func (s Span) micros() int64 {
	s = min(max(s, leastSpan), mostSpan)
	if s < 0 {
		return dayMicros >> -s
	}
	return dayMicros << s
}

// Cell returns the cell that contains the time t, in microseconds since 1970.
func (s Span) Cell(t int64) Range {
	width := s.micros()
	from := t - ((t%width)+width)%width
	return Range{from, from + width}
}

// Cells returns the cells that contain samples of b, ascending, with adjacent cells joined.
func (s Span) Cells(b *Block) []Range {
	var out []Range
	for i := 0; i < b.Len(); {
		cell := s.Cell(b.Time[i])
		out = join(out, cell)
		i = seek(b.Time, i, cell.To)
	}
	return out
}

// Range is a range of time, From inclusive, To exclusive, in microseconds since 1970 UTC.
type Range struct {
	From, To int64
}

// join appends r, which must not begin before the last range begins.
func join(list []Range, r Range) []Range {
	if k := len(list) - 1; k >= 0 && r.From <= list[k].To {
		list[k].To = max(list[k].To, r.To)
		return list
	}
	return append(list, r)
}

// Reach returns what a change of a series affects: positions of pending segments (take, ascending) and ranges of the
// body's chunks (load, ascending and without overlap). The store must load every chunk that overlaps one of the ranges.
// want is what is going to be written: [Span.Cells] of a block, or [Span.Points] of the times of a [Remove]. If want is
// nil, all segments are affected.
//
// A segment is affected if it overlaps the written range; then everything that the segment overlaps is affected too. If
// it stayed pending, it would replace samples that were received later. Only the headers of pending are used.
func Reach(span Span, want []Range, pending []Segment) (take []int, load []Range) {
	for _, r := range want {
		r = Range{max(r.From, MinTime), min(r.To, MaxTime+1)} // want may exceed the range of valid times
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

// sorted sorts ranges and joins those that touch.
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
