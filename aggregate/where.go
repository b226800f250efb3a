package aggregate

import "strings"

// Condition is a parsed condition of a query: what stands in Query.Where.
type Condition struct{ root cond }

// ParseWhere reads a condition, without asking whether its columns exist. The fault is
// healthlab.Invalid with code where_syntax; its context names the offset, in bytes.
func ParseWhere(text string) (Condition, error) {
	c, fault := parseWhere(text)
	if fault != nil {
		var r reader
		r.problems = append(r.problems, fault.problem(nil))
		return Condition{}, r.problems.Err()
	}
	return Condition{c}, nil
}

// String writes the condition with no more parentheses than it needs. Parsing it
// again gives the same condition.
func (c Condition) String() string {
	if c.root == nil {
		return ""
	}
	return string(c.root.spell(nil, 0))
}

// cond is a node of a condition.
type cond interface {
	// spell appends the node; in parentheses if it binds less than strength.
	spell(b []byte, strength int) []byte
}

type (
	andCond struct{ left, right cond }
	orCond  struct{ left, right cond }
	notCond struct{ of cond }
	// compareCond compares; op is one of = != < <= > >=.
	compareCond struct {
		op          string
		left, right operand
	}
	nullCond struct {
		of  operand
		not bool
	}
	inCond struct {
		of   operand
		list []operand
		not  bool
	}
	boolCond struct{ of operand }
)

// operand is a column or a literal.
type operand struct {
	kind byte // c column, s string, n number, b boolean
	// text is the name after the full stop, the string, or the number as written.
	text string
	// table is what stands before the full stop of a column; two says that there is
	// one.
	table string
	two   bool
	yes   bool
	at    int // offset in the text
}

const (
	strengthOr = iota + 1
	strengthAnd
	strengthNot
)

func (c andCond) spell(b []byte, strength int) []byte {
	return pair(b, strength, strengthAnd, c.left, " AND ", c.right)
}

func (c orCond) spell(b []byte, strength int) []byte {
	return pair(b, strength, strengthOr, c.left, " OR ", c.right)
}

// pair spells two sides; since both words associate to the left, a right side of
// the same strength needs parentheses.
func pair(b []byte, strength, own int, left cond, word string, right cond) []byte {
	if own < strength {
		b = append(b, '(')
	}
	b = left.spell(b, own)
	b = append(b, word...)
	b = right.spell(b, own+1)
	if own < strength {
		b = append(b, ')')
	}
	return b
}

func (c notCond) spell(b []byte, _ int) []byte {
	return c.of.spell(append(b, "NOT "...), strengthNot)
}

func (c compareCond) spell(b []byte, _ int) []byte {
	b = c.left.spell(b)
	b = append(append(append(b, ' '), c.op...), ' ')
	return c.right.spell(b)
}

func (c nullCond) spell(b []byte, _ int) []byte {
	b = append(c.of.spell(b), " IS "...)
	if c.not {
		b = append(b, "NOT "...)
	}
	return append(b, "NULL"...)
}

func (c inCond) spell(b []byte, _ int) []byte {
	b = c.of.spell(b)
	if c.not {
		b = append(b, " NOT"...)
	}
	b = append(b, " IN ("...)
	for i, o := range c.list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = o.spell(b)
	}
	return append(b, ')')
}

func (c boolCond) spell(b []byte, _ int) []byte { return c.of.spell(b) }

func (o operand) spell(b []byte) []byte {
	switch o.kind {
	case 'c':
		if o.two {
			b = append(printName(b, o.table), '.')
		}
		return printName(b, o.text)
	case 's':
		b = append(b, '\'')
		b = append(b, strings.ReplaceAll(o.text, "'", "''")...)
		return append(b, '\'')
	case 'b':
		if o.yes {
			return append(b, "TRUE"...)
		}
		return append(b, "FALSE"...)
	default:
		return append(b, o.text...)
	}
}

func printName(b []byte, name string) []byte {
	if bareName(name) {
		return append(b, name...)
	}
	return append(append(append(b, '"'), name...), '"')
}

// bareName reports whether a name needs no quotes.
func bareName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != "" && !isKeyword(s)
}
