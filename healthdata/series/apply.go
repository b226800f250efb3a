package series

import "bytes"

// Change is what a store has to write to the body of a series. Drop first, then put;
// both together with the removal of the pending segments that took part.
type Change struct {
	// Put are chunks to insert, or to replace where one with the same Start exists.
	Put []Chunk
	// Drop are the Starts of chunks to delete. None of them is in Put.
	Drop []int64
	// Outcome says what became of the incoming samples.
	Outcome Outcome
}

// Empty says that the body stays as it is.
func (c *Change) Empty() bool { return len(c.Put) == 0 && len(c.Drop) == 0 }

// Apply merges in into a series. old are the chunks of its body that take part,
// ascending by Start and without overlap, and pending the segments of its log that take
// part, in order of arrival; [Reach] says which. Pending wins over old, in over both.
// Chunks of old that get no sample are neither decoded nor written. in may be nil.
//
// The errors: Invalid for an in that [Block.Validate] refuses, and for chunks out of
// order; [ErrCorrupt].
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

// Fold is [Apply] without new samples: it moves the pending segments into the body.
func Fold(old []Chunk, pending []Segment, span Span) (Change, error) {
	return Apply(old, pending, nil, span)
}

// Delete removes the samples from r.From (inclusive) to r.To (exclusive), and folds the
// pending segments in. Arguments and errors are those of [Apply]; for [Reach], want is
// r. Nothing of the range is left in the change; the store forgets it by writing the
// change and deleting the segments that took part.
func Delete(old []Chunk, pending []Segment, r Range, span Span) (Change, error) {
	var w writer
	if err := w.open(old, pending); err != nil {
		return Change{}, err
	}
	outside := func(t []int64) func(int) bool {
		return func(i int) bool { return t[i] < r.From || t[i] >= r.To }
	}
	var kept Block
	w.log.Keep(&kept, outside(w.log.Time))
	w.log = kept
	var trimmed []Chunk
	for i := range old {
		c := &old[i]
		if !c.Overlaps(r.From, r.To) {
			trimmed = append(trimmed, *c)
			continue
		}
		if c.Start >= r.From && c.Stop < r.To {
			continue
		}
		if err := c.Decode(&w.old); err != nil {
			return Change{}, err
		}
		var rest Block
		w.old.Keep(&rest, outside(w.old.Time))
		var err error
		if trimmed, err = w.cut(trimmed, &rest, span); err != nil {
			return Change{}, err
		}
	}
	body, _, err := w.rebuild(trimmed, &Block{}, span)
	if err != nil {
		return Change{}, err
	}
	return changes(old, body), nil
}

// Compare says what would become of in, without writing anything: for a store that
// appends a segment and wants to tell what was new. old are the chunks and pending the
// segments that overlap in, with their data. The errors are those of [Apply].
func Compare(old []Chunk, pending []Segment, in *Block) (Outcome, error) {
	if err := in.Validate(); err != nil {
		return Outcome{}, err
	}
	w := writer{dry: true}
	if err := w.open(old, pending); err != nil {
		return Outcome{}, err
	}
	_, o, err := w.rebuild(old, in, PerSecond) // any grid will do; nothing is cut
	return o, err
}

// writer holds the blocks that a change is worked out with.
type writer struct {
	log                Block // the pending segments, merged
	old, folded, fresh Block
	dry                bool // only the outcome is wanted
}

func (w *writer) open(old []Chunk, pending []Segment) error {
	if err := inOrder(old); err != nil {
		return err
	}
	return mergeLog(&w.log, &w.old, &w.folded, pending)
}

// mergeLog fills log with pending, later ones winning. The other blocks are scratch.
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
	log.tidy()
	return nil
}

// put merges what arrived later into b; spare is scratch. A log mostly ascends, and then
// nothing that is there is moved.
func (b *Block) put(later, spare *Block) {
	if n := b.Len(); n == 0 || later.Len() > 0 && b.Time[n-1] < later.Time[0] {
		b.take(&cursor{b: later}, later.Len())
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

// rebuild returns the body of a series after log and in went into old.
func (w *writer) rebuild(old []Chunk, in *Block, span Span) (body []Chunk, o Outcome, err error) {
	o.States = make([]State, 0, in.Len())
	li, ii := 0, 0 // what of log and in is done
	next := 0      // what of old is done
	for li < w.log.Len() || ii < in.Len() {
		t := MaxTime
		if li < w.log.Len() {
			t = w.log.Time[li]
		}
		if ii < in.Len() {
			t = min(t, in.Time[ii])
		}
		target, until := place(old, next, t, span)
		if target < 0 {
			// A cell without a chunk; those before it are done.
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
		switch {
		case w.dry:
			continue
		case target >= 0 && folded.Idle() && merged.Idle():
			body = append(body, old[target])
			continue
		}
		if body, err = w.cut(body, now, span); err != nil {
			return nil, o, err
		}
	}
	return append(body, old[next:]...), o, nil
}

// place says where a sample at t belongs: into chunk target of old, or into none (-1),
// and until what time (exclusive) the samples behind it belong to the same place.
// A chunk owns its own stretch, what follows in the cell of its end up to the next
// chunk, and what precedes it in the cell of its start unless the chunk before owns
// that. Chunks before next are done and own nothing.
func place(old []Chunk, next int, t int64, span Span) (target int, until int64) {
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

// cut encodes b into chunks, along the grid and into equal parts where a cell is too
// full, and appends them to body.
func (w *writer) cut(body []Chunk, b *Block, span Span) ([]Chunk, error) {
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

// changes compares two bodies.
func changes(old, body []Chunk) Change {
	var c Change
	i := 0
	for k := range body {
		for i < len(old) && old[i].Start < body[k].Start {
			c.Drop = append(c.Drop, old[i].Start)
			i++
		}
		if i < len(old) && old[i].Start == body[k].Start {
			// The header follows from the data.
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
