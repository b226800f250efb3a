package aggregate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// grouper puts rows into groups and chooses between sources in each. It accepts batches in any order of time,
// but the batches of a preferred source must come before those of others.
type grouper struct {
	p      *plan
	limit  int
	left   int // number of values that may still be stored
	groups map[string]*group
	list   []*group
	texts  map[string]int64
	names  []string

	codes [][]int64 // the codes of the current batch's rows, by key
	null  []([]bool)
	tuple []byte
	last  *group
}

// group is one combination of key values.
type group struct {
	keys  []int64
	nulls []bool
	cells []cell // the accumulated values, by resource
}

// cell is the accumulated values of one resource in one group.
type cell struct {
	source int // the chosen source; -1 for none yet
	n      int
	accs   []vector.Acc
	taken  intervals // the intervals of preferred sources, if gaps are filled
	fresh  []interval
}

func newGrouper(p *plan, limit *Limits) *grouper {
	g := &grouper{p: p, limit: limit.Rows, left: limit.Values, groups: map[string]*group{}, texts: map[string]int64{}}
	g.codes = make([][]int64, len(p.keys))
	g.null = make([][]bool, len(p.keys))
	if !p.grouped {
		g.add(nil, nil) // an ungrouped query has one row even without data
	}
	return g
}

func (g *grouper) add(keys []int64, nulls []bool) *group {
	n := &group{keys: slices.Clone(keys), nulls: slices.Clone(nulls), cells: make([]cell, max(1, len(g.p.resources)))}
	for i := range n.cells {
		n.cells[i].source = -1
	}
	g.groups[string(g.tuple)] = n
	g.list = append(g.list, n)
	return n
}

var errRows = func(limit int) error {
	return healthlab.Problems{{Code: "too_many_rows", Msg: fmt.Sprintf("must return at most %d rows; use a shorter timeframe, a longer date_trunc, fewer group keys or a condition", limit), Context: map[string]any{"limit": limit}}}.Err()
}

// consume puts the rows of a batch into their groups.
func (g *grouper) consume(b *vector.Batch) error {
	if b.N == 0 {
		return nil
	}
	if len(g.p.keys) == 0 {
		g.put(g.list[0], b, 0, b.N)
		return nil
	}
	for k := range g.p.keys {
		if g.null[k] = nil; !g.byTime() {
			g.code(k, b)
		} else if cap(g.codes[k]) < b.N {
			g.codes[k] = make([]int64, b.N)
		}
	}
	for i := 0; i < b.N; {
		var j int
		if g.byTime() {
			j = g.bucketEnd(b, i)
		} else {
			j = g.runEnd(i, b.N)
		}
		n := g.find(i)
		if n == nil {
			if len(g.list) >= g.limit {
				return errRows(g.limit)
			}
			n = g.addGroup(i)
		}
		g.put(n, b, i, j)
		i = j
	}
	return nil
}

func (g *grouper) byTime() bool { return len(g.p.keys) == 1 && g.p.trunc == 0 }

// bucketEnd returns the end (exclusive) of the run of rows from row i in the same bucket. A bucket has several runs if
// the person's clock was set back.
func (g *grouper) bucketEnd(b *vector.Batch, i int) int {
	p := g.p.keys[0].period
	at := p.truncate(b.Index[i])
	until := p.next(at)
	g.codes[0] = g.codes[0][:b.N]
	g.codes[0][i] = at
	j := i + 1
	for j < b.N && b.Index[j] < until && b.Index[j] >= at {
		j++
	}
	return j
}

// isOutranked reports whether source contributes nothing between the local times from and to, because a preferred
// source was chosen in every bucket there. It returns false for a range of more than 64 buckets.
func (g *grouper) isOutranked(source, resource int, from, to int64) bool {
	const most = 64
	p := g.p.keys[0].period
	at := p.truncate(from)
	for range most {
		g.tuple = binary.LittleEndian.AppendUint64(append(g.tuple[:0], 0), uint64(at))
		n := g.groups[string(g.tuple)]
		if n == nil || n.cells[resource].source < 0 || n.cells[resource].source >= source {
			return false
		}
		if at = p.next(at); at > to {
			return true
		}
	}
	return false
}

// runEnd returns the end (exclusive) of the run of rows with the same keys as row i. n is the number of rows.
func (g *grouper) runEnd(i, n int) int {
	j := n
	for k := range g.codes {
		codes, null := g.codes[k], g.null[k]
		at := i + 1
		for at < j && codes[at] == codes[i] && (null == nil || null[at] == null[i]) {
			at++
		}
		j = at
	}
	return j
}

// code maps the values of key k in the batch to integers.
func (g *grouper) code(k int, b *vector.Batch) {
	key := &g.p.keys[k]
	codes := g.codes[k]
	if cap(codes) < b.N {
		codes = make([]int64, b.N)
	}
	codes = codes[:b.N]
	g.codes[k], g.null[k] = codes, nil
	switch key.kind {
	case keyTrunc:
		var at, until int64
		for i, t := range b.Index {
			if t < at || t >= until {
				at = key.period.truncate(t)
				until = key.period.next(at)
			}
			codes[i] = at
		}
	case keyPart:
		var from, until, v int64
		for i, t := range b.Index {
			if t < from || t >= until {
				v, until = key.part.of(t)
				from = t
			}
			codes[i] = v
		}
	default:
		v := &b.Cols[key.slot]
		g.null[k] = v.Nulls
		switch v.Type {
		case typeFloat:
			for i, x := range v.Floats {
				codes[i] = int64(math.Float64bits(x + 0))
			}
		case typeText:
			last := int64(-1)
			for i, s := range v.Texts {
				if last < 0 || s != g.names[last] {
					last = g.intern(s)
				}
				codes[i] = last
			}
		default:
			copy(codes, v.Ints)
		}
		for i, null := range v.Nulls {
			if null {
				codes[i] = 0
			}
		}
	}
}

func (g *grouper) intern(s string) int64 {
	if n, ok := g.texts[s]; ok {
		return n
	}
	n := int64(len(g.names))
	g.names = append(g.names, s)
	g.texts[s] = n
	return n
}

// find returns the group of row i, or nil if the group does not exist.
func (g *grouper) find(i int) *group {
	if g.last != nil && g.matchesKeys(g.last, i) {
		return g.last
	}
	g.tuple = g.tuple[:0]
	for k := range g.codes {
		null := byte(0)
		if g.isNull(k, i) {
			null = 1
		}
		g.tuple = binary.LittleEndian.AppendUint64(append(g.tuple, null), uint64(g.codes[k][i]))
	}
	g.last = g.groups[string(g.tuple)]
	return g.last
}

func (g *grouper) isNull(k, i int) bool { return g.null[k] != nil && g.null[k][i] }

func (g *grouper) matchesKeys(n *group, i int) bool {
	for k := range g.codes {
		if n.keys[k] != g.codes[k][i] || n.nulls[k] != g.isNull(k, i) {
			return false
		}
	}
	return true
}

// addGroup adds a group with the keys of row i. The caller has checked with find that there is none.
func (g *grouper) addGroup(i int) *group {
	keys, nulls := make([]int64, len(g.codes)), make([]bool, len(g.codes))
	for k := range g.codes {
		keys[k], nulls[k] = g.codes[k][i], g.isNull(k, i)
	}
	g.last = g.add(keys, nulls)
	return g.last
}

// put adds the rows i to j (exclusive) of b to a group. It ignores them if a preferred source was chosen in the group.
func (g *grouper) put(n *group, b *vector.Batch, i, j int) {
	c := &n.cells[b.Resource]
	if c.accs == nil {
		c.accs = make([]vector.Acc, len(g.p.aggs))
		for k := range c.accs {
			c.accs[k] = g.p.aggs[k].accumulator(&g.left)
		}
	}
	switch {
	case c.source < 0, c.source == b.Source:
	case g.p.fill && g.interval(b.Resource):
		c.taken.add(c.fresh)
		c.fresh = c.fresh[:0]
	case g.p.chosen:
		return // the group has rows of a preferred source
	}
	c.source = b.Source
	if g.p.fill && g.interval(b.Resource) {
		g.fillIn(c, b, i, j)
		return
	}
	c.add(b, g.p, i, j)
}

func (c *cell) add(b *vector.Batch, p *plan, i, j int) {
	c.n += j - i
	for k, a := range c.accs {
		a.Add(&b.Cols[p.aggs[k].slot], b, i, j)
	}
}

func (g *grouper) interval(resource int) bool {
	return g.p.sampleTable() && g.p.resources[resource].Shape != healthdata.Discrete
}

// fillIn adds those of the rows i to j (exclusive) of b that do not overlap an interval of a preferred source.
func (g *grouper) fillIn(c *cell, b *vector.Batch, i, j int) {
	for ; i < j; i++ {
		v := interval{b.Start[i], b.Start[i]}
		if b.End != nil && b.End[i] != series.NoEnd && b.End[i] > v.from {
			v.to = b.End[i]
		}
		if c.taken.overlaps(v) {
			continue
		}
		c.fresh = append(c.fresh, v)
		c.add(b, g.p, i, i+1)
	}
}

// intervals are the time spans and instants that preferred sources occupy.
type intervals struct {
	long   []interval // time spans, sorted by from
	reach  []int64    // for each span, the latest end of this and all earlier spans
	points []int64
}

// add adds occupied intervals.
func (t *intervals) add(list []interval) {
	for _, v := range list {
		if v.from == v.to {
			t.points = append(t.points, v.from)
		} else {
			t.long = append(t.long, v)
		}
	}
	slices.Sort(t.points)
	slices.SortFunc(t.long, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	t.reach = t.reach[:0]
	most := int64(math.MinInt64)
	for _, v := range t.long {
		most = max(most, v.to)
		t.reach = append(t.reach, most)
	}
}

// overlaps reports whether v overlaps an occupied interval. An instant overlaps an interval from its start up to,
// but not at, its end; two instants never overlap.
func (t *intervals) overlaps(v interval) bool {
	last := v.to
	if v.from == v.to {
		last++
	} else if i, _ := slices.BinarySearch(t.points, v.from); i < len(t.points) && t.points[i] < v.to {
		return true
	}
	i, _ := slices.BinarySearchFunc(t.long, last, func(e interval, at int64) int { return cmp.Compare(e.from, at) })
	return i > 0 && t.reach[i-1] > v.from
}

// grid returns the results of the groups.
func (g *grouper) grid() (*grid, error) {
	out := g.p.newGrid()
	empty := make([]vector.Acc, len(g.p.aggs))
	for _, n := range g.list {
		accs := []vector.Acc(nil)
		rows := 0
		for i := range n.cells {
			c := &n.cells[i]
			rows += c.n
			if g.p.traced && !g.p.fill && c.source >= 0 {
				out.wins = append(out.wins, win{at: g.start(n), source: c.source, resource: i})
			}
			switch {
			case c.accs == nil:
			case accs == nil:
				accs = c.accs
			default:
				for k := range accs {
					accs[k].Merge(c.accs[k])
				}
			}
		}
		if rows == 0 && g.p.grouped {
			continue
		}
		if accs == nil {
			for k := range empty {
				empty[k] = g.p.aggs[k].accumulator(&g.left)
			}
			accs = empty
		}
		for k := range g.p.keys {
			out.keys[k].v.Add(g.keyCell(n, k))
		}
		for k, a := range accs {
			v, err := a.Result()
			if err != nil {
				return nil, err
			}
			out.aggs[k].v.Add(v)
		}
		out.n++
	}
	out.sort()
	return out, nil
}

func (g *grouper) start(n *group) int64 {
	if g.p.trunc < 0 {
		return g.p.window.from
	}
	return n.keys[g.p.trunc]
}

// keyCell returns the value of group key k, which n stores as a code.
func (g *grouper) keyCell(n *group, k int) tables.Cell {
	if n.nulls[k] {
		return tables.Cell{}
	}
	switch g.p.keys[k].typ {
	case typeFloat:
		return tables.Cell{Valid: true, Float: math.Float64frombits(uint64(n.keys[k]))}
	case typeText:
		return tables.Cell{Valid: true, Text: g.names[n.keys[k]]}
	default:
		return tables.Cell{Valid: true, Int: n.keys[k]}
	}
}
