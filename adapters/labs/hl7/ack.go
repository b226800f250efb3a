package hl7

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// Codes of acknowledgements (MSA-1).
const (
	accepted = "AA"
	refused  = "AE" // the message is malformed, its content is wrong, or it could not be stored
	rejected = "AR" // the message type is not supported, the frame is unreadable, or the receiver is not ready
)

// Error codes of acknowledgements (HL7 table 0357).
const (
	codeSegmentSequence = "100"
	codeDataType        = "102"
	codeUnsupportedType = "200"
	codeUnknownKey      = "204"
	codeLocked          = "206"
	codeInternal        = "207"
)

var codeTexts = map[string]string{
	codeSegmentSequence: "Segment sequence error", codeDataType: "Data type error",
	codeUnsupportedType: "Unsupported message type", codeInternal: "Application internal error",
}

// answer returns an acknowledgement of m with code in MSA-1 and an ERR segment for each problem; nil if the sender
// wants none. If the sender wants an accept acknowledgement, the code is CA, CE or CR. m is nil if the message could
// not be read.
func (o *Options) answer(m *er7.Message, code string, problems ...error) []byte {
	out, err := o.answerIn(er7.ASCII, m, code, problems)
	if err != nil {
		// ASCII lacks letters of the sender's names, which the answer repeats.
		out, err = o.answerIn(er7.UTF8, m, code, problems)
	}
	if out == nil || err != nil {
		return nil
	}
	return out.Bytes()
}

func (o *Options) answerIn(cs er7.Charset, m *er7.Message, code string, problems []error) (*er7.Message, error) {
	b := er7.NewBuilder(er7.Standard(), cs)
	h := b.Header().Set(7, er7.FormatStamp(o.Now().In(o.Zone))).Set(9, "ACK")
	id, version := "", o.Version
	us := o.Us
	if m != nil {
		in := m.Header()
		us = Party{in.Field(5).Text(), in.Field(6).Text()}
		h.Set(5, in.Field(3).Text()).Set(6, in.Field(4).Text())
		id = m.ControlID()
		if v := in.Field(12).Text(); v != "" {
			version = v
		}
		if _, event := m.Type(); event != "" {
			h.Set(9, "ACK", event, "ACK")
		}
		accept, application := in.Field(15).Text(), in.Field(16).Text()
		if accept == "NE" && application == "NE" {
			return nil, nil
		}
		if accept != "" && accept != "NE" {
			code = "C" + code[1:] // the sender wants an accept acknowledgement: that the message arrived, not what became of it
		}
	}
	h.Set(3, us.Application).Set(4, us.Facility).
		Set(10, "A"+digestID([]byte(id), []byte(code), []byte(us.Application))).Set(11, o.Processing).Set(12, version)
	b.Add("MSA").Set(1, code).Set(2, id)
	for _, problem := range problems {
		err := b.Add("ERR").Set(4, "E")
		number := codeInternal
		var at *er7.SyntaxError
		var unsupported *unsupportedError
		switch {
		case errors.As(problem, &at):
			number = codeSegmentSequence
			if at.Field > 0 {
				number = codeDataType
				err.Set(2, at.Segment, fmt.Sprint(at.Number), fmt.Sprint(at.Field))
			}
			err.Set(8, at.Error())
		case errors.As(problem, &unsupported):
			number = codeUnsupportedType
		}
		err.Set(3, number, codeTexts[number], "HL70357")
	}
	return b.Build()
}

// unsupportedError is the error of a message of an unsupported kind.
type unsupportedError struct{}

func (*unsupportedError) Error() string {
	return "HL7 message: segment 1 (MSH-9): the message type must be one of " + strings.Join(messageTypes, ", ")
}

func (*unsupportedError) Unwrap() error { return healthlab.Invalid }

// acknowledgement is an answer of the laboratory.
type acknowledgement struct {
	code string
	// sample is the laboratory's number of the order, of a test that it accepts if it accepts one; empty if the answer
	// has none.
	sample string
	// errors holds the error codes of the ERR segments, and ORC-1 of refused tests.
	errors []string
	tests  []testAnswer
}

// testAnswer is the answer for one test: an ORC, with the codes of the OBR that follows it.
type testAnswer struct {
	refused bool
	codes   []string
	sample  string
}

// readAcknowledgement reads an acknowledgement: ACK, ORL or ORR.
func readAcknowledgement(m *er7.Message) acknowledgement {
	v := acknowledgement{code: m.Segment("MSA").Field(1).Text()}
	for s := range m.Segments() {
		switch s.Name() {
		case "ERR":
			code := s.Field(3).Text()
			if code == "" { // versions before 2.5
				code = s.Field(1).Component(4).Text()
			}
			v.errors = append(v.errors, code)
		case "ORC":
			control := s.Field(1).Text()
			t := testAnswer{refused: control == "UA" || control == "UC", sample: s.Field(3).Text()}
			if t.refused {
				v.errors = append(v.errors, control)
			}
			v.tests = append(v.tests, t)
		case "OBR":
			if len(v.tests) == 0 {
				v.tests = append(v.tests, testAnswer{})
			}
			t := &v.tests[len(v.tests)-1]
			t.sample = cmp.Or(t.sample, s.Field(3).Text())
			for _, c := range s.Field(4).Coded().Codes {
				t.codes = append(t.codes, c.Code)
			}
		}
	}
	for _, refused := range []bool{false, true} {
		for _, t := range v.tests {
			if t.refused == refused {
				v.sample = cmp.Or(v.sample, t.sample)
			}
		}
	}
	return v
}

// refusedTests returns the places of the ordered tests that the laboratory refuses, and whether it accepts the order
// without them. A refused test is found by its code, or else by its place if the answer has as many tests as the order;
// one that is not found is left out. The laboratory accepts the order if it accepts a test, or if its refusals name only
// some of the tests.
func (v acknowledgement) refusedTests(ordered []orderedTest, opts *Options) (refused []int, accepted bool) {
	named := true
	for i, answer := range v.tests {
		if !answer.refused {
			accepted = true
			continue
		}
		at := slices.IndexFunc(ordered, func(o orderedTest) bool {
			return heldTest{testIdentity: testIdentity{Codes: answer.codes}}.matches(o, opts)
		})
		named = named && at >= 0
		if at < 0 && len(v.tests) == len(ordered) {
			at = i
		}
		if at >= 0 && !slices.Contains(refused, at) {
			refused = append(refused, at)
		}
	}
	some := len(refused) < len(ordered)
	return refused, some && (accepted || named)
}

// hasErrorCode reports whether one of the error codes in the acknowledgement is among codes.
func (v acknowledgement) hasErrorCode(codes ...string) bool {
	for _, f := range v.errors {
		for _, c := range codes {
			if f == c {
				return true
			}
		}
	}
	return false
}

// codes lists the codes of the acknowledgement for an error: MSA-1, ORC-1 if it is a refusal, and ERR-3. It leaves out
// an ERR-3 that is not a number of three digits, because it may be any text.
func (v acknowledgement) codes() string {
	out := "MSA-1 is " + v.code
	for _, c := range slices.Compact(slices.Sorted(slices.Values(v.errors))) {
		switch {
		case c == "UA" || c == "UC":
			out += ", ORC-1 is " + c
		case errorNumber.MatchString(c):
			out += ", ERR-3 is " + c
		}
	}
	return out
}

// errorNumber matches the codes of HL7 table 0357.
var errorNumber = regexp.MustCompile(`^[0-9]{3}$`)

// err returns the error that the acknowledgement means; nil if the laboratory accepts the message.
func (v acknowledgement) err() error {
	switch v.code {
	case "AA", "CA":
		if v.hasErrorCode("UA", "UC") {
			return fmt.Errorf("%w: the laboratory answered that it cannot accept the order (%s)", healthlab.Invalid, v.codes())
		}
		return nil
	case "AE", "CE":
		if v.hasErrorCode(codeLocked, codeInternal) {
			return fmt.Errorf("%w: the laboratory reports an internal error or a locked record (%s)", healthlab.Unavailable, v.codes())
		}
		return fmt.Errorf("%w: the laboratory refuses the message (%s)", healthlab.Invalid, v.codes())
	case "AR", "CR":
		// The laboratory is busy, or not set up for the type, the version or the receiver, so the order stays open.
		return fmt.Errorf("%w: the laboratory rejects messages of this kind at the moment (%s)", healthlab.Unavailable, v.codes())
	}
	return fmt.Errorf("%w: MSA-1 in the answer of the laboratory must be AA, AE, AR, CA, CE or CR", healthlab.Unavailable)
}
