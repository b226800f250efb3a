package fileimport

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// utf8BOM is the byte order mark of UTF-8.
var utf8BOM = []byte("\xef\xbb\xbf")

// utf8Encoding reports whether the named encoding is a subset of UTF-8.
func utf8Encoding(name string) bool {
	switch strings.ToLower(name) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return true
	}
	return false
}

// charsetOf returns the encoding with a declared name; nil if it is not supported. A declaration of UTF-16 in a
// single-byte text is treated as UTF-8, because UTF-16 was detected before.
func charsetOf(name string) encoding.Encoding {
	switch strings.ToLower(name) {
	case "iso-8859-1", "latin1", "latin-1", "iso_8859-1", "iso8859-1", "windows-1252", "cp1252":
		return charmap.Windows1252
	case "iso-8859-15", "latin-9":
		return charmap.ISO8859_15
	case "utf-16", "utf-16le", "utf-16be", "unicode":
		return encoding.Nop
	}
	return nil
}

// utf16EncodingOf returns the encoding of a UTF-16 text by its byte order mark or by the zero bytes in its first two
// characters. It returns nil for any other text.
func utf16EncodingOf(head []byte) encoding.Encoding {
	plain := func(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }
	switch {
	case len(head) < 4:
		return nil
	case head[0] == 0xff && head[1] == 0xfe, plain(head[0]) && head[1] == 0 && plain(head[2]) && head[3] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case head[0] == 0xfe && head[1] == 0xff, head[0] == 0 && plain(head[1]) && head[2] == 0 && plain(head[3]):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	}
	return nil
}

// utf8Cell returns the text of a cell in UTF-8. CSV declares no encoding, so text that is not valid UTF-8 is decoded as
// windows-1252.
func utf8Cell(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	out, err := charmap.Windows1252.NewDecoder().String(text)
	if err != nil {
		return strings.ToValidUTF8(text, "")
	}
	return out
}

// encodingOf returns the encoding of a text by its first bytes and its XML declaration; nil for UTF-8.
func encodingOf(head []byte) encoding.Encoding {
	if wide := utf16EncodingOf(head); wide != nil {
		return wide
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), " \t\r\n")
	if bytes.HasPrefix(text, []byte("<?xml")) && !bytes.HasPrefix(head, utf8BOM) {
		declaration, _, found := bytes.Cut(text, []byte("?>"))
		if name := declared(declaration, "encoding"); found && !utf8Encoding(name) {
			if e := charsetOf(name); e != encoding.Nop {
				return e
			}
		}
	}
	return nil
}

// utf8Of returns a text in UTF-8.
func utf8Of(data []byte) []byte {
	e := encodingOf(data[:min(len(data), detectBytes)])
	if e == nil {
		return data
	}
	out, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return data
	}
	return out
}
