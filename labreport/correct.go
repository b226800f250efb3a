package labreport

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// CorrectionAction is the kind of change that a correction makes.
type CorrectionAction string

// Correction actions.
const (
	// ChangeField replaces one field of a result, or of the metadata.
	ChangeField CorrectionAction = "change"
	// DropResult removes a result.
	DropResult CorrectionAction = "drop"
	// AddResult adds a missing result.
	AddResult CorrectionAction = "add"
)

// MaxCorrections is the greatest number of corrections of one review.
const MaxCorrections = 5000

// Correction is one change that a reviewer makes to the draft of a job.
type Correction struct {
	healthlab.Private

	Action CorrectionAction `json:"action"`
	// Result is the position of the result in the draft, from 0. A change with nil changes the metadata. An
	// added result is inserted before this position, or at the end if it is nil.
	Result *int `json:"result,omitempty"`
	// Field of a change is the JSON name of the field: test_name, value, units,
	// reference_range, source_panel_name, sample_type, interpretation or loinc_code of a
	// result; a field of [Metadata] without Result.
	Field string `json:"field,omitempty"`
	// Value of a change is the corrected text. Nil means that the report does not print the field. Numbers in
	// value have a decimal point and no group marks.
	Value *string `json:"value,omitempty"`
	// Row is the added result.
	Row *AddedRow `json:"row,omitempty"`
}

// AddedRow is a result that a reviewer adds. Only TestName and Value are required.
type AddedRow struct {
	healthlab.Private

	TestName        string         `json:"test_name"`
	Value           string         `json:"value"`
	Units           string         `json:"units,omitempty"`
	ReferenceRange  string         `json:"reference_range,omitempty"`
	SourcePanelName string         `json:"source_panel_name,omitempty"`
	SampleType      loinc.Specimen `json:"sample_type,omitempty"`
	Interpretation  Interpretation `json:"interpretation,omitempty"`
	LoincCode       string         `json:"loinc_code,omitempty"`
}

// maxCorrectedText is the greatest length of a corrected text, in bytes.
const maxCorrectedText = 1000

// reCommaDecimals matches a number with a decimal comma.
var reCommaDecimals = regexp.MustCompile(`\d,(?:\d{1,2}|\d{4,})(?:\D|$)`)

// Names of the fields of a result that a correction may change.
const (
	fieldName, fieldValue, fieldUnits, fieldRange    = "test_name", "value", "units", "reference_range"
	fieldPanel, fieldSpecimen, fieldMeans, fieldCode = "source_panel_name", "sample_type", "interpretation", "loinc_code"
)

var (
	resultFields = []string{fieldName, fieldValue, fieldUnits, fieldRange, fieldPanel, fieldSpecimen, fieldMeans, fieldCode}
	// setFields are the fields that a correction cannot set to nil.
	setFields       = []string{fieldName, fieldValue, fieldSpecimen, fieldMeans, "gender"}
	specimenValues  = []loinc.Specimen{loinc.Urine, loinc.Blood, loinc.CapillaryBlood, loinc.Stool, loinc.Saliva, loinc.OtherSpecimen, loinc.NoSpecimen}
	interpretations = []Interpretation{Normal, Abnormal, Critical, Unclear}
	genders         = []string{"male", "female", "other"}
)

func (m *Metadata) metadataField(name string) **string {
	return map[string]**string{
		"patient_first_name": &m.PatientFirstName, "patient_last_name": &m.PatientLastName, "dob": &m.DOB, "lab_name": &m.LabName,
		"date_reported": &m.DateReported, "date_collected": &m.DateCollected, "specimen_number": &m.SpecimenNumber,
	}[name]
}

// Correct applies a reviewer's corrections to a draft and returns the corrected data; the draft is unchanged.
// Fields that depend on a corrected one are derived again: type, bounds, flags, interpretation, and the LOINC
// candidates after a change of name, unit, panel or specimen. A corrected field keeps its box and has confidence
// 1. [healthlab.InvalidError] lists the corrections that do not fit the draft.
func (r *Reader) Correct(draft Data, list []Correction) (Data, error) {
	if err := checkCorrections(&draft, list); err != nil {
		return Data{}, err
	}
	out := Data{Metadata: draft.Metadata, Results: []Result{}}
	out.Metadata.Evidence = maps.Clone(draft.Metadata.Evidence)
	changes, dropped, added := map[int][]Correction{}, map[int]bool{}, map[int][]*AddedRow{}
	for _, c := range list {
		switch {
		case c.Action == DropResult:
			dropped[*c.Result] = true
		case c.Action == AddResult:
			at := len(draft.Results)
			if c.Result != nil {
				at = *c.Result
			}
			added[at] = append(added[at], c.Row)
		case c.Result == nil:
			out.Metadata.correct(c)
		default:
			changes[*c.Result] = append(changes[*c.Result], c)
		}
	}
	decimals := draft.decimals()
	for i := 0; i <= len(draft.Results); i++ {
		for _, row := range added[i] {
			out.Results = append(out.Results, r.addedResult(row, decimals))
		}
		if i < len(draft.Results) && !dropped[i] {
			out.Results = append(out.Results, r.corrected(draft.Results[i], changes[i], decimals))
		}
	}
	return out, nil
}

// checkCorrections reports the corrections that do not fit the draft.
func checkCorrections(draft *Data, list []Correction) error {
	var p healthlab.Problems
	if len(list) > MaxCorrections {
		p.Add("too_long", fmt.Sprintf("must have at most %d corrections", MaxCorrections), "corrections")
		return p.Err()
	}
	seen := map[int][]int{} // earlier corrections by result; -1 is the metadata
	for i, c := range list {
		var own healthlab.Problems
		c.check(draft, &own)
		if len(own) == 0 && c.Action != AddResult {
			at := -1
			if c.Result != nil {
				at = *c.Result
			}
			for _, k := range seen[at] {
				if c.Action == DropResult || list[k].Action == DropResult || list[k].Field == c.Field {
					own.Add("duplicate", fmt.Sprintf("conflicts with corrections[%d]: a field may be changed once, and a dropped result may have no other correction", k), "field")
					break
				}
			}
			seen[at] = append(seen[at], i)
		}
		p.Under(own, "corrections", i)
	}
	return p.Err()
}

// check reports the problems of one correction.
func (c *Correction) check(draft *Data, p *healthlab.Problems) {
	most := len(draft.Results) - 1
	if c.Action == AddResult {
		most++
	}
	if c.Result != nil && (*c.Result < 0 || *c.Result > most) {
		msg := fmt.Sprintf("must be from 0 to %d: a position among the %d results of the draft", most, len(draft.Results))
		if most < 0 {
			msg = "must be left out: the draft has no results"
		}
		p.Add("out_of_range", msg, "result")
	}
	if c.Action != ChangeField && (c.Field != "" || c.Value != nil) {
		p.Add("not_allowed", "must be left out unless action is change", "field")
	}
	if c.Action != AddResult && c.Row != nil {
		p.Add("not_allowed", "must be left out unless action is add", "row")
	}
	switch c.Action {
	case DropResult:
		if c.Result == nil {
			p.Add("missing", "required if action is drop", "result")
		}
	case AddResult:
		if c.Row == nil {
			p.Add("missing", "required if action is add", "row")
			return
		}
		for _, name := range resultFields {
			if v := c.Row.text(name); v != "" || name == fieldName || name == fieldValue {
				checkText(p, name, v, "row", name)
			}
		}
	case ChangeField:
		c.checkChange(p)
	default:
		p.Add("enum", "must be one of change, drop, add", "action")
	}
}

func (c *Correction) checkChange(p *healthlab.Problems) {
	var m Metadata
	switch {
	case c.Result != nil && !slices.Contains(resultFields, c.Field):
		p.Add("enum", nearest.Allowed(c.Field, resultFields, nearest.Contract), "field")
	case c.Result == nil && c.Field != "gender" && m.metadataField(c.Field) == nil:
		p.Add("enum", "must be a field of the metadata if result is left out: patient_first_name, patient_last_name, dob, gender, "+
			"lab_name, date_reported, date_collected or specimen_number", "field")
	case c.Value == nil && slices.Contains(setFields, c.Field):
		p.Add("missing", "required: the field "+c.Field+" cannot be cleared", "value")
	case c.Value != nil:
		checkText(p, c.Field, *c.Value, "value")
	}
}

// checkText adds to p the problems of v as the new text of a field. path leads to the text in the request.
func checkText(p *healthlab.Problems, field, v string, path ...any) {
	switch {
	case v == "":
		p.Add("empty", "must not be empty", path...)
	case len(v) > maxCorrectedText:
		p.Add("too_long", fmt.Sprintf("must have at most %d bytes", maxCorrectedText), path...)
	case !plainText(v):
		p.Add("text", "must be UTF-8 without control characters", path...)
	case field == fieldValue && reCommaDecimals.MatchString(v):
		p.Add("number", "must be a number with a decimal point and without commas, such as 1234.5", path...)
	case field == fieldSpecimen && !slices.Contains(specimenValues, loinc.Specimen(v)):
		p.Add("enum", nearest.Allowed(loinc.Specimen(v), specimenValues, nearest.Contract), path...)
	case field == fieldMeans && !slices.Contains(interpretations, Interpretation(v)):
		p.Add("enum", nearest.Allowed(Interpretation(v), interpretations, nearest.Contract), path...)
	case field == "gender" && !slices.Contains(genders, v):
		p.Add("enum", nearest.Allowed(v, genders, nearest.Contract), path...)
	case field == fieldCode && !loinc.ValidCode(v):
		p.Add("loinc_code", "must be a LOINC code with its check digit, such as 2345-7", path...)
	}
}

func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func (a *AddedRow) text(field string) string {
	return map[string]string{
		fieldName: a.TestName, fieldValue: a.Value, fieldUnits: a.Units, fieldRange: a.ReferenceRange, fieldPanel: a.SourcePanelName,
		fieldSpecimen: string(a.SampleType), fieldMeans: string(a.Interpretation), fieldCode: a.LoincCode,
	}[field]
}

// correct changes one field of the metadata.
func (m *Metadata) correct(c Correction) {
	if c.Field == "gender" {
		m.Gender = *c.Value
	} else {
		*m.metadataField(c.Field) = c.Value
	}
	m.Evidence.confirm(c.Field)
}

func (e Evidence) confirm(field string) {
	if at, ok := e[field]; ok {
		at.Confidence, at.Alternatives = 1, nil
		e[field] = at
	}
}

// decimals returns the decimal mark, comma or point, in the printed reference ranges. Stored values always have a
// point.
func (d *Data) decimals() Decimals {
	comma, point := 0, 0
	for i := range d.Results {
		res := &d.Results[i]
		if res.ReferenceRange == nil || res.MinReferenceRange == nil && res.MaxReferenceRange == nil {
			continue
		}
		commas, _ := parseBounds(toPointAll(*res.ReferenceRange, Comma))
		points, _ := parseBounds(toPointAll(*res.ReferenceRange, Point))
		asComma, asPoint := res.hasBounds(commas), res.hasBounds(points)
		switch {
		case asComma && !asPoint:
			comma++
		case asPoint && !asComma:
			point++
		}
	}
	if comma > point {
		return Comma
	}
	return Point
}

// hasBounds reports whether the result has these bounds.
func (res *Result) hasBounds(b Bounds) bool {
	same := func(n *json.Number, v *float64) bool {
		if n == nil || v == nil {
			return n == nil && v == nil
		}
		got, err := n.Float64()
		return err == nil && got == *v
	}
	return same(res.MinReferenceRange, b.Low) && same(res.MaxReferenceRange, b.High)
}

// corrected returns a result with the changes of its fields.
func (r *Reader) corrected(res Result, changes []Correction, decimals Decimals) Result {
	if len(changes) == 0 {
		return res
	}
	row := AddedRow{TestName: res.TestName, Value: res.Value, Units: deref(res.Units), ReferenceRange: deref(res.ReferenceRange),
		SourcePanelName: deref(res.SourcePanelName), SampleType: res.SampleType}
	changed := map[string]bool{}
	evidence := maps.Clone(res.Evidence)
	for _, c := range changes {
		changed[c.Field] = true
		evidence.confirm(c.Field)
		v := deref(c.Value)
		switch c.Field {
		case fieldName:
			row.TestName = v
		case fieldValue:
			row.Value = v
		case fieldUnits:
			row.Units = v
		case fieldRange:
			row.ReferenceRange = v
		case fieldPanel:
			row.SourcePanelName = v
		case fieldSpecimen:
			row.SampleType = loinc.Specimen(v)
		case fieldMeans:
			row.Interpretation = Interpretation(v)
		case fieldCode:
			row.LoincCode = v
		}
	}
	flag := ""
	if deref(res.Interpretation) == Critical { // only a printed flag makes a result critical
		flag = "C"
	}
	if changed[fieldRange] {
		decimals = decimalsOr(row.ReferenceRange, decimals)
	}
	out := r.result(&row, flag, decimals)
	out.Evidence = evidence
	if !changed[fieldName] && !changed[fieldUnits] && !changed[fieldPanel] && !changed[fieldSpecimen] {
		out.SampleType, out.MeasurementKind, out.Sensitivity = res.SampleType, res.MeasurementKind, res.Sensitivity
		if !changed[fieldCode] {
			out.LoincMatchStatus, out.LoincMatches = res.LoincMatchStatus, slices.Clone(res.LoincMatches)
		}
	}
	if !changed[fieldValue] && !changed[fieldRange] {
		out.Type, out.MinReferenceRange, out.MaxReferenceRange = res.Type, res.MinReferenceRange, res.MaxReferenceRange
		out.IsAboveMaxRange, out.IsBelowMinRange = res.IsAboveMaxRange, res.IsBelowMinRange
		if !changed[fieldMeans] {
			out.Interpretation = res.Interpretation
		}
	}
	if changed[fieldCode] && row.LoincCode == "" {
		out.LoincMatchStatus, out.LoincMatches = ptr(NoMatch), []Match{}
	}
	return out
}

func (r *Reader) addedResult(row *AddedRow, decimals Decimals) Result {
	out := r.result(row, "", decimalsOr(row.ReferenceRange, decimals))
	out.Evidence = Evidence{}
	return out
}

// result returns the result for a row that a person entered. flag is the printed flag of the original result, empty
// for an added one; decimals is the decimal mark of the reference range.
func (r *Reader) result(row *AddedRow, flag string, decimals Decimals) Result {
	raw := RawRow{Name: row.TestName, Value: row.Value, Unit: row.Units, Range: toPointAll(row.ReferenceRange, decimals), Panel: row.SourcePanelName,
		Flag: flag, Specimen: row.SampleType}
	unit, _ := ucum.Parse(row.Units)
	out, _, _ := newResult(r.catalogue, raw, raw.bounds(Point), unit, Point)
	if row.ReferenceRange != "" {
		out.ReferenceRange = ptr(row.ReferenceRange)
	}
	if row.SampleType != "" {
		out.SampleType = row.SampleType
	}
	if row.Interpretation != "" {
		out.Interpretation = ptr(row.Interpretation)
	}
	if row.LoincCode != "" {
		out.LoincMatchStatus, out.LoincMatches = ptr(AutoMatch), []Match{r.chosenMatch(row.LoincCode, out.LoincMatches)}
	}
	return out
}

// chosenMatch returns the candidate with a code that a person chose. A code that is not in the catalogue has no
// names.
func (r *Reader) chosenMatch(code string, candidates []Match) Match {
	for _, m := range candidates {
		if m.LoincCode == code {
			m.ConfidenceScore = 1
			return m
		}
	}
	if t, err := r.catalogue.Term(code); err == nil {
		return matchOf(t, 1)
	}
	return Match{LoincCode: code, Aliases: []string{}, ConfidenceScore: 1}
}

func decimalsOr(text string, otherwise Decimals) Decimals {
	if d := decimalsOf([]string{text}); d != Undecided {
		return d
	}
	return otherwise
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
