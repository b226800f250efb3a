package aggregate

import (
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
)

// reader reads requests, and checks them.
type reader struct{ strictReader }

// decode reads a request. What could not be read has left a problem.
func (r *reader) decode(data []byte) Request {
	var out Request
	n, err := parseNode(data)
	if err != nil {
		// The text of a syntax error may quote the input.
		r.fault(codeBody, "is not a sound JSON text", nil)
		return out
	}
	if !r.object(&n, nil, "timeframe", "queries", "config") {
		return out
	}
	out.Timeframe = r.timeframe(n.get("timeframe"), path{"timeframe"})
	p := path{"queries"}
	items := r.list(n.get("queries"), p)
	out.Queries = make([]Query, len(items))
	for i := range items {
		out.Queries[i] = r.query(&items[i], p.at(i))
	}
	if c := n.get("config"); !c.isNull() {
		out.Config = r.config(c, path{"config"})
	}
	return out
}

func (r *reader) timeframe(n *node, p path) (t Timeframe) {
	if n == nil {
		r.fault(codeBody, "is required", p)
		return t
	}
	if n.kind == '{' && n.has("placeholder") {
		r.fault("timeframe_placeholder", "is left open: only a stored query may do that", p)
		return t
	}
	if n.kind == '{' && n.has("type") {
		if kind, ok := r.text(n.get("type"), p.at("type")); !ok {
			return t
		} else if kind != "relative" {
			r.unknown("unknown_timeframe_type", "is not a type of timeframe", kind, []string{"relative"}, p.at("type"))
			return t
		}
	}
	if !r.object(n, p, "type", "anchor", "past") {
		return t
	}
	if !n.has("type") {
		r.fault(codeBody, "is required", p.at("type"))
	}
	if s, ok := r.text(n.get("anchor"), p.at("anchor")); ok {
		var err error
		if t.Anchor, err = healthlab.ParseDate(s); err != nil {
			r.fault(codeBody, "is not a date YYYY-MM-DD", p.at("anchor"))
		}
	}
	t.Past = r.period(n.get("past"), p.at("past"))
	return t
}

func (r *reader) period(n *node, p path) (out Period) {
	if n == nil {
		r.fault(codeBody, "is required", p)
		return out
	}
	if !r.object(n, p, "unit", "value") {
		return out
	}
	if unit, ok := r.choice(n.get("unit"), p.at("unit"), codeBody, units); ok {
		out.Unit = Unit(unit)
	}
	out.Value = 1
	if v := n.get("value"); v != nil {
		if i, ok := r.whole(v, p.at("value")); ok && (i < 1 || i > maxPeriod) {
			r.fault(codeBody, "is not between 1 and 1000000", p.at("value"))
		} else if ok {
			out.Value = i
		}
	}
	return out
}

// maxPeriod bounds the value of a period.
const maxPeriod = 1_000_000

func (r *reader) config(n *node, p path) (c Config) {
	if !r.object(n, p, "provider_priority_overrides", "column_naming", "overlap_policy", "explain") {
		return c
	}
	if o := n.get("provider_priority_overrides"); !o.isNull() {
		p := p.at("provider_priority_overrides")
		for i, item := range r.list(o, p) {
			if s, ok := r.text(&item, p.at(i)); ok {
				c.ProviderPriorityOverrides = append(c.ProviderPriorityOverrides, s)
			}
		}
	}
	if v := n.get("column_naming"); v != nil {
		s, _ := r.choice(v, p.at("column_naming"), codeBody, []string{string(ShortNames), string(QualifiedNames)})
		c.ColumnNaming = Naming(s)
	}
	if v := n.get("overlap_policy"); v != nil {
		s, _ := r.choice(v, p.at("overlap_policy"), codeBody, overlapPolicies)
		c.OverlapPolicy = OverlapPolicy(s)
	}
	if v := n.get("explain"); v != nil {
		if v.kind != 't' {
			r.fault(codeBody, "must be true or false", p.at("explain"))
		}
		c.Explain = v.yes
	}
	return c
}

func (r *reader) query(n *node, p path) (q Query) {
	if !r.object(n, p, "select", "group_by", "where", "align") {
		return q
	}
	q.Select = r.exprs(n.get("select"), p.at("select"))
	if g := n.get("group_by"); !g.isNull() {
		q.GroupBy = r.exprs(g, p.at("group_by"))
	}
	if w := n.get("where"); !w.isNull() {
		q.Where = r.where(w, p.at("where"))
	}
	if a := n.get("align"); !a.isNull() {
		q.Align = r.align(a, p.at("align"))
	}
	return q
}

// where reads a condition, which is parsed later. A blank one is a fault here, since
// the empty text means no condition from here on.
func (r *reader) where(n *node, p path) string {
	s, ok := r.text(n, p)
	if ok && s == "" {
		r.problems = append(r.problems, healthlab.Problem{
			Path: p, Code: condition.CodeSyntax, Msg: "is empty", Context: map[string]any{"offset": 0},
		})
	}
	return s
}

func (r *reader) align(n *node, p path) *Align {
	if !r.object(n, p, "carry") {
		return nil
	}
	c := n.get("carry")
	p = p.at("carry")
	if c == nil {
		r.fault(codeBody, "is required", p)
		return nil
	}
	limit := "max_age"
	if m := c.get("mode"); m != nil && m.text == string(CarryNearest) {
		limit = "span"
	}
	if !r.object(c, p, "mode", limit) {
		return nil
	}
	mode, ok := r.choice(c.get("mode"), p.at("mode"), codeBody, alignModes)
	if !ok {
		return nil
	}
	out := &Align{Mode: AlignMode(mode)}
	if l := c.get(limit); !l.isNull() {
		period := r.period(l, p.at(limit))
		out.Limit = &period
	}
	return out
}

func (r *reader) exprs(n *node, p path) []Expr {
	items := r.list(n, p)
	out := make([]Expr, len(items))
	for i := range items {
		out[i] = r.expr(&items[i], p.at(i))
	}
	return out
}

// only reports whether n has these keys, each once, and no others. A key that ends in
// ? may be absent.
func only(n *node, keys ...string) bool {
	known := 0
	for _, k := range keys {
		name, optional := k, false
		if k[len(k)-1] == '?' {
			name, optional = k[:len(k)-1], true
		}
		switch {
		case n.has(name):
			known++
		case !optional:
			return false
		}
	}
	return known == len(n.keys)
}

// expr reads an expression. Its keys say what it is.
func (r *reader) expr(n *node, p path) Expr {
	if n.kind != '{' {
		r.fault(codeBody, "is not an object", p)
		return badExpr{}
	}
	switch {
	case n.has("func"):
		if only(n, "func", "arg", "low?", "high?") {
			return r.aggregate(n, p)
		}
	case n.has("group_key"):
		if only(n, "group_key") {
			return r.groupKey(n.get("group_key"), p.at("group_key"))
		}
	case n.has("value_macro"):
		if only(n, "value_macro", "version?") {
			return r.macro(n, p)
		}
	case n.has("timeseries"):
		if only(n, "timeseries", "field") {
			resource, ok1 := r.text(n.get("timeseries"), p.at("timeseries"))
			field, ok2 := r.text(n.get("field"), p.at("field"))
			return orBad(Field{resource, field}, ok1 && ok2)
		}
	case n.has("index"):
		if only(n, "index") {
			table, ok := r.text(n.get("index"), p.at("index"))
			return orBad(Index{tableName(table)}, ok && r.named(table, p.at("index")))
		}
	case n.has("source"):
		if only(n, "source") {
			name, ok := r.text(n.get("source"), p.at("source"))
			return orBad(SourceColumn{name}, ok)
		}
	case n.has("select"):
		if only(n, "select", "from", "where?") {
			return r.subquery(n, p)
		}
	case n.has("date_trunc"):
		if only(n, "date_trunc", "arg") {
			period := r.period(n.get("date_trunc"), p.at("date_trunc"))
			of, ok := r.indexArg(n.get("arg"), p.at("arg"))
			return orBad(DateTrunc{period, of}, ok && period.Unit != "")
		}
	case n.has("date_part"):
		if only(n, "date_part", "arg") {
			part, ok1 := r.choice(n.get("date_part"), p.at("date_part"), codeBody, parts)
			of, ok2 := r.indexArg(n.get("arg"), p.at("arg"))
			return orBad(DatePart{Part(part), of}, ok1 && ok2)
		}
	case len(n.keys) == 1 && n.items[0].kind == '"':
		column, ok := r.text(&n.items[0], p.at(shortName(n.keys[0])))
		return orBad(TableColumn{tableName(n.keys[0]), column}, ok)
	}
	r.fault("unknown_expression", "has keys that make no expression", p)
	return badExpr{}
}

// named refuses an empty name, which is what no name is from here on.
func (r *reader) named(s string, p path) bool {
	if s == "" {
		r.unknown("unknown_table", "is not a table", s, tableNames, p)
	}
	return s != ""
}

func orBad(e Expr, ok bool) Expr {
	if !ok {
		return badExpr{}
	}
	return e
}

func (r *reader) aggregate(n *node, p path) Expr {
	f, ok := r.text(n.get("func"), p.at("func"))
	if ok && !knownFunc(Func(f)) {
		r.unknown("unknown_func", "is not a function", f, funcNames, p.at("func"))
		ok = false
	}
	a := Aggregate{Func: Func(f), Arg: r.expr(n.get("arg"), p.at("arg"))}
	for _, bound := range []struct {
		name string
		to   **float64
	}{{"low", &a.Low}, {"high", &a.High}} {
		v := n.get(bound.name)
		if v == nil {
			continue
		}
		x, err := strconv.ParseFloat(v.text, 64)
		if v.kind != '0' || err != nil {
			r.fault(codeBody, "is not a number", p.at(bound.name))
			ok = false
			continue
		}
		*bound.to = &x
	}
	return orBad(a, ok)
}

func (r *reader) groupKey(n *node, p path) Expr {
	if n.kind == '"' && n.text == "*" {
		return GroupKey{All: true}
	}
	i, err := strconv.ParseUint(n.text, 10, 31)
	if n.kind != '0' || err != nil {
		r.fault(codeBody, `is neither a position, counted from 0, nor "*"`, p)
		return badExpr{}
	}
	return GroupKey{Offset: int(i)}
}

func (r *reader) macro(n *node, p path) Expr {
	name, ok := r.text(n.get("value_macro"), p.at("value_macro"))
	if ok && !slices.Contains(macroNames, name) {
		r.unknown(codeMacro, "is not a value macro", name, macroNames, p.at("value_macro"))
		ok = false
	}
	if v := n.get("version"); v != nil {
		s, is := r.text(v, p.at("version"))
		if is && s != "automatic" {
			r.unknown(codeMacro, "is not a version of a value macro", s, []string{"automatic"}, p.at("version"))
		}
		ok = ok && is && s == "automatic"
	}
	return orBad(Macro{name}, ok)
}

const codeMacro = "unknown_value_macro"

// indexArg reads the argument of a date function.
func (r *reader) indexArg(n *node, p path) (Index, bool) {
	if n.kind != '{' {
		r.fault(codeBody, "is not an object", p)
		return Index{}, false
	}
	if only(n, "placeholder") && n.get("placeholder").kind == 't' && n.get("placeholder").yes {
		return Index{}, true
	}
	if !only(n, "index") {
		r.fault("unknown_expression", "is not the index of a table", p)
		return Index{}, false
	}
	s, ok := r.text(n.get("index"), p.at("index"))
	return Index{tableName(s)}, ok && r.named(s, p.at("index"))
}

func (r *reader) subquery(n *node, p path) Expr {
	sel, from := n.get("select"), n.get("from")
	ok := true
	if sel.kind != '{' || !only(sel, "func", "arg") {
		r.fault("unknown_expression", "has keys that make no expression", p.at("select"))
		ok = false
	}
	if from.kind != '{' || !only(from, "unnest") {
		r.fault("unknown_expression", "has keys that make no expression", p.at("from"))
		ok = false
	}
	if !ok {
		return badExpr{}
	}
	f, ok := r.text(sel.get("func"), p.at("select", "func"))
	if ok && !knownFunc(Func(f)) {
		r.unknown("unknown_func", "is not a function", f, funcNames, p.at("select", "func"))
		ok = false
	}
	s := Subquery{Func: Func(f), From: r.expr(from.get("unnest"), p.at("from", "unnest"))}
	if arg := sel.get("arg"); !arg.isNull() {
		var is bool
		s.Arg, is = r.element(arg, p.at("select", "arg"))
		ok = ok && is
	}
	if w := n.get("where"); !w.isNull() {
		s.Where = r.where(w, p.at("where"))
	}
	return orBad(s, ok)
}

// element reads what a subquery takes from the elements of its list.
func (r *reader) element(n *node, p path) (*Element, bool) {
	if n.kind != '{' {
		r.fault(codeBody, "is not an object", p)
		return nil, false
	}
	if only(n, "element") && n.items[0].kind == 't' && n.items[0].yes {
		return &Element{}, true
	}
	out := &Element{}
	for i, k := range n.keys {
		s, ok := r.text(&n.items[i], p.at(shortName(k)))
		switch {
		case !ok:
			return nil, false
		case k == "field_for":
			out.Table = s
		case out.List == "" && k != "":
			out.List, out.Field = k, s
		default:
			out.List = ""
			r.fault("unknown_expression", "has keys that make no expression", p)
			return nil, false
		}
	}
	if out.List == "" {
		r.fault("unknown_expression", "has keys that make no expression", p)
		return nil, false
	}
	return out, true
}
