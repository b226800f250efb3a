package bench_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// mixedTable is a table of mixed questions: its columns in the engine, and their names in DuckDB.
type mixedTable struct {
	name    string
	numbers []string // columns that have functions and conditions
	others  []string // columns that only joins of one row take
	col     func(string) aggregate.Expr
}

func tableOf(name string, numbers, others []string) mixedTable {
	return mixedTable{name, numbers, others, func(c string) aggregate.Expr { return aggregate.Col(name, c) }}
}

var mixedTables = []mixedTable{
	tableOf("activity", []string{"steps", "distance_meter"}, []string{"date", "source_provider"}),
	tableOf("body", []string{"weight_kilogram", "fat_mass_percentage"}, []string{"measured_at"}),
	tableOf("sleep", []string{"efficiency", "duration_second"}, []string{"session_end", "type"}),
	tableOf("lab_result", []string{"value", "bound"}, []string{"date", "loinc", "unit", "comparator", "status"}),
	{"heartrate", []string{"value"}, []string{"source_type"}, func(c string) aggregate.Expr { return aggregate.Field{Resource: "heartrate", Field: c} }},
}

var mixedFuncs = map[aggregate.Func]string{
	aggregate.Count: "count(%[1]s)", aggregate.Sum: "sum(%[1]s)", aggregate.Mean: "avg(%[1]s)::double", aggregate.Median: "median(%[1]s)::double",
	aggregate.StdDev: "stddev_samp(%[1]s)", aggregate.Min: "min(%[1]s)", aggregate.Max: "max(%[1]s)", aggregate.CV: "100 * stddev_samp(%[1]s) / avg(%[1]s)",
	aggregate.Oldest: "arg_min(%[1]s, i)", aggregate.Newest: "arg_max(%[1]s, i)", aggregate.Percentile(90): "quantile_cont(%[1]s::double, 0.9)",
}

var mixedFuncNames = []aggregate.Func{
	aggregate.Count, aggregate.Sum, aggregate.Mean, aggregate.Median, aggregate.StdDev, aggregate.Min, aggregate.Max, aggregate.CV, aggregate.Oldest,
	aggregate.Newest, aggregate.Percentile(90),
}

const mixedDays = 500

var mixedStart = healthlab.Date{Year: 2025, Month: 1, Day: 1}

// mixedPerson makes a person with a wearable, a scale and a laboratory.
func mixedPerson(t *testing.T, r *rand.Rand) (*queryoracle.Person, []aggregate.LabResult) {
	p := queryoracle.NewPerson()
	half := func(low, n int) *float64 { return ptr(float64(low) + float64(r.IntN(2*n))/2) }
	var heart []series.Sample
	var results []aggregate.LabResult
	for d := range mixedDays {
		day := mixedStart.AddDays(d)
		at := day.At(time.UTC)
		if r.IntN(3) > 0 {
			p.Put(t, "activity", "acme_band", healthdata.SourceWatch, at, 0, &healthdata.Activity{CalendarDate: day, Steps: ptr(int64(r.IntN(20_000))), Distance: half(0, 9000)})
		}
		if r.IntN(9) == 0 {
			b := &healthdata.Body{MeasuredAt: healthlab.At(at.Add(7 * time.Hour)), CalendarDate: day, Weight: half(60, 30)}
			if r.IntN(2) == 0 {
				b.Fat = half(10, 20)
			}
			p.Put(t, "body", "acme_scale", healthdata.SourceScale, at.Add(7*time.Hour), 0, b)
		}
		if r.IntN(2) == 0 {
			stop := at.Add(time.Duration(300+r.IntN(300)) * time.Minute)
			s := &healthdata.Sleep{
				BedtimeStart: healthlab.At(stop.Add(-5 * time.Hour)), BedtimeStop: healthlab.At(stop), CalendarDate: day, Duration: int64(15_000 + r.IntN(9)*600),
				Type: []healthdata.SleepType{healthdata.SleepLong, healthdata.SleepShort}[r.IntN(2)], Efficiency: half(60, 40),
			}
			s.ID = uuid.NewSHA1(uuid.Nil, []byte(day.String()))
			p.Put(t, "sleep", "acme_band", healthdata.SourceWatch, stop, 0, s)
		}
		for range r.IntN(4) {
			heart = append(heart, series.Sample{Time: at.Add(time.Duration(len(heart)%1440)*time.Minute + time.Second).UnixMicro(), End: series.NoEnd, Value: *half(40, 60)})
		}
		for i, code := range []string{"2089-1", "2085-9", "14749-6"} {
			if r.IntN(25) > 0 {
				continue
			}
			l := aggregate.LabResult{
				ID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, d, i)), Date: day, Source: "order", Name: code, LOINC: &code,
				Analyte: ptr([]string{"ldl", "hdl", "glucose"}[i]), Unit: ptr("mmol/L"), Status: []string{"final", "corrected"}[r.IntN(2)],
			}
			if r.IntN(6) == 0 {
				l.Comparator, l.Bound = ptr("<"), half(1, 4)
			} else {
				l.Value = half(1, 7)
			}
			results = append(results, l)
		}
	}
	seen := map[int64]bool{}
	for _, s := range heart {
		if !seen[s.Time] {
			seen[s.Time] = true
			p.Measure(t, healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: healthdata.SourceWatch}, series.PerMinute, false, s)
		}
	}
	return p, results
}

// export writes every table to a Parquet file that DuckDB has as a view of that name, with the index as i.
func export(t *testing.T, db *sql.DB, ask func(aggregate.Timeframe, aggregate.Query) *aggregate.Frame) {
	t.Helper()
	for _, table := range mixedTables {
		q := aggregate.Query{}
		var columns []string
		for _, c := range append(append([]string{}, table.numbers...), table.others...) {
			q.Select = append(q.Select, table.col(c))
			name := c
			if table.name == "heartrate" {
				name = `"heartrate.` + c + `" as ` + c
			}
			columns = append(columns, name)
		}
		if table.name == "lab_result" {
			q.Select, columns = append(q.Select, table.col("analyte")), append(columns, "analyte")
		}
		f := ask(aggregate.Timeframe{Anchor: mixedStart.AddDays(mixedDays), Past: aggregate.Years(3)}, q)
		require.NotZero(t, f.Len(), table.name)
		var file bytes.Buffer
		require.NoError(t, parquet.WriteFrame(&file, f))
		path := filepath.Join(t.TempDir(), table.name+".parquet")
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
		run(t, db, fmt.Sprintf(`create or replace table %s as select "index" as i, %s from read_parquet('%s')`, table.name, strings.Join(columns, ", "), path))
	}
}

// mixedQuestion makes questions for both.
type mixedQuestion struct {
	r      *rand.Rand
	from   time.Time
	to     time.Time
	bucket string // %s is the index
	step   string
}

func stamp(at time.Time) string { return "timestamp '" + at.Format("2006-01-02 15:04:05") + "'" }

// where returns a condition, for both the same, and one that leaves one analyte.
func (m *mixedQuestion) where(table *mixedTable, analytes bool) string {
	var parts []string
	if table.name == "lab_result" && !analytes {
		parts = append(parts, fmt.Sprintf("analyte = '%s'", []string{"ldl", "hdl", "glucose"}[m.r.IntN(3)]))
	}
	if m.r.IntN(2) == 0 {
		c := table.numbers[m.r.IntN(len(table.numbers))]
		limit := map[string]int{"steps": 10_000, "distance_meter": 4500, "duration_second": 17_000, "bound": 3}[c]
		if limit == 0 {
			limit = map[string]int{"body": 70, "sleep": 80, "lab_result": 4, "heartrate": 70}[table.name]
		}
		parts = append(parts, []string{
			fmt.Sprintf("%s > %d", c, limit), fmt.Sprintf("NOT (%s <= %d)", c, limit), c + " IS NOT NULL", fmt.Sprintf("(%s < %d OR %s IS NULL)", c, limit, c),
		}[m.r.IntN(4)])
	}
	return strings.Join(parts, " AND ")
}

// functions returns some of a table, with their names in DuckDB.
func (m *mixedQuestion) functions(table *mixedTable) (list []aggregate.Expr, columns []string) {
	for _, i := range m.r.Perm(len(mixedFuncNames))[:1+m.r.IntN(3)] {
		f, c := mixedFuncNames[i], table.numbers[m.r.IntN(len(table.numbers))]
		list = append(list, f.Of(table.col(c)))
		column := fmt.Sprintf(mixedFuncs[f], c)
		if f == aggregate.Sum {
			column += "::double"
		}
		columns = append(columns, column)
	}
	return list, columns
}

func and(conditions ...string) string {
	var out []string
	for _, c := range conditions {
		if c != "" {
			out = append(out, "("+c+")")
		}
	}
	return strings.Join(out, " and ")
}

func (m *mixedQuestion) window() string { return "i >= " + stamp(m.from) + " and i < " + stamp(m.to) }

// question returns one for both: by time, with zero to three joins.
func (m *mixedQuestion) question() (q aggregate.Query, statement string) {
	r := m.r
	table := &mixedTables[r.IntN(len(mixedTables))]
	q.Select = []aggregate.Expr{aggregate.Keys()}
	keys := []string{fmt.Sprintf(m.bucket, "i")}
	analytes := table.name == "lab_result" && r.IntN(2) == 0
	if analytes {
		q.GroupBy = append(q.GroupBy, table.col("analyte"), table.col("unit"))
		keys = append(keys, "analyte", "unit")
	}
	if r.IntN(4) == 0 {
		q.GroupBy = append(q.GroupBy, aggregate.ByPart(aggregate.Weekday))
		keys = append(keys, "extract(isodow from i)")
	}
	fns, columns := m.functions(table)
	q.Select = append(q.Select, fns...)
	q.Where = m.where(table, analytes)
	var names, out, order []string
	for k, c := range keys {
		names = append(names, fmt.Sprintf("%s as k%d", c, k))
		order = append(order, fmt.Sprintf("m.k%d", k))
	}
	for k, c := range columns {
		names = append(names, fmt.Sprintf("%s as c%d", c, k))
		out = append(out, fmt.Sprintf("m.c%d", k))
	}
	main := fmt.Sprintf("select %s, least(k0 + interval %s, %s) as e from %s where %s group by %s", strings.Join(names, ", "), m.step, stamp(m.to), table.name,
		and(m.window(), q.Where), numbers(len(keys)))
	from := ""
	for n := range r.IntN(4) {
		other := &mixedTables[r.IntN(len(mixedTables))]
		where := m.where(other, false)
		if r.IntN(2) == 0 {
			fns, columns := m.functions(other)
			q.Joins = append(q.Joins, aggregate.JoinEach(fmt.Sprintf("j%d", n), fns...).Of(where))
			names := []string{fmt.Sprintf(m.bucket, "i") + " as b"}
			for k, c := range columns {
				names = append(names, fmt.Sprintf("%s as c%d", c, k))
				out = append(out, fmt.Sprintf("j%d.c%d", n, k))
			}
			from += fmt.Sprintf(" left join (select %s from %s where %s group by 1) j%d on j%d.b = m.k0", strings.Join(names, ", "), other.name, and(m.window(), where), n, n)
			continue
		}
		age, interval := m.age()
		all := append(append([]string{}, other.numbers...), other.others...)
		var columns []aggregate.Expr
		for _, k := range r.Perm(len(all))[:1+r.IntN(3)%len(all)] {
			columns = append(columns, other.col(all[k]))
			out = append(out, fmt.Sprintf("case when j%d.i >= m.e - interval %s then j%d.%s end", n, interval, n, all[k]))
		}
		q.Joins = append(q.Joins, aggregate.JoinLast(fmt.Sprintf("j%d", n), age, columns...).Of(where))
		from += fmt.Sprintf(" asof left join (select * from %s where %s) j%d on m.e > j%d.i", other.name, and("true", where), n, n)
	}
	return q, fmt.Sprintf("with m as (%s) select %s from m%s order by %s", main, strings.Join(append(append([]string{}, order...), out...), ", "), from, strings.Join(order, ", "))
}

func numbers(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(i+1))
	}
	return strings.Join(out, ", ")
}

// age returns a longest age for both.
func (m *mixedQuestion) age() (aggregate.Period, string) {
	n := int64(1 + m.r.IntN(9))
	switch m.r.IntN(3) {
	case 0:
		return aggregate.Days(7 * n), fmt.Sprintf("%d days", 7*n)
	case 1:
		return aggregate.Months(n), fmt.Sprintf("%d months", n)
	default:
		return aggregate.Hours(7 * n), fmt.Sprintf("%d hours", 7*n)
	}
}

// 1,000 random questions over laboratory results beside wearables have the answers that DuckDB gives over the
// exported tables.
func TestQueries_ofLabResultsBesideWearablesAnswerLikeDuckDB(t *testing.T) {
	r := rand.New(rand.NewPCG(46, 3))
	db := duck(t, 2)
	periods := []struct {
		p            aggregate.Period
		bucket, step string
	}{
		{aggregate.Days(1), "time_bucket(interval 1 day, %s)", "1 day"},
		{aggregate.Days(10), "time_bucket(interval 10 days, %s, timestamp '1970-01-01')", "10 days"},
		{aggregate.Weeks(1), "date_trunc('week', %s)::timestamp", "7 days"},
		{aggregate.Weeks(3), "time_bucket(interval 21 days, %s, timestamp '1970-01-05')", "21 days"},
		{aggregate.Months(1), "date_trunc('month', %s)::timestamp", "1 month"},
		{aggregate.Months(3), "date_trunc('quarter', %s)::timestamp", "3 months"},
		{aggregate.Years(1), "date_trunc('year', %s)::timestamp", "1 year"},
	}
	asked, rows, joins, filled, empty := 0, 0, 0, 0, 0
	for range 20 {
		p, results := mixedPerson(t, r)
		s, err := aggregate.New(p, &aggregate.Options{
			Parallel: 1, LabResults: func(context.Context, healthlab.TeamID, healthlab.UserID) ([]aggregate.LabResult, error) {
				return results, nil
			},
		})
		require.NoError(t, err)
		ask := func(frame aggregate.Timeframe, q aggregate.Query) *aggregate.Frame {
			out, err := s.Query(t.Context(), queryoracle.Team, queryoracle.User, aggregate.Ask(frame, q))
			require.NoError(t, err)
			return &out.Frames[0]
		}
		export(t, db, ask)
		for range 50 {
			by := periods[r.IntN(len(periods))]
			anchor, past := mixedStart.AddDays(100+r.IntN(mixedDays)), int64(1+r.IntN(400))
			to := anchor.AddDays(1).At(time.UTC)
			m := mixedQuestion{r: r, from: to.AddDate(0, 0, -int(past)), to: to, bucket: by.bucket, step: by.step}
			q, statement := m.question()
			q.GroupBy = append([]aggregate.Expr{aggregate.By(by.p)}, q.GroupBy...)
			got := rowsOf(ask(aggregate.Last(past, anchor), q))
			_, want := answer(t, db, statement)
			require.Len(t, got, len(want), statement)
			own := len(q.GroupBy) + len(q.Select) - 1
			for i := range want {
				for k, v := range got[i] {
					if n, ok := v.(int64); ok && want[i][max(k-1, 0)] != nil {
						if _, isFloat := want[i][max(k-1, 0)].(float64); isFloat {
							got[i][k] = float64(n) // a sum of integers
						}
					}
				}
				same(t, want[i], got[i][1:], statement)
				for _, v := range got[i][1+own:] {
					if v == nil {
						empty++
					} else {
						filled++
					}
				}
			}
			asked, rows, joins = asked+1, rows+len(want), joins+len(q.Joins)
		}
	}
	require.Equal(t, 1000, asked)
	require.Greater(t, filled, 1000)
	require.Greater(t, empty, 1000)
	t.Logf("%d questions, %d joins, %d rows; %d joined values and %d nulls", asked, joins, rows, filled, empty)
}
