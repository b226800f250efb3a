package aggregate

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// summaryMerger removes the rows of summaries that a preferred source, or a preferred origin of the same
// source, covers.
type summaryMerger struct {
	p       *plan
	place   map[Source]int
	origins []healthdata.Origin // the first one is empty: the origin is unknown
	log     *mergeLog
}

// teller identifies the source and the origin that recorded a row, by their indexes.
type teller struct{ source, origin int }

func newSummaryMerger(p *plan, rows []kept, place map[Source]int) *summaryMerger {
	m := &summaryMerger{p: p, place: place, origins: []healthdata.Origin{{}}}
	for i := range rows {
		if o := rows[i].origin; !slices.Contains(m.origins, o) {
			m.origins = append(m.origins, o)
		}
	}
	slices.SortFunc(m.origins, compareOrigins)
	m.log = newMergeLog(p, m.origins)
	return m
}

func (m *summaryMerger) recorderOf(r *kept) teller {
	return teller{m.place[r.source], slices.Index(m.origins, r.origin)}
}

// mergeAll returns the rows to use: merged over all sources, or per source if the plan does not merge sources.
func (m *summaryMerger) mergeAll(rows []kept) []kept {
	if m.p.merge {
		return m.merge(rows)
	}
	var out []kept
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].source == rows[i].source {
			j++
		}
		out, i = append(out, m.merge(rows[i:j])...), j
	}
	return out
}

// merge returns the rows to use. rows are sorted by source, preferred first, then by index, and filtered by the
// condition.
func (m *summaryMerger) merge(rows []kept) []kept {
	switch m.p.table.name {
	case "sleep", "workout", "menstrual_cycle":
		return m.mergeSessions(rows)
	case "meal":
		return m.mergeByHour(rows)
	default:
		return m.mergeByDate(rows)
	}
}

func (p *plan) inWindow(r *kept) bool { return r.index >= p.window.from && r.index < p.window.to }

// note adds a verdict about a row to the log, if the row is in the window. t recorded the row; better is the preferred
// source and origin, nil if the row is used.
func (m *summaryMerger) note(r *kept, v verdict, t teller, better *teller) {
	v.source, v.origin, v.better, v.betterOrigin = t.source, t.origin, -1, -1
	if better != nil {
		if v.better = better.source; better.source == t.source {
			v.betterOrigin, v.rule = better.origin, ruleOverlap
			if better.origin != t.origin {
				v.rule = ruleOrigin
			}
		}
	}
	if m.p.inWindow(r) {
		m.log.add(v, 1)
	}
}

// mergeSessions removes a session if a preferred one overlaps more than half of the shorter of the two. A
// session of a preferred source is preferred; of one source the longer one, then the one that was received
// later. Cycles of one origin are not compared, because a prediction may overlap the recorded cycle.
func (m *summaryMerger) mergeSessions(rows []kept) []kept {
	type session struct {
		interval
		teller
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b kept) int {
		return cmp.Or(cmp.Compare(m.place[a.source], m.place[b.source]), cmp.Compare(b.span.to-b.span.from, a.span.to-a.span.from),
			cmp.Compare(b.updated, a.updated))
	})
	var out []kept
	var used []session
	for i := range rows {
		r, t := &rows[i], m.recorderOf(&rows[i])
		v := verdict{from: r.index, to: r.index, unit: "session", used: usedAll}
		var better *teller
		if r.session {
			v.from, v.to = r.span.from+r.offset, r.span.to+r.offset
			k := slices.IndexFunc(used, func(s session) bool {
				if s.teller == t && m.p.table.name == "menstrual_cycle" {
					return false
				}
				common := min(s.to, r.span.to) - max(s.from, r.span.from)
				return 2*common > min(s.to-s.from, r.span.to-r.span.from)
			})
			if k >= 0 {
				v.used, better = usedNone, &used[k].teller
			} else {
				used = append(used, session{r.span, t})
			}
		}
		m.note(r, v, t, better)
		if v.used == usedAll && m.p.inWindow(r) {
			out = append(out, *r)
		}
	}
	return out
}

// ordered sorts summaries by the team's preference between sources. Within one source it keeps the summaries of an
// origin (app or device) together; the origin that sent the summary received last comes first.
func (m *summaryMerger) ordered(rows []kept) {
	latest := map[teller]int64{}
	for i := range rows {
		t := m.recorderOf(&rows[i])
		latest[t] = max(latest[t], rows[i].updated)
	}
	slices.SortStableFunc(rows, func(a, b kept) int {
		x, y := m.recorderOf(&a), m.recorderOf(&b)
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(latest[y], latest[x]), cmp.Compare(x.origin, y.origin))
	})
}

// mergeByHour uses, for each local hour, the rows of the preferred source and origin that have a row in the hour.
func (m *summaryMerger) mergeByHour(rows []kept) []kept {
	var out []kept
	for h, group := range grouped(rows, func(r *kept) int64 { return floorDiv(r.index, hour) }) {
		m.ordered(group)
		best := m.recorderOf(&group[0])
		for i := range group {
			r, t := &group[i], m.recorderOf(&group[i])
			v := verdict{from: h * hour, to: (h + 1) * hour, unit: "hour", used: usedAll}
			var better *teller
			if t != best {
				v.used, better = usedNone, &best
			}
			m.note(r, v, t, better)
			if v.used == usedAll && m.p.inWindow(r) {
				out = append(out, *r)
			}
		}
	}
	return out
}

// grouped yields rows by group number, ascending. of returns the group number of a row.
func grouped(rows []kept, of func(*kept) int64) func(yield func(int64, []kept) bool) {
	return func(yield func(int64, []kept) bool) {
		groups := map[int64][]kept{}
		var order []int64
		for i := range rows {
			n := of(&rows[i])
			if _, ok := groups[n]; !ok {
				order = append(order, n)
			}
			groups[n] = append(groups[n], rows[i])
		}
		slices.Sort(order)
		for _, n := range order {
			if !yield(n, groups[n]) {
				return
			}
		}
	}
}

// mergeByDate uses, for each local date and column, the preferred source that has a value. The rows of the
// preferred source stay; a row of another source keeps the columns that it is used for. If each source has one
// row of the date, they are combined into one, unless rows are grouped by a source. A profile has no date: all
// of its rows are merged.
func (m *summaryMerger) mergeByDate(rows []kept) []kept {
	var out []kept
	date := func(r *kept) int64 {
		if m.p.table.indexType == typeInstant {
			return 0
		}
		return floorDiv(r.index, day)
	}
	for d, group := range grouped(rows, date) {
		m.ordered(group)
		for _, r := range m.mergeDate(group, d) {
			if m.p.inWindow(&r) {
				out = append(out, r)
			}
		}
	}
	return out
}

func (p *plan) isKeyColumn(slot int) bool {
	return slices.ContainsFunc(p.keys, func(k key) bool { return k.kind == keySlot && k.slot == slot })
}

// mergeDate merges the rows of one local date, in days since 1970, or all rows of a profile, with the date 0. rows are
// sorted, preferred source first.
func (m *summaryMerger) mergeDate(rows []kept, date int64) (out []kept) {
	best := m.recorderOf(&rows[0])
	count := map[teller]int{}
	owner := make([]*teller, len(rows[0].cells)) // by column: the source and origin whose value is used
	apart := false
	for k := range owner {
		apart = apart || m.p.isKeyColumn(k)
	}
	for i := range rows {
		t := m.recorderOf(&rows[i])
		count[t]++
		for k, c := range rows[i].cells {
			if c.Valid && owner[k] == nil {
				owner[k] = &t
			}
		}
	}
	for i := range rows {
		r, t := rows[i], m.recorderOf(&rows[i])
		v := verdict{from: date * day, to: (date + 1) * day, unit: "date", used: usedAll}
		if t == best {
			r.cells = slices.Clone(r.cells)
			out = append(out, r)
			m.note(&r, v, t, nil)
			continue
		}
		cells := make([]tables.Cell, len(r.cells))
		used := 0
		var better *teller
		for k, c := range r.cells {
			switch {
			case !c.Valid:
			case m.p.isKeyColumn(k):
				cells[k] = c
			case *owner[k] == t:
				cells[k] = c
				used++
			default:
				v.used, better = usedPart, &best
			}
		}
		switch {
		case used == 0:
			v.used, better = usedNone, &best
		case count[best] == 1 && count[t] == 1 && !apart:
			for k, c := range cells {
				if c.Valid {
					out[0].cells[k] = c
				}
			}
		default:
			r.cells = cells
			out = append(out, r)
		}
		m.note(&r, v, t, better)
	}
	return out
}
