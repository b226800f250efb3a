package labreport

import (
	"encoding/json"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// Data is what a report says.
type Data struct {
	healthlab.Private

	Metadata Metadata `json:"metadata"`
	// Results are in the order of the document; never nil.
	Results []Result `json:"results"`
}

// Metadata is what a report says about itself and its patient. A nil field was not
// found.
type Metadata struct {
	healthlab.Private

	PatientFirstName *string `json:"patient_first_name"`
	PatientLastName  *string `json:"patient_last_name"`
	// Dates are YYYY-MM-DD where day, month and year are unambiguous, else as
	// printed.
	DOB *string `json:"dob"`
	// Gender is male, female or other; other also if it is not known.
	Gender         string  `json:"gender"`
	LabName        *string `json:"lab_name"`
	DateReported   *string `json:"date_reported"`
	DateCollected  *string `json:"date_collected"`
	SpecimenNumber *string `json:"specimen_number"`
	// Evidence has the place of every field that was found, by its name in JSON.
	Evidence Evidence `json:"evidence"`
}

// Evidence says, per field of a result, where it was read and how surely. The keys
// are the names of the fields in JSON: "test_name", "value", "units",
// "reference_range", "interpretation" (the printed flag) and "source_panel_name".
type Evidence map[string]Reading

// Reading is where one field was read.
type Reading struct {
	// Page counts from 1.
	Page int `json:"page"`
	Box  Box `json:"box"`
	// Confidence of the reading, 0 to 1. It is about the letters and their role in
	// the row, not about the LOINC code. What was read from a picture gets 0.9 or
	// more only where two readings agree. docs/labreport.md has how often it is right.
	Confidence float64 `json:"confidence"`
	// Alternatives are further readings of a value whose decimal point may be lost; the
	// row needs review.
	Alternatives []string `json:"alternatives,omitempty"`
}

// MatchStatus says what the LOINC candidates of a result are worth.
type MatchStatus string

// Match statuses. A nil status means that matching was not possible.
const (
	// AutoMatch has a best candidate of at least 0.90, 0.05 before the second. Its name,
	// value and unit are read surely, and its specimen is stated or implied by the analyte.
	AutoMatch MatchStatus = "auto_match"
	// NeedsReview has a best candidate of at least 0.50.
	NeedsReview MatchStatus = "needs_review"
	// NoMatch has none.
	NoMatch MatchStatus = "no_match"
)

// Match is one LOINC candidate of a result.
type Match struct {
	LoincCode   string   `json:"loinc_code"`
	LoincName   string   `json:"loinc_name"`
	DisplayName string   `json:"display_name"`
	Aliases     []string `json:"aliases"`
	// ConfidenceScore ranks the candidates, 0 to 1. It says nothing about how
	// surely the row was read.
	ConfidenceScore float64 `json:"confidence_score"`
}

// Result is one marker of a report. All enumerations may grow.
type Result struct {
	healthlab.Private

	TestName string `json:"test_name"`
	// Value is as printed, trimmed; numbers are written with a point and without
	// group marks.
	Value string `json:"value"`
	// Type is the class of Value.
	Type *ValueType `json:"type"`
	// Units is as printed, nil if none is.
	Units *string `json:"units"`
	// ReferenceRange is as printed. Its ends are numbers with the digits that are
	// printed, trailing zeros included; nil is open, or not one range.
	ReferenceRange    *string      `json:"reference_range"`
	MinReferenceRange *json.Number `json:"min_reference_range"`
	MaxReferenceRange *json.Number `json:"max_reference_range"`
	// SourcePanelName is the heading that the marker is printed under.
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
