package aggregate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// A query over samples needs no row for each sample if its functions follow from the count, sum, extremes, first and
// last value of each bucket and source. It uses the headers of chunks where they are enough, adds stored integers
// without decoding where it can, and reads nothing of a source in buckets where a preferred source was chosen.

// bucketPlan is the plan of a query whose result follows from sums by bucket and series, so that it needs no row for
// each sample.
type bucketPlan struct {
	p        *plan
	set      *sampleSet
	columns  []sampleField   // fieldValue, fieldSecond: the columns to add up
	aggs     []int           // for each aggregate function, the index of its column in columns
	filters  []vector.Bounds // for each series, the bounds on its values
	leave    []bool          // for each series, whether the condition excludes it
	hours    *hourChoice     // chooses a series for each hour where series compete; nil if none compete
	lanes    []lane
	parallel int
	limit    int
	trace    *trace
}

// lane is the sources that compete for the same groups, such as two watches that count the same steps.
type lane struct {
	keys    []tables.Cell // the value of each group key; the cell of the date truncation is empty
	sources []int         // indexes of the sources, the preferred first
}

// bucketPlanOf returns the bucket plan of a query plan. It returns false if the query needs a row for each sample.
func bucketPlanOf(p *plan, set *sampleSet) (*bucketPlan, bool) {
	if p.rows || p.fill || len(p.resources) != 1 {
		return nil, false
	}
	b := &bucketPlan{p: p, set: set}
	if contested := p.contested(set); p.merge && p.competing(set) || len(contested) > 0 {
		if b.hours = p.hourChoiceOf(set, contested); b.hours == nil {
			return nil, false
		}
	}
	for i := range p.aggs {
		n, ok := b.column(&p.aggs[i])
		if !ok {
			return nil, false
		}
		b.aggs = append(b.aggs, n)
	}
	for _, k := range p.keys {
		switch k.kind {
		case keyTrunc:
		case keySlot:
			if f := p.slots[k.slot].field; f != fieldProvider && f != fieldSourceType {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	if !b.readFilters() {
		return nil, false
	}
	if len(b.columns) == 0 {
		b.columns = []sampleField{fieldValue} // all functions are counts
	}
	b.makeLanes()
	return b, true
}

func (b *bucketPlan) column(a *agg) (n int, ok bool) {
	s := &b.p.slots[a.slot]
	switch a.fn {
	case Count, Sum, Mean, Min, Max, Oldest, Newest:
	default:
		return 0, false
	}
	field := s.field
	switch {
	case s.from == fromIndex && a.fn == Count:
		field = fieldValue // every sample has one
	case s.from != fromSample || s.typ != typeFloat || field != fieldValue && field != fieldSecond:
		return 0, false
	}
	if n = slices.Index(b.columns, field); n < 0 {
		n = len(b.columns)
		b.columns = append(b.columns, field)
	}
	return n, true
}

// readFilters applies the condition to each series: it excludes the series or bounds its values. It returns
// false for a condition on single samples, which a bucketPlan cannot answer.
func (b *bucketPlan) readFilters() bool {
	b.filters, b.leave = make([]vector.Bounds, len(b.set.list)), make([]bool, len(b.set.list))
	for i := range b.set.list {
		b.filters[i].Slot = -1
		if b.p.where == nil {
			continue
		}
		rest, answer := vector.Settle(b.p.where, b.p.known(&b.set.list[i]))
		if rest == nil {
			b.leave[i] = answer != vector.IsTrue
			continue
		}
		r, ok := vector.RangeOf(rest, func(slot int) bool { return b.p.slots[slot].from == fromSample && b.p.slots[slot].typ == typeFloat })
		if !ok || len(b.columns) != 1 || b.p.slots[r.Slot].field != b.columns[0] {
			return false
		}
		b.filters[i], b.leave[i] = r, r.Nothing
	}
	return true
}

// makeLanes groups the sources that compete with each other into lanes.
func (b *bucketPlan) makeLanes() {
	for s, source := range b.set.sources {
		l := lane{keys: make([]tables.Cell, len(b.p.keys)), sources: []int{s}}
		for k, key := range b.p.keys {
			if key.kind != keySlot {
				continue
			}
			switch b.p.slots[key.slot].field {
			case fieldProvider:
				l.keys[k] = vector.TextCell(source.Provider)
			case fieldSourceType:
				l.keys[k] = vector.TextCell(string(source.Type))
			}
		}
		at := slices.IndexFunc(b.lanes, func(o lane) bool {
			return slices.EqualFunc(l.keys, o.keys, func(x, y tables.Cell) bool { return x.Text == y.Text && x.Valid == y.Valid })
		})
		if at < 0 {
			b.lanes = append(b.lanes, l)
			continue
		}
		b.lanes[at].sources = append(b.lanes[at].sources, s)
	}
}

// slabBuckets is the number of buckets that are computed at a time. It bounds the memory of a query over any time
// range.
const slabBuckets = 1 << 13

// run computes the result of the plan.
func (b *bucketPlan) run(ctx context.Context) (*grid, error) {
	if b.hours != nil {
		if err := b.hours.decide(ctx); err != nil {
			return nil, err
		}
	}
	out := b.p.newGrid()
	rest := b.p.window
	var edges, starts []int64
	for rest.from < rest.to {
		if b.p.trunc >= 0 {
			edges, starts, rest = b.p.keys[b.p.trunc].period.edges(edges[:0], starts[:0], rest, slabBuckets)
		} else {
			edges, starts, rest = []int64{rest.from, rest.to}, []int64{rest.from}, window{}
		}
		for i := range b.lanes {
			s := slab{b: b, lane: &b.lanes[i], edges: edges, starts: starts}
			if err := s.run(ctx); err != nil {
				return nil, err
			}
			if err := s.emit(out); err != nil {
				return nil, err
			}
		}
	}
	if !b.p.grouped && out.n == 0 {
		b.emptyRow(out)
	}
	out.sort()
	return out, nil
}

func (b *bucketPlan) emptyRow(out *grid) {
	for k, a := range b.p.aggs {
		out.aggs[k].v.Add(tables.Cell{Valid: a.fn == Count})
	}
	out.n = 1
}

// slab is a run of consecutive buckets that are computed together, for the sources of one lane.
type slab struct {
	b      *bucketPlan
	lane   *lane
	edges  []int64
	starts []int64

	accs   [][]series.Acc // by column and bucket: the sums of the chosen source, or of all sources if sources are merged
	winner []int32        // by bucket: the chosen source, -1 for none
	open   []int32        // for each bucket, the first bucket at or after it without a chosen source; set by findOpen
}

func (s *slab) run(ctx context.Context) error {
	n := len(s.starts)
	for i, source := range s.lane.sources {
		list := s.seriesOf(source)
		if len(list) == 0 {
			continue
		}
		accs, err := s.reduce(ctx, list)
		if err != nil {
			return err
		}
		if accs == nil {
			continue
		}
		if s.accs == nil {
			s.accs = accs
			s.winner = make([]int32, n)
			for k := range s.winner {
				s.winner[k] = -1
				if accs[0][k].N > 0 {
					s.winner[k] = int32(source)
				}
			}
		} else {
			s.join(accs, source)
		}
		if s.b.p.chosen && s.winner != nil && i+1 < len(s.lane.sources) && !s.findOpen() {
			return nil
		}
	}
	return nil
}

// join adds accs, the sums of another source by column and bucket. It adds all sums if sources are merged, else only
// those of buckets without a chosen source.
func (s *slab) join(accs [][]series.Acc, source int) {
	for k := range s.winner {
		if accs[0][k].N == 0 {
			continue
		}
		if s.winner[k] < 0 {
			s.winner[k] = int32(source)
		} else if s.b.p.chosen {
			continue
		}
		for c := range accs {
			addAcc(&s.accs[c][k], &accs[c][k])
		}
	}
}

// addAcc adds b to a. If the last values of a and b have the same time, a's value stays: the caller adds sources in
// order of preference, and the series of a source in the order of their keys.
func addAcc(a, b *series.Acc) {
	if a.N == 0 {
		*a = *b
		return
	}
	last, lastAt := a.Last, a.LastAt
	a.Add(b)
	if b.LastAt <= lastAt {
		a.Last, a.LastAt = last, lastAt
	}
}

// findOpen sets s.open, and reports whether there is a bucket without a chosen source.
func (s *slab) findOpen() bool {
	n := len(s.winner)
	if s.open == nil {
		s.open = make([]int32, n+1)
	}
	s.open[n] = int32(n)
	for k := n - 1; k >= 0; k-- {
		s.open[k] = s.open[k+1]
		if s.winner[k] < 0 {
			s.open[k] = int32(k)
		}
	}
	return int(s.open[0]) < n
}

// seriesOf returns the indexes of the series of a source, without the series that the condition excludes.
func (s *slab) seriesOf(source int) []int {
	var out []int
	for i := range s.b.set.list {
		if s.b.set.list[i].source == source && !s.b.leave[i] {
			out = append(out, i)
		}
	}
	return out
}

// reduce adds up the series of one source, by column and bucket. list has the indexes of the series. The result is nil
// if the method tasks returns no parts for any of them.
func (s *slab) reduce(ctx context.Context, list []int) ([][]series.Acc, error) {
	var total [][]series.Acc
	for _, i := range list {
		tasks, samples := s.tasks(&s.b.set.list[i])
		if len(tasks) == 0 {
			continue
		}
		for c := range s.b.columns {
			accs, err := s.reduceSeries(ctx, i, c, tasks, samples)
			if err != nil {
				return nil, err
			}
			if total == nil {
				total = make([][]series.Acc, len(s.b.columns))
			}
			if total[c] == nil {
				total[c] = accs
				continue
			}
			for k := range accs {
				if accs[k].N > 0 {
					addAcc(&total[c][k], &accs[k])
				}
			}
		}
	}
	return total, nil
}

// task is a part of a series and the range of buckets that its samples can be in.
type task struct {
	piece
	lo, hi int // buckets from lo to hi, hi not included
}

// tasks returns the parts of a series that have samples to add. samples is the number of their samples, not counting
// parts into which pending samples must be merged.
func (s *slab) tasks(sr *sampleSeries) (list []task, samples int) {
	margin := maxOffset.Microseconds()
	first, last := s.edges[0], s.edges[len(s.edges)-1]
	all := sr.cut()
	from, _ := slices.BinarySearchFunc(all, first-margin, func(p piece, t int64) int { return cmp.Compare(p.stop, t) })
	for _, p := range all[from:] {
		if p.start-margin >= last {
			break
		}
		t := task{piece: p, lo: len(s.starts)}
		if p.mixed {
			t.widen(s.edges, p.start-margin, p.stop+margin)
			list = t.appendTo(list)
			continue
		}
		begin := 0
		for i := range p.chunks {
			c := &p.chunks[i]
			from, to := local(&c.Header)
			if to >= first && from < last && !s.won(from, to) && s.b.hours.includes(sr, from, to) {
				t.widen(s.edges, from, to)
				samples += c.N
				continue
			}
			t.chunks = p.chunks[begin:i]
			list = t.appendTo(list)
			t, begin = task{lo: len(s.starts)}, i+1
		}
		t.chunks = p.chunks[begin:]
		list = t.appendTo(list)
	}
	return list, samples
}

func (t *task) appendTo(list []task) []task {
	if t.lo >= t.hi || !t.mixed && len(t.chunks) == 0 {
		return list
	}
	return append(list, *t)
}

// widen extends the bucket range of a task to include the buckets of the times from and to.
func (t *task) widen(edges []int64, from, to int64) {
	if to < edges[0] || from >= edges[len(edges)-1] {
		return
	}
	t.lo = min(t.lo, bucketOf(edges, from))
	t.hi = max(t.hi, bucketOf(edges, to)+1)
}

// bucketOf returns the index of the bucket with the time t: the first bucket for an earlier t, the last bucket for a
// later t. Bucket i lasts from edges[i] to edges[i+1].
func bucketOf(edges []int64, t int64) int {
	i, found := slices.BinarySearch(edges, t)
	if !found {
		i--
	}
	return min(max(i, 0), len(edges)-2)
}

func (s *slab) won(from, to int64) bool {
	if s.open == nil {
		return false
	}
	return int(s.open[bucketOf(s.edges, from)]) > bucketOf(s.edges, to)
}

// parallelFrom is the least number of samples of a series that are added up by several goroutines. Fewer samples are
// faster on one.
const parallelFrom = 1 << 20

// reduceSeries adds up the samples of series i by bucket. column is an index in columns, list has the parts of the
// series, and samples is the number that the method tasks returned with them.
func (s *slab) reduceSeries(ctx context.Context, i, column int, list []task, samples int) ([]series.Acc, error) {
	sr := &s.b.set.list[i]
	edges, buckets := s.contributingEdges(i)
	r := series.Reduction{Local: true, Second: s.b.columns[column] == fieldSecond, Edges: edges}
	if f := s.b.filters[i]; f.Slot >= 0 {
		r.Filter, r.AtLeast, r.AtMost = true, f.Least, f.Most
	}
	if samples < parallelFrom || s.b.parallel <= 1 {
		reducer, err := series.NewReducer(r)
		if err != nil {
			return nil, err
		}
		for k := range list {
			if err := s.b.reducePiece(ctx, sr, &list[k].piece, reducer); err != nil {
				return nil, err
			}
		}
		return s.sumByBucket(reducer.Buckets(), buckets), nil
	}
	total := make([]series.Acc, len(edges)-1)
	err := inOrder(ctx, len(list), s.b.parallel, func(ctx context.Context, k int) ([]series.Acc, error) {
		r := r
		lo, hi := s.edgesOf(edges, &list[k])
		r.Edges = edges[lo : hi+1]
		reducer, err := series.NewReducer(r)
		if err != nil {
			return nil, err
		}
		return reducer.Buckets(), s.b.reducePiece(ctx, sr, &list[k].piece, reducer)
	}, func(k int, accs []series.Acc) {
		lo, _ := s.edgesOf(edges, &list[k])
		for j := range accs {
			if accs[j].N > 0 {
				total[lo+j].Add(&accs[j])
			}
		}
	})
	return s.sumByBucket(total, buckets), err
}

// reducePiece adds up the samples of one part of a series.
func (b *bucketPlan) reducePiece(ctx context.Context, s *sampleSeries, p *piece, reducer *series.Reducer) error {
	if p.mixed {
		chunks, err := b.set.view.load(ctx, s.Key, p.chunks)
		if err != nil {
			return err
		}
		b.trace.chunks(p.chunks, len(chunks))
		var scan series.Scanner
		for block, err := range scan.Blocks(chunks, s.Pending, p.r) {
			if err != nil {
				return fmt.Errorf("read %s: %w", s.Key.Resource, err)
			}
			reducer.Block(block)
		}
		return ctx.Err()
	}
	var need []series.Chunk
	for i := range p.chunks {
		if reducer.NeedsData(&p.chunks[i].Header) {
			need = append(need, p.chunks[i])
		}
	}
	loaded, err := b.set.view.load(ctx, s.Key, need)
	if err != nil {
		return err
	}
	b.trace.chunks(p.chunks, len(need))
	for i := range p.chunks {
		c := &p.chunks[i]
		if len(loaded) > 0 && loaded[0].Start == c.Start {
			c, loaded = &loaded[0], loaded[1:]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := reducer.Chunk(c); err != nil {
			return fmt.Errorf("read %s: %w", s.Key.Resource, err)
		}
	}
	return nil
}

// emit adds the computed buckets of s to the result.
func (s *slab) emit(out *grid) error {
	if s.accs == nil {
		return nil
	}
	hits := make([]int32, 0, min(len(s.starts), 1024))
	for k := range s.winner {
		if s.winner[k] >= 0 {
			hits = append(hits, int32(k))
		}
	}
	if s.b.p.grouped && out.n+len(hits) > s.b.limit {
		return errRows(s.b.limit)
	}
	for k := range s.b.p.keys {
		v := &out.keys[k].v
		if k == s.b.p.trunc {
			v.Ints = slices.Grow(v.Ints, len(hits))
			for _, h := range hits {
				v.Ints = append(v.Ints, s.starts[h])
			}
			v.OwnInts = v.Ints
			continue
		}
		for range hits {
			v.Add(s.lane.keys[k])
		}
	}
	for k := range s.b.p.aggs {
		emitColumn(&out.aggs[k].v, s.b.p.aggs[k].fn, s.accs[s.b.aggs[k]], hits)
	}
	out.n += len(hits)
	if s.b.p.traced {
		for _, h := range hits {
			out.wins = append(out.wins, win{at: s.starts[h], source: int(s.winner[h])})
		}
	}
	return nil
}

func emitColumn(v *vector.Vec, fn Func, accs []series.Acc, hits []int32) {
	if fn == Count {
		v.Ints = slices.Grow(v.Ints, len(hits))
		for _, h := range hits {
			v.Ints = append(v.Ints, int64(accs[h].N))
		}
		v.OwnInts = v.Ints
		return
	}
	v.Floats = slices.Grow(v.Floats, len(hits))
	for _, h := range hits {
		a := &accs[h]
		var x float64
		switch fn {
		case Sum:
			x = a.Sum.Float64()
		case Mean:
			x = a.Mean()
		case Min:
			x = a.Min
		case Max:
			x = a.Max
		case Oldest:
			x = a.First
		default:
			x = a.Last
		}
		if v.Nulls != nil || x-x != 0 {
			v.Add(vector.FloatCell(x))
			continue
		}
		v.Floats = append(v.Floats, x)
		v.OwnFloats = v.Floats
	}
}
