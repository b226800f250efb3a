package series

import "iter"

// Scanner reads a series, which is its chunks and its pending segments, in ascending order of time. Of several samples
// with one time it returns the latest. A Scanner reuses its memory. The zero value is ready to use.
type Scanner struct {
	log              Block
	one, other, part Block
	window           Block // shares columns with another block; never reset
}

// Blocks yields the samples of r, a block at a time. chunks are the merged chunks that overlap r, ascending by Start;
// pending are the segments that overlap r and are not merged yet, in order of arrival. Further chunks and segments are
// allowed. A block is valid until the next iteration, and must not be changed. The sequence ends after an error
// ([ErrCorrupt], or Invalid for chunks out of order).
func (s *Scanner) Blocks(chunks []Chunk, pending []Segment, r Range) iter.Seq2[*Block, error] {
	return func(yield func(*Block, error) bool) {
		err := s.walk(chunks, pending, r, func(b *Block) bool {
			b = s.clip(b, r)
			return b.Len() == 0 || yield(b, nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// Read appends up to limit samples of r to dst, in ascending order of time, and returns the From of the next
// page, or r.To if no sample is left. Arguments and errors are those of [Scanner.Blocks].
func (s *Scanner) Read(dst *Block, chunks []Chunk, pending []Segment, r Range, limit int) (next int64, err error) {
	for b, err := range s.Blocks(chunks, pending, r) {
		if err != nil {
			return r.From, err
		}
		if limit == 0 {
			return b.Time[0], nil
		}
		n := min(limit, b.Len())
		dst.appendFrom(&cursor{b: b}, n)
		if limit -= n; n < b.Len() {
			return b.Time[n], nil
		}
	}
	return r.To, nil
}

// walk calls block for the samples of chunks and pending segments, in order of time. A block may reach out of r. If
// block returns false, the walk ends without an error.
func (s *Scanner) walk(chunks []Chunk, pending []Segment, r Range, block func(*Block) bool) error {
	if err := inOrder(chunks); err != nil {
		return err
	}
	overlapping := pending[:0:0]
	for i := range pending {
		if pending[i].Overlaps(r.From, r.To) {
			overlapping = append(overlapping, pending[i])
		}
	}
	if err := mergeLog(&s.log, &s.one, &s.other, overlapping); err != nil {
		return err
	}
	times := s.log.Time
	i := seek(times, 0, r.From)
	end := seek(times, i, r.To)
	times = times[:end]
	for k := range chunks {
		c := &chunks[k]
		if !c.Overlaps(r.From, r.To) {
			continue
		}
		j := seek(times, i, c.Start)
		if j > i {
			s.part = s.log.Part(i, j)
			if !block(&s.part) {
				return nil
			}
		}
		i = seek(times, j, c.Stop+1)
		if err := c.Decode(&s.one); err != nil {
			return err
		}
		if i == j {
			if !block(&s.one) {
				return nil
			}
			continue
		}
		s.part = s.log.Part(j, i)
		var o Outcome
		merge(&s.other, &s.one, &s.part, &o)
		if !block(&s.other) {
			return nil
		}
	}
	if i < end {
		s.part = s.log.Part(i, end)
		block(&s.part)
	}
	return nil
}

// clip returns the samples of b inside r: b itself, or a part of it.
func (s *Scanner) clip(b *Block, r Range) *Block {
	n := b.Len()
	if n == 0 || b.Time[0] >= r.From && b.Time[n-1] < r.To {
		return b
	}
	i := b.Search(r.From)
	s.window = b.part(i, max(i, b.Search(r.To)), s.window.Runs[:0])
	return &s.window
}
