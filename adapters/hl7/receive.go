package hl7

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
)

// Why a person is to look at a delivery.
const (
	// ReviewNoMatch: no order of ours has the number, or there is none.
	ReviewNoMatch = "no_match"
	// ReviewPatient: the order is another patient's.
	ReviewPatient = "patient_mismatch"
	// ReviewNumbers: its numbers are those of several orders.
	ReviewNumbers = "contradicting_numbers"
	// ReviewCancelled: the order was cancelled, or the laboratory had refused it.
	ReviewCancelled = "match_cancelled"
)

// Handle takes in what a connection brings, and returns the acknowledgement. It is an
// mllp.Handler. AA, or CA, means that the message was kept, whether or not it belongs
// to an order; AE that it is malformed or could not be kept, AR that no such messages
// are taken. An AA with an error of severity W names an embedded document that could not be
// decoded. A batch (FHS, BHS) is answered with a batch that has an acknowledgement of each
// message; one whose envelope is malformed with a single AE.
func (b *Backend) Handle(ctx context.Context, message []byte, fault error) []byte {
	if fault != nil {
		return b.opts.answer(nil, rejected, fault)
	}
	if er7.IsBatch(message) {
		return b.handleBatch(ctx, message)
	}
	m, err := er7.Parse(message, b.opts.parsing())
	if err != nil {
		b.opts.Log.Warn("HL7 message refused", "error", err.Error())
		return b.opts.answer(b.header(message), refused, err)
	}
	if code, _ := m.Type(); code == "ACK" {
		return nil // an acknowledgement is not acknowledged
	}
	warning, err := b.receive(ctx, m)
	var unsupported *unsupportedError
	switch {
	case err == nil:
		return b.opts.answer(m, accepted, warning)
	case errors.As(err, &unsupported):
		b.opts.Log.Warn("HL7 message refused", "error", err.Error())
		return b.opts.answer(m, rejected, err)
	default:
		b.opts.Log.Warn("HL7 message not taken in", "error", err.Error())
		return b.opts.answer(m, refused, err)
	}
}

// handleBatch takes in the messages of a batch one by one.
func (b *Backend) handleBatch(ctx context.Context, raw []byte) []byte {
	batch, err := er7.ParseBatch(raw, b.opts.parsing())
	if err != nil {
		b.opts.Log.Warn("HL7 batch refused", "error", err.Error())
		return b.opts.answer(nil, refused, err)
	}
	head := "BHS|^~\\&|||||" + er7.FormatStamp(b.opts.Now().In(b.opts.Zone)) + "\r"
	out, n := []byte(head), 0
	for _, i := range batch.Items() {
		var answer []byte
		switch {
		case i.Message != nil:
			answer = b.Handle(ctx, i.Message.Bytes(), nil)
		case i.Err != nil:
			b.opts.Log.Warn("HL7 message refused", "error", i.Err.Error())
			answer = b.opts.answer(b.header(i.Raw), refused, i.Err)
		}
		if answer != nil {
			out = append(out, answer...)
			n++
		}
	}
	if n == 0 {
		return nil // the sender wants no answers
	}
	return fmt.Appendf(out, "BTS|%d\r", n)
}

// header reads as much of a malformed message as its acknowledgement needs; nil if
// that cannot be read either.
func (b *Backend) header(message []byte) *er7.Message {
	i := strings.IndexAny(string(message), "\r\n")
	if i < 0 {
		i = len(message)
	}
	m, err := er7.Parse(message[:i], b.opts.parsing())
	if err != nil {
		return nil
	}
	return m
}

// Receive takes in a message of the laboratory, whichever way it came: results, news
// of orders, answers that came late. A message that was taken in before changes
// nothing. What belongs to no order for certain is kept for review, by the team that
// [Options] name or here. Invalid if the message is not one that can be understood; any other error means that it is to be
// handed in again.
func (b *Backend) Receive(ctx context.Context, m *er7.Message) error {
	_, err := b.receive(ctx, m)
	return err
}

// ReceiveAll takes in a message, or a batch of them (FHS, BHS), as it came. The error
// joins those of the messages, as [Backend.Receive] returns them, and of those that are
// malformed; the others were taken in.
func (b *Backend) ReceiveAll(ctx context.Context, raw []byte) error {
	batch, err := er7.ParseBatch(raw, b.opts.parsing())
	if err != nil {
		return err
	}
	err = errors.Join(batch.Faults()...)
	for _, m := range batch.Messages() {
		err = errors.Join(err, b.Receive(ctx, m))
	}
	return err
}

// receive takes in a message. The warning names a part of it that could not be read.
func (b *Backend) receive(ctx context.Context, m *er7.Message) (warning, err error) {
	in, err := Read(m, &b.opts)
	if err != nil {
		return nil, err
	}
	for _, bad := range in.Refused {
		b.opts.Log.Warn("HL7 embedded document refused", "error", bad.Error())
		warning = bad
	}
	return warning, b.take(ctx, m, in, Delivery{Key: keyOf(m), At: b.opts.Now(), Raw: m.Bytes(), Numbers: in.numbers()})
}

// keyOf is the same for messages that say the same, whatever their headers.
func keyOf(m *er7.Message) string {
	code, event := m.Type()
	parts := [][]byte{[]byte(code), []byte(event), []byte(m.Header().Field(3).Raw()), []byte(m.Header().Field(4).Raw())}
	for s := range m.Segments() {
		if s.Name() != "MSH" {
			parts = append(parts, []byte(s.Raw()))
		}
	}
	return short(parts...)
}

// numbers are all numbers of orders in a message.
func (in Incoming) numbers() []string {
	var out []string
	for _, t := range in.Tests {
		for _, n := range t.Numbers {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// take keeps a delivery and what it changes. Documents are kept first: putting them
// twice does no harm.
func (b *Backend) take(ctx context.Context, m *er7.Message, in Incoming, d Delivery) error {
	if err := b.putDocuments(ctx, in, d); err != nil {
		return fmt.Errorf("take in HL7 message: %w", err)
	}
	code, _ := m.Type()
	results := code == "ORU" || code == "OUL"
	fresh, err := b.journal.Take(ctx, d, d.Numbers, func(found map[string]*Dossier) Outcome {
		mine, rest := assign(in, found, d.Resolves != 0)
		var out Outcome
		for i, u := range rest {
			if m := u.message(d, i, &b.opts); results && m != nil {
				out.Messages = append(out.Messages, *m)
			} else {
				out.Review = u.reason
			}
		}
		for _, n := range d.Numbers {
			held := found[n]
			if held == nil || len(mine[n]) == 0 {
				continue
			}
			held.take(mine[n], results)
			if !results {
				out.Messages = append(out.Messages, held.news(mine[n], d, &b.opts)...)
			}
			if told := held.tell(mine[n], d, &b.opts); told != nil {
				out.Messages = append(out.Messages, *told)
			}
		}
		return out
	})
	if err != nil {
		return fmt.Errorf("take in HL7 message: %w", err)
	}
	if !fresh {
		b.opts.Log.Info("HL7 message came again", "key", d.Key)
	}
	return nil
}

func (b *Backend) putDocuments(ctx context.Context, in Incoming, d Delivery) error {
	if b.opts.Documents == nil || !slices.ContainsFunc(in.Tests, func(t TestReport) bool { return len(t.Documents) > 0 }) {
		return nil
	}
	found, err := b.dossiers(ctx, d.Numbers)
	if err != nil {
		return err
	}
	mine, _ := assign(in, found, d.Resolves != 0)
	for n, tests := range mine {
		for _, t := range tests {
			for _, doc := range t.Documents {
				doc.ID, doc.Team, doc.Order = documentID(n, doc), found[n].Team, found[n].Order
				if err := b.opts.Documents.Put(ctx, doc); err != nil {
					return fmt.Errorf("put document: %w", err)
				}
			}
		}
	}
	return nil
}

// dossiers returns those of the numbers that there are.
func (b *Backend) dossiers(ctx context.Context, numbers []string) (map[string]*Dossier, error) {
	found := map[string]*Dossier{}
	for _, n := range numbers {
		held, err := b.journal.Dossier(ctx, n)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[n] = &held
	}
	return found, nil
}

// unassigned are tests of one message that belong to no order for certain, for one reason.
type unassigned struct {
	reason string
	// held is the order that they name; nil for none, or several.
	held    *Dossier
	patient Patient
	tests   []TestReport
}

// assign finds the order of each test, by number, and those that have none. A person who
// attaches a message knows the patient.
func assign(in Incoming, found map[string]*Dossier, attached bool) (map[string][]TestReport, []unassigned) {
	mine := map[string][]TestReport{}
	var rest []unassigned
	leave := func(reason string, held *Dossier, t TestReport) {
		i := slices.IndexFunc(rest, func(u unassigned) bool { return u.reason == reason && u.held == held && u.patient == t.Patient })
		if i < 0 {
			i, rest = len(rest), append(rest, unassigned{reason: reason, held: held, patient: t.Patient})
		}
		rest[i].tests = append(rest[i].tests, t)
	}
	for _, t := range in.Tests {
		var known []string
		for _, n := range t.Numbers {
			if found[n] != nil {
				known = append(known, n)
			}
		}
		switch {
		case len(known) == 0:
			leave(ReviewNoMatch, nil, t)
		case len(t.Numbers) > 1:
			leave(ReviewNumbers, nil, t)
		case !attached && !found[known[0]].Patient.matches(t.Patient):
			leave(ReviewPatient, found[known[0]], t)
		case !attached && (found[known[0]].Cancelled || found[known[0]].Refused):
			leave(ReviewCancelled, found[known[0]], t)
		default:
			mine[known[0]] = append(mine[known[0]], t)
		}
	}
	return mine, rest
}

// message hands the results to the orders.Service, which holds them for review; nil if
// there is no team that reviews them, or nothing to review. One whose patient is another
// than the order's names the specimen alone, so that the order is no more than a candidate.
func (u unassigned) message(d Delivery, n int, opts *Options) *orders.Message {
	if opts.ReviewTeam.IsZero() {
		return nil
	}
	report := Dossier{Number: "1"} // the sample is called so if the laboratory has no number
	report.take(u.tests, true)
	if len(report.State.Tests) == 0 {
		return nil
	}
	done := report.complete(opts)
	results, _ := report.results(opts, done)
	m := orders.Message{
		ID: short([]byte("unassigned"), []byte(d.Key), []byte(strconv.Itoa(n))), Team: opts.ReviewTeam, On: orders.PartialResult, At: d.At, Lab: opts.LabSlug,
		Results: &results,
		Patient: &orders.ReportedPatient{FirstName: u.patient.Given, LastName: u.patient.Family, DOB: u.patient.DOB, Gender: u.patient.Gender},
	}
	if done {
		m.On = orders.FinalResult
	}
	if u.held != nil {
		m.Team, m.SampleID = u.held.Team, u.held.SampleID
		if u.reason == ReviewCancelled {
			m.Order, m.Patient = u.held.Order, u.held.patient()
		}
	}
	return &m
}

// patient is that of the order, with whom reports were compared.
func (d *Dossier) patient() *orders.ReportedPatient {
	return &orders.ReportedPatient{FirstName: d.Patient.Given, LastName: d.Patient.Family, DOB: d.Patient.DOB}
}

// matches reports whether a report can be of the patient, by as much as it says: not with
// another birth date, nor with another name. Where the birth date is the same, one of the
// two names may differ, since people change them; without it, neither may.
func (p Patient) matches(q Patient) bool {
	known := !p.DOB.IsZero() && !q.DOB.IsZero()
	if known && p.DOB != q.DOB {
		return false
	}
	family, given := compare(p.Family, q.Family), compare(p.Given, q.Given)
	if known {
		return family != otherName || given != otherName
	}
	return family == sameName && given == sameName
}

// likeness is how two names look beside each other.
type likeness int

const (
	sameName likeness = iota // or one of them is missing
	otherName
	otherScript // they cannot be compared
)

// compare compares names as laboratories write them: shortened, in capitals, and without
// the letters that they do not have.
func compare(a, b string) likeness {
	begins := func(of func(rune) bool) (bool, string, string) {
		fold := func(s string) string {
			return strings.Map(func(r rune) rune {
				if of(r) {
					return r
				}
				return -1
			}, strings.ToLower(s))
		}
		a, b := fold(a), fold(b)
		return strings.HasPrefix(a, b) || strings.HasPrefix(b, a), a, b
	}
	if same, _, _ := begins(unicode.IsLetter); same {
		return sameName
	}
	same, a, b := begins(func(r rune) bool { return r >= 'a' && r <= 'z' })
	switch {
	case a != "" && b != "" && same:
		return sameName
	case (a == "") != (b == ""):
		return otherScript
	}
	return otherName
}

// news returns what a message about the order itself means for it.
func (d *Dossier) news(tests []TestReport, in Delivery, opts *Options) []orders.Message {
	var out []orders.Message
	seen := map[orders.Trigger]bool{}
	for _, t := range tests {
		on, ok := opts.Statuses[t.OrderStatus]
		if !ok && t.Control == "OK" {
			on, ok = orders.LabAccepted, true
		}
		if !ok || seen[on] {
			continue
		}
		seen[on] = true
		m := orders.Message{
			ID: short([]byte(d.Number), []byte(in.Key), []byte(on)), Team: d.Team, Order: d.Order, SampleID: d.SampleID, On: on, At: in.At,
		}
		if on == orders.SampleReceived && t.Collected != nil {
			m.CollectedAt = t.Collected.Timestamp.Time
		}
		out = append(out, m)
	}
	return out
}

// Review lists at most n messages that a person is to look at, after a place (zero is
// the start), with the reason and the message as it came.
func (b *Backend) Review(ctx context.Context, after int64, n int) ([]Delivery, error) {
	return b.journal.Review(ctx, after, n)
}

// Attach gives a message under review to an order, because a person says so. All of
// its tests go there that had no order, whatever numbers they have. NotFound if the message is not under
// review, or the order was never submitted.
func (b *Backend) Attach(ctx context.Context, place int64, team healthlab.TeamID, order orders.OrderID) error {
	number := b.opts.Number(orders.Order{ID: order, TeamID: team})
	held, err := b.journal.Dossier(ctx, number)
	if err == nil && (held.Order != order || held.Team != team) {
		err = healthlab.NotFound
	}
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	list, err := b.journal.Review(ctx, place-1, 1)
	if err == nil && (len(list) == 0 || list[0].Place != place) {
		err = healthlab.NotFound
	}
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	m, err := er7.Parse(list[0].Raw, &er7.Options{MaxBytes: len(list[0].Raw), Charset: b.opts.Charset})
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	in, err := Read(m, &b.opts)
	if err != nil {
		return err
	}
	found, err := b.dossiers(ctx, in.numbers())
	if err != nil {
		return fmt.Errorf("attach HL7 message: %w", err)
	}
	var rest []TestReport // but for those that found their order by themselves
	mine, _ := assign(in, found, false)
	for _, t := range in.Tests {
		placed := slices.ContainsFunc(t.Numbers, func(n string) bool {
			return slices.ContainsFunc(mine[n], func(m TestReport) bool { return m.Segment == t.Segment })
		})
		if !placed {
			t.Numbers = []string{number}
			rest = append(rest, t)
		}
	}
	in.Tests = rest
	return b.take(ctx, m, in, Delivery{
		Key: short([]byte("attach"), []byte(list[0].Key), []byte(number)), At: b.opts.Now(), Raw: list[0].Raw, Numbers: []string{number}, Resolves: place,
	})
}
