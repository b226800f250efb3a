package hl7

import (
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
)

// flags is what the standard's abnormal flags mean.
var flags = map[string]orders.Interpretation{
	"N": orders.Normal, "NEG": orders.Normal, "ND": orders.Normal, "NR": orders.Normal,
	"S": orders.Normal, "MS": orders.Normal, "VS": orders.Normal,
	"L": orders.Abnormal, "H": orders.Abnormal, "A": orders.Abnormal, "<": orders.Abnormal, ">": orders.Abnormal,
	"LU": orders.Abnormal, "HU": orders.Abnormal, "LX": orders.Abnormal, "HX": orders.Abnormal, "TOX": orders.Abnormal,
	"POS": orders.Abnormal, "DET": orders.Abnormal, "IND": orders.Abnormal, "RR": orders.Abnormal, "WR": orders.Abnormal,
	"R": orders.Abnormal, "I": orders.Abnormal, "NS": orders.Abnormal, "SDD": orders.Abnormal,
	"LL": orders.Critical, "HH": orders.Critical, "AA": orders.Critical,
}

// interpret maps the laboratory's flags: the worst of them counts. Without a flag,
// the range decides, where it can.
func (r *reader) interpret(l *orders.LabResult, f er7.Part) {
	var own []string
	worst := []orders.LabResult{}
	for _, p := range f.Repetitions() {
		flag := p.Text()
		if flag == "" {
			continue
		}
		own = append(own, flag)
		mapped, ok := r.opts.Flags[flag]
		if !ok {
			if mapped, ok = flags[strings.ToUpper(flag)]; !ok {
				mapped = orders.UnknownInterpretation
			}
		}
		worst = append(worst, orders.LabResult{Interpretation: mapped})
	}
	l.SourceInterpretation = strings.Join(own, ",")
	l.Interpretation = orders.Worst(worst)
	if len(own) > 0 {
		return
	}
	above, below := l.IsAboveMaxRange, l.IsBelowMinRange
	switch {
	case above != nil && *above, below != nil && *below:
		l.Interpretation = orders.Abnormal
	case above != nil && below != nil,
		above != nil && l.MinRangeValue == nil, below != nil && l.MaxRangeValue == nil:
		l.Interpretation = orders.Normal
	}
}

// laboratory notes who did the work.
func (r *reader) laboratory(t *TestReport, l *orders.LabResult, s er7.Segment) {
	name := s.Field(23).Component(1).Text()
	if name == "" {
		name = s.Field(15).Component(2).Text()
	}
	if s.Field(15).Component(3).Text() == "CLIA" {
		t.CLIA = s.Field(15).Component(1).Text()
	} else if id := s.Field(23).Component(10).Text(); id != "" && s.Field(23).Component(6).Subcomponent(1).Text() == "CLIA" {
		t.CLIA = id
	}
	if t.CLIA != "" {
		t.Head.CLIANumber = optional(t.CLIA)
	}
	if name == "" {
		return
	}
	lab := orders.PerformingLaboratory{Name: name, MedicalDirector: optional(s.Field(25).Person().Full())}
	if a := s.Field(24).Address(); a != (er7.Address{}) {
		lab.Address = &orders.Address{FirstLine: a.Street, SecondLine: optional(a.Other), City: a.City, State: a.State, Zip: a.Zip, Country: a.Country}
	}
	if t.Laboratories == nil {
		t.Laboratories = map[string]orders.PerformingLaboratory{}
	}
	t.Laboratories[name] = lab
	l.PerformingLaboratory = &name
}

// document reads a document that stands in place of a result.
func (r *reader) document(t *TestReport, s er7.Segment) {
	r.note = &t.Notes
	switch s.Field(11).Text() {
	case "D", "W":
		t.Withdrawn = true
		return
	case "R", "X":
		return // not verified yet, or there will be none
	}
	for _, p := range s.Field(5).Repetitions() {
		e, err := p.Embedded()
		if err != nil {
			r.in.Refused = append(r.in.Refused, &er7.SyntaxError{
				Segment: s.Name(), Number: s.Number(), Field: 5, Problem: "an embedded document must be in the encoding that it names",
			})
			continue
		}
		if len(e.Data) > 0 {
			t.Documents = append(t.Documents, Document{Title: s.Field(3).Coded().Display(), ContentType: e.ContentType(), Data: e.Data})
		}
	}
}

// Words that laboratories explain a missing result with, and what they mean.
var reasons = []struct {
	words   []string
	failure orders.FailureType
	detail  orders.StatusDetail
}{
	{[]string{"mislabel", "unlabel"}, orders.CollectionProcessFailure, ""}, // it is not known whose it is
	{[]string{"quantity not sufficient", "qns", "insufficient", "not enough"}, orders.QuantityNotSufficientFailure, orders.SampleQuantityNotSufficient},
	{[]string{"hemoly", "haemoly"}, orders.CollectionProcessFailure, orders.SampleHemolyzed},
	{[]string{"contaminat"}, orders.CollectionProcessFailure, orders.SampleContaminated},
	{[]string{"stability", "too old", "expired", "thawed", "frozen", "temperature"}, orders.DropOffFailure, orders.SampleStabilityExceeded},
	{[]string{"clotted", "wrong tube", "improper", "not centrifuged"}, orders.CollectionProcessFailure, orders.SampleImproperCollection},
	{[]string{"lab accident", "laboratory accident", "lab error", "laboratory error"}, orders.InternalLabFailure, ""},
	{[]string{"duplicate"}, orders.NonFailure, ""},
	{[]string{"not ordered", "order entry"}, orders.OrderEntryFailure, ""},
}

// absence is how laboratories write that a test was not performed.
var absence = regexp.MustCompile(`(?i)^(TNP|QNS|CANC|CANCEL|CANCELED|CANCELLED|DNR|TEST (NOT (PERFORMED|DONE)|CANCELED|CANCELLED)|NOT (PERFORMED|DONE|TESTED)|` +
	`QUANTITY (NOT SUFFICIENT|INSUFFICIENT)|INSUFFICIENT (QUANTITY|SAMPLE|SPECIMEN)|(SAMPLE|SPECIMEN) REJECTED)([^\pL\pN]|$)`)

// notPerformed reports whether the text of a result, or one of its codes, says that there is
// none.
func notPerformed(r orders.LabResult) bool {
	says := func(words string) bool { return absence.MatchString(strings.TrimLeft(words, " *-(")) }
	return r.Type == orders.CommentResult && (says(r.Result) || slices.ContainsFunc(r.Codes, func(c orders.Code) bool { return says(c.Code) || says(c.Text) }))
}

// reason infers from a laboratory's words why there is no result.
func reason(words string) (orders.FailureType, orders.StatusDetail) {
	words = strings.ToLower(words)
	for _, r := range reasons {
		for _, w := range r.words {
			if strings.Contains(words, w) {
				return r.failure, r.detail
			}
		}
	}
	return orders.UnknownFailure, ""
}

// documentID is the same for the same document of the same order.
func documentID(number string, d Document) string {
	return short([]byte(number), []byte(d.Title), d.Data)
}
