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
// which the journal holds the group for review; empty for none. The message about results that may belong to another
// person has only what these tests report for the first time.
func (g *group) apply(d delivery, results bool, opts *Options) (m *exchange.Message, review string) {
	gone := (g.held.Cancelled || g.held.Refused) && d.Resolves == 0
	switch {
	case g.contradicts && !results:
		return nil, g.reason()
	case gone && !results:
		return nil, ReviewCancelled
	case !g.isUncertain() || !results:
		if results && d.Resolves == 0 && g.setUnclearAside(d.Key) {
			review = ReviewTest
		}
		if len(g.tests) == 0 {
			return nil, review
		}
		g.held.mergeTests(g.tests, results)
		if m = g.held.resultMessage(g.tests, d, opts); m == nil {
			return nil, review
		}
		if gone && m.Results == nil {
			return nil, ReviewCancelled
		}
		m.Attached = d.Resolves != 0
		return m, review
	}
	news, held := g.newReports()
	if g.hasDocuments() {
		review = g.reason() // the order of the documents is not decided yet
	}
	if len(news) == 0 {
		return nil, review
	}
	own := *g.held
	own.State = orderState{}
	keys := held.resultKeys(news)
	own.mergeTests(news, true)
	for i, list := range own.State.resultKeys(news) {
		for n, k := range list {
			if r, ok := own.State.Results[k]; ok {
				r.Corrects = held.Results[keys[i][n]].Corrects
				own.State.Results[k] = r
			}
		}
	}
	if m = own.resultMessage(news, d, opts); m == nil {
		return nil, review
	}
	if m.Results == nil {
		return nil, g.reason()
	}
	m.ID = digestID([]byte(m.ID), []byte(g.key()))
	m.SampleID, m.ForeignNumbers = g.held.SampleID, g.foreign
	return m, review
}

// setUnclearAside removes the tests that may be about several tests of the order from the group, and notes in the state
// of the order that they wait in the delivery with this key. It reports whether there are any.
func (g *group) setUnclearAside(delivery string) bool {
	_, unclear := g.held.State.find(g.tests)
	var clear []TestReport
	var waiting []int
	for i, t := range g.tests {
		if unclear[i] {
			waiting = append(waiting, t.Segment)
		} else {
			clear = append(clear, t)
		}
	}
	if len(waiting) == 0 {
		return false
	}
	g.tests, g.held.State.Waiting = clear, maps.Clone(g.held.State.Waiting)
	if g.held.State.Waiting == nil {
		g.held.State.Waiting = map[string][]int{}
	}
	g.held.State.Waiting[delivery] = waiting
	return true
}

// newReports returns what the tests of an uncertain group report for the first time: a person decides on each report
// once, whatever else the laboratory reports with it later. newReports adds the tests to the separate state of their
// patient and numbers, and returns that state.
func (g *group) newReports() (news []TestReport, state orderState) {
	apart, key := *g.held, g.key()
	apart.State = g.held.Others[key]
	before := apart.State
	apart.mergeTests(g.tests, true)
	for _, t := range g.tests {
		was, known := before.Tests[t.held]
		ended := t.version(t.Status).replaces(was.version) && (rank(t.Status) > 0 && rank(was.Status) == 0 || t.Status == "X" && was.Status != "X")
		if !known || ended {
			news = append(news, t)
			continue
		}
		var changed []Observation
		for i, key := range before.matchResults(t.held, t.Observations) {
			o := t.Observations[i]
			old, ok := before.Results[key]
			same := rank(o.Status) > 0 == (rank(old.Status) > 0) && o.Result.Equal(old.Result)
			if !ok || !same && t.version(o.Status).replaces(old.version) {
				changed = append(changed, o)
			}
		}
		if len(changed) > 0 {
			t.Observations = changed
			news = append(news, t)
		}
	}
	g.held.Others = maps.Clone(g.held.Others)
	if g.held.Others == nil {
		g.held.Others = map[string]orderState{}
	}
	g.held.Others[key] = apart.State
	return news, apart.State
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
// is no review team or no test. The report is partial, because it is not the whole report of an order. n is the index of
// the group in the delivery.
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
	if done {
		m.Awaited = []int{}
	}
	for _, t := range g.tests {
		if t.Filler != "" && !contains(m.LabNumbers, t.Filler) {
			m.LabNumbers = append(m.LabNumbers, t.Filler)
		}
	}
	return &m
}
