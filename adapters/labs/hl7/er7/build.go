package er7

import (
	"fmt"
	"strconv"

	"github.com/healthlab-dev/healthlab"
)

// Builder builds a new message. It escapes all texts. Not safe for concurrent use.
type Builder struct {
	syn  syntax
	segs []*SegmentBuilder
	err  error
}

// NewBuilder starts a message whose header contains the delimiters and, unless it is ASCII, the character set. The
// caller sets the other header fields. An empty charset means UTF-8.
func NewBuilder(d Delimiters, cs Charset) *Builder {
	if cs == "" {
		cs = UTF8
	}
	b := &Builder{syn: syntax{d, cs}}
	h := b.Add("MSH")
	h.fields = []string{string([]byte{d.Field}), d.encoding()}
	if cs != ASCII {
		h.Set(18, string(cs))
	}
	if d.Escape == 0 || d.Subcomponent == 0 {
		b.err = fmt.Errorf("%w: HL7 message: Delimiters must have all of Field, Component, Repetition, Escape and Subcomponent", healthlab.Invalid)
	}
	return b
}

// Header returns the segment MSH.
func (b *Builder) Header() *SegmentBuilder { return b.segs[0] }

// Add appends a segment.
func (b *Builder) Add(name string) *SegmentBuilder {
	s := &SegmentBuilder{b: b, name: name}
	b.segs = append(b.segs, s)
	return s
}

// Build returns the message. It returns Invalid with segment and field if a letter is not in the character set.
func (b *Builder) Build() (*Message, error) {
	if b.err != nil {
		return nil, b.err
	}
	var out []byte
	for _, s := range b.segs {
		out = append(out, s.name...)
		fields := s.fields
		if s.name == "MSH" {
			fields = fields[1:]
		}
		for _, f := range fields {
			out = append(append(out, b.syn.Field), f...)
		}
		out = append(out, '\r')
	}
	return Parse(out, &Options{MaxBytes: len(out), Charset: b.syn.charset})
}

// SegmentBuilder builds one segment.
type SegmentBuilder struct {
	b      *Builder
	name   string
	fields []string // encoded fields, from the first on
}

// Set sets a field to one repetition with these components. Trailing empty components are omitted. The first two fields
// of a header must not be set.
func (s *SegmentBuilder) Set(field int, components ...string) *SegmentBuilder {
	s.fields = s.put(field, "", s.encode(field, components))
	return s
}

// SetParts is [SegmentBuilder.Set] with subcomponents.
func (s *SegmentBuilder) SetParts(field int, components ...[]string) *SegmentBuilder {
	s.fields = s.put(field, "", s.encodeParts(field, components))
	return s
}

// Repeat appends a repetition to a field. If the field is empty, it sets the first repetition.
func (s *SegmentBuilder) Repeat(field int, components ...string) *SegmentBuilder {
	before := ""
	if field <= len(s.fields) && s.fields[field-1] != "" {
		before = s.fields[field-1] + string([]byte{s.b.syn.Repetition})
	}
	s.fields = s.put(field, before, s.encode(field, components))
	return s
}

// put sets a field to before followed by text, and returns all fields. It adds no empty field at the end.
func (s *SegmentBuilder) put(field int, before, text string) []string {
	for len(s.fields) < field {
		if text == "" {
			return s.fields
		}
		s.fields = append(s.fields, "")
	}
	s.fields[field-1] = before + text
	return s.fields
}

func (s *SegmentBuilder) encode(field int, components []string) string {
	parts := make([][]string, len(components))
	for i, c := range components {
		parts[i] = []string{c}
	}
	return s.encodeParts(field, parts)
}

func (s *SegmentBuilder) encodeParts(field int, components [][]string) string {
	var out []byte
	gap := 0
	for i, c := range components {
		text := s.encodeOne(field, c)
		if i > 0 {
			gap++
		}
		if len(text) == 0 {
			continue
		}
		for ; gap > 0; gap-- {
			out = append(out, s.b.syn.Component)
		}
		out = append(out, text...)
	}
	return string(out)
}

func (s *SegmentBuilder) encodeOne(field int, subcomponents []string) []byte {
	var out []byte
	gap := 0
	for i, text := range subcomponents {
		if i > 0 {
			gap++
		}
		if text == "" {
			continue
		}
		for ; gap > 0; gap-- {
			out = append(out, s.b.syn.Subcomponent)
		}
		encoded, ok := s.b.syn.charset.encode(text)
		if !ok && s.b.err == nil {
			s.b.err = &SyntaxError{Segment: s.name, Number: len(s.b.segs), Field: field, Problem: "must have only letters of the character set of the message (" + string(s.b.syn.charset) + "); UNICODE UTF-8 has all letters"}
		}
		out = s.b.syn.escape(out, encoded)
	}
	return out
}

// SetNumber sets a field to a whole number.
func (s *SegmentBuilder) SetNumber(field, n int) *SegmentBuilder {
	return s.Set(field, strconv.Itoa(n))
}
