package console

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// table is a result of the query language: columns of equal length by name.
type table map[string][]any

func (t table) text(column string, row int) string {
	if row >= len(t[column]) || t[column][row] == nil {
		return ""
	}
	return fmt.Sprint(t[column][row])
}

// number returns the number in a cell; NaN for null and text.
func (t table) number(column string, row int) float64 {
	if row < len(t[column]) {
		if v, ok := t[column][row].(float64); ok {
			return v
		}
	}
	return math.NaN()
}

// floating is the layout of local times, without an offset, in answers of the query API.
const floating = "2006-01-02T15:04:05"

// queryColumn and queryTables are the schema of the query language as the API publishes it.
type queryColumn struct {
	Name, Type, Unit, Description string
}

type queryTable struct {
	Name     string        `json:"name"`
	Additive bool          `json:"additive"`
	Columns  []queryColumn `json:"columns"`
}

type querySchema struct {
	Tables     []queryTable  `json:"tables"`
	Timeseries []queryTable  `json:"timeseries"`
	Macros     []queryColumn `json:"value_macros"`
	Functions  []string      `json:"functions"`
}

func (s *Console) schema(r *http.Request) (querySchema, error) {
	var out querySchema
	err := s.get(r, "/aggregate/v1/schema", nil, &out)
	return out, err
}

// resource is a timeseries with numeric columns, which a chart can show.
type resource struct {
	name   string
	fields []queryColumn // numeric columns without the duration
	sum    bool          // draw bars of sums instead of lines of means
}

// resources returns the timeseries with numeric values.
func (q *querySchema) resources() (list []resource) {
	for _, t := range q.Timeseries {
		r := resource{name: t.Name, sum: t.Additive}
		for _, c := range t.Columns {
			if c.Type == "float64" && c.Name != "duration" {
				r.fields = append(r.fields, c)
			}
		}
		if len(r.fields) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// bucket is the length of the steps in which a chart aggregates samples, such as an hour.
type bucket struct {
	Name, Unit string
	Value      int
	length     time.Duration
}

var buckets = []bucket{
	{"minute", "minute", 1, time.Minute},
	{"5 minutes", "minute", 5, 5 * time.Minute},
	{"15 minutes", "minute", 15, 15 * time.Minute},
	{"hour", "hour", 1, time.Hour},
	{"day", "day", 1, day},
	{"week", "week", 1, 7 * day},
	{"month", "month", 1, 30 * day},
}

// Without a selected step, a line has at most mostSteps points, and a bar chart at most mostBars.
const (
	mostSteps = 400
	mostBars  = 62
)

// bucketOf returns the bucket called name, or without such a name the shortest one with at most most steps in the range
// of days. It refuses a named bucket with more than 100,000 steps.
func bucketOf(name string, days, most int) (bucket, error) {
	length := time.Duration(days) * day
	for _, b := range buckets {
		if name == b.Name {
			if length/b.length > 100_000 {
				return b, &apiError{Status: http.StatusUnprocessableEntity, Message: "by: has too many points in this range; choose a longer step or fewer days"}
			}
			return b, nil
		}
	}
	for _, b := range buckets {
		if length/b.length <= time.Duration(most) {
			return b, nil
		}
	}
	return buckets[len(buckets)-1], nil
}

// series holds the values of a resource of a person, aggregated by steps of time.
type series struct {
	lines   []line // one for each source and field
	winners []span // intervals with the source that the merge of sources used in them
	sources []string
}

// rangeOf is a range of days of a person's calendar, including both ends.
type rangeOf struct{ from, to time.Time }

func (d rangeOf) days() int { return int(d.to.Sub(d.from)/day) + 1 }

// parseRange reads the range of days that the form fields from and to select. Without to, the range ends on the day of
// the newest data, or today if newest is zero. Without from, it has the given number of days.
func (s *Console) parseRange(r *http.Request, newest time.Time, days int) (out rangeOf, err error) {
	if out.to = newest.UTC().Truncate(day); newest.IsZero() {
		out.to = s.Now().UTC().Truncate(day)
	}
	if text := r.FormValue("to"); text != "" {
		if out.to, err = time.Parse(time.DateOnly, text); err != nil {
			return out, &apiError{Status: http.StatusUnprocessableEntity, Message: "to: must be a date like 2026-01-31"}
		}
	}
	out.from = out.to.AddDate(0, 0, 1-days)
	if text := r.FormValue("from"); text != "" {
		if out.from, err = time.Parse(time.DateOnly, text); err != nil {
			return out, &apiError{Status: http.StatusUnprocessableEntity, Message: "from: must be a date like 2026-01-31"}
		}
	}
	if out.from.After(out.to) || out.days() > 40*366 {
		return out, &apiError{Status: http.StatusUnprocessableEntity, Message: "from: must be before to, by at most 40 years"}
	}
	return out, nil
}

// series reads the values of each source of a resource, aggregated by step. With several sources, it also reads which
// of them the merge used.
func (s *Console) series(r *http.Request, id string, res resource, days rangeOf, step bucket) (*series, error) {
	all, err := s.steps(r, id, res, days, step, "all")
	if err != nil {
		return nil, err
	}
	out := &series{}
	byName := map[string]*line{}
	for i := range all["index"] {
		at, err := time.Parse(floating, all.text("index", i))
		if err != nil {
			continue
		}
		source := sourceName(all, i)
		if !slices.Contains(out.sources, source) {
			out.sources = append(out.sources, source)
		}
		for _, f := range res.fields {
			name := source
			if len(res.fields) > 1 {
				name += ", " + f.Name
			}
			l := byName[name]
			if l == nil {
				l = &line{name: name}
				byName[name] = l
			}
			if n := len(l.points); n > 0 && at.Sub(l.points[n-1].at) > max(3*step.length, time.Hour) {
				l.add(l.points[n-1].at.Add(step.length), math.NaN(), math.NaN(), math.NaN(), !res.sum)
			}
			l.add(at, all.number(res.column(res.function(), f), i), all.number(res.column("min", f), i), all.number(res.column("max", f), i), !res.sum)
		}
	}
	for _, l := range byName {
		out.lines = append(out.lines, *l)
	}
	slices.SortFunc(out.lines, func(a, b line) int { return cmp.Compare(a.name, b.name) })
	slices.Sort(out.sources)
	for i := range out.lines {
		out.lines[i].colour = i
		if out.lines[i].dots = len(out.lines[i].points) <= 60; res.sum {
			out.lines[i].bars = step.length
		}
	}
	if len(out.sources) < 2 {
		return out, nil
	}
	merged, err := s.steps(r, id, res, days, step, "merge")
	if err != nil {
		return nil, err
	}
	out.winners = mergedSources(merged, res, step, func(name string) int {
		return slices.IndexFunc(out.lines, func(l line) bool {
			return l.name == name || len(res.fields) > 1 && l.name == name+", "+res.fields[0].Name
		})
	})
	return out, nil
}

// steps queries a resource, aggregated by step and source. policy is the overlap_policy of the query: all or merge.
func (s *Console) steps(r *http.Request, id string, res resource, days rangeOf, step bucket, policy string) (table, error) {
	selected := []any{map[string]any{"group_key": "*"}}
	for _, f := range res.fields {
		functions := []string{"mean", "min", "max"}
		if res.sum {
			functions = []string{"sum"}
		}
		for _, name := range functions {
			selected = append(selected, map[string]any{"func": name, "arg": res.arg(f)})
		}
	}
	return s.runQuery(r, id, days, policy, map[string]any{"select": selected, "group_by": []any{
		map[string]any{"date_trunc": map[string]any{"unit": step.Unit, "value": step.Value}, "arg": map[string]any{"index": "timeseries"}},
		map[string]any{"source": "source_provider"}, map[string]any{"source": "source_type"},
	}})
}

// runQuery runs one query on a range of days of the user id. policy is its overlap_policy. In the table, the column of
// a function is called function.timeseries.field.
func (s *Console) runQuery(r *http.Request, id string, days rangeOf, policy string, question map[string]any) (table, error) {
	in := map[string]any{
		"timeframe": map[string]any{"type": "relative", "anchor": days.to.Format(time.DateOnly), "past": map[string]any{"unit": "day", "value": days.days()}},
		"config":    map[string]any{"overlap_policy": policy, "column_naming": "qualified"},
		"queries":   []any{question},
	}
	var out struct {
		Results []struct {
			Table table `json:"table"`
		} `json:"results"`
	}
	if err := s.post(r, "/aggregate/v1/user/"+id+"/query", in, &out); err != nil {
		return nil, err
	}
	if len(out.Results) == 0 {
		return table{}, nil
	}
	return out.Results[0].Table, nil
}

// add appends the value of a step, and its lowest and highest value if spread is true. If low or high is NaN, value
// replaces both.
func (l *line) add(at time.Time, value, low, high float64, spread bool) {
	l.points = append(l.points, point{at, value})
	if math.IsNaN(low) || math.IsNaN(high) {
		low, high = value, value
	}
	if spread {
		l.low, l.high = append(l.low, low), append(l.high, high)
	}
}

// Name is the name of the resource in the query language.
func (r resource) Name() string { return r.name }

// Unit returns the unit of the resource's first field.
func (r resource) Unit() string { return r.fields[0].Unit }

func (r *resource) function() string {
	if r.sum {
		return "sum"
	}
	return "mean"
}

func (r *resource) arg(f queryColumn) map[string]any {
	return map[string]any{"timeseries": r.name, "field": f.Name}
}

func (r *resource) column(function string, f queryColumn) string {
	return function + "." + r.name + "." + f.Name
}

func sourceName(t table, row int) string {
	return t.text("group_key.1", row) + " · " + cmp.Or(t.text("group_key.2", row), "unknown")
}

// mergedSources returns the intervals in which the merge used one source. If it used several sources in a step, the
// first one in t counts. colour returns the index of the line of a source, which selects its colour.
func mergedSources(t table, res resource, step bucket, colour func(string) int) (list []span) {
	for i := range t["index"] {
		at, err := time.Parse(floating, t.text("index", i))
		if err != nil || math.IsNaN(t.number(res.column(res.function(), res.fields[0]), i)) {
			continue
		}
		next := span{name: sourceName(t, i), from: at, to: at.Add(step.length), colour: max(colour(sourceName(t, i)), 0)}
		if n := len(list); n > 0 {
			last := &list[n-1]
			if at.Before(last.to) {
				continue
			}
			if last.name == next.name && !at.After(last.to) {
				last.to = next.to
				continue
			}
		}
		list = append(list, next)
	}
	return list
}

func userPath(r *http.Request) string { return url.PathEscape(r.PathValue("id")) }
