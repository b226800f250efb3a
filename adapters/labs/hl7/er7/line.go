package er7

import (
	"fmt"
	"strings"
)

// line is the text of a segment before its delimiters are known.
type line struct{ text, end string }

func (l line) name() string {
	if !named(l.text) {
		return ""
	}
	return l.text[:3]
}

func named(s string) bool {
	return len(s) >= 3 && upper(s[0]) && (upper(s[1]) || digit(s[1])) && (upper(s[2]) || digit(s[2]))
}

// check returns the syntax error of a line that is not a segment.
func (l line) check(separator byte, number int) error {
	if !named(l.text) {
		return &SyntaxError{Number: number, Problem: "must begin with a segment name: a capital letter, then two capital letters or digits"}
	}
	if len(l.text) > 3 && l.text[3] != separator {
		return &SyntaxError{Segment: l.text[:3], Number: number, Problem: "the segment name must be followed by the field separator of the message (MSH-1)"}
	}
	return nil
}

const byteOrderMark = "\xef\xbb\xbf"

// splitLines splits raw into at least one line. lead is the byte order mark and the blank characters before the first
// line. lead and lines together contain all bytes of raw.
func splitLines(raw []byte, opts Options) (lead string, lines []line, err error) {
	if len(raw) > opts.MaxBytes {
		return "", nil, &SyntaxError{Problem: fmt.Sprintf("must have at most %d bytes", opts.MaxBytes)}
	}
	text := string(raw)
	start := 0
	if strings.HasPrefix(text, byteOrderMark) {
		start = len(byteOrderMark)
	}
	for start < len(text) && blank(text[start]) {
		start++
	}
	if start == len(text) {
		return "", nil, &SyntaxError{Problem: "must not be empty"}
	}
	lead, text = text[:start], text[start:]
	body := strings.TrimRight(text, trailing)
	if body == "" {
		return "", nil, &SyntaxError{Problem: "must not be empty"}
	}
	tail := text[len(body):]
	newlines := !carriageReturns(text)
	for body != "" {
		n := lineLen(body, newlines)
		end := n
		for end < len(body) && (body[end] == '\r' || body[end] == '\n') {
			end++
		}
		if len(lines) == opts.MaxSegments {
			return "", nil, &SyntaxError{Number: len(lines) + 1, Problem: fmt.Sprintf("exceeds the limit of %d segments", opts.MaxSegments)}
		}
		lines = append(lines, line{body[:n], body[n:end]})
		body = body[end:]
	}
	lines[len(lines)-1].end = tail
	return lead, lines, nil
}

func carriageReturns(text string) bool {
	i := strings.IndexAny(text, "\r\n")
	return i >= 0 && text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n')
}

// lineLen returns the length of the first line without its line end. If newlines is false, a line feed ends a line
// only before a segment name or at the end of the text.
func lineLen(text string, newlines bool) int {
	from := 0
	for {
		i := strings.IndexAny(text[from:], "\r\n")
		if i < 0 {
			return len(text)
		}
		i += from
		if newlines || text[i] == '\r' || opens(text[i+1:]) {
			return i
		}
		from = i + 1 // a line feed inside a field
	}
}

func opens(text string) bool {
	return text == "" || named(text) && (len(text) == 3 || delimiter(text[3]) || text[3] == '\r' || text[3] == '\n')
}

// trailing lists the characters that may follow the last segment.
const trailing = "\x00\x0b\x1a\x1c\r\n"

func blank(c byte) bool { return c == '\r' || c == '\n' || c == ' ' || c == '\t' || c == '\x0b' }
