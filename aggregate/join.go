package aggregate

import (
	"slices"
	"sort"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Join adds columns of another table, or of other timeseries, to the rows of a query. The query must have a date
// truncation of days, weeks, months or years. A row gets the joined table's values of the same bucket, or null if it
// has none. A join adds and removes no rows: the query decides which buckets there are. Joins are made after [Align].
//
//	aggregate.Query{
//		Select:  []aggregate.Expr{aggregate.Sum.Of(aggregate.Samples("steps"))},
//		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Months(1))},
//		Joins: []aggregate.Join{
//			aggregate.JoinEach("sleep", aggregate.Mean.Of(aggregate.Col("sleep", "efficiency"))),
//			aggregate.JoinLast("ldl", aggregate.Months(6), aggregate.Col("lab_result", "value")).
//				Of("loinc = '2089-1'"),
//		},
//	}
type Join struct {
	// As is the name of the join: its columns are named As + "." + the name in a query of its own. It begins
	// with a lower-case letter, and has at most 40 lower-case letters, digits and _.
	As string
	// Select has functions over the rows of the bucket; with AsOf plain columns of one row.
	Select []Expr
	// Where is the condition on rows of the joined table, as Where of a [Query].
	Where string
	// AsOf selects the last row at the end of the bucket, whichever bucket that row is in. Nil selects
	// functions over the rows of the bucket.
	AsOf *AsOf
}

// AsOf defines the last row at the end of a bucket: the row with the largest index before the ends of the
// bucket and of the timeframe; of several with that index, the row of the preferred source. Its values may be
// null; use Where to exclude such rows.
type AsOf struct {
	// MaxAge is the largest distance of the row's index from the end of the bucket. With one day, a bucket of a
	// day has rows of that day only.
	MaxAge Period
}

// JoinEach is a join of functions over the rows of each bucket.
func JoinEach(as string, functions ...Expr) Join { return Join{As: as, Select: functions} }

// JoinLast is a join of columns of the last row at the end of each bucket, at most maxAge before it.
func JoinLast(as string, maxAge Period, columns ...Expr) Join {
	return Join{As: as, Select: columns, AsOf: &AsOf{MaxAge: maxAge}}
}

// Of returns the join over the rows that fit a condition.
func (j Join) Of(where string) Join {
	j.Where = where
	return j
}

// joinPlan is a checked join.
type joinPlan struct {
	as     string
	plan   *plan
	maxAge *Period // nil without AsOf
}

const codeJoin = "join_invalid"

// query returns the query that computes the join.
func (j *Join) query(trunc DateTrunc) *Query {
	q := &Query{Select: j.Select, Where: j.Where}
	if j.AsOf == nil {
		q.GroupBy = []Expr{trunc}
	}
	return q
}

// joins checks the joins of a query and returns their plans.
func (c *compiler) joins(limits *Limits, config *Config) {
	joins, p := c.q.Joins, c.plan
	if len(joins) == 0 {
		return
	}
	if len(joins) > limits.Joins {
		c.r.tooMany(limits.Joins, c.at.At("join"))
		return
	}
	if p.trunc < 0 {
		c.fault(codeJoin, "must be used with exactly one date truncation in group_by", "join")
		return
	}
	if k := p.keys[p.trunc].period; k.Unit == Minute || k.Unit == Hour {
		c.fault(codeJoin, "must be used with a date truncation of unit day, week, month or year", "join")
		return
	}
	names := map[string]bool{}
	for i := range joins {
		j, at := &joins[i], c.at.At("join", i)
		if !validAs(j.As) {
			c.r.Fault(codeJoin, "must begin with a lower case letter and have lower case letters, digits and _, at most 40", at.At("as"))
		} else if names[j.As] {
			c.r.Fault(codeJoin, "must differ from the names of earlier joins", at.At("as"))
		}
		names[j.As] = true
		c.join(j, limits, config, at)
	}
}

// join checks the join j and adds its plan. at is the path of the join in the request.
func (c *compiler) join(j *Join, limits *Limits, config *Config, at path) {
	fits := true
	for i, e := range j.Select {
		_, function := e.(Aggregate)
		_, key := e.(GroupKey)
		switch {
		case e == (badExpr{}):
		case j.AsOf == nil && !function:
			fits = false
			c.fail("expression_not_allowed", "must be a function; plain columns need asof", at.At("select", i))
		case j.AsOf != nil && (function || key):
			fits = false
			c.fail("expression_not_allowed", "must be a plain column: asof takes one row, not functions over several", at.At("select", i))
		}
	}
	if j.AsOf != nil {
		age, where := j.AsOf.MaxAge, at.At("asof", "max_age")
		switch {
		case !slices.Contains(units, string(age.Unit)) || age.Value < 0 || age.Value > maxPeriod:
			if len(c.r.Problems) == 0 {
				c.r.Fault(codeBody, "must have a unit and a value from 1 to 1000000", where)
			}
		case exceedsYears(age, limits.PastYears):
			c.r.tooLong("must be", limits.PastYears, where)
		}
	}
	if !fits {
		return
	}
	sub := compiler{r: c.r, q: j.query(DateTrunc{Period: c.plan.keys[c.plan.trunc].period}), at: at, slots: map[slotKey]int{}}
	sub.plan = sub.q.plan()
	sub.plan.latest = j.AsOf != nil
	sub.compile(limits, config)
	c.bad = c.bad || sub.bad
	out := joinPlan{as: j.As, plan: sub.plan}
	if j.AsOf != nil {
		out.maxAge = &j.AsOf.MaxAge
	}
	c.plan.joins = append(c.plan.joins, out)
}

// joinNames reports an error if two columns have the same name.
func (c *compiler) joinNames() {
	seen := map[string]bool{}
	for _, o := range c.plan.outs {
		seen[o.name] = true
	}
	for _, j := range c.plan.joins {
		for _, o := range j.plan.outs {
			name := j.as + "." + o.name
			if seen[name] {
				c.fail("duplicate_output_column", "must not have two columns of the same name in the result", c.at.At("join"))
				return
			}
			seen[name] = true
		}
	}
}

// validAs reports whether a text is a valid name of a join.
func validAs(s string) bool {
	const most = 40
	if s == "" || len(s) > most || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// join adds the columns of the joins to the frame of a plan. run computes the plan of one join. If x is not nil, join
// adds the explanations of the joins to it.
func (p *plan) join(f *Frame, x *Explanation, run func(*plan) (*grid, *Explanation, error)) error {
	if len(p.joins) == 0 {
		return nil
	}
	buckets := f.Columns[0].v.Ints
	for k := range p.joins {
		j := &p.joins[k]
		w := p.window
		if j.maxAge != nil {
			for _, at := range buckets {
				w.from = min(w.from, j.maxAge.add(p.end(at), true))
			}
		}
		sub := j.plan.within(w)
		g, why, err := run(sub)
		if err != nil {
			return withPath(err, "join", k)
		}
		other := sub.frame(g)
		rows := p.pick(j, buckets, other.Columns[0].v.Ints)
		for _, c := range other.Columns[1:] {
			col := newColumn(j.as+"."+c.Name, c.Type)
			for _, r := range rows {
				if r < 0 {
					col.v.Add(tables.Cell{})
				} else {
					col.v.Add(c.v.Cell(r))
				}
			}
			f.Columns = append(f.Columns, col)
		}
		if x != nil {
			why.As, why.MaxAge = j.as, j.maxAge
			x.Joins = append(x.Joins, *why)
		}
	}
	return nil
}

// end returns the end of a bucket for a join, which is at most the end of the timeframe.
func (p *plan) end(bucket int64) int64 {
	end := p.keys[p.trunc].period.next(bucket)
	if bucket < p.window.to {
		return min(end, p.window.to)
	}
	return end // the bucket is after the timeframe: Align added it
}

// pick returns the row number of a join's result for each bucket, -1 for none. at are the times of the join's rows,
// ascending.
func (p *plan) pick(j *joinPlan, buckets, at []int64) []int {
	out := make([]int, len(buckets))
	for i, b := range buckets {
		out[i] = -1
		if j.maxAge == nil {
			if k, ok := slices.BinarySearch(at, b); ok {
				out[i] = k
			}
			continue
		}
		end := p.end(b)
		behind := sort.Search(len(at), func(k int) bool { return at[k] >= end })
		if behind > 0 && at[behind-1] >= j.maxAge.add(end, true) {
			out[i], _ = slices.BinarySearch(at, at[behind-1]) // of rows with this index the first is from the preferred source
		}
	}
	return out
}

func (p *plan) each(visit func(*plan)) {
	visit(p)
	for i := range p.joins {
		visit(p.joins[i].plan)
	}
}
