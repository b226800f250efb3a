package aggregate

import (
	"context"
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// whole reports whether a change anywhere can change rows everywhere, so that a table
// is made anew: values are carried over gaps, or a sample holds until the next one,
// wherever that is.
func (p *plan) whole() bool { return p.align != nil || p.overTime() }

// touched returns the buckets whose rows a change of data in a span can change. The
// margin is for clocks away from UTC, and for the parts of a night that have times of
// their own.
func (p *plan) touched(s Span) window {
	const most = int64(1) << 57 // beyond it, no calendar
	if p.whole() || s.From < -most || s.To > most {
		return everything
	}
	margin := 2 * maxOffset.Microseconds()
	from, to := s.From-margin, s.To+margin
	if p.table.name == readinessTable {
		to += baselineDays * day // a night is in the baseline of those after it
	}
	period := p.keys[p.trunc].period
	return window{period.truncate(from), period.next(period.truncate(to))}
}

// within returns the plan for another window.
func (p *plan) within(w window) *plan {
	q := *p
	q.window = w
	return &q
}

// extent returns the buckets that hold all samples of a plan. Windows of summaries need
// not be cut.
func (p *plan) extent(ctx context.Context, v healthdata.View) (window, error) {
	if !p.sampleTable() {
		return everything, nil
	}
	q := healthdata.SeriesQuery{From: series.MinTime, To: series.MaxTime}
	for _, r := range p.resources {
		q.Resources = append(q.Resources, r.Slug)
	}
	all, err := v.Series(ctx, q)
	if err != nil {
		return window{}, err
	}
	from, to := series.MaxTime, series.MinTime
	for i := range all {
		for _, list := range [...][]series.Chunk{all[i].Chunks, all[i].Pending} {
			for k := range list {
				from, to = min(from, list[k].Start), max(to, list[k].Stop)
			}
		}
	}
	if from > to {
		return window{}, nil
	}
	period, margin := p.keys[p.trunc].period, maxOffset.Microseconds()
	return window{period.truncate(from - margin), period.next(period.truncate(to + margin))}, nil
}

// evaluate answers a stored plan for a user, in those buckets that a span touches.
func (s *Service) evaluate(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, p *plan, config *Config, w window) (Frame, error) {
	u, err := s.data.User(ctx, team, user)
	if err != nil {
		return Frame{}, err
	}
	priorities, err := s.opts.Priorities(ctx, team)
	if err != nil {
		return Frame{}, err
	}
	var out Frame
	err = s.data.View(ctx, team, user, func(v healthdata.View) error {
		if w == everything {
			if w, err = p.extent(ctx, v); err != nil {
				return err
			}
		}
		g := p.newGrid()
		if w != (window{}) {
			o := newOrder(config.ProviderPriorityOverrides, priorities, p.table.name)
			if g, err = s.run(ctx, v, p.within(w), o, nil); err != nil {
				return err
			}
		}
		if p.align != nil && g.n > 0 {
			if err := p.carry(g, s.wall(&u), s.opts.Limits.Rows); err != nil {
				return err
			}
		}
		out = p.frame(g)
		return nil
	})
	return out, err
}

// patch puts the rows of some buckets in the place of the old ones.
func (p *plan) patch(old, fresh *Frame, w window) Frame {
	out := Frame{Columns: make([]Column, len(fresh.Columns))}
	at := old.Columns[0].v.Ints // the index is the bucket
	for i := range out.Columns {
		c := newColumn(fresh.Columns[i].Name, fresh.Columns[i].Type)
		for r, t := range at {
			if t < w.from || t >= w.to {
				c.v.Add(old.Columns[i].v.Cell(r))
			}
		}
		for r := range fresh.Len() {
			c.v.Add(fresh.Columns[i].v.Cell(r))
		}
		out.Columns[i] = c
	}
	// In the order of the keys, as every result.
	g := &grid{n: out.Len()}
	for k := range p.keys {
		g.keys = append(g.keys, out.Columns[p.keyColumn(k)])
	}
	g.aggs = out.Columns
	g.sort()
	out.Columns = g.aggs
	return out
}

// changed returns the rows of now that before does not have, or has otherwise. Rows are
// known by their group keys.
func (p *plan) changed(before, now *Frame) []int {
	known := make(map[string]int, before.Len())
	var b []byte
	for r := range before.Len() {
		b = p.rowKey(b[:0], before, r)
		known[string(b)] = r
	}
	var out []int
	for r := range now.Len() {
		b = p.rowKey(b[:0], now, r)
		was, ok := known[string(b)]
		if !ok || !sameRow(before, was, now, r) {
			out = append(out, r)
		}
	}
	return out
}

// rowKey writes the group keys of a row so that no two rows have the same.
func (p *plan) rowKey(b []byte, f *Frame, r int) []byte {
	for k := range p.keys {
		c := &f.Columns[p.keyColumn(k)]
		switch {
		case c.Null(r):
			b = append(b, 'n')
		case c.Type == typeFloat:
			b = strconv.AppendFloat(append(b, 'f'), c.v.Floats[r], 'g', -1, 64)
		case c.Type == typeText:
			b = append(strconv.AppendInt(append(b, 't'), int64(len(c.v.Texts[r])), 10), ':')
			b = append(b, c.v.Texts[r]...)
		default:
			b = strconv.AppendInt(append(b, 'i'), c.v.Ints[r], 10)
		}
	}
	return b
}

func sameRow(a *Frame, i int, b *Frame, j int) bool {
	return !slices.ContainsFunc(a.Columns, func(c Column) bool {
		d := b.Column(c.Name)
		return d == nil || c.Value(i) != d.Value(j)
	})
}

// appendChange writes the data of an event about some rows.
func (q *ContinuousQuery) appendChange(b []byte, f *Frame, rows []int) []byte {
	b = append(b, `{"query_id":`...)
	b = appendText(b, q.ID.String())
	b = append(b, `,"query_slug":`...)
	b = appendText(b, q.Slug)
	b = append(b, `,"data":`...)
	cols := make([]Column, 0, len(f.Columns)-1)
	for _, c := range f.Columns[1:] { // without the index
		some := newColumn(c.Name, c.Type)
		for _, r := range rows {
			some.v.Add(c.v.Cell(r))
		}
		cols = append(cols, some)
	}
	w := jsonWriter{b: b}
	w.columns(cols)
	return append(w.b, '}')
}

// mostChange is how large the data of one event may be: a message has a limit, and an
// envelope around the data.
const mostChange = 900 << 10

// changes writes the data of the events about some rows: one, or several where one
// would be too large.
func (q *ContinuousQuery) changes(f *Frame, rows []int) [][]byte {
	if len(rows) == 0 {
		return nil
	}
	one := q.appendChange(nil, f, rows)
	if len(one) <= mostChange || len(rows) == 1 {
		return [][]byte{one}
	}
	half := len(rows) / 2
	return append(q.changes(f, rows[:half]), q.changes(f, rows[half:])...)
}
