package queryoracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

type row struct {
	key  healthdata.SeriesKey
	s    series.Sample
	wall int64
	lost float64 // the part of the time, 0 to 1, that the row lost to preferred sources
}

func (r *row) at() time.Time { return time.UnixMicro(r.wall).UTC() }

// field returns the value of a field of the row: nil, float64, string or int64.
func (r *row) field(name string) any {
	switch name {
	case "value", "systolic":
		return r.s.Value
	case "diastolic":
		return r.s.Value2
	case "duration":
		if r.s.End == series.NoEnd {
			return nil
		}
		return float64(r.s.End-r.s.Time) / 1e6 * (1 - r.lost)
	case "type":
		return orNil(r.s.Type)
	case "timezone_offset":
		return int64(r.s.Offset)
	case "source_provider":
		return orNil(r.key.Provider)
	case "source_type":
		return orNil(string(r.key.SourceType))
	case "source_sport":
		return orNil(r.s.Sport)
	case "source_workout_id":
		if r.s.Workout == uuid.Nil {
			return nil
		}
		return r.s.Workout.String()
	default:
		panic(name)
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Data is a Person with random samples, and these samples as rows for the oracle.
type Data struct {
	Person *Person
	rows   []row
}

var randomKeys = []healthdata.SeriesKey{
	{Resource: "heartrate", Provider: "acme_band", SourceType: "watch"},
	{Resource: "heartrate", Provider: "acme_band", SourceType: "phone"},
	{Resource: "heartrate", Provider: "northring", SourceType: "ring"},
	{Resource: "heartrate", Provider: "manual", SourceType: "new_thing"},
	{Resource: "steps", Provider: "acme_band", SourceType: "watch"},
	{Resource: "steps", Provider: "acme_band", SourceType: "phone"},
	{Resource: "steps", Provider: "acme_band", SourceType: "phone", Origin: healthdata.Origin{App: "com.acme.b"}},
	{Resource: "steps", Provider: "acme_band", SourceType: "phone", Origin: healthdata.Origin{Device: uuid.UUID{7}}},
	{Resource: "heartrate", Provider: "acme_band", SourceType: "watch", Origin: healthdata.Origin{App: "com.acme.b"}},
	{Resource: "steps", Provider: "northring", SourceType: "ring"},
	{Resource: "blood_pressure", Provider: "cufflet", SourceType: "cuff"},
	{Resource: "blood_pressure", Provider: "acme_band", SourceType: "watch"},
	{Resource: "cholesterol", Provider: "northlab", SourceType: "lab", Part: "cholesterol/hdl"},
	{Resource: "cholesterol", Provider: "northlab", SourceType: "lab", Part: "cholesterol/ldl"},
	{Resource: "cholesterol", Provider: "manual", SourceType: "manual_scan", Part: "cholesterol/ldl"},
}

// Draw returns some weeks of random samples, with a clock change and a change of time zone in them. If twice,
// sources have several origins, and intervals overlap.
func Draw(t *rapid.T, twice bool) *Data {
	w := &Data{Person: NewPerson()}
	lengths := []int{0, 0, 30}
	if twice {
		lengths = append(lengths, 60, 1800, 5000)
	}
	base := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC).UnixMicro()
	for i, k := range randomKeys {
		if rapid.IntRange(0, 4).Draw(t, "absent") == 0 || !twice && k != k.Published() {
			continue
		}
		seen := map[int64]series.Sample{}
		for batch := range rapid.IntRange(1, 3).Draw(t, "batches") {
			var list []series.Sample
			when := base + int64(rapid.IntRange(0, 40).Draw(t, "start"))*12*3600e6
			for range rapid.IntRange(1, 120).Draw(t, "samples") {
				when += int64(rapid.SampledFrom([]int{30, 60, 60, 1800, 3600, 3600, 86400}).Draw(t, "step")) * 1e6
				s := series.Sample{Time: when, Value: float64(rapid.IntRange(40, 120).Draw(t, "value"))}
				if rapid.IntRange(0, 3).Draw(t, "fine") == 0 {
					s.Value += float64(rapid.IntRange(0, 99).Draw(t, "part")) / 100
				}
				s.Offset = 3600
				if when > base+9*86400e6 {
					s.Offset = 7200
				}
				if when > base+15*86400e6 {
					s.Offset = -18000
				}
				switch k.Resource {
				case "steps":
					s.End = when + int64(rapid.SampledFrom(lengths).Draw(t, "length"))*1e6
				case "blood_pressure":
					s.Value2 = float64(rapid.IntRange(40, 90).Draw(t, "second"))
				case "cholesterol":
					s.Type = k.Part
				}
				if twice {
					s.Rank = uint32(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "rank"))
				}
				if i%3 == 0 && rapid.Bool().Draw(t, "sport") {
					s.Sport = "running"
				}
				list = append(list, s)
				seen[s.Time] = s
			}
			pending := batch > 0 && rapid.Bool().Draw(t, "pending")
			if !pending && w.Person.Series[k] != nil && len(w.Person.Series[k].Pending) > 0 {
				pending = true // once a series has pending samples, later batches must be pending as well
			}
			w.Person.Measure(t, k, rapid.SampledFrom([]series.Span{series.PerSecond, series.PerMinute, 0}).Draw(t, "span"), pending, list...)
		}
		for _, s := range seen {
			w.rows = append(w.rows, row{key: k, s: s, wall: s.Time + int64(s.Offset)*1e6})
		}
	}
	return w
}

// Question is a random aggregate query: the JSON of the request, and Go functions that evaluate it.
type Question struct {
	resource  string
	where     string
	keep      func(*row) int // result of the condition: 0 false, 1 unknown, 2 true
	keys      []questionKey
	fns       []questionFunc
	overrides []string
	policy    string // overlap_policy of the request
	from, to  int64
	Body      string // the request as JSON
}

type questionKey struct {
	json  string
	sql   string
	name  string // field to group by; empty for groups by time
	value func(*row) any
	days  bool // the groups are whole days, so the key is a date
}

type questionFunc struct{ fn, field string }

func truncate(unit string, n int, at time.Time) time.Time {
	count := func(step time.Duration) time.Time {
		s := int64(step) * int64(n)
		x := at.UnixNano()
		r := x % s
		if r < 0 {
			r += s
		}
		return time.Unix(0, x-r).UTC()
	}
	switch unit {
	case "minute":
		return count(time.Minute)
	case "hour":
		return count(time.Hour)
	case "day":
		return count(24 * time.Hour)
	case "week":
		monday := time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC)
		weeks := int(math.Floor(at.Sub(monday).Hours() / 168 / float64(n)))
		return monday.AddDate(0, 0, 7*n*weeks)
	case "month":
		m := at.Year()*12 + int(at.Month()) - 1
		m -= m % n
		return time.Date(m/12, time.Month(m%12+1), 1, 0, 0, 0, 0, time.UTC)
	default:
		return time.Date(at.Year()-at.Year()%n, 1, 1, 0, 0, 0, 0, time.UTC)
	}
}

func datePart(part string, at time.Time) int64 {
	switch part {
	case "minute":
		return int64(at.Minute())
	case "hour":
		return int64(at.Hour())
	case "day":
		return int64(at.Day())
	case "week":
		_, w := at.ISOWeek()
		return int64(w)
	case "month":
		return int64(at.Month())
	case "year":
		return int64(at.Year())
	case "weekday":
		d := int64(at.Weekday())
		if d == 0 {
			d = 7
		}
		return d
	default:
		return int64(at.YearDay())
	}
}

// DrawQuestion returns a random query whose overlap policy is one of policies.
func DrawQuestion(t *rapid.T, policies ...string) *Question {
	q := &Question{resource: rapid.SampledFrom([]string{"heartrate", "steps", "blood_pressure", "cholesterol"}).Draw(t, "resource")}
	fields := map[string][]string{
		"heartrate": {"value"}, "steps": {"value", "duration"}, "blood_pressure": {"systolic", "diastolic"}, "cholesterol": {"value"},
	}[q.resource]
	anchor := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 45).Draw(t, "anchor"))
	days := rapid.IntRange(1, 60).Draw(t, "days")
	q.to = anchor.AddDate(0, 0, 1).UnixMicro()
	q.from = q.to - int64(days)*86400e6
	q.drawKeys(t)
	var sel []string
	if len(q.keys) > 0 {
		sel = append(sel, `{"group_key":"*"}`)
	}
	fns := []string{"count", "sum", "mean", "median", "stddev", "min", "max", "oldest", "newest", "percentile_90"}
	if rapid.Bool().Draw(t, "simple") {
		fns = []string{"count", "sum", "mean", "min", "max", "oldest", "newest"}
	}
	for range rapid.IntRange(1, 4).Draw(t, "functions") {
		f := questionFunc{rapid.SampledFrom(fns).Draw(t, "fn"), rapid.SampledFrom(fields).Draw(t, "field")}
		if slices.Contains(q.fns, f) {
			continue
		}
		q.fns = append(q.fns, f)
		sel = append(sel, fmt.Sprintf(`{"func":%q,"arg":{"timeseries":%q,"field":%q}}`, f.fn, q.resource, f.field))
	}
	q.keep = func(*row) int { return 2 }
	if rapid.Bool().Draw(t, "where") {
		q.where, q.keep = drawCondition(t, q.resource, fields, 3)
	}
	if rapid.Bool().Draw(t, "overrides") {
		q.overrides = rapid.SliceOfN(rapid.SampledFrom([]string{"northring", "manual", "acme_band"}), 0, 2).Draw(t, "slugs")
	}
	q.policy = rapid.SampledFrom(policies).Draw(t, "policy")
	body := map[string]any{"select": raw("[" + strings.Join(sel, ",") + "]")}
	if len(q.keys) > 0 {
		var keys []string
		for _, k := range q.keys {
			keys = append(keys, k.json)
		}
		body["group_by"] = raw("[" + strings.Join(keys, ",") + "]")
	}
	if q.where != "" {
		body["where"] = q.where
	}
	config := map[string]any{"provider_priority_overrides": q.overrides, "column_naming": "qualified"}
	if q.policy != "" {
		config["overlap_policy"] = q.policy
	}
	text, err := json.Marshal(map[string]any{
		"timeframe": map[string]any{"type": "relative", "anchor": anchor.Format("2006-01-02"), "past": map[string]any{"unit": "day", "value": days}},
		"queries":   []any{body},
		"config":    config,
	})
	require.NoError(t, err)
	q.Body = string(text)
	return q
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func (q *Question) drawKeys(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "bucket") > 0 {
		unit := rapid.SampledFrom([]string{"minute", "hour", "day", "week", "month", "year"}).Draw(t, "unit")
		n := rapid.IntRange(1, 7).Draw(t, "n")
		q.keys = append(q.keys, questionKey{
			json:  fmt.Sprintf(`{"date_trunc":{"unit":%q,"value":%d},"arg":{"index":"timeseries"}}`, unit, n),
			sql:   truncSQL(unit, n),
			value: func(r *row) any { return truncate(unit, n, r.at()) },
			days:  unit != "minute" && unit != "hour",
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		if rapid.Bool().Draw(t, "part") {
			part := rapid.SampledFrom([]string{"minute", "hour", "day", "week", "month", "year", "weekday", "day_of_year"}).Draw(t, "which")
			q.keys = append(q.keys, questionKey{
				json:  fmt.Sprintf(`{"date_part":%q,"arg":{"placeholder":true}}`, part),
				sql:   partSQL(part),
				value: func(r *row) any { return datePart(part, r.at()) },
			})
			continue
		}
		name := rapid.SampledFrom([]string{"source_provider", "source_type", "source_sport", "type", "timezone_offset"}).Draw(t, "column")
		js := fmt.Sprintf(`{"source":%q}`, name)
		if !strings.HasPrefix(name, "source_") {
			js = fmt.Sprintf(`{"timeseries":%q,"field":%q}`, q.resource, name)
		}
		q.keys = append(q.keys, questionKey{json: js, sql: name, name: name, value: func(r *row) any { return r.field(name) }})
	}
	if rapid.Bool().Draw(t, "swap") {
		slices.Reverse(q.keys)
	}
}

// drawCondition returns a random condition of a query as JSON, and a function that evaluates it for a row: 0 false, 1
// unknown, 2 true.
func drawCondition(t *rapid.T, resource string, fields []string, depth int) (string, func(*row) int) {
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "node") {
		case 0:
			a, f := drawCondition(t, resource, fields, depth-1)
			b, g := drawCondition(t, resource, fields, depth-1)
			return "(" + a + ") AND (" + b + ")", func(r *row) int { return min(f(r), g(r)) }
		case 1:
			a, f := drawCondition(t, resource, fields, depth-1)
			b, g := drawCondition(t, resource, fields, depth-1)
			return "(" + a + ") or (" + b + ")", func(r *row) int { return max(f(r), g(r)) }
		case 2:
			a, f := drawCondition(t, resource, fields, depth-1)
			return "NOT (" + a + ")", func(r *row) int { return 2 - f(r) }
		}
	}
	truth := func(b bool) int {
		if b {
			return 2
		}
		return 0
	}
	switch rapid.IntRange(0, 4).Draw(t, "leaf") {
	case 0:
		name := rapid.SampledFrom([]string{"source_sport", "source_type", "source_workout_id"}).Draw(t, "name")
		return name + " is null", func(r *row) int { return truth(r.field(name) == nil) }
	case 1:
		name := rapid.SampledFrom([]string{"source_provider", "source_type", "source_sport"}).Draw(t, "name")
		return name + " NOT IN ('watch', 'northring', 'it''s')", func(r *row) int {
			v := r.field(name)
			if v == nil {
				return 1
			}
			return truth(!slices.Contains([]string{"watch", "northring", "it's"}, v.(string)))
		}
	case 2:
		day := rapid.IntRange(20, 31).Draw(t, "day")
		limit := time.Date(2026, 3, day, 6, 30, 0, 0, time.UTC)
		return "index >= '" + limit.Format("2006-01-02T15:04") + "'", func(r *row) int { return truth(r.wall >= limit.UnixMicro()) }
	case 3:
		name := rapid.SampledFrom([]string{"source_provider", "source_type"}).Draw(t, "name")
		v := rapid.SampledFrom([]string{"acme_band", "watch", "northring", "lab"}).Draw(t, "text")
		op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
		return name + " " + op + " '" + v + "'", func(r *row) int {
			return truth(compared(op, strings.Compare(r.field(name).(string), v)))
		}
	default:
		name := rapid.SampledFrom(fields).Draw(t, "name")
		x := float64(rapid.IntRange(40, 120).Draw(t, "limit"))
		if rapid.IntRange(0, 3).Draw(t, "fine") == 0 {
			x += 0.5
		}
		op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
		return fmt.Sprintf("%s.%s %s %v", resource, name, op, x), func(r *row) int {
			v := r.field(name)
			if v == nil {
				return 1
			}
			return truth(compared(op, cmp.Compare(v.(float64), x)))
		}
	}
}

func compared(op string, c int) bool {
	switch op {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// better compares two sources by the documented rules: negative if a is preferred to b.
func (q *Question) better(a, b healthdata.SeriesKey) int {
	place := func(k healthdata.SeriesKey) int {
		if i := slices.Index(q.overrides, k.Provider); i >= 0 {
			return i
		}
		return 1000
	}
	rank := func(k healthdata.SeriesKey) int {
		all := []string{"lab", "automatic", "insulin_pump", "watch", "ring", "chest_strap", "exercise_machine", "earphone", "scale", "cuff", "fingerprick", "manual_scan", "phone", "app", "multiple_sources"}
		if i := slices.Index(all, string(k.SourceType)); i >= 0 {
			return i
		}
		if k.SourceType == "unknown" {
			return 99
		}
		return 50
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.SourceType, b.SourceType), cmp.Compare(a.Provider, b.Provider))
}

// Answer computes the answer of the query on w: the group keys and the values of each row, in the order of the
// engine.
func (q *Question) Answer(w *Data) (keys [][]any, values [][]any) {
	groups := map[string][]row{}
	tuples := map[string][]any{}
	rows := slices.DeleteFunc(slices.Clone(w.rows), func(r row) bool { return r.key.Resource != q.resource || q.keep(&r) != 2 })
	for _, r := range q.merge(rows) {
		if r.wall < q.from || r.wall >= q.to {
			continue
		}
		var tuple []any
		for _, k := range q.keys {
			tuple = append(tuple, k.value(&r))
		}
		id := fmt.Sprintf("%#v", tuple)
		groups[id] = append(groups[id], r)
		tuples[id] = tuple
	}
	if len(q.keys) == 0 && len(groups) == 0 {
		groups[""], tuples[""] = nil, nil
	}
	names := map[string]bool{}
	for _, k := range q.keys {
		names[k.name] = true
	}
	var ids []string
	for id := range groups {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return compareTuples(tuples[a], tuples[b]) })
	for _, id := range ids {
		rows := groups[id]
		chosen := q.policy == "winner" || q.policy == "fill"
		if chosen && len(q.keys) > 0 && !(names["source_provider"] && names["source_type"]) {
			rows = q.choose(rows)
		}
		var out []any
		for _, f := range q.fns {
			out = append(out, q.apply(f, rows))
		}
		keys, values = append(keys, tuples[id]), append(values, out)
	}
	return keys, values
}

func compareTuples(a, b []any) int {
	for i := range a {
		switch {
		case a[i] == nil && b[i] == nil:
			continue
		case a[i] == nil:
			return 1
		case b[i] == nil:
			return -1
		}
		c := 0
		switch x := a[i].(type) {
		case time.Time:
			c = x.Compare(b[i].(time.Time))
		case int64:
			c = cmp.Compare(x, b[i].(int64))
		case string:
			c = strings.Compare(x, b[i].(string))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// choose returns the rows of the preferred source. For steps under the policy fill it adds, source by source, rows
// that do not overlap rows of sources before.
func (q *Question) choose(rows []row) []row {
	bySource := map[healthdata.SeriesKey][]row{}
	for _, r := range rows {
		k := healthdata.SeriesKey{Provider: r.key.Provider, SourceType: r.key.SourceType}
		bySource[k] = append(bySource[k], r)
	}
	var sources []healthdata.SeriesKey
	for k := range bySource {
		sources = append(sources, k)
	}
	slices.SortFunc(sources, q.better)
	if q.policy != "fill" || q.resource != "steps" {
		return bySource[sources[0]]
	}
	var kept []row
	for _, s := range sources {
		var more []row
		for _, r := range bySource[s] {
			clear := true
			for _, o := range kept {
				clear = clear && !overlap(&r, &o)
			}
			if clear {
				more = append(more, r)
			}
		}
		kept = append(kept, more...)
	}
	return kept
}

func overlap(x, y *row) bool {
	a, b, c, d := x.s.Time, max(x.s.End, x.s.Time), y.s.Time, max(y.s.End, y.s.Time)
	switch {
	case a == b && c == d:
		return false
	case a == b:
		return c <= a && a < d
	case c == d:
		return a <= c && c < b
	default:
		return max(a, c) < min(b, d)
	}
}

func (q *Question) apply(f questionFunc, rows []row) any {
	var known []row
	var v []float64
	for _, r := range rows {
		if x := r.field(f.field); x != nil {
			known, v = append(known, r), append(v, x.(float64))
		}
	}
	n := float64(len(v))
	if f.fn == "count" {
		return int64(len(v))
	}
	if n == 0 {
		return nil
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	sorted := slices.Sorted(slices.Values(v))
	rank := func(p float64) float64 {
		at := p * (n - 1)
		lo, hi := int(math.Floor(at)), int(math.Ceil(at))
		return sorted[lo] + (sorted[hi]-sorted[lo])*(at-math.Floor(at))
	}
	switch f.fn {
	case "sum":
		return sum
	case "mean":
		return sum / n
	case "median":
		return rank(0.5)
	case "percentile_90":
		return rank(0.9)
	case "stddev":
		if n < 2 {
			return nil
		}
		d := 0.0
		for _, x := range v {
			d += (x - sum/n) * (x - sum/n)
		}
		return math.Sqrt(d / (n - 1))
	case "min":
		return sorted[0]
	case "max":
		return sorted[len(sorted)-1]
	}
	// Oldest and newest: at equal local times the row of the preferred source, then by type and origin. Equal local
	// times in one series mean that a clock was set back; then the instants decide.
	slices.SortStableFunc(known, func(a, b row) int {
		wall := cmp.Compare(a.wall, b.wall)
		instant := cmp.Compare(a.s.Time, b.s.Time)
		if f.fn == "newest" {
			wall, instant = -wall, -instant
		}
		return cmp.Or(wall, q.better(a.key, b.key), cmp.Compare(a.key.Part, b.key.Part), a.key.Origin.Compare(b.key.Origin), instant)
	})
	return known[0].field(f.field)
}

// RequireAnswer fails the test if the engine's answer f differs from keys and values, which [Question.Answer]
// returned.
func RequireAnswer(t require.TestingT, q *Question, f *aggregate.Frame, keys, values [][]any) {
	require.Equal(t, len(values), f.Len(), "rows of %s", q.Body)
	for i := range values {
		for k := range q.keys {
			want := keys[i][k]
			if q.keys[k].days {
				want = healthlab.DateOf(want.(time.Time))
			}
			require.Equal(t, want, f.Columns[1+k].Value(i), "key %d of row %d of %s", k, i, q.Body)
		}
		at := 1 + len(q.keys)
		for k, want := range values[i] {
			got := f.Columns[at+k].Value(i)
			if x, ok := want.(float64); ok {
				require.NotNil(t, got, "%v of row %d of %s", q.fns[k], i, q.Body)
				scale := max(1e-6, math.Abs(x))
				if q.fns[k].fn == "stddev" {
					scale = max(1, scale) // rounding errors alone make the deviation of equal values more than 0
				}
				require.InDelta(t, x, got.(float64), 1e-9*scale, "%v of row %d of %s", q.fns[k], i, q.Body)
				continue
			}
			require.Equal(t, want, got, "%v of row %d of %s", q.fns[k], i, q.Body)
		}
	}
}
