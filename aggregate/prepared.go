package aggregate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Prepared is a checked query for many users, over all of their data. After a change of data, it computes only
// the changed part of the result. Package continuous stores the results. It is safe for concurrent use.
type Prepared struct {
	s         *Service
	p         *plan
	overrides []string
}

// Prepare checks a query. The query must have a date truncation and select all of its group keys. Result columns have
// qualified names; Config.ColumnNaming is ignored. The error is an InvalidError, as that of [Service.Check]. The config
// is not checked; see [Service.CheckConfig].
func (s *Service) Prepare(q *Query, c *Config) (*Prepared, error) {
	var r reader
	p := r.prepare(q, c, &s.opts.Limits)
	if err := r.Problems.Err(); err != nil {
		return nil, err
	}
	return &Prepared{s, p, c.ProviderPriorityOverrides}, nil
}

// CheckConfig reports problems in the config of a prepared query.
func (s *Service) CheckConfig(c *Config) error {
	var r reader
	r.checkConfig(c, s.opts.Known, nil)
	return r.Problems.Err()
}

// DecodeQuery reads a query from JSON and checks it as [Service.Prepare] does. Unknown keys are handled as by
// [Service.Decode].
func (s *Service) DecodeQuery(data []byte, ignoreUnknown bool) (Query, error) {
	r := reader{strictjson.Reader{Lenient: ignoreUnknown}}
	var q Query
	r.parse(data, func(n *node) { q = r.query(n, nil) })
	if len(r.Problems) == 0 || len(q.Select) > 0 {
		r.prepare(&q, &Config{}, &s.opts.Limits)
	}
	if err := r.Problems.Err(); err != nil {
		return Query{}, err
	}
	return q, nil
}

// DecodeConfig reads the config of a query from JSON and checks it as [Service.CheckConfig] does. Unknown keys
// are handled as by [Service.Decode].
func (s *Service) DecodeConfig(data []byte, ignoreUnknown bool) (Config, error) {
	r := reader{strictjson.Reader{Lenient: ignoreUnknown}}
	var c Config
	r.parse(data, func(n *node) { c = r.config(n, nil) })
	r.checkConfig(&c, s.opts.Known, nil)
	if err := r.Problems.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

const codeContinuous = "continuous_query_invalid"

// prepare checks a query over all data, and returns its plan.
func (r *reader) prepare(q *Query, c *Config, limits *Limits) *plan {
	before := len(r.Problems)
	config := *c
	config.ColumnNaming = QualifiedNames
	p := r.checkQuery(q, &config, limits, nil)
	p.window = everything
	if len(r.Problems) > before {
		return p
	}
	if len(p.joins) > 0 {
		r.Fault(codeContinuous, "must be left out of a continuous query", path{"join"})
	}
	if p.table != nil && p.table.name == labTable {
		r.Fault(codeContinuous, "must not use the table lab_result in a continuous query", path{"select"})
	}
	if p.trunc < 0 {
		r.Fault(codeContinuous, "must have exactly one date truncation in a continuous query", path{"group_by"})
	}
	for k := range p.keys {
		if p.keyColumn(k) < 0 {
			r.Fault(codeContinuous, "must have every group key in a continuous query", path{"select"})
			break
		}
	}
	return p
}

// Schema returns the types of the result columns by name.
func (q *Prepared) Schema() map[string]Type {
	out := map[string]Type{}
	f := q.Empty()
	for _, c := range f.Columns {
		out[c.Name] = c.Type
		if c.Type == typeInstant {
			out[c.Name] = typeTime // the API has one name for both types
		}
	}
	return out
}

// Empty returns a result without rows.
func (q *Prepared) Empty() Frame { return q.p.frame(q.p.newGrid()) }

// Resources returns the slugs of the resources that results depend on.
func (q *Prepared) Resources() []string {
	p := q.p
	var out []string
	switch {
	case p.sampleTable():
		for _, r := range p.resources {
			out = append(out, r.Slug)
		}
	case p.table.summary == nil:
		out = append(out, tables.ByName("sleep").Resource)
	default:
		out = append(out, p.table.summary.Resource)
		if p.cycles() {
			out = append(out, cycleResource)
		}
	}
	return out
}

// Span is a time span in microseconds since 1970, both ends included.
type Span = healthdata.Span

// Always is all of time.
var Always = Span{From: math.MinInt64, To: math.MaxInt64}

// Refreshed is an updated result.
type Refreshed struct {
	Frame Frame
	// Changed are the numbers of the new and changed rows of Frame, ascending. Group keys identify a row.
	Changed []int
}

// Refresh updates the result for a user after data has changed in a time span: the timestamps of samples, and
// the Index of records. before is the previous result, with the columns of Empty; nil if there is none. Only
// the buckets in the span are evaluated, or all of them if a change may affect any row.
//
// Errors and time limit are those of [Service.Query]. It does not check whether the team may query.
func (q *Prepared) Refresh(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, before *Frame, changed Span) (Refreshed, error) {
	w := q.p.touched(changed)
	if before == nil {
		w = everything
	}
	ctx, cancel := context.WithTimeout(ctx, q.s.opts.Limits.Time)
	defer cancel()
	now, err := q.evaluate(ctx, team, user, w)
	if err != nil {
		return Refreshed{}, fmt.Errorf("refresh result: %w", err)
	}
	if before == nil {
		before = new(q.Empty())
	}
	if w != everything {
		now = q.p.patch(before, &now, w)
		if limit := q.s.opts.Limits.Rows; now.Len() > limit {
			return Refreshed{}, errRows(limit)
		}
	}
	return Refreshed{now, q.p.changed(before, &now)}, nil
}

func (p *plan) unbounded() bool { return p.align != nil || p.overTime() }

// touched returns the window of the buckets whose rows a change of data in s can affect. Its margin covers time zones
// and the stages of a night, whose times differ from the Index of the night's session.
func (p *plan) touched(s Span) window {
	const most = int64(1) << 57 // dates beyond this are not computed
	if p.unbounded() || s.From < -most || s.To > most {
		return everything
	}
	margin := 2 * maxOffset.Microseconds()
	from, to := s.From-margin, s.To+margin
	if p.table.name == readinessTable {
		to += baselineDays * day // the readiness of later days depends on this night
	}
	period := p.keys[p.trunc].period
	return window{period.truncate(from), period.next(period.truncate(to))}
}

// extent returns the window of the buckets that contain all samples of a plan. For a plan that reads no samples it
// returns everything.
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

// evaluate computes the query in a window.
func (q *Prepared) evaluate(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w window) (Frame, error) {
	s, p := q.s, q.p
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
		w := w // read may run again
		if w == everything {
			if w, err = p.extent(ctx, v); err != nil {
				return err
			}
		}
		g := p.newGrid()
		if w != (window{}) {
			o := newOrder(q.overrides, priorities, p.table.name)
			if g, err = s.run(ctx, v, p.within(w), o, nil, nil); err != nil {
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

// patch returns old with the rows of the buckets in w replaced by the rows of fresh.
func (p *plan) patch(old, fresh *Frame, w window) Frame {
	out := Frame{Columns: make([]Column, len(fresh.Columns))}
	at := old.Columns[0].v.Ints // the index is the bucket
	for i := range out.Columns {
		c := newColumn(fresh.Columns[i].Name, fresh.Columns[i].Type)
		c.days = fresh.Columns[i].days
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
	// Sort the rows by their keys, as in every result.
	g := &grid{n: out.Len()}
	for k := range p.keys {
		g.keys = append(g.keys, out.Columns[p.keyColumn(k)])
	}
	g.aggs = out.Columns
	g.sort()
	out.Columns = g.aggs
	return out
}

// changed returns the numbers of the rows of now that are new or differ from before. Group keys identify a row.
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

// rowKey encodes the group keys of a row uniquely.
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
		d, err := b.Column(c.Name)
		return err != nil || c.Value(i) != d.Value(j)
	})
}

// keyColumn returns the index of the frame's column with a group key, -1 if there is none.
func (p *plan) keyColumn(k int) int {
	i := slices.IndexFunc(p.outs, func(o out) bool { return o.kind == outKey && o.n == k })
	if i < 0 {
		return -1
	}
	return 1 + i // the first column is the index
}
