package hl7

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	// Notes are those on the patient and the visits, with when each was first reported.
	Notes map[string]time.Time
}

// HeldTest is where a test stands.
type HeldTest struct {
	Codes  []string
	Name   string
	Status string
	At     time.Time
	Notes  string
	// Sample is the id of the first sample and Data what is known of it; More are the
	// other samples by id.
	Sample string
	Data   orders.SampleData
	More   map[string]orders.SampleData
	Parent *orders.ParentResult
	// Document: a document came with the test.
	Document bool
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
	s.Tests, s.Results, s.Notes = maps.Clone(s.Tests), maps.Clone(s.Results), maps.Clone(s.Notes)
	if s.Tests == nil {
		s.Tests, s.Results = map[string]HeldTest{}, map[string]Held{}
	}
	if s.Notes == nil {
		s.Notes = map[string]time.Time{}
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
		if n := text(t.Head.Notes); n != "" {
			if at, ok := s.Notes[n]; !ok || t.At.Before(at) {
				s.Notes[n] = t.At
			}
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

// key tells a test from the others of its order. Susceptibilities of several isolates have
// the same numbers and codes, and another parent.
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

// samples returns what a report says of its samples: of the first one, and of the others by
// id.
func (t *TestReport) samples() (first orders.SampleData, more map[string]orders.SampleData) {
	data := func(s Specimen) orders.SampleData {
		return orders.SampleData{
			SampleID: optional(s.ID), ControlNumber: optional(t.Filler), DateCollected: s.Collected, DateReceived: s.Received, DateReported: reported(t.At),
			SpecimenType: s.Type, TypeModifiers: s.TypeModifiers, SpecimenSite: s.Site, SiteModifiers: s.SiteModifiers,
			CollectionMethod: s.CollectionMethod, CollectionSite: s.CollectionSite, Conditions: s.Conditions, RejectReasons: s.RejectReasons,
		}
	}
	if len(t.Specimens) == 0 {
		first = data(Specimen{ID: t.Sample})
	} else {
		first = data(t.Specimens[0])
		for _, s := range t.Specimens[1:] {
			if more == nil {
				more = map[string]orders.SampleData{}
			}
			more[s.ID] = data(s)
		}
	}
	first.DateCollected, first.DateReceived = t.Collected, t.Received
	if t.Notes != "" {
		first.ClinicalInformation = &orders.ClinicalInformation{Notes: optional(t.Notes)}
	}
	return first, more
}

// describe fills in what is not known of a sample from another description of it.
func describe(s *orders.SampleData, from orders.SampleData) {
	s.ControlNumber = cmp.Or(s.ControlNumber, from.ControlNumber)
	s.DateCollected, s.DateReceived = cmp.Or(s.DateCollected, from.DateCollected), cmp.Or(s.DateReceived, from.DateReceived)
	s.DateReported = cmp.Or(s.DateReported, from.DateReported)
	for to, other := range map[**orders.Coded]*orders.Coded{
		&s.SpecimenType: from.SpecimenType, &s.SpecimenSite: from.SpecimenSite,
		&s.CollectionMethod: from.CollectionMethod, &s.CollectionSite: from.CollectionSite,
	} {
		*to = cmp.Or(*to, other)
	}
	for to, other := range map[*[]orders.Coded][]orders.Coded{
		&s.TypeModifiers: from.TypeModifiers, &s.SiteModifiers: from.SiteModifiers, &s.Conditions: from.Conditions, &s.RejectReasons: from.RejectReasons,
	} {
		if *to == nil {
			*to = other
		}
	}
}

func (s *State) test(t TestReport) {
	key := t.key()
	held, ok := s.Tests[key]
	first, more := t.samples()
	if !ok || newer(t.Status, t.At, held.Status, held.At) {
		first.PerformingLaboratories = held.Data.PerformingLaboratories
		if t.Sample == held.Sample {
			describe(&first, held.Data)
		}
		if more == nil {
			more = held.More
		}
		held = HeldTest{
			Codes: t.Codes, Name: t.Name, Status: t.Status, At: t.At, Notes: t.Notes, Sample: t.Sample, Data: first, More: more,
			Parent: t.Parent, Document: held.Document,
		}
	} else if t.Sample == held.Sample {
		describe(&held.Data, first)
	}
	held.Document = held.Document || len(t.Documents) > 0
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
	final, reported := map[string]bool{}, map[string]bool{}
	known := false
	for _, h := range s.Results {
		reported[h.Test] = true
	}
	for key, t := range s.Tests {
		done := rank(t.Status) > 0
		if t.Status == "" {
			done = reported[key]
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
	out.Metadata.Notes = optional(s.notes())
	sampleOf := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		sampleOf[key] = d.addSamples(out.SampleInformation, s.Tests[key])
	}
	for _, k := range s.inOrder() {
		h := s.Results[k]
		t := s.Tests[h.Test]
		h.Result.SourceMarkers, h.Result.SourceSampleID = d.source(t, opts), optional(sampleOf[h.Test])
		h.Result.Result = strings.TrimRight(h.Result.Result, "\n")
		switch {
		case h.Status == "D" || h.Status == "W" || h.Status == "R":
			// Deleted, wrong, or not verified yet: not to be shown.
		case h.absent():
			if done {
				out.MissingResults = append(out.MissingResults, s.missing(h.Result, t))
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
	unreported := s.unreported()
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		if t := s.Tests[key]; done && unreported[key] {
			gone := orders.LabResult{Name: t.Name, Slug: slug(t.Name), SourceMarkers: d.source(t, opts), Parent: t.Parent}
			if len(t.Codes) > 0 {
				gone.ProviderID = optional(t.Codes[0])
			}
			out.MissingResults = append(out.MissingResults, s.missing(gone, t))
		}
	}
	return out, len(out.Results) > 0
}

// inOrder returns the keys of the results in the order in which they were first reported.
func (s *State) inOrder() []string {
	return slices.SortedFunc(maps.Keys(s.Results), func(a, b string) int { return s.Results[a].Seq - s.Results[b].Seq })
}

// notes returns the notes on the patient and the visits in the order in which they were
// reported.
func (s *State) notes() string {
	list := slices.SortedFunc(maps.Keys(s.Notes), func(a, b string) int {
		return cmp.Or(s.Notes[a].Compare(s.Notes[b]), strings.Compare(a, b))
	})
	return strings.Join(list, "\n")
}

// addSamples adds the samples of a test and returns the key of its first one. Several tests
// may be of one sample; one that is described in another way, such as an isolate under the
// number of the blood that it grew from, gets a key of its own.
func (d *Dossier) addSamples(to map[string]orders.SampleData, t HeldTest) string {
	add := func(id string, data orders.SampleData) string {
		key := id
		for n := 2; contradict(to[key], data); n++ {
			if n > 50 { // enough to look for the same one
				n = len(to) + 1
			}
			key = fmt.Sprintf("%s-%d", id, n)
		}
		if have, ok := to[key]; ok {
			labs := maps.Clone(data.PerformingLaboratories)
			if labs == nil {
				labs = map[string]orders.PerformingLaboratory{}
			}
			maps.Copy(labs, have.PerformingLaboratories)
			if len(labs) > 0 {
				have.PerformingLaboratories = labs
			}
			describe(&have, data)
			have.ClinicalInformation = joined(have.ClinicalInformation, data.ClinicalInformation)
			data = have
		}
		to[key] = data
		return key
	}
	first := add(cmp.Or(t.Sample, d.SampleID, d.Number), t.Data)
	for _, id := range slices.Sorted(maps.Keys(t.More)) {
		add(id, t.More[id])
	}
	return first
}

// contradict reports whether two descriptions cannot be of one sample.
func contradict(a, b orders.SampleData) bool {
	one := func(a, b *orders.Coded) bool { return a != nil && b != nil && !reflect.DeepEqual(a, b) }
	list := func(a, b []orders.Coded) bool { return a != nil && b != nil && !reflect.DeepEqual(a, b) }
	return one(a.SpecimenType, b.SpecimenType) || one(a.SpecimenSite, b.SpecimenSite) ||
		one(a.CollectionMethod, b.CollectionMethod) || one(a.CollectionSite, b.CollectionSite) ||
		list(a.TypeModifiers, b.TypeModifiers) || list(a.SiteModifiers, b.SiteModifiers) ||
		list(a.Conditions, b.Conditions) || list(a.RejectReasons, b.RejectReasons)
}

// joined returns the notes of two tests.
func joined(a, b *orders.ClinicalInformation) *orders.ClinicalInformation {
	if a == nil || b == nil || text(a.Notes) == text(b.Notes) {
		return cmp.Or(a, b)
	}
	return &orders.ClinicalInformation{Notes: optional(text(a.Notes) + "\n" + text(b.Notes))}
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

// absent reports whether the laboratory says that there is no result: by the status, by the
// text, or by nothing where a final result belongs.
func (h Held) absent() bool {
	return h.Status == "X" || rank(h.Status) > 0 && (strings.TrimSpace(h.Result.Result) == "" || notPerformed(h.Result))
}

// unreported returns the keys of the tests that ended and have no result, no missing one, and
// no document. A test whose results are those of tests that it led to is not one.
func (s *State) unreported() map[string]bool {
	out := map[string]bool{}
	children := map[string]int{} // tests by the number of their parent's test
	parent := func(t HeldTest) string {
		if t.Parent == nil {
			return ""
		}
		return t.Parent.FillerNumber
	}
	for _, t := range s.Tests {
		children[parent(t)]++
	}
	for key, t := range s.Tests {
		number := text(t.Data.ControlNumber)
		others := children[number]
		if parent(t) == number {
			others--
		}
		out[key] = t.Status == "X" || rank(t.Status) > 0 && !t.Document && (number == "" || others == 0)
	}
	for _, h := range s.Results {
		if s.Tests[h.Test].Status != "X" || h.absent() {
			out[h.Test] = false
		}
	}
	return out
}

// reasons are the laboratory's words on why a result of a test is missing, the nearest first.
func (s *State) reasons(r orders.LabResult, t HeldTest) []string {
	out := []string{text(r.Notes), r.Result, t.Notes}
	for _, data := range append([]orders.SampleData{t.Data}, slices.Collect(maps.Values(t.More))...) {
		for _, why := range data.RejectReasons {
			out = append(out, why.Text)
		}
	}
	return append(out, s.notes())
}

// longestReason bounds how much of the notes on a test or a patient, in characters, is
// repeated with each of its missing results.
const longestReason = 1000

// note returns what the laboratory says of a missing result; where that is a word alone,
// such as TNP, also the next reason.
func (s *State) note(r orders.LabResult, t HeldTest) string {
	own := strings.TrimSpace(r.Result + "\n" + text(r.Notes))
	if len(strings.Fields(own)) > 1 {
		return own
	}
	for _, other := range s.reasons(r, t)[2:] {
		if other != "" {
			return strings.TrimSpace(own + "\n" + string([]rune(other)[:min(len([]rune(other)), longestReason)]))
		}
	}
	return own
}

// why infers from the laboratory's words why a result of a test is missing.
func (s *State) why(r orders.LabResult, t HeldTest) (failure orders.FailureType, detail orders.StatusDetail) {
	for _, words := range s.reasons(r, t) {
		if failure, detail = reason(words); failure != orders.UnknownFailure {
			break
		}
	}
	return cmp.Or(failure, orders.UnknownFailure), detail
}

func (s *State) missing(r orders.LabResult, t HeldTest) orders.MissingResult {
	out := orders.MissingResult{
		Name: r.Name, Slug: r.Slug, LOINC: r.LOINC, LOINCSlug: r.LOINCSlug, ProviderID: r.ProviderID, SourceMarkers: r.SourceMarkers,
		Group: r.Group, Codes: r.Codes, Methods: r.Methods, Parent: r.Parent, Note: optional(s.note(r, t)),
	}
	out.InferredFailureType, _ = s.why(r, t)
	return out
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
	m := orders.Message{Team: d.Team, Order: d.Order, SampleID: d.SampleID, At: delivery.At, Lab: opts.LabSlug, Patient: d.patient()}
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
		m.On, m.Detail = orders.SampleRejected, d.refusal()
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
	switch {
	case m.Results != nil:
		m.ReportFile = s.Report
	case m.On == orders.SampleRejected && len(results.MissingResults) > 0:
		results.Results, m.Results = nil, &results
	}
	s.Told = digest
	s.Count++
	m.ID = short([]byte(d.Number), []byte(delivery.Key), []byte(digest))
	return &m
}

// gone reports whether the laboratory will report nothing of anything, and says so or says
// why.
func (d *Dossier) gone() bool {
	s := &d.State
	lost := s.unreported()
	for key, t := range s.Tests {
		failure, _ := s.why(orders.LabResult{}, t)
		lost[key] = t.Status == "X" || lost[key] && failure != orders.UnknownFailure
	}
	for _, h := range s.Results {
		t := s.Tests[h.Test]
		if t.Status == "X" {
			continue
		}
		failure, _ := s.why(h.Result, t)
		if !h.absent() || h.Status != "X" && h.Result.Result == "" && failure == orders.UnknownFailure {
			return false
		}
		lost[h.Test] = true
	}
	for key := range s.Tests {
		if !lost[key] {
			return false // without results, such as a report that is a document
		}
	}
	return true
}

// refusal returns why the laboratory reports nothing of the order, if it says so.
func (d *Dossier) refusal() orders.StatusDetail {
	s := &d.State
	for _, k := range s.inOrder() {
		if h := s.Results[k]; h.absent() {
			if _, detail := s.why(h.Result, s.Tests[h.Test]); detail != "" {
				return detail
			}
		}
	}
	unreported := s.unreported()
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		if _, detail := s.why(orders.LabResult{}, s.Tests[key]); unreported[key] && detail != "" {
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
	coded := func(name string, list ...orders.Coded) {
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
			coded("codes", orders.Coded{Codes: l.Codes})
			coded("method", l.Methods...)
			if p := l.Parent; p != nil {
				add("parent", p.PlacerNumber, p.FillerNumber, p.Group, p.Value)
			}
			if l.Timestamp != nil {
				b = l.Timestamp.Append(b)
			}
		}
		for _, m := range r.MissingResults {
			add("missing", m.Name, string(m.InferredFailureType), text(m.Note), text(m.LOINC), text(m.ProviderID), m.Group)
		}
		for _, id := range slices.Sorted(maps.Keys(r.SampleInformation)) {
			sample := r.SampleInformation[id]
			add("sample", id)
			for _, c := range []*orders.Coded{sample.SpecimenType, sample.SpecimenSite, sample.CollectionMethod, sample.CollectionSite} {
				if c != nil {
					coded("specimen", *c)
				}
			}
			for _, list := range [][]orders.Coded{sample.TypeModifiers, sample.SiteModifiers, sample.Conditions, sample.RejectReasons} {
				coded("list", list...)
			}
			if c := sample.ClinicalInformation; c != nil {
				add("notes", text(c.Notes))
			}
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
