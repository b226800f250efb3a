package condition

import "strings"

func spell(c Cond) string { return string(appendCond(nil, c, 0)) }

const (
	strengthOr = iota + 1
	strengthAnd
	strengthNot
)

// appendCond appends the text of a node, in parentheses if it binds less strongly than strength.
func appendCond(b []byte, c Cond, strength int) []byte {
	switch c := c.(type) {
	case And:
		return appendPair(b, strength, strengthAnd, c.Left, " AND ", c.Right)
	case Or:
		return appendPair(b, strength, strengthOr, c.Left, " OR ", c.Right)
	case Not:
		return appendCond(append(b, "NOT "...), c.Of, strengthNot)
	case Compare:
		b = append(append(appendOperand(b, c.Left), ' '), c.Op...)
		return appendOperand(append(b, ' '), c.Right)
	case Null:
		b = append(appendOperand(b, c.Of), " IS "...)
		if c.Not {
			b = append(b, "NOT "...)
		}
		return append(b, "NULL"...)
	case In:
		b = appendOperand(b, c.Of)
		if c.Not {
			b = append(b, " NOT"...)
		}
		b = append(b, " IN ("...)
		for i, o := range c.List {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendOperand(b, o)
		}
		return append(b, ')')
	default:
		return appendOperand(b, c.(Bool).Of)
	}
}

// appendPair appends two sides. Both words associate to the left, so a right side of the same strength needs
// parentheses.
func appendPair(b []byte, strength, own int, left Cond, word string, right Cond) []byte {
	if own < strength {
		b = append(b, '(')
	}
	b = append(appendCond(b, left, own), word...)
	b = appendCond(b, right, own+1)
	if own < strength {
		b = append(b, ')')
	}
	return b
}

func appendOperand(b []byte, o Operand) []byte {
	switch {
	case o.Kind == 'c' && o.Two:
		return appendName(append(appendName(b, o.Table), '.'), o.Text)
	case o.Kind == 'c':
		return appendName(b, o.Text)
	case o.Kind == 's':
		return append(append(append(b, '\''), strings.ReplaceAll(o.Text, "'", "''")...), '\'')
	case o.Kind == 'b' && o.Yes:
		return append(b, "TRUE"...)
	case o.Kind == 'b':
		return append(b, "FALSE"...)
	default:
		return append(b, o.Text...)
	}
}

func appendName(b []byte, name string) []byte {
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
