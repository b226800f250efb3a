package fileimport

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mostReference is the length of the longest supported character or entity reference.
const mostReference = 12

// reference returns the length of the reference at the start of b; 0 if it is invalid.
func reference(b []byte) int {
	n := bytes.IndexByte(b[:min(len(b), mostReference)], ';')
	if n < 2 || referenced(b[1:n]) < 0 {
		return 0
	}
	return n + 1
}

// referenced returns the character that an XML reference means, or -1. name is the reference without its & and ;.
func referenced(name []byte) rune {
	switch string(name) {
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "amp":
		return '&'
	case "quot":
		return '"'
	case "apos":
		return '\''
	}
	if len(name) < 2 || name[0] != '#' {
		return -1
	}
	digits, base := name[1:], 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(string(digits), base, 32)
	if err != nil || v > utf8.MaxRune || !charAllowed(rune(v)) {
		return -1
	}
	return rune(v)
}

func charAllowed(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff ||
		r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= utf8.MaxRune
}

// runeLen returns the length of the character at the start of b; 0 if it is invalid UTF-8 or not allowed in XML.
func runeLen(b []byte) int {
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n <= 1 || !charAllowed(r) {
		return 0
	}
	return n
}

func localName[T string | []byte](name T) string {
	s := string(name)
	return s[strings.IndexByte(s, ':')+1:]
}

// Classes of bytes in a text.
const (
	plain  = iota // a character that is not markup
	markup        // < & > and quotes
	multi         // a byte of a multi-byte character
	banned        // a control character
)

var byteClass, nameByte, spaceByte = tables()

func tables() (class [256]uint8, name, space [256]bool) {
	for c := range 256 {
		switch {
		case c >= utf8.RuneSelf:
			class[c] = multi
			name[c] = true
		case c == '<' || c == '&' || c == '>' || c == '"' || c == '\'':
			class[c] = markup
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			space[c] = true
		case c < ' ':
			class[c] = banned
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '_', c == ':', c == '-', c == '.':
			name[c] = true
		}
	}
	return class, name, space
}

// declared returns the value of a pseudo-attribute of an XML declaration.
func declared(b []byte, name string) string {
	_, rest, found := bytes.Cut(b, []byte(name))
	if !found {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if len(rest) == 0 || rest[0] != '=' {
		return ""
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	value, _, _ := bytes.Cut(rest[1:], rest[:1])
	return string(value)
}

// documentType returns the length of the rest of a document type declaration. The declaration ends at its >, or with an
// internal subset at the first ]> outside of comments and quotes. It does not parse the declarations inside.
func documentType(b []byte) (int, error) {
	subset := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"' || c == '\'':
			n := bytes.IndexByte(b[i+1:], c)
			if n < 0 {
				return 0, errMore
			}
			i += n + 1
		case subset && bytes.HasPrefix(b[i:], []byte("<!--")):
			n := bytes.Index(b[i+4:], []byte("-->"))
			if n < 0 {
				return 0, errMore
			}
			i += 4 + n + 2
		case c == '[':
			subset = true
		case c == ']':
			rest := bytes.TrimLeft(b[i+1:], " \t\r\n")
			if len(rest) == 0 {
				return 0, errMore
			}
			if rest[0] == '>' {
				return len(b) - len(rest) + 1, nil
			}
		case c == '>' && !subset:
			return i + 1, nil
		}
	}
	return 0, errMore
}
