package tables

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// ColumnType is the type of a column of a [Table].
type ColumnType string

// The types of columns. Every column may be null.
const (
	TypeInt64   ColumnType = "int64"
	TypeFloat64 ColumnType = "float64"
	TypeBool    ColumnType = "bool"
	TypeString  ColumnType = "string"
	// TypeDate is a calendar day.
	TypeDate ColumnType = "date"
	// TypeTimestamp is a local time without a zone.
	TypeTimestamp ColumnType = "timestamp"
	// TypeInstant is an instant, in UTC.
	TypeInstant ColumnType = "instant"
	// TypeList is a list of values, or of values with several fields.
	TypeList ColumnType = "list"
)

// Cell is one value of a column. The zero value is null. The column's type decides which field has the value.
type Cell struct {
	// Valid reports whether the cell is not null.
	Valid bool
	// Int is the value of an int64; a bool as 0 or 1; a date as days since 1970; a time as microseconds since
	// 1970, local or in UTC.
	Int int64
	// Float is the value of a float64. It is finite.
	Float float64
	// Text is the value of a string.
	Text string
	// List is the value of a list, by element, by field.
	List [][]Cell
}

// Table shows the summaries of one resource as rows of columns, for queries. The tables derive from the
// catalogue: a [healthdata.Resource] has the name of its table. Immutable.
type Table struct {
	// Name is the name in queries: the Table of its resource.
	Name string
	// Resource is the slug of the resource whose summaries are the rows.
	Resource string
	// IndexType is the type of the time by which rows are found and sorted: TypeTimestamp, TypeDate or
	// TypeInstant.
	IndexType ColumnType
	// Columns is in the order of the documentation.
	Columns []Column
	// Cycles reports whether some columns need the sleep cycle of the session.
	Cycles bool

	index  func(*Row) int64
	byName map[string]int
}

// Column is one column of a table.
type Column struct {
	Name string
	Type ColumnType
	// Unit is the unit of the values; empty if there is none.
	Unit string
	// Doc describes the values, if name and unit are not enough.
	Doc string
	// Fields are the fields of a list's elements, nil for other columns. Elements
	// that are plain values have one field without a name.
	Fields []ListField

	get func(*Row) Cell
}

// ListField is a field of the elements of a list.
type ListField struct {
	Name string
	Type ColumnType
}

// Value returns the column's value in a row.
func (c *Column) Value(r *Row) Cell {
	v := c.get(r)
	if c.Type == TypeFloat64 && !check.Finite(v.Float) {
		return Cell{}
	}
	return v
}

// Row is one summary with its record and sleep cycle.
type Row struct {
	Record  *healthdata.Record
	Summary healthdata.Summary
	// Cycle is the sleep cycle of a sleep session; nil if there is none.
	Cycle *healthdata.SleepCycle
}

// Column returns the column of a name, or nil.
func (t *Table) Column(name string) *Column {
	if i, ok := t.byName[name]; ok {
		return &t.Columns[i]
	}
	return nil
}

// Index returns the time by which a row is found and sorted, in microseconds since 1970: local, or in UTC for
// TypeInstant. The index of a date is its midnight.
func (t *Table) Index(r *Row) int64 { return t.index(r) }

// byName has the tables of aggregate queries by name.
var byName = func() map[string]*Table {
	defs := []Table{
		{Name: "sleep", IndexType: TypeTimestamp, Columns: sleepColumns, Cycles: true, index: localIndex},
		{Name: "activity", IndexType: TypeDate, Columns: activityColumns, index: dayIndex},
		{Name: "workout", IndexType: TypeTimestamp, Columns: workoutColumns, index: localIndex},
		{Name: "body", IndexType: TypeTimestamp, Columns: bodyColumns, index: localIndex},
		{Name: "meal", IndexType: TypeTimestamp, Columns: mealColumns, index: localIndex},
		{Name: "menstrual_cycle", IndexType: TypeDate, Columns: cycleColumns, index: dayIndex},
		{Name: "profile", IndexType: TypeInstant, Columns: profileColumns, index: func(r *Row) int64 { return r.Record.UpdatedAt.UnixMicro() }},
	}
	out := make(map[string]*Table, len(defs))
	for i := range defs {
		t := &defs[i]
		t.byName = make(map[string]int, len(t.Columns))
		for k := range t.Columns {
			t.byName[t.Columns[k].Name] = k
		}
		out[t.Name] = t
	}
	for _, r := range healthdata.Resources() {
		if r.Table == "" {
			continue
		}
		t := out[r.Table]
		if t == nil {
			panic("tables: a resource names a table that has no columns")
		}
		t.Resource = r.Slug
	}
	return out
}()

func localIndex(r *Row) int64 { return r.Record.Index.UnixMicro() + int64(r.Record.Offset)*1_000_000 }

func dayIndex(r *Row) int64 {
	// A day is stored as midnight UTC.
	return r.Record.Index.UnixMicro()
}

// All returns the tables of summaries in the order of the catalogue. They are
// shared: do not change them.
func All() []*Table {
	var out []*Table
	for _, r := range healthdata.Resources() {
		if t := byName[r.Table]; t != nil {
			out = append(out, t)
		}
	}
	return out
}

// ByName returns the table of a name, or nil.
func ByName(name string) *Table { return byName[name] }

// SampleTimeseries returns the resources of the table of samples: all timeseries except the deprecated ones
// without events.
func SampleTimeseries() []*healthdata.Resource {
	return slices.DeleteFunc(healthdata.Timeseries(), func(r *healthdata.Resource) bool { return !r.Events })
}

// SampleColumns returns the columns of a timeseries' samples. Their values are read from blocks, so
// [Column.Value] does not work for them.
func SampleColumns(r *healthdata.Resource) []Column {
	out := []Column{
		{Name: "source_provider", Type: TypeString, Doc: "slug of the provider"},
		{Name: "source_type", Type: TypeString, Doc: "source type"},
		{Name: "source_app_id", Type: TypeString, Doc: "originating app; null when unknown"},
		{Name: "source_workout_id", Type: TypeString, Doc: "the workout that the sample belongs to"},
		{Name: "source_sport", Type: TypeString, Doc: "the sport of that workout"},
		{Name: "timezone_offset", Type: TypeInt64, Unit: "s", Doc: "seconds east of UTC"},
		{Name: "type", Type: TypeString, Doc: "the sample type"},
	}
	switch r.Value {
	case healthdata.ValuePressure:
		return append(out, Column{Name: "systolic", Type: TypeFloat64, Unit: r.Unit}, Column{Name: "diastolic", Type: TypeFloat64, Unit: r.Unit})
	case healthdata.ValueText:
		out = append(out, Column{Name: "content", Type: TypeString, Doc: "the text"})
	default:
		out = append(out, Column{Name: "value", Type: TypeFloat64, Unit: r.Unit})
		if r.Shape != healthdata.Discrete {
			out = append(out, Column{Name: "duration", Type: TypeFloat64, Unit: "s", Doc: "end minus start; null for a sample without an end"})
		}
	}
	for _, f := range r.Fields {
		if f == "tags" {
			out = append(out, Column{Name: f, Type: TypeList, Fields: []ListField{{Type: TypeString}}})
			continue
		}
		out = append(out, Column{Name: f, Type: TypeString})
	}
	return out
}

// Constructors of columns. of makes a column whose function gets the summary as its own struct type.

func of[T any, P interface {
	*T
	healthdata.Summary
}](name string, t ColumnType, unit, doc string, get func(P, *Row) Cell) Column {
	return Column{Name: name, Type: t, Unit: unit, Doc: doc, get: func(r *Row) Cell {
		s, ok := r.Summary.(P)
		if !ok {
			return Cell{}
		}
		return get(s, r)
	}}
}

func nullColumn(name string, t ColumnType, unit string) Column {
	return Column{Name: name, Type: t, Unit: unit, Doc: "null unless the source gives it", get: func(*Row) Cell { return Cell{} }}
}

// sourceColumns are the four columns about the source of a row.
func sourceColumns() []Column {
	return []Column{
		{Name: "source_type", Type: TypeString, Doc: "source type", get: func(r *Row) Cell { return textCell(string(r.Record.SourceType)) }},
		{Name: "source_provider", Type: TypeString, Doc: "slug of the provider", get: func(r *Row) Cell { return textCell(r.Record.Provider) }},
		{Name: "source_app_id", Type: TypeString, Doc: "originating app; null when unknown", get: func(r *Row) Cell { return textPtr(healthdata.HeadOf(r.Summary).Source.AppID) }},
		{Name: "source_device_id", Type: TypeString, Unit: "uuid", Doc: "null unless known with certainty", get: func(r *Row) Cell {
			return idCell(healthdata.HeadOf(r.Summary).Source.DeviceID)
		}},
	}
}

func intCell(v int64) Cell { return Cell{Valid: true, Int: v} }

func intPtr(v *int64) Cell {
	if v == nil {
		return Cell{}
	}
	return intCell(*v)
}

func floatCell(v float64) Cell { return Cell{Valid: true, Float: v} }

func floatPtr(v *float64) Cell {
	if v == nil {
		return Cell{}
	}
	return floatCell(*v)
}

func textCell(s string) Cell { return Cell{Valid: s != "", Text: s} }

func textPtr(s *string) Cell {
	if s == nil {
		return Cell{}
	}
	return Cell{Valid: true, Text: *s}
}

func idCell(id *uuid.UUID) Cell {
	if id == nil {
		return Cell{}
	}
	return textCell(id.String())
}

func boolCell(v bool) Cell {
	if v {
		return intCell(1)
	}
	return intCell(0)
}

func boolPtr(v *bool) Cell {
	if v == nil {
		return Cell{}
	}
	return boolCell(*v)
}

func dateCell(d healthlab.Date) Cell {
	if d.IsZero() {
		return Cell{}
	}
	return intCell(d.At(time.UTC).Unix() / (24 * 60 * 60))
}

func datePtr(d *healthlab.Date) Cell {
	if d == nil {
		return Cell{}
	}
	return dateCell(*d)
}

// localCell returns an instant as local time at an offset in seconds east of UTC; nil means the offset of the
// record.
func localCell(r *Row, t healthlab.Time, offset *int) Cell {
	if t.IsZero() {
		return Cell{}
	}
	seconds := r.Record.Offset
	if offset != nil {
		seconds = *offset
	}
	return intCell(t.UnixMicro() + int64(seconds)*1_000_000)
}

func minutes(v *float64) Cell {
	if v == nil || !check.Finite(*v) {
		return Cell{}
	}
	return intCell(int64(math.Round(*v * 60)))
}

// zoneCell returns the name of a zone, or the name of an offset if there is no zone.
func zoneCell(name *string, offset int) Cell {
	if name != nil && *name != "" {
		return textCell(*name)
	}
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	b := append([]byte("UTC"), sign, byte('0'+offset/36000), byte('0'+offset/3600%10), ':', byte('0'+offset%3600/600), byte('0'+offset%600/60))
	return textCell(string(b))
}

// listCell returns a list cell of elements with fields.
func listCell[T any](list []T, fields func(*T) []Cell) Cell {
	if list == nil {
		return Cell{}
	}
	out := make([][]Cell, len(list))
	for i := range list {
		out[i] = fields(&list[i])
	}
	return Cell{Valid: true, List: out}
}
