package bench_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// answer reads all rows of a query.
func answer(t testing.TB, db *sql.DB, statement string) (names []string, out [][]any) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	require.NoError(t, err, statement)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err = rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		row, to := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		require.NoError(t, rows.Scan(to...))
		out = append(out, row)
	}
	require.NoError(t, rows.Err())
	return names, out
}

// same compares a row with another, numbers to 1e-9 of their size.
func same(t testing.TB, want, got []any, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		switch w := want[i].(type) {
		case float64:
			g, ok := got[i].(float64)
			require.True(t, ok, "column %d of %s", i, what)
			require.InDelta(t, w, g, 1e-9*max(1e-6, math.Abs(w)), "column %d of %s", i, what)
		case time.Time:
			if d, ok := got[i].(healthlab.Date); ok {
				require.Equal(t, healthlab.DateOf(w), d, "column %d of %s", i, what)
				continue
			}
			g, ok := got[i].(time.Time)
			require.True(t, ok && w.Equal(g), "column %d of %s", i, what)
		default:
			require.EqualValues(t, w, got[i], "column %d of %s", i, what)
		}
	}
}

func rowsOf(f *aggregate.Frame) [][]any {
	var out [][]any
	for _, row := range f.Rows() {
		out = append(out, row)
	}
	return out
}

// The questions that are measured have the same answers.
func TestQueries_benchmarkedOnesAnswerLikeDuckDB(t *testing.T) {
	const n = 2_000_000
	p := newPerson(t, n)
	db := duck(t, 2)
	fill(t, db, n)
	for _, threads := range []int{1, 2} {
		s := newService(t, p, threads)
		for _, q := range questions() {
			_, want := answer(t, db, q.sql)
			got := rowsOf(ask(t, s, q.ask))
			require.Len(t, got, len(want), q.name)
			for i := range want {
				same(t, want[i], got[i], fmt.Sprintf("row %d of %s", i, q.name))
			}
		}
	}
}

// Random questions over random samples have the same answers.
func TestQueries_randomOnesAnswerLikeDuckDB(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	db := duck(t, 2)
	units := []string{"minute", "hour", "day", "week", "month", "year"}
	fns := map[aggregate.Func]string{
		aggregate.Count: "count(value)", aggregate.Sum: "sum(value)", aggregate.Mean: "avg(value)", aggregate.Median: "median(value)",
		aggregate.StdDev: "stddev_samp(value)", aggregate.Min: "min(value)", aggregate.Max: "max(value)",
		aggregate.Oldest: "arg_min(value, t)", aggregate.Newest: "arg_max(value, t)", aggregate.Percentile(90): "quantile_cont(value, 0.9)",
	}
	names := []aggregate.Func{aggregate.Count, aggregate.Sum, aggregate.Mean, aggregate.Median, aggregate.StdDev, aggregate.Min, aggregate.Max,
		aggregate.Oldest, aggregate.Newest, aggregate.Percentile(90)}
	parts := map[aggregate.Part]string{aggregate.HourOfDay: "hour", aggregate.Weekday: "isodow", aggregate.ISOWeek: "week", aggregate.DayOfYear: "doy", aggregate.MonthOfYear: "month"}
	asked := 0
	for range 40 {
		p := randomPerson(t, db, r)
		s := newService(t, p, 1)
		for range 50 {
			unit := units[r.IntN(len(units))]
			q := aggregate.Query{
				Select:  []aggregate.Expr{aggregate.Keys()},
				GroupBy: []aggregate.Expr{aggregate.By(aggregate.Period{Unit: aggregate.Unit(unit), Value: 1})},
			}
			keys := []string{"date_trunc('" + unit + "', wall)::timestamp"}
			if r.IntN(3) == 0 {
				for part, name := range parts {
					q.GroupBy = append(q.GroupBy, aggregate.ByPart(part))
					keys = append(keys, "extract("+name+" from wall)")
					break
				}
			}
			cols := append([]string{}, keys...)
			for _, i := range r.Perm(len(names))[:1+r.IntN(4)] {
				q.Select = append(q.Select, names[i].Of(aggregate.Samples("heartrate")))
				cols = append(cols, fns[names[i]])
			}
			where := ""
			if r.IntN(2) == 0 {
				q.Where = fmt.Sprintf("value %s %d", []string{">", "<=", "!="}[r.IntN(3)], 40+r.IntN(80))
				if r.IntN(3) == 0 {
					q.Where = "NOT (" + q.Where + " OR value = 77.5)"
				}
				where = " where " + q.Where
			}
			var order []string
			for i := range keys {
				order = append(order, fmt.Sprint(i+1))
			}
			by := strings.Join(order, ", ")
			statement := "select " + strings.Join(cols, ", ") + " from sample" + where + " group by " + by + " order by " + by
			_, want := answer(t, db, statement)
			got := rowsOf(ask(t, s, q))
			require.Len(t, got, len(want), statement)
			for i := range want {
				same(t, want[i], got[i][1:], statement)
			}
			asked++
		}
	}
	t.Logf("%d questions", asked)
}

// randomPerson makes some weeks of samples on a journey, for both.
func randomPerson(t testing.TB, db *sql.DB, r *rand.Rand) *person {
	t.Helper()
	run(t, db, "create or replace table sample (t bigint, wall timestamp, value double)")
	p := &person{}
	at := start
	var b series.Block
	var rows []string
	shift := int64(offset)
	for i := range 2000 {
		at += int64([]int{1, 1, 1, 60, 60, 3600, 40_000}[r.IntN(7)]) * 1_000_000
		if i == 1200 {
			shift = -18_000
			at += 86_400_000_000 // a day in the air: no hour comes twice
		}
		v := float64(40 + r.IntN(80))
		if r.IntN(3) == 0 {
			v += 0.5
		}
		b.Append(series.Sample{Time: at, End: series.NoEnd, Value: v, Attrs: series.Attrs{Offset: int32(shift)}})
		rows = append(rows, fmt.Sprintf("(%d, make_timestamp(%d), %g)", at, at+shift*1_000_000, v))
	}
	run(t, db, "insert into sample values "+strings.Join(rows, ", "))
	change, err := series.Apply(nil, nil, &b, series.PerMinute)
	require.NoError(t, err)
	p.chunks = change.Put
	return p
}

// DuckDB reads our files with the values that they have in Go: empty ones, columns of
// nulls and strings too.
func TestParquet_isReadByDuckDBWithTheSameValues(t *testing.T) {
	p := newPerson(t, 5000)
	heart := aggregate.Samples("heartrate")
	s := newService(t, p, 1)
	rows := &withRecords{person: p}
	rows.add(t, &healthdata.Activity{CalendarDate: healthlab.Date{Year: 2026, Month: 3, Day: 1}, Steps: ptr(int64(1234))}, "acme_band")
	rows.add(t, &healthdata.Activity{CalendarDate: healthlab.Date{Year: 2026, Month: 3, Day: 2}, Distance: ptr(-0.0), WheelchairUse: ptr(true)}, "räv's \"ring\" 🦊")
	other, err := aggregate.New(rows, nil)
	require.NoError(t, err)
	frames := map[string]*aggregate.Frame{
		"minutes": ask(t, s, aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Mean.Of(heart), aggregate.Count.Of(heart), aggregate.StdDev.Of(heart)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(1)), aggregate.SourceColumn{Name: "source_type"}},
		}),
		"empty": ask(t, s, aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Mean.Of(heart)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}, Where: "value > 1000",
		}),
		"nulls": ask(t, s, aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.StdDev.Of(heart), aggregate.Newest.Of(aggregate.Field{Resource: "heartrate", Field: "source_sport"})},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(1)), aggregate.Field{Resource: "heartrate", Field: "source_workout_id"}},
			Where:   "value = 61 AND index < '2025-01-01T01:02'",
		}),
		"columns": ask(t, other, aggregate.Query{Select: []aggregate.Expr{
			aggregate.Col("activity", "date"), aggregate.Col("activity", "source_provider"), aggregate.Col("activity", "steps"),
			aggregate.Col("activity", "distance_meter"), aggregate.Col("activity", "wheelchair_use"), aggregate.Col("activity", "floors_climbed"),
		}}),
	}
	db := duck(t, 1)
	for name, f := range frames {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			require.NoError(t, parquet.WriteFrame(&file, f))
			path := filepath.Join(t.TempDir(), "answer.parquet")
			require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
			names, got := answer(t, db, "select * from read_parquet('"+path+"')")
			var want []string
			for i := range f.Columns {
				want = append(want, f.Columns[i].Name)
			}
			require.Equal(t, want, names)
			require.Len(t, got, f.Len())
			for i, row := range rowsOf(f) {
				same(t, row, got[i], name)
			}
		})
	}
	require.Zero(t, frames["empty"].Len())
	require.NotZero(t, frames["nulls"].Len())
	require.Equal(t, 2, frames["columns"].Len())
}

func ptr[T any](v T) *T { return &v }
