package hl7

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// observation reads an OBX: a result, a document or an answer.
func (r *reader) observation(s er7.Segment) {
	r.finishOrder() // the OBX belongs to an ORC without an OBR
	t := r.test()
	status := s.Field(11).Text()
	if status == "O" || status == "N" || s.Field(29).Text() == "QST" {
		if r.note = &r.patientNotes; t != nil {
			r.note = &t.Notes
		}
		return // an ordered question with its answer
	}
	if t == nil {
		t = r.testWithoutOBR(s)
	}
	switch s.Field(2).Text() {
	case "ED":
		r.document(t, s)
		return
	case "RP":
		r.reference(t, s)
		return
	}
	coded := s.Field(3).Coded()
	if status == "" {
		status = t.Status
	}
	kind := s.Field(2).Text()
	result := labresult.Result{Name: coded.Display(), Group: s.Field(4).Plain("."), Methods: terms(s.Field(17)), Parent: t.Parent}
	result.Equipment = equipment(s.Field(18))
	result.Slug = slug(result.Name)
	r.codes(&result, coded)
	if loinc, ok := coded.In("LN", "LOINC"); ok && loinc.Text != "" && coded.Original == "" {
		result.LOINCSlug = optional(slug(loinc.Text))
	}
	value(&result, kind, s.Field(5))
	key := text(result.LOINC) + "|" + text(result.ProviderID) + "|" + result.Slug + "|" + result.Group
	if isTextKind(kind) && len(t.Observations) > 0 {
		// Consecutive segments of a text are lines of one result.
		if last := &t.Observations[len(t.Observations)-1]; last.Key == key && last.Status == status {
			last.Result.Result = strings.TrimLeft(last.Result.Result+"\n"+result.Result, "\n")
			if !reflect.DeepEqual(last.Result.Methods, result.Methods) {
				last.Result.Methods = append(last.Result.Methods, result.Methods...)
			}
			if !reflect.DeepEqual(last.Result.Equipment, result.Equipment) {
				last.Result.Equipment = append(last.Result.Equipment, result.Equipment...)
			}
			r.note = notes(&last.Result)
			return
		}
	}
	if n := r.seen[key]; n > 0 {
		r.seen[key]++
		key = fmt.Sprint(key, "#", n)
	} else {
		r.seen[key] = 1
	}
	result.Unit = optional(s.Field(6).Unit())
	if at := cmp.Or(r.moment(s.Field(14)), r.moment(s.Field(19)), t.Collected); at != nil {
		result.Timestamp, result.TimestampPrecision, result.TimestampOffset = new(at.Timestamp), at.Precision, new(at.TimezoneOffset)
	}
	result.ReferenceRange = optional(referenceRange(s.Field(7)))
	r.interpret(&result, s.Field(8))
	result.Compare()
	r.laboratory(t, &result, s)
	t.Observations = append(t.Observations, Observation{Key: key, Status: status, Result: result})
	r.note = notes(&t.Observations[len(t.Observations)-1].Result)
}

func (r *reader) testWithoutOBR(obx er7.Segment) *TestReport {
	r.in.Tests = append(r.in.Tests, TestReport{Segment: obx.Number(), At: r.in.Sent, Reported: r.sent, Patient: r.patient, Head: r.headWithNotes()})
	r.between, r.seen = false, map[string]int{}
	return r.test()
}

func notes(l *labresult.Result) *string {
	if l.Notes == nil {
		l.Notes = new(string)
	}
	return l.Notes
}

func isTextKind(kind string) bool { return kind == "TX" || kind == "FT" }

// codes finds the result's code at the laboratory and its LOINC code.
func (r *reader) codes(l *labresult.Result, c er7.Coded) {
	if loinc, ok := c.In("LN", "LOINC"); ok {
		l.LOINC = optional(loinc.Code)
	}
	for _, code := range c.Codes {
		local := code.Code != "" && (l.LOINC == nil || code.Code != *l.LOINC)
		if local && l.ProviderID == nil {
			l.ProviderID = optional(code.Code)
		}
		if mapped := r.opts.LOINC[code.Code]; local && mapped != "" && l.LOINC == nil {
			l.LOINC = optional(mapped)
		}
	}
	if l.ProviderID == nil {
		l.ProviderID = l.LOINC
	}
}

// value sets a result by the type of the OBX.
func value(l *labresult.Result, kind string, f er7.Part) {
	l.Type, l.Value = labresult.Comment, minusOne()
	if f.Empty() || f.Null() {
		return
	}
	var parts []string
	for _, p := range f.Repetitions() {
		parts = append(parts, valueText(kind, p))
		if kind == "CE" || kind == "CWE" || kind == "CNE" {
			l.Codes = append(l.Codes, codesOf(p.Coded())...)
		}
	}
	l.Result = strings.TrimSpace(strings.Join(parts, "\n"))
	if len(parts) != 1 {
		return
	}
	switch kind {
	case "NM", "SN", "ST", "":
		l.Type, l.Value = "", nil
		l.Classify()
	}
}

// valueText returns a value as text: numbers, times and terms as people write them, and other
// types of several components without the separators of the format.
func valueText(kind string, p er7.Part) string {
	switch kind {
	case "SN":
		if s, ok := p.Structured(); ok {
			return s.String()
		}
		var b strings.Builder
		for n := range p.Len() {
			b.WriteString(p.Component(n + 1).Whole())
		}
		return b.String()
	case "":
		if s, ok := p.Structured(); ok && p.Len() > 1 {
			return s.String()
		}
	case "CE", "CWE", "CNE", "CF", "IS", "ID":
		return p.Coded().Display()
	case "DT", "DTM", "TS":
		if s, err := p.Stamp(nil); err == nil {
			return s.String()
		}
	case "TM":
		if clock, ok := p.Clock(); ok {
			return clock
		}
	case "CQ":
		return amount(p)
	case "PN", "XPN":
		return p.Name().Full()
	case "CN", "PPN", "XCN":
		return cmp.Or(p.Person().Full(), p.Person().ID)
	case "XTN", "TN":
		return cmp.Or(p.Telecom().Number, p.Telecom().Email)
	case "CX", "CK", "EI":
		return p.Component(1).Text()
	case "DR":
		return strings.Join(nonEmpty(valueText("TS", p.Component(1)), valueText("TS", p.Component(2))), " to ")
	case "NR":
		return p.Plain("-")
	case "AD", "CP", "EIP", "HD", "MA", "MO", "NA", "XAD", "XON":
		return p.Plain(" ")
	}
	return p.Whole()
}

func nonEmpty(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// equipment reads the identifiers of instruments.
func equipment(p er7.Part) []labresult.Coded {
	var out []labresult.Coded
	for _, one := range p.Repetitions() {
		e := one.Entity()
		if e.ID == "" {
			continue
		}
		c := labresult.Coded{Text: e.ID}
		if system := cmp.Or(e.Namespace, e.Authority.ID); system != "" {
			c.Codes = []labresult.Code{{Code: e.ID, System: system}}
		}
		out = append(out, c)
	}
	return out
}

// referenceRange reads OBX-7. Senders write ~ for the dash of a range, and between ranges.
func referenceRange(p er7.Part) string {
	whole := strings.TrimSpace(p.Whole())
	if r, _ := refrange.Parse(whole); r.Any() {
		return whole
	}
	return lines(p)
}

func minusOne() *catalogue.Number {
	n, err := catalogue.ParseNumber("-1")
	if err != nil {
		panic(err)
	}
	return &n
}

func slug(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}

// laboratory records the performing laboratory.
func (r *reader) laboratory(t *TestReport, l *labresult.Result, s er7.Segment) {
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
	lab := labresult.PerformingLaboratory{Name: name, MedicalDirector: optional(s.Field(25).Person().Full())}
	if a := s.Field(24).Address(); a != (er7.Address{}) {
		lab.Address = &people.Address{FirstLine: a.Street, SecondLine: optional(a.Other), City: a.City, State: a.State, Zip: a.Zip, Country: a.Country}
	}
	if t.Laboratories == nil {
		t.Laboratories = map[string]labresult.PerformingLaboratory{}
	}
	t.Laboratories[name] = lab
	l.PerformingLaboratory = &name
}
