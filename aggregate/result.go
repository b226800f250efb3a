package aggregate

import (
	"bytes"
	"compress/flate"
	"encoding/gob"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Result is the answer to a request: one [Frame] for each query, in order.
type Result struct {
	Frames []Frame
	// Explain has one entry for each query if an explanation was requested; nil otherwise.
	Explain []Explanation
}

// Frame is the result of one query, as columns of equal length. The first column is always index.
type Frame struct {
	Columns []Column
}

// Len returns the number of rows.
func (f *Frame) Len() int {
	if len(f.Columns) == 0 {
		return 0
	}
	return f.Columns[0].Len()
}

// Column returns the column with a name. Invalid, with the names of the columns, if there is none.
func (f *Frame) Column(name string) (*Column, error) {
	names := make([]string, len(f.Columns))
	for i := range f.Columns {
		if names[i] = f.Columns[i].Name; names[i] == name {
			return &f.Columns[i], nil
		}
	}
	return nil, fmt.Errorf("%w: the result has no column %q; its columns are %s", healthlab.Invalid, name, strings.Join(names, ", "))
}

// Rows yields the number of each row and its values as [Column.Value] returns them.
func (f *Frame) Rows() iter.Seq2[int, []any] {
	return func(yield func(int, []any) bool) {
		for i := range f.Len() {
			row := make([]any, len(f.Columns))
			for k := range f.Columns {
				row[k] = f.Columns[k].Value(i)
			}
			if !yield(i, row) {
				return
			}
		}
	}
}

// Pick returns a frame of the given rows, in the given order.
func (f *Frame) Pick(rows []int) Frame {
	out := Frame{Columns: make([]Column, len(f.Columns))}
	for i, c := range f.Columns {
		some := Column{Name: c.Name, Type: c.Type, days: c.days, v: vector.Vec{Type: c.Type}}
		for _, r := range rows {
			some.v.Add(c.v.Cell(r))
		}
		out.Columns[i] = some
	}
	return out
}

// storedColumn is a column as [Frame.MarshalBinary] encodes it.
type storedColumn struct {
	Name   string
	Type   Type
	Nulls  []bool
	Ints   []int64
	Floats []float64
	Texts  []string
	Days   bool
}

// MarshalBinary returns the frame for storage: compressed gob.
func (f *Frame) MarshalBinary() ([]byte, error) {
	columns := make([]storedColumn, len(f.Columns))
	for i := range f.Columns {
		c := &f.Columns[i]
		columns[i] = storedColumn{c.Name, c.Type, c.v.Nulls, c.v.Ints, c.v.Floats, c.v.Texts, c.days}
	}
	var out bytes.Buffer
	zip, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		err = errors.Join(gob.NewEncoder(zip).Encode(columns), zip.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encode frame: %w", err)
	}
	return out.Bytes(), nil
}

// UnmarshalBinary reads the result of MarshalBinary.
func (f *Frame) UnmarshalBinary(data []byte) error {
	var columns []storedColumn
	if err := gob.NewDecoder(flate.NewReader(bytes.NewReader(data))).Decode(&columns); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	f.Columns = nil
	for _, c := range columns {
		f.Columns = append(f.Columns, Column{Name: c.Name, Type: c.Type, days: c.Days, v: vector.Vec{
			Type: c.Type, Nulls: c.Nulls, Ints: c.Ints, Floats: c.Floats, Texts: c.Texts,
		}})
	}
	return nil
}

// Column is one column of a result. A method for another type than the column's panics.
type Column struct {
	Name string
	// Type is TypeInt64, TypeFloat64, TypeBool, TypeString, TypeDate, TypeTimestamp (the person's local time) or
	// TypeInstant (UTC). It depends on the query only.
	Type Type

	days bool // true for an index whose buckets are days, weeks, months or years
	v    vector.Vec
}

// NewColumn returns a column of values as [Column.Value] returns them, nil for null. Invalid names the row
// whose value has another type.
func NewColumn(name string, t Type, values []any) (Column, error) {
	c := newColumn(name, t)
	for i, v := range values {
		var cell tables.Cell
		known := true
		switch v := v.(type) {
		case nil:
		case int64:
			cell, known = vector.IntCell(v), t == typeInt
		case float64:
			cell, known = tables.Cell{Valid: true, Float: v}, t == typeFloat
		case bool:
			cell, known = vector.IntCell(0), t == typeBool
			if v {
				cell = vector.IntCell(1)
			}
		case string:
			cell, known = tables.Cell{Valid: true, Text: v}, t == typeText
		case time.Time:
			cell, known = vector.IntCell(v.UnixMicro()), t != typeInt && t != typeFloat && t != typeBool && t != typeText
			if t == typeDate {
				cell = vector.IntCell(v.Unix() / 86400)
			}
		case healthlab.Date:
			cell, known = vector.IntCell(v.At(time.UTC).Unix()/86400), t == typeDate
		default:
			known = false
		}
		if !known {
			return Column{}, fmt.Errorf("%w: column %s: the value of row %d is not of type %s", healthlab.Invalid, name, i, t)
		}
		c.v.Add(cell)
	}
	return c, nil
}

func newColumn(name string, t Type) Column {
	return Column{Name: name, Type: t, v: vector.Vec{Type: t}}
}

// Len returns the number of rows.
func (c *Column) Len() int { return c.v.Len() }

// Null reports whether the value of row i is null.
func (c *Column) Null(i int) bool { return c.v.IsNull(i) }

// Float returns a number of type int64 or float64; NaN for null.
func (c *Column) Float(i int) float64 {
	switch {
	case c.Null(i):
		return math.NaN()
	case c.Type == typeInt:
		return float64(c.v.Ints[i])
	default:
		return c.v.Floats[i]
	}
}

// Int returns an int64. For a date it is the days since 1970-01-01, for a timestamp (local time) and an instant (UTC)
// the microseconds since then. 0 for null.
func (c *Column) Int(i int) int64 { return c.v.Ints[i] }

// Text returns a string, empty for null.
func (c *Column) Text(i int) string { return c.v.Texts[i] }

// Bool returns a boolean, false for null.
func (c *Column) Bool(i int) bool { return c.v.Ints[i] != 0 }

// Time returns the value of a date, timestamp or instant, with the location UTC. A timestamp is returned as if the
// local time were UTC. The zero time for null.
func (c *Column) Time(i int) time.Time {
	switch {
	case c.Null(i):
		return time.Time{}
	case c.Type == typeDate:
		return time.UnixMicro(c.v.Ints[i] * day).UTC()
	default:
		return time.UnixMicro(c.v.Ints[i]).UTC()
	}
}

// Date returns the day of a date, or the local day of a timestamp such as the start of a bucket. The zero Date for
// null.
func (c *Column) Date(i int) healthlab.Date {
	if c.Null(i) {
		return healthlab.Date{}
	}
	return healthlab.DateOf(c.Time(i))
}

// Value returns the value of row i; nil for null. It is an int64, a float64, a bool, a string or a time.Time,
// and a healthlab.Date for dates and for buckets of days, weeks, months or years.
func (c *Column) Value(i int) any {
	if c.Null(i) {
		return nil
	}
	switch c.Type {
	case typeInt:
		return c.v.Ints[i]
	case typeFloat:
		return c.v.Floats[i]
	case typeBool:
		return c.Bool(i)
	case typeText:
		return c.v.Texts[i]
	case typeDate:
		return c.Date(i)
	}
	if c.days {
		return c.Date(i)
	}
	return c.Time(i)
}
