package er7

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// decode returns the part as text. Unknown escape sequences are kept. NUL is replaced.
func (p Part) decode() string {
	if p.raw == "" || p.Null() || p.syn == nil {
		return ""
	}
	esc := p.syn.Escape
	if esc == 0 || p.level == leaf && strings.IndexByte(p.raw, esc) < 0 {
		return p.syn.charset.decode(p.raw)
	}
	var b strings.Builder
	b.Grow(len(p.raw))
	text := p.raw
	for {
		i := strings.IndexByte(text, esc)
		if i < 0 {
			break
		}
		j := strings.IndexByte(text[i+1:], esc)
		if j < 0 {
			break
		}
		b.WriteString(text[:i])
		sequence := text[i+1 : i+1+j]
		if decoded, ok := p.syn.sequence(sequence); ok {
			b.WriteString(decoded)
			text = text[i+j+2:]
			continue
		}
		// The second escape character may begin a sequence.
		b.WriteString(text[i : i+1+j])
		text = text[i+1+j:]
	}
	b.WriteString(text)
	return strings.ReplaceAll(p.syn.charset.decode(b.String()), "\x00", "\ufffd")
}

// sequence returns the text that an escape sequence stands for, in the message's character set; false if the sequence
// is unknown.
func (s *syntax) sequence(q string) (string, bool) {
	one := func(c byte) (string, bool) {
		if c == 0 {
			return "", false
		}
		return string([]byte{c}), true
	}
	switch q {
	case "F":
		return one(s.Field)
	case "S":
		return one(s.Component)
	case "T":
		return one(s.Subcomponent)
	case "R":
		return one(s.Repetition)
	case "E":
		return one(s.Escape)
	case "P":
		return one(s.Truncation)
	case "H", "N": // highlighting begins, ends
		return "", true
	}
	switch {
	case q == "":
		return "", false
	case q[0] == 'X':
		b, err := hex.DecodeString(q[1:])
		return string(b), err == nil && len(b) > 0
	case q[0] == '.':
		return format(q[1:])
	}
	return "", false
}

// format returns the text that a formatting command (such as .br) stands for; false if the command is unknown.
func format(command string) (string, bool) {
	if len(command) < 2 {
		return "", false
	}
	argument := strings.TrimSpace(command[2:])
	switch command[:2] {
	case "br", "ce":
		return "\n", argument == ""
	case "fi", "nf":
		return "", argument == ""
	case "in", "ti":
		_, err := strconv.Atoi(argument)
		return "", err == nil
	case "sp", "sk":
		n := 1
		if argument != "" {
			var err error
			if n, err = strconv.Atoi(strings.TrimPrefix(argument, "+")); err != nil || n < 0 || n > 100 {
				return "", false
			}
		}
		if command[:2] == "sk" {
			return strings.Repeat(" ", n), true
		}
		return strings.Repeat("\n", n), true
	}
	return "", false
}

// escape appends text, escaped so that decode returns the same text. The text must be in the message's character set.
func (s *syntax) escape(b []byte, text string) []byte {
	if text == `""` {
		return s.hex(s.hex(b, '"'), '"')
	}
	for i := range len(text) {
		c := text[i]
		letter := byte(0)
		switch c {
		case 0: // not the delimiter that there is none of
		case s.Field:
			letter = 'F'
		case s.Component:
			letter = 'S'
		case s.Subcomponent:
			letter = 'T'
		case s.Repetition:
			letter = 'R'
		case s.Escape:
			letter = 'E'
		case s.Truncation:
			letter = 'P'
		}
		switch {
		case letter != 0:
			b = append(b, s.Escape, letter, s.Escape)
		case c == '\n':
			b = append(b, s.Escape, '.', 'b', 'r', s.Escape)
		case c < ' ' || c == 0x7f:
			b = s.hex(b, c)
		default:
			b = append(b, c)
		}
	}
	return b
}

func (s *syntax) hex(b []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(b, s.Escape, 'X', digits[c>>4], digits[c&15], s.Escape)
}
