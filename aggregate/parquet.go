package aggregate

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
)

// WriteArchive writes the result as a gzipped tar archive with one Parquet file for
// each frame: 0.parquet, 1.parquet and so on. One file at a time is in memory, since an
// archive names the length of a file before its content. An error of to ends it.
func (r *Result) WriteArchive(to io.Writer) error {
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	archive := tar.NewWriter(zip)
	var file bytes.Buffer
	for i := range r.Frames {
		file.Reset()
		if err := r.Frames[i].WriteParquet(&file); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: strconv.Itoa(i) + ".parquet", Size: int64(file.Len()), Mode: 0o644,
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(&h); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if _, err := archive.Write(file.Bytes()); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// WriteParquet writes the frame as one Parquet file, with a flat schema in which every
// column is optional. Full stops in names are part of the name.
func (f *Frame) WriteParquet(to io.Writer) error {
	w := parquet.NewWriter(to, parquet.NewSchema("result", frameNode(f)), parquet.DataPageStatistics(true))
	for i, out := range w.ColumnWriters() {
		if err := writeColumn(out, &f.Columns[i], i); err != nil {
			return fmt.Errorf("write parquet: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	return nil
}

// ordered is a group whose fields keep their order; the library's own sorts them.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

func frameNode(f *Frame) parquet.Node {
	g := parquet.Group{}
	for i := range f.Columns {
		g[f.Columns[i].Name] = parquet.Optional(leaf(f.Columns[i].Type))
	}
	byName := map[string]parquet.Field{}
	for _, field := range g.Fields() {
		byName[field.Name()] = field
	}
	out := ordered{Group: g}
	for i := range f.Columns {
		out.fields = append(out.fields, byName[f.Columns[i].Name])
	}
	return out
}

func leaf(t Type) parquet.Node {
	switch t {
	case typeInt:
		return parquet.Leaf(parquet.Int64Type)
	case typeFloat:
		return parquet.Leaf(parquet.DoubleType)
	case typeBool:
		return parquet.Leaf(parquet.BooleanType)
	case typeText:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case typeDate:
		return parquet.Date()
	default:
		return parquet.TimestampAdjusted(parquet.Microsecond, t == typeInstant)
	}
}

// writeColumn writes a column, some thousand values at a time.
func writeColumn(out *parquet.ColumnWriter, c *Column, number int) error {
	const stretch = 4096
	var values [stretch]parquet.Value
	for from := 0; from < c.Len(); from += stretch {
		n := min(stretch, c.Len()-from)
		for i := range n {
			values[i] = c.parquetValue(from+i, number)
		}
		if _, err := out.WriteRowValues(values[:n]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Column) parquetValue(i, number int) parquet.Value {
	if c.Null(i) {
		return parquet.NullValue().Level(0, 0, number)
	}
	var v parquet.Value
	switch c.Type {
	case typeFloat:
		x := c.v.floats[i]
		if x == 0 {
			x = 0 // not minus zero, as in JSON
		}
		v = parquet.DoubleValue(x)
	case typeBool:
		v = parquet.BooleanValue(c.v.ints[i] != 0)
	case typeText:
		v = parquet.ByteArrayValue([]byte(c.v.texts[i]))
	case typeDate:
		v = parquet.Int32Value(int32(c.v.ints[i]))
	default:
		v = parquet.Int64Value(c.v.ints[i])
	}
	return v.Level(0, 1, number)
}
