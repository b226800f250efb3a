package er7

import (
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// SyntaxError is the error of a malformed message. It names the segment, the field and the broken rule, and contains
// no text of the message. It unwraps to healthlab.Invalid.
type SyntaxError struct {
	// Segment is the name of the segment; empty if it is unreadable.
	Segment string
	// Number is the position of the segment in the message, from 1; 0 if the error concerns the whole message.
	Number int
	// Field is the number of the field; 0 if the error concerns the whole segment.
	Field int
	// Problem is the broken rule.
	Problem string
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString("HL7 message: ")
	if e.Number > 0 {
		b.WriteString("segment " + strconv.Itoa(e.Number))
		if e.Segment != "" {
			b.WriteString(" (" + e.Segment)
			if e.Field > 0 {
				b.WriteString("-" + strconv.Itoa(e.Field))
			}
			b.WriteString(")")
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Unwrap returns healthlab.Invalid.
func (e *SyntaxError) Unwrap() error { return healthlab.Invalid }
