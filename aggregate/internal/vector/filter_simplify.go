package vector

import (
	"math"
	"slices"
	"strings"
)

// Bounds are the values that a filter on one number accepts, both ends inclusive.
type Bounds struct {
	Slot    int
	Least   float64
	Most    float64
	Nothing bool // the filter accepts no value
}

// RangeOf returns the bounds of a filter; false unless it is a conjunction of comparisons of one column with numbers. A
// slot is the number of a column.
func RangeOf(f Filter, isValue func(slot int) bool) (Bounds, bool) {
	b := Bounds{Slot: -1, Least: math.Inf(-1), Most: math.Inf(1)}
	ok := b.narrow(f, isValue)
	b.Nothing = b.Least > b.Most
	return b, ok && b.Slot >= 0
}

func (b *Bounds) narrow(f Filter, isValue func(int) bool) bool {
	switch f := f.(type) {
	case And:
		return b.narrow(f.Left, isValue) && b.narrow(f.Right, isValue)
	case Compare:
		slot, x, op := f.Left.Slot, f.Right.Num, f.Op
		if f.Left.Slot < 0 {
			slot, x, op = f.Right.Slot, f.Left.Num, mirrored(f.Op)
		} else if f.Right.Slot >= 0 {
			return false
		}
		if f.Class != ClassNumber || !isValue(slot) || b.Slot >= 0 && b.Slot != slot {
			return false
		}
		b.Slot = slot
		switch op {
		case "=":
			b.Least, b.Most = max(b.Least, x), min(b.Most, x)
		case "<":
			b.Most = min(b.Most, math.Nextafter(x, math.Inf(-1)))
		case "<=":
			b.Most = min(b.Most, x)
		case ">":
			b.Least = max(b.Least, math.Nextafter(x, math.Inf(1)))
		case ">=":
			b.Least = max(b.Least, x)
		default:
			return false
		}
		return true
	default:
		return false
	}
}

// mirrored returns the operator for the comparison with its sides swapped.
func mirrored(op string) string {
	switch op {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	default:
		return op
	}
}

// Settle simplifies a filter for rows in which some text columns have a known value. known returns the value of a
// column, and ok false for a column without a known value. If the filter has the same value for all such rows, rest is
// nil and answer is that value. Otherwise rest is the remaining filter.
func Settle(f Filter, known func(slot int) (text string, null, ok bool)) (rest Filter, answer Tri) {
	switch f := f.(type) {
	case And, Or:
		return simplifyPair(f, known)
	case Not:
		rest, a := Settle(f.Of, known)
		if rest != nil {
			return Not{rest}, 0
		}
		return nil, IsTrue - a
	case Bool:
		if f.Slot < 0 {
			return nil, triOf(f.Yes)
		}
	case Null:
		if f.Slot < 0 {
			return nil, triOf(f.Not)
		}
		if _, null, ok := known(f.Slot); ok {
			return nil, triOf(null != f.Not)
		}
	case In:
		if f.Class != ClassText {
			break
		}
		if s, null, ok := known(f.Slot); ok {
			if null {
				return nil, IsUnknown
			}
			return nil, triOf(slices.Contains(f.Texts, s) != f.Not)
		}
	case Compare:
		if f.Class == ClassText {
			return simplifyText(f, known)
		}
	}
	return f, 0
}

func simplifyPair(f Filter, known func(int) (string, bool, bool)) (Filter, Tri) {
	and, isAnd := f.(And)
	left, right := and.Left, and.Right
	ends := IsFalse // the answer of one side that decides the result
	if or, ok := f.(Or); ok {
		left, right, ends = or.Left, or.Right, IsTrue
	}
	l, a := Settle(left, known)
	r, b := Settle(right, known)
	switch {
	case l == nil && a == ends, r == nil && b == ends:
		return nil, ends
	case l == nil && r == nil:
		if isAnd {
			return nil, min(a, b)
		}
		return nil, max(a, b)
	case l == nil && a == IsTrue-ends:
		return r, 0
	case r == nil && b == IsTrue-ends:
		return l, 0
	}
	if l == nil {
		l = constant(a)
	}
	if r == nil {
		r = constant(b)
	}
	if isAnd {
		return And{l, r}, 0
	}
	return Or{l, r}, 0
}

// constant is a filter with the same value for every row.
type constant Tri

func (c constant) Eval(_ *Batch, out []Tri) { fillTri(out, Tri(c)) }

func simplifyText(f Compare, known func(int) (string, bool, bool)) (Filter, Tri) {
	var texts [2]string
	for i, v := range [...]Operand{f.Left, f.Right} {
		texts[i] = v.Text
		if v.Slot < 0 {
			continue
		}
		s, null, ok := known(v.Slot)
		if !ok {
			return f, 0
		}
		if null {
			return nil, IsUnknown
		}
		texts[i] = s
	}
	lo, eq, hi := verdicts(f.Op)
	switch strings.Compare(texts[0], texts[1]) {
	case -1:
		return nil, lo
	case 1:
		return nil, hi
	default:
		return nil, eq
	}
}
