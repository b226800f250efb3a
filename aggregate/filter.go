package aggregate

import (
	"slices"
	"strings"
)

// filter is a checked condition. It works on a whole batch at a time, with three
// values: a comparison with a null is neither true nor false.
type filter interface {
	// eval sets out[i] for the rows of b.
	eval(b *batch, out []tri)
}

// tri is false, unknown or true, in that order: AND is the smaller of two, OR the
// larger.
type tri uint8

const (
	isFalse tri = iota
	isUnknown
	isTrue
)

func triOf(b bool) tri {
	if b {
		return isTrue
	}
	return isFalse
}

type (
	andFilter struct{ left, right filter }
	orFilter  struct{ left, right filter }
	notFilter struct{ of filter }
	// compareFilter compares two values of one class.
	compareFilter struct {
		op          string
		class       class
		left, right value
	}
	nullFilter struct {
		slot int // -1 for a literal, which is not null
		not  bool
	}
	inFilter struct {
		class class
		slot  int
		not   bool
		nums  []float64
		ints  []int64
		texts []string
	}
	boolFilter struct {
		slot int // -1 for a literal
		yes  bool
	}
)

// class is what values have to have in common to be compared.
type class uint8

const (
	classNone    class = iota
	classInt           // two integers
	classNumber        // numbers, one of them a float64
	classText          // strings
	classBool          // booleans
	classTime          // wall-clock times
	classInstant       // instants
	classDate          // days
)

// value is a slot, or a literal.
type value struct {
	slot int // -1 for a literal
	num  float64
	int  int64
	text string
}

func (f andFilter) eval(b *batch, out []tri) { join(b, out, f.left, f.right, true) }
func (f orFilter) eval(b *batch, out []tri)  { join(b, out, f.left, f.right, false) }

func join(b *batch, out []tri, left, right filter, and bool) {
	left.eval(b, out)
	other := b.scratch()
	defer b.done(other)
	right.eval(b, other)
	for i, o := range other {
		if and == (o < out[i]) {
			out[i] = o
		}
	}
}

func (f notFilter) eval(b *batch, out []tri) {
	f.of.eval(b, out)
	for i := range out {
		out[i] = isTrue - out[i]
	}
}

func (f nullFilter) eval(b *batch, out []tri) {
	if f.slot < 0 {
		fillTri(out, triOf(f.not))
		return
	}
	v := &b.cols[f.slot]
	for i := range out {
		out[i] = triOf(v.isNull(i) != f.not)
	}
}

func (f boolFilter) eval(b *batch, out []tri) {
	if f.slot < 0 {
		fillTri(out, triOf(f.yes))
		return
	}
	v := &b.cols[f.slot]
	for i := range out {
		out[i] = isUnknown
		if !v.isNull(i) {
			out[i] = triOf(v.ints[i] != 0)
		}
	}
}

func fillTri(out []tri, t tri) {
	for i := range out {
		out[i] = t
	}
}

func (f compareFilter) eval(b *batch, out []tri) {
	lo, eq, hi := verdicts(f.op)
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
		if f.left.isNull(b, i) || f.right.isNull(b, i) {
			out[i] = isUnknown
			continue
		}
		switch f.class {
		case classNumber:
			put(i, compareFloat(f.left.number(b, i), f.right.number(b, i)))
		case classText:
			put(i, strings.Compare(f.left.string(b, i), f.right.string(b, i)))
		default:
			put(i, compareInt(f.left.integer(b, i), f.right.integer(b, i)))
		}
	}
}

// verdicts are what an operator says of less, equal and more.
func verdicts(op string) (lo, eq, hi tri) {
	switch op {
	case "=":
		return isFalse, isTrue, isFalse
	case "!=":
		return isTrue, isFalse, isTrue
	case "<":
		return isTrue, isFalse, isFalse
	case "<=":
		return isTrue, isTrue, isFalse
	case ">":
		return isFalse, isFalse, isTrue
	default:
		return isFalse, isTrue, isTrue
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

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (v *value) isNull(b *batch, i int) bool { return v.slot >= 0 && b.cols[v.slot].isNull(i) }

func (v *value) number(b *batch, i int) float64 {
	if v.slot < 0 {
		return v.num
	}
	c := &b.cols[v.slot]
	if c.typ == typeInt {
		return float64(c.ints[i])
	}
	return c.floats[i]
}

func (v *value) integer(b *batch, i int) int64 {
	if v.slot < 0 {
		return v.int
	}
	return b.cols[v.slot].ints[i]
}

func (v *value) string(b *batch, i int) string {
	if v.slot < 0 {
		return v.text
	}
	return b.cols[v.slot].texts[i]
}

func (f inFilter) eval(b *batch, out []tri) {
	v := &b.cols[f.slot]
	for i := range out {
		if v.isNull(i) {
			out[i] = isUnknown
			continue
		}
		var found bool
		switch f.class {
		case classNumber:
			x := value{slot: f.slot}
			found = slices.Contains(f.nums, x.number(b, i))
		case classText:
			found = slices.Contains(f.texts, v.texts[i])
		default:
			found = slices.Contains(f.ints, v.ints[i])
		}
		out[i] = triOf(found != f.not)
	}
}
