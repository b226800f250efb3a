package exchange

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// completion has the catalogue's data of a lab test, for [labresult.Complete]. Nil completes nothing.
type completion struct {
	test     catalogue.LabTest
	expected map[int][]catalogue.ExpectedResult
}

func (s *Service) completion(ctx context.Context, t catalogue.LabTest) (*completion, error) {
	expected, err := s.catalogue.ExpectedResults(ctx, t.MarkerIDs())
	if err != nil {
		return nil, fmt.Errorf("find expected results: %w", err)
	}
	return &completion{t, expected}, nil
}

// complete returns the message with its report completed. If final is true, the report gets the required results that
// it does not mention as missing ones. It returns m unchanged if m has no report.
func (c *completion) complete(m Message, final bool) Message {
	if c != nil && m.Results != nil {
		results := labresult.Complete(*m.Results, c.test, c.expected, final)
		m.Results = &results
	}
	return m
}

// withAttached returns a laboratory's message about the order r with the results that persons attached to r. An
// attached result stays until the laboratory reports its test. This is the only implementation of the rule: a backend
// reports everything that its laboratory said about an order, and knows no decision of a person. The report is final
// if the laboratory awaits only results that are attached. withAttached stores in r what remains attached.
func (m Message) withAttached(r *orders.Record, c *completion) Message {
	if !m.reportsResults() {
		return m
	}
	m = c.complete(m, false)
	own := m
	m.On = m.triggerFor(r)
	r.Awaited = nil
	if own.On == orders.PartialResult {
		r.Awaited = own.Awaited
	}
	if r.Attached != nil {
		left := own.remaining(*r.Attached)
		if r.Attached = &left; len(left.Report.Results) > 0 {
			joined := labresult.Join(*m.Results, left.Report)
			m.Results, m.ReportFile = &joined, ""
			if m.On == orders.PartialResult && isComplete(r) || m.On == orders.SampleRejected {
				m.On = orders.FinalResult
			}
		}
	}
	return c.complete(m, m.On != orders.PartialResult)
}

// remaining returns a without the results that the laboratory's report m replaces, and with the report.
func (m Message) remaining(a orders.AttachedResults) orders.AttachedResults {
	before, now := labresult.Report{}, *m.Results
	if a.Lab != nil {
		before = *a.Lab
	}
	outdated, ignored := labresult.Outdated(a.Report.Results, before, now, func(lab, attached *labresult.Result) bool {
		return m.On == orders.PartialResult && markersIn(lab, m.Awaited) && markersIn(attached, a.Final)
	})
	var kept []labresult.Result
	final := slices.Clone(a.Final)
	for i, r := range a.Report.Results {
		if !outdated[i] {
			kept = append(kept, r)
			continue
		}
		final = slices.DeleteFunc(final, func(id int) bool { return hasMarker(&r, id) })
	}
	// An ignored result is not stored, so that its final version is a new result.
	stored := now.Results
	now.Results = nil
	for i, r := range stored {
		if !slices.Contains(ignored, i) {
			now.Results = append(now.Results, r)
		}
	}
	now.Metadata.Status = labresult.Final
	if m.On == orders.PartialResult {
		now.Metadata.Status = labresult.Partial
	}
	a.Report.Results, a.Final, a.Lab = kept, final, &now
	return a
}

// attach adds the results of a message to an order that a person chose. It returns the message with the order's whole
// report: the other results stay, and the message's replace those of the same tests. The report is final if the message
// is the final report of the order, or if the laboratory awaits only results that are attached. c completes the report
// for the order.
func (m Message) attach(r *orders.Record, c *completion, at time.Time) Message {
	m = c.complete(m, false)
	var a orders.AttachedResults
	switch {
	case r.Attached != nil:
		a = *r.Attached
	case r.Results != nil:
		own := *r.Results
		a.Lab = &own
	}
	added := *m.Results
	added.Results = slices.Clone(added.Results)
	for i := range added.Results {
		added.Results[i].PreviousResult, added.Results[i].CorrectedAt = nil, nil
	}
	a.Final = append(slices.Clone(a.Final), m.finalMarkers(r.ID, r.LabTest)...)
	if len(a.Report.Results) == 0 {
		a.Report = added
	} else {
		a.Report = labresult.Join(a.Report, added)
	}
	r.Attached = &a
	whole := a.Report
	if a.Lab != nil {
		whole = labresult.Join(*a.Lab, a.Report)
		m.Patient = r.ReportedPatient
	}
	if len(whole.Results) > len(added.Results) {
		m.ReportFile = "" // it has the message's results alone
	}
	if whole.Results = slices.Clone(whole.Results); r.Results != nil {
		for i := range whole.Results {
			whole.Results[i].CorrectedAt = new(healthlab.At(at)) // if it differs from the earlier result
		}
	}
	e, _ := orders.EndingOf(r.LowLevel())
	switch {
	case e.TakesResult:
		m.On = orders.CorrectedResult // a result for a completed order is a correction, whatever the lab calls it
	case m.On == orders.PartialResult && isComplete(r):
		m.On = orders.FinalResult
	case m.On == orders.SampleRejected && len(whole.Results) > 0:
		m.On = orders.PartialResult
	}
	if m.On == orders.PartialResult {
		whole.MissingResults = nil
	}
	m.Results = &whole
	return c.complete(m, m.On != orders.PartialResult)
}

// finalMarkers returns the ids of the markers of a lab test of which the message, which was attached to the order id,
// has final results, or says that there will be none.
func (m Message) finalMarkers(id orders.OrderID, t catalogue.LabTest) (out []int) {
	if m.On == orders.SampleRejected || m.On == orders.PartialResult && m.Awaited == nil {
		return nil
	}
	for _, marker := range orderedMarkers(t) {
		reported := m.Order == id || slices.ContainsFunc(m.Results.Results, func(r labresult.Result) bool { return hasMarker(&r, marker) })
		if reported && !slices.Contains(m.Awaited, marker) {
			out = append(out, marker)
		}
	}
	return out
}

// isComplete reports whether the laboratory awaits only results that are attached to the order r; false if it does not
// say what it awaits.
func isComplete(r *orders.Record) bool {
	awaited := r.Awaited
	if r.Attached.Lab == nil {
		awaited = orderedMarkers(r.LabTest)
	}
	return awaited != nil && !slices.ContainsFunc(awaited, func(id int) bool { return !slices.Contains(r.Attached.Final, id) })
}

// orderedMarkers returns the ids of the markers of a lab test that a laboratory gets an order for; nil for none.
func orderedMarkers(t catalogue.LabTest) (ids []int) {
	for _, m := range t.Markers {
		if m.IsOrderable == nil || *m.IsOrderable {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func hasMarker(r *labresult.Result, id int) bool {
	return slices.ContainsFunc(r.SourceMarkers, func(m labresult.SourceMarker) bool { return m.MarkerID == id })
}

func markersIn(r *labresult.Result, ids []int) bool {
	return len(r.SourceMarkers) > 0 && !slices.ContainsFunc(r.SourceMarkers, func(m labresult.SourceMarker) bool { return !slices.Contains(ids, m.MarkerID) })
}
