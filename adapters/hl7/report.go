package hl7

import (
	"fmt"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
)

// Incoming is what a result message says. Printing or logging it shows nothing.
type Incoming struct {
	// ControlID is what the laboratory calls the message, and Sent when it wrote it;
	// zero if it does not say.
	ControlID string
	Sent      time.Time
	// Tests are the reports of the message, one for each OBR, in order.
	Tests []TestReport
}

// TestReport is what a message says of one test.
type TestReport struct {
	// Segment is the number of its OBR in the message.
	Segment int
	// Patient is whom the results are of, as far as the message says.
	Patient Patient
	// Head is what is known of the report as a whole.
	Head orders.ResultsMetadata
	// Numbers are the names of the order it belongs to: the placer order numbers of OBR
	// and ORC or, without them, of the order that it came from. There are two where the
	// message contradicts itself.
	Numbers []string
	// Filler is the laboratory's number.
	Filler string
	// Codes are what the laboratory calls the test, and Name in words.
	Codes []string
	Name  string
	// Status is that of the report: P, F, C, X and so on.
	Status string
	// Control and OrderStatus are those of the order (ORC-1; ORC-25, else ORC-5).
	Control, OrderStatus string
	// At is when the results were reported or changed.
	At time.Time
	// Collected, Received: of the sample; nil if not known.
	Collected, Received *orders.TimestampWithOffset
	Sample              string
	Notes               string
	Observations        []Observation
	// Documents came with the test; Withdrawn: the laboratory took one back.
	Documents    []Document
	Withdrawn    bool
	Laboratories map[string]orders.PerformingLaboratory
	CLIA         string
}

// Observation is one result of a test, or the news that there is none.
type Observation struct {
	// Key tells it from the others of its test.
	Key string
	// Status is that of the observation: P, F, C, X, D and so on.
	Status string
	// Result is what was measured; without a text if there is nothing.
	Result orders.LabResult
}

// Read reads a result message (ORU, OUL) into plain values. Options may be nil.
// Invalid if it is no such message, or not one that can be understood.
func Read(m *er7.Message, o *Options) (Incoming, error) {
	opts := o.withDefaults()
	code, _ := m.Type()
	switch code {
	case "ORU", "OUL", "ORM", "OML", "OSU", "ORL", "ORR":
	default:
		return Incoming{}, fmt.Errorf("read HL7 results: %w", &unsupportedError{})
	}
	r := &reader{opts: &opts, in: Incoming{ControlID: m.ControlID()}}
	r.in.Sent, _ = stamp(m.Header().Field(7), opts.Zone)
	r.sender = optional(m.Header().Field(4).Text())
	r.head.Laboratory = r.sender
	for s := range m.Segments() {
		if err := r.segment(s); err != nil {
			return Incoming{}, fmt.Errorf("read HL7 results: %w", err)
		}
	}
	r.alone()
	return r.in, nil
}

// reader walks over the segments of a message.
type reader struct {
	opts   *Options
	in     Incoming
	sender *string
	// patient and head are those of the patient whose tests come next.
	patient Patient
	head    orders.ResultsMetadata
	orc     er7.Segment
	open    bool        // no OBR has followed the ORC yet
	spm     er7.Segment // of OUL messages, before the OBR
	seen    map[string]int
	// between is set after a patient and before the first test.
	between bool
	// note is where an NTE goes.
	note *string
}

func (r *reader) test() *TestReport {
	if len(r.in.Tests) == 0 || r.between {
		return nil
	}
	return &r.in.Tests[len(r.in.Tests)-1]
}

func (r *reader) segment(s er7.Segment) error {
	switch s.Name() {
	case "PID":
		r.alone()
		r.person(s)
	case "ORC":
		r.alone()
		r.orc, r.note, r.open = s, nil, true
	case "OBR":
		r.begin(s)
	case "OBX":
		return r.observation(s)
	case "SPM":
		r.specimen(s)
	case "NTE":
		r.comment(s)
	default:
		r.note = nil
	}
	return nil
}

// alone makes a report of an ORC that no OBR followed: news of the order, not of a test.
func (r *reader) alone() {
	if r.open {
		r.in.Tests = append(r.in.Tests, TestReport{Segment: r.orc.Number(), Filler: r.orc.Field(3).Text(), At: r.in.Sent, Patient: r.patient, Head: r.head})
		r.order(&r.in.Tests[len(r.in.Tests)-1], er7.Segment{})
		r.open, r.note = false, nil
	}
}

// person begins with a patient. A message may have several; what was said of the last
// one's orders does not hold for the next.
func (r *reader) person(s er7.Segment) {
	r.orc, r.spm, r.note = er7.Segment{}, er7.Segment{}, nil
	n := s.Field(5).Name()
	r.patient = Patient{Family: n.Family, Given: n.Given}
	r.head = orders.ResultsMetadata{Laboratory: r.sender, Patient: n.Full()}
	r.between = true
	if at, err := s.Field(7).Stamp(r.opts.Zone); err == nil && at.Precision >= er7.Day {
		dob := healthlab.DateOf(at.Time)
		r.patient.DOB, r.head.DOB = dob, dob.String()
		if !r.in.Sent.IsZero() {
			r.head.Age = fmt.Sprint(age(dob, healthlab.DateOf(r.in.Sent)))
		}
	}
	r.head.PatientID = optional(s.Field(3).Text())
	r.head.AccountID = optional(s.Field(18).Text())
}

func age(born, on healthlab.Date) int {
	years := on.Year - born.Year
	if on.Month < born.Month || on.Month == born.Month && on.Day < born.Day {
		years--
	}
	return max(years, 0)
}

// order notes what the order of a test is called and how it stands.
func (r *reader) order(t *TestReport, obr er7.Segment) {
	own := []er7.Part{obr.Field(2), r.orc.Field(2)}
	if obr.Number() > 0 && !r.open && !obr.Field(2).Empty() {
		own = own[:1] // the ORC is that of a test before
	}
	for _, parts := range [][]er7.Part{own, {obr.Field(29)}, {r.orc.Field(8)}} {
		for _, p := range parts {
			if n := strings.TrimSpace(p.Component(1).Text()); n != "" && !contains(t.Numbers, n) {
				t.Numbers = append(t.Numbers, n)
			}
		}
		if len(t.Numbers) > 0 {
			break
		}
	}
	t.Control = r.orc.Field(1).Text()
	if t.OrderStatus = r.orc.Field(25).Text(); t.OrderStatus == "" {
		t.OrderStatus = r.orc.Field(5).Text()
	}
}

func (r *reader) begin(s er7.Segment) {
	c := s.Field(4).Coded()
	r.in.Tests = append(r.in.Tests, TestReport{
		Segment: s.Number(), Filler: s.Field(3).Text(), Name: c.Display(), Status: s.Field(25).Text(), Patient: r.patient, Head: r.head,
	})
	r.between = false
	t := r.test()
	for _, code := range c.Codes {
		if code.Code != "" {
			t.Codes = append(t.Codes, code.Code)
		}
	}
	r.order(t, s)
	r.open = false
	if t.Filler == "" {
		t.Filler = r.orc.Field(3).Text()
	}
	t.At = r.in.Sent
	if at, ok := stamp(s.Field(22), r.opts.Zone); ok {
		t.At = at
	}
	t.Collected, t.Received = r.moment(s.Field(7)), r.moment(s.Field(14))
	t.Sample = t.Filler
	p := s.Field(16).Person()
	if p.Full() == "" {
		p = r.orc.Field(12).Person()
	}
	t.Head.Provider = optional(p.Full())
	if r.spm.Number() > 0 {
		spm := r.spm
		r.spm = er7.Segment{}
		r.specimen(spm)
	}
	r.note, r.seen = &t.Notes, map[string]int{}
}

// specimen notes where the sample is named; in some messages before its test, in
// others after it.
func (r *reader) specimen(s er7.Segment) {
	r.note = nil
	t := r.test()
	if t == nil {
		r.spm = s
		return
	}
	id := s.Field(2).Component(2).Subcomponent(1).Text()
	if id == "" {
		id = s.Field(2).Component(1).Subcomponent(1).Text()
	}
	if id != "" {
		t.Sample = id
	}
	if at := r.moment(s.Field(17)); at != nil {
		t.Collected = at
	}
	if at := r.moment(s.Field(18)); at != nil {
		t.Received = at
	}
}

func (r *reader) comment(s er7.Segment) {
	if r.note == nil {
		return
	}
	for _, p := range s.Field(3).Repetitions() {
		line := p.Whole()
		if *r.note != "" {
			*r.note += "\n"
		}
		*r.note += line
	}
}

func (r *reader) moment(p er7.Part) *orders.TimestampWithOffset {
	s, err := p.Stamp(r.opts.Zone)
	if err != nil {
		return nil
	}
	_, offset := s.Time.Zone()
	return &orders.TimestampWithOffset{Timestamp: healthlab.At(s.Time), TimezoneOffset: offset}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
