package condition

import "strings"

// Spell writes a condition with no more parentheses than it needs.
func Spell(c Cond) string { return string(c.spell(nil, 0)) }

// Cond is a node of a condition.
type Cond interface {
	// spell appends the text of the node, in parentheses if it binds less strongly than strength.
	spell(b []byte, strength int) []byte
}

// The nodes of a condition.
type (
	// And is true if both sides are.
	And struct{ Left, Right Cond }
	// Or is true if at least one side is.
	Or struct{ Left, Right Cond }
	// Not negates a condition.
	Not struct{ Of Cond }
	// Compare compares two operands; Op is one of = != < <= > >=.
	Compare struct {
		Op          string
		Left, Right Operand
	}
	// Null is IS NULL, or IS NOT NULL.
	Null struct {
		Of  Operand
		Not bool
	}
	// In is IN or NOT IN with a list of literals.
	In struct {
		Of   Operand
		List []Operand
		Not  bool
	}
	// Bool is a boolean column or literal without a comparison.
	Bool struct{ Of Operand }
)

// Operand is a column or a literal.
type Operand struct {
	Kind byte // c column, s string, n number, b boolean
	// Text is the column's name after the full stop, the string, or the number as written.
	Text string
	// Table is the name before the full stop of a column; Two is true if there is one.
	Table string
	Two   bool
	// Yes is the value of a boolean.
	Yes bool
	// At is the offset in the text, in bytes.
	At int
}

const (
	strengthOr = iota + 1
	strengthAnd
	strengthNot
)

func (c And) spell(b []byte, strength int) []byte {
	return pair(b, strength, strengthAnd, c.Left, " AND ", c.Right)
}

func (c Or) spell(b []byte, strength int) []byte {
	return pair(b, strength, strengthOr, c.Left, " OR ", c.Right)
}

// pair spells two sides. Both words associate to the left, so a right side of the same strength needs
// parentheses.
func pair(b []byte, strength, own int, left Cond, word string, right Cond) []byte {
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

func (c Not) spell(b []byte, _ int) []byte {
	return c.Of.spell(append(b, "NOT "...), strengthNot)
}

func (c Compare) spell(b []byte, _ int) []byte {
	b = c.Left.spell(b)
	b = append(append(append(b, ' '), c.Op...), ' ')
	return c.Right.spell(b)
}

func (c Null) spell(b []byte, _ int) []byte {
	b = append(c.Of.spell(b), " IS "...)
	if c.Not {
		b = append(b, "NOT "...)
	}
	return append(b, "NULL"...)
}

func (c In) spell(b []byte, _ int) []byte {
	b = c.Of.spell(b)
	if c.Not {
		b = append(b, " NOT"...)
	}
	b = append(b, " IN ("...)
	for i, o := range c.List {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = o.spell(b)
	}
	return append(b, ')')
}

func (c Bool) spell(b []byte, _ int) []byte { return c.Of.spell(b) }

func (o Operand) spell(b []byte) []byte {
	switch o.Kind {
	case 'c':
		if o.Two {
			b = append(printName(b, o.Table), '.')
		}
		return printName(b, o.Text)
	case 's':
		b = append(b, '\'')
		b = append(b, strings.ReplaceAll(o.Text, "'", "''")...)
		return append(b, '\'')
	case 'b':
		if o.Yes {
			return append(b, "TRUE"...)
		}
		return append(b, "FALSE"...)
	default:
		return append(b, o.Text...)
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
