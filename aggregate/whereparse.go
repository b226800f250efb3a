package aggregate

import (
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// Bounds of a condition.
const (
	maxWhere   = 4096
	maxNesting = 64
)

const codeSyntax = "where_syntax"

// whereFault is what is wrong with a condition, and where.
type whereFault struct {
	code, msg string
	at        int
	near      string
}

// problem puts the fault under a path.
func (f *whereFault) problem(p path) healthlab.Problem {
	out := healthlab.Problem{Path: p, Code: f.code, Msg: f.msg, Context: map[string]any{"offset": f.at}}
	if f.near != "" {
		out.Msg += "; did you mean " + f.near + "?"
		out.Context["did_you_mean"] = f.near
	}
	return out
}

// token is a word of a condition.
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
	return contains(keywords, u) || contains(reserved, u)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// whereParser reads a condition by descent. The first fault ends it.
type whereParser struct {
	text  string
	pos   int
	next  token
	depth int
	fault *whereFault
}

func parseWhere(text string) (cond, *whereFault) {
	if len(text) > maxWhere {
		return nil, &whereFault{code: codeSyntax, msg: "is longer than 4096 bytes", at: maxWhere}
	}
	p := &whereParser{text: text}
	p.advance()
	if p.fault == nil && p.next.kind == 'e' {
		p.fail("is empty")
	}
	c := p.or()
	if p.fault == nil && p.next.kind != 'e' {
		p.fail("has something behind its end")
	}
	if p.fault != nil {
		return nil, p.fault
	}
	return c, nil
}

func (p *whereParser) fail(msg string) { p.failAt(msg, p.next.at) }

func (p *whereParser) failAt(msg string, at int) {
	if p.fault == nil {
		p.fault = &whereFault{code: codeSyntax, msg: msg, at: at}
	}
	p.next = token{kind: 'e', at: at}
	p.pos = len(p.text)
}

// advance reads the next token.
func (p *whereParser) advance() {
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
			p.failAt("has a name in quotes that does not end", at)
			return
		}
		if end == 0 {
			p.failAt("has an empty name", at)
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
		p.failAt("has a character that does not belong here", at)
	}
}

func (p *whereParser) stringToken(at int) {
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
	p.failAt("has a string that does not end", at)
}

func (p *whereParser) numberToken(at int) {
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
		p.failAt("has a sign without a number", at)
		return
	}
	if i < len(p.text) && (p.text[i] == 'e' || p.text[i] == 'E') {
		i++
		if i < len(p.text) && (p.text[i] == '+' || p.text[i] == '-') {
			i++
		}
		if digits() == 0 {
			p.failAt("has a number without its exponent", at)
			return
		}
	}
	if i < len(p.text) && (isLetter(p.text[i]) || p.text[i] == '.') {
		p.failAt("has a number that runs into something else", at)
		return
	}
	p.pos = i
	p.next = token{'n', p.text[at:i], at}
}

// word takes a keyword if it is next.
func (p *whereParser) word(w string) bool {
	if p.next.kind != 'w' || !strings.EqualFold(p.next.text, w) {
		return false
	}
	p.advance()
	return true
}

// mark takes an operator or a mark if it is next.
func (p *whereParser) mark(m string) bool {
	if p.next.kind != 'o' || p.next.text != m {
		return false
	}
	p.advance()
	return true
}

func (p *whereParser) or() cond {
	left := p.and()
	for p.fault == nil && p.word("OR") {
		left = orCond{left, p.and()}
	}
	return left
}

func (p *whereParser) and() cond {
	left := p.not()
	for p.fault == nil && p.word("AND") {
		left = andCond{left, p.not()}
	}
	return left
}

func (p *whereParser) not() cond {
	if p.fault != nil {
		return nil
	}
	at := p.next.at
	switch {
	case p.word("NOT"):
		defer p.nest(at)()
		return notCond{p.not()}
	case p.mark("("):
		defer p.nest(at)()
		c := p.or()
		if p.fault == nil && !p.mark(")") {
			p.fail("needs a closing parenthesis here")
		}
		return c
	default:
		return p.predicate()
	}
}

// nest goes one level down, and back with what it returns.
func (p *whereParser) nest(at int) func() {
	p.depth++
	if p.depth > maxNesting {
		p.failAt("is nested deeper than 64 levels", at)
	}
	return func() { p.depth-- }
}

func (p *whereParser) predicate() cond {
	left, ok := p.operand()
	if !ok {
		return nil
	}
	if p.word("IS") {
		not := p.word("NOT")
		if !p.word("NULL") {
			p.fail("needs NULL here")
		}
		return nullCond{left, not}
	}
	not := p.word("NOT")
	if p.word("IN") {
		return p.in(left, not)
	}
	if not {
		p.fail("needs IN here")
		return nil
	}
	if p.next.kind == 'o' && contains([]string{"=", "!=", "<", "<=", ">", ">="}, p.next.text) {
		op := p.next.text
		p.advance()
		right, ok := p.operand()
		if !ok {
			return nil
		}
		if left.kind != 'c' && right.kind != 'c' {
			p.failAt("compares no column", left.at)
		}
		return compareCond{op, left, right}
	}
	if left.kind != 'c' && left.kind != 'b' {
		p.fail("needs a comparison here")
		return nil
	}
	return boolCond{left}
}

func (p *whereParser) in(left operand, not bool) cond {
	if left.kind != 'c' {
		p.failAt("compares no column", left.at)
		return nil
	}
	if !p.mark("(") {
		p.fail("needs an opening parenthesis here")
		return nil
	}
	c := inCond{of: left, not: not}
	for p.fault == nil {
		o, ok := p.operand()
		if !ok {
			return nil
		}
		if o.kind == 'c' {
			p.failAt("has a column where a literal belongs", o.at)
			return nil
		}
		c.list = append(c.list, o)
		if !p.mark(",") {
			break
		}
	}
	if p.fault == nil && !p.mark(")") {
		p.fail("needs a closing parenthesis here")
	}
	return c
}

// operand reads a column or a literal.
func (p *whereParser) operand() (operand, bool) {
	if p.fault != nil {
		return operand{}, false
	}
	t := p.next
	o := operand{text: t.text, at: t.at}
	switch t.kind {
	case 's', 'n':
		o.kind = t.kind
		p.advance()
		return o, p.fault == nil
	case 'w':
		upper := strings.ToUpper(t.text)
		switch {
		case upper == "TRUE", upper == "FALSE":
			p.advance()
			return operand{kind: 'b', yes: upper == "TRUE", at: t.at}, p.fault == nil
		case contains(reserved, upper):
			p.fail("has a word that is reserved: BETWEEN and LIKE do not exist here")
			return o, false
		case contains(keywords, upper):
			p.fail("needs a column or a literal here")
			return o, false
		}
	case 'q':
	default:
		p.fail("needs a column or a literal here")
		return o, false
	}
	o.kind = 'c'
	p.advance()
	if p.fault == nil && p.mark(".") {
		n := p.next
		if n.kind != 'q' && (n.kind != 'w' || isKeyword(n.text)) {
			p.fail("needs a name here")
			return o, false
		}
		o.table, o.text, o.two = o.text, n.text, true
		p.advance()
	}
	return o, p.fault == nil
}
