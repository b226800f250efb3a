package healthdata

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// The open chunk of a series is closed above this number of samples or bytes, because each append rewrites it.
const (
	openSamples = 256
	openBytes   = 4096
)

// MergeSamples implements [Data].
func (d *dataRows) MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []SampleBatch,
	events func([]series.Outcome) ([]healthlab.Event, error),
) error {
	if err := CheckBatches(batches); err != nil {
		return err
	}
	return d.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		writes := make([]*seriesWrite, len(batches))
		var first []store.Query
		for i := range batches {
			b := &batches[i]
			writes[i] = newSeriesWrite(owner{team, user}, &b.Key, b.Span, b.Samples.Time, b.Samples.Len())
			writes[i].adds = b.Samples
			first = append(first, writes[i].firstQueries()...)
		}
		if err := d.readUser(tx, team, user, first); err != nil {
			return err
		}
		if err := readSeriesWrites(tx, writes); err != nil {
			return err
		}
		outcomes, spans := make([]series.Outcome, len(batches)), changedSpans{}
		for i := range batches {
			w := writes[i]
			ranked, shared, err := w.rankSamples(batches[i].Samples)
			if err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
			change, err := series.Apply(w.old, w.pending(), ranked, w.span)
			if err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
			outcomes[i] = change.Outcome
			publishedOutcome(&outcomes[i], shared)
			if change.Outcome.Idle() {
				continue
			}
			if err := w.write(tx, &change); err != nil {
				return err
			}
			spans.addBatch(&batches[i], &outcomes[i])
		}
		var out []healthlab.Event
		if events != nil {
			var err error
			if out, err = events(outcomes); err != nil {
				return err
			}
		}
		return d.finish(ctx, tx, team, user, out, spans)
	})
}

// addBatch adds the period of a batch's new and changed samples.
func (c changedSpans) addBatch(b *SampleBatch, o *series.Outcome) {
	news := func(s series.State) bool { return s != series.Same }
	first, last := slices.IndexFunc(o.States, news), len(o.States)-1
	for !news(o.States[last]) {
		last--
	}
	c.add(b.Key.Resource, b.Samples.Time[first], b.Samples.Time[last])
}

// seriesWrite is a series in a write transaction.
type seriesWrite struct {
	owner
	id    string
	span  series.Span
	from  int64          // the first written time
	cells []series.Range // the chunk periods that contain written times
	n     int            // the greatest number of samples that the write adds
	adds  *series.Block  // the samples to add; nil in a removal
	// longest is the length of the longest interval of the resource, in microseconds.
	longest int64
	all     string // the common id prefix of all origins of the series
	// siblings are the series of other apps and devices of the source. They are only read, and their seriesHead rows
	// are locked so that samples of all apps and devices are ranked in one order.
	siblings []*seriesWrite
	headers  []series.Header // chunk headers of a sibling, on the days of a batch
	head     *store.Entry[seriesHead]
	old      []series.Chunk  // the affected closed chunks, ascending
	known    map[int64]int64 // the revisions of their rows, by start
}

// newSeriesWrite returns a write to a series at some times that adds at most n samples. times must ascend and not be
// empty.
func newSeriesWrite(o owner, key *SeriesKey, span series.Span, times []int64, n int) *seriesWrite {
	longest := longestInterval
	if r := ResourceBySlug(key.Resource); r != nil {
		longest = r.Longest
	}
	return &seriesWrite{owner: o, id: key.id(o.user), longest: longest.Microseconds(), all: key.publishedID(o.user), span: span, from: times[0], cells: span.Points(times), n: n, known: map[int64]int64{}}
}

func (w *seriesWrite) heads() store.Query {
	if w.adds == nil {
		return headTable.One(w.key(w.id), store.Held)
	}
	return w.headsOf(w.all)
}

func (o owner) headsOf(all string) store.Query {
	return store.Query{Key: headTable.Key(store.Key{Team: o.team, User: o.user}), By: store.ByID, From: all, To: store.End(all), Lock: store.Held}
}

// firstQueries returns the queries of the first read: the seriesHead rows and, for a long write, the last closed chunk,
// which takes what the open chunk cannot hold.
func (w *seriesWrite) firstQueries() []store.Query {
	q := []store.Query{w.heads()}
	if w.n > openSamples {
		q = append(q, w.lastClosed(store.End(w.id)))
	}
	return q
}

func (w *seriesWrite) lastClosed(to string) store.Query {
	q := w.chunks(w.id, to)
	q.Desc, q.Limit = true, 1
	return q
}

func (w *seriesWrite) chunks(from, to string) store.Query {
	return store.Query{Key: chunkTable.Key(store.Key{Team: w.team, User: w.user}), By: store.ByID, From: from, To: to, Lock: store.Held}
}

// readSeriesWrites reads the seriesHead rows of some series and, if necessary in a second round trip, the affected
// chunks.
func readSeriesWrites(tx store.Tx, writes []*seriesWrite) error {
	var more []store.Query
	var whose []*seriesWrite
	for _, w := range writes {
		got, err := tx.Read(w.heads())
		if err != nil {
			return err
		}
		if err := w.decodeHeads(got[0]); err != nil {
			return err
		}
		reach := w.chunkQueries()
		if w.adds != nil && w.adds.End != nil {
			reach = append(reach, w.rivalQueries(w.adds, true)...)
		}
		for _, q := range reach {
			more, whose = append(more, q), append(whose, w)
		}
		for _, s := range w.siblings {
			for _, q := range append(s.rivalQueries(w.adds, false), s.dayQueries(w.adds)...) {
				more, whose = append(more, q), append(whose, s)
			}
		}
	}
	if len(more) == 0 {
		return nil
	}
	answers, err := tx.Read(more...)
	if err != nil {
		return err
	}
	for i, rows := range answers {
		if err := whose[i].decodeChunks(rows); err != nil {
			return err
		}
	}
	return nil
}

// decodeHeads sets the seriesHead of w from rows, and adds a sibling for each row of another app or device.
func (w *seriesWrite) decodeHeads(rows []store.Row) error {
	heads, err := headTable.Decoded(rows)
	if err != nil {
		return err
	}
	w.head = &store.Entry[seriesHead]{Value: seriesHead{owner: w.owner, id: w.id, closed: series.MinTime - 1}}
	for _, h := range heads {
		if h.Value.id == w.id {
			w.head = h
		} else {
			w.siblings = append(w.siblings, &seriesWrite{owner: w.owner, id: h.Value.id, longest: w.longest, span: w.span, head: h, known: map[int64]int64{}})
		}
	}
	return nil
}

// chunkQueries returns the queries for the affected closed chunks. Samples after all closed chunks need none if they
// fit into the open chunk; otherwise they are merged with the last closed chunk of their period ([series.Span.Cell]).
func (w *seriesWrite) chunkQueries() []store.Query {
	open := &w.head.Value.open
	if w.from > w.head.Value.closed {
		first := w.from
		if open.N > 0 {
			first = min(first, open.Start)
		}
		cell := w.span.Cell(first)
		held := open.N+w.n <= openSamples && w.cells[len(w.cells)-1].To <= cell.To
		if held || w.head.Value.closed < cell.From {
			return nil
		}
		return []store.Query{w.lastClosed(store.End(w.id))}
	}
	want := slices.Clone(w.cells)
	if open.N > 0 {
		// A closed chunk that was written for longer chunk periods may reach past the present period, around the open
		// chunk. The write then affects all chunks between the two.
		want = append(want, series.Range{From: open.Start, To: open.Stop + 1})
	}
	_, load := series.Reach(w.span, want, w.pending())
	q := make([]store.Query, 0, 2*len(load))
	for _, r := range load {
		from := chunkID(w.id, r.From)
		q = append(q, w.lastClosed(from), w.chunks(from, chunkID(w.id, r.To))) // the chunk before the range may reach into it
	}
	return q
}

// decodeChunks adds the chunks in rows, the answer to a query, to w.old. If rows are headers, decodeChunks adds them to
// w.headers.
func (w *seriesWrite) decodeChunks(rows []store.Row) error {
	if len(rows) > 0 && rows[0].Table == headerTable.Name {
		list, err := headerTable.Decoded(rows)
		for _, e := range list {
			w.headers = append(w.headers, e.Value.Header)
		}
		return err
	}
	list, err := chunkTable.Decoded(rows)
	if err != nil {
		return err
	}
	for _, e := range list {
		c := &e.Value
		if _, twice := w.known[c.Start]; !twice {
			w.known[c.Start], w.old = e.Revision, append(w.old, c.Chunk)
		}
	}
	slices.SortFunc(w.old, func(a, b series.Chunk) int { return int(min(max(a.Start-b.Start, -1), 1)) })
	return nil
}

func (w *seriesWrite) pending() []series.Segment {
	if w.head.Value.open.N == 0 {
		return nil
	}
	return []series.Segment{w.head.Value.open}
}

// write writes and deletes the chunks of a change. The last chunk of the series becomes the open one if it is small;
// all others are closed.
func (w *seriesWrite) write(tx store.Tx, change *series.Change) error {
	h := &w.head.Value
	put := change.Put
	h.open = series.Chunk{}
	if n := len(put); n > 0 {
		last := &put[n-1]
		closed := h.closed
		if n > 1 {
			closed = max(closed, put[n-2].Stop)
		}
		if last.Start > closed && last.N <= openSamples && last.Size <= openBytes {
			h.open, put = *last, put[:n-1]
		}
	}
	h.version++
	for i := range put {
		c := closedChunk{owner: w.owner, head: w.id, version: h.version, Chunk: put[i]}
		h.closed, h.closedEnd = max(h.closed, c.Stop), max(h.closedEnd, c.MaxEnd)
		// The two rows of a chunk are always written together, so their revision is the same.
		revision := w.known[c.Start]
		if err := chunkTable.Put(tx, &store.Entry[closedChunk]{Value: c, Revision: revision}); err != nil {
			return err
		}
		if err := headerTable.Put(tx, &store.Entry[closedChunk]{Value: c, Revision: revision}); err != nil {
			return err
		}
	}
	for _, start := range change.Drop {
		key := w.key(chunkID(w.id, start))
		tx.Delete(chunkTable.Key(key), headerTable.Key(key))
	}
	return headTable.Put(tx, w.head)
}

// Remove implements [Data].
func (d *dataRows) Remove(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r Removal) (n int, err error) {
	if err := checkRemoval(&r); err != nil {
		return 0, err
	}
	err = d.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		out := Removed{Samples: make([][]series.Gone, len(r.Samples))}
		at, spans, days := owner{team, user}, changedSpans{}, removedDays{}
		first := append(at.recordQueries(r.Resource, r.IDs), at.recordQueries(r.Parts, r.PartIDs)...)
		var writes []*seriesWrite
		var removals []int
		for i := range r.Samples {
			if s := &r.Samples[i]; len(s.Times) > 0 {
				w := newSeriesWrite(at, &s.Key, s.Span, s.Times, 0)
				writes, removals, first = append(writes, w), append(removals, i), append(first, w.firstQueries()...)
			}
		}
		if err := d.readUser(tx, team, user, first); err != nil {
			return err
		}
		var err error
		if out.IDs, err = at.removeRecords(tx, r.Resource, r.IDs, spans, days, &out); err != nil {
			return err
		}
		if out.PartIDs, err = at.removeRecords(tx, r.Parts, r.PartIDs, spans, days, &out); err != nil {
			return err
		}
		if err := readSeriesWrites(tx, writes); err != nil {
			return err
		}
		told := make(originsTold, 0, len(writes))
		for i, w := range writes {
			s := &r.Samples[removals[i]]
			before, err := w.storedSamples(s.Times)
			if err != nil {
				return err
			}
			told = append(told, originTold{key: s.Key, before: before})
			change, gone, err := series.Remove(w.old, w.pending(), s.Times, s.selects, s.Span)
			if err != nil {
				return fmt.Errorf("series %d: %w", i, err)
			}
			if len(gone) == 0 {
				continue
			}
			out.Samples[removals[i]], told[i].gone = gone, gone
			if err := w.write(tx, &change); err != nil {
				return err
			}
			spans.add(s.Key.Resource, s.Times[0], s.Times[len(s.Times)-1])
			days.addSamples(&s.Key, gone, before)
		}
		if err := days.put(tx, at); err != nil {
			return err
		}
		n = out.count()
		out.Gone, out.Shown = told.visibleChanges()
		var events []healthlab.Event
		if r.Events != nil {
			if events, err = r.Events(out); err != nil {
				return err
			}
		}
		return d.finish(ctx, tx, team, user, events, spans)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
