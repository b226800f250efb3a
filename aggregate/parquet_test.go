package aggregate_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// unpack reads an archive back with the library's own reader: by file, by row, by
// column name.
func unpack(t *testing.T, data []byte) (names []string, files []*parquet.File, rows [][]map[string]parquet.Value) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	archive := tar.NewReader(zip)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, files, rows
		}
		require.NoError(t, err)
		require.Equal(t, int64(0o644), h.Mode)
		require.Equal(t, int64(0), h.ModTime.Unix())
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		names, files = append(names, h.Name), append(files, f)
		var list []map[string]parquet.Value
		for _, g := range f.RowGroups() {
			r := g.Rows()
			buf := make([]parquet.Row, 16)
			for {
				n, err := r.ReadRows(buf)
				for _, row := range buf[:n] {
					m := map[string]parquet.Value{}
					for _, v := range row {
						m[f.Schema().Fields()[v.Column()].Name()] = v.Clone()
					}
					list = append(list, m)
				}
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
			require.NoError(t, r.Close())
		}
		rows = append(rows, list)
	}
}

func TestArchiveSaysWhatJSONSays(t *testing.T) {
	p := steps(t)
	day := time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC)
	p.put(t, "activity", "p1", healthdata.SourcePhone, day.Truncate(24*time.Hour), 0, &healthdata.Activity{
		CalendarDate: date("2026-03-02"), WheelchairUse: ptr(true), Steps: ptr(int64(12)),
	})
	s := service(t, p, nil)
	req := aggregate.Ask(aggregate.Last(3, date("2026-03-02")),
		aggregate.Query{
			Select: []aggregate.Expr{
				aggregate.Keys(), aggregate.Sum.Of(aggregate.Samples("steps")),
				aggregate.StdDev.Of(aggregate.Samples("steps")), aggregate.Count.Of(aggregate.Samples("steps")),
			},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Hours(1)), aggregate.SourceColumn{Name: "source_provider"}, aggregate.SourceColumn{Name: "source_type"}},
		},
		aggregate.Query{Select: []aggregate.Expr{
			aggregate.Col("activity", "date"), aggregate.Col("activity", "wheelchair_use"), aggregate.Col("activity", "steps"), aggregate.Col("activity", "distance_meter"),
		}},
		aggregate.Query{Select: []aggregate.Expr{aggregate.Col("body", "weight_kilogram"), aggregate.Col("body", "time_zone")}},
	)
	out, err := s.Query(t.Context(), team, user, req)
	require.NoError(t, err)
	var data bytes.Buffer
	require.NoError(t, out.WriteArchive(&data))
	names, files, rows := unpack(t, data.Bytes())
	require.Equal(t, []string{"0.parquet", "1.parquet", "2.parquet"}, names)
	for i := range out.Frames {
		f := &out.Frames[i]
		fields := files[i].Schema().Fields()
		require.Len(t, fields, len(f.Columns))
		require.Len(t, rows[i], f.Len())
		for k := range f.Columns {
			c := &f.Columns[k]
			require.Equal(t, c.Name, fields[k].Name())
			require.True(t, fields[k].Optional())
			require.True(t, fields[k].Leaf(), "a full stop makes no group")
			for n, row := range rows[i] {
				v := row[c.Name]
				require.Equal(t, c.Null(n), v.IsNull(), "%s %d", c.Name, n)
				if c.Null(n) {
					continue
				}
				switch want := c.Value(n).(type) {
				case int64:
					require.Equal(t, want, v.Int64())
				case float64:
					require.InDelta(t, want, v.Double(), 0)
				case string:
					require.Equal(t, want, v.String())
				case bool:
					require.Equal(t, want, v.Boolean())
				case time.Time:
					if c.Type == healthdata.TypeDate {
						require.Equal(t, want.Unix()/86400, int64(v.Int32()))
						continue
					}
					require.Equal(t, want.UnixMicro(), v.Int64())
				}
			}
		}
	}
	require.Equal(t, "TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)", files[0].Schema().Fields()[0].Type().String())
}

// Files of every shape come back as they were: several row groups, nulls here and there
// and everywhere, few and many different values.
func TestFilesComeBack(t *testing.T) {
	p := newPerson()
	var list []series.Sample
	for i := range 140_000 {
		v := float64(i%7) / 8
		if i%5 == 0 {
			v = float64(i) / 3
		}
		if i == 3 {
			v = math.Copysign(0, -1)
		}
		s := series.Sample{Time: at("2026-03-01T00:00:00Z") + int64(i)*1e6, Value: v}
		if i/100%3 == 0 {
			s.Sport = []string{"running", "räv 🦊"}[i/1000%2]
		}
		list = append(list, s)
	}
	p.measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerSecond, false, list...)
	s := service(t, p, &aggregate.Options{Limits: aggregate.Limits{Rows: 1_000_000}})
	heart := aggregate.Samples("heartrate")
	sport := aggregate.Field{Resource: "heartrate", Field: "source_sport"}
	result, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(3, date("2026-03-03")),
		aggregate.Query{Select: []aggregate.Expr{aggregate.Index{Table: "timeseries"}, heart, sport, aggregate.Field{Resource: "heartrate", Field: "source_workout_id"}}},
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.StdDev.Of(heart), aggregate.Count.Of(heart), aggregate.Newest.Of(sport)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(1))},
		},
		aggregate.Query{Select: []aggregate.Expr{aggregate.Keys(), aggregate.Mean.Of(heart)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}, Where: "value > 1000000"},
	))
	require.NoError(t, err)
	for i := range result.Frames {
		f := &result.Frames[i]
		var file bytes.Buffer
		require.NoError(t, f.WriteParquet(&file))
		got, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		require.EqualValues(t, f.Len(), got.NumRows())
		at := make([]int, len(f.Columns))
		for _, g := range got.RowGroups() {
			for k, chunk := range g.ColumnChunks() {
				at[k] = sameColumn(t, &f.Columns[k], chunk, at[k])
			}
		}
		for k := range at {
			require.Equal(t, f.Len(), at[k])
		}
	}
	require.Greater(t, result.Frames[0].Len(), 1<<17)
}

// sameColumn compares a chunk of a file with the rows of a column from one on, and
// returns where it ended.
func sameColumn(t *testing.T, c *aggregate.Column, chunk parquet.ColumnChunk, at int) int {
	pages := chunk.Pages()
	defer func() { require.NoError(t, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return at
		}
		require.NoError(t, err)
		values := make([]parquet.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		require.Equal(t, len(values), n)
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		for _, v := range values {
			var got any
			switch {
			case v.IsNull():
			case c.Type == "float64":
				got = v.Double()
				require.False(t, math.Signbit(v.Double()) && v.Double() == 0, "minus zero")
			case c.Type == "string":
				got = string(v.ByteArray())
			case c.Type == "int64":
				got = v.Int64()
			default:
				got = time.UnixMicro(v.Int64()).UTC()
			}
			if got != c.Value(at) {
				require.Equal(t, c.Value(at), got, "row %d", at)
			}
			at++
		}
		parquet.Release(page)
	}
}
