package aggregate

import (
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
)

// names finds what a name in a condition stands for.
type names func(o condition.Operand) (slot int, typ Type, fault *condition.Fault)

// checker turns a parsed condition into a filter and gathers its faults.
type checker struct {
	names  names
	faults []*condition.Fault
}

const (
	codeMismatch = "where_type_mismatch"
	codeLiteral  = "where_bad_literal"
	codeColumn   = "unknown_column"
)

func (c *checker) fail(code, msg string, at int) {
	c.faults = append(c.faults, &condition.Fault{Code: code, Msg: msg, At: at})
}

func (c *checker) filter(n condition.Cond) filter {
	switch n := n.(type) {
	case condition.And:
		return andFilter{c.filter(n.Left), c.filter(n.Right)}
	case condition.Or:
		return orFilter{c.filter(n.Left), c.filter(n.Right)}
	case condition.Not:
		return notFilter{c.filter(n.Of)}
	case condition.Compare:
		return c.compare(n)
	case condition.Null:
		slot := -1
		if n.Of.Kind == 'c' {
			slot, _, _ = c.column(n.Of)
		}
		return nullFilter{slot, n.Not}
	case condition.In:
		return c.in(n)
	case condition.Bool:
		if n.Of.Kind == 'b' {
			return boolFilter{-1, n.Of.Yes}
		}
		slot, typ, ok := c.column(n.Of)
		if ok && typ != typeBool {
			c.fail(codeMismatch, "stands alone and is not a boolean", n.Of.At)
		}
		return boolFilter{slot: slot}
	default:
		return boolFilter{slot: -1}
	}
}

func (c *checker) column(o condition.Operand) (slot int, typ Type, ok bool) {
	slot, typ, fault := c.names(o)
	if fault != nil {
		fault.At = o.At
		c.faults = append(c.faults, fault)
		return 0, "", false
	}
	return slot, typ, true
}

func (c *checker) compare(n condition.Compare) filter {
	out := compareFilter{op: n.Op, left: value{slot: -1}, right: value{slot: -1}}
	var types [2]Type
	ok := true
	for i, side := range [...]struct {
		o condition.Operand
		v *value
	}{{n.Left, &out.left}, {n.Right, &out.right}} {
		if side.o.Kind == 'c' {
			var is bool
			side.v.slot, types[i], is = c.column(side.o)
			ok = ok && is
		}
	}
	if !ok {
		return out
	}
	switch {
	case n.Right.Kind != 'c':
		out.class, ok = c.literal(types[0], n.Right, &out.right)
	case n.Left.Kind != 'c':
		out.class, ok = c.literal(types[1], n.Left, &out.left)
	default:
		if out.class = classOf(types[0], types[1]); out.class == classNone {
			c.fail(codeMismatch, "compares values of different types", n.Left.At)
			ok = false
		}
	}
	if ok && out.class == classBool && n.Op != "=" && n.Op != "!=" {
		c.fail(codeMismatch, "booleans are only equal or not", n.Left.At)
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
func (c *checker) literal(t Type, o condition.Operand, v *value) (class, bool) {
	mismatch := func() (class, bool) {
		c.fail(codeMismatch, "is not of the type of the column", o.At)
		return classNone, false
	}
	switch t {
	case typeInt, typeFloat:
		if o.Kind != 'n' {
			return mismatch()
		}
		x, err := strconv.ParseFloat(o.Text, 64)
		if err != nil {
			c.fail(codeLiteral, "is not a number that can be", o.At)
			return classNone, false
		}
		v.num = x
		if i, err := strconv.ParseInt(o.Text, 10, 64); t == typeInt && err == nil {
			v.int = i
			return classInt, true
		}
		return classNumber, true
	case typeText:
		if o.Kind != 's' {
			return mismatch()
		}
		v.text = o.Text
		return classText, true
	case typeBool:
		if o.Kind != 'b' {
			return mismatch()
		}
		if o.Yes {
			v.int = 1
		}
		return classBool, true
	case typeTime, typeInstant, typeDate:
		if o.Kind != 's' {
			return mismatch()
		}
		i, ok := timeLiteral(o.Text, t)
		if !ok {
			c.fail(codeLiteral, "is not a date or time of the kind that the column has", o.At)
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

func (c *checker) in(n condition.In) filter {
	slot, typ, ok := c.column(n.Of)
	out := inFilter{slot: slot, not: n.Not}
	if !ok {
		return out
	}
	number := false
	for _, o := range n.List {
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
