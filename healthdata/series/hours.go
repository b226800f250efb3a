package series

const hourMicros = int64(3_600_000_000)

// HourRun is a sequence of samples in one local hour with one rank.
type HourRun struct {
	// Hour is the number of hours since 1970 on the local clock of the samples.
	Hour int64
	// Last is the time of the last sample, in microseconds since 1970 UTC.
	Last int64
	Rank uint32
}

// HourScanner finds the local hours in which a series has samples. It decodes no values. The zero value is ready
// to use. It must not be used concurrently.
type HourScanner struct {
	layout layout
	times  []int64
	runs   Block // only the attributes
}

// Chunk visits the hours of a chunk, in order of time. An hour is visited several times if offsets or ranks
// change. The error is [ErrCorrupt].
func (s *HourScanner) Chunk(c *Chunk, visit func(HourRun)) error {
	l := &s.layout
	if err := l.read(c.Data); err != nil {
		return err
	}
	k := clock{n: l.n}
	var ok bool
	if k.start, k.step, ok = l.regular(); !ok {
		s.times = grown(s.times, l.n, l.n)
		if err := l.decodeTimes(s.times); err != nil {
			return err
		}
		k.times = s.times
	}
	if l.n != c.N || k.at(0) != c.Start || k.at(l.n-1) != c.Stop {
		return corrupt("header of another chunk")
	}
	if c.OneOffset && c.MaxRank == 0 {
		k.hours(0, l.n, &Attrs{Offset: c.Offset}, visit)
		return nil
	}
	if err := decodeAttrs(&s.runs, l.attrs, l.n); err != nil {
		return err
	}
	k.runs(s.runs.Runs, visit)
	return nil
}

// Block visits the hours of the samples of a block. The block must be valid.
func (s *HourScanner) Block(b *Block, visit func(HourRun)) {
	k := clock{n: b.Len(), times: b.Time}
	k.runs(b.Runs, visit)
}

func (k *clock) runs(runs []Run, visit func(HourRun)) {
	at := 0
	for i := range runs {
		k.hours(at, at+runs[i].N, &runs[i].Attrs, visit)
		at += runs[i].N
	}
}

// hours visits the hours of the samples between two positions.
func (k *clock) hours(from, to int, a *Attrs, visit func(HourRun)) {
	shift := int64(a.Offset) * 1_000_000
	for i, run := from, 0; i < to; {
		at := k.at(i) + shift
		hour := at / hourMicros
		if at%hourMicros < 0 {
			hour--
		}
		j := min(k.firstAt(i, run, (hour+1)*hourMicros-shift), to)
		visit(HourRun{hour, k.at(j - 1), a.Rank})
		i, run = j, j-i
	}
}
