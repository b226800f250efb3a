package wire

import (
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON text (RFC 8259) from memory. Its methods move pos past the text that they have read. After a
// syntax error nothing more is read.
type scanner struct {
	data  []byte
	pos   int
	fault *syntaxFault
}

type syntaxFault struct {
	code, msg string
	offset    int
}

func (s *scanner) broken(msg string) bool {
	return s.stop("json_invalid", msg)
}

func (s *scanner) stop(code, msg string) bool {
	if s.fault == nil {
		s.fault = &syntaxFault{code, msg, s.pos}
	}
	return false
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// skip reads the byte c, after white space. It returns false if another byte is next.
func (s *scanner) skip(c byte) bool {
	if s.peek() != c || s.pos >= len(s.data) {
		return false
	}
	s.pos++
	return true
}

// word reads the word w, which is true, false or null. It returns false after a syntax error.
func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return s.broken("is not JSON: a word other than true, false and null")
	}
	s.pos += len(w)
	return true
}

// number is the text of a JSON number with facts about its form.
type number struct {
	text  []byte
	whole bool // has neither fraction nor exponent
	huge  bool // the exponent has more than three digits
}

// number reads a number. The next byte is a minus or a digit.
func (s *scanner) number() (n number, ok bool) {
	start, data := s.pos, s.data
	i := s.pos
	if data[i] == '-' {
		i++
	}
	first := i
	i = digitsFrom(data, i)
	if i == first || (data[first] == '0' && i > first+1) {
		s.pos = i
		return n, s.broken("is not JSON: a malformed number")
	}
	n.whole = true
	if i < len(data) && data[i] == '.' {
		n.whole = false
		from := i + 1
		if i = digitsFrom(data, from); i == from {
			s.pos = i
			return n, s.broken("is not JSON: a malformed number")
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		n.whole = false
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		from := i
		if i = digitsFrom(data, from); i == from {
			s.pos = i
			return n, s.broken("is not JSON: a malformed number")
		}
		// The largest floats are near 1e308. A decimal with an exponent of millions is short to send and expensive to
		// compute.
		n.huge = i-from > 3
	}
	n.text = data[start:i]
	s.pos = i
	return n, true
}

func digitsFrom(data []byte, i int) int {
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	return i
}

// text is the content between the quotes of a JSON string.
type text struct {
	raw     []byte
	escaped bool // raw contains escapes
	bad     flaw // most serious flaw of the text
}

// flaw is a fault of a string that is otherwise valid JSON: NUL, or an escape or bytes that are not valid Unicode.
type flaw uint8

const (
	sound flaw = iota
	holdsNUL
	notUnicode
)

// plain marks the bytes that need no further check inside a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a string. The next byte is a quote.
func (s *scanner) text() (t text, ok bool) {
	data := s.data
	start := s.pos + 1
	i := start
	for {
		for i < len(data) && plain[data[i]] {
			i++
		}
		if i >= len(data) {
			s.pos = len(data)
			return t, s.broken("is not JSON: it ends inside a text")
		}
		switch c := data[i]; {
		case c == '"':
			t.raw = data[start:i]
			s.pos = i + 1
			return t, true
		case c == '\\':
			t.escaped = true
			n, bad := escape(data[i:])
			if n == 0 {
				s.pos = i
				return t, s.broken("is not JSON: a malformed escape in a text")
			}
			t.bad = max(t.bad, bad)
			i += n
		case c < 0x20:
			s.pos = i
			return t, s.broken("is not JSON: a control character in a text")
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				t.bad = notUnicode
			}
			i += n
		}
	}
}

// escape returns the length of the escape sequence at the start of b, and its flaw. The length is zero if the sequence
// is malformed.
func escape(b []byte) (n int, bad flaw) {
	if len(b) < 2 {
		return 0, sound
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, sound
	case 'u':
	default:
		return 0, sound
	}
	r, ok := hex4(b)
	switch {
	case !ok:
		return 0, sound
	case r == 0:
		return 6, holdsNUL
	case utf16.IsSurrogate(r):
		second, ok := hex4(b[6:])
		if !ok || utf16.DecodeRune(r, second) == utf8.RuneError {
			return 6, notUnicode
		}
		return 12, sound
	}
	return 6, sound
}

// hex4 reads an escape of the form \uXXXX at the start of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendPlain appends the text with its escapes resolved.
func (t text) appendPlain(dst []byte) []byte {
	if !t.escaped {
		return append(dst, t.raw...)
	}
	quoted := make([]byte, 0, len(t.raw)+2)
	quoted = append(append(append(quoted, '"'), t.raw...), '"')
	var plain string
	_ = json.Unmarshal(quoted, &plain) // the scanner has accepted it
	return append(dst, plain...)
}
