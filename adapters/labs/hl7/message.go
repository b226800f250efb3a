package hl7

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// statusMessages returns the messages that the orders.Service gets after a status message of the laboratory, one for
// each trigger.
func (d *dossier) statusMessages(tests []TestReport, in delivery, opts *Options) []exchange.Message {
	var out []exchange.Message
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
		m := exchange.Message{
			ID: digestID([]byte(d.Number), []byte(in.Key), []byte(on)), Team: d.Team, Order: d.Order, SampleID: d.SampleID, On: on, At: in.At,
			Patient: &t.Patient,
		}
		if on == orders.SampleReceived && t.Collected != nil {
			m.CollectedAt = collectedAt(t.Collected)
		}
		out = append(out, m)
	}
	return out
}

// resultMessage returns the message that the orders.Service gets after a delivery with these tests; nil if there is
// no result yet, or if the message would repeat the last one.
func (d *dossier) resultMessage(tests []TestReport, from delivery, opts *Options) *exchange.Message {
	s := &d.State
	m := exchange.Message{Team: d.Team, Order: d.Order, SampleID: d.SampleID, At: from.At, Lab: opts.LabSlug}
	m.Patient = &tests[len(tests)-1].Patient
	for _, t := range tests {
		if n := t.Filler; n != "" && n != d.SampleID && !contains(m.LabNumbers, n) {
			m.LabNumbers = append(m.LabNumbers, n)
		}
	}
	for _, t := range s.Tests {
		if at := t.Data.DateCollected; at != nil && (m.CollectedAt.IsZero() || collectedAt(at).Before(m.CollectedAt)) {
			m.CollectedAt = collectedAt(at)
		}
	}
	done := d.complete(opts) || s.FinalSent
	results, some := d.results(opts, done || s.Stopped)
	done = done || s.Stopped && some
	switch {
	case s.FinalSent, done && !d.rejected() && s.corrects():
		m.On, m.Results, s.FinalSent = orders.CorrectedResult, &results, true
	case done && !d.rejected():
		m.On, m.Results, s.FinalSent = orders.FinalResult, &results, true
	case some:
		m.On, m.Results, m.Awaited = orders.PartialResult, &results, d.awaited(opts)
	case s.Stopped && d.Method == catalogue.Testkit && !done:
		m.On = orders.Stopped
	case done, s.Stopped:
		m.On, m.Detail = orders.SampleRejected, d.rejectDetail()
	default:
		d.updateReport(tests, false)
		return nil // the laboratory has the sample, but no result yet
	}
	digest := digestOf(m.On == orders.CorrectedResult || m.On == orders.FinalResult, m.On == orders.SampleRejected || m.On == orders.Stopped, m.Results)
	was := s.Report
	d.updateReport(tests, digest != s.SentDigest)
	if digest == s.SentDigest && s.Report == was {
		return nil
	}
	switch {
	case m.Results != nil:
		m.ReportFile = s.Report
	case m.On == orders.SampleRejected && len(results.MissingResults) > 0:
		results.Results, m.Results = nil, &results
	}
	s.SentDigest = digest
	s.Count++
	m.ID = digestID([]byte(d.Number), []byte(from.Key), []byte(digest))
	return &m
}

// awaited returns the ids of the ordered markers without a final report; nil if a test that is not final belongs to
// none of them. Its rules are those of [dossier.complete].
func (d *dossier) awaited(opts *Options) []int {
	s := &d.State
	reported, open := map[string]bool{}, map[string]bool{}
	for _, h := range s.Results {
		reported[h.Test] = true
		open[h.Test] = open[h.Test] || rank(h.Status) == 0
	}
	final, unfinished := map[int]bool{}, map[int]bool{}
	for key, t := range s.Tests {
		isOpen := open[key] || rank(t.Status) == 0 && (t.Status != "" || !reported[key])
		of := d.source(t, opts)
		if isOpen && len(of) == 0 {
			return nil
		}
		for _, marker := range of {
			final[marker.MarkerID] = true
			unfinished[marker.MarkerID] = unfinished[marker.MarkerID] || isOpen
		}
	}
	out := []int{}
	for _, o := range d.Tests {
		if id := o.Marker.MarkerID; !o.Refused && (!final[id] || unfinished[id]) {
			out = append(out, id)
		}
	}
	return out
}

// collectedAt returns the collection time of a sample; for a date the start of the day in UTC.
func collectedAt(at *labresult.TimestampWithOffset) time.Time {
	switch at.Precision {
	case labresult.YearPrecision, labresult.MonthPrecision, labresult.DayPrecision:
		return healthlab.DateOf(at.Local()).At(time.UTC)
	}
	return at.Timestamp.Time
}

// updateReport sets State.Report, the document that covers all results, after the tests of a delivery were added;
// changed says whether they changed the results. A document covers all results if it is the only PDF of a delivery
// that contains all tests, none of them outdated. A document that is withdrawn, or older than a document of some
// tests, does not.
func (d *dossier) updateReport(tests []TestReport, changed bool) {
	s := &d.State
	var ids []string
	here := map[string]bool{}
	fresh, news := true, false
	for _, t := range tests {
		if t.held != "" {
			here[t.held], fresh = true, fresh && t.newest
		}
		news = news || t.Withdrawn
		for _, doc := range t.Documents {
			if id := documentID(d.Number, doc); doc.ContentType == "application/pdf" && !slices.Contains(ids, id) {
				ids, news = append(ids, id), true
			}
		}
	}
	switch {
	case fresh && len(ids) == 1 && len(here) == len(s.Tests):
		s.Report = ids[0]
	case changed, fresh && news:
		s.Report = ""
	}
}

// digestOf returns a digest that is equal for messages with equal content. Of the report's metadata it includes only
// the notes, because the rest changes with every message.
func digestOf(done, stopped bool, r *labresult.Report) string {
	b := make([]byte, 0, 4096)
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(append(b, p...), 0)
		}
	}
	add(strconv.FormatBool(done), strconv.FormatBool(stopped))
	coded := func(name string, list ...labresult.Coded) {
		for _, c := range list {
			add(name, c.Text)
			for _, code := range c.Codes {
				add(code.Code, code.Text, code.System)
			}
		}
	}
	if r != nil {
		add(text(r.Metadata.Notes))
		for _, l := range r.Results {
			add("result", l.Name, l.Result, string(l.Type), text(l.Unit), text(l.Notes), text(l.ReferenceRange), string(l.Interpretation),
				l.SourceInterpretation, text(l.LOINC), text(l.ProviderID), text(l.SourceSampleID), text(l.PerformingLaboratory), l.Group)
			coded("codes", labresult.Coded{Codes: l.Codes})
			coded("method", l.Methods...)
			coded("equipment", l.Equipment...)
			if p := l.Parent; p != nil {
				add("parent", p.PlacerNumber, p.FillerNumber, p.Group, p.Value)
			}
			if l.Timestamp != nil {
				b = l.Timestamp.Append(b)
				b = append(b, l.TimestampPrecision...)
			}
		}
		for _, m := range r.MissingResults {
			add("missing", m.Name, string(m.InferredFailureType), text(m.Note), text(m.LOINC), text(m.ProviderID), m.Group)
		}
		for _, id := range slices.Sorted(maps.Keys(r.SampleInformation)) {
			sample := r.SampleInformation[id]
			add("sample", id)
			for _, c := range []*labresult.Coded{sample.SpecimenType, sample.SpecimenSite, sample.CollectionMethod, sample.CollectionSite, sample.ContainerType} {
				if c != nil {
					coded("specimen", *c)
				}
			}
			for _, list := range [][]labresult.Coded{sample.TypeModifiers, sample.SiteModifiers, sample.Conditions, sample.RejectReasons, sample.Additives} {
				coded("list", list...)
			}
			if sample.Description != "" {
				add("description", sample.Description)
			}
			if c := sample.ClinicalInformation; c != nil {
				add("notes", text(c.Notes))
				if c.TotalVolume != nil {
					add("volume", *c.TotalVolume)
				}
			}
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
