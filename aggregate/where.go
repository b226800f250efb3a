package aggregate

import (
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
)

// names resolves a name in a condition to a column: its number among the columns that the plan reads, and its type.
type names func(o condition.Operand) (slot int, typ Type, fault *condition.Fault)

// checker turns a parsed condition into a filter and collects errors.
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

func (c *checker) filter(n condition.Cond) vector.Filter {
	switch n := n.(type) {
	case condition.And:
		return vector.And{Left: c.filter(n.Left), Right: c.filter(n.Right)}
	case condition.Or:
		return vector.Or{Left: c.filter(n.Left), Right: c.filter(n.Right)}
	case condition.Not:
		return vector.Not{Of: c.filter(n.Of)}
	case condition.Compare:
		return c.compare(n)
	case condition.Null:
		slot := -1
		if n.Of.Kind == 'c' {
			slot, _, _ = c.column(n.Of)
		}
		return vector.Null{Slot: slot, Not: n.Not}
	case condition.In:
		return c.in(n)
	case condition.Bool:
		if n.Of.Kind == 'b' {
			return vector.Bool{Slot: -1, Yes: n.Of.Yes}
		}
		slot, typ, ok := c.column(n.Of)
		if ok && typ != typeBool {
			c.fail(codeMismatch, "must be a boolean column or have a comparison", n.Of.At)
		}
		return vector.Bool{Slot: slot}
	default:
		return vector.Bool{Slot: -1}
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

func (c *checker) compare(n condition.Compare) vector.Filter {
	out := vector.Compare{Op: n.Op, Left: vector.Operand{Slot: -1}, Right: vector.Operand{Slot: -1}}
	var types [2]Type
	ok := true
	for i, side := range [...]struct {
		o condition.Operand
		v *vector.Operand
	}{{n.Left, &out.Left}, {n.Right, &out.Right}} {
		if side.o.Kind == 'c' {
			var is bool
			side.v.Slot, types[i], is = c.column(side.o)
			ok = ok && is
		}
	}
	if !ok {
		return out
	}
	switch {
	case n.Right.Kind != 'c':
		out.Class, ok = c.literal(types[0], n.Right, &out.Right)
	case n.Left.Kind != 'c':
		out.Class, ok = c.literal(types[1], n.Left, &out.Left)
	default:
		if out.Class = classOf(types[0], types[1]); out.Class == vector.ClassNone {
			c.fail(codeMismatch, "must compare values of the same type", n.Left.At)
			ok = false
		}
	}
	if ok && out.Class == vector.ClassBool && n.Op != "=" && n.Op != "!=" {
		c.fail(codeMismatch, "must compare booleans with = or != alone", n.Left.At)
	}
	return out
}

// classOf returns how two columns are compared; ClassNone if they cannot be compared.
func classOf(a, b Type) vector.Class {
	number := func(t Type) bool { return t == typeInt || t == typeFloat }
	switch {
	case a == typeInt && b == typeInt:
		return vector.ClassInt
	case number(a) && number(b):
		return vector.ClassNumber
	case a != b:
		return vector.ClassNone
	case a == typeText:
		return vector.ClassText
	case a == typeBool:
		return vector.ClassBool
	case a == typeTime:
		return vector.ClassTime
	case a == typeInstant:
		return vector.ClassInstant
	case a == typeDate:
		return vector.ClassDate
	default:
		return vector.ClassNone
	}
}

// literal sets v to the literal o, as a value that can be compared with a column of type t, and returns the class of
// the comparison. It returns false after adding an error.
func (c *checker) literal(t Type, o condition.Operand, v *vector.Operand) (vector.Class, bool) {
	mismatch := func() (vector.Class, bool) {
		c.fail(codeMismatch, "must be of the type of the column", o.At)
		return vector.ClassNone, false
	}
	switch t {
	case typeInt, typeFloat:
		if o.Kind != 'n' {
			return mismatch()
		}
		x, err := strconv.ParseFloat(o.Text, 64)
		if err != nil {
			c.fail(codeLiteral, "must be a finite number of 64 bits", o.At)
			return vector.ClassNone, false
		}
		v.Num = x
		if i, err := strconv.ParseInt(o.Text, 10, 64); t == typeInt && err == nil {
			v.Int = i
			return vector.ClassInt, true
		}
		return vector.ClassNumber, true
	case typeText:
		if o.Kind != 's' {
			return mismatch()
		}
		v.Text = o.Text
		return vector.ClassText, true
	case typeBool:
		if o.Kind != 'b' {
			return mismatch()
		}
		if o.Yes {
			v.Int = 1
		}
		return vector.ClassBool, true
	case typeTime, typeInstant, typeDate:
		if o.Kind != 's' {
			return mismatch()
		}
		i, ok := timeLiteral(o.Text, t)
		if !ok {
			c.fail(codeLiteral, "must be a date or time of the column's type", o.At)
			return vector.ClassNone, false
		}
		v.Int = i
		return map[Type]vector.Class{typeTime: vector.ClassTime, typeInstant: vector.ClassInstant, typeDate: vector.ClassDate}[t], true
	default:
		return mismatch()
	}
}

// timeLiteral parses a day, or a day with a clock time. Only a literal for an instant may have an offset. It returns
// days for a date, else microseconds, since 1970; false if s is invalid for the type t.
func timeLiteral(s string, t Type) (int64, bool) {
	if d, err := healthlab.ParseDate(s); err == nil {
		if t == typeDate {
			return dayStart(d) / day, true
		}
		return dayStart(d), true
	}
	at, offset, err := healthlab.ParseTimeZone(s)
	if err != nil || t == typeDate || t == typeTime && offset != nil {
		return 0, false
	}
	return at.UnixMicro(), true
}

func (c *checker) in(n condition.In) vector.Filter {
	slot, typ, ok := c.column(n.Of)
	out := vector.In{Slot: slot, Not: n.Not}
	if !ok {
		return out
	}
	number := false
	for _, o := range n.List {
		v := vector.Operand{Slot: -1}
		cl, ok := c.literal(typ, o, &v)
		if !ok {
			continue
		}
		out.Class = cl
		number = number || cl == vector.ClassNumber
		out.Nums = append(out.Nums, v.Num)
		out.Ints = append(out.Ints, v.Int)
		out.Texts = append(out.Texts, v.Text)
	}
	if number {
		out.Class = vector.ClassNumber
	}
	return out
}
