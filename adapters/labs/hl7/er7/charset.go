package er7

import (
	"strings"
	"unicode/utf8"
)

// Charset is a character set by its name in a message header.
type Charset string

// The supported character sets.
const (
	ASCII  Charset = "ASCII"
	UTF8   Charset = "UNICODE UTF-8"
	Latin1 Charset = "8859/1"
	Latin9 Charset = "8859/15"
)

// CharsetOf returns the character set of a name in a header, in the standard's
// spelling or in another that is often seen.
func CharsetOf(name string) (Charset, bool) {
	switch strings.ToUpper(strings.TrimSpace(name)) {
	case "ASCII", "ISO IR6", "US-ASCII":
		return ASCII, true
	case "UNICODE UTF-8", "UTF-8", "UTF8", "UNICODE":
		return UTF8, true
	case "8859/1", "ISO-8859-1", "ISO8859-1", "ISO 8859/1":
		return Latin1, true
	case "8859/15", "ISO-8859-15", "ISO8859-15", "ISO 8859/15":
		return Latin9, true
	}
	return "", false
}

// bad returns the place of the first byte that is no text in the set, or -1.
func (c Charset) bad(text string) int {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return i
	}
	switch c {
	case Latin1, Latin9:
		return -1
	case ASCII:
		return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	}
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// latin9 lists the letters in which ISO 8859-15 differs from ISO 8859-1.
const latin9 = "\u20ac\u0160\u0161\u017d\u017e\u0152\u0153\u0178"

const latin9Bytes = "\xa4\xa6\xa8\xb4\xb8\xbc\xbd\xbe"

// decode converts text of the character set to UTF-8. It replaces invalid bytes, which hexadecimal escapes can produce.
func (c Charset) decode(text string) string {
	if c != Latin1 && c != Latin9 {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	special := []rune(latin9)
	var b strings.Builder
	for i := range len(text) {
		r := rune(text[i])
		if j := strings.IndexByte(latin9Bytes, text[i]); c == Latin9 && j >= 0 {
			r = special[j]
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Carries reports whether the character set has all letters of a UTF-8 text.
func (c Charset) Carries(text string) bool {
	_, ok := c.encode(text)
	return ok
}

// encode converts UTF-8 to the character set. It returns false if a letter is missing in the set, or for NUL.
func (c Charset) encode(text string) (string, bool) {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return "", false
	}
	if c == UTF8 || strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text, true
	}
	if c == ASCII {
		return "", false
	}
	special := []rune(latin9)
	b := make([]byte, 0, len(text))
runes:
	for _, r := range text {
		if c == Latin9 {
			for j, s := range special {
				if r == s {
					b = append(b, latin9Bytes[j])
					continue runes
				}
				if r == rune(latin9Bytes[j]) {
					return "", false
				}
			}
		}
		if r > 0xff {
			return "", false
		}
		b = append(b, byte(r))
	}
	return string(b), true
}
