package er7

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Default limits of messages and files.
const (
	DefaultMaxBytes    = 16 << 20
	DefaultMaxSegments = 100_000
)

// Options adjusts reading. The zero value, and nil, mean the defaults.
type Options struct {
	// MaxBytes is the largest message or file. Default [DefaultMaxBytes].
	MaxBytes int
	// MaxSegments is the largest number of segments of a message or file. Default [DefaultMaxSegments].
	MaxSegments int
	// Charset is the character set of messages that declare none. Default [UTF8].
	Charset Charset
}

func (o *Options) withDefaults() Options {
	out := Options{MaxBytes: DefaultMaxBytes, MaxSegments: DefaultMaxSegments, Charset: UTF8}
	if o == nil {
		return out
	}
	if o.MaxBytes > 0 {
		out.MaxBytes = o.MaxBytes
	}
	if o.MaxSegments > 0 {
		out.MaxSegments = o.MaxSegments
	}
	if o.Charset != "" {
		out.Charset = o.Charset
	}
	return out
}

// Message is a parsed message. It is immutable and safe for concurrent use.
type Message struct {
	healthlab.Private

	lead string // text before the header: a byte order mark, blank lines
	wide []byte // the message as read, if it was in UTF-16
	segs []Segment
	syn  *syntax
}

// syntax holds the delimiters and character set of a message.
type syntax struct {
	Delimiters
	charset Charset
}

// Parse parses one message. Any line ending is accepted. UTF-16 is recognised by a byte order mark or its first
// letter, and decoded. If a message declares no character set and [Options] assumes UTF-8, text that is not UTF-8 is
// read as Windows-1252, which contains the letters of ISO 8859-1. A byte order mark before the message, and blank
// lines and control characters after it, are kept. The error is a [SyntaxError].
func Parse(raw []byte, o *Options) (*Message, error) {
	opts := o.withDefaults()
	text, wide := fromSixteenBits(raw)
	lead, lines, err := splitLines(text, opts)
	if err != nil {
		return nil, err
	}
	m, rest, err := message(lines, 1, opts)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, &SyntaxError{Number: len(m.segs) + 1, Segment: rest[0].name(), Problem: "must not follow a message: Parse reads one message, ParseBatch a file with several"}
	}
	if m.lead = lead; wide {
		m.wide = slices.Clone(raw)
	}
	return m, nil
}

// message reads a message from lines, and returns the lines after it, even if the message is malformed. first is the
// number of its first line.
func message(lines []line, first int, opts Options) (*Message, []line, error) {
	if lines[0].name() != "MSH" {
		return nil, nil, &SyntaxError{Number: first, Problem: "must be MSH, the first segment of a message"}
	}
	n := 1
	for n < len(lines) && !isEnvelope(lines[n].name()) {
		n++
	}
	d, problem, field := delimitersOf(lines[0].text)
	if problem != "" {
		return nil, lines[n:], &SyntaxError{Segment: "MSH", Number: first, Field: field, Problem: problem}
	}
	m := &Message{syn: &syntax{d, opts.Charset}, segs: make([]Segment, n)}
	for i, l := range lines[:n] {
		if err := l.check(d.Field, first+i); err != nil {
			return nil, lines[n:], err
		}
		m.segs[i] = Segment{raw: l.text, end: l.end, number: i + 1, syn: m.syn}
	}
	if declared := m.segs[0].Field(18).Repetition(1).Component(1); !declared.Empty() {
		cs, ok := charsetOf(declared.raw)
		if !ok {
			return nil, lines[n:], &SyntaxError{Segment: "MSH", Number: first, Field: 18, Problem: "must be one of these character sets: " + charsetNames}
		}
		m.syn.charset = cs
	} else if opts.Charset == UTF8 && slices.ContainsFunc(m.segs, func(s Segment) bool { return !utf8.ValidString(s.raw) }) {
		m.syn.charset = windows1252
	}
	for i := range m.segs {
		if err := m.segs[i].checkText(first + i); err != nil {
			return nil, lines[n:], err
		}
	}
	return m, lines[n:], nil
}

// isEnvelope reports whether a segment with this name begins or ends a message, a batch or a file, so that it cannot be
// inside a message.
func isEnvelope(name string) bool {
	switch name {
	case "MSH", "FHS", "BHS", "BTS", "FTS":
		return true
	}
	return false
}

// Append appends the message to b exactly as it was read.
func (m *Message) Append(b []byte) []byte {
	if m.wide != nil {
		return append(b, m.wide...)
	}
	b = append(b, m.lead...)
	for _, s := range m.segs {
		b = append(append(b, s.raw...), s.end...)
	}
	return b
}

// Bytes returns the message exactly as it was read.
func (m *Message) Bytes() []byte { return m.Append(nil) }

// Delimiters returns the delimiters declared in the header.
func (m *Message) Delimiters() Delimiters { return m.syn.Delimiters }

// Charset returns the character set in which the text of the message is read.
func (m *Message) Charset() Charset { return m.syn.charset }

// Len returns the number of segments.
func (m *Message) Len() int { return len(m.segs) }

// Segments returns the segments in order, the header first.
func (m *Message) Segments() iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		for _, s := range m.segs {
			if !yield(s) {
				return
			}
		}
	}
}

// Segment returns the first segment with a name; an empty one if there is none.
func (m *Message) Segment(name string) Segment {
	for _, s := range m.segs {
		if s.Name() == name {
			return s
		}
	}
	return Segment{syn: m.syn}
}

// Header returns the segment MSH.
func (m *Message) Header() Segment { return m.segs[0] }

// Type returns the message code and the trigger event, such as ORU and R01.
func (m *Message) Type() (code, event string) {
	t := m.segs[0].Field(9)
	return t.Component(1).Text(), t.Component(2).Text()
}

// ControlID returns the control id of the message.
func (m *Message) ControlID() string { return m.segs[0].Field(10).Text() }

// Segment is one line of a message. The zero Segment is empty.
type Segment struct {
	healthlab.Private

	raw, end string
	number   int
	syn      *syntax
}

// Name returns the three characters of the segment's name; empty for an absent segment.
func (s Segment) Name() string {
	if len(s.raw) < 3 {
		return ""
	}
	return s.raw[:3]
}

// Number returns the position of the segment in the message, from 1; 0 for an absent segment.
func (s Segment) Number() int { return s.number }

// Raw returns the segment as it was read, without the line end.
func (s Segment) Raw() string { return s.raw }

// header reports whether the first field of the segment is the separator itself.
func (s Segment) header() bool {
	switch s.Name() {
	case "MSH", "FHS", "BHS":
		return true
	}
	return false
}

// Len returns the number of the last field of the segment, empty or not.
func (s Segment) Len() int {
	if s.raw == "" {
		return 0
	}
	n := strings.Count(s.raw, string(rune(s.syn.Field)))
	if s.header() {
		n++
	}
	return n
}

// Field returns a field by its number, from 1, as the standard counts: in a header
// the first field is the separator and the second the encoding characters.
func (s Segment) Field(n int) Part {
	if n < 1 || len(s.raw) < 4 {
		return Part{syn: s.syn}
	}
	text := s.raw[4:]
	if s.header() {
		if n == 1 {
			return Part{raw: s.raw[3:4], syn: s.syn, level: leaf}
		}
		n--
	}
	for range n - 1 {
		i := strings.IndexByte(text, s.syn.Field)
		if i < 0 {
			return Part{syn: s.syn}
		}
		text = text[i+1:]
	}
	if i := strings.IndexByte(text, s.syn.Field); i >= 0 {
		text = text[:i]
	}
	if s.header() && n == 1 {
		return Part{raw: text, syn: s.syn, level: leaf}
	}
	return Part{raw: text, syn: s.syn, level: field}
}

// checkText returns the error of the first byte that is invalid in the message's character set.
func (s Segment) checkText(number int) error {
	bad := s.syn.charset.indexInvalid(s.raw)
	if bad < 0 {
		return nil
	}
	n := strings.Count(s.raw[:bad], string(rune(s.syn.Field)))
	if s.header() {
		n++
	}
	return &SyntaxError{Segment: s.Name(), Number: number, Field: n, Problem: "must be text in the character set of the message (" + string(s.syn.charset) + "), without NUL"}
}
