package labreport

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// RowExtractor extracts rows from words. The default is a [Reader]; a host may use its own engine. This package
// still computes types, bounds, flags, interpretation and LOINC codes.
//
// A non-empty reason is why there are no rows, and is final. An error is temporary. Implementations are safe for
// concurrent use and stop soon after ctx ends.
type RowExtractor interface {
	Rows(ctx context.Context, pages []Page) (RawReport, FailureReason, error)
}

// RawReport is a report as it is printed.
type RawReport struct {
	Metadata Metadata
	// Rows are in the order of the document.
	Rows []RawRow
}

// RawRow is one printed result. A row without a name or a value is ignored.
type RawRow struct {
	Name, Value string
	// Type is the value type that the extractor recognized; empty means that the type is derived from the value.
	// Numeric is used only if the value is a number.
	Type ValueType
	// Unit, Range, Panel and Flag are as printed; empty if there is none.
	Unit, Range, Panel, Flag string
	// Low and High are the ends of the range, both inclusive, if it is not printed in one piece. Range has
	// priority.
	Low, High *json.Number
	// Specimen is the specimen; empty if the row does not state it.
	Specimen loinc.Specimen
	// Evidence has the positions and confidences of the fields. It may be nil.
	Evidence Evidence
}

// Complete derives the results of raw rows: the type of each value, bounds, flags, interpretation and LOINC
// candidates. Numbers must have a decimal point.
func (r *Reader) Complete(raw RawReport) Data {
	var texts []string
	for _, row := range raw.Rows {
		texts = append(texts, strings.Fields(row.Value)...)
		texts = append(texts, strings.Fields(row.Range)...)
	}
	decimals := decimalsOf(texts)
	d := Data{Metadata: raw.Metadata, Results: []Result{}}
	if d.Metadata.Gender == "" {
		d.Metadata.Gender = "other"
	}
	if d.Metadata.Evidence == nil {
		d.Metadata.Evidence = Evidence{}
	}
	rows := make([]*RawRow, len(raw.Rows))
	for i, row := range raw.Rows {
		rows[i] = &row
	}
	inferSpecimens(r.catalogue, rows)
	for _, given := range rows {
		row := *given
		row.Name, row.Value = cleanName(row.Name), strings.Join(strings.Fields(row.Value), " ")
		unit, _ := ucum.Parse(row.Unit)
		res, _, ok := newResult(r.catalogue, row, row.bounds(decimals), unit, decimals)
		if !ok {
			continue
		}
		if res.Evidence = row.Evidence; res.Evidence == nil {
			res.Evidence = Evidence{}
		}
		res.review(textSure)
		res.withoutDoubtfulFlags(row.Flag)
		d.Results = append(d.Results, res)
	}
	reviewDuplicateCodes(d.Results)
	return d
}

// reviewDuplicateCodes sets NeedsReview on two automatic matches of one code whose reference ranges differ, because one
// of the results is probably of another specimen or analyte.
func reviewDuplicateCodes(all []Result) {
	first := map[string]int{}
	for i := range all {
		if all[i].LoincMatchStatus == nil || *all[i].LoincMatchStatus != AutoMatch {
			continue
		}
		code := all[i].LoincMatches[0].LoincCode
		k, twice := first[code]
		if !twice {
			first[code] = i
			continue
		}
		a, b := all[k].ReferenceRange, all[i].ReferenceRange
		if a != nil && b != nil && *a != *b {
			all[k].LoincMatchStatus, all[i].LoincMatchStatus = ptr(NeedsReview), ptr(NeedsReview)
		}
	}
}

// bounds returns the ends of the row's range.
func (r *RawRow) bounds(decimals Decimals) Bounds {
	if r.Range != "" {
		b, _ := parseBounds(toPointAll(r.Range, decimals))
		return b
	}
	end := func(n *json.Number) *float64 {
		if n == nil {
			return nil
		}
		v, ok := number(n.String())
		if !ok {
			return nil
		}
		return &v
	}
	b := Bounds{Low: end(r.Low), High: end(r.High)}
	if b.Low != nil && b.High != nil && *b.Low > *b.High {
		return Bounds{}
	}
	return b
}

// newResult returns the result of a row. best is the score of its best LOINC candidate, 0 without one. ok is false if
// the row has no name or no value.
func newResult(c loinc.Catalogue, raw RawRow, bounds Bounds, unit ucum.Unit, decimals Decimals) (res Result, best float64, ok bool) {
	if raw.Value == "" || raw.Name == "" {
		return Result{}, 0, false
	}
	typ, value := typeOf(raw, decimals)
	res = Result{TestName: raw.Name, Value: value, Type: &typ, SampleType: loinc.NoSpecimen, MeasurementKind: "unknown", Sensitivity: "unknown"}
	if raw.Unit != "" {
		res.Units = ptr(raw.Unit)
	}
	if raw.Range != "" {
		res.ReferenceRange = ptr(raw.Range)
	}
	reference := toPointAll(raw.Range, decimals)
	res.MinReferenceRange, res.MaxReferenceRange = asPrinted(bounds.Low, reference), asPrinted(bounds.High, reference)
	if raw.Panel != "" {
		res.SourcePanelName = ptr(raw.Panel)
	}
	res.IsAboveMaxRange, res.IsBelowMinRange = RangeFlags(typ, value, bounds)
	expected := raw.Range
	if bounds.any() {
		expected = ""
	}
	if _, power := withExponent(value); power && (strings.HasPrefix(unit.UCUM, "/") || strings.HasPrefix(unit.UCUM, "10*")) {
		bounds = Bounds{} // 250 x 10^3 /uL with 150 - 400: the range may be in thousands too
	}
	res.Interpretation = ptr(Interpret(typ, value, raw.Flag, expected, bounds))

	if raw.Specimen == "" {
		raw.Specimen = loinc.NoSpecimen
	}
	q := loinc.Question{Name: raw.Name, Unit: unit, UnitText: raw.Unit, Panel: raw.Panel, Specimen: raw.Specimen, Low: bounds.Low, High: bounds.High}
	switch sh := valueShape(raw.Value, decimals); {
	case sh == titerShape:
		q.Scale = "Titr"
	case sh == wordShape, sh == gradeShape:
		q.Scale = "Ord"
	case sh == number1, sh == spanShape:
		q.Scale = "Qn"
	}
	candidates, err := loinc.Rank(c, q)
	if err == nil {
		best = res.match(candidates, q)
	}
	res.describe(raw, candidates, best)
	return res, best, true
}

// typeOf returns the type of a row's value, and the value as [Result] has it.
func typeOf(raw RawRow, decimals Decimals) (ValueType, string) {
	printed := toPointAll(raw.Value, decimals)
	typ, value := TypeOf(printed, raw.Unit)
	switch raw.Type {
	case Percentage, RangeValue, Ratio, Boolean, Duration, Comment:
		return raw.Type, printed
	}
	return typ, value
}

// asPrinted returns the end of a range with the digits that text, the printed range, has for it; nil for a nil end.
func asPrinted(end *float64, text string) *json.Number {
	if end == nil {
		return nil
	}
	for _, digits := range reDecimal.FindAllString(strings.ReplaceAll(text, ",", ""), -1) {
		if v, ok := number(digits); ok && v == math.Abs(*end) {
			if math.Signbit(*end) {
				digits = "-" + digits
			}
			return ptr(json.Number(digits))
		}
	}
	return ptr(json.Number(strconv.FormatFloat(*end, 'f', -1, 64)))
}

// reDecimal matches a JSON number without a sign.
var reDecimal = regexp.MustCompile(`(?:0|[1-9]\d*)(?:\.\d+)?`)

// maxMatches is the largest number of LOINC candidates of a [Result].
const maxMatches = 5

func matchOf(t *loinc.Term, score float64) Match {
	names := t.Names[:min(len(t.Names), 5)]
	return Match{LoincCode: t.Code, LoincName: t.Name, DisplayName: t.Display, Aliases: append([]string{}, names...), ConfidenceScore: round2(score)}
}

// match sets LoincMatches and LoincMatchStatus. It returns the score of the best candidate, 0 without one.
func (res *Result) match(candidates []loinc.Candidate, q loinc.Question) (best float64) {
	res.LoincMatches = []Match{}
	for i, c := range candidates {
		if i == 0 {
			best = c.Score
		}
		if i < maxMatches && c.Score >= 0.3 && (i == 0 || c.Score >= best-0.5) {
			res.LoincMatches = append(res.LoincMatches, matchOf(c.Term, c.Score))
		}
	}
	status := NoMatch
	switch {
	case loinc.Certain(candidates, q):
		status = AutoMatch
	case best >= 0.5:
		status = NeedsReview
	default:
		res.LoincMatches = []Match{}
	}
	res.LoincMatchStatus = &status
	return best
}

// describe sets specimen, kind and sensitivity, which follow from the name and from the best candidate, whose score
// is best.
func (res *Result) describe(raw RawRow, candidates []loinc.Candidate, best float64) {
	specimen := loinc.NamedSpecimen(raw.Name)
	if specimen == loinc.NoSpecimen {
		specimen = raw.Specimen
	}
	if specimen == loinc.NoSpecimen && best >= 0.5 && !candidates[0].Guessed {
		specimen = candidates[0].Term.Specimen()
	}
	res.SampleType = specimen.Published()
	name := " " + strings.Join(loinc.Key(raw.Name), " ") + " "
	kind := ""
	if best >= 0.5 {
		kind = candidates[0].Term.Kind()
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(name, " "+w+" ") {
				return true
			}
		}
		return false
	}
	switch {
	case has("ratio", "quotient") || (kind == "ratio" || kind == "massratio") && strings.Contains(raw.Name, "/"):
		res.MeasurementKind = "ratio"
	case has("calculated", "estimated", "egfr", "eag", "vldl", "est") || best >= 0.5 && kind == "rate" || strings.Contains(healthlab.FoldText(raw.Unit), "calc"):
		res.MeasurementKind = "calculated"
	case best >= 0.9:
		res.MeasurementKind = "direct"
	}
	if has("hs", "hscrp", "ultrasensitive", "ultrasensible", "us", "hochsensitiv", "ultrasensitiv") || has("high") && has("sensitivity", "sensitive") {
		res.Sensitivity = "sensitive"
	}
}
