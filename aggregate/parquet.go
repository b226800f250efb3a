package aggregate

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"github.com/healthlab-dev/healthlab/healthdata"
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
// column is optional. Full stops in names are part of the name. It is written row group
// by row group, and little is in memory beside the frame.
func (f *Frame) WriteParquet(to io.Writer) error {
	w, err := newParquetWriter(to, f)
	if err == nil {
		err = w.write(f)
	}
	if err != nil {
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

// errOtherTable says that a file has not the columns that were expected.
var errOtherTable = errors.New("the file has other columns")

// readParquet reads what [Frame.WriteParquet] wrote: a frame with the columns of like.
func readParquet(data []byte, like *Frame) (Frame, error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Frame{}, fmt.Errorf("read parquet: %w", err)
	}
	fields := file.Schema().Fields()
	if len(fields) != len(like.Columns) {
		return Frame{}, errOtherTable
	}
	out := Frame{Columns: make([]Column, len(fields))}
	for i, field := range fields {
		want := &like.Columns[i]
		if field.Name() != want.Name || field.Type().String() != leaf(want.Type).Type().String() {
			return Frame{}, errOtherTable
		}
		out.Columns[i] = newColumn(want.Name, want.Type)
	}
	for _, group := range file.RowGroups() {
		for i, chunk := range group.ColumnChunks() {
			if err := out.Columns[i].readChunk(chunk); err != nil {
				return Frame{}, fmt.Errorf("read parquet: %w", err)
			}
		}
	}
	return out, nil
}

func (c *Column) readChunk(chunk parquet.ColumnChunk) (err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	var values [1024]parquet.Value
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for from := page.Values(); ; {
			n, err := from.ReadValues(values[:])
			for _, v := range values[:n] {
				c.v.add(c.cellOf(v))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

// cellOf is the other way of parquetValue.
func (c *Column) cellOf(v parquet.Value) healthdata.Cell {
	if v.IsNull() {
		return healthdata.Cell{}
	}
	switch c.Type {
	case typeFloat:
		return healthdata.Cell{Valid: true, Float: v.Double()}
	case typeBool:
		if !v.Boolean() {
			return intCell(0)
		}
		return intCell(1)
	case typeText:
		return healthdata.Cell{Valid: true, Text: string(v.ByteArray())}
	case typeDate:
		return intCell(int64(v.Int32()))
	default:
		return intCell(v.Int64())
	}
}
