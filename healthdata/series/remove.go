package series

import "slices"

// Gone is a sample that was removed.
type Gone struct {
	Time int64
	Type string
}

// Remove removes the samples at some ascending times for whose attributes which returns true (nil: all), and merges the
// pending segments into the chunks of the series. It returns the removed samples, ascending. Arguments and errors are
// those of [Apply]; call [Reach] with [Span.Points] of the times as want. Missing samples are no error.
func Remove(old []Chunk, pending []Segment, times []int64, which func(*Attrs) bool, span Span) (Change, []Gone, error) {
	if !ascending(times) {
		return Change{}, nil, invalid("times do not ascend, or leave the years 1 to 9999")
	}
	var w writer
	if err := w.open(old, pending); err != nil {
		return Change{}, nil, err
	}
	const stays, goes = 1, 2
	outcomes := make([]byte, len(times)) // by time, for the latest sample: pending samples are visited first
	types := make([]string, len(times))
	others := func(b *Block) func(int) bool {
		c := cursor{b: b}
		return func(i int) bool {
			c.skip(i - c.i)
			k, named := slices.BinarySearch(times, b.Time[i])
			if !named {
				return true
			}
			if outcomes[k] == 0 {
				outcomes[k] = stays
				if a := c.attrs(); which == nil || which(a) {
					outcomes[k], types[k] = goes, a.Type
				}
			}
			return outcomes[k] == stays
		}
	}
	var kept Block
	w.log.Keep(&kept, others(&w.log))
	w.log = kept
	var trimmed []Chunk
	for i := range old {
		c := &old[i]
		if k := seek(times, 0, c.Start); k == len(times) || times[k] > c.Stop {
			trimmed = append(trimmed, *c)
			continue
		}
		if err := c.Decode(&w.old); err != nil {
			return Change{}, nil, err
		}
		var rest Block
		w.old.Keep(&rest, others(&w.old))
		if rest.Len() == w.old.Len() {
			trimmed = append(trimmed, *c)
			continue
		}
		var err error
		if trimmed, err = w.appendChunks(trimmed, &rest, span); err != nil {
			return Change{}, nil, err
		}
	}
	body, _, err := w.rebuild(trimmed, &Block{}, span)
	if err != nil {
		return Change{}, nil, err
	}
	var gone []Gone
	for k, f := range outcomes {
		if f == goes {
			gone = append(gone, Gone{times[k], types[k]})
		}
	}
	return changes(old, body), gone, nil
}

// Points returns the cells that contain the times, ascending, with adjacent cells joined. times must ascend.
func (s Span) Points(times []int64) []Range { return s.Cells(&Block{Time: times}) }
