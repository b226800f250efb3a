package hl7

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// group holds the tests of one message that name the same order and the same patient.
type group struct {
	// held is the state of the order that the tests name; nil if they name none that is known.
	held *dossier
	// foreign lists the order numbers in the message that do not belong to the order.
	foreign []string
	patient orders.ReportedPatient
	// contradicts reports whether a number or a detail of the patient differs between report and order.
	contradicts bool
	// unproven reports whether neither the patient's name nor the birth date confirms the order.
	unproven bool
	tests    []TestReport
}

// assign groups the tests of a message by order, patient and numbers. found has the known orders by placer order
// number, and of maps the laboratory's order numbers to placer order numbers. attached means that a person has
// assigned the tests to their order; then no group contradicts its order.
func assign(in Incoming, found map[string]*dossier, of map[string]string, attached bool) []*group {
	var out []*group
	for _, t := range in.Tests {
		g := &group{patient: t.Patient}
		numbers := t.Numbers
		if n := of[t.Filler]; n != "" && !contains(numbers, n) {
			numbers = append(slices.Clone(numbers), n)
		}
		if t.shared && len(numbers) == 0 {
			g.foreign = []string{t.Filler}
		}
		for _, n := range numbers {
			if g.held == nil && found[n] != nil {
				g.held = found[n]
			} else {
				g.foreign = append(g.foreign, n)
			}
		}
		if g.held != nil && !attached {
			g.contradicts = len(g.foreign) > 0 || t.Patient.Contradicts(g.held.Patient)
			g.unproven = !g.contradicts && !t.Patient.Matches(g.held.Patient)
		}
		i := slices.IndexFunc(out, func(o *group) bool {
			same := o.patient == g.patient && slices.Equal(o.foreign, g.foreign)
			return o.held == g.held && o.contradicts == g.contradicts && o.unproven == g.unproven && (same || g.held != nil && !g.isUncertain())
		})
		if i < 0 {
			i, out = len(out), append(out, g)
		}
		out[i].tests = append(out[i].tests, t)
	}
	return out
}

func (g *group) isUncertain() bool { return g.contradicts || g.unproven }

// apply adds the tests of a group with a known order to the state of the order. results reports whether the message is
// a result message (ORU, OUL). m is the message that the orders.Service gets; nil for none. review is the reason for
// which the journal holds the group for review; empty for none. Results that may belong to another person are added
// to a separate state, so that later messages about the order's patient do not include them.
func (g *group) apply(d delivery, results bool, opts *Options) (m *exchange.Message, review string) {
	gone := (g.held.Cancelled || g.held.Refused) && d.Resolves == 0
	switch {
	case g.contradicts && !results:
		return nil, g.reason()
	case gone && !results:
		return nil, ReviewCancelled
	case !g.isUncertain() || !results:
		g.held.mergeTests(g.tests, results)
		if m = g.held.resultMessage(g.tests, d, opts); m == nil {
			return nil, ""
		}
		if gone && m.Results == nil {
			return nil, ReviewCancelled
		}
		m.Attached = d.Resolves != 0
		return m, ""
	}
	apart, key := *g.held, g.key()
	apart.State = g.held.Others[key]
	apart.mergeTests(g.tests, true)
	m = apart.resultMessage(g.tests, d, opts)
	others := maps.Clone(g.held.Others)
	if others == nil {
		others = map[string]orderState{}
	}
	others[key] = apart.State
	g.held.Others = others
	if g.hasDocuments() {
		review = g.reason() // the order of the documents is not decided yet
	}
	if m == nil {
		return nil, review
	}
	if m.Results == nil {
		return nil, g.reason()
	}
	m.ID = digestID([]byte(m.ID), []byte(key))
	m.SampleID, m.ForeignNumbers = g.held.SampleID, g.foreign
	return m, review
}

// key identifies the patient and order numbers that a group reports.
func (g *group) key() string {
	patient, err := json.Marshal(g.patient)
	if err != nil {
		panic(err) // strings and a date always encode
	}
	parts := [][]byte{patient}
	for _, n := range g.foreign {
		parts = append(parts, []byte(n))
	}
	return digestID(parts...)
}

// reason returns why the journal holds a group for review.
func (g *group) reason() string {
	switch {
	case g.held == nil:
		return ReviewNoMatch
	case len(g.foreign) > 0:
		return ReviewNumbers
	default:
		return ReviewPatient
	}
}

func (g *group) hasDocuments() bool {
	return slices.ContainsFunc(g.tests, func(t TestReport) bool { return len(t.Documents) > 0 })
}

// unassigned returns the message with the results of a group without a known order, for the review team; nil if there
// is no review team or no test. n is the index of the group in the delivery.
func (g *group) unassigned(d delivery, n int, opts *Options) *exchange.Message {
	if opts.ReviewTeam.IsZero() {
		return nil
	}
	report := dossier{Number: "1"} // stands in the ids of samples that have none
	report.mergeTests(g.tests, true)
	if len(report.State.Tests) == 0 {
		return nil
	}
	done := report.complete(opts)
	results, _ := report.results(opts, done)
	m := exchange.Message{
		ID: digestID([]byte("unassigned"), []byte(d.Key), []byte(strconv.Itoa(n))), Team: opts.ReviewTeam, On: orders.PartialResult, At: d.At, Lab: opts.LabSlug,
		Results: &results, Patient: &g.patient, ForeignNumbers: g.foreign,
	}
	for _, t := range g.tests {
		if t.Filler != "" && !contains(m.LabNumbers, t.Filler) {
			m.LabNumbers = append(m.LabNumbers, t.Filler)
		}
	}
	if done {
		m.On = orders.FinalResult
	}
	return &m
}
