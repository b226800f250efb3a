package aggregate

import (
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// names finds what a name in a condition stands for.
type names func(o operand) (slot int, typ Type, fault *whereFault)

// checker turns a parsed condition into a filter and gathers its faults.
type checker struct {
	names  names
	faults []*whereFault
}

const (
	codeMismatch = "where_type_mismatch"
	codeLiteral  = "where_bad_literal"
	codeColumn   = "unknown_column"
)

func (c *checker) fail(code, msg string, at int) {
	c.faults = append(c.faults, &whereFault{code: code, msg: msg, at: at})
}

func (c *checker) filter(n cond) filter {
	switch n := n.(type) {
	case andCond:
		return andFilter{c.filter(n.left), c.filter(n.right)}
	case orCond:
		return orFilter{c.filter(n.left), c.filter(n.right)}
	case notCond:
		return notFilter{c.filter(n.of)}
	case compareCond:
		return c.compare(n)
	case nullCond:
		slot := -1
		if n.of.kind == 'c' {
			slot, _, _ = c.column(n.of)
		}
		return nullFilter{slot, n.not}
	case inCond:
		return c.in(n)
	case boolCond:
		if n.of.kind == 'b' {
			return boolFilter{-1, n.of.yes}
		}
		slot, typ, ok := c.column(n.of)
		if ok && typ != typeBool {
			c.fail(codeMismatch, "stands alone and is not a boolean", n.of.at)
		}
		return boolFilter{slot: slot}
	default:
		return boolFilter{slot: -1}
	}
}

func (c *checker) column(o operand) (slot int, typ Type, ok bool) {
	slot, typ, fault := c.names(o)
	if fault != nil {
		fault.at = o.at
		c.faults = append(c.faults, fault)
		return 0, "", false
	}
	return slot, typ, true
}

func (c *checker) compare(n compareCond) filter {
	out := compareFilter{op: n.op, left: value{slot: -1}, right: value{slot: -1}}
	var types [2]Type
	ok := true
	for i, side := range [...]struct {
		o operand
		v *value
	}{{n.left, &out.left}, {n.right, &out.right}} {
		if side.o.kind == 'c' {
			var is bool
			side.v.slot, types[i], is = c.column(side.o)
			ok = ok && is
		}
	}
	if !ok {
		return out
	}
	switch {
	case n.right.kind != 'c':
		out.class, ok = c.literal(types[0], n.right, &out.right)
	case n.left.kind != 'c':
		out.class, ok = c.literal(types[1], n.left, &out.left)
	default:
		if out.class = classOf(types[0], types[1]); out.class == classNone {
			c.fail(codeMismatch, "compares values of different types", n.left.at)
			ok = false
		}
	}
	if ok && out.class == classBool && n.op != "=" && n.op != "!=" {
		c.fail(codeMismatch, "booleans are only equal or not", n.left.at)
	}
	return out
}

// classOf returns what two columns are compared as.
func classOf(a, b Type) class {
	number := func(t Type) bool { return t == typeInt || t == typeFloat }
	switch {
	case a == typeInt && b == typeInt:
		return classInt
	case number(a) && number(b):
		return classNumber
	case a != b:
		return classNone
	case a == typeText:
		return classText
	case a == typeBool:
		return classBool
	case a == typeTime:
		return classTime
	case a == typeInstant:
		return classInstant
	case a == typeDate:
		return classDate
	default:
		return classNone
	}
}

// literal reads a literal as a value that a column of type t can be compared with.
func (c *checker) literal(t Type, o operand, v *value) (class, bool) {
	mismatch := func() (class, bool) {
		c.fail(codeMismatch, "is not of the type of the column", o.at)
		return classNone, false
	}
	switch t {
	case typeInt, typeFloat:
		if o.kind != 'n' {
			return mismatch()
		}
		x, err := strconv.ParseFloat(o.text, 64)
		if err != nil {
			c.fail(codeLiteral, "is not a number that can be", o.at)
			return classNone, false
		}
		v.num = x
		if i, err := strconv.ParseInt(o.text, 10, 64); t == typeInt && err == nil {
			v.int = i
			return classInt, true
		}
		return classNumber, true
	case typeText:
		if o.kind != 's' {
			return mismatch()
		}
		v.text = o.text
		return classText, true
	case typeBool:
		if o.kind != 'b' {
			return mismatch()
		}
		if o.yes {
			v.int = 1
		}
		return classBool, true
	case typeTime, typeInstant, typeDate:
		if o.kind != 's' {
			return mismatch()
		}
		i, ok := timeLiteral(o.text, t)
		if !ok {
			c.fail(codeLiteral, "is not a date or time of the kind that the column has", o.at)
			return classNone, false
		}
		v.int = i
		return map[Type]class{typeTime: classTime, typeInstant: classInstant, typeDate: classDate}[t], true
	default:
		return mismatch()
	}
}

// timeLiteral reads a day, or a day and a clock time. Only an instant may have an
// offset.
func timeLiteral(s string, t Type) (int64, bool) {
	if d, err := healthlab.ParseDate(s); err == nil {
		if t == typeDate {
			return dayStart(d) / day, true
		}
		return dayStart(d), true
	}
	if t == typeDate || len(s) < 16 || s[10] != 'T' && s[10] != ' ' {
		return 0, false
	}
	if len(s) == 16 || s[16] != ':' {
		s = s[:16] + ":00" + s[16:]
	}
	at, _, err := healthlab.ParseTimeOffset(s)
	if err != nil || t == typeTime && strings.ContainsAny(s[11:], "Zz+-") {
		return 0, false
	}
	return at.UnixMicro(), true
}

func (c *checker) in(n inCond) filter {
	slot, typ, ok := c.column(n.of)
	out := inFilter{slot: slot, not: n.not}
	if !ok {
		return out
	}
	number := false
	for _, o := range n.list {
		v := value{slot: -1}
		cl, ok := c.literal(typ, o, &v)
		if !ok {
			continue
		}
		out.class = cl
		number = number || cl == classNumber
		out.nums = append(out.nums, v.num)
		out.ints = append(out.ints, v.int)
		out.texts = append(out.texts, v.text)
	}
	if number {
		out.class = classNumber
	}
	return out
}
