package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
)

// pair measures ours and theirs, and reports how many times longer theirs takes.
func pair(b *testing.B, reference string, ours, theirs func(b *testing.B)) {
	var own float64
	b.Run("healthlab", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ours(b)
		}
		own = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	})
	b.Run(reference, func(b *testing.B) {
		for b.Loop() {
			theirs(b)
		}
		if own > 0 {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/own, "x")
		}
	})
}

// question is one question in both languages.
type question struct {
	name string
	ask  aggregate.Query
	sql  string
}

func questions() []question {
	heart := aggregate.Samples("heartrate")
	four := func(p aggregate.Period, where string) aggregate.Query {
		return aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Mean.Of(heart), aggregate.Min.Of(heart), aggregate.Max.Of(heart), aggregate.Count.Of(heart)},
			GroupBy: []aggregate.Expr{aggregate.By(p)}, Where: where,
		}
	}
	fourSQL := func(unit, where string) string {
		return "select date_trunc('" + unit + "', wall) as b, avg(value), min(value), max(value), count(*) from sample " + where + " group by b order by b"
	}
	return []question{
		{"day", four(aggregate.Days(1), ""), fourSQL("day", "")},
		{"hour", four(aggregate.Hours(1), ""), fourSQL("hour", "")},
		{"minute", four(aggregate.Minutes(1), ""), fourSQL("minute", "")},
		{"hour-filtered", four(aggregate.Hours(1), "value >= 80"), fourSQL("hour", "where value >= 80")},
		{
			"day-median",
			aggregate.Query{Select: []aggregate.Expr{aggregate.Median.Of(heart)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}},
			"select date_trunc('day', wall) as b, median(value) from sample group by b order by b",
		},
	}
}

// BenchmarkAggregate answers questions over 10 and 30 million samples, with one thread
// and two. DuckDB's answer stays a table inside of it. The plain sum is that of the
// values as a slice.
func BenchmarkAggregate(b *testing.B) {
	for _, n := range []int64{10_000_000, 30_000_000} {
		p := newPerson(b, n)
		db := duck(b, 2)
		fill(b, db, n)
		b.Run(fmt.Sprintf("samples=%dM/plain-sum", n/1_000_000), func(b *testing.B) { plainSum(b, n) })
		for _, threads := range []int{1, 2} {
			run(b, db, fmt.Sprintf("set threads = %d", threads))
			s := newService(b, p, threads)
			for _, q := range questions() {
				b.Run(fmt.Sprintf("samples=%dM/threads=%d/%s", n/1_000_000, threads, q.name), func(b *testing.B) {
					pair(b, "duckdb", func(b *testing.B) { ask(b, s, q.ask) },
						func(b *testing.B) { run(b, db, "create or replace temp table answer as "+q.sql) })
				})
			}
		}
	}
}

var sink float64

func plainSum(b *testing.B, n int64) {
	plain := make([]float64, n)
	for i := range plain {
		plain[i] = value(int64(i))
	}
	for b.Loop() {
		sum := 0.0
		for _, v := range plain {
			sum += v
		}
		sink = sum
	}
}

// wide is an answer with half a million rows, and DuckDB's copy of it.
func wide(b *testing.B) (*aggregate.Frame, func(string)) {
	const n = 30_000_000
	f := ask(b, newService(b, newPerson(b, n), 2), questions()[2].ask)
	db := duck(b, 1)
	fill(b, db, n)
	run(b, db, "create or replace temp table answer as "+questions()[2].sql)
	return f, func(path string) {
		run(b, db, "copy answer to '"+path+"' (format parquet, compression uncompressed)")
	}
}

// BenchmarkParquet writes an answer to a file, both without compression, and the
// archive around it.
func BenchmarkParquet(b *testing.B) {
	f, theirs := wide(b)
	dir := b.TempDir()
	write := func(b *testing.B, do func(io.Writer) error) {
		out, err := os.Create(filepath.Join(dir, "ours"))
		require.NoError(b, err)
		w := bufio.NewWriterSize(out, 1<<18)
		require.NoError(b, do(w))
		require.NoError(b, w.Flush())
		require.NoError(b, out.Close())
	}
	pair(b, "duckdb", func(b *testing.B) { write(b, func(w io.Writer) error { return parquet.WriteFrame(w, f) }) }, func(*testing.B) { theirs(filepath.Join(dir, "theirs")) })
	b.Run("archive", func(b *testing.B) {
		r := &aggregate.Result{Frames: []aggregate.Frame{*f}}
		for b.Loop() {
			write(b, func(w io.Writer) error { return parquet.WriteArchive(w, r) })
		}
	})
}

// BenchmarkJSON writes an answer of 100 thousand rows. Reference: encoding/json with
// the same columns as slices.
func BenchmarkJSON(b *testing.B) {
	const n = 100_000 * 60
	f := ask(b, newService(b, newPerson(b, n), 2), questions()[2].ask)
	plain := map[string]any{}
	for i := range f.Columns {
		c := &f.Columns[i]
		switch c.Type {
		case "float64":
			v := make([]float64, c.Len())
			for k := range v {
				v[k] = c.Float(k)
			}
			plain[c.Name] = v
		case "int64":
			v := make([]int64, c.Len())
			for k := range v {
				v[k] = c.Int(k)
			}
			plain[c.Name] = v
		default:
			v := make([]string, c.Len())
			for k := range v {
				v[k] = c.Time(k).Format("2006-01-02T15:04:05")
			}
			plain[c.Name] = v
		}
	}
	doc := map[string]any{"table": plain}
	pair(b, "encoding-json", func(b *testing.B) { require.NoError(b, f.WriteJSON(io.Discard)) },
		func(b *testing.B) { require.NoError(b, json.NewEncoder(io.Discard).Encode(doc)) })
}
