package hl7

import (
	"slices"
	"strconv"

	"github.com/healthlab-dev/healthlab/orders"
)

// unassigned are tests of one message that no order gets, for one reason.
type unassigned struct {
	reason string
	// held is the order that they name; nil for none, or several.
	held    *dossier
	patient Patient
	tests   []TestReport
}

// assign finds the order of each test by number, and returns the tests without one. In a
// message that a person attached, the patient is not compared.
func assign(in Incoming, found map[string]*dossier, attached bool) (map[string][]TestReport, []unassigned) {
	mine := map[string][]TestReport{}
	var rest []unassigned
	leave := func(reason string, held *dossier, t TestReport) {
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

// hasDocuments reports whether a document came with a test.
func (u unassigned) hasDocuments() bool {
	return slices.ContainsFunc(u.tests, func(t TestReport) bool { return len(t.Documents) > 0 })
}

// message returns the results for the review queue of the orders.Service; nil without a
// review team or without results. If the patient is another than the order's, the message
// names the specimen and not the order, so that the order stays a candidate.
func (u unassigned) message(d delivery, n int, opts *Options) *orders.Message {
	if opts.ReviewTeam.IsZero() {
		return nil
	}
	report := dossier{Number: "1"} // the id of a sample without one
	report.take(u.tests, true)
	if len(report.State.Tests) == 0 {
		return nil
	}
	done := report.complete(opts)
	results, _ := report.results(opts, done)
	m := orders.Message{
		ID: shortID([]byte("unassigned"), []byte(d.Key), []byte(strconv.Itoa(n))), Team: opts.ReviewTeam, On: orders.PartialResult, At: d.At, Lab: opts.LabSlug,
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
