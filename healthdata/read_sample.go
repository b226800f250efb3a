package healthdata

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// SampleQuery selects samples of a timeseries. A zero filter matches all.
type SampleQuery struct {
	// Resource is the slug of a timeseries.
	Resource string
	// From and To bound the timestamps, both inclusive.
	From, To time.Time
	// Days bounds the local days of the timestamps.
	Days DayRange
	// Provider selects the samples of one provider; empty selects all. A provider that is not configured has no
	// samples.
	Provider string
	// Type selects the samples of one type; empty selects all. [Service.Samples] ignores it.
	Type string
	// Cursor is the Next of an earlier page with the same query. The result continues after that page.
	Cursor string

	sourceType SourceType
}

// span returns the query's bounds in microseconds, the end exclusive.
func (q *SampleQuery) span() series.Range {
	r := series.Range{From: series.MinTime, To: series.MaxTime + 1}
	from, to := q.Days.narrow(q.From, q.To)
	if !from.IsZero() {
		r.From = from.UnixMicro()
	}
	if !to.IsZero() {
		r.To = to.UnixMicro() + 1
	}
	return r
}

func (q *SampleQuery) series() SeriesQuery {
	r := q.span()
	return SeriesQuery{Resources: []string{q.Resource}, From: r.From, To: r.To, Provider: q.Provider}
}

// check refuses a resource without samples and a range that ends before it begins.
func (q *SampleQuery) check() error {
	if _, err := resourceOf(q.Resource, ClassTimeseries); err != nil {
		return err
	}
	if err := q.Days.check(); err != nil {
		return err
	}
	return checkRange(q.From, q.To)
}

func (q *SampleQuery) matchesDay(s *series.Sample) bool {
	return q.Days.IsZero() || q.Days.contains(time.UnixMicro(s.Time), int(s.Offset))
}

// SamplePage is a page of samples, grouped by source.
type SamplePage struct {
	// Groups are sorted by provider, then source. A group may continue in the next page: groups with equal
	// sources belong together.
	Groups []SampleGroup
	// Next is the cursor of the next page; empty after the last.
	Next string
}

// SampleGroup is samples of one source, ascending by timestamp.
type SampleGroup struct {
	Source   Source
	resource *Resource
	block    series.Block
}

// Len returns the number of samples.
func (g *SampleGroup) Len() int { return g.block.Len() }

// All yields the samples in order.
func (g *SampleGroup) All() iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		for _, s := range g.block.All() {
			if !yield(g.resource.sample(&s)) {
				return
			}
		}
	}
}

// AppendJSON appends the group as published JSON, {"source":…,"data":[…]}, without a struct per sample.
func (g *SampleGroup) AppendJSON(b []byte) []byte {
	b = append(b, `{"source":`...)
	b = appendJSON(b, g.Source)
	b = append(b, `,"data":[`...)
	for i, s := range g.block.All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.resource.appendSample(b, &s)
	}
	return append(b, ']', '}')
}

// Samples returns one page of samples grouped by source. Pages are ordered by provider, source type and
// timestamp. Each sample is on one page only, even if samples are written between pages.
//
// Errors: healthlab.NotFound without such a user or timeseries, healthlab.Invalid for a
// range that ends before it begins and for a cursor that is damaged or belongs to
// another query.
func (s *Service) Samples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q SampleQuery) (SamplePage, error) {
	if err := q.check(); err != nil {
		return SamplePage{}, fmt.Errorf("read samples: %w", err)
	}
	ctx = store.Ahead(ctx, func() []store.Query { return q.series().Queries(team, user) })
	if _, err := s.users.live(ctx, team, user); err != nil {
		return SamplePage{}, fmt.Errorf("read samples: %w", err)
	}
	from, err := openCursor(q.Cursor, user, &q)
	if err != nil {
		return SamplePage{}, fmt.Errorf("read samples: %w", err)
	}
	var page SamplePage
	err = s.data.View(ctx, team, user, func(v View) error {
		page = SamplePage{}
		all, err := v.Series(ctx, q.series())
		if err != nil {
			return err
		}
		w := walk{view: v, query: &q, left: s.opts.PageSize, groups: map[groupKey]*SampleGroup{}}
		for _, source := range bySource(all) {
			more, err := w.addSource(ctx, source, from)
			if err != nil {
				return err
			}
			if more {
				page.Next = w.last.seal(user, &q)
				break
			}
		}
		page.Groups = w.sortedGroups(s.providers)
		return nil
	})
	if err != nil {
		return SamplePage{}, fmt.Errorf("read samples: %w", err)
	}
	return page, nil
}

// AllSamples returns all samples of the query from all sources, ascending by timestamp, then provider and source
// type. It has no pages: bound the range. The errors are those of [Service.Samples].
func (s *Service) AllSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q SampleQuery) ([]Sample, error) {
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	ctx = store.Ahead(ctx, func() []store.Query { return q.series().Queries(team, user) })
	if _, err := s.users.live(ctx, team, user); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	out := []Sample{}
	err := s.data.View(ctx, team, user, func(v View) error {
		out = out[:0]
		return eachSample(ctx, v, q, func(sm Sample) { out = append(out, sm) })
	})
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	slices.SortStableFunc(out, func(a, b Sample) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return out, nil
}

// eachSample visits the samples of a query, series by series.
func eachSample(ctx context.Context, v View, q SampleQuery, visit func(Sample)) error {
	r := ResourceBySlug(q.Resource)
	all, err := v.Series(ctx, q.series())
	if err != nil {
		return err
	}
	for _, origins := range ByPublished(all) {
		if q.sourceType != "" && origins[0].Key.SourceType != q.sourceType {
			continue
		}
		err := ReadPublished(ctx, v, origins, q.span(), func(b *series.Block) bool {
			for _, s := range b.All() {
				if (q.Type == "" || s.Type == q.Type) && q.matchesDay(&s) {
					visit(r.sample(&s))
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunksAtOnce is how many chunks of a series are loaded at a time.
const chunksAtOnce = 4

// readSeries calls visit with the samples of a series inside a range, in order, until visit returns false. It
// loads a few chunks at a time, so that a page reads little more than it returns.
func readSeries(ctx context.Context, v View, s *Series, r series.Range, visit func(*series.Block) bool) error {
	var scan series.Scanner
	chunks := slices.DeleteFunc(slices.Clone(s.Chunks), func(c series.Chunk) bool { return !c.Overlaps(r.From, r.To) })
	for {
		n := min(chunksAtOnce, len(chunks))
		part := series.Range{From: r.From, To: r.To}
		if n < len(chunks) {
			part.To = min(r.To, chunks[n].Start)
		}
		starts := make([]int64, n)
		for i := range starts {
			starts[i] = chunks[i].Start
		}
		var loaded []series.Chunk
		if n > 0 {
			var err error
			if loaded, err = v.Load(ctx, s.Key, starts); err != nil {
				return err
			}
		}
		for b, err := range scan.Blocks(loaded, s.Pending, part) {
			if err != nil {
				return fmt.Errorf("series of %s: %w", s.Key.Resource, err)
			}
			if !visit(b) {
				return nil
			}
		}
		chunks, r.From = chunks[n:], part.To
		if len(chunks) == 0 && part.To == r.To {
			return nil
		}
	}
}

// bySource groups series by provider and source type.
func bySource(all []Series) [][]Series {
	slices.SortFunc(all, func(a, b Series) int { return a.Key.Compare(b.Key) })
	var out [][]Series
	for _, s := range all {
		if n := len(out); n > 0 && out[n-1][0].Key.Provider == s.Key.Provider && out[n-1][0].Key.SourceType == s.Key.SourceType {
			out[n-1] = append(out[n-1], s)
			continue
		}
		out = append(out, []Series{s})
	}
	return out
}

// groupKey identifies a group of a page: a source with all its fields.
type groupKey struct {
	provider string
	source   SourceType
	attrs    series.Attrs // App, Device, Workout and Sport only
}

// walk collects the groups of one page.
type walk struct {
	view   View
	query  *SampleQuery
	left   int
	last   cursor
	groups map[groupKey]*SampleGroup
}

// addSource adds the samples of all, the series of one provider and source type, to the page in order of time. It
// starts after the cursor from, and reports whether more samples remain.
func (w *walk) addSource(ctx context.Context, all []Series, from cursor) (more bool, err error) {
	key := all[0].Key
	switch cmp.Or(cmp.Compare(key.Provider, from.Provider), cmp.Compare(key.SourceType, from.SourceType)) {
	case -1:
		return false, nil
	case 1:
		from = cursor{}
	}
	heads := make([]*seriesReader, 0, len(all))
	for i := range all {
		h := &seriesReader{key: all[i].Key}
		r := w.query.span()
		if from.Provider != "" {
			// Start after the last sample of the previous page.
			after := from.Time
			if all[i].Key.Part <= from.Part {
				after++
			}
			r.From = max(r.From, after)
		}
		err := readSeries(ctx, w.view, &all[i], r, func(b *series.Block) bool {
			for _, s := range b.All() {
				if !w.query.matchesDay(&s) {
					continue
				}
				h.samples = append(h.samples, s)
				if len(h.samples) > w.left {
					return false
				}
			}
			return true
		})
		if err != nil {
			return false, err
		}
		if len(h.samples) > 0 {
			heads = append(heads, h)
		}
	}
	for len(heads) > 0 {
		if w.left == 0 {
			return true, nil
		}
		h := slices.MinFunc(heads, func(a, b *seriesReader) int {
			return cmp.Or(cmp.Compare(a.samples[0].Time, b.samples[0].Time), cmp.Compare(a.key.Part, b.key.Part),
				cmp.Compare(b.samples[0].Rank, a.samples[0].Rank))
		})
		at := h.samples[0].Time
		w.appendNext(h)
		heads = slices.DeleteFunc(heads, func(o *seriesReader) bool {
			if o.key.Part == h.key.Part && len(o.samples) > 0 && o.samples[0].Time == at {
				o.samples = o.samples[1:] // another origin has a sample of the same time
			}
			return len(o.samples) == 0
		})
	}
	return false, nil
}

// seriesReader is a series with its samples that were read and not yet added to the page.
type seriesReader struct {
	key     SeriesKey
	samples []series.Sample
}

func (w *walk) appendNext(h *seriesReader) {
	s := h.samples[0]
	h.samples = h.samples[1:]
	w.left--
	w.last = cursor{Provider: h.key.Provider, SourceType: h.key.SourceType, Time: s.Time, Part: h.key.Part}
	k := groupKey{h.key.Provider, h.key.SourceType, series.Attrs{App: s.App, Device: s.Device, Workout: s.Workout, Sport: s.Sport}}
	g := w.groups[k]
	if g == nil {
		g = &SampleGroup{resource: ResourceBySlug(h.key.Resource)}
		w.groups[k] = g
	}
	g.block.Append(s)
}

// sortedGroups returns the groups of the page.
func (w *walk) sortedGroups(providers *Providers) []SampleGroup {
	keys := slices.SortedFunc(maps.Keys(w.groups), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.source, b.source),
			cmp.Compare(a.attrs.App, b.attrs.App), cmp.Compare(a.attrs.Device.String(), b.attrs.Device.String()),
			cmp.Compare(a.attrs.Workout.String(), b.attrs.Workout.String()), cmp.Compare(a.attrs.Sport, b.attrs.Sport))
	})
	out := make([]SampleGroup, len(keys))
	for i, k := range keys {
		g := w.groups[k]
		g.Source = providers.source(Source{
			Provider: k.provider, Type: k.source, AppID: optional(k.attrs.App), DeviceID: optionalID(k.attrs.Device),
			Sport: optional(k.attrs.Sport), WorkoutID: optionalID(k.attrs.Workout),
		})
		out[i] = *g
	}
	return out
}

// cursor is the position after a sample of a user. The zero value is the start.
type cursor struct {
	// Sum is a checksum over the query and the position, so that a damaged cursor is refused.
	Sum        []byte     `json:"q"`
	Provider   string     `json:"p"`
	SourceType SourceType `json:"s"`
	Time       int64      `json:"t"`
	Part       string     `json:"x,omitempty"`
}

// sum returns the checksum over the query and the position of a cursor. It needs no secret: with a forged cursor a
// caller reads only what its own query selects.
func (c *cursor) sum(user healthlab.UserID, q *SampleQuery) []byte {
	h := sha256.New()
	for _, part := range [...]string{
		user.String(), q.Resource, q.Provider, instantText(q.From), instantText(q.To), q.Days.From.String(), q.Days.To.String(),
		c.Provider, string(c.SourceType), strconv.FormatInt(c.Time, 10), c.Part,
	} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:12]
}

func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

func (c cursor) seal(user healthlab.UserID, q *SampleQuery) string {
	c.Sum = c.sum(user, q)
	return base64.RawURLEncoding.EncodeToString(appendJSON(nil, c))
}

// openCursor reads a cursor of the same query. It returns healthlab.Invalid for any other text.
func openCursor(text string, user healthlab.UserID, q *SampleQuery) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	// The text must be the one that seal writes for this position and query.
	if err != nil || c.Provider == "" || text != c.seal(user, q) {
		var p healthlab.Problems
		p.Add("cursor", "must be the next_cursor of an earlier page of the same query, unchanged", "next_cursor")
		return cursor{}, p.Err()
	}
	return c, nil
}
