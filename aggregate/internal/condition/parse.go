package condition

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// MaxLength is the highest length of a condition in bytes.
const MaxLength = 4096

// maxNesting is the deepest allowed nesting of conditions.
const maxNesting = 64

// CodeSyntax is the problem code of a condition with a syntax error.
const CodeSyntax = "where_syntax"

// Fault is an error in a condition.
type Fault struct {
	Code, Msg string
	// At is the offset in the text, in bytes.
	At int
	// Near is the known name that is nearest to an unknown one; empty for none.
	Near string
}

// Problem returns the error as a problem at a path.
func (f *Fault) Problem(p []any) healthlab.Problem {
	out := healthlab.Problem{Path: p, Code: f.Code, Msg: f.Msg, Context: map[string]any{"offset": f.At}}
	if f.Near != "" {
		out.Msg += "; did you mean " + f.Near + "?"
		out.Context["did_you_mean"] = f.Near
	}
	return out
}

// token is a keyword, name, literal, operator or punctuation mark of a condition.
type token struct {
	kind byte   // w word, q quoted name, s string, n number, o operator or mark, e end
	text string // a word as written, a string without quotes, an operator
	at   int
}

var (
	keywords = []string{"AND", "OR", "NOT", "IS", "NULL", "IN", "TRUE", "FALSE"}
	reserved = []string{"BETWEEN", "LIKE"}
)

func isKeyword(s string) bool {
	u := strings.ToUpper(s)
	return slices.Contains(keywords, u) || slices.Contains(reserved, u)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// parser is a recursive-descent parser of conditions. It stops at the first error.
type parser struct {
	text  string
	pos   int
	next  token
	depth int
	fault *Fault
}

// Parse parses a condition, without checking that its columns exist.
func Parse(text string) (Cond, *Fault) {
	if len(text) > MaxLength {
		return nil, &Fault{Code: CodeSyntax, Msg: "must have at most 4096 bytes", At: MaxLength}
	}
	p := &parser{text: text}
	p.advance()
	if p.fault == nil && p.next.kind == 'e' {
		p.fail("must not be empty")
	}
	c := p.or()
	if p.fault == nil && p.next.kind != 'e' {
		p.fail("must end here, or go on with AND or OR")
	}
	if p.fault != nil {
		return nil, p.fault
	}
	return c, nil
}

func (p *parser) fail(msg string) { p.failAt(msg, p.next.at) }

func (p *parser) failAt(msg string, at int) {
	if p.fault == nil {
		p.fault = &Fault{Code: CodeSyntax, Msg: msg, At: at}
	}
	p.next = token{kind: 'e', at: at}
	p.pos = len(p.text)
}

// advance reads the next token.
func (p *parser) advance() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	at := p.pos
	p.next = token{kind: 'e', at: at}
	if at == len(p.text) {
		return
	}
	c := p.text[at]
	switch {
	case isLetter(c):
		for p.pos < len(p.text) && (isLetter(p.text[p.pos]) || isDigit(p.text[p.pos])) {
			p.pos++
		}
		p.next = token{'w', p.text[at:p.pos], at}
	case c == '"':
		end := strings.IndexByte(p.text[at+1:], '"')
		if end < 0 {
			p.failAt("must have a closing \" for the name that begins here", at)
			return
		}
		if end == 0 {
			p.failAt("must not have an empty name in quotes", at)
			return
		}
		p.pos = at + end + 2
		p.next = token{'q', p.text[at+1 : p.pos-1], at}
	case c == '\'':
		p.stringToken(at)
	case isDigit(c), c == '+', c == '-', c == '.' && at+1 < len(p.text) && isDigit(p.text[at+1]):
		p.numberToken(at)
	default:
		for _, op := range [...]string{"!=", "<=", ">=", "=", "<", ">", "(", ")", ",", "."} {
			if strings.HasPrefix(p.text[at:], op) {
				p.pos += len(op)
				p.next = token{'o', op, at}
				return
			}
		}
		p.failAt("must not have this character outside quotes", at)
	}
}

func (p *parser) stringToken(at int) {
	var b strings.Builder
	for i := at + 1; i < len(p.text); i++ {
		if p.text[i] != '\'' {
			b.WriteByte(p.text[i])
			continue
		}
		if i+1 < len(p.text) && p.text[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		p.pos = i + 1
		p.next = token{'s', b.String(), at}
		return
	}
	p.failAt("must have a closing ' for the string that begins here", at)
}

func (p *parser) numberToken(at int) {
	i := at
	digits := func() (n int) {
		for i < len(p.text) && isDigit(p.text[i]) {
			i++
			n++
		}
		return n
	}
	if p.text[i] == '+' || p.text[i] == '-' {
		i++
	}
	whole, fraction := digits(), 0
	if i < len(p.text) && p.text[i] == '.' {
		i++
		fraction = digits()
	}
	if whole+fraction == 0 {
		p.failAt("must have a number after the sign", at)
		return
	}
	if i < len(p.text) && (p.text[i] == 'e' || p.text[i] == 'E') {
		i++
		if i < len(p.text) && (p.text[i] == '+' || p.text[i] == '-') {
			i++
		}
		if digits() == 0 {
			p.failAt("must have digits after the e of a number", at)
			return
		}
	}
	if i < len(p.text) && (isLetter(p.text[i]) || p.text[i] == '.') {
		p.failAt("must have a space or an operator after a number", at)
		return
	}
	p.pos = i
	p.next = token{'n', p.text[at:i], at}
}

// word consumes a keyword if it is the next token.
func (p *parser) word(w string) bool {
	if p.next.kind != 'w' || !strings.EqualFold(p.next.text, w) {
		return false
	}
	p.advance()
	return true
}

// mark consumes an operator or punctuation mark if it is the next token.
func (p *parser) mark(m string) bool {
	if p.next.kind != 'o' || p.next.text != m {
		return false
	}
	p.advance()
	return true
}

func (p *parser) or() Cond {
	left := p.and()
	for p.fault == nil && p.word("OR") {
		left = Or{left, p.and()}
	}
	return left
}

func (p *parser) and() Cond {
	left := p.not()
	for p.fault == nil && p.word("AND") {
		left = And{left, p.not()}
	}
	return left
}

func (p *parser) not() Cond {
	if p.fault != nil {
		return nil
	}
	at := p.next.at
	switch {
	case p.word("NOT"):
		defer p.nest(at)()
		return Not{p.not()}
	case p.mark("("):
		defer p.nest(at)()
		c := p.or()
		if p.fault == nil && !p.mark(")") {
			p.fail("must have a closing parenthesis here")
		}
		return c
	default:
		return p.predicate()
	}
}

// nest enters one nesting level; the function that it returns leaves the level. More than maxNesting levels are an
// error at the byte offset at.
func (p *parser) nest(at int) func() {
	p.depth++
	if p.depth > maxNesting {
		p.failAt("must be nested at most 64 levels deep", at)
	}
	return func() { p.depth-- }
}

func (p *parser) predicate() Cond {
	left, ok := p.operand()
	if !ok {
		return nil
	}
	if p.word("IS") {
		not := p.word("NOT")
		if !p.word("NULL") {
			p.fail("must have NULL after IS or IS NOT")
		}
		return Null{left, not}
	}
	not := p.word("NOT")
	if p.word("IN") {
		return p.in(left, not)
	}
	if not {
		p.fail("must have IN after NOT")
		return nil
	}
	if p.next.kind == 'o' && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">="}, p.next.text) {
		op := p.next.text
		p.advance()
		right, ok := p.operand()
		if !ok {
			return nil
		}
		if left.Kind != 'c' && right.Kind != 'c' {
			p.failAt("must compare a column", left.At)
		}
		return Compare{op, left, right}
	}
	if left.Kind != 'c' && left.Kind != 'b' {
		p.fail("must have a comparison operator here: =, !=, <, <=, > or >=")
		return nil
	}
	return Bool{left}
}

func (p *parser) in(left Operand, not bool) Cond {
	if left.Kind != 'c' {
		p.failAt("must compare a column", left.At)
		return nil
	}
	if !p.mark("(") {
		p.fail("must have an opening parenthesis after IN")
		return nil
	}
	c := In{Of: left, Not: not}
	for p.fault == nil {
		o, ok := p.operand()
		if !ok {
			return nil
		}
		if o.Kind == 'c' {
			p.failAt("must have literals alone in the list of IN", o.At)
			return nil
		}
		c.List = append(c.List, o)
		if !p.mark(",") {
			break
		}
	}
	if p.fault == nil && !p.mark(")") {
		p.fail("must have a closing parenthesis here")
	}
	return c
}

// operand reads a column or a literal. It returns false after an error.
func (p *parser) operand() (Operand, bool) {
	if p.fault != nil {
		return Operand{}, false
	}
	t := p.next
	o := Operand{Text: t.text, At: t.at}
	switch t.kind {
	case 's', 'n':
		o.Kind = t.kind
		p.advance()
		return o, p.fault == nil
	case 'w':
		upper := strings.ToUpper(t.text)
		switch {
		case upper == "TRUE", upper == "FALSE":
			p.advance()
			return Operand{Kind: 'b', Yes: upper == "TRUE", At: t.at}, p.fault == nil
		case slices.Contains(reserved, upper):
			p.fail("must not have a reserved word here; BETWEEN and LIKE are not supported")
			return o, false
		case slices.Contains(keywords, upper):
			p.fail("must have a column or a literal here")
			return o, false
		}
	case 'q':
	default:
		p.fail("must have a column or a literal here")
		return o, false
	}
	o.Kind = 'c'
	p.advance()
	if p.fault == nil && p.mark(".") {
		n := p.next
		if n.kind != 'q' && (n.kind != 'w' || isKeyword(n.text)) {
			p.fail("must have the name of a column after the full stop")
			return o, false
		}
		o.Table, o.Text, o.Two = o.Text, n.text, true
		p.advance()
	}
	return o, p.fault == nil
}
