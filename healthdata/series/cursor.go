package series

// cursor is a position in a block with the run of the sample there, so that samples are copied without a search
// for their attributes.
type cursor struct {
	b    *Block
	i    int // position of the next sample
	run  int // index of the run with the next sample
	used int // number of samples of that run before the next one
}

func (c *cursor) attrs() *Attrs { return &c.b.Runs[c.run].Attrs }

func (c *cursor) remainingInRun() int { return c.b.Runs[c.run].N - c.used }

// skip moves the cursor by n samples.
func (c *cursor) skip(n int) {
	c.i += n
	c.used += n
	for c.run < len(c.b.Runs) && c.used >= c.b.Runs[c.run].N {
		c.used -= c.b.Runs[c.run].N
		c.run++
	}
}

// appendFrom copies the next n samples of c to the end of b and moves the cursor.
func (b *Block) appendFrom(c *cursor, n int) {
	if n == 0 {
		return
	}
	have, i, j := len(b.Time), c.i, c.i+n
	b.Time = append(b.Time, c.b.Time[i:j]...)
	b.Value = append(b.Value, c.b.Value[i:j]...)
	switch {
	case c.b.End != nil:
		b.needEnds(have)
		b.End = append(b.End, c.b.End[i:j]...)
	case b.End != nil:
		b.End = appendZeros(b.End, n)
	}
	switch {
	case c.b.Value2 != nil:
		b.needSeconds(have)
		b.Value2 = append(b.Value2, c.b.Value2[i:j]...)
	case b.Value2 != nil:
		b.Value2 = appendZeros(b.Value2, n)
	}
	for n > 0 {
		k := min(n, c.remainingInRun())
		b.addRun(c.attrs(), k)
		c.skip(k)
		n -= k
	}
}

func appendZeros[T int64 | float64](s []T, n int) []T {
	k := len(s)
	s = append(s, make([]T, n)...)
	clear(s[k:])
	return s
}

// seek returns the first position from i on whose time is at or after t. It doubles its step, so that a near
// target is found quickly.
func seek(times []int64, i int, t int64) int {
	step := 1
	for i+step <= len(times) && times[i+step-1] < t {
		i += step
		step *= 2
	}
	lo, hi := i, min(i+step-1, len(times))
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if times[mid] < t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
