package hl7

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Incoming is the content of a result message. Printing or logging it shows nothing.
type Incoming struct {
	healthlab.Private

	// ControlID is the control id of the message, and Sent its time; zero if absent.
	ControlID string
	Sent      time.Time
	// Tests are the reports of the message, one for each OBR, in order.
	Tests []TestReport
	// Refused lists the results that cannot be stored: undecodable embedded documents, and references to documents. The
	// rest of the message was read.
	Refused []*er7.SyntaxError
}

// TestReport is the part of a message about one test.
type TestReport struct {
	healthlab.Private

	// Segment is the number of the OBR in the message, or without an OBR that of the first OBX.
	Segment int
	// Patient is the patient in the message.
	Patient orders.ReportedPatient
	// Head is the metadata of the whole report.
	Head labresult.Metadata
	// Numbers lists the placer order numbers of OBR and ORC, or else the number of the parent order. More than one
	// means that the message contradicts itself.
	Numbers []string
	// Filler is the laboratory's own order number.
	Filler string
	// Codes lists the laboratory's codes of the test, and Name is its name.
	Codes []string
	Name  string
	// Status is the result status of the test: P preliminary, F final, C corrected, X cancelled and so on.
	Status string
	// Control and OrderStatus are the fields of the order (ORC-1; ORC-25, else ORC-5).
	Control, OrderStatus string
	// At is when the results were reported or changed, and Reported is the same time as the report has it, with
	// offset and precision; nil if unknown.
	At       time.Time
	Reported *labresult.TimestampWithOffset
	// Parent is the result that led to the test; nil without one.
	Parent *labresult.ParentResult
	// Collected and Received are the times of the first sample; nil if unknown.
	Collected, Received *labresult.TimestampWithOffset
	// Sample is the id of the first sample.
	Sample string
	// Specimens lists the samples in the message.
	Specimens    []Specimen
	Notes        string
	Observations []Observation
	// Documents lists the documents of the test. Withdrawn reports that the laboratory withdrew one.
	Documents    []Document
	Withdrawn    bool
	Laboratories map[string]labresult.PerformingLaboratory
	CLIA         string
	// occurrence is the number of preceding tests with the same numbers, codes and parent.
	occurrence int
	// amount is the collected amount of the test, if no sample has one.
	amount string
	// source is the sample that the OBR describes, as before version 2.5; nil if absent.
	source *Specimen
	// shared reports that the laboratory gave Filler to several orders.
	shared bool
}

// key identifies a test within its order. It includes the parent, because susceptibility tests of several isolates
// have the same numbers and codes.
func (t *TestReport) key() string {
	key := t.Filler
	for _, c := range t.Codes {
		key += "|" + c
	}
	if p := t.Parent; p != nil {
		key += "|parent " + p.FillerNumber + "|" + p.Group
		if p.Result != nil && len(p.Result.Codes) > 0 {
			key += "|" + p.Result.Codes[0].Code
		}
	}
	if t.occurrence > 0 {
		key += fmt.Sprint("#", t.occurrence)
	}
	return key
}

// Observation is one OBX: a result, or a missing result.
type Observation struct {
	healthlab.Private

	// Key identifies the observation within its test.
	Key string
	// Status is the status of the observation: P preliminary, F final, C corrected, X missing, D deleted and so on.
	Status string
	// Result is the result. It has no text if the OBX has no value.
	Result labresult.Result
}

// messageTypes lists the message types (MSH-9.1) that [Read] accepts.
var messageTypes = []string{"ORU", "OUL", "ORM", "OML", "OSU", "ORL", "ORR"}

// Read converts a message of the laboratory to plain values: results (ORU, OUL), order messages and their answers
// (ORM, OML, ORL, ORR), statuses (OSU). Options may be nil. It returns Invalid for other message types. Results that
// it cannot read are in Incoming.Refused.
func Read(m *er7.Message, o *Options) (Incoming, error) {
	opts := o.withDefaults()
	code, _ := m.Type()
	if !slices.Contains(messageTypes, code) {
		return Incoming{}, fmt.Errorf("read HL7 results: %w", &unsupportedError{})
	}
	r := &reader{opts: &opts, in: Incoming{ControlID: m.ControlID()}, byKey: map[string]int{}}
	_, event := m.Type()
	r.specimenFirst = code == "OUL" && event != "R24"
	r.note = &r.messageNotes
	r.zone = opts.Zone
	if sent, err := m.Header().Field(7).Stamp(opts.Zone); err == nil {
		r.in.Sent, r.zone = sent.Time, zoneOf(sent, opts.Zone)
		r.sent = r.moment(m.Header().Field(7))
	}
	r.sender = optional(m.Header().Field(4).Text())
	r.head.Laboratory = r.sender
	for s := range m.Segments() {
		r.segment(s)
	}
	r.finishOrder()
	for i := range r.in.Tests {
		if t := &r.in.Tests[i]; t.source != nil && len(t.Specimens) == 0 {
			t.addSpecimen(*t.source)
		}
	}
	return r.in, nil
}

// ReadAll reads the messages of a file or batch (FHS, BHS), like [Read]. It returns Invalid if a part of the file is
// malformed, or if a message is of another type.
func ReadAll(raw []byte, o *Options) ([]Incoming, error) {
	opts := o.withDefaults()
	batch, err := er7.ParseBatch(raw, opts.parsing())
	if err != nil {
		return nil, err
	}
	if errs := batch.Errors(); len(errs) > 0 {
		return nil, errs[0]
	}
	var out []Incoming
	for _, m := range batch.Messages() {
		in, err := Read(m, o)
		if err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

// reader walks over the segments of a message.
type reader struct {
	opts *Options
	in   Incoming
	// zone is the time zone of times without an offset.
	zone   *time.Location
	sender *string
	// patient and head are the patient and the metadata of the tests that follow.
	patient orders.ReportedPatient
	head    labresult.Metadata
	orc     er7.Segment
	open    bool // no OBR has followed the ORC yet
	// alone means that the last segment was an OBR without a preceding ORC.
	alone bool
	// specimens holds the samples before the OBR in OUL messages.
	specimens []*heldSpecimen
	// specimenFirst means that samples precede their tests.
	specimenFirst bool
	seen          map[string]int // number of observations of the test by key
	byKey         map[string]int // number of tests by key
	// sent is the time of the message; nil if absent.
	sent *labresult.TimestampWithOffset
	// between is true after a patient's PID and before the first test.
	between bool
	// Notes before the first test: of the message, of the patient or the visit, and of the order.
	messageNotes, patientNotes, orderNotes string
	// note is the text to which an NTE segment is appended; nil if notes are dropped.
	note *string
}

func (r *reader) test() *TestReport {
	if len(r.in.Tests) == 0 || r.between {
		return nil
	}
	return &r.in.Tests[len(r.in.Tests)-1]
}

func (r *reader) segment(s er7.Segment) {
	alone := r.alone
	r.alone = false
	switch s.Name() {
	case "PID":
		r.finishOrder()
		r.person(s)
	case "ORC":
		if alone && r.specimenFirst && r.addFollowingORC(s) {
			return
		}
		r.finishOrder()
		r.orderNotes = ""
		r.orc, r.note, r.open = s, &r.orderNotes, true
	case "OBR":
		r.beginTest(s)
	case "OBX":
		r.observation(s)
	case "SPM":
		r.specimen(s)
	case "NTE":
		r.comment(s)
	}
}

// finishOrder adds a report for an ORC without an OBR, which states the status of an order.
func (r *reader) finishOrder() {
	if r.open {
		r.in.Tests = append(r.in.Tests, TestReport{
			Segment: r.orc.Number(), Filler: r.orc.Field(3).Text(), At: r.in.Sent, Reported: r.sent, Patient: r.patient, Head: r.headWithNotes(),
			Notes: r.orderNotes,
		})
		r.order(&r.in.Tests[len(r.in.Tests)-1], er7.Segment{})
		r.number(&r.in.Tests[len(r.in.Tests)-1])
		r.open, r.between, r.seen = false, false, map[string]int{}
		r.note = &r.in.Tests[len(r.in.Tests)-1].Notes
	}
}

func (r *reader) headWithNotes() labresult.Metadata {
	h := r.head
	h.Notes = optional(strings.TrimSpace(r.messageNotes + "\n" + r.patientNotes))
	return h
}

// person reads a PID. A message may have several patients.
func (r *reader) person(s er7.Segment) {
	r.orc, r.specimens = er7.Segment{}, nil
	r.patientNotes, r.orderNotes, r.note = "", "", &r.patientNotes
	n := s.Field(5).Name()
	r.patient = orders.ReportedPatient{FirstName: n.Given, LastName: n.Family, SecondName: n.Middle, Suffix: n.Suffix}
	switch strings.ToUpper(s.Field(8).Text()) {
	case "F", "FEMALE":
		r.patient.Gender = people.Female
	case "M", "MALE":
		r.patient.Gender = people.Male
	}
	r.head = labresult.Metadata{Laboratory: r.sender, Patient: n.Full()}
	r.between = true
	if at, err := s.Field(7).Stamp(r.zone); err == nil && at.Precision < er7.Day {
		r.head.DOB, r.patient.DOBText = at.String(), strings.ReplaceAll(at.String(), "-", "")
	} else if err == nil {
		dob := healthlab.DateOf(at.Time)
		r.patient.DOB, r.head.DOB = dob, dob.String()
		if !r.in.Sent.IsZero() {
			r.head.Age = fmt.Sprint(age(dob, healthlab.DateOf(r.in.Sent)))
		}
	} else {
		r.patient.DOBText = s.Field(7).Text()
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

// order reads the order numbers and the order status of a test from its OBR and the preceding ORC.
func (r *reader) order(t *TestReport, obr er7.Segment) {
	own := []er7.Part{obr.Field(2), r.orc.Field(2)}
	if obr.Number() > 0 && !r.open && !obr.Field(2).Empty() {
		own = own[:1] // the ORC belongs to an earlier test
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

// addFollowingORC adds an ORC that follows its OBR, as in messages about specimens, to the test. It returns false if
// the ORC has another order number.
func (r *reader) addFollowingORC(orc er7.Segment) bool {
	t := r.test()
	placer, filler := orc.Field(2).Text(), orc.Field(3).Text()
	if placer != "" && len(t.Numbers) > 0 && !contains(t.Numbers, placer) || filler != "" && t.Filler != "" && filler != t.Filler {
		return false
	}
	r.byKey[t.key()]--
	r.orc = orc
	r.order(t, er7.Segment{})
	t.Filler, t.Sample = cmp.Or(t.Filler, filler), cmp.Or(t.Sample, filler)
	t.occurrence = 0
	r.number(t)
	return true
}

func (r *reader) beginTest(s er7.Segment) {
	c := s.Field(4).Coded()
	r.in.Tests = append(r.in.Tests, TestReport{
		Segment: s.Number(), Filler: s.Field(3).Text(), Name: c.Display(), Status: s.Field(25).Text(), Patient: r.patient, Head: r.headWithNotes(),
		Parent: parent(s), Notes: r.orderNotes,
	})
	r.between = false
	t := r.test()
	for _, code := range c.Codes {
		if code.Code != "" {
			t.Codes = append(t.Codes, code.Code)
		}
	}
	r.alone = !r.open
	r.order(t, s)
	r.open, r.orderNotes = false, ""
	if t.Filler == "" {
		t.Filler = r.orc.Field(3).Text()
	}
	r.number(t)
	t.At, t.Reported = r.in.Sent, r.sent
	if at := r.moment(s.Field(22)); at != nil {
		t.At, t.Reported = at.Local(), at
	}
	t.Collected, t.Received = r.moment(s.Field(7)), r.moment(s.Field(14))
	t.Sample, t.amount = t.Filler, amount(s.Field(9))
	p := s.Field(16).Person()
	if p.Full() == "" {
		p = r.orc.Field(12).Person()
	}
	t.Head.Provider = optional(p.Full())
	for _, first := range r.specimens {
		specimen := r.readSpecimen(first.segment)
		specimen.Notes = first.notes
		t.addSpecimen(specimen)
	}
	if !r.specimenFirst {
		r.specimens = nil
	}
	if source := s.Field(15); !source.Empty() { // before version 2.5
		t.source = &Specimen{Type: term(source.Component(1)), Site: term(source.Component(4)), CollectionMethod: term(source.Component(6))}
		if free := source.Component(3).Whole(); t.source.Type == nil && free != "" {
			t.source.Type = &labresult.Coded{Text: free}
		}
	}
	r.note, r.seen = &t.Notes, map[string]int{}
}

func (r *reader) number(t *TestReport) {
	key := t.key()
	t.occurrence = r.byKey[key]
	r.byKey[key]++
}

// parent reads the result and order that led to a test; nil without one.
func parent(obr er7.Segment) *labresult.ParentResult {
	result, order := obr.Field(26), obr.Field(29)
	p := labresult.ParentResult{
		PlacerNumber: order.Component(1).Text(), FillerNumber: order.Component(2).Text(),
		Result: term(result.Component(1)), Group: result.Component(2).Plain("."), Value: result.Component(3).Whole(),
	}
	if p == (labresult.ParentResult{}) {
		return nil
	}
	return &p
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

func (r *reader) moment(p er7.Part) *labresult.TimestampWithOffset {
	s, err := p.Stamp(r.zone)
	if err != nil {
		return nil
	}
	_, offset := s.Time.Zone()
	return &labresult.TimestampWithOffset{Timestamp: healthlab.At(s.Time), TimezoneOffset: offset, Precision: precisions[s.Precision]}
}

// precisions maps precisions of times to their names. Seconds and fractions have no name.
var precisions = map[er7.Precision]labresult.Precision{
	er7.Year: labresult.YearPrecision, er7.Month: labresult.MonthPrecision, er7.Day: labresult.DayPrecision,
	er7.Hour: labresult.HourPrecision, er7.Minute: labresult.MinutePrecision,
}

// zoneOf returns the zone of a message's times without an offset. It is the offset of MSH-7, as the standard
// requires, or the laboratory's zone if that had the same offset when the message was sent.
func zoneOf(sent er7.Stamp, zone *time.Location) *time.Location {
	_, offset := sent.Time.Zone()
	if _, usual := sent.Time.In(zone).Zone(); !sent.Offset || usual == offset {
		return zone
	}
	return sent.Time.Location()
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
