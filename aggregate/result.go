package aggregate

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Result is the answer to a request: one [Frame] for each query, in order.
type Result struct {
	Frames []Frame
	// Explain has one entry for each query if it was asked for; nil otherwise.
	Explain []Explanation
}

// Frame is the answer to one query, as columns of equal length. The first column is
// always index.
type Frame struct {
	Columns []Column
}

// Len returns the number of rows.
func (f *Frame) Len() int {
	if len(f.Columns) == 0 {
		return 0
	}
	return f.Columns[0].Len()
}

// Column returns the column of that name, or nil.
func (f *Frame) Column(name string) *Column {
	for i := range f.Columns {
		if f.Columns[i].Name == name {
			return &f.Columns[i]
		}
	}
	return nil
}

// Rows yields the number of each row and its values as [Column.Value] has them.
func (f *Frame) Rows() iter.Seq2[int, []any] {
	return func(yield func(int, []any) bool) {
		for i := range f.Len() {
			row := make([]any, len(f.Columns))
			for k := range f.Columns {
				row[k] = f.Columns[k].Value(i)
			}
			if !yield(i, row) {
				return
			}
		}
	}
}

// Column is one column of a result.
type Column struct {
	Name string
	// Type is TypeInt64, TypeFloat64, TypeBool, TypeString, TypeDate, TypeTimestamp
	// (the person's clock) or TypeInstant (UTC). It depends on the query only.
	Type Type

	v vector.Vec
}

// NewColumn returns a column of values as [Column.Value] has them, nil for null. Invalid
// names the row whose value has another type.
func NewColumn(name string, t Type, values []any) (Column, error) {
	c := newColumn(name, t)
	for i, v := range values {
		var cell healthdata.Cell
		known := true
		switch v := v.(type) {
		case nil:
		case int64:
			cell, known = vector.IntCell(v), t == typeInt
		case float64:
			cell, known = healthdata.Cell{Valid: true, Float: v}, t == typeFloat
		case bool:
			cell, known = vector.IntCell(0), t == typeBool
			if v {
				cell = vector.IntCell(1)
			}
		case string:
			cell, known = healthdata.Cell{Valid: true, Text: v}, t == typeText
		case time.Time:
			cell, known = vector.IntCell(v.UnixMicro()), t != typeInt && t != typeFloat && t != typeBool && t != typeText
			if t == typeDate {
				cell = vector.IntCell(v.Unix() / 86400)
			}
		default:
			known = false
		}
		if !known {
			return Column{}, fmt.Errorf("%w: column %s: the value of row %d is not of type %s", healthlab.Invalid, name, i, t)
		}
		c.v.Add(cell)
	}
	return c, nil
}

func newColumn(name string, t Type) Column {
	return Column{Name: name, Type: t, v: vector.Vec{Type: t}}
}

// Len returns the number of rows.
func (c *Column) Len() int { return c.v.Len() }

// Null reports whether the value of row i is null.
func (c *Column) Null(i int) bool { return c.v.IsNull(i) }

// Float returns a number of either type; NaN for null.
func (c *Column) Float(i int) float64 {
	switch {
	case c.Null(i):
		return math.NaN()
	case c.Type == typeInt:
		return float64(c.v.Ints[i])
	default:
		return c.v.Floats[i]
	}
}

// Int returns an int64; of a date the days and of a time the microseconds since
// 1970-01-01 (for a timestamp on the person's clock); 0 for null.
func (c *Column) Int(i int) int64 { return c.v.Ints[i] }

// Text returns a string, empty for null.
func (c *Column) Text(i int) string { return c.v.Texts[i] }

// Bool returns a boolean, false for null.
func (c *Column) Bool(i int) bool { return c.v.Ints[i] != 0 }

// Time returns a date, a wall-clock time (as if it were UTC) or an instant, always
// with the location UTC; the zero time for null.
func (c *Column) Time(i int) time.Time {
	switch {
	case c.Null(i):
		return time.Time{}
	case c.Type == typeDate:
		return time.UnixMicro(c.v.Ints[i] * day).UTC()
	default:
		return time.UnixMicro(c.v.Ints[i]).UTC()
	}
}

// Value returns the value of row i as int64, float64, bool, string or time.Time; nil
// for null.
func (c *Column) Value(i int) any {
	if c.Null(i) {
		return nil
	}
	switch c.Type {
	case typeInt:
		return c.v.Ints[i]
	case typeFloat:
		return c.v.Floats[i]
	case typeBool:
		return c.Bool(i)
	case typeText:
		return c.v.Texts[i]
	default:
		return c.Time(i)
	}
}

// grid is a result on the way: the keys and the functions of each group, or the slots
// of each row.
type grid struct {
	n    int
	keys []Column
	aggs []Column
	rows []Column // by slot, for plain rows, and their index
	at   []int64
	wins []win     // of a plan that is traced
	log  *mergeLog // of a plan that is traced and merges
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

// append adds the groups of another grid.
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

// sort puts the groups in the order of their keys, null last.
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

// frame makes the result of a grid.
func (p *plan) frame(g *grid) Frame {
	index := newColumn("index", p.indexType())
	switch {
	case p.rows:
		index.v.Ints = g.at
	case p.trunc >= 0:
		index.v.Ints = g.keys[p.trunc].v.Ints
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
			col.v = g.keys[o.n].v
		case outAgg:
			col.v = g.aggs[o.n].v
		default:
			col.v = g.rows[o.n].v
		}
		out.Columns = append(out.Columns, col)
	}
	return out
}

// appendFloat writes a finite number in the shortest form that reads back as the same;
// minus zero as 0.
func appendFloat(b []byte, v float64) []byte {
	if n := int64(v); float64(n) == v && -1e15 < n && n < 1e15 {
		return appendInt(b, n)
	}
	if a := math.Abs(v); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'e', -1, 64)
}
