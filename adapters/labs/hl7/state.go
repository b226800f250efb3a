package hl7

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// orderState is the merged state of all messages about one order. It does not depend on repeats, nor on the order of
// messages whose times can be compared.
type orderState struct {
	// Head is the metadata of the newest report, and HeadVersion its times.
	Head        labresult.Metadata
	HeadVersion version
	// Tests and Results map the keys of tests and of results to their newest versions.
	Tests   map[string]heldTest
	Results map[string]heldResult
	// Closed means that the laboratory has reported everything, and Stopped that it has cancelled the order.
	Closed, Stopped bool
	// Seq is the highest heldResult.Seq.
	Seq int
	// SentDigest is the digest of the last message to the orders.Service, FinalSent reports whether a final result
	// was sent, and Count is the number of messages that were sent.
	SentDigest string `json:"Told"`
	FinalSent  bool   `json:"ToldDone"`
	Count      int
	// Report is the id of the PDF document that covers all results; empty without one.
	Report string
	// Notes maps the notes on the patient and the visits to the time when each was first reported.
	Notes map[string]time.Time
	// Waiting maps the keys of deliveries to the segments of their tests that may be about several tests of the order.
	// They were not merged: the delivery waits for review.
	Waiting map[string][]int `json:",omitempty"`
}

// heldTest is the newest report of one test. Seq is its position in the order of first reports.
type heldTest struct {
	testIdentity
	version
	Seq   int `json:",omitempty"`
	Name  string
	Notes string
	// Sample is the id of the first sample and Data its description. More holds the other samples by id.
	Sample string
	Data   labresult.SampleData
	More   map[string]labresult.SampleData
	// Document reports whether the laboratory sent a document with the test.
	Document bool
}

// heldResult is the newest report of one result. Seq is its position in the order of first reports.
type heldResult struct {
	version
	Test   string
	Seq    int
	Result labresult.Result
	// Corrects means that the last message corrects a value of this result.
	Corrects bool `json:",omitempty"`
}

// mergeTests merges the tests of a message into the state of the order. If results is false, it only notes from them
// whether the laboratory has completed or cancelled the order, and its order number.
func (d *dossier) mergeTests(tests []TestReport, results bool) {
	s := &d.State
	s.Tests, s.Results, s.Notes = maps.Clone(s.Tests), maps.Clone(s.Results), maps.Clone(s.Notes)
	if s.Tests == nil {
		s.Tests, s.Results = map[string]heldTest{}, map[string]heldResult{}
	}
	if s.Notes == nil {
		s.Notes = map[string]time.Time{}
	}
	for k, h := range s.Results {
		h.Corrects = false
		s.Results[k] = h
	}
	keys, _ := s.find(tests)
	for i := range tests {
		t := &tests[i]
		if d.SampleID == "" {
			d.SampleID = t.Filler
		}
		switch {
		case t.OrderStatus == "CM":
			s.Closed = true
		case t.OrderStatus == "CA" || t.Control == "OC" || t.Control == "UA":
			s.Stopped = true
		}
		if !results || t.statusOnly() {
			continue
		}
		if n := text(t.Head.Notes); n != "" {
			if at, ok := s.Notes[n]; !ok || t.At.Before(at) {
				s.Notes[n] = t.At
			}
		}
		if head, v := t.Head, t.version(""); v.replaces(s.HeadVersion) {
			head.SpecimenNumber = t.Sample
			if t.Reported != nil {
				head.DateReported = t.Reported.Text()
			}
			if t.Collected != nil {
				head.DateCollected = optional(t.Collected.Text())
			}
			if t.Received != nil {
				head.DateReceived = optional(t.Received.Text())
			}
			s.Head, s.HeadVersion = head, v
		}
		if t.held = keys[i]; t.held == "" {
			t.held = unused(t.identity().key(), s.Tests)
		}
		t.newest = s.test(t)
		s.results(t)
	}
}

// unused returns a key that is not in the map: key, else key with a number.
func unused[V any](key string, in map[string]V) string {
	out := key
	for n := 1; ; n++ {
		if _, used := in[out]; !used {
			return out
		}
		out = fmt.Sprint(key, "#", n)
	}
}

func (s *orderState) testsInOrder() []string {
	return slices.SortedFunc(maps.Keys(s.Tests), func(a, b string) int {
		return cmp.Or(s.Tests[a].Seq-s.Tests[b].Seq, strings.Compare(a, b))
	})
}

// test merges a report, without its results, into the test that it is about. It reports whether the report is the
// newest of the test.
func (s *orderState) test(t *TestReport) (newest bool) {
	id := t.identity()
	held, ok := s.Tests[t.held]
	if !ok {
		held.Seq = len(s.Tests) + 1
	}
	first, more := t.samples()
	switch stated := len(id.Specimens) > 0; {
	case !stated && (len(held.Specimens) > 0 || t.Sample == "") && held.Sample != "":
		t.Sample, first.SampleID = held.Sample, held.Data.SampleID
	case stated && len(held.Specimens) == 0 || held.Sample == "":
		held.Sample, held.Data.SampleID, held.More = t.Sample, first.SampleID, more
	}
	if newest = !ok || t.version(t.Status).replaces(held.version); newest {
		first.PerformingLaboratories = held.Data.PerformingLaboratories
		if t.Sample == held.Sample {
			fillSample(&first, held.Data)
		}
		if more == nil {
			more = held.More
		}
		held = heldTest{
			testIdentity: id.with(held.testIdentity), version: t.version(t.Status), Seq: held.Seq, Name: t.Name, Notes: t.Notes, Sample: t.Sample,
			Data: first, More: more, Document: held.Document,
		}
	} else {
		held.testIdentity = held.with(id)
		if t.Sample == held.Sample {
			fillSample(&held.Data, first)
		}
	}
	held.Document = held.Document || len(t.Documents) > 0
	held.Data.PerformingLaboratories = maps.Clone(held.Data.PerformingLaboratories)
	for name, lab := range t.Laboratories {
		if held.Data.PerformingLaboratories == nil {
			held.Data.PerformingLaboratories = map[string]labresult.PerformingLaboratory{}
		}
		held.Data.PerformingLaboratories[name] = lab
	}
	s.Tests[t.held] = held
	return newest
}

// results merges the results of a report into those of its test. A cancelled test (OBR-25 X) has no other results than
// final ones of the report that cancels it: the others become missing.
func (s *orderState) results(t *TestReport) {
	keys := s.matchResults(t.held, t.Observations)
	cancelled := s.Tests[t.held].Status == "X"
	for k, h := range s.Results {
		x := t.version("X")
		if cancelled && t.newest && h.Test == t.held && !h.hidden() && !contains(keys, k) && x.replaces(h.version) {
			h.version, h.Result = x, withoutValue(h.Result)
			s.Results[k] = h
		}
	}
	for i, o := range t.Observations {
		if cancelled && (!t.newest || rank(o.Status) == 0) {
			o.Status = "X"
		}
		if cancelled && !t.newest {
			o.Result = withoutValue(o.Result)
		}
		old, ok := s.Results[keys[i]]
		if ok && !t.version(o.Status).replaces(old.version) {
			continue
		}
		now := heldResult{version: t.version(o.Status), Test: t.held, Seq: old.Seq, Result: o.Result}
		if !ok {
			s.Seq++
			now.Seq, keys[i] = s.Seq, unused(t.held+"|"+o.Key, s.Results)
		}
		if o.Status == "U" && o.Result.Result == "" && ok {
			now.Result = old.Result // the final version may omit the value
		}
		corrected := o.Status == "C" || t.Status == "C"
		now.Corrects = ok && (old.Corrects || corrected && old.Result.Result != "" && now.Result.Result != "" && old.Result.Result != now.Result.Result)
		s.Results[keys[i]] = now
	}
}

func withoutValue(r labresult.Result) labresult.Result {
	r.Result, r.Notes, r.Codes = "", nil, nil
	return r
}

// samples returns the samples of a report: the first one, and the others by id.
func (t *TestReport) samples() (first labresult.SampleData, more map[string]labresult.SampleData) {
	data := func(s Specimen) labresult.SampleData {
		return labresult.SampleData{
			SampleID: optional(s.ID), ControlNumber: optional(t.Filler), DateCollected: s.Collected, DateReceived: s.Received, DateReported: t.Reported,
			SpecimenType: s.Type, TypeModifiers: s.TypeModifiers, SpecimenSite: s.Site, SiteModifiers: s.SiteModifiers,
			CollectionMethod: s.CollectionMethod, CollectionSite: s.CollectionSite, Conditions: s.Conditions, RejectReasons: s.RejectReasons,
			Additives: s.Additives, ContainerType: s.ContainerType, Description: s.Description, ClinicalInformation: clinical(s.Notes, s.Amount),
		}
	}
	if len(t.Specimens) == 0 {
		first = data(Specimen{ID: t.Sample})
	} else {
		first = data(t.Specimens[0])
		for _, s := range t.Specimens[1:] {
			if more == nil {
				more = map[string]labresult.SampleData{}
			}
			more[s.ID] = data(s)
		}
	}
	first.DateCollected, first.DateReceived = t.Collected, t.Received
	notes, volume := "", t.amount
	if c := first.ClinicalInformation; c != nil {
		notes, volume = text(c.Notes), cmp.Or(text(c.TotalVolume), volume)
	}
	first.ClinicalInformation = clinical(strings.Join(nonEmpty(t.Notes, notes), "\n"), volume)
	return first, more
}

func clinical(notes, volume string) *labresult.ClinicalInformation {
	if notes == "" && volume == "" {
		return nil
	}
	return &labresult.ClinicalInformation{Notes: optional(notes), TotalVolume: optional(volume)}
}

// fillSample fills missing fields of a sample from another description of the sample.
func fillSample(s *labresult.SampleData, from labresult.SampleData) {
	s.ControlNumber = cmp.Or(s.ControlNumber, from.ControlNumber)
	s.DateCollected, s.DateReceived = cmp.Or(s.DateCollected, from.DateCollected), cmp.Or(s.DateReceived, from.DateReceived)
	s.DateReported = cmp.Or(s.DateReported, from.DateReported)
	s.Description = cmp.Or(s.Description, from.Description)
	for to, other := range map[**labresult.Coded]*labresult.Coded{
		&s.SpecimenType: from.SpecimenType, &s.SpecimenSite: from.SpecimenSite,
		&s.CollectionMethod: from.CollectionMethod, &s.CollectionSite: from.CollectionSite, &s.ContainerType: from.ContainerType,
	} {
		*to = cmp.Or(*to, other)
	}
	for to, other := range map[*[]labresult.Coded][]labresult.Coded{
		&s.TypeModifiers: from.TypeModifiers, &s.SiteModifiers: from.SiteModifiers, &s.Conditions: from.Conditions, &s.RejectReasons: from.RejectReasons,
		&s.Additives: from.Additives,
	} {
		if *to == nil {
			*to = other
		}
	}
}

// complete reports whether each ordered test is final, cancelled or refused.
func (d *dossier) complete(opts *Options) bool {
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
			if t.matches(o, opts) {
				final[o.Code], known = true, true
			}
		}
	}
	if s.Closed || !known {
		return true
	}
	for _, o := range d.Tests {
		if !final[o.Code] && !o.Refused {
			return false
		}
	}
	return true
}

// matches reports whether a reported test is an ordered one.
func (t heldTest) matches(o orderedTest, opts *Options) bool {
	for _, c := range t.Codes {
		if c == o.Code || opts.Tests[c] == o.Code && o.Code != "" {
			return true
		}
	}
	return false
}
