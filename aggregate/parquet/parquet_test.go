package parquet_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

func frame(t testing.TB, columns ...aggregate.Column) aggregate.Frame {
	t.Helper()
	return aggregate.Frame{Columns: columns}
}

func column(t testing.TB, name string, typ aggregate.Type, values ...any) aggregate.Column {
	t.Helper()
	c, err := aggregate.NewColumn(name, typ, values)
	require.NoError(t, err)
	return c
}

// everyType returns a frame with a column of each type, nulls and a name with a full stop.
func everyType(t testing.TB) aggregate.Frame {
	at := time.Date(2026, 3, 1, 23, 59, 59, 123456000, time.UTC)
	return frame(t,
		column(t, "index", tables.TypeTimestamp, at, at.Add(time.Hour), nil),
		column(t, "activity.date", tables.TypeDate, time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), nil, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)),
		column(t, "wheelchair_use", tables.TypeBool, true, nil, false),
		column(t, "steps", tables.TypeInt64, int64(-12), int64(math.MaxInt64), nil),
		column(t, "mean", tables.TypeFloat64, nil, math.Copysign(0, -1), 1e300),
		column(t, "sport", tables.TypeString, "räv 🦊", nil, ""),
		column(t, "end", tables.TypeInstant, at, nil, at.Add(-time.Hour)),
		column(t, "never", tables.TypeString, nil, nil, nil),
	)
}

// sameRows reads a file with the library's reader and compares each value with the frame.
func sameRows(t *testing.T, f *aggregate.Frame, data []byte) {
	t.Helper()
	file, err := parquetgo.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.EqualValues(t, f.Len(), file.NumRows())
	fields := file.Schema().Fields()
	require.Len(t, fields, len(f.Columns))
	for i, field := range fields {
		require.Equal(t, f.Columns[i].Name, field.Name())
		require.True(t, field.Optional())
		require.True(t, field.Leaf(), "a full stop makes no group")
	}
	rows := make([]int, len(f.Columns))
	for _, g := range file.RowGroups() {
		for i, chunk := range g.ColumnChunks() {
			rows[i] = sameColumn(t, &f.Columns[i], chunk, rows[i])
		}
	}
	for i := range rows {
		require.Equal(t, f.Len(), rows[i])
	}
}

// sameColumn compares a chunk of a file with the rows of a column from one on, and
// returns the row after the last.
func sameColumn(t *testing.T, c *aggregate.Column, chunk parquetgo.ColumnChunk, row int) int {
	t.Helper()
	pages := chunk.Pages()
	defer func() { require.NoError(t, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return row
		}
		require.NoError(t, err)
		values := make([]parquetgo.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		require.Equal(t, len(values), n)
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		for _, v := range values {
			want := c.Value(row)
			if want != nil && slices.Contains([]aggregate.Type{tables.TypeDate, tables.TypeTimestamp, tables.TypeInstant}, c.Type) {
				want = c.Time(row)
			}
			if got := valueOf(t, c.Type, v); got != want {
				require.Equal(t, want, got, "column %s, row %d", c.Name, row)
			}
			row++
		}
		parquetgo.Release(page)
	}
}

func valueOf(t *testing.T, typ aggregate.Type, v parquetgo.Value) any {
	t.Helper()
	switch {
	case v.IsNull():
		return nil
	case typ == tables.TypeInt64:
		return v.Int64()
	case typ == tables.TypeFloat64:
		require.False(t, math.Signbit(v.Double()) && v.Double() == 0, "minus zero")
		return v.Double()
	case typ == tables.TypeBool:
		return v.Boolean()
	case typ == tables.TypeString:
		return string(v.ByteArray())
	case typ == tables.TypeDate:
		return time.Unix(int64(v.Int32())*86400, 0).UTC()
	default:
		return time.UnixMicro(v.Int64()).UTC()
	}
}

func TestWriteFrame_keepsEveryColumnType(t *testing.T) {
	f := everyType(t)
	var file bytes.Buffer
	require.NoError(t, parquet.WriteFrame(&file, &f))
	sameRows(t, &f, file.Bytes())
	got, err := parquetgo.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	var types []string
	for _, field := range got.Schema().Fields() {
		types = append(types, field.Type().String())
	}
	require.Equal(t, []string{
		"TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)", "DATE", "BOOLEAN", "INT(64,true)", "DOUBLE", "STRING",
		"TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "STRING",
	}, types)
}

func TestWriteFrame_withoutRowsIsAValidFile(t *testing.T) {
	f := frame(t, column(t, "index", tables.TypeInt64), column(t, "sum", tables.TypeFloat64))
	var file bytes.Buffer
	require.NoError(t, parquet.WriteFrame(&file, &f))
	sameRows(t, &f, file.Bytes())
}

// TestWriteFrame_keepsRowsOverSeveralRowGroups has columns with few and with many different values, and
// nulls in some row groups only.
func TestWriteFrame_keepsRowsOverSeveralRowGroups(t *testing.T) {
	const rows = 300_000
	index, few, many, sport := make([]any, rows), make([]any, rows), make([]any, rows), make([]any, rows)
	for i := range rows {
		index[i], few[i], many[i] = int64(i), float64(i%7)/8, float64(i)/3
		if i > 200_000 && i%3 == 0 {
			many[i] = nil
		}
		if i/100%3 == 0 {
			sport[i] = []string{"running", "räv 🦊"}[i/1000%2]
		}
	}
	f := frame(t, column(t, "index", tables.TypeInt64, index...), column(t, "few", tables.TypeFloat64, few...),
		column(t, "many", tables.TypeFloat64, many...), column(t, "sport", tables.TypeString, sport...))
	var file bytes.Buffer
	require.NoError(t, parquet.WriteFrame(&file, &f))
	sameRows(t, &f, file.Bytes())
}

func TestWriteArchive_containsEachFrame(t *testing.T) {
	r := aggregate.Result{Frames: []aggregate.Frame{everyType(t), frame(t, column(t, "index", tables.TypeInt64)), everyType(t)}}
	var data bytes.Buffer
	require.NoError(t, parquet.WriteArchive(&data, &r))
	zip, err := gzip.NewReader(&data)
	require.NoError(t, err)
	archive := tar.NewReader(zip)
	for i, name := range []string{"0.parquet", "1.parquet", "2.parquet"} {
		h, err := archive.Next()
		require.NoError(t, err)
		require.Equal(t, name, h.Name)
		require.Equal(t, int64(0o644), h.Mode)
		require.Equal(t, int64(0), h.ModTime.Unix())
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		sameRows(t, &r.Frames[i], content)
	}
	_, err = archive.Next()
	require.ErrorIs(t, err, io.EOF)
}

// full fails after some bytes, as a full disk does.
type full struct{ left int }

var errFull = errors.New("no space left")

func (w *full) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteFrame_returnsTheErrorOfTheWriter(t *testing.T) {
	f := everyType(t)
	var file bytes.Buffer
	require.NoError(t, parquet.WriteFrame(&file, &f))
	for left := range file.Len() {
		require.ErrorIs(t, parquet.WriteFrame(&full{left}, &f), errFull)
	}
	require.ErrorIs(t, parquet.WriteArchive(&full{4}, &aggregate.Result{Frames: []aggregate.Frame{f}}), errFull)
}
