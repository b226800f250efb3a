// Package parquet writes results of package aggregate as Apache Parquet.
//
// A file has a flat schema. Every column is optional. A full stop in a name is part of
// the name and makes no group. Dates are DATE, clock times TIMESTAMP in microseconds
// without UTC, instants TIMESTAMP in microseconds with UTC. The functions are safe for
// concurrent use; a frame may be written by several goroutines at once.
package parquet

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Writer has the functions of this package as methods, for hosts that need an interface value.
type Writer struct{}

// WriteArchive calls the function [WriteArchive].
func (Writer) WriteArchive(to io.Writer, r *aggregate.Result) error { return WriteArchive(to, r) }

// WriteFrame calls the function [WriteFrame].
func (Writer) WriteFrame(to io.Writer, f *aggregate.Frame) error { return WriteFrame(to, f) }

// WriteArchive writes a result as a gzipped tar archive with one Parquet file for each frame: 0.parquet,
// 1.parquet and so on. It holds one file at a time in memory, because the archive has the length of a file
// before its content. It returns the first error of to.
func WriteArchive(to io.Writer, r *aggregate.Result) error {
	if err := writeArchive(to, r); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

func writeArchive(to io.Writer, r *aggregate.Result) error {
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	var file bytes.Buffer
	for i := range r.Frames {
		file.Reset()
		if err := WriteFrame(&file, &r.Frames[i]); err != nil {
			return err
		}
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: strconv.Itoa(i) + ".parquet", Size: int64(file.Len()), Mode: 0o644,
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := archive.Write(file.Bytes()); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// rowGroup is the number of rows of a row group.
const rowGroup = 1 << 17

// WriteFrame writes a frame as one Parquet file, row group by row group. It returns the first error of to.
func WriteFrame(to io.Writer, f *aggregate.Frame) error {
	if err := writeFrame(to, f); err != nil {
		return fmt.Errorf("write parquet: %w", err)
	}
	return nil
}

func writeFrame(to io.Writer, f *aggregate.Frame) error {
	fields := make([]Field, len(f.Columns))
	for i := range f.Columns {
		fields[i] = Field{f.Columns[i].Name, f.Columns[i].Type}
	}
	w := parquet.NewWriter(to, Schema("result", fields), parquet.Compression(&parquet.Uncompressed))
	values := make([]parquet.Value, 0, 1024)
	for from := 0; from < f.Len(); from += rowGroup {
		to := min(from+rowGroup, f.Len())
		for i, column := range w.ColumnWriters() {
			for at := from; at < to; {
				values = values[:0]
				for ; at < to && len(values) < cap(values); at++ {
					values = append(values, valueOf(&f.Columns[i], at, i))
				}
				if _, err := column.WriteRowValues(values); err != nil {
					return err
				}
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return w.Close()
}

// valueOf returns the value of a row of column c, which is column i of its frame.
func valueOf(c *aggregate.Column, row, i int) parquet.Value {
	if c.Null(row) {
		return parquet.NullValue().Level(0, 0, i)
	}
	var v parquet.Value
	switch c.Type {
	case tables.TypeInt64:
		v = parquet.Int64Value(c.Int(row))
	case tables.TypeFloat64:
		v = parquet.DoubleValue(c.Float(row) + 0) // minus zero is written as 0, as in JSON
	case tables.TypeBool:
		v = parquet.BooleanValue(c.Bool(row))
	case tables.TypeString:
		v = parquet.ByteArrayValue([]byte(c.Text(row)))
	case tables.TypeDate:
		v = parquet.Int32Value(int32(c.Int(row)))
	default:
		v = parquet.Int64Value(c.Int(row))
	}
	return v.Level(0, 1, i)
}

// ordered is a group whose fields keep their order; the Parquet library sorts the fields of its own groups.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

// Field is a column of a schema.
type Field struct {
	Name string
	// Type is any but TypeList.
	Type aggregate.Type
}

// Schema returns a flat schema of optional columns, in the order given.
func Schema(name string, fields []Field) *parquet.Schema {
	g := parquet.Group{}
	for _, f := range fields {
		g[f.Name] = parquet.Optional(leaf(f.Type))
	}
	byName := map[string]parquet.Field{}
	for _, field := range g.Fields() {
		byName[field.Name()] = field
	}
	out := ordered{Group: g}
	for _, f := range fields {
		out.fields = append(out.fields, byName[f.Name])
	}
	return parquet.NewSchema(name, out)
}

func leaf(t aggregate.Type) parquet.Node {
	switch t {
	case tables.TypeInt64:
		return parquet.Encoded(parquet.Leaf(parquet.Int64Type), &parquet.DeltaBinaryPacked)
	case tables.TypeFloat64:
		return parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.RLEDictionary)
	case tables.TypeBool:
		return parquet.Leaf(parquet.BooleanType)
	case tables.TypeString:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case tables.TypeDate:
		return parquet.Encoded(parquet.Date(), &parquet.DeltaBinaryPacked)
	default:
		return parquet.Encoded(parquet.TimestampAdjusted(parquet.Microsecond, t == tables.TypeInstant), &parquet.DeltaBinaryPacked)
	}
}
