package aggregate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Samples without a duration, such as heart rates, are merged by local hour. The source of an hour is chosen from the
// times of the samples, and from their values only if the query has a condition on values. Without one the choice reads
// no values, and the values of a series are read only for its chosen hours. The rules are those of sampleMerger and
// decider.

// hourSpan is a range of local hours, counted from 1970; to is exclusive.
type hourSpan struct{ from, to int64 }

// mostHours limits the memory for choosing a source by hour: a hundred years.
const mostHours = 1 << 20

// hourChoice chooses which series contribute to a result in each local hour.
type hourChoice struct {
	p         *plan
	set       *sampleSet
	contested map[unit]bool
	leave     []bool // for each series, whether the condition excludes it
	span      hourSpan
	kept      [][]bool // by series and hour of span: true if the series contributes; set by decide
}

// hourChoiceOf returns the hour choice of a plan with competing series; nil if the choice is not made by hour.
// contested has the units in which several origins have data. An explanation never chooses by hour, because it names
// the source of each sample.
func (p *plan) hourChoiceOf(set *sampleSet, contested map[unit]bool) *hourChoice {
	if p.traced || len(p.resources) != 1 || p.resources[0].Shape != healthdata.Discrete {
		return nil
	}
	c := &hourChoice{p: p, set: set, contested: contested, leave: make([]bool, len(set.list))}
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range set.list {
		s := &set.list[i]
		if p.where != nil {
			rest, answer := vector.Settle(p.where, p.known(s))
			if rest != nil {
				return nil // the condition on values decides which hours have samples
			}
			c.leave[i] = answer != vector.IsTrue
		}
		for _, chunks := range [...][]series.Chunk{s.Chunks, s.Pending} {
			for k := range chunks {
				first, last := local(&chunks[k].Header)
				from, to = min(from, first), max(to, last+1)
			}
		}
	}
	w := p.readWindow()
	c.span = hourSpan{floorDiv(max(from, w.from), hour), -floorDiv(-min(to, w.to), hour)}
	if c.span.from >= c.span.to || c.span.to-c.span.from > mostHours {
		return nil
	}
	return c
}

// originHours has the hours in which one origin (an app or device of a source) has samples, and what the choice of
// origins compares for each local day.
type originHours struct {
	origin healthdata.Origin
	has    []bool
	days   []originDay
}

func (s hourSpan) day(h int64) int64 { return floorDiv(s.from+h, 24) - floorDiv(s.from, 24) }

// add records that hour h has samples, which r describes. h and day count from the start of the span.
func (o *originHours) add(h, day int64, r series.HourRun) {
	d := &o.days[day]
	if !o.has[h] {
		o.has[h] = true
		d.covered += hour
	}
	if r.Rank > d.rank || r.Rank == d.rank && r.Last > d.last {
		d.rank, d.last = r.Rank, r.Last
	}
}

// decide chooses which hours of each series contribute.
func (c *hourChoice) decide(ctx context.Context) error {
	n := c.span.to - c.span.from
	c.kept = make([][]bool, len(c.set.list))
	samples := 0
	for i := range c.set.list {
		for k := range c.set.list[i].Chunks {
			samples += c.set.list[i].Chunks[k].N
		}
	}
	scan := hourScan{c: c, hold: samples < min(slabSamples, parallelFrom)} // so few samples are summed by one goroutine
	owner := make([]int32, n)                                              // by hour: 0 if no source has it, otherwise 1 + the index of the source
	for _, run := range c.p.units(c.set) {
		if err := c.decideUnit(ctx, &scan, run, owner); err != nil {
			return err
		}
	}
	return nil
}

// decideUnit chooses between the series run[0] to run[1] (exclusive), which are one unit and compete within a source.
// owner has the chosen source of each hour, as 1 + its index; 0 means none. decideUnit sets it for further hours.
func (c *hourChoice) decideUnit(ctx context.Context, scan *hourScan, run [2]int, owner []int32) error {
	list := c.set.list[run[0]:run[1]]
	source := int32(list[0].source) + 1
	contested := c.contested[c.p.unitOf(&list[0])]
	var taken []bool
	if c.p.merge && !contested {
		taken = make([]bool, len(owner))
		for h, o := range owner {
			taken[h] = o != 0 && o != source
		}
	}
	var told []*originHours
	of := make([]*originHours, len(list))
	for i := range list {
		if c.leave[run[0]+i] {
			continue
		}
		at := slices.IndexFunc(told, func(o *originHours) bool { return o.origin == list[i].Key.Origin })
		if at < 0 {
			at = len(told)
			told = append(told, newOriginHours(c.span, list[i].Key.Origin))
		}
		of[i] = told[at]
		kept := make([]bool, len(owner))
		c.kept[run[0]+i] = kept
		err := scan.eachHour(ctx, &list[i], taken, func(r series.HourRun) {
			if h := r.Hour - c.span.from; r.Hour >= c.span.from && r.Hour < c.span.to {
				of[i].add(h, c.span.day(h), r)
				kept[h] = true
			}
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(told, func(x, y *originHours) int { return compareOrigins(x.origin, y.origin) })
	for h, best := range bestOrigins(c.span, told) {
		if best == nil {
			continue
		}
		if owner[h] == 0 {
			owner[h] = source
		}
		for i, o := range of {
			if kept := c.kept[run[0]+i]; o != nil && kept[h] {
				kept[h] = o == best && (!c.p.merge || owner[h] == source)
			}
		}
	}
	return nil
}

func newOriginHours(span hourSpan, origin healthdata.Origin) *originHours {
	n := span.to - span.from
	o := &originHours{origin: origin, has: make([]bool, n), days: make([]originDay, span.day(n-1)+1)}
	for i := range o.days {
		o.days[i].last = math.MinInt64
	}
	return o
}

// bestOrigins returns the chosen origin of each hour of the span; nil for an hour in which no origin has a sample. told
// are the origins of one unit.
func bestOrigins(span hourSpan, told []*originHours) []*originHours {
	out := make([]*originHours, span.to-span.from)
	order := slices.Clone(told)
	last := int64(-1)
	for h := range out {
		if n := span.day(int64(h)); n != last && len(told) > 1 {
			last = n
			copy(order, told)
			slices.SortStableFunc(order, func(a, b *originHours) int {
				x, y := &a.days[n], &b.days[n]
				return cmp.Or(cmp.Compare(y.covered, x.covered), cmp.Compare(y.rank, x.rank), cmp.Compare(y.last, x.last))
			})
		}
		for _, o := range order {
			if o.has[h] {
				out[h] = o
				break
			}
		}
	}
	return out
}

// hourScan reads the hours of series. If hold is true, it keeps the loaded chunks in memory, so that the samples are
// added up without loading them again.
type hourScan struct {
	c     *hourChoice
	hold  bool
	hours series.HourScanner
	scan  series.Scanner
}

// eachHour calls visit for each hour in which a series has samples. It skips a chunk outside of the span, and a chunk
// for which taken is true in all of its hours; a nil taken is never true. It skips no chunk into which pending samples
// must be merged.
func (s *hourScan) eachHour(ctx context.Context, sr *sampleSeries, taken []bool, visit func(series.HourRun)) error {
	for _, p := range sr.cut() {
		var need []int
		for k := range p.chunks {
			from, to := local(&p.chunks[k].Header)
			if lo, hi := s.c.span.clip(from, to); p.mixed || lo < hi && (taken == nil || slices.Contains(taken[lo:hi], false)) {
				need = append(need, k)
			}
		}
		if len(need) == 0 && !p.mixed {
			continue
		}
		wanted := make([]series.Chunk, len(need))
		for i, k := range need {
			wanted[i] = p.chunks[k]
		}
		chunks, err := s.c.set.view.load(ctx, sr.Key, wanted)
		if err != nil {
			return err
		}
		if s.hold {
			for i, k := range need {
				p.chunks[k] = chunks[i]
			}
		}
		if err := s.piece(sr, &p, chunks, visit); err != nil {
			return fmt.Errorf("read %s: %w", sr.Key.Resource, err)
		}
	}
	return nil
}

func (s *hourScan) piece(sr *sampleSeries, p *piece, chunks []series.Chunk, visit func(series.HourRun)) error {
	if !p.mixed {
		for i := range chunks {
			if err := s.hours.Chunk(&chunks[i], visit); err != nil {
				return err
			}
		}
		return nil
	}
	for block, err := range s.scan.Blocks(chunks, sr.Pending, p.r) {
		if err != nil {
			return err
		}
		s.hours.Block(block, visit)
	}
	return nil
}

func (s hourSpan) clip(from, to int64) (lo, hi int64) {
	return max(floorDiv(from, hour), s.from) - s.from, min(floorDiv(to, hour)+1, s.to) - s.from
}

// includes reports whether a series contributes in any hour between the local times from and to. A nil choice returns
// true.
func (c *hourChoice) includes(sr *sampleSeries, from, to int64) bool {
	if c == nil {
		return true
	}
	lo, hi := c.span.clip(from, to)
	return lo < hi && slices.Contains(c.kept[sr.serial-1][lo:hi], true)
}

// hourTaker passes on those samples that are in the chosen hours of their series.
type hourTaker struct {
	choice *hourChoice
	next   taker
}

func (t *hourTaker) grid() (*grid, error) { return t.next.grid() }

func (t *hourTaker) consume(b *vector.Batch) error {
	c := t.choice
	kept := c.kept[b.Serial-1]
	b.Picks = b.Picks[:0]
	for i := 0; i < b.N; {
		h := floorDiv(b.Index[i], hour)
		from, to := max(h*hour, c.p.window.from), min((h+1)*hour, c.p.window.to)
		h -= c.span.from
		in := h >= 0 && h < int64(len(kept)) && kept[h]
		for first := i; i == first || i < b.N && b.Index[i] >= from && b.Index[i] < to; i++ {
			if in && b.Index[i] >= from && b.Index[i] < to {
				b.Picks = append(b.Picks, int32(i))
			}
		}
	}
	b.Pick(b.Picks)
	if b.N == 0 {
		return nil
	}
	return t.next.consume(b)
}

// contributingEdges returns the bucket edges of s, with further edges where series i starts or stops to contribute.
// buckets[k] is the bucket between edges[k] and edges[k+1]; -1 if the series does not contribute there. buckets is nil
// if hours are not chosen: there are no further edges then.
func (s *slab) contributingEdges(i int) (edges []int64, buckets []int) {
	c := s.b.hours
	if c == nil {
		return s.edges, nil
	}
	kept := c.kept[i]
	counts := func(at int64) bool {
		h := floorDiv(at, hour) - c.span.from
		return h >= 0 && h < int64(len(kept)) && kept[h]
	}
	for k := range s.starts {
		lo, hi := c.span.clip(s.edges[k], s.edges[k+1]-1)
		at, in := s.edges[k], counts(s.edges[k])
		for h := lo; h < hi; h++ {
			if from := (c.span.from + h) * hour; from > at && kept[h] != in {
				edges, buckets = append(edges, at), append(buckets, bucketIf(in, k))
				at, in = from, kept[h]
			}
		}
		if end := c.span.to * hour; in && end < s.edges[k+1] {
			edges, buckets = append(edges, at), append(buckets, k)
			at, in = end, false
		}
		edges, buckets = append(edges, at), append(buckets, bucketIf(in, k))
	}
	return append(edges, s.edges[len(s.edges)-1]), buckets
}

func bucketIf(in bool, k int) int {
	if in {
		return k
	}
	return -1
}

func (s *slab) edgesOf(edges []int64, t *task) (lo, hi int) {
	lo, _ = slices.BinarySearch(edges, s.edges[t.lo])
	hi, _ = slices.BinarySearch(edges, s.edges[t.hi])
	return lo, hi
}

// sumByBucket adds up accs, the sums between the edges of contributingEdges, by bucket. buckets is the second result of
// contributingEdges.
func (s *slab) sumByBucket(accs []series.Acc, buckets []int) []series.Acc {
	if buckets == nil {
		return accs
	}
	out := make([]series.Acc, len(s.starts))
	for i := range accs {
		if k := buckets[i]; k >= 0 {
			out[k].Add(&accs[i])
		}
	}
	return out
}
