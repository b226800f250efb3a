package er7

import (
	"bytes"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// Batch is a file of messages, with or without HL7 batch envelopes.
type Batch struct {
	healthlab.Private

	lead  string
	wide  []byte // the file as read, if it was in UTF-16
	items []Item
}

// Item is one message of a batch, or one segment of its envelope: FHS, BHS, BTS or FTS. Exactly one of Message,
// Envelope and Err is set.
type Item struct {
	Message  *Message
	Envelope Segment
	// Err is the [SyntaxError] of a malformed message or stray text, and Raw its text.
	Err error
	Raw []byte
}

// IsBatch reports whether text begins with the envelope of a batch or of a file.
func IsBatch(raw []byte) bool {
	raw, _ = fromSixteenBits(raw)
	text := bytes.TrimLeft(bytes.TrimPrefix(raw, []byte(byteOrderMark)), "\r\n\t\x0b ")
	return bytes.HasPrefix(text, []byte("FHS")) || bytes.HasPrefix(text, []byte("BHS"))
}

// ParseBatch reads a file with any number of messages. The limits of the options hold for the whole file. A message
// or envelope segment that is malformed, and segments outside of a message, become an [Item] with an error; the
// others are read. A line that is no segment ends a message that has a patient; the segments that follow are outside
// of a message. The error is a [SyntaxError] if no message can be read; its Number counts the segments of the file.
func ParseBatch(raw []byte, o *Options) (*Batch, error) {
	opts := o.withDefaults()
	text, wide := fromSixteenBits(raw)
	lead, lines, err := splitLines(text, opts)
	if err != nil {
		return nil, err
	}
	b := &Batch{lead: lead}
	if wide {
		b.wide = slices.Clone(raw)
	}
	envelope := &syntax{Standard(), opts.Charset}
	for number := 1; len(lines) > 0; {
		l := lines[0]
		bad := func(err error, n int) {
			b.items = append(b.items, Item{Err: err, Raw: joinLines(lines[:n])})
			number, lines = number+n, lines[n:]
		}
		switch name := l.name(); {
		case name == "MSH":
			n := messageLen(lines)
			m, _, err := message(lines[:n], number, opts)
			if err != nil {
				bad(err, n)
				continue
			}
			b.items = append(b.items, Item{Message: m})
			number, lines = number+n, lines[n:]
			continue
		case name == "FHS" || name == "BHS":
			d, problem, field := delimitersOf(l.text)
			if problem != "" {
				bad(&SyntaxError{Segment: name, Number: number, Field: field, Problem: problem}, 1)
				continue
			}
			envelope = &syntax{d, opts.Charset}
		case !isEnvelope(name):
			n := 1
			for n < len(lines) && !isEnvelope(lines[n].name()) {
				n++
			}
			bad(&SyntaxError{Number: number, Segment: name, Problem: "must be a segment of a message, which begins with MSH"}, n)
			continue
		}
		s := Segment{raw: l.text, end: l.end, number: number, syn: envelope}
		err := l.check(envelope.Field, number)
		if err == nil {
			err = s.checkText(number)
		}
		if err != nil {
			bad(err, 1)
			continue
		}
		b.items = append(b.items, Item{Envelope: s})
		number, lines = number+1, lines[1:]
	}
	if errs := b.Errors(); len(errs) > 0 && len(b.Messages()) == 0 {
		return nil, errs[0]
	}
	return b, nil
}

// messageLen returns the number of lines of the message that starts at the first line. A line that is not a segment
// ends a message that already has a patient, because the line is the rest of another message.
func messageLen(lines []line) int {
	separator, patient := byte('|'), false
	if header := lines[0].text; len(header) > 3 {
		separator = header[3]
	}
	for n := 1; n < len(lines); n++ {
		name := lines[n].name()
		if isEnvelope(name) || patient && lines[n].check(separator, n) != nil {
			return n
		}
		patient = patient || name == "PID"
	}
	return len(lines)
}

func joinLines(lines []line) []byte {
	var out []byte
	for _, l := range lines {
		out = append(append(out, l.text...), l.end...)
	}
	return out
}

// Items returns messages and envelopes in order.
func (b *Batch) Items() []Item { return b.items }

// Messages returns the messages in order.
func (b *Batch) Messages() []*Message {
	var out []*Message
	for _, i := range b.items {
		if i.Message != nil {
			out = append(out, i.Message)
		}
	}
	return out
}

// Errors returns the errors of the parts that cannot be read, in order.
func (b *Batch) Errors() []error {
	var out []error
	for _, i := range b.items {
		if i.Err != nil {
			out = append(out, i.Err)
		}
	}
	return out
}

// Append appends the file to p exactly as it was read.
func (b *Batch) Append(p []byte) []byte {
	if b.wide != nil {
		return append(p, b.wide...)
	}
	p = append(p, b.lead...)
	for _, i := range b.items {
		switch {
		case i.Message != nil:
			p = i.Message.Append(p)
		case i.Err != nil:
			p = append(p, i.Raw...)
		default:
			p = append(append(p, i.Envelope.raw...), i.Envelope.end...)
		}
	}
	return p
}
