package er7

import (
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// Levels of parts, from the outermost in.
const (
	field uint8 = iota
	repetition
	component
	leaf
)

// Part is a field, a repetition, a component or a subcomponent. The zero Part is empty, and so are its parts.
type Part struct {
	healthlab.Private

	raw   string
	syn   *syntax
	level uint8
}

// Raw returns the part as it was read: escaped, in the message's character set.
func (p Part) Raw() string { return p.raw }

// Empty reports whether the part contains nothing.
func (p Part) Empty() bool { return p.raw == "" }

// Null reports whether the part is two quotation marks, by which a sender deletes a value.
func (p Part) Null() bool { return p.raw == `""` }

// separator returns the delimiter between the parts of a level; 0 if the message has none.
func (p Part) separator(level uint8) byte {
	if p.syn == nil {
		return 0
	}
	switch level {
	case field:
		return p.syn.Repetition
	case repetition:
		return p.syn.Component
	case component:
		return p.syn.Subcomponent
	}
	return 0
}

// at returns the n-th part, from 1, of the next level.
func (p Part) at(n int) Part {
	sep := p.separator(p.level)
	out := Part{syn: p.syn, level: min(p.level+1, leaf)}
	text := p.raw
	if n < 1 || sep == 0 && n > 1 {
		return out
	}
	if sep != 0 {
		for range n - 1 {
			i := strings.IndexByte(text, sep)
			if i < 0 {
				return out
			}
			text = text[i+1:]
		}
		if i := strings.IndexByte(text, sep); i >= 0 {
			text = text[:i]
		}
	}
	out.raw = text
	return out
}

// Len returns the number of parts of the next level: repetitions of a field, components of a repetition, subcomponents
// of a component. An empty part has none.
func (p Part) Len() int {
	if p.raw == "" {
		return 0
	}
	if sep := p.separator(p.level); sep != 0 {
		return strings.Count(p.raw, string(rune(sep))) + 1
	}
	return 1
}

// Repetition returns the n-th repetition of a field, from 1.
func (p Part) Repetition(n int) Part {
	if p.level > field {
		return Part{syn: p.syn, level: p.level}
	}
	return p.at(n)
}

// Repetitions returns the non-empty repetitions of a field.
func (p Part) Repetitions() []Part {
	var out []Part
	for i := range p.Len() {
		if r := p.Repetition(i + 1); !r.Empty() {
			out = append(out, r)
		}
	}
	return out
}

// Component returns the n-th component, from 1, of a repetition, or of the first repetition of a field.
func (p Part) Component(n int) Part {
	if p.level == field {
		p = p.at(1)
	}
	if p.level > repetition {
		return Part{syn: p.syn, level: leaf}
	}
	return p.at(n)
}

// Subcomponent returns the n-th subcomponent, from 1, of the first component of the part.
func (p Part) Subcomponent(n int) Part {
	for p.level < component {
		p = p.at(1)
	}
	if p.level > component {
		return Part{syn: p.syn, level: leaf}
	}
	return p.at(n)
}

// Text returns the part as UTF-8 text, with decoded escape sequences and without NUL. Of a part with subparts it
// returns the first subcomponent. A null part has no text.
func (p Part) Text() string {
	for p.level < leaf {
		p = p.at(1)
	}
	return p.decode()
}

// Whole returns the part as text including its delimiters. It is for texts in which senders do not escape delimiters.
func (p Part) Whole() string { return p.decode() }

// Plain returns all non-empty texts of the part, joined with by.
func (p Part) Plain(by string) string {
	if p.level == leaf {
		return p.decode()
	}
	var out []string
	for i := range p.Len() {
		if text := p.at(i + 1).Plain(by); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, by)
}
