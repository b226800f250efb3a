package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/internal/nearest"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

func (v *Server) addTools() {
	read := &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}
	sdk.AddTool(v.mcp, &sdk.Tool{Name: "coverage", Annotations: read, Description: "What is known of a person: each measure and session kind with data, " +
		"its unit, its sources, and the days of its first and latest data. Call it first."}, v.coverage)
	sdk.AddTool(v.mcp, &sdk.Tool{Name: "ask", Annotations: read, Description: "One number, or one a day, week or month, of one measure of a person, computed over " +
		"all sources so that nothing counts twice; with last_lab the last laboratory result stands beside each. Answers value, unit, window, sources and the rule. no_data is not 0."}, v.ask)
	sdk.AddTool(v.mcp, &sdk.Tool{Name: "explain", Annotations: read, Description: "Where the numbers of the same question come from: which source was used when, and why."}, v.explain)
	if v.s.Orders != nil {
		sdk.AddTool(v.mcp, &sdk.Tool{Name: "orders", Annotations: read, Description: "Laboratory orders of a person, newest first, with their status and the day of each step."}, v.orders)
	}
	if v.s.Labs != nil {
		sdk.AddTool(v.mcp, &sdk.Tool{Name: "labs", Annotations: read, Description: "Laboratory results of a person, newest first, from orders and approved reports: value in one unit " +
			"for each analyte beside what the laboratory wrote, its range, and its interpretation. unknown means that nothing decides it, never that it is normal."}, v.labs)
	}
}

// Question is the input of the tools ask and explain.
type Question struct {
	User     string `json:"user,omitempty" jsonschema:"user_id of the person, or the team's own id for them; may be left out where the key is of one person"`
	Measure  string `json:"measure" jsonschema:"a timeseries, such as steps, heartrate or glucose, or a column of a table, such as sleep.duration_deep or workout.distance"`
	Function string `json:"function" jsonschema:"mean, sum, min, max, median, stddev, count, oldest or newest"`
	From     string `json:"from" jsonschema:"first day, YYYY-MM-DD, on the person's own calendar"`
	To       string `json:"to" jsonschema:"last day, which counts as a whole, YYYY-MM-DD"`
	By       string `json:"by,omitempty" jsonschema:"day, week or month; left out for one number of the whole window"`
	LastLab  string `json:"last_lab,omitempty" jsonschema:"LOINC code, such as 2089-1: each value has beside it the last laboratory result of this code at the end of its day, week or month; needs by"`
	LabAge   int    `json:"last_lab_days,omitempty" jsonschema:"how many days old that result may be, 1 to 3650; 365 if left out"`
}

// Window is the range of days of an answer, from the first to the last.
type Window struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Clock string `json:"clock" jsonschema:"whose days these are"`
}

// Source identifies a source of measurements by provider and source type.
type Source struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	Rule     string `json:"rule,omitempty" jsonschema:"why it stands behind the source before it"`
}

// Point is the value of one bucket, such as a day or a week. Start is the first day of the bucket.
type Point struct {
	Start  string   `json:"start,omitempty"`
	Value  *float64 `json:"value" jsonschema:"null where there is no data"`
	Text   string   `json:"text,omitempty" jsonschema:"the value where it is no number"`
	NoData bool     `json:"no_data"`
	// LastLab is set if the question has last_lab.
	LastLab *LastLab `json:"last_lab,omitempty" jsonschema:"the last laboratory result at the end of the bucket"`
}

// LastLab is the laboratory result that was known at the end of a bucket.
type LastLab struct {
	Value  *float64 `json:"value" jsonschema:"null where there is none, and for a result such as <5"`
	Unit   string   `json:"unit,omitempty" jsonschema:"UCUM"`
	Day    string   `json:"day,omitempty" jsonschema:"day of the collection, else of the report"`
	NoData bool     `json:"no_data" jsonschema:"there is no result that is new enough"`
}

// Answer is the result of the tool ask.
type Answer struct {
	Measure  string   `json:"measure"`
	Function string   `json:"function"`
	Unit     string   `json:"unit" jsonschema:"unit of the values"`
	Window   Window   `json:"window"`
	Values   []Point  `json:"values"`
	NoData   bool     `json:"no_data" jsonschema:"nothing was measured in the window; this is not 0"`
	Sources  []Source `json:"sources" jsonschema:"those that had data, the preferred first"`
	Rule     string   `json:"rule" jsonschema:"how sources were put together"`
	// LeftOut lists providers whose data is not used because the person has withdrawn the consent.
	LeftOut []string `json:"left_out,omitempty" jsonschema:"sources that are not used: the person withdrew the consent"`
}

// functions lists the supported aggregate functions: their result has the unit of the column, or is a count.
var functions = []aggregate.Func{
	aggregate.Mean, aggregate.Sum, aggregate.Min, aggregate.Max, aggregate.Median, aggregate.StdDev, aggregate.Count, aggregate.Oldest, aggregate.Newest,
}

// most is the largest number of values of an answer.
const most = 400

func (v *Server) ask(ctx context.Context, r *sdk.CallToolRequest, in Question) (*sdk.CallToolResult, Answer, error) {
	out, err := runTool(ctx, v, r, "ask", v.scopes(in), in.User, func(ctx context.Context, c call) (Answer, error) {
		out, _, err := v.answer(ctx, c, in)
		return out, err
	})
	return nil, out, err
}

// scopes returns the scopes that a question requires. A question about laboratory results also requires the scopes
// of the tool labs.
func (v *Server) scopes(in Question) organisation.Scopes {
	q, _, err := v.query(&in)
	if err == nil && aggregate.Ask(aggregate.Timeframe{}, q).ReadsLabResults() {
		return slices.Concat(dataRead, labsRead)
	}
	return dataRead
}

// answer computes the answer to a question.
func (v *Server) answer(ctx context.Context, c call, in Question) (Answer, *aggregate.Explanation, error) {
	q, column, err := v.query(&in)
	if err != nil {
		return Answer{}, nil, err
	}
	from, to, err := in.days()
	if err != nil {
		return Answer{}, nil, err
	}
	days := int64(to.At(time.UTC).Sub(from.At(time.UTC))/(24*time.Hour)) + 1
	leftOut, err := v.withoutConsent(ctx, c)
	if err != nil {
		return Answer{}, nil, err
	}
	if len(leftOut) > 0 {
		q.Where = "source_provider NOT IN ('" + strings.Join(leftOut, "', '") + "')" // a slug has no quotes
	}
	result, err := v.s.Aggregate.Explain(ctx, c.Team, c.user, aggregate.Ask(aggregate.Last(days, to), q))
	if err != nil {
		return Answer{}, nil, err
	}
	frame, why := &result.Frames[0], &result.Explain[0]
	out := Answer{
		Measure: in.Measure, Function: in.Function, Unit: column.Unit, Values: []Point{}, Sources: []Source{}, LeftOut: leftOut,
		Window: Window{From: in.From, To: in.To, Clock: "local days of the person"}, Rule: ruleOf(why),
	}
	if aggregate.Func(in.Function) == aggregate.Count {
		out.Unit = "count"
	}
	if frame.Len() > most {
		return Answer{}, nil, fmt.Errorf("%w: by: the answer has more than %d values; use week or month, or fewer days", healthlab.Invalid, most)
	}
	for i := range frame.Len() {
		p := pointOf(&frame.Columns[1], i) // column 0 is the index
		if in.LastLab != "" {
			p.LastLab = lastLab(frame.Columns[2:], i)
		}
		if in.By != "" {
			p.Start = frame.Columns[0].Time(i).Format(time.DateOnly)
		}
		out.Values = append(out.Values, p)
	}
	out.NoData = !slices.ContainsFunc(out.Values, func(p Point) bool { return !p.NoData })
	if count := out.Unit == "count" && out.Function == string(aggregate.Count); count && len(why.Sources) == 0 {
		out.NoData = true
	}
	for _, s := range why.Sources {
		out.Sources = append(out.Sources, Source{Provider: s.Provider, Type: string(s.Type), Rule: s.BehindBy})
	}
	return out, why, nil
}

func lastLab(c []aggregate.Column, i int) *LastLab {
	if c[2].Null(i) {
		return &LastLab{NoData: true}
	}
	return &LastLab{Value: pointOf(&c[0], i).Value, Unit: c[1].Text(i), Day: c[2].Date(i).String()}
}

// pointOf returns the value in row i of a column as a Point without a start.
func pointOf(c *aggregate.Column, i int) Point {
	if c.Null(i) {
		return Point{NoData: true}
	}
	switch v := c.Value(i).(type) {
	case float64:
		return Point{Value: &v}
	case int64:
		return Point{Value: new(float64(v))}
	case time.Time:
		return Point{Text: v.Format("2006-01-02T15:04:05")}
	default:
		return Point{Text: fmt.Sprint(v)}
	}
}

func ruleOf(why *aggregate.Explanation) string {
	switch {
	case len(why.Sources) < 2:
		return "one source, each measurement once"
	case why.OverlapPolicy == aggregate.MergeSources:
		return "at each moment the preferred source that has data counts, and no other"
	}
	return string(why.OverlapPolicy)
}

// days returns the first and the last day.
func (in *Question) days() (from, to healthlab.Date, err error) {
	if from, err = healthlab.ParseDate(in.From); err != nil {
		return from, to, fmt.Errorf("%w: from: must be a day as YYYY-MM-DD", healthlab.Invalid)
	}
	if to, err = healthlab.ParseDate(in.To); err != nil {
		return from, to, fmt.Errorf("%w: to: must be a day as YYYY-MM-DD", healthlab.Invalid)
	}
	if to.Before(from) {
		return from, to, fmt.Errorf("%w: to: must not be before from", healthlab.Invalid)
	}
	return from, to, nil
}

// query converts a question to an aggregate query, and returns the schema of the column that the question names.
func (v *Server) query(in *Question) (aggregate.Query, aggregate.ColumnSchema, error) {
	var none aggregate.ColumnSchema
	f := aggregate.Func(in.Function)
	if !slices.Contains(functions, f) {
		return aggregate.Query{}, none, fmt.Errorf("%w: function: must be one of %s", healthlab.Invalid, join(functions))
	}
	m, ok := v.measures[in.Measure]
	if !ok {
		return aggregate.Query{}, none, fmt.Errorf("%w: measure: unknown; nearest: %s. The tool coverage lists the measures with data",
			healthlab.Invalid, strings.Join(nearest.Names(in.Measure, slices.Sorted(maps.Keys(v.measures)), 3), ", "))
	}
	q := aggregate.Query{Select: []aggregate.Expr{f.Of(m.expr)}}
	periods := map[string]aggregate.Period{"day": aggregate.Days(1), "week": aggregate.Weeks(1), "month": aggregate.Months(1)}
	if in.By != "" {
		p, ok := periods[in.By]
		if !ok {
			return aggregate.Query{}, none, fmt.Errorf("%w: by: must be one of day, week, month, or absent", healthlab.Invalid)
		}
		q.GroupBy = []aggregate.Expr{aggregate.By(p)}
	}
	join, err := in.lastLab()
	if err != nil {
		return aggregate.Query{}, none, err
	}
	q.Joins = join
	return q, m.column, nil
}

// lastLab returns the join that adds the last laboratory result to each bucket; nil if the question has no last_lab.
func (in *Question) lastLab() ([]aggregate.Join, error) {
	const usualAge, mostAge = 365, 3650
	switch {
	case in.LastLab == "" && in.LabAge == 0:
		return nil, nil
	case !loinc.ValidCode(in.LastLab):
		return nil, fmt.Errorf("%w: last_lab: must be a LOINC code with its check digit, such as 2089-1", healthlab.Invalid)
	case in.By == "":
		return nil, fmt.Errorf("%w: by: must be one of day, week, month with last_lab", healthlab.Invalid)
	case in.LabAge < 0 || in.LabAge > mostAge:
		return nil, fmt.Errorf("%w: last_lab_days: must be between 1 and %d", healthlab.Invalid, mostAge)
	}
	lab := func(column string) aggregate.Expr { return aggregate.Col("lab_result", column) }
	return []aggregate.Join{
		aggregate.JoinLast("lab", aggregate.Days(int64(cmp.Or(in.LabAge, usualAge))), lab("value"), lab("unit"), lab("date")).
			Of("loinc = '" + in.LastLab + "'"), // a code contains no quotes
	}, nil
}

func join(list []aggregate.Func) string {
	var out []string
	for _, f := range list {
		out = append(out, string(f))
	}
	return strings.Join(out, ", ")
}

// measure is a column that a question can name.
type measure struct {
	column aggregate.ColumnSchema
	expr   aggregate.Expr
}

// measures returns all measures by name and alias. The name of a timeseries is its slug, and of a summary's column
// TABLE.COLUMN.
func measures() map[string]measure {
	out := map[string]measure{}
	schema := aggregate.Describe()
	for _, t := range schema.Timeseries {
		for _, c := range t.Columns {
			if c.Name != "value" {
				continue
			}
			for _, name := range slices.Concat(t.Aliases, []string{t.Name}) {
				out[name] = measure{c, aggregate.Samples(t.Name)}
			}
		}
	}
	for _, t := range schema.Tables {
		for _, c := range t.Columns {
			for _, table := range slices.Concat(t.Aliases, []string{t.Name}) {
				for _, column := range slices.Concat(c.Aliases, []string{c.Name}) {
					out[table+"."+column] = measure{c, aggregate.Col(t.Name, c.Name)}
				}
			}
		}
	}
	return out
}

// Explained is the result of the tool explain.
type Explained struct {
	Answer
	// Parts holds, for each source, how much of the answer comes from it.
	Parts []Part `json:"parts"`
}

// Part is how much one source contributed to an answer.
type Part struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	Rows     int64  `json:"rows" jsonschema:"measurements that counted"`
}

func (v *Server) explain(ctx context.Context, r *sdk.CallToolRequest, in Question) (*sdk.CallToolResult, Explained, error) {
	out, err := runTool(ctx, v, r, "explain", v.scopes(in), in.User, func(ctx context.Context, c call) (Explained, error) {
		answer, why, err := v.answer(ctx, c, in)
		if err != nil {
			return Explained{}, err
		}
		out := Explained{Answer: answer, Parts: []Part{}}
		if why.Merged != nil {
			for _, t := range why.Merged.Totals {
				out.Parts = append(out.Parts, Part{Provider: t.Provider, Type: string(t.Type), Rows: int64(t.Used)})
			}
		}
		return out, nil
	})
	return nil, out, err
}

// withoutConsent returns the providers for which the person has withdrawn the consent.
func (v *Server) withoutConsent(ctx context.Context, c call) ([]string, error) {
	list, err := v.s.Health.Connections().Consents(ctx, c.Team, c.user)
	if err != nil {
		return nil, err
	}
	stands := map[string]bool{}
	for _, consent := range list {
		stands[consent.Provider] = stands[consent.Provider] || consent.WithdrawnAt == nil
	}
	var out []string
	for _, slug := range slices.Sorted(maps.Keys(stands)) {
		if !stands[slug] {
			out = append(out, slug)
		}
	}
	return out, nil
}
