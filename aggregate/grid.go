package aggregate

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
)

// grid is a partial result: the keys and functions of each group, or the values of each row.
type grid struct {
	n    int
	keys []Column
	aggs []Column
	rows []Column // without groups: the values of each row by column of the plan; at has the index of each row
	at   []int64
	wins []win     // the chosen sources, if the plan is explained
	log  *mergeLog // the merged sources, if the plan is explained and merges
}

func (p *plan) newGrid() *grid {
	g := &grid{}
	for _, k := range p.keys {
		g.keys = append(g.keys, newColumn("", k.typ))
	}
	for _, a := range p.aggs {
		g.aggs = append(g.aggs, newColumn("", a.typ))
	}
	return g
}

// append appends the groups of another grid.
func (g *grid) append(o *grid) {
	for _, pair := range [...][2][]Column{{g.keys, o.keys}, {g.aggs, o.aggs}} {
		for i := range pair[0] {
			for k := range o.n {
				pair[0][i].v.Add(pair[1][i].v.Cell(k))
			}
		}
	}
	g.n += o.n
	g.wins = append(g.wins, o.wins...)
}

// sort sorts the groups by their keys, null last.
func (g *grid) sort() {
	if g.sorted() {
		return
	}
	order := make([]int32, g.n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return g.compare(int(a), int(b)) })
	for _, cols := range [...][]Column{g.keys, g.aggs} {
		for i := range cols {
			cols[i].v = vector.Permuted(&cols[i].v, order)
		}
	}
}

func (g *grid) sorted() bool {
	for i := 1; i < g.n; i++ {
		if g.compare(i-1, i) > 0 {
			return false
		}
	}
	return true
}

func (g *grid) compare(a, b int) int {
	for i := range g.keys {
		v := &g.keys[i].v
		x, y := v.IsNull(a), v.IsNull(b)
		switch {
		case x && y:
			continue
		case x != y:
			if x {
				return 1
			}
			return -1
		}
		if c := v.Compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// sortRows sorts the rows of a query without groups by time. Rows of the same time stay in the order in which they were
// read: by source, then by the identity of the sample.
func (g *grid) sortRows() {
	order := make([]int32, g.n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(g.at[a], g.at[b]) })
	at := make([]int64, g.n)
	for k, i := range order {
		at[k] = g.at[i]
	}
	g.at = at
	for i := range g.rows {
		if g.rows[i].Type != typeList {
			g.rows[i].v = vector.Permuted(&g.rows[i].v, order)
		}
	}
}

// frame makes the result from a grid.
func (p *plan) frame(g *grid) Frame {
	index := newColumn("index", p.indexType())
	switch {
	case p.rows:
		index.v.Ints = g.at
	case p.trunc >= 0:
		index.v.Ints, index.days = g.keys[p.trunc].v.Ints, p.keys[p.trunc].days()
	default:
		index.v.Ints = make([]int64, g.n)
		for i := range index.v.Ints {
			index.v.Ints[i] = int64(i)
		}
	}
	out := Frame{Columns: append(make([]Column, 0, 1+len(p.outs)), index)}
	for _, o := range p.outs {
		col := Column{Name: o.name, Type: o.typ}
		switch o.kind {
		case outKey:
			col.v, col.days = g.keys[o.n].v, p.keys[o.n].days()
		case outAgg:
			col.v = g.aggs[o.n].v
		default:
			col.v = g.rows[o.n].v
		}
		out.Columns = append(out.Columns, col)
	}
	return out
}
