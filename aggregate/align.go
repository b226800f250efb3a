package aggregate

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// carry fills the gaps of a result with the nearest values, as p.align selects. Each combination of the group keys
// other than the bucket gets a row for every bucket from its first to its last; with p.align.Limit, also for the
// buckets before and after them that a value may be carried to. now is the present time in the person's local time, in
// microseconds: no bucket after it is added at the end. The error is too_many_rows if the result has more than limit
// rows.
func (p *plan) carry(g *grid, now int64, limit int) error {
	parts := p.partitions(g)
	out := p.newGrid()
	for _, rows := range parts {
		if err := p.carryPart(g, rows, now, out, limit); err != nil {
			return err
		}
	}
	out.sort()
	*g = *out
	return nil
}

// partitions returns the row numbers of g, one list for each combination of the group keys other than the bucket. Each
// list is ascending by bucket.
func (p *plan) partitions(g *grid) [][]int {
	rows := make([]int, g.n)
	for i := range rows {
		rows[i] = i
	}
	others := func(a, b int) int {
		for k := range g.keys {
			if k == p.trunc {
				continue
			}
			v := &g.keys[k].v
			x, y := v.IsNull(a), v.IsNull(b)
			if x != y {
				if x {
					return 1
				}
				return -1
			}
			if x {
				continue
			}
			if c := v.Compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}
	at := g.keys[p.trunc].v.Ints
	slices.SortFunc(rows, func(a, b int) int {
		if c := others(a, b); c != 0 {
			return c
		}
		return cmp.Compare(at[a], at[b])
	})
	var out [][]int
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && others(rows[i], rows[j]) == 0 {
			j++
		}
		out = append(out, rows[i:j])
		i = j
	}
	return out
}

// add returns the time one period after t, or one period before t if back is true. Times are local, in microseconds
// since 1970.
func (p Period) add(t int64, back bool) int64 {
	n := p.count()
	if back {
		n = -n
	}
	switch p.Unit {
	case Month:
		return monthsBefore(t, -n)
	case Year:
		return monthsBefore(t, -12*n)
	default:
		return t + n*p.width()
	}
}

// carryPart appends the filled rows of one partition of g to out. rows are the row numbers of the partition, from the
// method partitions. now and limit are those of carry.
func (p *plan) carryPart(g *grid, rows []int, now int64, out *grid, limit int) error {
	period, a := p.keys[p.trunc].period, p.align
	at := g.keys[p.trunc].v.Ints
	first, last := at[rows[0]], at[rows[len(rows)-1]]
	if a.Limit != nil {
		if a.Mode != CarryBackward {
			last = max(last, period.truncate(min(a.Limit.add(last, false), now)))
		}
		if a.Mode != CarryForward {
			first = period.truncate(a.Limit.add(first, true))
		}
	}
	var spine []int64
	from := make([]int, 0, len(rows)) // the original row of each bucket, -1 for none
	k := 0
	for t := first; t <= last; t = period.next(t) {
		if out.n+len(spine) >= limit {
			return errRows(limit)
		}
		spine = append(spine, t)
		if k < len(rows) && at[rows[k]] == t {
			from = append(from, rows[k])
			k++
			continue
		}
		from = append(from, -1)
	}
	for i := range p.keys {
		v := &out.keys[i].v
		for _, t := range spine {
			if i == p.trunc {
				v.Add(tables.Cell{Valid: true, Int: t})
				continue
			}
			v.Add(g.keys[i].v.Cell(rows[0]))
		}
	}
	for i := range p.aggs {
		p.carryColumn(&g.aggs[i].v, &out.aggs[i].v, spine, from)
	}
	out.n += len(spine)
	return nil
}

// carryColumn copies the column in of one function to out and fills its gaps. spine has the start of each bucket, and
// from has the row of in for each bucket, -1 for none.
func (p *plan) carryColumn(in, out *vector.Vec, spine []int64, from []int) {
	known := func(i int) bool { return from[i] >= 0 && !in.IsNull(from[i]) }
	// next[i] is the first bucket from i on that has a value.
	next := make([]int, len(spine)+1)
	next[len(spine)] = len(spine)
	for i := len(spine) - 1; i >= 0; i-- {
		next[i] = next[i+1]
		if known(i) {
			next[i] = i
		}
	}
	before := -1
	for i := range spine {
		if known(i) {
			before = i
			out.Add(in.Cell(from[i]))
			continue
		}
		back, ahead := -1, -1
		if p.align.Mode != CarryBackward && before >= 0 && p.near(spine[before], spine[i]) {
			back = before
		}
		if p.align.Mode != CarryForward && next[i] < len(spine) && p.near(spine[i], spine[next[i]]) {
			ahead = next[i]
		}
		switch {
		case back >= 0 && (ahead < 0 || spine[i]-spine[back] <= spine[ahead]-spine[i]):
			out.Add(in.Cell(from[back]))
		case ahead >= 0:
			out.Add(in.Cell(from[ahead]))
		default:
			out.Add(tables.Cell{})
		}
	}
}

func (p *plan) near(early, late int64) bool {
	return p.align.Limit == nil || p.align.Limit.add(early, false) >= late
}
