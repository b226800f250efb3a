package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// compiler checks one query and makes its plan.
type compiler struct {
	r     *reader
	q     *Query
	at    path
	plan  *plan
	slots map[slotKey]int
	bad   bool // an expression could not be read, so errors about the whole query are left out
}

// slotKey identifies a slot, which is a column that the plan reads. Two spellings of one column have the same
// slot.
type slotKey struct {
	name     string
	resource *healthdata.Resource
	from     origin
}

// check checks a request and returns a plan for each query. It adds problems to r. known reports whether a slug is that
// of a provider or lab.
func (r *reader) check(req *Request, limits *Limits, known func(string) bool) []*plan {
	w := r.checkFrame(req, limits)
	r.checkConfig(&req.Config, known, path{"config"})
	plans := make([]*plan, len(req.Queries))
	for i := range req.Queries {
		plans[i] = r.checkQuery(&req.Queries[i], &req.Config, limits, path{"queries", i})
		plans[i].window = w
	}
	return plans
}

func (r *reader) checkQuery(q *Query, config *Config, limits *Limits, at path) *plan {
	c := &compiler{r: r, q: q, at: at, slots: map[slotKey]int{}}
	c.plan = q.plan()
	c.compile(limits, config)
	return c.plan
}

// checkFrame checks the fields of the request other than the queries, and returns the time window.
func (r *reader) checkFrame(req *Request, limits *Limits) (w window) {
	t := &req.Timeframe
	switch {
	case t.Anchor.IsZero() || !slices.Contains(units, string(t.Past.Unit)):
		// For a JSON request the reader has recorded the problem; a request built in Go has none yet.
		if len(r.Problems) == 0 {
			r.Fault(codeBody, "must have an anchor and a period", path{"timeframe"})
		}
	case t.Past.Value < 0 || t.Past.Value > maxPeriod:
		r.Fault(codeBody, "must be from 1 to 1000000", path{"timeframe", "past", "value"})
	default:
		if exceedsYears(t.Past, limits.PastYears) {
			r.tooLong("must reach back", limits.PastYears, path{"timeframe", "past"})
			break
		}
		w = t.bounds()
		if w.yearsLong(limits.PastYears) {
			r.tooLong("must reach back", limits.PastYears, path{"timeframe", "past"})
		}
	}
	switch n := len(req.Queries); {
	case n > limits.Queries:
		r.tooMany(limits.Queries, path{"queries"})
	case n == 0 && len(r.Problems) == 0:
		r.Fault(codeBody, "must have at least one query", path{"queries"})
	}
	return w
}

// checkConfig checks the settings that all queries share. known reports whether a slug is that of a provider or lab; at
// is the path of the settings.
func (r *reader) checkConfig(c *Config, known func(string) bool, at path) {
	for i, s := range c.ProviderPriorityOverrides {
		if !known(s) {
			r.Fault("unknown_provider", "must be the slug of a provider or lab; GET /v2/providers lists the providers", at.At("provider_priority_overrides", i))
		}
	}
	if n := c.ColumnNaming; n != "" && n != ShortNames && n != QualifiedNames && len(r.Problems) == 0 {
		r.Fault(codeBody, "must be one of: "+string(ShortNames)+", "+string(QualifiedNames), at.At("column_naming"))
	}
	if o := c.OverlapPolicy; o != "" && !slices.Contains(overlapPolicies, string(o)) && len(r.Problems) == 0 {
		r.Fault(codeBody, "must be one of "+strings.Join(overlapPolicies, ", "), at.At("overlap_policy"))
	}
}

func exceedsYears(p Period, years int) bool {
	shortest := map[Unit]int64{Minute: 366 * 24 * 60, Hour: 366 * 24, Day: 366, Week: 53, Month: 12, Year: 1}[p.Unit]
	return p.count() > shortest*int64(years)
}

func (r *reader) tooLong(rule string, years int, p path) {
	r.Fault("timeframe_too_long", fmt.Sprintf("%s at most %d years", rule, years), p)
}

func (r *reader) tooMany(limit int, p path) {
	r.Problems = append(r.Problems, healthlab.Problem{
		Path: p, Code: "too_many_items", Msg: fmt.Sprintf("must have at most %d items", limit), Context: map[string]any{"limit": limit},
	})
}

func (c *compiler) compile(limits *Limits, config *Config) {
	q := c.q
	if len(q.Select) == 0 && len(c.r.Problems) == 0 {
		c.fault(codeBody, "must have at least one expression", "select")
	}
	if len(q.Select) > limits.Select {
		c.r.tooMany(limits.Select, c.at.At("select"))
		return
	}
	if len(q.GroupBy) > limits.GroupBy {
		c.r.tooMany(limits.GroupBy, c.at.At("group_by"))
		return
	}
	var where condition.Cond
	if q.Where != "" {
		var fault *condition.Fault
		if where, fault = condition.Parse(q.Where); fault != nil {
			c.r.Problems = append(c.r.Problems, fault.Problem(c.at.At("where")))
			where = nil
		}
	}
	if !c.findTable(where) {
		return
	}
	for i, e := range q.GroupBy {
		c.groupBy(e, c.at.At("group_by", i))
	}
	c.selects()
	if where != nil {
		ch := checker{names: c.resolveName}
		c.plan.where = ch.filter(where)
		c.addFaults(ch.faults, c.at.At("where"))
	}
	c.joins(limits, config)
	if c.bad {
		return
	}
	c.sources(config)
	c.names(config)
	c.checkAlign()
	c.joinNames()
}

func (c *compiler) addFaults(faults []*condition.Fault, p path) {
	for _, f := range faults {
		c.r.Problems = append(c.r.Problems, f.Problem(p))
	}
}

func (c *compiler) fault(code, msg string, p ...any) { c.r.Fault(code, msg, c.at.At(p...)) }

func (c *compiler) fail(code, msg string, p path) {
	c.bad = true
	c.r.Fault(code, msg, p)
}

func (c *compiler) unknown(code, msg, name string, known []string, p path) {
	c.bad = true
	c.r.Unknown(code, msg, name, known, p)
}

// mentions are the tables and timeseries that a query names, in the order of the query.
type mentions struct {
	c         *compiler
	tables    []mention
	resources map[string]*healthdata.Resource
}

type mention struct {
	table string
	at    path
}

func (m *mentions) table(name string, p path) {
	if _, ok := catalogue()[name]; !ok {
		m.c.unknown("unknown_table", "must be a table", name, tableNames, p)
		return
	}
	m.tables = append(m.tables, mention{name, p})
}

func (m *mentions) expr(e Expr, p path) {
	switch e := e.(type) {
	case nil, badExpr:
		m.c.bad = true
	case Aggregate:
		m.expr(e.Arg, p.At("arg"))
	case Macro:
		m.table("sleep", p)
	case Field:
		r := sampleResource(e.Resource)
		if r == nil {
			m.c.unknown("unknown_table", "must be a timeseries", e.Resource, sampleResourceNames(), p.At("timeseries"))
			return
		}
		m.resources[r.Slug] = r
		m.table(samplesTable, p)
	case Index:
		if e.Table != "" {
			m.table(e.Table, p.At("index"))
		}
	case TableColumn:
		m.table(e.Table, p)
	case DateTrunc:
		m.expr(e.Of, p.At("arg"))
	case DatePart:
		m.expr(e.Of, p.At("arg"))
	case Subquery:
		m.expr(e.From, p.At("from", "unnest"))
	}
}

// findTable finds the one table that the query names, and the timeseries of its samples. where is the condition of the
// query. It returns false after an error.
func (c *compiler) findTable(where condition.Cond) bool {
	m := mentions{c: c, resources: map[string]*healthdata.Resource{}}
	for i, e := range c.q.Select {
		m.expr(e, c.at.At("select", i))
	}
	for i, e := range c.q.GroupBy {
		m.expr(e, c.at.At("group_by", i))
	}
	if len(m.tables) == 0 {
		if !c.bad {
			c.r.Fault("no_table", "must name a table in at least one expression", c.at)
		}
		return false
	}
	for _, o := range m.tables[1:] {
		if o.table != m.tables[0].table {
			c.fail("cross_table", "must use the same table as the expressions before it", o.at)
			return false
		}
	}
	c.plan.table = catalogue()[m.tables[0].table]
	if !c.plan.sampleTable() {
		return true
	}
	eachColumn(where, func(o condition.Operand) {
		if r := sampleResource(o.Table); o.Two && r != nil {
			m.resources[r.Slug] = r
		}
	})
	for _, r := range m.resources {
		c.plan.resources = append(c.plan.resources, r)
	}
	slices.SortFunc(c.plan.resources, func(a, b *healthdata.Resource) int { return cmp.Compare(a.Slug, b.Slug) })
	if len(m.resources) == 0 {
		if !c.bad {
			c.r.Fault("timeseries_resource_missing", "must name a timeseries in at least one expression", c.at)
		}
		return false
	}
	return true
}

// eachColumn calls a function for each column in a condition.
func eachColumn(n condition.Cond, visit func(condition.Operand)) {
	one := func(o condition.Operand) {
		if o.Kind == 'c' {
			visit(o)
		}
	}
	switch n := n.(type) {
	case condition.And:
		eachColumn(n.Left, visit)
		eachColumn(n.Right, visit)
	case condition.Or:
		eachColumn(n.Left, visit)
		eachColumn(n.Right, visit)
	case condition.Not:
		eachColumn(n.Of, visit)
	case condition.Compare:
		one(n.Left)
		one(n.Right)
	case condition.Null:
		one(n.Of)
	case condition.In:
		one(n.Of)
	case condition.Bool:
		one(n.Of)
	}
}

func (c *compiler) groupBy(e Expr, p path) {
	k := key{kind: keySlot}
	switch e := e.(type) {
	case badExpr, nil:
		c.bad = true
	case DateTrunc:
		if c.plan.trunc >= 0 {
			c.fail("multiple_date_trunc", "must be the only date truncation in group_by", p)
			return
		}
		if !slices.Contains(units, string(e.Period.Unit)) || e.Period.Value < 0 || e.Period.Value > maxPeriod {
			c.fail(codeBody, "must be a period: a unit of minute, hour, day, week, month or year, and a value from 1 to 1000000", p.At("date_trunc"))
			return
		}
		c.plan.trunc = len(c.plan.keys)
		k = key{kind: keyTrunc, period: e.Period, typ: typeTime}
		if c.plan.table.indexType == typeInstant {
			k.typ = typeInstant
		}
	case DatePart:
		if !slices.Contains(parts, string(e.Part)) {
			c.fail(codeBody, "must be one of: "+strings.Join(parts, ", "), p.At("date_part"))
			return
		}
		k = key{kind: keyPart, part: e.Part, typ: typeInt}
	case TableColumn, Macro, Field, SourceColumn:
		n, col, ok := c.value(e, p)
		if !ok {
			return
		}
		if col.typ == typeList {
			c.fail("list_column", "must not be a list column outside a subquery", p)
			return
		}
		k.slot, k.typ = n, col.typ
	default:
		c.fail("expression_not_allowed", "must be a table column, value macro, field, source column, date truncation or date part", p)
		return
	}
	c.plan.keys = append(c.plan.keys, k)
}

func (c *compiler) selects() {
	aggregates, others := 0, 0
	for i, e := range c.q.Select {
		p := c.at.At("select", i)
		switch e := e.(type) {
		case badExpr, nil:
			c.bad = true
		case Aggregate:
			aggregates++
			c.aggregate(e, p)
		case GroupKey:
			if !c.plan.grouped {
				c.fail("group_key_without_group_by", "must be left out of a query without group_by", p)
				continue
			}
			c.groupKey(e, p)
		case TableColumn, Macro, Field, SourceColumn, Index, Subquery:
			others++
			if c.plan.grouped {
				c.fail("ungrouped_column", "must be a group key or an aggregate function in a query with group_by", p)
				continue
			}
			if x, ok := e.(Index); ok && x.Table == "" {
				c.fail("unknown_expression", "must name a table", p)
				continue
			}
			n, col, ok := c.value(e, p)
			switch {
			case !ok:
			case col.typ == typeList:
				c.fail("list_column", "must not be a list column outside a subquery", p)
			default:
				c.plan.outs = append(c.plan.outs, out{name: col.base, kind: outSlot, n: n, typ: col.typ})
			}
		default:
			c.fail("expression_not_allowed", "must be an aggregate function, group key, column, value macro, field, index or subquery", p)
		}
	}
	if !c.plan.grouped && aggregates > 0 && others > 0 {
		c.fail("mixed_select", "must not mix aggregate functions and plain columns without group_by", c.at.At("select"))
	}
	c.plan.rows = !c.plan.grouped && others > 0
}

func (c *compiler) groupKey(e GroupKey, p path) {
	if e.All {
		for k := range c.q.GroupBy {
			c.plan.outs = append(c.plan.outs, out{kind: outKey, n: k})
		}
		return
	}
	if e.Offset < 0 || e.Offset >= len(c.q.GroupBy) {
		c.fail("group_key_out_of_range", "must be the position of a group key in group_by, counted from 0", p.At("group_key"))
		return
	}
	c.plan.outs = append(c.plan.outs, out{kind: outKey, n: e.Offset})
}

func (c *compiler) aggregate(e Aggregate, p path) {
	switch e.Arg.(type) {
	case badExpr, nil:
		c.bad = true
		return
	case TableColumn, Macro, Field, Index, Subquery:
	default:
		c.fail("expression_not_allowed", "must be a table column, value macro, field, index or subquery", p.At("arg"))
		return
	}
	if x, ok := e.Arg.(Index); ok && x.Table == "" {
		c.fail("unknown_expression", "must name a table", p.At("arg"))
		return
	}
	if !knownFunc(e.Func) {
		c.unknown("unknown_func", "must be a function", string(e.Func), funcNames, p.At("func"))
		return
	}
	if !c.bounds(e, p) {
		return
	}
	n, col, ok := c.value(e.Arg, p.At("arg"))
	if !ok {
		return
	}
	typ, ok := e.Func.result(col.typ)
	if !ok || e.Func.ofSamples() && (col.from != fromSample || col.field != fieldValue && col.field != fieldSecond) {
		c.fail("func_type_mismatch", "must be a function that accepts values of the argument's type", p)
		return
	}
	if (e.Func.ofGlucose() || e.Band != "") && (col.field != fieldValue || col.resource == nil || col.resource.Slug != "glucose") {
		c.fail("func_type_mismatch", "must have the field value of the timeseries glucose as its argument", p)
		return
	}
	c.plan.outs = append(c.plan.outs, out{name: e.label(), kind: outAgg, n: len(c.plan.aggs), typ: typ})
	c.plan.aggs = append(c.plan.aggs, agg{fn: e.Func, slot: n, base: col.base, in: col.typ, typ: typ, low: e.Low, high: e.High, band: e.Band})
}

// bounds checks the low and high bounds and the band of a function, and reports whether they are valid. p is the path
// of the function.
func (c *compiler) bounds(e Aggregate, p path) bool {
	bounded := e.Low != nil || e.High != nil
	bands := e.Func.bands()
	switch {
	case bounded && e.Func != TimeInRange:
		c.fail("unknown_expression", "low and high must be left out of functions other than time_in_range", p)
	case e.Band != "" && bands == nil:
		c.fail("unknown_expression", "band must be left out of functions other than time_in_range and episodes", p)
	case e.Func == TimeInRange && bounded == (e.Band != ""):
		c.fail("unknown_expression", "time_in_range must have low, high or both, or else band", p)
	case e.Func == Episodes && e.Band == "":
		c.fail("unknown_expression", "episodes must have a band: one of "+strings.Join(bands, ", "), p)
	case e.Band != "" && !slices.Contains(bands, string(e.Band)):
		c.unknown("unknown_band", "must be a band of this function", string(e.Band), bands, p.At("band"))
	default:
		return true
	}
	return false
}

// sources chooses how several sources of the same data are combined.
func (c *compiler) sources(config *Config) {
	p := c.plan
	isSource := func(slot int) bool {
		return p.slots[slot].name == "source_provider" || p.slots[slot].name == "source_type"
	}
	provider, sourceType := false, false
	for _, k := range p.keys {
		if k.kind == keySlot {
			name := p.slots[k.slot].name
			provider = provider || name == "source_provider"
			sourceType = sourceType || name == "source_type"
		}
	}
	split := provider && sourceType
	selected := false // a source column is asked for as a value
	for _, o := range p.outs {
		selected = selected || o.kind == outSlot && isSource(o.n) || o.kind == outAgg && isSource(p.aggs[o.n].slot)
	}
	policy := config.OverlapPolicy
	if policy == "" {
		policy = MergeSources
	}
	if policy == MergeSources && selected {
		policy = WinnerOnly // merged rows would not show their source
	}
	off := p.table.name == readinessTable || p.table.name == labTable || policy == AllSources
	p.merge = !off && policy == MergeSources
	p.origins = !off
	off = off || split
	p.chosen = !off && p.grouped && (policy == WinnerOnly || policy == FillGaps)
	p.fill = p.chosen && p.sampleTable() && policy == FillGaps
	if split {
		c.qualify()
	}
}

// names sets the names of the result's columns.
func (c *compiler) names(config *Config) {
	p := c.plan
	if config.ColumnNaming == QualifiedNames {
		c.qualify()
	}
	keys := 0
	for i := range p.outs {
		o := &p.outs[i]
		if o.kind != outKey {
			continue
		}
		o.name = groupKeyName(o.n)
		o.typ = p.keys[o.n].typ
		keys++
	}
	// Aggregates that share a short name are qualified, all of them.
	short := map[string]int{}
	for _, o := range p.outs {
		short[o.name]++
	}
	for i := range p.outs {
		if o := &p.outs[i]; o.kind == outAgg && short[o.name] > 1 {
			o.name = c.qualified(o)
		}
	}
	seen := map[string]bool{"index": true}
	for i := range p.outs {
		if seen[p.outs[i].name] {
			c.fail("duplicate_output_column", "must not have two columns of the same name in the result", c.at.At("select"))
			return
		}
		seen[p.outs[i].name] = true
	}
}

func (c *compiler) qualify() {
	for i := range c.plan.outs {
		if o := &c.plan.outs[i]; o.kind == outAgg {
			o.name = c.qualified(o)
		}
	}
}

func (c *compiler) qualified(o *out) string {
	a := c.plan.aggs[o.n]
	full := Aggregate{Func: a.fn, Low: a.low, High: a.high, Band: a.band}
	return full.label() + "." + a.base
}

func (c *compiler) checkAlign() {
	a, p := c.q.Align, c.plan
	if a == nil {
		return
	}
	at := c.at.At("align")
	if !slices.Contains(alignModes, string(a.Mode)) {
		c.fail(codeBody, "mode must be one of: "+strings.Join(alignModes, ", "), at)
		return
	}
	if p.trunc < 0 {
		c.r.Fault("align_invalid", "must be used with exactly one date truncation in group_by", at)
		return
	}
	selected := map[int]bool{}
	for _, o := range p.outs {
		if o.kind == outKey {
			selected[o.n] = true
		}
	}
	for i, k := range p.keys {
		if k.kind == keyPart {
			c.r.Fault("align_invalid", "must be left out of a query with a date part in group_by", at)
		}
		if !selected[i] {
			c.r.Fault("align_invalid", "must be used with every group key in select", at)
			break
		}
	}
	if l := a.Limit; l != nil {
		if !slices.Contains(units, string(l.Unit)) {
			c.fail(codeBody, "must be a period: a unit of minute, hour, day, week, month or year, and a value", at)
		} else if l.rough() < p.keys[p.trunc].period.rough() {
			c.r.Fault("align_invalid", "must be at least the period of the date truncation", at.At("carry"))
		}
	}
}

func groupKeyName(k int) string { return "group_key." + strconv.Itoa(k) }
