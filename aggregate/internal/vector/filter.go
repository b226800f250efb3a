package vector

import (
	"cmp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Filter is a checked condition. It evaluates a whole batch with three values: a comparison with a null is
// unknown, neither true nor false.
type Filter interface {
	// Eval sets out[i] to the condition's value for row i of b.
	Eval(b *Batch, out []Tri)
}

// Tri is false, unknown or true, in this order: AND is the smaller of two, OR the larger.
type Tri uint8

// Values of Tri.
const (
	IsFalse Tri = iota
	IsUnknown
	IsTrue
)

func triOf(b bool) Tri {
	if b {
		return IsTrue
	}
	return IsFalse
}

type (
	// And is true where both filters are true.
	And struct{ Left, Right Filter }
	// Or is true where at least one of two filters is true.
	Or struct{ Left, Right Filter }
	// Not swaps true and false.
	Not struct{ Of Filter }
	// Compare compares two values of one class.
	Compare struct {
		Op          string // = != < <= > >=
		Class       Class
		Left, Right Operand
	}
	// Null is true where a value is null; with Not, where it is not.
	Null struct {
		Slot int // -1 for a literal, which is not null
		Not  bool
	}
	// In is true where a value is in a list of values of its class.
	In struct {
		Class Class
		Slot  int
		Not   bool
		Nums  []float64
		Ints  []int64
		Texts []string
	}
	// Bool is the value of a boolean.
	Bool struct {
		Slot int  // -1 for a literal
		Yes  bool // value of a literal
	}
)

// Class is the kind of comparison between two values.
type Class uint8

// Classes of comparisons.
const (
	ClassNone    Class = iota
	ClassInt           // two integers
	ClassNumber        // numbers, one of them a float64
	ClassText          // strings
	ClassBool          // booleans
	ClassTime          // wall-clock times
	ClassInstant       // instants
	ClassDate          // days
)

// Operand is a column of the batch (its Slot), or a literal.
type Operand struct {
	Slot int // -1 for a literal
	Num  float64
	Int  int64
	Text string
}

// Eval implements [Filter].
func (f And) Eval(b *Batch, out []Tri) { join(b, out, f.Left, f.Right, true) }

// Eval implements [Filter].
func (f Or) Eval(b *Batch, out []Tri) { join(b, out, f.Left, f.Right, false) }

func join(b *Batch, out []Tri, left, right Filter, and bool) {
	left.Eval(b, out)
	other := b.Scratch()
	defer b.Done(other)
	right.Eval(b, other)
	for i, o := range other {
		if and == (o < out[i]) {
			out[i] = o
		}
	}
}

// Eval implements [Filter].
func (f Not) Eval(b *Batch, out []Tri) {
	f.Of.Eval(b, out)
	for i := range out {
		out[i] = IsTrue - out[i]
	}
}

// Eval implements [Filter].
func (f Null) Eval(b *Batch, out []Tri) {
	if f.Slot < 0 {
		fillTri(out, triOf(f.Not))
		return
	}
	v := &b.Cols[f.Slot]
	for i := range out {
		out[i] = triOf(v.IsNull(i) != f.Not)
	}
}

// Eval implements [Filter].
func (f Bool) Eval(b *Batch, out []Tri) {
	if f.Slot < 0 {
		fillTri(out, triOf(f.Yes))
		return
	}
	v := &b.Cols[f.Slot]
	for i := range out {
		out[i] = IsUnknown
		if !v.IsNull(i) {
			out[i] = triOf(v.Ints[i] != 0)
		}
	}
}

func fillTri(out []Tri, t Tri) {
	for i := range out {
		out[i] = t
	}
}

// Eval implements [Filter].
func (f Compare) Eval(b *Batch, out []Tri) {
	lo, eq, hi := verdicts(f.Op)
	put := func(i, c int) {
		switch {
		case c < 0:
			out[i] = lo
		case c > 0:
			out[i] = hi
		default:
			out[i] = eq
		}
	}
	for i := range out {
		if f.Left.isNull(b, i) || f.Right.isNull(b, i) {
			out[i] = IsUnknown
			continue
		}
		switch f.Class {
		case ClassNumber:
			put(i, compareFloat(f.Left.number(b, i), f.Right.number(b, i)))
		case ClassText:
			put(i, strings.Compare(f.Left.string(b, i), f.Right.string(b, i)))
		default:
			put(i, cmp.Compare(f.Left.integer(b, i), f.Right.integer(b, i)))
		}
	}
}

// verdicts returns the results of a comparison operator for a left side that is less than, equal to and greater than
// the right side.
func verdicts(op string) (lo, eq, hi Tri) {
	switch op {
	case "=":
		return IsFalse, IsTrue, IsFalse
	case "!=":
		return IsTrue, IsFalse, IsTrue
	case "<":
		return IsTrue, IsFalse, IsFalse
	case "<=":
		return IsTrue, IsTrue, IsFalse
	case ">":
		return IsFalse, IsFalse, IsTrue
	default:
		return IsFalse, IsTrue, IsTrue
	}
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (v *Operand) isNull(b *Batch, i int) bool { return v.Slot >= 0 && b.Cols[v.Slot].IsNull(i) }

func (v *Operand) number(b *Batch, i int) float64 {
	if v.Slot < 0 {
		return v.Num
	}
	c := &b.Cols[v.Slot]
	if c.Type == tables.TypeInt64 {
		return float64(c.Ints[i])
	}
	return c.Floats[i]
}

func (v *Operand) integer(b *Batch, i int) int64 {
	if v.Slot < 0 {
		return v.Int
	}
	return b.Cols[v.Slot].Ints[i]
}

func (v *Operand) string(b *Batch, i int) string {
	if v.Slot < 0 {
		return v.Text
	}
	return b.Cols[v.Slot].Texts[i]
}

// Eval implements [Filter].
func (f In) Eval(b *Batch, out []Tri) {
	v := &b.Cols[f.Slot]
	for i := range out {
		if v.IsNull(i) {
			out[i] = IsUnknown
			continue
		}
		var found bool
		switch f.Class {
		case ClassNumber:
			x := Operand{Slot: f.Slot}
			found = slices.Contains(f.Nums, x.number(b, i))
		case ClassText:
			found = slices.Contains(f.Texts, v.Texts[i])
		default:
			found = slices.Contains(f.Ints, v.Ints[i])
		}
		out[i] = triOf(found != f.Not)
	}
}
