package aggregate

import (
	"math"
	"slices"
	"strings"
)

// bounds are what values a filter on one number lets through, both ends inclusive.
type bounds struct {
	slot    int
	least   float64
	most    float64
	nothing bool // no value passes
}

// rangeOf returns the bounds that a filter is, if it is nothing but comparisons of one
// slot with numbers, all of which must hold.
func rangeOf(f filter, isValue func(slot int) bool) (bounds, bool) {
	b := bounds{slot: -1, least: math.Inf(-1), most: math.Inf(1)}
	ok := b.narrow(f, isValue)
	b.nothing = b.least > b.most
	return b, ok && b.slot >= 0
}

func (b *bounds) narrow(f filter, isValue func(int) bool) bool {
	switch f := f.(type) {
	case andFilter:
		return b.narrow(f.left, isValue) && b.narrow(f.right, isValue)
	case compareFilter:
		slot, x, op := f.left.slot, f.right.num, f.op
		if f.left.slot < 0 {
			slot, x, op = f.right.slot, f.left.num, mirrored(f.op)
		} else if f.right.slot >= 0 {
			return false
		}
		if f.class != classNumber || !isValue(slot) || b.slot >= 0 && b.slot != slot {
			return false
		}
		b.slot = slot
		switch op {
		case "=":
			b.least, b.most = max(b.least, x), min(b.most, x)
		case "<":
			b.most = min(b.most, math.Nextafter(x, math.Inf(-1)))
		case "<=":
			b.most = min(b.most, x)
		case ">":
			b.least = max(b.least, math.Nextafter(x, math.Inf(1)))
		case ">=":
			b.least = max(b.least, x)
		default:
			return false
		}
		return true
	default:
		return false
	}
}

// mirrored is the operator with its sides changed over.
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

// settle works out what a filter says where some text slots have one value: the answer
// if it is known, else what is left to ask.
func settle(f filter, known func(slot int) (text string, null, ok bool)) (rest filter, answer tri) {
	switch f := f.(type) {
	case andFilter, orFilter:
		return settlePair(f, known)
	case notFilter:
		rest, a := settle(f.of, known)
		if rest != nil {
			return notFilter{rest}, 0
		}
		return nil, isTrue - a
	case boolFilter:
		if f.slot < 0 {
			return nil, triOf(f.yes)
		}
	case nullFilter:
		if f.slot < 0 {
			return nil, triOf(f.not)
		}
		if _, null, ok := known(f.slot); ok {
			return nil, triOf(null != f.not)
		}
	case inFilter:
		if f.class != classText {
			break
		}
		if s, null, ok := known(f.slot); ok {
			if null {
				return nil, isUnknown
			}
			return nil, triOf(slices.Contains(f.texts, s) != f.not)
		}
	case compareFilter:
		if f.class == classText {
			return settleText(f, known)
		}
	}
	return f, 0
}

func settlePair(f filter, known func(int) (string, bool, bool)) (filter, tri) {
	and, isAnd := f.(andFilter)
	left, right := and.left, and.right
	ends := isFalse // the answer that decides alone
	if or, ok := f.(orFilter); ok {
		left, right, ends = or.left, or.right, isTrue
	}
	l, a := settle(left, known)
	r, b := settle(right, known)
	switch {
	case l == nil && a == ends, r == nil && b == ends:
		return nil, ends
	case l == nil && r == nil:
		if isAnd {
			return nil, min(a, b)
		}
		return nil, max(a, b)
	case l == nil && a == isTrue-ends:
		return r, 0
	case r == nil && b == isTrue-ends:
		return l, 0
	}
	if l == nil {
		l = constant(a)
	}
	if r == nil {
		r = constant(b)
	}
	if isAnd {
		return andFilter{l, r}, 0
	}
	return orFilter{l, r}, 0
}

// constant is a filter with one answer.
type constant tri

func (c constant) eval(_ *batch, out []tri) { fillTri(out, tri(c)) }

func settleText(f compareFilter, known func(int) (string, bool, bool)) (filter, tri) {
	var texts [2]string
	for i, v := range [...]value{f.left, f.right} {
		texts[i] = v.text
		if v.slot < 0 {
			continue
		}
		s, null, ok := known(v.slot)
		if !ok {
			return f, 0
		}
		if null {
			return nil, isUnknown
		}
		texts[i] = s
	}
	lo, eq, hi := verdicts(f.op)
	switch strings.Compare(texts[0], texts[1]) {
	case -1:
		return nil, lo
	case 1:
		return nil, hi
	default:
		return nil, eq
	}
}
