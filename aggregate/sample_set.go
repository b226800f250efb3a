package aggregate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// sampleSet is the set of series that a plan may read, in order of preference.
type sampleSet struct {
	view    *lockedView
	list    []sampleSeries
	sources []Source
	origins []healthdata.Origin // the first one is empty: the origin is unknown
}

func (set *sampleSet) originOf(o healthdata.Origin) int { return slices.Index(set.origins, o) }

// sampleSeries is one series with its properties for the plan.
type sampleSeries struct {
	healthdata.Series
	pieces   []piece // made once, by cut
	source   int     // index in sampleSet.sources
	resource int     // index in plan.resources
	serial   int
}

func (s *sampleSeries) cut() []piece {
	if s.pieces == nil {
		s.pieces = pieces(&s.Series, chunksAtOnce)
	}
	return s.pieces
}

// lockedView lets several goroutines load chunks from a view, one at a time.
type lockedView struct {
	mu   sync.Mutex
	view healthdata.View
}

// load loads chunks of a series. Chunks that have their data are returned unchanged.
func (v *lockedView) load(ctx context.Context, key healthdata.SeriesKey, chunks []series.Chunk) ([]series.Chunk, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(chunks, func(c series.Chunk) bool { return c.Data == nil }) {
		return chunks, nil
	}
	starts := make([]int64, len(chunks))
	for i := range chunks {
		starts[i] = chunks[i].Start
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out, err := v.view.Load(ctx, key, starts)
	if err == nil && len(out) != len(starts) {
		err = fmt.Errorf("load samples: the store returned %d of %d requested chunks", len(out), len(starts))
	}
	return out, err
}

// seriesQuery returns the query for the series of a plan.
func (p *plan) seriesQuery() healthdata.SeriesQuery {
	w := p.readWindow()
	q := healthdata.SeriesQuery{From: w.from - maxOffset.Microseconds(), To: w.to + maxOffset.Microseconds()}
	for _, r := range p.resources {
		q.Resources = append(q.Resources, r.Slug)
	}
	return q
}

// samples finds the series of a plan.
func (p *plan) samples(ctx context.Context, v healthdata.View, o *order) (*sampleSet, error) {
	q := p.seriesQuery()
	all, err := v.Series(ctx, q)
	if err != nil {
		return nil, err
	}
	set := &sampleSet{view: &lockedView{view: v}, origins: []healthdata.Origin{{}}}
	for i := range all {
		if set.originOf(all[i].Key.Origin) < 0 {
			set.origins = append(set.origins, all[i].Key.Origin)
		}
		set.sources = append(set.sources, Source{all[i].Key.Provider, all[i].Key.SourceType})
	}
	set.sources = o.sort(set.sources)
	for i := range all {
		k := all[i].Key
		source := slices.Index(set.sources, Source{k.Provider, k.SourceType})
		set.list = append(set.list, sampleSeries{Series: all[i], source: source, resource: slices.Index(q.Resources, k.Resource)})
	}
	// The order of series decides between samples of equal times: source, resource, type.
	slices.SortFunc(set.list, func(a, b sampleSeries) int {
		if c := cmp.Compare(a.source, b.source); c != 0 {
			return c
		}
		return a.Key.Compare(b.Key)
	})
	for i := range set.list {
		set.list[i].serial = i + 1
	}
	return set, nil
}

// known returns a function about the columns of the plan, by number. The function returns the text that all samples of
// s share in the column, whether it is null, and whether it is known. vector.Settle takes such a function.
func (p *plan) known(s *sampleSeries) func(slot int) (string, bool, bool) {
	return func(n int) (string, bool, bool) {
		c := &p.slots[n].column
		if c.from != fromSample || c.resource != nil && c.resource != p.resources[s.resource] {
			return "", c.from == fromSample, c.from == fromSample && c.typ == typeText
		}
		switch c.field {
		case fieldProvider:
			return s.Key.Provider, s.Key.Provider == "", true
		case fieldSourceType:
			return string(s.Key.SourceType), s.Key.SourceType == "", true
		default:
			return "", false, false
		}
	}
}

// piece is a part of a series that is read at once: stored chunks alone, or a time range in which newer samples, stored
// as pending segments, must be merged into the chunks.
type piece struct {
	chunks      []series.Chunk // chunk headers
	mixed       bool
	r           series.Range // range of a merged piece
	start, stop int64        // the earliest and the latest start of a sample in it
}

// pieces cuts a series into pieces of at most atOnce chunks. A merged piece also has the pending segments of its time
// range.
func pieces(s *healthdata.Series, atOnce int) []piece {
	var out []piece
	last := series.MinTime
	var mixed []series.Chunk
	flush := func(to int64) {
		overlap := slices.ContainsFunc(s.Pending, func(c series.Chunk) bool { return c.Overlaps(last, to) })
		if len(mixed) > 0 || overlap {
			p := piece{chunks: mixed, mixed: true, r: series.Range{From: last, To: to}}
			p.span(s.Pending)
			out = append(out, p)
		}
		mixed = nil
	}
	for i := range s.Chunks {
		c := &s.Chunks[i]
		if slices.ContainsFunc(s.Pending, func(g series.Chunk) bool { return g.Overlaps(c.Start, c.Stop+1) }) {
			mixed = append(mixed, *c)
			if len(mixed) >= atOnce && i+1 < len(s.Chunks) {
				flush(s.Chunks[i+1].Start)
				last = s.Chunks[i+1].Start
			}
			continue
		}
		flush(c.Start)
		last = c.Stop + 1
		if k := len(out) - 1; k >= 0 && !out[k].mixed && len(out[k].chunks) < atOnce {
			out[k].chunks, out[k].stop = append(out[k].chunks, *c), c.Stop
			continue
		}
		out = append(out, piece{chunks: append(make([]series.Chunk, 0, min(atOnce, len(s.Chunks)-i)), *c), start: c.Start, stop: c.Stop})
	}
	flush(series.MaxTime + 1)
	return out
}

// span sets start and stop of a merged piece from its chunks and from pending, which has the series' pending segments.
func (p *piece) span(pending []series.Chunk) {
	p.start, p.stop = series.MaxTime, series.MinTime
	for _, list := range [...][]series.Chunk{p.chunks, pending} {
		for i := range list {
			if list[i].Overlaps(p.r.From, p.r.To) {
				p.start, p.stop = min(p.start, list[i].Start), max(p.stop, list[i].Stop)
			}
		}
	}
}

// chunksAtOnce is the number of chunks in memory at a time, for each goroutine.
const chunksAtOnce = 32

// eachBlock calls visit for each block of a series' samples in the window w, in order of time. Blocks may have further
// samples outside w. skip reports whether a chunk with samples from one local time to another is left out; nil leaves
// out none.
func (set *sampleSet) eachBlock(ctx context.Context, s *sampleSeries, w window, skip func(from, to int64) bool, visit func(*series.Block) error) error {
	var scan series.Scanner
	var scratch series.Block
	margin := maxOffset.Microseconds()
	for _, p := range s.cut() {
		if p.stop < w.from-margin || p.start >= w.to+margin {
			continue
		}
		p.chunks = slices.DeleteFunc(slices.Clone(p.chunks), func(c series.Chunk) bool {
			from, to := local(&c.Header)
			return !p.mixed && (to < w.from || from >= w.to || skip != nil && skip(from, to))
		})
		chunks, err := set.view.load(ctx, s.Key, p.chunks)
		if err != nil {
			return err
		}
		if p.mixed {
			for b, err := range scan.Blocks(chunks, s.Pending, p.r) {
				if err != nil {
					return fmt.Errorf("read %s: %w", s.Key.Resource, err)
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := visit(b); err != nil {
					return err
				}
			}
			continue
		}
		for i := range chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := chunks[i].Decode(&scratch); err != nil {
				return fmt.Errorf("read %s: %w", s.Key.Resource, err)
			}
			if err := visit(&scratch); err != nil {
				return err
			}
		}
	}
	return nil
}

// local returns the earliest and the latest local time of a chunk's samples, in microseconds since 1970.
func local(h *series.Header) (from, to int64) {
	if h.OneOffset {
		return h.Start + int64(h.Offset)*second, h.Stop + int64(h.Offset)*second
	}
	margin := maxOffset.Microseconds()
	return h.Start - margin, h.Stop + margin
}
