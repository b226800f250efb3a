package aggregate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// runSamples computes a plan by reading every sample. If there are many samples, several goroutines each
// compute some of the buckets.
func (p *plan) runSamples(ctx context.Context, set *sampleSet, limit *Limits, workers int) (*grid, error) {
	windows := p.split(set, workers)
	if len(windows) < 2 {
		return p.runWindow(ctx, set, limit)
	}
	out := p.newGrid()
	err := inOrder(ctx, len(windows), workers, func(ctx context.Context, i int) (*grid, error) {
		part := *p
		part.window = windows[i]
		return part.runWindow(ctx, set, limit)
	}, func(_ int, g *grid) {
		out.append(g)
		if out.log == nil {
			out.log = g.log
		} else {
			out.log.join(g.log)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case out.n > limit.Rows:
		return nil, errRows(limit.Rows)
	}
	out.sort()
	return out, nil
}

// split cuts the window at bucket edges into parts with about the same number of samples, so that no group has
// rows in two parts. It returns nil if a split is not possible or saves no time.
func (p *plan) split(set *sampleSet, workers int) []window {
	if p.trunc < 0 || p.overTime() || workers < 2 {
		return nil
	}
	type load struct {
		at int64
		n  int
	}
	var loads []load
	total := 0
	for i := range set.list {
		s := &set.list[i]
		s.cut() // now, because several goroutines use the result
		for k := range s.Chunks {
			if from, to := local(&s.Chunks[k].Header); to >= p.window.from && from < p.window.to {
				loads = append(loads, load{max(from, p.window.from), s.Chunks[k].N})
				total += s.Chunks[k].N
			}
		}
	}
	if total < parallelFrom {
		return nil
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(a.at, b.at) })
	parts := 2 * workers
	out := []window{p.window}
	before := 0
	for _, l := range loads {
		if before += l.n; before < total/parts*len(out) {
			continue
		}
		last := &out[len(out)-1]
		if at := p.keys[p.trunc].period.truncate(l.at); at > last.from {
			out = append(out, window{at, last.to})
			last = &out[len(out)-2]
			last.to = at
		}
	}
	return out
}

func (p *plan) overTime() bool {
	return slices.ContainsFunc(p.aggs, func(a agg) bool { return a.overTime() })
}

// runWindow computes a plan for its window.
func (p *plan) runWindow(ctx context.Context, set *sampleSet, limit *Limits) (*grid, error) {
	out := newTaker(p, limit)
	reach := p.window
	contested := p.contested(set)
	var (
		merger *sampleMerger
		hours  *hourChoice
	)
	if len(contested) > 0 || p.merge && p.competing(set) {
		reach = p.readWindow()
		var err error
		if out, merger, hours, err = p.choose(ctx, set, contested, out); err != nil {
			return nil, err
		}
	}
	f := &filler{holds: p.overTime()}
	read := func(s *sampleSeries, w window, skip func(from, to int64) bool, take func(*vector.Batch) error) error {
		where := p.where
		if where != nil {
			var answer vector.Tri
			if where, answer = vector.Settle(where, p.known(s)); where == nil && answer != vector.IsTrue {
				return nil
			}
		}
		f.p = p.within(w)
		f.begin(s)
		give := func(b *vector.Batch) error {
			if where != nil {
				b.Keep(where)
			}
			return take(b)
		}
		err := set.eachBlock(ctx, s, w, skip, func(block *series.Block) error { return f.fill(block, give) })
		if err == nil {
			err = f.end(give)
		}
		return err
	}
	for _, run := range p.units(set) {
		if merger != nil && contested[p.unitOf(&set.list[run[0]])] {
			err := merger.mergeUnit(ctx, set, run, reach, func(s *sampleSeries, w window, take func(*vector.Batch) error) error { return read(s, w, nil, take) })
			if err != nil {
				return nil, err
			}
			continue
		}
		w := reach
		if !p.merge && hours == nil {
			w = p.window
		}
		for i := run[0]; i < run[1]; i++ {
			s := &set.list[i]
			var skip func(from, to int64) bool
			if g, ok := out.(*grouper); ok && g.byTime() && p.chosen && !p.fill && !f.holds {
				skip = func(from, to int64) bool { return g.isOutranked(s.source, s.resource, from, to) }
			}
			if hours != nil && !f.holds {
				skip = func(from, to int64) bool { return !hours.includes(s, from, to) }
			}
			if err := read(s, w, skip, out.consume); err != nil {
				return nil, err
			}
		}
	}
	g, err := out.grid()
	if err == nil && p.rows {
		g.sortRows()
	}
	return g, err
}

// choose returns a taker that passes on to out only the samples that count. If series can be chosen by the hour, it
// also returns the hourChoice; otherwise it also returns the sampleMerger, which decides by sample.
func (p *plan) choose(ctx context.Context, set *sampleSet, contested map[unit]bool, out taker) (taker, *sampleMerger, *hourChoice, error) {
	hours := p.hourChoiceOf(set, contested)
	if hours == nil {
		merger := newSampleMerger(p, set, out)
		return merger, merger, nil, nil
	}
	if err := hours.decide(ctx); err != nil {
		return nil, nil, nil, err
	}
	return &hourTaker{hours, out}, nil, hours, nil
}

// filler turns blocks of samples into batches.
type filler struct {
	p     *plan
	s     *sampleSeries
	b     vector.Batch
	holds bool

	elements vector.Batch
	waiting  series.Block // if hasWait: the block whose last sample's duration depends on the next block
	hasWait  bool
	previous int64 // time of the last sample whose duration is known, or noTime
}

const noTime int64 = -1 << 63

func (f *filler) begin(s *sampleSeries) {
	f.s, f.hasWait, f.previous = s, false, noTime
}

// fill passes the rows of a block to give. If durations are needed, it keeps the block and passes on the previous one,
// because the duration of the last sample depends on the next block.
func (f *filler) fill(block *series.Block, give func(*vector.Batch) error) error {
	if !f.holds {
		return f.emit(block, noTime, give)
	}
	if f.hasWait {
		next := noTime
		if f.inside(block.Time[0] + int64(block.Runs[0].Offset)*second) {
			next = block.Time[0]
		}
		if err := f.emit(&f.waiting, next, give); err != nil {
			return err
		}
	}
	block.Keep(&f.waiting, func(int) bool { return true })
	f.hasWait = true
	return nil
}

func (f *filler) inside(at int64) bool { return at >= f.p.window.from && at < f.p.window.to }

// end passes the rows that fill has kept to give.
func (f *filler) end(give func(*vector.Batch) error) error {
	if !f.hasWait {
		return nil
	}
	f.hasWait = false
	return f.emit(&f.waiting, noTime, give)
}

// emit passes the samples of a block that are in the window to give, as a batch. next is the time of the sample after
// the block, or noTime.
func (f *filler) emit(block *series.Block, next int64, give func(*vector.Batch) error) error {
	b := &f.b
	b.Reset(len(f.p.slots))
	b.N, b.Source, b.Resource, b.Serial = block.Len(), f.s.source, f.s.resource, f.s.serial
	b.Start, b.End = block.Time, block.End
	at := 0
	inside := true
	b.Index = slices.Grow(b.Index, b.N)[:b.N]
	for r := range block.Runs {
		run := &block.Runs[r]
		shift := int64(run.Offset) * second
		times := block.Time[at : at+run.N]
		inside = inside && f.inside(times[0]+shift) && f.inside(times[len(times)-1]+shift)
		index := b.Index[at : at+run.N]
		for i, t := range times {
			index[i] = t + shift
		}
		at += run.N
	}
	b.OwnIndex = b.Index
	f.ranks(block)
	if f.holds {
		f.setHoldTimes(block, next)
	}
	for k := range f.p.slots {
		f.column(k, block)
	}
	if !inside {
		b.Picks = b.Picks[:0]
		for i, t := range b.Index {
			if f.inside(t) {
				b.Picks = append(b.Picks, int32(i))
			}
		}
		b.Pick(b.Picks)
	}
	if b.N == 0 {
		return nil
	}
	return give(b)
}

// ranks sets the ranks of the batch from those of the block's samples, if they have any.
func (f *filler) ranks(block *series.Block) {
	if !slices.ContainsFunc(block.Runs, func(r series.Run) bool { return r.Rank != 0 }) {
		return
	}
	b := &f.b
	b.Rank = b.OwnRank[:0]
	for i := range block.Runs {
		for range block.Runs[i].N {
			b.Rank = append(b.Rank, block.Runs[i].Rank)
		}
	}
	b.OwnRank = b.Rank
}

// longest is the longest duration of a sample, and the duration of the only sample of a series in the window.
const longest = 15 * minute

// setHoldTimes sets the duration of each sample: the time until the next sample of its series in the window, but at
// most five times the distance from the sample before it, and at most 15 minutes. The duration of the last sample is
// the distance from the sample before it, with the same limits. next is the time of the sample after the block, or
// noTime.
func (f *filler) setHoldTimes(block *series.Block, next int64) {
	b := &f.b
	n := block.Len()
	b.Hold = slices.Grow(b.OwnHold[:0], n)[:n]
	b.OwnHold = b.Hold
	for i, t := range block.Time {
		b.Hold[i] = 0
		if !f.inside(b.Index[i]) {
			continue
		}
		until := next
		if i+1 < n {
			until = noTime
			if f.inside(b.Index[i+1]) {
				until = block.Time[i+1]
			}
		}
		held := longest
		if f.previous != noTime {
			held = min(5*(t-f.previous), longest)
		}
		switch {
		case until != noTime:
			held = min(held, until-t)
		case f.previous != noTime:
			held = min(held, t-f.previous)
		}
		b.Hold[i] = float64(held) / float64(second)
		f.previous = t
	}
}

// column fills column k of the batch with the values of a block.
func (f *filler) column(k int, block *series.Block) {
	s, v, n := &f.p.slots[k], &f.b.Cols[k], block.Len()
	v.Type = s.typ
	if s.sub != nil {
		list := &f.p.slots[s.sub.list]
		for i := range n {
			v.Add(s.sub.value(f.b.Cols[s.sub.list].Cell(i), list.fields, &f.elements))
		}
		return
	}
	if s.from == fromIndex {
		// A copy, because the selection of rows changes the batch's index in place.
		v.Ints = append(v.OwnInts[:0], f.b.Index...)
		v.OwnInts = v.Ints
		return
	}
	if s.resource != nil && s.resource != f.p.resources[f.s.resource] {
		v.AllNull(n)
		return
	}
	switch s.field {
	case fieldValue:
		v.Floats = block.Value
	case fieldSecond:
		v.Floats = block.Value2
		if v.Floats == nil {
			for range n {
				v.Add(vector.FloatCell(0))
			}
		}
	case fieldDuration:
		for i := range n {
			if block.End == nil || block.End[i] == series.NoEnd {
				v.Add(tables.Cell{})
				continue
			}
			v.Add(vector.FloatCell(float64(block.End[i]-block.Time[i]) / float64(second)))
		}
	default:
		for r := range block.Runs {
			v.Repeat(f.attr(s.field, &block.Runs[r].Attrs), block.Runs[r].N)
		}
	}
}

// attr returns an attribute that a run of samples shares.
func (f *filler) attr(field sampleField, a *series.Attrs) tables.Cell {
	switch field {
	case fieldProvider:
		return vector.TextCell(f.s.Key.Provider)
	case fieldSourceType:
		return vector.TextCell(string(f.s.Key.SourceType))
	case fieldApp:
		return vector.TextCell(a.App)
	case fieldWorkout:
		if a.Workout == uuid.Nil {
			return tables.Cell{}
		}
		return vector.TextCell(a.Workout.String())
	case fieldSport:
		return vector.TextCell(a.Sport)
	case fieldOffset:
		return vector.IntCell(int64(a.Offset))
	case fieldType:
		return vector.TextCell(a.Type)
	case fieldContent:
		return tables.Cell{Valid: true, Text: a.Text}
	case fieldTags:
		tags := healthdata.SplitTags(a.Tags)
		if tags == nil {
			return tables.Cell{}
		}
		list := make([][]tables.Cell, len(tags))
		for i, t := range tags {
			list[i] = []tables.Cell{{Valid: true, Text: strings.Clone(t)}}
		}
		return tables.Cell{Valid: true, List: list}
	case fieldLocation:
		return vector.TextCell(a.Location)
	case fieldIntensity:
		return vector.TextCell(a.Intensity)
	case fieldMode:
		return vector.TextCell(a.DeliveryMode)
	case fieldForm:
		return vector.TextCell(a.DeliveryForm)
	case fieldPurpose:
		return vector.TextCell(a.BolusPurpose)
	default:
		return tables.Cell{}
	}
}
