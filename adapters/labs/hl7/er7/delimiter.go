package er7

import "strings"

// Delimiters are the delimiters that a message header declares. Zero means that the message has none of that kind.
type Delimiters struct {
	Field, Component, Repetition, Escape, Subcomponent byte
	// Truncation marks truncated text; since version 2.7.
	Truncation byte
}

// Standard returns the delimiters that HL7 recommends: |^~\&.
func Standard() Delimiters {
	return Delimiters{Field: '|', Component: '^', Repetition: '~', Escape: '\\', Subcomponent: '&'}
}

// encoding returns the encoding characters as in the second field of a header (MSH-2).
func (d Delimiters) encoding() string {
	var b strings.Builder
	for _, c := range []byte{d.Component, d.Repetition, d.Escape, d.Subcomponent, d.Truncation} {
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}

// delimitersOf reads the delimiters of a header segment (MSH, FHS or BHS). If the delimiters are invalid, it also
// returns the broken rule and the number of the field; otherwise "" and 0.
func delimitersOf(header string) (Delimiters, string, int) {
	if len(header) < 4 {
		return Delimiters{}, "the field separator is missing", 1
	}
	d := Delimiters{Field: header[3]}
	if !delimiter(d.Field) {
		return d, "the field separator is a printable character that is no letter and no digit", 1
	}
	encoding, _, _ := strings.Cut(header[4:], header[3:4])
	if encoding == "" || len(encoding) > 5 {
		return d, "there are one to five encoding characters", 2
	}
	seen := []byte{d.Field}
	for i, place := range []*byte{&d.Component, &d.Repetition, &d.Escape, &d.Subcomponent, &d.Truncation} {
		if i == len(encoding) {
			break
		}
		c := encoding[i]
		if !delimiter(c) {
			return d, "an encoding character is a printable character that is no letter and no digit", 2
		}
		if strings.IndexByte(string(seen), c) >= 0 {
			return d, "the delimiters differ from one another", 2
		}
		seen = append(seen, c)
		*place = c
	}
	return d, "", 0
}

func delimiter(c byte) bool {
	return c > ' ' && c < 0x7f && !upper(c) && !digit(c) && (c < 'a' || c > 'z')
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }
