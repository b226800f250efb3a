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
	maxCode     = 256 // highest length of a code in bytes
	maxExponent = 99  // highest exponent of a unit, as an absolute value
	maxPowers   = 500 // highest sum of the exponents of a code, as absolute values
	maxKnown    = 4096
)

// known caches parsed codes and their quantities; at most maxKnown.
var (
	known      sync.Map
	knownCount atomic.Int64
)

// parseCode parses a case-sensitive UCUM code, with a cache. Callers must not change the quantity, which they
// share.
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

// Check returns [healthlab.Invalid] unless code is a case-sensitive UCUM code. The error names the broken rule and
// the position in bytes, and does not contain the code.
func Check(code string) error {
	_, err := readCode(code)
	return err
}

// FromCode returns the unit of a case-sensitive UCUM code. It returns the error of [Check] for another text.
func FromCode(code string) (Unit, error) {
	if err := Check(code); err != nil {
		return Unit{}, err
	}
	return Unit{UCUM: code, kind: kindOf(code)}, nil
}

// FromInsensitiveCode returns the unit of a UCUM code in case-insensitive form: both MM[HG] and mm[hg] mean mm[Hg],
// and the prefix MA means mega. The case of annotations stays. It returns an error like that of [Check] for another
// text.
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
	fold     bool            // atoms and prefixes are codes in case-insensitive form
	written  strings.Builder // what was read, in case-sensitive form
	powers   int
	define   func(*atom) // computes the quantity of an atom before its first use; nil if all are computed
}

func (r *reader) main() (quantity, error) {
	r.length = len(r.rest)
	if r.length > maxCode {
		return quantity{}, fmt.Errorf("%w: unit: a UCUM code must have at most %d bytes", healthlab.Invalid, maxCode)
	}
	q, err := r.term(true)
	if err == nil && r.rest != "" {
		err = r.syntaxError("expected a point, a slash or the end")
	}
	return q, err
}

func (r *reader) syntaxError(expected string) error {
	return fmt.Errorf("%w: unit: must be a UCUM code: %s at byte %d", healthlab.Invalid, expected, r.length-len(r.rest)+1)
}

func (r *reader) take(n int) string {
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// skip consumes c and returns true if c is the next byte.
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
			err = r.syntaxError("expected a closing parenthesis")
		}
	case text != "":
		q, err = r.unit(text)
	case strings.HasPrefix(r.rest, "{"):
		q = one()
	default:
		err = r.syntaxError("expected a unit, a number, an annotation or an opening parenthesis")
	}
	if err != nil || !strings.HasPrefix(r.rest, "{") {
		return q, err
	}
	note, err := r.annotation()
	if !countWords[strings.ToLower(note)] {
		q = q.times(one(), 1) // a copy: q may share its map with an atom
		q.add("{"+note+"}", 1)
	}
	return q, err
}

// unitEnd returns the end of the unit with its exponent at the start of s. Operators inside square brackets belong
// to the unit.
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

// annotation reads an annotation: printable ASCII text in braces. It returns the text without the braces.
func (r *reader) annotation() (string, error) {
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '}':
			text := r.take(i + 1)
			r.written.WriteString(text)
			return text[1:i], nil
		case c < '!' || c > '~' || c == '{':
			return "", r.syntaxError("expected printable ASCII without spaces and braces in an annotation")
		}
	}
	return "", r.syntaxError("expected a closing brace")
}

// unit reads a number, or an atom with an optional prefix and exponent.
func (r *reader) unit(text string) (quantity, error) {
	symbol := strings.TrimRight(text, "0123456789")
	if symbol == "" {
		n := number(rational(text))
		if n.factor.Sign() == 0 {
			return n, r.syntaxError("expected a number above 0")
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
			return quantity{}, r.syntaxError(fmt.Sprintf("expected an exponent of at most %d", maxExponent))
		}
		exponent = sign * n
	}
	q, code, ok := r.simple(symbol)
	if !ok {
		return quantity{}, r.syntaxError("expected an atom of UCUM, or a prefix and a metric atom,")
	}
	r.written.WriteString(code + text[len(symbol):])
	r.take(len(text))
	if exponent == 1 {
		return q, nil
	}
	return one().times(q, exponent), nil
}

// simple returns the quantity of a symbol, and its case-sensitive code. The symbol is an atom, or a prefix and a
// metric atom.
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
