package er7

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Charset is a character set by its name in a message header.
type Charset string

// Supported character sets.
const (
	ASCII  Charset = "ASCII"
	UTF8   Charset = "UNICODE UTF-8"
	Latin1 Charset = "8859/1"
	Latin9 Charset = "8859/15"
)

// windows1252 is assumed for a message that declares no character set and is not valid in [Options].Charset.
const windows1252 Charset = "WINDOWS-1252"

// charmaps maps the single-byte character sets other than ASCII to their decoders.
var charmaps = map[Charset]*charmap.Charmap{
	Latin1: charmap.ISO8859_1, "8859/2": charmap.ISO8859_2, "8859/3": charmap.ISO8859_3, "8859/4": charmap.ISO8859_4, "8859/5": charmap.ISO8859_5,
	"8859/6": charmap.ISO8859_6, "8859/7": charmap.ISO8859_7, "8859/8": charmap.ISO8859_8, "8859/9": charmap.ISO8859_9, Latin9: charmap.ISO8859_15,
	windows1252: charmap.Windows1252,
}

var re8859 = regexp.MustCompile(`^(?:ISO)?[ /_-]*8859[ /_-]*(\d{1,2})$`)

// charsetNames lists the character sets that charsetOf knows, for errors.
const charsetNames = "ASCII, 8859/1 to 8859/9, 8859/15, UNICODE UTF-8, UNICODE UTF-16, WINDOWS-1252"

// charsetOf returns the character set for a name in a header, in the standard's spelling or another common one.
// UTF-16 is returned as UTF-8, because [Parse] has already decoded it.
func charsetOf(name string) (Charset, bool) {
	name = strings.ToUpper(strings.TrimSpace(name))
	switch name {
	case "ASCII", "ISO IR6", "US-ASCII":
		return ASCII, true
	case "UNICODE UTF-8", "UTF-8", "UTF8", "UNICODE", "UNICODE UTF-16", "UTF-16", "UTF16", "UTF-16LE", "UTF-16BE":
		return UTF8, true
	case "LATIN1", "LATIN-1":
		return Latin1, true
	case "WINDOWS-1252", "WINDOWS1252", "CP1252", "CP-1252":
		return windows1252, true
	}
	if m := re8859.FindStringSubmatch(name); m != nil {
		c := Charset("8859/" + m[1])
		_, ok := charmaps[c]
		return c, ok
	}
	return "", false
}

// fromSixteenBits converts UTF-16 to UTF-8, and reports whether raw was UTF-16: it begins with a byte order mark or
// with a two-byte letter.
func fromSixteenBits(raw []byte) ([]byte, bool) {
	if len(raw) < 2 {
		return raw, false
	}
	order := unicode.LittleEndian
	switch {
	case raw[0] == 0xff && raw[1] == 0xfe, raw[0] != 0 && raw[0] < utf8.RuneSelf && raw[1] == 0:
	case raw[0] == 0xfe && raw[1] == 0xff, raw[0] == 0 && raw[1] != 0 && raw[1] < utf8.RuneSelf:
		order = unicode.BigEndian
	default:
		return raw, false
	}
	out, err := unicode.UTF16(order, unicode.UseBOM).NewDecoder().Bytes(raw)
	return out, err == nil
}

// indexInvalid returns the position of the first byte that is invalid in the character set, or -1.
func (c Charset) indexInvalid(text string) int {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return i
	}
	if charmaps[c] != nil {
		return -1
	}
	if c == ASCII {
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

// decode converts text of the character set to UTF-8. It replaces invalid bytes, which hexadecimal escapes can produce.
func (c Charset) decode(text string) string {
	letters := charmaps[c]
	if letters == nil {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(letters.DecodeByte(text[i]))
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
	letters := charmaps[c]
	if letters == nil {
		return "", false
	}
	b := make([]byte, 0, len(text))
	for _, r := range text {
		one, ok := letters.EncodeRune(r)
		if !ok {
			return "", false
		}
		b = append(b, one)
	}
	return string(b), true
}
