package aggregate

import (
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
)

type (
	node = strictjson.Node
	path = strictjson.Path
)

const codeBody = strictjson.CodeBody

// reader reads and checks requests, and collects problems.
type reader struct{ strictjson.Reader }

func (r *reader) decode(data []byte) Request {
	// If data is not valid JSON, parse records a problem and out stays empty.
	var out Request
	r.parse(data, func(n *node) { out = r.request(n) })
	return out
}

// parse parses data as one JSON text and passes it to read. Invalid JSON becomes a problem, and read is not called.
func (r *reader) parse(data []byte, read func(n *node)) {
	n, err := strictjson.Parse(data)
	if err != nil {
		// The text of a syntax error may quote the input.
		r.Fault(codeBody, "must be valid JSON", nil)
		return
	}
	read(&n)
}

// UnmarshalJSON reads the query as in the HTTP API, strictly, without checking that its names exist. The error
// is [healthlab.InvalidError].
func (q *Query) UnmarshalJSON(data []byte) error {
	var r reader
	r.parse(data, func(n *node) { *q = r.query(n, nil) })
	return r.Problems.Err()
}

// UnmarshalJSON reads the config as in the HTTP API, strictly. The error is [healthlab.InvalidError].
func (c *Config) UnmarshalJSON(data []byte) error {
	var r reader
	r.parse(data, func(n *node) { *c = r.config(n, nil) })
	return r.Problems.Err()
}

func (r *reader) request(n *node) (out Request) {
	if !r.Object(n, nil, "timeframe", "queries", "config") {
		return out
	}
	out.Timeframe = r.timeframe(n.Get("timeframe"), path{"timeframe"})
	p := path{"queries"}
	items := r.List(n.Get("queries"), p)
	out.Queries = make([]Query, len(items))
	for i := range items {
		out.Queries[i] = r.query(&items[i], p.At(i))
	}
	if c := n.Get("config"); !c.IsNull() {
		out.Config = r.config(c, path{"config"})
	}
	return out
}

func (r *reader) timeframe(n *node, p path) (t Timeframe) {
	if n == nil {
		r.Fault(codeBody, "is required", p)
		return t
	}
	if n.Kind == '{' && n.Has("placeholder") {
		r.Fault("timeframe_placeholder", "must be given, except in a stored query", p)
		return t
	}
	if n.Kind == '{' && n.Has("type") {
		if kind, ok := r.Text(n.Get("type"), p.At("type")); !ok {
			return t
		} else if kind != "relative" {
			r.Unknown("unknown_timeframe_type", "must be a type of timeframe", kind, []string{"relative"}, p.At("type"))
			return t
		}
	}
	if !r.Object(n, p, "type", "anchor", "past") {
		return t
	}
	if !n.Has("type") {
		r.Fault(codeBody, "is required", p.At("type"))
	}
	if s, ok := r.Text(n.Get("anchor"), p.At("anchor")); ok {
		var err error
		if t.Anchor, err = healthlab.ParseDate(s); err != nil {
			r.Fault(codeBody, "must be a date YYYY-MM-DD", p.At("anchor"))
		}
	}
	t.Past = r.period(n.Get("past"), p.At("past"))
	return t
}

func (r *reader) period(n *node, p path) (out Period) {
	if n == nil {
		r.Fault(codeBody, "is required", p)
		return out
	}
	if !r.Object(n, p, "unit", "value") {
		return out
	}
	if unit, ok := r.Choice(n.Get("unit"), p.At("unit"), codeBody, units); ok {
		out.Unit = Unit(unit)
	}
	out.Value = 1
	if v := n.Get("value"); v != nil {
		if i, ok := r.Whole(v, p.At("value")); ok && (i < 1 || i > maxPeriod) {
			r.Fault(codeBody, "must be from 1 to 1000000", p.At("value"))
		} else if ok {
			out.Value = i
		}
	}
	return out
}

// maxPeriod is the highest value of a period.
const maxPeriod = 1_000_000

func (r *reader) config(n *node, p path) (c Config) {
	if !r.Object(n, p, "provider_priority_overrides", "column_naming", "overlap_policy", "explain") {
		return c
	}
	if o := n.Get("provider_priority_overrides"); !o.IsNull() {
		p := p.At("provider_priority_overrides")
		for i, item := range r.List(o, p) {
			if s, ok := r.Text(&item, p.At(i)); ok {
				c.ProviderPriorityOverrides = append(c.ProviderPriorityOverrides, s)
			}
		}
	}
	if v := n.Get("column_naming"); v != nil {
		s, _ := r.Choice(v, p.At("column_naming"), codeBody, []string{string(ShortNames), string(QualifiedNames)})
		c.ColumnNaming = Naming(s)
	}
	if v := n.Get("overlap_policy"); v != nil {
		s, _ := r.Choice(v, p.At("overlap_policy"), codeBody, overlapPolicies)
		c.OverlapPolicy = OverlapPolicy(s)
	}
	if v := n.Get("explain"); v != nil {
		if v.Kind != 't' {
			r.Fault(codeBody, "must be true or false", p.At("explain"))
		}
		c.Explain = v.Yes
	}
	return c
}

func (r *reader) query(n *node, p path) (q Query) {
	if !r.Object(n, p, "select", "group_by", "where", "align", "join") {
		return q
	}
	q.Select = r.exprs(n.Get("select"), p.At("select"))
	if g := n.Get("group_by"); !g.IsNull() {
		q.GroupBy = r.exprs(g, p.At("group_by"))
	}
	if w := n.Get("where"); !w.IsNull() {
		q.Where = r.where(w, p.At("where"))
	}
	if a := n.Get("align"); !a.IsNull() {
		q.Align = r.align(a, p.At("align"))
	}
	if list := n.Get("join"); !list.IsNull() {
		at := p.At("join")
		for i, item := range r.List(list, at) {
			q.Joins = append(q.Joins, r.join(&item, at.At(i)))
		}
	}
	return q
}

func (r *reader) join(n *node, p path) (j Join) {
	if !r.Object(n, p, "as", "select", "where", "asof") {
		return j
	}
	if as := n.Get("as"); as != nil {
		j.As, _ = r.Text(as, p.At("as"))
	}
	j.Select = r.exprs(n.Get("select"), p.At("select"))
	if w := n.Get("where"); !w.IsNull() {
		j.Where = r.where(w, p.At("where"))
	}
	if a := n.Get("asof"); !a.IsNull() {
		j.AsOf = &AsOf{}
		if at := p.At("asof"); r.Object(a, at, "max_age") {
			j.AsOf.MaxAge = r.period(a.Get("max_age"), at.At("max_age"))
		}
	}
	return j
}

// where reads the text of a condition, which is parsed later. An empty text is an error in JSON, because an empty Where
// means that there is no condition.
func (r *reader) where(n *node, p path) string {
	s, ok := r.Text(n, p)
	if ok && s == "" {
		r.Problems = append(r.Problems, healthlab.Problem{
			Path: p, Code: condition.CodeSyntax, Msg: "must not be empty", Context: map[string]any{"offset": 0},
		})
	}
	return s
}

func (r *reader) align(n *node, p path) *Align {
	if !r.Object(n, p, "carry") {
		return nil
	}
	c := n.Get("carry")
	p = p.At("carry")
	if c == nil {
		r.Fault(codeBody, "is required", p)
		return nil
	}
	limit := "max_age"
	if m := c.Get("mode"); m != nil && m.Text == string(CarryNearest) {
		limit = "span"
	}
	if !r.Object(c, p, "mode", limit) {
		return nil
	}
	mode, ok := r.Choice(c.Get("mode"), p.At("mode"), codeBody, alignModes)
	if !ok {
		return nil
	}
	out := &Align{Mode: AlignMode(mode)}
	if l := c.Get(limit); !l.IsNull() {
		out.Limit = new(r.period(l, p.At(limit)))
	}
	return out
}

func (r *reader) exprs(n *node, p path) []Expr {
	items := r.List(n, p)
	out := make([]Expr, len(items))
	for i := range items {
		out[i] = r.expr(&items[i], p.At(i))
	}
	return out
}

// hasExactKeys reports whether n has exactly these keys, each once. A key that ends in ? may be absent.
func hasExactKeys(n *node, keys ...string) bool {
	known := 0
	for _, k := range keys {
		name, optional := k, false
		if k[len(k)-1] == '?' {
			name, optional = k[:len(k)-1], true
		}
		switch {
		case n.Has(name):
			known++
		case !optional:
			return false
		}
	}
	return known == len(n.Keys)
}

// expressionKeys lists the keys of each expression, for errors.
const expressionKeys = "func and arg (also low, high, band); group_key; value_macro (also version); timeseries and field; index; source; " +
	"select and from (also where); date_trunc and arg; date_part and arg; or the name of a table, with the name of a column as its value"

// expr reads an expression. Its keys determine its type.
func (r *reader) expr(n *node, p path) Expr {
	if n.Kind != '{' {
		r.Fault(codeBody, "must be an object", p)
		return badExpr{}
	}
	switch {
	case n.Has("func"):
		if hasExactKeys(n, "func", "arg", "low?", "high?", "band?") {
			return r.aggregate(n, p)
		}
	case n.Has("group_key"):
		if hasExactKeys(n, "group_key") {
			return r.groupKey(n.Get("group_key"), p.At("group_key"))
		}
	case n.Has("value_macro"):
		if hasExactKeys(n, "value_macro", "version?") {
			return r.macro(n, p)
		}
	case n.Has("timeseries"):
		if hasExactKeys(n, "timeseries", "field") {
			resource, ok1 := r.Text(n.Get("timeseries"), p.At("timeseries"))
			field, ok2 := r.Text(n.Get("field"), p.At("field"))
			return orBad(Field{resource, field}, ok1 && ok2)
		}
	case n.Has("index"):
		if hasExactKeys(n, "index") {
			table, ok := r.Text(n.Get("index"), p.At("index"))
			return orBad(Index{tableName(table)}, ok && r.named(table, p.At("index")))
		}
	case n.Has("source"):
		if hasExactKeys(n, "source") {
			name, ok := r.Text(n.Get("source"), p.At("source"))
			return orBad(SourceColumn{name}, ok)
		}
	case n.Has("select"):
		if hasExactKeys(n, "select", "from", "where?") {
			return r.subquery(n, p)
		}
	case n.Has("date_trunc"):
		if hasExactKeys(n, "date_trunc", "arg") {
			period := r.period(n.Get("date_trunc"), p.At("date_trunc"))
			of, ok := r.indexArg(n.Get("arg"), p.At("arg"))
			return orBad(DateTrunc{period, of}, ok && period.Unit != "")
		}
	case n.Has("date_part"):
		if hasExactKeys(n, "date_part", "arg") {
			part, ok1 := r.Choice(n.Get("date_part"), p.At("date_part"), codeBody, parts)
			of, ok2 := r.indexArg(n.Get("arg"), p.At("arg"))
			return orBad(DatePart{Part(part), of}, ok1 && ok2)
		}
	case len(n.Keys) == 1 && n.Items[0].Kind == '"':
		column, ok := r.Text(&n.Items[0], p.At(strictjson.ShortName(n.Keys[0])))
		return orBad(TableColumn{tableName(n.Keys[0]), column}, ok)
	}
	r.Fault("unknown_expression", "must be an object with the keys of one expression: "+expressionKeys, p)
	return badExpr{}
}

func (r *reader) named(s string, p path) bool {
	if s == "" {
		r.Unknown("unknown_table", "must be a table", s, tableNames, p)
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
	f, ok := r.Text(n.Get("func"), p.At("func"))
	if ok && !knownFunc(Func(f)) {
		r.Unknown("unknown_func", "must be a function", f, funcNames, p.At("func"))
		ok = false
	}
	a := Aggregate{Func: Func(f), Arg: r.expr(n.Get("arg"), p.At("arg"))}
	for _, bound := range []struct {
		name string
		to   **float64
	}{{"low", &a.Low}, {"high", &a.High}} {
		v := n.Get(bound.name)
		if v == nil {
			continue
		}
		x, err := strconv.ParseFloat(v.Text, 64)
		if v.Kind != '0' || err != nil {
			r.Fault(codeBody, "must be a number", p.At(bound.name))
			ok = false
			continue
		}
		*bound.to = &x
	}
	if v := n.Get("band"); v != nil {
		band, is := r.Text(v, p.At("band"))
		a.Band, ok = Band(band), ok && is
		bands := Func(f).bands()
		if bands == nil {
			bands = TimeInRange.bands()
		}
		if is && !slices.Contains(bands, band) {
			r.Unknown("unknown_band", "must be a band of glucose", band, bands, p.At("band"))
			ok = false
		}
	}
	return orBad(a, ok)
}

func (r *reader) groupKey(n *node, p path) Expr {
	if n.Kind == '"' && n.Text == "*" {
		return GroupKey{All: true}
	}
	i, err := strconv.ParseUint(n.Text, 10, 31)
	if n.Kind != '0' || err != nil {
		r.Fault(codeBody, `must be the position of a group key in group_by, counted from 0, or "*" for all`, p)
		return badExpr{}
	}
	return GroupKey{Offset: int(i)}
}

func (r *reader) macro(n *node, p path) Expr {
	name, ok := r.Text(n.Get("value_macro"), p.At("value_macro"))
	if ok && !slices.Contains(macroNames, name) {
		r.Unknown(codeMacro, "must be a value macro", name, macroNames, p.At("value_macro"))
		ok = false
	}
	if v := n.Get("version"); v != nil {
		s, is := r.Text(v, p.At("version"))
		if is && s != "automatic" {
			r.Unknown(codeMacro, "must be a version of a value macro", s, []string{"automatic"}, p.At("version"))
		}
		ok = ok && is && s == "automatic"
	}
	return orBad(Macro{name}, ok)
}

const codeMacro = "unknown_value_macro"

// indexArg reads the argument of a date function: the index of a table, or a placeholder. It returns false after adding
// a problem.
func (r *reader) indexArg(n *node, p path) (Index, bool) {
	if n.Kind != '{' {
		r.Fault(codeBody, "must be an object", p)
		return Index{}, false
	}
	if hasExactKeys(n, "placeholder") && n.Get("placeholder").Kind == 't' && n.Get("placeholder").Yes {
		return Index{}, true
	}
	if !hasExactKeys(n, "index") {
		r.Fault("unknown_expression", `must be {"index": "TABLE"} or {"placeholder": true}`, p)
		return Index{}, false
	}
	s, ok := r.Text(n.Get("index"), p.At("index"))
	return Index{tableName(s)}, ok && r.named(s, p.At("index"))
}

func (r *reader) subquery(n *node, p path) Expr {
	sel, from := n.Get("select"), n.Get("from")
	ok := true
	if sel.Kind != '{' || !hasExactKeys(sel, "func", "arg") {
		r.Fault("unknown_expression", "must be an object with exactly the keys func and arg; arg is null only if func is count", p.At("select"))
		ok = false
	}
	if from.Kind != '{' || !hasExactKeys(from, "unnest") {
		r.Fault("unknown_expression", "must be an object with exactly the key unnest", p.At("from"))
		ok = false
	}
	if !ok {
		return badExpr{}
	}
	f, ok := r.Text(sel.Get("func"), p.At("select", "func"))
	if ok && !knownFunc(Func(f)) {
		r.Unknown("unknown_func", "must be a function", f, funcNames, p.At("select", "func"))
		ok = false
	}
	s := Subquery{Func: Func(f), From: r.expr(from.Get("unnest"), p.At("from", "unnest"))}
	if arg := sel.Get("arg"); !arg.IsNull() {
		var is bool
		s.Arg, is = r.element(arg, p.At("select", "arg"))
		ok = ok && is
	}
	if w := n.Get("where"); !w.IsNull() {
		s.Where = r.where(w, p.At("where"))
	}
	return orBad(s, ok)
}

const badElement = `must be {"element": true}, or {"LIST": "FIELD"}, to which "field_for": "TABLE" may be added`

// element reads the field that a subquery selects from the elements of its list. It returns false after adding a
// problem.
func (r *reader) element(n *node, p path) (*Element, bool) {
	if n.Kind != '{' {
		r.Fault(codeBody, "must be an object", p)
		return nil, false
	}
	if hasExactKeys(n, "element") && n.Items[0].Kind == 't' && n.Items[0].Yes {
		return &Element{}, true
	}
	out := &Element{}
	for i, k := range n.Keys {
		s, ok := r.Text(&n.Items[i], p.At(strictjson.ShortName(k)))
		switch {
		case !ok:
			return nil, false
		case k == "field_for":
			out.Table = s
		case out.List == "" && k != "":
			out.List, out.Field = k, s
		default:
			out.List = ""
			r.Fault("unknown_expression", badElement, p)
			return nil, false
		}
	}
	if out.List == "" {
		r.Fault("unknown_expression", badElement, p)
		return nil, false
	}
	return out, true
}
