package aggregate

import (
	"strconv"

	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func groupKeyName(k int) string { return "group_key." + strconv.Itoa(k) }

// subquery resolves a subquery to a column that is made of a list.
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
		c.fail("not_a_list", "is not a list column", p.At("from", "unnest"))
		return col, nil, false
	}
	sub = &subplan{agg: agg{fn: e.Func, slot: -1, low: nil}}
	in := typeList
	name := string(e.Func) + "." + list.base
	switch {
	case e.Arg == nil && e.Func != Count:
		c.fail("func_type_mismatch", "only count takes no argument", p.At("select", "arg"))
		return col, nil, false
	case e.Arg == nil:
	case e.Arg.List == "":
		if list.fields[0].Name != "" {
			c.fail(codeColumn, "is a list of structs: name a field", p.At("select", "arg"))
			return col, nil, false
		}
		sub.agg.slot, in = 0, list.fields[0].Type
		name += ".element"
	default:
		if e.Arg.List != list.name || e.Arg.Table != "" && e.Arg.Table != c.plan.table.name {
			c.fail("not_a_list", "is another list than the one in unnest", p.At("select", "arg"))
			return col, nil, false
		}
		if sub.agg.slot = fieldOf(list.fields, e.Arg.Field); sub.agg.slot < 0 {
			c.unknown(codeColumn, "is not a field of this list", e.Arg.Field, fieldNames(list.fields), p.At("select", "arg", e.Arg.List))
			return col, nil, false
		}
		in = list.fields[sub.agg.slot].Type
		name += "." + e.Arg.Field
	}
	typ, ok := e.Func.result(in)
	if !ok || e.Func == Oldest || e.Func == Newest || e.Func.overTime() {
		c.fail("func_type_mismatch", "does not take an argument of this type", p.At("select"))
		return col, nil, false
	}
	sub.agg.in, sub.agg.typ = in, typ
	sub.list = c.slot(list)
	if e.Where != "" && !c.elementWhere(e.Where, list.fields, sub, p.At("where")) {
		return col, nil, false
	}
	return column{name: name, base: name, typ: typ, from: fromList}, sub, true
}

// elementWhere reads the condition on the elements of a list.
func (c *compiler) elementWhere(text string, fields []healthdata.ListField, sub *subplan, p path) bool {
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
			return 0, "", &condition.Fault{Code: codeColumn, Msg: "is not a field of the elements", Near: strictjson.Nearest(o.Text, fieldNames(fields))}
		}
		return k, fields[k].Type, nil
	}}
	sub.where = ch.filter(n)
	c.whereFaults(ch.faults, p)
	c.bad = c.bad || len(ch.faults) > 0
	return len(ch.faults) == 0
}

func fieldOf(fields []healthdata.ListField, name string) int {
	for i, f := range fields {
		if f.Name == name && name != "" {
			return i
		}
	}
	return -1
}

func fieldNames(fields []healthdata.ListField) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name
		if f.Name == "" {
			out[i] = "element"
		}
	}
	return out
}

// value makes the one value of a list. eb is memory for its elements.
func (s *subplan) value(list healthdata.Cell, fields []healthdata.ListField, eb *vector.Batch) healthdata.Cell {
	eb.Reset(len(fields))
	for i, f := range fields {
		eb.Cols[i].Type = f.Type
		for _, e := range list.List {
			eb.Cols[i].Add(e[i])
		}
	}
	eb.SetLen(len(list.List))
	if s.where != nil {
		eb.Keep(s.where)
	}
	if s.agg.slot < 0 {
		return healthdata.Cell{Valid: true, Int: int64(eb.N)}
	}
	left := len(list.List)
	a := s.agg.accumulator(&left)
	if eb.N > 0 {
		a.Add(&eb.Cols[s.agg.slot], eb, 0, eb.N)
	}
	v, _ := a.Result()
	return v
}
