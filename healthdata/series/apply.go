package series

import "bytes"

// Change is what a store must write to the stored chunks of a series: first delete Drop, then write Put, in one
// transaction with the deletion of the merged segments.
type Change struct {
	// Put are chunks to insert, or to replace if a chunk with the same Start exists.
	Put []Chunk
	// Drop are the Starts of chunks to delete. Put has none of them.
	Drop []int64
	// Outcome is the effect on the incoming samples.
	Outcome Outcome
}

// Apply merges the samples of in into a series. old are the affected chunks of its body, ascending by Start and without
// overlap. pending are the affected segments, which were appended and not merged yet, in order of arrival. [Reach]
// returns which ones are affected. A pending sample replaces one of old with the same time, and one of in replaces
// both. Chunks of old without a new sample are neither decoded nor written. in may be nil.
//
// It returns Invalid for an in that [Block.Validate] refuses and for chunks out of order, and [ErrCorrupt].
func Apply(old []Chunk, pending []Segment, in *Block, span Span) (Change, error) {
	if in == nil {
		in = &Block{}
	} else if err := in.Validate(); err != nil {
		return Change{}, err
	}
	var w writer
	if err := w.open(old, pending); err != nil {
		return Change{}, err
	}
	body, outcome, err := w.rebuild(old, in, span)
	if err != nil {
		return Change{}, err
	}
	c := changes(old, body)
	c.Outcome = outcome
	return c, nil
}

// writer has the buffers for computing a change.
type writer struct {
	log                Block // the pending segments, merged
	old, folded, fresh Block
}

func (w *writer) open(old []Chunk, pending []Segment) error {
	if err := inOrder(old); err != nil {
		return err
	}
	return mergeLog(&w.log, &w.old, &w.folded, pending)
}

// mergeLog fills log with the samples of pending; later segments win. The other blocks are buffers.
func mergeLog(log, one, other *Block, pending []Segment) error {
	log.Reset()
	n := 0
	for i := range pending {
		n += pending[i].N
	}
	log.grow(n)
	for i := range pending {
		if err := pending[i].Decode(one); err != nil {
			return err
		}
		log.put(one, other)
	}
	log.dropEmptyColumns()
	return nil
}

// put merges later samples into b; spare is a buffer. If all samples are later than those of b, none of b is
// moved.
func (b *Block) put(later, spare *Block) {
	if n := b.Len(); n == 0 || later.Len() > 0 && b.Time[n-1] < later.Time[0] {
		b.appendFrom(&cursor{b: later}, later.Len())
		return
	}
	var o Outcome
	merge(spare, b, later, &o)
	*b, *spare = *spare, *b
}

func inOrder(chunks []Chunk) error {
	for i := 1; i < len(chunks); i++ {
		if chunks[i].Start <= chunks[i-1].Stop {
			return invalid("chunks must ascend and not overlap")
		}
	}
	return nil
}

// rebuild returns the chunks of a series after the pending segments (w.log) and then in were merged into old.
func (w *writer) rebuild(old []Chunk, in *Block, span Span) (body []Chunk, o Outcome, err error) {
	o.States = make([]State, 0, in.Len())
	li, ii := 0, 0 // positions in log and in
	next := 0      // position in old
	for li < w.log.Len() || ii < in.Len() {
		t := MaxTime
		if li < w.log.Len() {
			t = w.log.Time[li]
		}
		if ii < in.Len() {
			t = min(t, in.Time[ii])
		}
		target, until := owningChunk(old, next, t, span)
		if target < 0 {
			// No chunk owns this time: earlier chunks get no more samples.
			for next < len(old) && old[next].Start < t {
				body = append(body, old[next])
				next++
			}
			w.old.Reset()
		} else {
			body = append(body, old[next:target]...)
			next = target + 1
			if err := old[target].Decode(&w.old); err != nil {
				return nil, o, err
			}
		}
		lj, ij := seek(w.log.Time, li, until), seek(in.Time, ii, until)
		part, fresh := w.log.Part(li, lj), in.Part(ii, ij)
		li, ii = lj, ij
		var folded, merged Outcome
		now := &w.old
		if part.Len() > 0 {
			merge(&w.folded, now, &part, &folded)
			now = &w.folded
		}
		if fresh.Len() > 0 {
			merge(&w.fresh, now, &fresh, &merged)
			now = &w.fresh
		}
		o.add(&merged)
		if target >= 0 && folded.Idle() && merged.Idle() {
			body = append(body, old[target])
			continue
		}
		if body, err = w.appendChunks(body, now, span); err != nil {
			return nil, o, err
		}
	}
	return append(body, old[next:]...), o, nil
}

// owningChunk returns the chunk of old that a sample at t is merged into, -1 for none, and the time until (exclusive)
// up to which later samples belong to the same chunk or cell. A chunk owns the time from its first to its last sample,
// the time after it in its last cell up to the next chunk, and the time before it in its first cell unless the previous
// chunk owns that. Chunks before next get no more samples and own nothing.
func owningChunk(old []Chunk, next int, t int64, span Span) (target int, until int64) {
	k := next
	for k < len(old) && old[k].Start <= t {
		k++
	}
	// old[k-1] begins at or before t, old[k] after it.
	if k > next {
		owned := span.Cell(old[k-1].Stop).To
		if k < len(old) {
			owned = min(owned, old[k].Start)
		}
		if t < owned || t <= old[k-1].Stop {
			return k - 1, max(owned, old[k-1].Stop+1)
		}
	}
	cell := span.Cell(t)
	if k == len(old) {
		return -1, cell.To
	}
	if old[k].Start < cell.To {
		until = span.Cell(old[k].Stop).To
		if k+1 < len(old) {
			until = min(until, old[k+1].Start)
		}
		return k, until
	}
	return -1, cell.To
}

// appendChunks encodes b into at least one chunk for each cell of span that has samples, and appends the chunks to
// body. A cell with more than MaxChunk samples is split into equal parts.
func (w *writer) appendChunks(body []Chunk, b *Block, span Span) ([]Chunk, error) {
	for i := 0; i < b.Len(); {
		j := seek(b.Time, i, span.Cell(b.Time[i]).To)
		parts := (j - i + MaxChunk - 1) / MaxChunk
		for ; parts > 0; parts-- {
			k := i + (j-i)/parts
			p := b.Part(i, k)
			c, err := NewChunk(&p)
			if err != nil {
				return nil, err
			}
			body = append(body, c)
			i = k
		}
	}
	return body, nil
}

// changes returns what a store must write to turn the chunks old into body.
func changes(old, body []Chunk) Change {
	var c Change
	i := 0
	for k := range body {
		for i < len(old) && old[i].Start < body[k].Start {
			c.Drop = append(c.Drop, old[i].Start)
			i++
		}
		if i < len(old) && old[i].Start == body[k].Start {
			// The header is derived from the data, so the data is enough to compare.
			if !bytes.Equal(old[i].Data, body[k].Data) {
				c.Put = append(c.Put, body[k])
			}
			i++
			continue
		}
		c.Put = append(c.Put, body[k])
	}
	for ; i < len(old); i++ {
		c.Drop = append(c.Drop, old[i].Start)
	}
	return c
}

func (o *Outcome) add(p *Outcome) {
	o.New += p.New
	o.Changed += p.Changed
	o.Same += p.Same
	o.States = append(o.States, p.States...)
}
