package aggregate_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
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
