package ucum

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/healthlab-dev/healthlab"
)

const (
	maxCode     = 256 // bytes of a code
	maxExponent = 99  // highest exponent of a unit, as an absolute value
	maxPowers   = 500 // highest sum of the exponents of a code, as absolute values
	maxKnown    = 4096
)

// known caches the quantities of parsed codes, at most maxKnown.
var (
	known      sync.Map
	knownCount atomic.Int64
)

// parseCode reads a case-sensitive UCUM expression. The quantity is not changed by callers.
func parseCode(code string) (quantity, bool) {
	if q, ok := known.Load(code); ok {
		return q.(quantity), true
	}
	q, err := readCode(code)
	if err != nil {
		return quantity{}, false
	}
	if knownCount.Add(1) <= maxKnown {
		known.Store(strings.Clone(code), q)
	}
	return q, true
}

func readCode(code string) (quantity, error) {
	t := table()
	return (&reader{rest: code, atoms: t.code, prefixes: t.prefixCode}).main()
}

// Check returns [healthlab.Invalid] unless code is a case-sensitive UCUM code. The error names the broken rule and the
// byte, without the text of the code.
func Check(code string) error {
	_, err := readCode(code)
	return err
}

// FromCode returns the unit of a case-sensitive code of UCUM. The error is that of [Check].
func FromCode(code string) (Unit, error) {
	if err := Check(code); err != nil {
		return Unit{}, err
	}
	return Unit{UCUM: code, kind: kindOf(code)}, nil
}

// FromInsensitiveCode returns the unit of a code in the case-insensitive form of UCUM: MM[HG] and
// mm[hg] are mm[Hg], and MA is the prefix mega. Annotations keep their case. The error is
// that of [Check].
func FromInsensitiveCode(code string) (Unit, error) {
	t := table()
	r := &reader{rest: code, atoms: t.upper, prefixes: t.prefixUpper, fold: true}
	if _, err := r.main(); err != nil {
		return Unit{}, err
	}
	return FromCode(r.written.String())
}

// reader reads an expression of the grammar of UCUM:
//
//	main      = ["/"] term
//	term      = component {("." | "/") component}
//	component = unit [exponent] [annotation] | number [annotation] | annotation | "(" term ")" [annotation]
//	exponent  = ["+" | "-"] digits
//
// A unit is an atom, or a prefix and a metric atom.
type reader struct {
	rest     string
	length   int
	atoms    map[string]*atom
	prefixes map[string]prefix
	fold     bool            // the codes are in the case-insensitive form
	written  strings.Builder // the expression in the case-sensitive form
	powers   int
	define   func(*atom) // computes an atom that is not computed yet
}

func (r *reader) main() (quantity, error) {
	r.length = len(r.rest)
	if r.length > maxCode {
		return quantity{}, fmt.Errorf("%w: unit: a UCUM code must have at most %d bytes", healthlab.Invalid, maxCode)
	}
	q, err := r.term(true)
	if err == nil && r.rest != "" {
		err = r.wrong("expected a point, a slash or the end")
	}
	return q, err
}

func (r *reader) wrong(expected string) error {
	return fmt.Errorf("%w: unit: must be a UCUM code: %s at byte %d", healthlab.Invalid, expected, r.length-len(r.rest)+1)
}

func (r *reader) take(n int) string {
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// skip consumes a byte if it is next.
func (r *reader) skip(c byte) bool {
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.written.WriteString(r.take(1))
	return true
}

func (r *reader) term(outermost bool) (quantity, error) {
	q, sign := one(), 1
	if outermost && r.skip('/') {
		sign = -1
	}
	for {
		c, err := r.component()
		if err != nil {
			return q, err
		}
		q = q.times(c, sign)
		switch {
		case r.skip('.'):
			sign = 1
		case r.skip('/'):
			sign = -1
		default:
			return q, nil
		}
	}
}

func (r *reader) component() (q quantity, err error) {
	text := r.rest[:unitEnd(r.rest)]
	switch {
	case r.skip('('):
		if q, err = r.term(false); err == nil && !r.skip(')') {
			err = r.wrong("expected a closing parenthesis")
		}
	case text != "":
		q, err = r.unit(text)
	case strings.HasPrefix(r.rest, "{"):
		q = one()
	default:
		err = r.wrong("expected a unit, a number, an annotation or an opening parenthesis")
	}
	if err != nil || !strings.HasPrefix(r.rest, "{") {
		return q, err
	}
	note, err := r.annotation()
	if !countWords[strings.ToLower(note)] {
		q = q.times(one(), 1) // its own map
		q.add("{"+note+"}", 1)
	}
	return q, err
}

// unitEnd returns the end of a unit with its exponent. Operators inside brackets belong to the unit.
func unitEnd(s string) int {
	brackets := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			brackets++
		case c == ']':
			brackets--
		case brackets <= 0 && strings.IndexByte("./(){}", c) >= 0:
			return i
		}
	}
	return len(s)
}

// annotation reads a text in braces: printable ASCII without braces.
func (r *reader) annotation() (string, error) {
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '}':
			text := r.take(i + 1)
			r.written.WriteString(text)
			return text[1:i], nil
		case c < '!' || c > '~' || c == '{':
			return "", r.wrong("expected printable ASCII without spaces and braces in an annotation")
		}
	}
	return "", r.wrong("expected a closing brace")
}

// unit reads a number, or an atom with its prefix and exponent.
func (r *reader) unit(text string) (quantity, error) {
	symbol := strings.TrimRight(text, "0123456789")
	if symbol == "" {
		n := number(rational(text))
		if n.factor.Sign() == 0 {
			return n, r.wrong("expected a number above 0")
		}
		r.written.WriteString(r.take(len(text)))
		return n, nil
	}
	digits := text[len(symbol):]
	sign := 1
	switch last := symbol[len(symbol)-1]; {
	case last == '+' && digits != "":
		symbol = symbol[:len(symbol)-1]
	case last == '-' && digits != "":
		symbol, sign = symbol[:len(symbol)-1], -1
	}
	exponent := 1
	if digits != "" {
		n, err := strconv.Atoi(digits)
		if r.powers += n; err != nil || n > maxExponent || r.powers > maxPowers {
			return quantity{}, r.wrong(fmt.Sprintf("expected an exponent of at most %d", maxExponent))
		}
		exponent = sign * n
	}
	q, code, ok := r.simple(symbol)
	if !ok {
		return quantity{}, r.wrong("expected an atom of UCUM, or a prefix and a metric atom,")
	}
	r.written.WriteString(code + text[len(symbol):])
	r.take(len(text))
	if exponent == 1 {
		return q, nil
	}
	return one().times(q, exponent), nil
}

// simple returns an atom, or a prefix and a metric atom, with its case-sensitive code.
func (r *reader) simple(symbol string) (q quantity, code string, ok bool) {
	if r.fold {
		symbol = strings.ToUpper(symbol)
	}
	if a, ok := r.atom(symbol); ok {
		return a.quantity, a.code, true
	}
	for n := 1; n <= 3 && n < len(symbol); n++ {
		p, known := r.prefixes[symbol[:n]]
		if !known {
			continue
		}
		if a, ok := r.atom(symbol[n:]); ok && a.metric {
			return a.times(p.quantity, 1), p.code + a.code, true
		}
	}
	return quantity{}, "", false
}

func (r *reader) atom(symbol string) (*atom, bool) {
	a, ok := r.atoms[symbol]
	if ok && r.define != nil {
		r.define(a)
	}
	return a, ok
}
