package hl7

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// orderState is the merged state of all messages about one order. It does not depend on the order of messages or on
// repeats.
type orderState struct {
	// Head is the metadata of the newest report, and HeadAt its time.
	Head   labresult.Metadata
	HeadAt time.Time
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
}

// heldTest is the newest report of one test.
type heldTest struct {
	Codes  []string
	Name   string
	Status string
	At     time.Time
	Notes  string
	// Sample is the id of the first sample and Data its description. More holds the other samples by id.
	Sample string
	Data   labresult.SampleData
	More   map[string]labresult.SampleData
	Parent *labresult.ParentResult
	// Document reports whether the laboratory sent a document with the test.
	Document bool
}

// heldResult is the newest report of one result. Seq is its position in the order of first reports.
type heldResult struct {
	Test   string
	Status string
	At     time.Time
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
			continue // an ORC alone: the status of the order
		}
		if n := text(t.Head.Notes); n != "" {
			if at, ok := s.Notes[n]; !ok || t.At.Before(at) {
				s.Notes[n] = t.At
			}
		}
		if head := t.Head; !t.At.Before(s.HeadAt) {
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
			s.Head, s.HeadAt = head, t.At
		}
		s.test(t)
	}
}

func (s *orderState) test(t TestReport) {
	key := t.key()
	held, ok := s.Tests[key]
	first, more := t.samples()
	if !ok || newer(t.Status, t.At, held.Status, held.At) {
		first.PerformingLaboratories = held.Data.PerformingLaboratories
		if t.Sample == held.Sample {
			fillSample(&first, held.Data)
		}
		if more == nil {
			more = held.More
		}
		held = heldTest{
			Codes: t.Codes, Name: t.Name, Status: t.Status, At: t.At, Notes: t.Notes, Sample: t.Sample, Data: first, More: more,
			Parent: t.Parent, Document: held.Document,
		}
	} else if t.Sample == held.Sample {
		fillSample(&held.Data, first)
	}
	held.Document = held.Document || len(t.Documents) > 0
	held.Data.PerformingLaboratories = maps.Clone(held.Data.PerformingLaboratories)
	for name, lab := range t.Laboratories {
		if held.Data.PerformingLaboratories == nil {
			held.Data.PerformingLaboratories = map[string]labresult.PerformingLaboratory{}
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
		now := heldResult{Test: key, Status: o.Status, At: t.At, Seq: old.Seq, Result: o.Result}
		if !ok {
			s.Seq++
			now.Seq = s.Seq
		}
		if o.Status == "U" && o.Result.Result == "" && ok {
			now.Result = old.Result // the final version may omit the value
		}
		corrected := o.Status == "C" || t.Status == "C"
		now.Corrects = ok && (old.Corrects || corrected && old.Result.Result != "" && now.Result.Result != "" && old.Result.Result != now.Result.Result)
		s.Results[k] = now
	}
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

// newer reports whether a report with status and time at replaces a report with status held and time heldAt of the
// same test or result. A preliminary report never replaces a final one.
func newer(status string, at time.Time, held string, heldAt time.Time) bool {
	if final, was := rank(status) > 0, rank(held) > 0; final != was {
		return final // a preliminary result never replaces a final one, however late it comes
	}
	if !at.Equal(heldAt) {
		return at.After(heldAt)
	}
	return rank(status) >= rank(held)
}

// rank orders reports with equal times by their status: preliminary (0), final, cancelled, corrected, deleted.
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

// complete reports whether each ordered test is final or cancelled.
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
