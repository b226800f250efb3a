package aggregate

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetWriter puts whole columns into a file with the encodings of the library, whose
// own writer takes values one by one. Schema and footer are the library's.
type parquetWriter struct {
	to   io.Writer
	at   int64 // bytes written
	meta format.FileMetaData

	levels, page, dict []byte
	ints               []int64
	small              []int32
	floats             []float64
	bits               bitTable
}

// groupRows is how many rows a row group has. Each of its columns is one page.
const groupRows = 1 << 17

const parquetMagic = "PAR1"

func newParquetWriter(to io.Writer, f *Frame) (*parquetWriter, error) {
	// A file without rows, written and read by the library, has the schema.
	var empty bytes.Buffer
	if err := parquet.NewWriter(&empty, parquet.NewSchema("result", frameNode(f))).Close(); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	if err != nil {
		return nil, err
	}
	m := file.Metadata()
	return &parquetWriter{to: to, meta: format.FileMetaData{
		Version: m.Version, Schema: m.Schema, ColumnOrders: m.ColumnOrders, CreatedBy: m.CreatedBy,
	}}, nil
}

func (w *parquetWriter) put(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	return err
}

func (w *parquetWriter) write(f *Frame) error {
	if err := w.put([]byte(parquetMagic)); err != nil {
		return err
	}
	rows := f.Len()
	for from := 0; from < rows; from += groupRows {
		to := min(from+groupRows, rows)
		g := format.RowGroup{NumRows: int64(to - from), FileOffset: w.at, Ordinal: int16(len(w.meta.RowGroups))}
		for i := range f.Columns {
			c, err := w.column(&f.Columns[i], i, from, to)
			if err != nil {
				return err
			}
			g.TotalByteSize += c.TotalUncompressedSize
			g.TotalCompressedSize += c.TotalCompressedSize
			g.Columns = append(g.Columns, format.ColumnChunk{FileOffset: w.at, MetaData: c})
		}
		w.meta.RowGroups = append(w.meta.RowGroups, g)
		w.meta.NumRows += g.NumRows
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &w.meta)
	if err != nil {
		return err
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return w.put(append(footer, parquetMagic...))
}

// column writes the rows of a column.
func (w *parquetWriter) column(c *Column, number, from, to int) (format.ColumnMetaData, error) {
	leaf := &w.meta.Schema[1+number]
	meta := format.ColumnMetaData{
		Type: leaf.Type.V, PathInSchema: []string{leaf.Name}, Codec: format.Uncompressed, NumValues: int64(to - from),
		Encoding: []format.Encoding{format.RLE, format.Plain},
	}
	start := w.at
	nulls := w.define(c, from, to)
	meta.Statistics.NullCount = int64(nulls)
	encoding, count, err := w.encode(c, from, to, nulls, &meta.Statistics)
	if err != nil {
		return meta, err
	}
	if encoding != format.Plain {
		meta.Encoding = append(meta.Encoding, encoding)
	}
	if encoding == format.RLEDictionary {
		meta.DictionaryPageOffset = w.at
		err := w.pageOf(format.PageHeader{
			Type:                 format.DictionaryPage,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(count), Encoding: format.Plain}),
		}, w.dict)
		if err != nil {
			return meta, err
		}
	}
	meta.DataPageOffset = w.at
	err = w.pageOf(format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: int32(to - from), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
	})}, w.levels, w.page)
	meta.TotalUncompressedSize, meta.TotalCompressedSize = w.at-start, w.at-start
	return meta, err
}

// pageOf writes a page of some pieces.
func (w *parquetWriter) pageOf(h format.PageHeader, pieces ...[]byte) error {
	for _, p := range pieces {
		h.UncompressedPageSize += int32(len(p))
	}
	h.CompressedPageSize = h.UncompressedPageSize
	head, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
	if err != nil {
		return err
	}
	for _, p := range append([][]byte{head}, pieces...) {
		if err := w.put(p); err != nil {
			return err
		}
	}
	return nil
}

// define writes which values are there, and returns how many are not.
func (w *parquetWriter) define(c *Column, from, to int) (nulls int) {
	b := append(w.levels[:0], 0, 0, 0, 0) // the length
	if c.v.nulls != nil {
		for _, null := range c.v.nulls[from:to] {
			nulls += bit(null)
		}
	}
	if nulls == 0 || nulls == to-from {
		b = append(binary.AppendUvarint(b, uint64(to-from)<<1), byte(bit(nulls == 0))) // one run
	} else {
		// Packed, eight at a time.
		groups := (to - from + 7) / 8
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		at := len(b)
		b = append(b, make([]byte, groups)...)
		for i, null := range c.v.nulls[from:to] {
			b[at+i/8] |= byte(bit(!null)) << (i % 8)
		}
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	w.levels = b
	return nulls
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// known returns those of a column's values that are not null, in a slice that may be
// the column's own.
func known[T any](all []T, v *vec, from, to, nulls int, scratch []T) []T {
	if nulls == 0 {
		return all[from:to]
	}
	scratch = scratch[:0]
	for i := from; i < to; i++ {
		if !v.nulls[i] {
			scratch = append(scratch, all[i])
		}
	}
	return scratch
}

// encode puts the values into w.page, and for a dictionary its count entries into
// w.dict.
func (w *parquetWriter) encode(c *Column, from, to, nulls int, s *format.Statistics) (e format.Encoding, count int, err error) {
	switch c.Type {
	case typeFloat:
		return w.encodeFloats(known(c.v.floats, &c.v, from, to, nulls, w.floats), s)
	case typeText:
		return w.encodeTexts(known(c.v.texts, &c.v, from, to, nulls, nil))
	}
	ints := known(c.v.ints, &c.v, from, to, nulls, w.ints)
	if nulls > 0 {
		w.ints = ints
	}
	switch c.Type {
	case typeBool:
		w.page = append(w.page[:0], make([]byte, (len(ints)+7)/8)...)
		for i, v := range ints {
			w.page[i/8] |= byte(bit(v != 0)) << (i % 8)
		}
		return format.Plain, 0, nil
	case typeDate:
		w.small = w.small[:0]
		for _, v := range ints {
			w.small = append(w.small, int32(v))
		}
		if len(w.small) > 0 {
			s.MinValue = binary.LittleEndian.AppendUint32(nil, uint32(slices.Min(w.small)))
			s.MaxValue = binary.LittleEndian.AppendUint32(nil, uint32(slices.Max(w.small)))
		}
		w.page, err = new(delta.BinaryPackedEncoding).EncodeInt32(w.page, w.small)
	default:
		if len(ints) > 0 {
			low, high := ints[0], ints[0]
			for _, v := range ints {
				if v < low {
					low = v
				}
				if v > high {
					high = v
				}
			}
			s.MinValue, s.MaxValue = binary.LittleEndian.AppendUint64(nil, uint64(low)), binary.LittleEndian.AppendUint64(nil, uint64(high))
		}
		w.page, err = new(delta.BinaryPackedEncoding).EncodeInt64(w.page, ints)
	}
	return format.DeltaBinaryPacked, 0, err
}

// encodeFloats makes a dictionary, unless there are many different values.
func (w *parquetWriter) encodeFloats(list []float64, s *format.Statistics) (format.Encoding, int, error) {
	if len(list) > 0 {
		low, high := list[0], list[0]
		for _, v := range list {
			if v < low {
				low = v
			}
			if v > high {
				high = v
			}
		}
		// Minus zero is written as 0, as in JSON.
		s.MinValue, s.MaxValue = appendBits(nil, low+0), appendBits(nil, high+0)
	}
	var err error
	codes, entries, ok := w.bits.codes(list, w.small)
	w.small = codes
	if ok {
		w.dict = w.dict[:0]
		for _, k := range entries {
			w.dict = binary.LittleEndian.AppendUint64(w.dict, k)
		}
		w.page, err = new(rle.DictionaryEncoding).EncodeInt32(w.page, codes)
		return format.RLEDictionary, len(entries), err
	}
	w.floats = slices.Grow(w.floats[:0], len(list))[:len(list)]
	for i, v := range list {
		w.floats[i] = v + 0
	}
	w.page, err = new(plain.Encoding).EncodeDouble(w.page, w.floats)
	return format.Plain, 0, err
}

func appendBits(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// encodeTexts makes a dictionary, unless hardly a text comes twice.
func (w *parquetWriter) encodeTexts(list []string) (format.Encoding, int, error) {
	known := make(map[string]int32)
	w.small, w.dict = w.small[:0], w.dict[:0]
	last := int32(-1)
	for i, s := range list {
		if last >= 0 && s == list[i-1] {
			w.small = append(w.small, last)
			continue
		}
		n, ok := known[s]
		if !ok {
			n = int32(len(known))
			known[s] = n
			w.dict = appendByteArray(w.dict, s)
		}
		last = n
		w.small = append(w.small, n)
	}
	if len(known) > 1024 && len(known) > len(list)/2 {
		w.page = w.page[:0]
		for _, s := range list {
			w.page = appendByteArray(w.page, s)
		}
		return format.Plain, 0, nil
	}
	var err error
	w.page, err = new(rle.DictionaryEncoding).EncodeInt32(w.page, w.small)
	return format.RLEDictionary, len(known), err
}

func appendByteArray(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// bitTable numbers different values by their bits: open addressing, small enough for the
// cache.
type bitTable struct {
	slots   [1 << tableBits]int32 // number of an entry, counted from 1; 0 is free
	entries []uint64
}

const (
	tableBits   = 14
	mostEntries = 4096
)

// codes returns the number of each value, and the values by number; not ok if there are
// too many to be worth it.
func (t *bitTable) codes(list []float64, codes []int32) (out []int32, entries []uint64, ok bool) {
	clear(t.slots[:])
	t.entries = t.entries[:0]
	codes = slices.Grow(codes[:0], len(list))[:len(list)]
	most := max(min(mostEntries, len(list)/2), 1)
	last, number := uint64(0), int32(-1)
	for i, v := range list {
		b := math.Float64bits(v + 0)
		if b != last || number < 0 {
			if number = t.find(b); int(number) >= most {
				return codes, nil, false
			}
			last = b
		}
		codes[i] = number
	}
	return codes, t.entries, true
}

func (t *bitTable) find(b uint64) int32 {
	h := b * 0x9e3779b97f4a7c15 >> (64 - tableBits)
	for {
		n := t.slots[h]
		if n == 0 {
			t.entries = append(t.entries, b)
			t.slots[h] = int32(len(t.entries))
			return int32(len(t.entries)) - 1
		}
		if t.entries[n-1] == b {
			return n - 1
		}
		h = (h + 1) & (1<<tableBits - 1)
	}
}
