package aggregate

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// mergeSummaries returns the rows that count. rows are in order of source, best first, then
// of index; where was applied to them.
func (p *plan) mergeSummaries(rows []kept, place map[Source]int, lane []int) ([]kept, *mergeLog) {
	log := newMergeLog(p)
	byLane := map[int][]kept{}
	var order []int
	for _, r := range rows {
		l := lane[place[r.source]]
		if _, ok := byLane[l]; !ok {
			order = append(order, l)
		}
		byLane[l] = append(byLane[l], r)
	}
	out := make([]kept, 0, len(rows))
	for _, l := range order {
		switch p.table.name {
		case "sleep", "workout", "menstrual_cycle":
			out = append(out, p.mergeSessions(byLane[l], place, log)...)
		case "meal":
			out = append(out, p.mergeByHour(byLane[l], place, log)...)
		default:
			out = append(out, p.mergeByDate(byLane[l], place, log)...)
		}
	}
	return out, log
}

// inWindow reports whether a row is asked for; others are read only to decide about it.
func (p *plan) inWindow(r *kept) bool { return r.index >= p.window.from && r.index < p.window.to }

// mergeSessions leaves out a session if a session of a better source has more than half of
// the shorter of the two in common with it.
func (p *plan) mergeSessions(rows []kept, place map[Source]int, log *mergeLog) []kept {
	var out []kept
	var better []claim // spans of the sessions that are used, of all sources before this one
	var fresh []claim
	for i := range rows {
		r := &rows[i]
		source := place[r.source]
		if len(fresh) > 0 && fresh[0].source != source {
			better, fresh = append(better, fresh...), nil
		}
		v := verdict{source: source, from: r.index, to: r.index, unit: "session", used: usedAll, better: -1}
		if r.session {
			v.from, v.to = r.span.from, r.span.to
			k := slices.IndexFunc(better, func(c claim) bool {
				common := min(c.to, r.span.to) - max(c.from, r.span.from)
				return 2*common > min(c.to-c.from, r.span.to-r.span.from)
			})
			if k >= 0 {
				v.used, v.better = usedNone, better[k].source
			} else {
				fresh = append(fresh, claim{r.span, source})
			}
		}
		if !p.inWindow(r) {
			continue
		}
		log.add(v, 1)
		if v.used == usedAll {
			out = append(out, *r)
		}
	}
	return out
}

// mergeByHour uses the best source with a row in the local hour.
func (p *plan) mergeByHour(rows []kept, place map[Source]int, log *mergeLog) []kept {
	var out []kept
	owner := map[int64]int{}
	for i := range rows {
		r := &rows[i]
		source, h := place[r.source], floorDiv(r.index, hour)
		v := verdict{source: source, from: h * hour, to: (h + 1) * hour, unit: "hour", used: usedAll, better: -1}
		if o, ok := owner[h]; !ok {
			owner[h] = source
		} else if o != source {
			v.used, v.better = usedNone, o
		}
		if !p.inWindow(r) {
			continue
		}
		log.add(v, 1)
		if v.used == usedAll {
			out = append(out, *r)
		}
	}
	return out
}

// mergeByDate uses, for each local date and column, the best source that has a value. The
// rows of the best source stay; a row of a worse one stays with the columns that it is used
// for. Where each source has one row of the date, they become one. A profile has no date:
// all of its rows are merged.
func (p *plan) mergeByDate(rows []kept, place map[Source]int, log *mergeLog) []kept {
	byDate := map[int64][]kept{}
	var dates []int64
	for _, r := range rows {
		d := floorDiv(r.index, day)
		if p.table.indexType == typeInstant {
			d = 0
		}
		if _, ok := byDate[d]; !ok {
			dates = append(dates, d)
		}
		byDate[d] = append(byDate[d], r)
	}
	slices.Sort(dates)
	var out []kept
	for _, d := range dates {
		group := byDate[d]
		merged, verdicts := mergeDate(group, place)
		for i := range merged {
			if p.inWindow(&merged[i]) {
				out = append(out, merged[i])
			}
		}
		for i := range verdicts {
			if p.inWindow(&group[i]) {
				verdicts[i].from, verdicts[i].to = d*day, (d+1)*day
				log.add(verdicts[i], 1)
			}
		}
	}
	return out
}

// mergeDate merges the rows of one date, best source first. The verdicts are about the rows
// in their order.
func mergeDate(rows []kept, place map[Source]int) (out []kept, verdicts []verdict) {
	best := place[rows[0].source]
	count := map[int]int{}
	owner := make([]int, len(rows[0].cells)) // by column, the source whose values are used
	for k := range owner {
		owner[k] = -1
	}
	for i := range rows {
		source := place[rows[i].source]
		count[source]++
		for k, c := range rows[i].cells {
			if c.Valid && owner[k] < 0 {
				owner[k] = source
			}
		}
	}
	for i := range rows {
		r := rows[i]
		source := place[r.source]
		v := verdict{source: source, unit: "date", used: usedAll, better: -1}
		if source == best {
			r.cells = slices.Clone(r.cells)
			out, verdicts = append(out, r), append(verdicts, v)
			continue
		}
		cells := make([]tables.Cell, len(r.cells))
		used := 0
		for k, c := range r.cells {
			switch {
			case !c.Valid:
			case owner[k] == source:
				cells[k] = c
				used++
			default:
				v.used, v.better = usedPart, best
			}
		}
		switch {
		case used == 0:
			v.used, v.better = usedNone, best
		case count[best] == 1 && count[source] == 1:
			for k, c := range cells {
				if c.Valid {
					out[0].cells[k] = c
				}
			}
		default:
			r.cells = cells
			out = append(out, r)
		}
		verdicts = append(verdicts, v)
	}
	return out, verdicts
}
