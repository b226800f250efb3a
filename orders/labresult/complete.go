package labresult

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Text forms of results of the types numeric and range.
var (
	numberForm = regexp.MustCompile(`^-?(?:\d+(?:\.\d*)?|\.\d+)$`)
	rangeForm  = regexp.MustCompile(`^(?:[<>]=?(?:\d+(?:\.\d*)?|\.\d+)|(?:\d+(?:\.\d*)?|\.\d+)-(?:\d+(?:\.\d*)?|\.\d+))$`)
)

// rangeBounds are the limits of a reference range; nil means no limit. lowOpen and highOpen are true if the limit
// itself is outside of the range. readable is true if the text of the range was parsed.
type rangeBounds struct {
	low, high         *catalogue.Number
	lowOpen, highOpen bool
	readable          bool
}

// readRange parses ReferenceRange. It returns no limits if ReferenceRange is nil, cannot be parsed, or is in another
// unit than the result.
func (r *Result) readRange() rangeBounds {
	if r.ReferenceRange == nil {
		return rangeBounds{}
	}
	in, _ := refrange.ParseIn(*r.ReferenceRange, r.Result, rules.TextOf(r.Unit))
	low, high := numberOf(in.Low), numberOf(in.High)
	if !in.Any() || low == nil && in.Low != "" || high == nil && in.High != "" {
		return rangeBounds{}
	}
	return rangeBounds{low, high, in.LowOpen, in.HighOpen, true}
}

// Compare sets the limits from ReferenceRange, whether the result is outside of them, and the interpretation that
// follows. It leaves a field null, and the interpretation unknown, if there is no limit, if the range is in another
// unit than the result, or if the result may lie on either side of the limit, as "<5" does for the limit 3. A limit is
// inclusive unless the text says otherwise. Compare does not change fields that are already set.
func (r *Result) Compare() {
	b := r.readRange()
	r.MinRangeValue, r.MaxRangeValue = cmp.Or(r.MinRangeValue, b.low), cmp.Or(r.MaxRangeValue, b.high)
	above, below := r.outside(b)
	r.IsAboveMaxRange, r.IsBelowMinRange = cmp.Or(r.IsAboveMaxRange, above), cmp.Or(r.IsBelowMinRange, below)
	r.Interpretation = cmp.Or(r.Interpretation, r.interpret(b))
}

// outside reports whether the result is above MaxRangeValue and whether it is below MinRangeValue. A value is nil if
// there is no such limit, or if the result may lie on either side of it.
func (r *Result) outside(b rangeBounds) (above, below *bool) {
	from, to := r.span()
	if r.MaxRangeValue != nil {
		above = beyond(1, *r.MaxRangeValue, b.highOpen, from, to)
	}
	if r.MinRangeValue != nil {
		below = beyond(-1, *r.MinRangeValue, b.lowOpen, to, from)
	}
	return above, below
}

// interpret returns the interpretation that follows from the result and its range: abnormal if the result is
// outside of a limit, normal if it is inside of every limit, else unknown.
func (r *Result) interpret(b rangeBounds) Interpretation {
	low, high := r.MinRangeValue, r.MaxRangeValue
	if low != nil && high != nil && low.Cmp(high.Decimal) > 0 {
		return UnknownInterpretation
	}
	above, below := r.outside(b)
	for _, out := range []*bool{above, below, r.IsAboveMaxRange, r.IsBelowMinRange} {
		if out != nil && *out {
			return Abnormal
		}
	}
	// If the text of the range was not parsed, it may have a limit that is not set.
	complete := low != nil && high != nil || b.readable
	undecided := low != nil && below == nil || high != nil && above == nil
	if !complete || undecided {
		return UnknownInterpretation
	}
	return Normal
}

func numberOf(text string) *catalogue.Number {
	n, err := catalogue.ParseNumber(text)
	if err != nil {
		return nil
	}
	return &n
}

// end is one end of the interval of numbers that a result stands for. A nil number means that the interval is unbounded
// on that side; open means that the number itself is not in the interval.
type end struct {
	at   *catalogue.Number
	open bool
}

// span returns the interval of numbers that a result of type Numeric or Range stands for. It is unbounded for other
// types, and if the text of the result cannot be parsed.
func (r *Result) span() (from, to end) {
	if r.Type != Numeric && r.Type != Range {
		return end{}, end{}
	}
	in, ok := refrange.Value(r.Result)
	if !ok {
		return end{}, end{}
	}
	return end{numberOf(in.Low), in.LowOpen}, end{numberOf(in.High), in.HighOpen}
}

// beyond reports whether a result is above (sign 1) or below (sign -1) a limit; nil if it may lie on either side.
// exclusive means that the limit itself is outside of the range. near is the end of the result's interval that must be
// outside so that all of it is outside; far is the other end.
func beyond(sign int, bound catalogue.Number, exclusive bool, near, far end) *bool {
	out := new(bool)
	if near.at != nil {
		if c := sign * near.at.Cmp(bound.Decimal); c > 0 || c == 0 && (exclusive || near.open) {
			*out = true
			return out
		}
	}
	if far.at != nil {
		if c := sign * far.at.Cmp(bound.Decimal); c < 0 || c == 0 && (!exclusive || far.open) {
			return out
		}
	}
	return nil
}

// enrich sets the fields of a result that follow from its text: the type, the number, the notes, the limits and, if the
// laboratory gives none, the interpretation.
func (r *Result) enrich() {
	said := r.Result
	r.Classify()
	if r.Notes == nil && (r.Type == Range || r.Type == Comment) {
		r.Notes = &said
	}
	r.Compare()
}

// Classify derives the type of a result without one from its text, and converts the text to the form of that type. For
// the type Numeric it sets Value to the number of the text, unless Value is set; for every other type it sets Value to
// -1. A decimal comma is accepted if it cannot be a group separator: 1,200 is a comment.
func (r *Result) Classify() {
	if r.Type == "" {
		r.Type = Comment
		if text, ok := withPoint(r.Result); ok {
			in, _ := refrange.Value(text)
			switch compact := compactRange(in); {
			case in.Low != "" && in.Low == in.High && numberForm.MatchString(strings.TrimPrefix(in.Low, "+")):
				r.Type, r.Result = Numeric, strings.TrimPrefix(in.Low, "+")
			case rangeForm.MatchString(compact):
				r.Type, r.Result = Range, compact
			}
		}
	}
	switch {
	case r.Type != Numeric:
		r.Value = &catalogue.Number{Decimal: decimal.NewFromInt(-1)}
	case r.Value == nil:
		r.Value = numberOf(r.Result)
	}
}

// withPoint converts decimal commas to points; false if a comma may be either a group separator or a decimal
// mark.
func withPoint(text string) (string, bool) {
	comma, point := refrange.DecimalMarks(text)
	switch {
	case comma > 0 && point == 0:
		return refrange.CommasToPoints(text), true
	case point == 0 && strings.Contains(text, ","):
		return "", false
	}
	return text, true
}

// compactRange returns a limit or an interval in the text form of the type Range, such as <=5 or 3-5.
func compactRange(in refrange.Range) string {
	sign := func(mark string, open bool) string {
		if open {
			return mark
		}
		return mark + "="
	}
	switch {
	case in.Low == "":
		return sign("<", in.HighOpen) + in.High
	case in.High == "":
		return sign(">", in.LowOpen) + in.Low
	}
	return in.Low + "-" + in.High
}

// due is one expected result of a lab test.
type due struct {
	catalogue.ExpectedResult
	from SourceMarker
	// alone is true if the marker of this result has no other expected result.
	alone bool
	// code is the lab's code of the marker; nil for none.
	code *string
}

// expectedOf returns the expected results of a lab test. expected has those of each marker, by marker id.
func expectedOf(t catalogue.LabTest, expected map[int][]catalogue.ExpectedResult) []due {
	var out []due
	for _, m := range t.Markers {
		for _, e := range expected[m.ID] {
			out = append(out, due{e, SourceMarker{MarkerID: m.ID, Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID}, len(expected[m.ID]) == 1, m.ProviderID})
		}
	}
	return out
}

func equalNonEmpty(a, b *string) bool { return a != nil && b != nil && *a != "" && *a == *b }

// matches reports whether d is the expected result with a LOINC code, a code of the lab, or a slug. If both have a
// LOINC code, only the LOINC code decides.
func (d *due) matches(loinc, code *string, slug string) bool {
	switch {
	case d.LOINC != nil && loinc != nil && *loinc != "":
		return d.LOINC.Code == *loinc // the LOINC codes decide, even if other codes are equal
	case equalNonEmpty(d.ProviderID, code), d.alone && equalNonEmpty(d.code, code):
		return true
	}
	return slug != "" && slug == d.Slug
}

func (d *due) loinc() (code, slug *string) {
	if d.LOINC == nil {
		return nil, nil
	}
	return &d.LOINC.Code, &d.LOINC.Slug
}

// codes returns a result's LOINC code, the slug of that code, and the result's own slug. It takes those that the lab
// did not give from the expected result in all with the same codes.
func codes(all []due, loinc, loincSlug, code *string, slug string) (*string, *string, string) {
	i := slices.IndexFunc(all, func(d due) bool { return d.matches(loinc, code, slug) })
	if i < 0 {
		return loinc, loincSlug, slug
	}
	known, knownSlug := all[i].loinc()
	if loinc == nil || *loinc == "" {
		loinc = known
	}
	return loinc, cmp.Or(loincSlug, knownSlug), cmp.Or(slug, all[i].Slug)
}

// markersOf returns the ordered markers that a result with these codes belongs to, without duplicates; nil if there are
// none.
func markersOf(all []due, t catalogue.LabTest, loinc, code *string, slug string) []SourceMarker {
	var out []SourceMarker
	add := func(s SourceMarker) {
		if !slices.ContainsFunc(out, func(have SourceMarker) bool { return have.MarkerID == s.MarkerID }) {
			out = append(out, s)
		}
	}
	matches := slices.DeleteFunc(slices.Clone(all), func(d due) bool { return !d.matches(loinc, code, slug) })
	for _, tells := range []func(due) bool{
		func(d due) bool { return equalNonEmpty(d.ProviderID, code) || equalNonEmpty(d.code, code) },
		func(d due) bool { return slug != "" && d.Slug == slug },
	} { // of several matches, prefer those with the lab's code, then those with the slug
		if fits := slices.DeleteFunc(slices.Clone(matches), func(d due) bool { return !tells(d) }); len(fits) > 0 {
			matches = fits
		}
	}
	for _, d := range matches {
		add(d.from)
	}
	for _, m := range t.Markers { // the lab's code may be that of an ordered marker
		if m.ProviderID != nil && code != nil && *code != "" && *m.ProviderID == *code {
			add(SourceMarker{MarkerID: m.ID, Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID})
		}
	}
	return out
}

// distinctName returns the name of a result with the marker's name added, if the result has exactly one marker, and
// this and other markers of the test have the result's LOINC code as their only expected result. Else it returns the
// name unchanged. from are the markers of the result.
func distinctName(all []due, name string, loinc *string, from []SourceMarker) string {
	alike := slices.DeleteFunc(slices.Clone(all), func(d due) bool { return !d.alone || d.LOINC == nil || !equalNonEmpty(&d.LOINC.Code, loinc) })
	if len(from) != 1 || len(alike) < 2 || !slices.ContainsFunc(alike, func(d due) bool { return d.from.MarkerID == from[0].MarkerID }) {
		return name
	}
	switch marker := from[0].Name; {
	case strings.HasPrefix(marker, name):
		return marker
	case strings.HasSuffix(name, "("+marker+")"):
		return name
	default:
		return name + " (" + marker + ")"
	}
}

// Complete returns a report with data of the lab test from the catalogue. It adds LOINC codes, slugs and the markers of
// results, and what follows from a result's text: type, number, limits and interpretation. It does not replace codes or
// flags of the lab. If several markers have the same LOINC code, the names of their results get the marker's name. If
// final is true, it adds required results that the report does not mention to MissingResults. expected has the expected
// results of each marker, by marker id.
func Complete(in Report, t catalogue.LabTest, expected map[int][]catalogue.ExpectedResult, final bool) Report {
	all := expectedOf(t, expected)
	out := in
	out.Results, out.MissingResults = slices.Clone(in.Results), slices.Clone(in.MissingResults)
	for i := range out.Results {
		r := &out.Results[i]
		if r.SourceMarkers == nil {
			r.SourceMarkers = markersOf(all, t, r.LOINC, r.ProviderID, r.Slug)
		}
		r.LOINC, r.LOINCSlug, r.Slug = codes(all, r.LOINC, r.LOINCSlug, r.ProviderID, r.Slug)
		r.Name = distinctName(all, r.Name, r.LOINC, r.SourceMarkers)
		r.enrich()
	}
	for i := range out.MissingResults {
		m := &out.MissingResults[i]
		if m.SourceMarkers == nil {
			m.SourceMarkers = markersOf(all, t, m.LOINC, m.ProviderID, m.Slug)
		}
		m.LOINC, m.LOINCSlug, m.Slug = codes(all, m.LOINC, m.LOINCSlug, m.ProviderID, m.Slug)
		m.Name = distinctName(all, m.Name, m.LOINC, m.SourceMarkers)
		m.InferredFailureType = cmp.Or(m.InferredFailureType, UnknownFailure)
	}
	if final {
		out.MissingResults = append(rules.NonNil(out.MissingResults), unreported(all, out)...)
	}
	return out
}

// unreported returns the required results that are in a report neither as results nor as missing results.
func unreported(all []due, report Report) []Missing {
	var out []Missing
	for i := range all {
		d := &all[i]
		loinc, slug := d.loinc()
		told := slices.ContainsFunc(report.Results, func(r Result) bool { return d.matches(r.LOINC, r.ProviderID, r.Slug) }) ||
			slices.ContainsFunc(report.MissingResults, func(m Missing) bool { return d.matches(m.LOINC, m.ProviderID, m.Slug) })
		if told || !d.Required {
			continue
		}
		if j := slices.IndexFunc(out, func(m Missing) bool { return d.matches(m.LOINC, m.ProviderID, m.Slug) }); j >= 0 {
			out[j].SourceMarkers = append(out[j].SourceMarkers, d.from)
			continue
		}
		out = append(out, Missing{Name: d.Name, Slug: d.Slug, InferredFailureType: UnknownFailure, LOINC: loinc, LOINCSlug: slug,
			ProviderID: d.ProviderID, SourceMarkers: []SourceMarker{d.from}})
	}
	return out
}
