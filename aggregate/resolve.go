package aggregate

import (
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// slot returns the number of a column in the list of columns that the plan reads.
func (c *compiler) slot(col column) int {
	k := slotKey{col.name, col.resource, col.from}
	if col.from == fromSample && len(c.plan.resources) == 1 {
		k.resource = nil // all samples are of the one resource
	}
	if i, ok := c.slots[k]; ok {
		return i
	}
	c.slots[k] = len(c.plan.slots)
	c.plan.slots = append(c.plan.slots, slot{column: col})
	return c.slots[k]
}

// column resolves an expression to a column of a row. p is the path of the expression. sub is set for a subquery. If
// the expression is not a column or is unknown, ok is false and an error is recorded.
func (c *compiler) column(e Expr, p path) (col column, sub *subplan, ok bool) {
	t := c.plan.table
	switch e := e.(type) {
	case TableColumn:
		if t.name == samplesTable {
			if !slices.Contains(sourceNames, e.Column) {
				c.unknown(codeColumn, "must be a column of every sample", e.Column, sourceNames, p.At(e.Table))
				return col, nil, false
			}
		}
		found := t.find(e.Column)
		if found == nil {
			c.unknown(codeColumn, "must be a column of this table", e.Column, t.names(), p.At(e.Table))
			return col, nil, false
		}
		return *found, nil, true
	case SourceColumn:
		found := t.find(e.Name)
		if found == nil || !slices.Contains(sourceNames, e.Name) {
			c.unknown(codeColumn, "must be a source column of this table", e.Name, sourceNames, p.At("source"))
			return col, nil, false
		}
		return *found, nil, true
	case Macro:
		return macroColumn(e.Name), nil, true
	case Field:
		r := sampleResource(e.Resource)
		if r == nil {
			return col, nil, false // findTable has recorded the error
		}
		col, ok := sampleColumn(r, e.Field)
		if !ok {
			c.unknown(codeColumn, "must be a field of this timeseries", e.Field, sampleColumnNames(r), p.At("field"))
		}
		return col, nil, ok
	case Index:
		return t.index(), nil, true
	case Subquery:
		return c.subquery(e, p)
	default:
		return col, nil, false
	}
}

// value resolves an expression to a column of rows and its number n among the columns that the plan reads. It returns
// false after recording an error.
func (c *compiler) value(e Expr, p path) (n int, col column, ok bool) {
	col, sub, ok := c.column(e, p)
	if !ok {
		return 0, col, false
	}
	if sub != nil {
		c.plan.slots = append(c.plan.slots, slot{column: col, sub: sub})
		return len(c.plan.slots) - 1, col, true
	}
	return c.slot(col), col, true
}

// resolveName resolves a name in the condition to the number of the column in the plan, and its type.
func (c *compiler) resolveName(o condition.Operand) (int, Type, *condition.Fault) {
	t := c.plan.table
	use := func(col column) (int, Type, *condition.Fault) {
		if col.typ == typeList {
			return 0, "", &condition.Fault{Code: codeMismatch, Msg: "must not be a list column"}
		}
		return c.slot(col), col.typ, nil
	}
	missing := func(known []string, name string) (int, Type, *condition.Fault) {
		return 0, "", &condition.Fault{Code: codeColumn, Msg: "must be a column", Near: strictjson.Nearest(name, known)}
	}
	if t.name == samplesTable {
		if o.Two {
			r := sampleResource(o.Table)
			if r == nil {
				return missing(sampleResourceNames(), o.Table)
			}
			col, ok := sampleColumn(r, o.Text)
			if !ok {
				return missing(sampleColumnNames(r), o.Text)
			}
			return use(col)
		}
		if col := t.find(o.Text); col != nil {
			return use(*col)
		}
		if o.Text == "index" {
			return use(t.index())
		}
		if r := c.namedResource(); r != nil {
			if col, ok := sampleColumn(r, o.Text); ok {
				return use(col)
			}
			return missing(append(sampleColumnNames(r), "index"), o.Text)
		}
		return missing(append(slices.Clone(sourceNames), "index"), o.Text)
	}
	if o.Two && tableName(o.Table) != t.name {
		return missing([]string{t.name}, o.Table)
	}
	if col := t.find(o.Text); col != nil {
		return use(*col)
	}
	known := t.names()
	if t.name == "sleep" {
		if slices.Contains(macroNames, o.Text) {
			return use(macroColumn(o.Text))
		}
		known = append(known, macroNames...)
	}
	if o.Text == "index" {
		return use(t.index())
	}
	return missing(append(known, "index"), o.Text)
}

// namedResource returns the timeseries that select and group_by name, if there is exactly one.
func (c *compiler) namedResource() *healthdata.Resource {
	var only *healthdata.Resource
	several := false
	var walk func(e Expr)
	walk = func(e Expr) {
		switch e := e.(type) {
		case Aggregate:
			walk(e.Arg)
		case Subquery:
			walk(e.From)
		case Field:
			r := sampleResource(e.Resource)
			several = several || only != nil && r != only
			only = r
		}
	}
	for _, e := range slices.Concat(c.q.Select, c.q.GroupBy) {
		walk(e)
	}
	if several {
		return nil
	}
	return only
}

// subquery resolves a subquery to a column that is computed from a list.
func (c *compiler) subquery(e Subquery, p path) (col column, sub *subplan, ok bool) {
	var list column
	switch e.From.(type) {
	case TableColumn, Field:
		if list, _, ok = c.column(e.From, p.At("from", "unnest")); !ok {
			return col, nil, false
		}
	case badExpr, nil:
		c.bad = true
		return col, nil, false
	}
	if list.typ != typeList {
		c.fail("not_a_list", "must be a list column", p.At("from", "unnest"))
		return col, nil, false
	}
	sub = &subplan{agg: agg{fn: e.Func, slot: -1, low: nil}}
	in := typeList
	name := string(e.Func) + "." + list.base
	switch {
	case e.Arg == nil && e.Func != Count:
		c.fail("func_type_mismatch", "must have an argument unless the function is count", p.At("select", "arg"))
		return col, nil, false
	case e.Arg == nil:
	case e.Arg.List == "":
		if list.fields[0].Name != "" {
			c.fail(codeColumn, "must name a field, because the list has structs", p.At("select", "arg"))
			return col, nil, false
		}
		sub.agg.slot, in = 0, list.fields[0].Type
		name += ".element"
	default:
		if e.Arg.List != list.name || e.Arg.Table != "" && e.Arg.Table != c.plan.table.name {
			c.fail("not_a_list", "must be the list in unnest", p.At("select", "arg"))
			return col, nil, false
		}
		if sub.agg.slot = fieldOf(list.fields, e.Arg.Field); sub.agg.slot < 0 {
			c.unknown(codeColumn, "must be a field of this list", e.Arg.Field, fieldNames(list.fields), p.At("select", "arg", e.Arg.List))
			return col, nil, false
		}
		in = list.fields[sub.agg.slot].Type
		name += "." + e.Arg.Field
	}
	typ, ok := e.Func.result(in)
	if !ok || e.Func == Oldest || e.Func == Newest || e.Func.ofSamples() {
		c.fail("func_type_mismatch", "must be a function that accepts values of the argument's type", p.At("select"))
		return col, nil, false
	}
	sub.agg.in, sub.agg.typ = in, typ
	sub.list = c.slot(list)
	if e.Where != "" && !c.elementWhere(e.Where, list.fields, sub, p.At("where")) {
		return col, nil, false
	}
	return column{name: name, base: name, typ: typ, from: fromList}, sub, true
}

// elementWhere parses the condition on the elements of a list into sub.where. fields are the fields of an element. It
// returns false after adding a problem.
func (c *compiler) elementWhere(text string, fields []tables.ListField, sub *subplan, p path) bool {
	n, fault := condition.Parse(text)
	if fault != nil {
		c.bad = true
		c.r.Problems = append(c.r.Problems, fault.Problem(p))
		return false
	}
	ch := checker{names: func(o condition.Operand) (int, Type, *condition.Fault) {
		k := fieldOf(fields, o.Text)
		if fields[0].Name == "" && o.Text == "element" {
			k = 0
		}
		if k < 0 || o.Two {
			return 0, "", &condition.Fault{Code: codeColumn, Msg: "must be a field of the list's elements", Near: strictjson.Nearest(o.Text, fieldNames(fields))}
		}
		return k, fields[k].Type, nil
	}}
	sub.where = ch.filter(n)
	c.addFaults(ch.faults, p)
	c.bad = c.bad || len(ch.faults) > 0
	return len(ch.faults) == 0
}
