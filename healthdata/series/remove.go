package series

import "slices"

// Remove removes the samples at some times, ascending, and folds the pending segments in. It
// returns how many there were. Arguments and faults are those of [Apply]; for [Reach], want
// is [Span.Points] of the times. What was not there is no fault.
func Remove(old []Chunk, pending []Segment, times []int64, span Span) (Change, int, error) {
	if !ascending(times) {
		return Change{}, 0, invalid("times do not ascend, or leave the years 1 to 9999")
	}
	var w writer
	if err := w.open(old, pending); err != nil {
		return Change{}, 0, err
	}
	found := make([]bool, len(times))
	others := func(t []int64) func(int) bool {
		return func(i int) bool {
			k, gone := slices.BinarySearch(times, t[i])
			if gone {
				found[k] = true
			}
			return !gone
		}
	}
	var kept Block
	w.log.Keep(&kept, others(w.log.Time))
	w.log = kept
	var trimmed []Chunk
	for i := range old {
		c := &old[i]
		if k := seek(times, 0, c.Start); k == len(times) || times[k] > c.Stop {
			trimmed = append(trimmed, *c)
			continue
		}
		if err := c.Decode(&w.old); err != nil {
			return Change{}, 0, err
		}
		var rest Block
		w.old.Keep(&rest, others(w.old.Time))
		if rest.Len() == w.old.Len() {
			trimmed = append(trimmed, *c)
			continue
		}
		var err error
		if trimmed, err = w.cut(trimmed, &rest, span); err != nil {
			return Change{}, 0, err
		}
	}
	body, _, err := w.rebuild(trimmed, &Block{}, span)
	if err != nil {
		return Change{}, 0, err
	}
	n := 0
	for _, f := range found {
		if f {
			n++
		}
	}
	return changes(old, body), n, nil
}

// Points returns the cells of the grid that some times, ascending, lie in: ascending and
// apart from each other.
func (s Span) Points(times []int64) []Range { return s.Cells(&Block{Time: times}) }
