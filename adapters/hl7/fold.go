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
)

// State is what was reported of an order so far, gathered over its messages. It does
// not depend on the order in which they came, nor on how often.
type State struct {
	Head     orders.ResultsMetadata
	HeadAt   time.Time
	Tests    map[string]HeldTest
	Results  map[string]Held
	Closed   bool // the laboratory says that there is no more to come
	Stopped  bool // the laboratory stopped the order
	Seq      int  // of what was seen, for the order of results
	Told     string
	ToldDone bool
	Report   string // the document that says all that the results say; empty for none
	Count    int    // of messages told
}

// HeldTest is where a test stands.
type HeldTest struct {
	Codes  []string
	Name   string
	Status string
	At     time.Time
	Notes  string
	Sample string
	Data   orders.SampleData
}

// Held is the newest of what was reported of one result.
type Held struct {
	Test   string
	Status string
	At     time.Time
	Seq    int
	Result orders.LabResult
}

// rank orders statuses where times do not: what is preliminary gives way to what is
// final, and that to what corrects it.
func rank(status string) int {
	switch status {
	case "F", "U":
		return 1
	case "X":
		return 2
	case "C", "W":
		return 3
	case "D":
		return 4
	}
	return 0 // P, I, R, S, A and unknown codes
}

// newer reports whether a report replaces another of the same thing.
func newer(status string, at time.Time, held string, heldAt time.Time) bool {
	if final, was := rank(status) > 0, rank(held) > 0; final != was {
		return final // a preliminary result never replaces a final one, however late it comes
	}
	if !at.Equal(heldAt) {
		return at.After(heldAt)
	}
	return rank(status) >= rank(held)
}

// take gathers what a message says of the order and, if it is one of results, of its
// tests.
func (d *Dossier) take(tests []TestReport, results bool) {
	s := &d.State
	s.Tests, s.Results = maps.Clone(s.Tests), maps.Clone(s.Results)
	if s.Tests == nil {
		s.Tests, s.Results = map[string]HeldTest{}, map[string]Held{}
	}
	for _, t := range tests {
		if d.SampleID == "" {
			d.SampleID = t.Filler
		}
		switch {
		case t.OrderStatus == "CM":
			s.Closed = true
		case t.OrderStatus == "CA" || t.Control == "OC" || t.Control == "UA":
			s.Stopped = true
		}
		if !results || len(t.Codes) == 0 && len(t.Observations) == 0 {
			continue // of the order, not of what was measured
		}
		if head := t.Head; !t.At.Before(s.HeadAt) {
			head.SpecimenNumber = t.Sample
			head.DateReported = date(t.At)
			if t.Collected != nil {
				head.DateCollected = optional(t.Collected.Timestamp.String())
			}
			if t.Received != nil {
				head.DateReceived = optional(t.Received.Timestamp.String())
			}
			s.Head, s.HeadAt = head, t.At
		}
		s.test(t)
	}
}

// key tells a test from the others of its order.
func (t *TestReport) key() string {
	key := t.Filler
	for _, c := range t.Codes {
		key += "|" + c
	}
	return key
}

func (s *State) test(t TestReport) {
	key := t.key()
	held, ok := s.Tests[key]
	if !ok || newer(t.Status, t.At, held.Status, held.At) {
		data := orders.SampleData{
			SampleID: optional(t.Sample), ControlNumber: optional(t.Filler), DateCollected: t.Collected, DateReceived: t.Received,
			DateReported: reported(t.At), PerformingLaboratories: maps.Clone(held.Data.PerformingLaboratories),
		}
		if t.Notes != "" {
			data.ClinicalInformation = &orders.ClinicalInformation{Notes: optional(t.Notes)}
		}
		held = HeldTest{Codes: t.Codes, Name: t.Name, Status: t.Status, At: t.At, Notes: t.Notes, Sample: t.Sample, Data: data}
	}
	held.Data.PerformingLaboratories = maps.Clone(held.Data.PerformingLaboratories)
	for name, lab := range t.Laboratories {
		if held.Data.PerformingLaboratories == nil {
			held.Data.PerformingLaboratories = map[string]orders.PerformingLaboratory{}
		}
		held.Data.PerformingLaboratories[name] = lab
	}
	s.Tests[key] = held
	for _, o := range t.Observations {
		k := key + "|" + o.Key
		old, ok := s.Results[k]
		if ok && !newer(o.Status, t.At, old.Status, old.At) {
			continue
		}
		now := Held{Test: key, Status: o.Status, At: t.At, Seq: old.Seq, Result: o.Result}
		if !ok {
			s.Seq++
			now.Seq = s.Seq
		}
		if o.Status == "U" && o.Result.Result == "" && ok {
			now.Result = old.Result // final now, and not sent again
		}
		s.Results[k] = now
	}
}

// complete reports whether everything that was ordered is there, or never will be.
func (d *Dossier) complete(opts *Options) bool {
	s := &d.State
	if len(s.Tests) == 0 {
		return false
	}
	for _, h := range s.Results {
		if rank(h.Status) == 0 {
			return false
		}
	}
	final := map[string]bool{}
	known := false
	for key, t := range s.Tests {
		done := rank(t.Status) > 0
		if t.Status == "" {
			done = slices.ContainsFunc(slices.Collect(maps.Values(s.Results)), func(h Held) bool { return h.Test == key })
		}
		if !done {
			return false
		}
		for _, o := range d.Tests {
			if t.is(o, opts) {
				final[o.Code], known = true, true
			}
		}
	}
	if s.Closed || !known {
		return true
	}
	for _, o := range d.Tests {
		if !final[o.Code] {
			return false
		}
	}
	return true
}

// is reports whether a reported test is one that was ordered.
func (t HeldTest) is(o Test, opts *Options) bool {
	for _, c := range t.Codes {
		if c == o.Code || opts.Tests[c] == o.Code && o.Code != "" {
			return true
		}
	}
	return false
}

// results returns what is known, and whether any of it is a result.
func (d *Dossier) results(opts *Options, done bool) (orders.OrderResults, bool) {
	s := &d.State
	out := orders.OrderResults{Metadata: s.Head, Results: []orders.LabResult{}, SampleInformation: map[string]orders.SampleData{}}
	out.Metadata.Status = orders.ResultPartial
	if done {
		out.Metadata.Status, out.MissingResults = orders.ResultFinal, []orders.MissingResult{}
	}
	keys := slices.SortedFunc(maps.Keys(s.Results), func(a, b string) int { return s.Results[a].Seq - s.Results[b].Seq })
	for _, k := range keys {
		h := s.Results[k]
		t := s.Tests[h.Test]
		h.Result.SourceMarkers = d.source(t, opts)
		switch {
		case h.Status == "D" || h.Status == "W" || h.Status == "R":
			// Deleted, wrong, or not verified yet: not to be shown.
		case h.Status == "X":
			if done {
				out.MissingResults = append(out.MissingResults, missing(h.Result, t.Notes))
			}
		case h.Result.Result != "":
			if n := h.Result.Notes; n == nil || *n == "" {
				h.Result.Notes = nil
				if h.Result.Type == orders.RangeResult || h.Result.Type == orders.CommentResult {
					h.Result.Notes = optional(h.Result.Result)
				}
			}
			out.Results = append(out.Results, h.Result)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		t := s.Tests[key]
		if t.Sample != "" {
			out.SampleInformation[t.Sample] = t.Data
		}
		if done && t.Status == "X" && !slices.ContainsFunc(keys, func(k string) bool { return s.Results[k].Test == key && s.Results[k].Status == "X" }) {
			gone := orders.LabResult{Name: t.Name, Slug: slug(t.Name), SourceMarkers: d.source(t, opts)}
			if len(t.Codes) > 0 {
				gone.ProviderID = optional(t.Codes[0])
			}
			out.MissingResults = append(out.MissingResults, missing(gone, t.Notes))
		}
	}
	return out, len(out.Results) > 0
}

func (d *Dossier) source(t HeldTest, opts *Options) []orders.SourceMarker {
	var out []orders.SourceMarker
	for _, o := range d.Tests {
		if t.is(o, opts) {
			out = append(out, o.Marker)
		}
	}
	return out
}

func missing(r orders.LabResult, testNotes string) orders.MissingResult {
	note := text(r.Notes)
	for _, more := range []string{r.Result, testNotes} {
		if note == "" {
			note = more
		}
	}
	failure, _ := reason(note)
	return orders.MissingResult{
		Name: r.Name, Slug: r.Slug, InferredFailureType: failure, Note: optional(note),
		LOINC: r.LOINC, LOINCSlug: r.LOINCSlug, ProviderID: r.ProviderID, SourceMarkers: r.SourceMarkers,
	}
}

// report notes which document says all that the results say, once the tests of a delivery
// were taken, which changed the results or did not: the one of a delivery that is of all
// tests, where nothing of it was outdated and it had no other. What is withdrawn, or
// what newer documents speak of a part only, says it no more.
func (d *Dossier) report(tests []TestReport, changed bool) {
	s := &d.State
	var ids []string
	here := map[string]bool{}
	fresh, news := true, false
	for _, t := range tests {
		key := t.key()
		if held, ok := s.Tests[key]; ok {
			here[key] = true
			fresh = fresh && held.Status == t.Status && held.At.Equal(t.At)
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

// tell returns what the order's service is to be told after a delivery with these tests;
// nil if that is nothing that it does not know.
func (d *Dossier) tell(tests []TestReport, delivery Delivery, opts *Options) *orders.Message {
	s := &d.State
	m := orders.Message{Team: d.Team, Order: d.Order, SampleID: d.SampleID, At: delivery.At, Lab: opts.LabSlug}
	for _, t := range s.Tests {
		if t.Data.DateCollected != nil && (m.CollectedAt.IsZero() || t.Data.DateCollected.Timestamp.Before(m.CollectedAt)) {
			m.CollectedAt = t.Data.DateCollected.Timestamp.Time
		}
	}
	done := d.complete(opts) || s.ToldDone
	results, some := d.results(opts, done || s.Stopped)
	done = done || s.Stopped && some // what there is, is all there will be
	switch {
	case s.ToldDone:
		m.On, m.Results = orders.CorrectedResult, &results
	case done && !d.gone():
		m.On, m.Results, s.ToldDone = orders.FinalResult, &results, true
	case some:
		m.On, m.Results = orders.PartialResult, &results
	case s.Stopped && d.Method == catalogue.Testkit && !done:
		m.On = orders.Stopped
	case done, s.Stopped:
		m.On, m.Detail = orders.SampleRejected, why(results.MissingResults)
	default:
		d.report(tests, false)
		return nil // received, and no result yet
	}
	digest := digestOf(m.On == orders.CorrectedResult || m.On == orders.FinalResult, m.On == orders.SampleRejected || m.On == orders.Stopped, m.Results)
	was := s.Report
	d.report(tests, digest != s.Told)
	if digest == s.Told && s.Report == was {
		return nil
	}
	if m.Results != nil {
		m.ReportFile = s.Report
	}
	s.Told = digest
	s.Count++
	m.ID = short([]byte(d.Number), []byte(delivery.Key), []byte(digest))
	return &m
}

// gone reports whether the laboratory will report nothing of anything.
func (d *Dossier) gone() bool {
	for key, t := range d.State.Tests {
		if t.Status == "X" {
			continue
		}
		lost := false
		for _, h := range d.State.Results {
			if h.Test == key && h.Status != "X" {
				return false
			}
			lost = lost || h.Test == key
		}
		if !lost {
			return false // without results, such as a report that is a document
		}
	}
	return true
}

// why returns the reason of the first missing result that has one.
func why(gone []orders.MissingResult) orders.StatusDetail {
	for _, g := range gone {
		if _, detail := reason(text(g.Note)); detail != "" {
			return detail
		}
	}
	return ""
}

// digestOf tells whether a message would be news. The head of a report changes with
// every message, so it is no news.
func digestOf(done, stopped bool, r *orders.OrderResults) string {
	b := make([]byte, 0, 4096)
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(append(b, p...), 0)
		}
	}
	add(strconv.FormatBool(done), strconv.FormatBool(stopped))
	if r != nil {
		for _, l := range r.Results {
			add("result", l.Name, l.Result, string(l.Type), text(l.Unit), text(l.Notes), text(l.ReferenceRange), string(l.Interpretation),
				l.SourceInterpretation, text(l.LOINC), text(l.ProviderID), text(l.SourceSampleID), text(l.PerformingLaboratory))
			if l.Timestamp != nil {
				b = l.Timestamp.Append(b)
			}
		}
		for _, m := range r.MissingResults {
			add("missing", m.Name, string(m.InferredFailureType), text(m.Note), text(m.LOINC), text(m.ProviderID))
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func reported(at time.Time) *orders.TimestampWithOffset {
	if at.IsZero() {
		return nil
	}
	_, offset := at.Zone()
	return &orders.TimestampWithOffset{Timestamp: healthlab.At(at), TimezoneOffset: offset}
}

func date(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return healthlab.At(at).String()
}
