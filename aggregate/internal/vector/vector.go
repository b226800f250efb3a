package vector

import (
	"cmp"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// microsOfDay is the length of a day in microseconds, the unit of times.
const microsOfDay = int64(86_400_000_000)

// Vec has the values of one column in the rows of a batch. The type decides which field has the values.
type Vec struct {
	Type   tables.ColumnType
	Ints   []int64 // int64, bool (0 or 1), dates in days, times in microseconds
	Floats []float64
	Texts  []string
	lists  []tables.Cell
	Nulls  []bool // nil: none is null

	// Memory that [Batch.Pick] reuses. The fields above may share the memory of other vectors.
	OwnInts   []int64
	OwnFloats []float64
	ownTexts  []string
	ownNulls  []bool
}

// IsNull reports whether value i is null.
func (v *Vec) IsNull(i int) bool { return v.Nulls != nil && v.Nulls[i] }

func (v *Vec) reset() {
	v.Ints, v.Floats, v.Texts = v.OwnInts[:0], v.OwnFloats[:0], v.ownTexts[:0]
	v.lists, v.Nulls = v.lists[:0], nil
}

// Add appends a value.
func (v *Vec) Add(c tables.Cell) {
	n := v.Len()
	if !c.Valid && v.Nulls == nil {
		v.Nulls = slices.Grow(v.ownNulls[:0], n+1)[:n]
		clear(v.Nulls)
	}
	if v.Nulls != nil {
		v.Nulls = append(v.Nulls, !c.Valid)
		v.ownNulls = v.Nulls
	}
	switch v.Type {
	case tables.TypeFloat64:
		v.Floats = append(v.Floats, c.Float)
		v.OwnFloats = v.Floats
	case tables.TypeString:
		v.Texts = append(v.Texts, c.Text)
		v.ownTexts = v.Texts
	case tables.TypeList:
		v.lists = append(v.lists, c)
	default:
		v.Ints = append(v.Ints, c.Int)
		v.OwnInts = v.Ints
	}
}

// Repeat appends a value n times.
func (v *Vec) Repeat(c tables.Cell, n int) {
	if n == 0 {
		return
	}
	v.Add(c)
	if v.Nulls != nil {
		v.Nulls = repeated(v.Nulls, n-1)
		v.ownNulls = v.Nulls
	}
	switch v.Type {
	case tables.TypeFloat64:
		v.Floats = repeated(v.Floats, n-1)
		v.OwnFloats = v.Floats
	case tables.TypeString:
		v.Texts = repeated(v.Texts, n-1)
		v.ownTexts = v.Texts
	case tables.TypeList:
		v.lists = repeated(v.lists, n-1)
	default:
		v.Ints = repeated(v.Ints, n-1)
		v.OwnInts = v.Ints
	}
}

// repeated appends the last element n more times.
func repeated[T any](s []T, n int) []T {
	k := len(s)
	s = slices.Grow(s, n)[:k+n]
	x := s[k-1]
	for i := range s[k:] {
		s[k+i] = x
	}
	return s
}

// Len returns the number of values.
func (v *Vec) Len() int {
	switch v.Type {
	case tables.TypeFloat64:
		return len(v.Floats)
	case tables.TypeString:
		return len(v.Texts)
	case tables.TypeList:
		return len(v.lists)
	default:
		return len(v.Ints)
	}
}

// Cell returns one value.
func (v *Vec) Cell(i int) tables.Cell {
	if v.IsNull(i) {
		return tables.Cell{}
	}
	switch v.Type {
	case tables.TypeFloat64:
		return tables.Cell{Valid: true, Float: v.Floats[i]}
	case tables.TypeString:
		return tables.Cell{Valid: true, Text: v.Texts[i]}
	case tables.TypeList:
		return v.lists[i]
	default:
		return tables.Cell{Valid: true, Int: v.Ints[i]}
	}
}

// AllNull makes a vector of n nulls.
func (v *Vec) AllNull(n int) {
	v.reset()
	v.Repeat(tables.Cell{}, n)
}

// Compare compares two values that are not null.
func (v *Vec) Compare(a, b int) int {
	switch v.Type {
	case tables.TypeFloat64:
		return compareFloat(v.Floats[a], v.Floats[b])
	case tables.TypeString:
		return cmp.Compare(v.Texts[a], v.Texts[b])
	default:
		return cmp.Compare(v.Ints[a], v.Ints[b])
	}
}

// Permuted returns the values of v in the given order.
func Permuted(v *Vec, order []int32) Vec {
	out := Vec{Type: v.Type}
	for _, i := range order {
		out.Add(v.Cell(int(i)))
	}
	return out
}

// FloatCell returns the value of a number, null if it is not finite.
func FloatCell(v float64) tables.Cell {
	if v-v != 0 {
		return tables.Cell{}
	}
	return tables.Cell{Valid: true, Float: v}
}

// IntCell returns the value of an integer, or of a time.
func IntCell(v int64) tables.Cell { return tables.Cell{Valid: true, Int: v} }

// TextCell returns the value of a text, null if it is empty.
func TextCell(s string) tables.Cell { return tables.Cell{Valid: s != "", Text: s} }
