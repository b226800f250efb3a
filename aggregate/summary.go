package aggregate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// maxOffset is the largest offset of local time from UTC.
const maxOffset = 24 * time.Hour

// pageOf is the time range of the records that are read at a time. It limits memory, because records of summaries may
// be large and only a few of their values are used.
const pageOf = 92 * 24 * time.Hour

func recordQueries(t *tables.Table, w window) []healthdata.RecordQuery {
	if t.IndexType == typeInstant {
		return []healthdata.RecordQuery{{Resource: t.Resource}}
	}
	return w.pages(t.Resource)
}

// eachSummary calls visit for each row of the table t in the window w, page by page. visit also gets the index of the
// row, in microseconds. If cycles is true, rows of sleep have their stages.
func eachSummary(ctx context.Context, v healthdata.View, t *tables.Table, w window, cycles bool, visit func(*tables.Row, int64) error) error {
	for _, q := range recordQueries(t, w) {
		if err := ctx.Err(); err != nil {
			return err
		}
		records, err := v.Records(ctx, q)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			continue
		}
		var byID map[uuid.UUID]*healthdata.SleepCycle
		if cycles && t.Cycles {
			if byID, err = cyclesOf(ctx, v, q); err != nil {
				return err
			}
		}
		for i := range records {
			r := &records[i]
			s, err := r.Decode()
			if err != nil {
				return fmt.Errorf("read %s: %w", t.Name, err)
			}
			row := tables.Row{Record: r, Summary: s, Cycle: byID[r.ID]}
			at := t.Index(&row)
			if at < w.from || at >= w.to {
				continue
			}
			if err := visit(&row, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// pagedFrom and pagedTo limit the years in which an unlimited window is read page by page. Records outside, which are
// rare, are read at once.
var pagedFrom, pagedTo = time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC)

// pages cuts a window into queries that do not overlap.
func (w window) pages(resource string) []healthdata.RecordQuery {
	if w != everything {
		return recordPages(resource, time.UnixMicro(w.from).UTC().Add(-maxOffset), time.UnixMicro(w.to).UTC().Add(maxOffset))
	}
	out := []healthdata.RecordQuery{{Resource: resource, To: pagedFrom.Add(-time.Microsecond)}}
	out = append(out, recordPages(resource, pagedFrom, pagedTo)...)
	return append(out, healthdata.RecordQuery{Resource: resource, From: pagedTo})
}

// recordPages cuts a time range into queries that do not overlap.
func recordPages(resource string, from, to time.Time) []healthdata.RecordQuery {
	var out []healthdata.RecordQuery
	for from.Before(to) {
		next := from.Add(pageOf)
		if next.After(to) {
			next = to
		}
		out = append(out, healthdata.RecordQuery{Resource: resource, From: from, To: next.Add(-time.Microsecond)})
		from = next
	}
	return out
}

// cycleResource is the resource with the stages of a night.
const cycleResource = "sleep_cycle"

// cyclesOf returns the sleep cycles of the sessions that q reads, by session. If a session has several cycles, it
// returns the one that changed last.
func cyclesOf(ctx context.Context, v healthdata.View, q healthdata.RecordQuery) (map[uuid.UUID]*healthdata.SleepCycle, error) {
	q.Resource = cycleResource
	// The end of a cycle may differ from the end of its session, so read more on both sides.
	if !q.From.IsZero() {
		q.From = q.From.Add(-maxOffset)
	}
	if !q.To.IsZero() {
		q.To = q.To.Add(maxOffset)
	}
	records, err := v.Records(ctx, q)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(records, func(a, b healthdata.Record) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), bytes.Compare(b.ID[:], a.ID[:]))
	})
	out := make(map[uuid.UUID]*healthdata.SleepCycle, len(records))
	for i := range records {
		s, err := records[i].Decode()
		if err != nil {
			return nil, fmt.Errorf("read sleep cycles: %w", err)
		}
		if c, ok := s.(*healthdata.SleepCycle); ok {
			out[c.SleepID] = c
		}
	}
	return out, nil
}

// kept is the part of a row of summaries, readiness or lab results that a query uses.
type kept struct {
	source  Source
	origin  healthdata.Origin
	index   int64
	updated int64
	id      uuid.UUID
	cells   []tables.Cell
	span    interval // of a session, in UTC
	session bool     // span is known
	offset  int64    // local time minus UTC, in microseconds
}

// summaryRows reads the rows of a plan over summaries.
func (p *plan) summaryRows(ctx context.Context, v healthdata.View, m *models) ([]kept, error) {
	var out []kept
	err := eachSummary(ctx, v, p.table.summary, p.readWindow(), p.cycles(), func(r *tables.Row, at int64) error {
		k := kept{
			source: Source{r.Record.Provider, r.Record.SourceType}, origin: r.Record.Origin, index: at,
			updated: r.Record.UpdatedAt.UnixMicro(), id: r.Record.ID, cells: make([]tables.Cell, len(p.slots)),
		}
		if k.span, k.session = sessionSpan(r); p.table.name != "menstrual_cycle" {
			k.offset = int64(r.Record.Offset) * second
		}
		for i := range p.slots {
			k.cells[i] = p.slots[i].ofRow(r, at, m)
		}
		out = append(out, k)
		return nil
	})
	return out, err
}

func (p *plan) cycles() bool {
	return p.table.summary != nil && p.table.summary.Cycles && slices.ContainsFunc(p.slots, func(s slot) bool {
		return s.from == fromMacro || s.name == "stage_unknown_second" || s.name == "time_zone"
	})
}

// ofRow returns the value of the column s in a row of summaries. at is the index of the row.
func (s *slot) ofRow(r *tables.Row, at int64, m *models) tables.Cell {
	switch s.from {
	case fromSummary:
		return s.summary.Value(r)
	case fromMacro:
		return m.macro(s.name, r)
	case fromIndex:
		return indexCell(s.typ, at)
	default:
		return tables.Cell{}
	}
}

func indexCell(t Type, at int64) tables.Cell {
	if t == typeDate {
		at = floorDiv(at, day)
	}
	return vector.IntCell(at)
}

// runRows computes a plan over rows in memory. It also returns the sources of the rows, the preferred first;
// vector.Batch.Source is an index in them.
func (p *plan) runRows(ctx context.Context, rows []kept, o *order, limit *Limits) (*grid, []Source, error) {
	sources := make([]Source, 0, len(rows))
	for i := range rows {
		sources = append(sources, rows[i].source)
	}
	sources = o.sort(sources)
	place := make(map[Source]int, len(sources))
	for i, s := range sources {
		place[s] = i
	}
	bySource := func(a, b kept) int {
		return cmp.Or(cmp.Compare(place[a.source], place[b.source]), cmp.Compare(a.index, b.index),
			cmp.Compare(b.updated, a.updated), bytes.Compare(a.id[:], b.id[:]))
	}
	slices.SortFunc(rows, bySource)
	where, log := p.where, (*mergeLog)(nil)
	if p.origins {
		if where != nil {
			rows = p.filtered(rows)
			where = nil
		}
		m := newSummaryMerger(p, rows, place)
		rows, log = m.mergeAll(rows), m.log
		slices.SortFunc(rows, bySource) // dates come one after the other
	}
	if p.rows {
		slices.SortFunc(rows, func(a, b kept) int {
			c := cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(place[a.source], place[b.source]))
			if c == 0 && p.latest {
				c = cmp.Compare(b.updated, a.updated)
			}
			return cmp.Or(c, bytes.Compare(a.id[:], b.id[:]))
		})
	}
	var b vector.Batch
	out := newTaker(p, limit)
	for i := 0; i < len(rows); {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		j := i + 1
		for j < len(rows) && (p.rows || rows[j].source == rows[i].source) && j-i < batchRows {
			j++
		}
		p.fillBatch(&b, rows[i:j])
		b.Source = place[rows[i].source]
		if where != nil {
			b.Keep(where)
		}
		if err := out.consume(&b); err != nil {
			return nil, nil, err
		}
		i = j
	}
	g, err := out.grid()
	if err == nil {
		g.log = log
	}
	return g, sources, err
}

// fillBatch makes a batch of rows.
func (p *plan) fillBatch(b *vector.Batch, rows []kept) {
	var elements vector.Batch
	b.Reset(len(p.slots))
	for k := range p.slots {
		b.Cols[k].Type = p.slots[k].typ
	}
	for i := range rows {
		b.Index = append(b.Index, rows[i].index)
		for k := range p.slots {
			s := &p.slots[k]
			c := rows[i].cells[k]
			if s.sub != nil {
				list := &p.slots[s.sub.list]
				c = s.sub.value(rows[i].cells[s.sub.list], list.fields, &elements)
			}
			b.Cols[k].Add(c)
		}
	}
	b.N, b.OwnIndex = len(rows), b.Index
}

// filtered returns the rows for which the condition of the plan is true.
func (p *plan) filtered(rows []kept) []kept {
	var b vector.Batch
	var out []kept
	for part := range slices.Chunk(rows, batchRows) {
		p.fillBatch(&b, part)
		answers := b.Scratch()
		p.where.Eval(&b, answers)
		for i, a := range answers {
			if a == vector.IsTrue {
				out = append(out, part[i])
			}
		}
		b.Done(answers)
	}
	return out
}

// batchRows is the number of rows of summaries in a batch.
const batchRows = 4096

// taker takes batches of rows and computes a result from them.
type taker interface {
	consume(b *vector.Batch) error
	grid() (*grid, error)
}

func newTaker(p *plan, limit *Limits) taker {
	if p.rows {
		return &lister{p: p, limit: limit.Rows, out: newRowGrid(p)}
	}
	return newGrouper(p, limit)
}

// lister is the taker of queries without groups: it keeps every row.
type lister struct {
	p     *plan
	limit int
	out   *grid
}

func newRowGrid(p *plan) *grid {
	g := &grid{}
	for _, s := range p.slots {
		g.rows = append(g.rows, newColumn("", s.typ))
	}
	return g
}

func (l *lister) consume(b *vector.Batch) error {
	if l.out.n+b.N > l.limit {
		return errRows(l.limit)
	}
	l.out.at = append(l.out.at, b.Index[:b.N]...)
	for k := range l.out.rows {
		if l.p.slots[k].typ == typeList {
			continue
		}
		for i := range b.N {
			l.out.rows[k].v.Add(b.Cols[k].Cell(i))
		}
	}
	l.out.n += b.N
	return nil
}

func (l *lister) grid() (*grid, error) { return l.out, nil }
