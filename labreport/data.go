package labreport

import (
	"encoding/json"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// Data is the content of a report.
type Data struct {
	healthlab.Private

	Metadata Metadata `json:"metadata"`
	// Results are in the order of the document; never nil.
	Results []Result `json:"results"`
}

// Metadata is the data of a report about itself and its patient. A nil field was not found.
type Metadata struct {
	healthlab.Private

	PatientFirstName *string `json:"patient_first_name"`
	PatientLastName  *string `json:"patient_last_name"`
	// DOB, DateReported and DateCollected are YYYY-MM-DD if day, month and year are unambiguous, otherwise as
	// printed.
	DOB *string `json:"dob"`
	// Gender is male, female or other; other also means unknown.
	Gender         string  `json:"gender"`
	LabName        *string `json:"lab_name"`
	DateReported   *string `json:"date_reported"`
	DateCollected  *string `json:"date_collected"`
	SpecimenNumber *string `json:"specimen_number"`
	// Evidence has the position and confidence of every field that was found, by its JSON name.
	Evidence Evidence `json:"evidence"`
}

// Evidence has the position and confidence of each field of a result, or of [Metadata]. The keys are JSON names; for
// a result "test_name", "value", "units", "reference_range", "interpretation" (the printed flag) and
// "source_panel_name".
type Evidence map[string]Reading

// Reading is where one field is on the page, and how sure its text is.
type Reading struct {
	// Page counts from 1.
	Page int `json:"page"`
	Box  Box `json:"box"`
	// Confidence of the reading, 0 to 1. It covers the letters and their role in the row, not the LOINC code. A field
	// of a picture has 0.9 or more only if two OCR passes agree, or if a person corrected it. docs/labreport.md lists
	// how often readings are right.
	Confidence float64 `json:"confidence"`
	// Alternatives are further possible texts of a number in a value or a reference range: its decimal point may have
	// been lost, or a second OCR gave another text. A reader gives NeedsReview instead of AutoMatch to a result whose
	// value has alternatives.
	Alternatives []string `json:"alternatives,omitempty"`
}

// MatchStatus is the quality of a result's LOINC candidates.
type MatchStatus string

// Match statuses. Nil means that matching was not possible.
const (
	// AutoMatch: the ConfidenceScore of the best candidate is at least 0.90 and at least 0.05 above that of the
	// second. Name, value and unit were read with high confidence, value and unit are valid for the candidate, and
	// the specimen is stated or implied by the analyte.
	AutoMatch MatchStatus = "auto_match"
	// NeedsReview: the ConfidenceScore of the best candidate is at least 0.50, and a condition of AutoMatch is not
	// met.
	NeedsReview MatchStatus = "needs_review"
	// NoMatch: no candidate has a ConfidenceScore of 0.50 or more.
	NoMatch MatchStatus = "no_match"
)

// Match is one LOINC candidate of a result.
type Match struct {
	LoincCode   string   `json:"loinc_code"`
	LoincName   string   `json:"loinc_name"`
	DisplayName string   `json:"display_name"`
	Aliases     []string `json:"aliases"`
	// ConfidenceScore ranks the candidates, 0 to 1. It does not measure how surely the row was read.
	ConfidenceScore float64 `json:"confidence_score"`
}

// Result is one marker of a report. All enumerations may grow.
type Result struct {
	healthlab.Private

	TestName string `json:"test_name"`
	// Value is the printed value, trimmed. Numbers have a decimal point and no group marks.
	Value string `json:"value"`
	// Type is the class of Value.
	Type *ValueType `json:"type"`
	// Units is the printed unit; nil if there is none.
	Units *string `json:"units"`
	// ReferenceRange is the printed range; nil if there is none. MinReferenceRange and MaxReferenceRange are its ends
	// with all printed digits. An end is nil if the range is open there, or if the text is not a single range.
	ReferenceRange    *string      `json:"reference_range"`
	MinReferenceRange *json.Number `json:"min_reference_range"`
	MaxReferenceRange *json.Number `json:"max_reference_range"`
	// SourcePanelName is the heading above the marker.
	SourcePanelName *string        `json:"source_panel_name"`
	SampleType      loinc.Specimen `json:"sample_type"`
	// MeasurementKind is direct, calculated, ratio or unknown.
	MeasurementKind string `json:"measurement_kind"`
	// Sensitivity is the class of the assay: sensitive, insensitive or unknown.
	Sensitivity      string          `json:"sensitivity"`
	Interpretation   *Interpretation `json:"interpretation"`
	IsAboveMaxRange  *bool           `json:"is_above_max_range"`
	IsBelowMinRange  *bool           `json:"is_below_min_range"`
	LoincMatchStatus *MatchStatus    `json:"loinc_match_status"`
	// LoincMatches has at most five candidates, best first; nil if matching was not
	// possible.
	LoincMatches []Match  `json:"loinc_matches" wire:"nullable"`
	Evidence     Evidence `json:"evidence"`
}
