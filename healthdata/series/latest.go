package series

// Latest fills dst with the samples of several blocks, one for each origin of a source. Of samples with one time
// it takes the one that was received last, which has the greatest [Attrs.Rank]; of equal ranks the one of the
// first block. dst must not be one of the blocks; its memory is reused.
func Latest(dst *Block, blocks ...*Block) {
	dst.Reset()
	cursors := make([]cursor, len(blocks))
	for i, b := range blocks {
		cursors[i].b = b
	}
	for {
		var best *cursor
		for i := range cursors {
			c := &cursors[i]
			if c.i == c.b.Len() {
				continue
			}
			if best == nil || c.time() < best.time() || c.time() == best.time() && c.attrs().Rank > best.attrs().Rank {
				best = c
			}
		}
		if best == nil {
			break
		}
		at := best.time()
		dst.appendFrom(best, 1)
		for i := range cursors {
			if c := &cursors[i]; c.i < c.b.Len() && c.time() == at {
				c.skip(1)
			}
		}
	}
	dst.dropEmptyColumns()
}

func (c *cursor) time() int64 { return c.b.Time[c.i] }
