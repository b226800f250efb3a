package labresult

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Report is a laboratory's report of a sample. Printing or logging it shows nothing.
type Report struct {
	healthlab.Private

	Metadata Metadata `json:"metadata"`
	Results  []Result `json:"results"`
	// MissingResults are expected results without a value; null before a final report.
	MissingResults []Missing `json:"missing_results" wire:"nullable"`
	// SampleInformation has the samples by sample id.
	SampleInformation map[string]SampleData `json:"sample_information" wire:"nullable"`
}

// Result is one laboratory result. Printing or logging it shows nothing.
type Result struct {
	healthlab.Private

	Name string `json:"name"`
	// Slug is the lab's short name; other labs use other slugs.
	Slug string `json:"slug"`
	// Value is deprecated: the number of a numeric result, -1 for any other.
	Value *catalogue.Number `json:"value"`
	// Result is the result as text; Type is its form.
	Result string  `json:"result"`
	Type   Type    `json:"type"`
	Unit   *string `json:"unit"`
	// Timestamp is the time of the result. TimestampPrecision is its precision, and TimestampOffset its
	// original offset in seconds east of UTC; both are left out if unknown.
	Timestamp          *healthlab.Time `json:"timestamp"`
	TimestampPrecision Precision       `json:"timestamp_precision,omitempty"`
	TimestampOffset    *int            `json:"timestamp_offset,omitempty"`
	Notes              *string         `json:"notes"`
	// PreviousResult is the text before the latest correction of this result, and CorrectedAt the time of the
	// correction. Both are left out if the result was never corrected; PreviousResult is left out if a
	// correction added the result.
	PreviousResult *string         `json:"previous_result,omitempty"`
	CorrectedAt    *healthlab.Time `json:"corrected_at,omitempty"`
	// ReferenceRange is the range as text. Only the text shows whether a value equal to a limit is inside the
	// range.
	ReferenceRange  *string           `json:"reference_range"`
	MinRangeValue   *catalogue.Number `json:"min_range_value"`
	MaxRangeValue   *catalogue.Number `json:"max_range_value"`
	IsAboveMaxRange *bool             `json:"is_above_max_range"`
	IsBelowMinRange *bool             `json:"is_below_min_range"`
	// Interpretation is the flag in this service's terms, SourceInterpretation the lab's own flag.
	Interpretation       Interpretation `json:"interpretation"`
	SourceInterpretation string         `json:"source_interpretation"`
	LOINC                *string        `json:"loinc"`
	LOINCSlug            *string        `json:"loinc_slug"`
	// ProviderID is the lab's result code.
	ProviderID *string `json:"provider_id"`
	// SourceMarkers are the ordered markers of the result; null for a result that was not ordered.
	SourceMarkers []SourceMarker `json:"source_markers" wire:"nullable"`
	// PerformingLaboratory is a key of PerformingLaboratories in the [SampleData] of the sample.
	PerformingLaboratory *string `json:"performing_laboratory"`
	// SourceSampleID is a key of SampleInformation in the [Report].
	SourceSampleID *string `json:"source_sample_id"`
	// Group is the laboratory's id of the group that the result belongs to, such as an
	// isolate with its susceptibilities. It is unique within one test of one report.
	Group string `json:"group,omitempty"`
	// Codes are the codes of a coded result; Result has its text.
	Codes []Code `json:"codes,omitempty"`
	// Methods are the methods of the measurement.
	Methods []Coded `json:"methods,omitempty"`
	// Equipment are the instruments of the measurement.
	Equipment []Coded `json:"equipment,omitempty"`
	// Parent is the result that led to the test of this one; nil for none.
	Parent *ParentResult `json:"parent,omitempty"`
}

// Code is a code of a code system, with the laboratory's text of it. Printing or logging it shows nothing.
type Code struct {
	healthlab.Private

	Code string `json:"code"`
	Text string `json:"text"`
	// System is the laboratory's name of the code system, such as SCT for SNOMED CT.
	System string `json:"system"`
}

// Coded is a term of a laboratory, as text and as codes. Codes are nil if it sends text only. Printing or
// logging it shows nothing.
type Coded struct {
	healthlab.Private

	Text  string `json:"text"`
	Codes []Code `json:"codes,omitempty"`
}

// ParentResult identifies the result that led to a reflex test, such as the isolate whose susceptibilities were
// tested. Unknown fields are empty. Printing or logging it shows nothing.
type ParentResult struct {
	healthlab.Private

	// PlacerNumber and FillerNumber are the numbers of the parent's test: this service's and the laboratory's.
	PlacerNumber string `json:"placer_number"`
	FillerNumber string `json:"filler_number"`
	// Result is the name of the parent result; Group is the parent's [Result].Group.
	Result *Coded `json:"result"`
	Group  string `json:"group"`
	// Value is the value of the parent result.
	Value string `json:"value"`
}

// plainResult is Result without its methods.
type plainResult Result

// resultJSON writes the type as type and as result_type.
type resultJSON struct {
	plainResult
	ResultType Type `json:"result_type"`
}

// MarshalJSON writes the type as type and as result_type.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{plainResult(r), r.Type})
}

// UnmarshalJSON reads the type under either name; result_type takes precedence.
func (r *Result) UnmarshalJSON(b []byte) error {
	var in resultJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*r = Result(in.plainResult)
	if in.ResultType != "" {
		r.Type = in.ResultType
	}
	return nil
}

// SourceMarker is an ordered marker of a result.
type SourceMarker struct {
	MarkerID   int     `json:"marker_id"`
	Name       string  `json:"name"`
	Slug       string  `json:"slug"`
	ProviderID *string `json:"provider_id"`
}

// Metadata is the general part of a report: patient, laboratory and status. Printing or logging it shows
// nothing.
type Metadata struct {
	healthlab.Private

	// Age is in years, as text.
	Age string `json:"age"`
	// DOB is the birth date as it was printed, in any format.
	DOB string `json:"dob"`
	// CLIANumber is the number of the lab's CLIA certificate.
	CLIANumber     *string `json:"clia_#"`
	Patient        string  `json:"patient"`
	SpecimenNumber string  `json:"specimen_number"`
	// Provider is the name of the physician.
	Provider   *string `json:"provider"`
	Laboratory *string `json:"laboratory"`
	// DateReported, DateCollected and DateReceived are deprecated; see SampleInformation of the [Report].
	DateReported   string          `json:"date_reported"`
	DateCollected  *string         `json:"date_collected"`
	DateReceived   *string         `json:"date_received"`
	Status         Status          `json:"status"`
	Interpretation *Interpretation `json:"interpretation"`
	// PatientID and AccountID are the lab's own ids.
	PatientID *string `json:"patient_id"`
	AccountID *string `json:"account_id"`
	// Notes are the laboratory's notes on the patient or the visit, in lines.
	Notes *string `json:"notes,omitempty"`
}

// BirthDate parses DOB. It returns zero if DOB is not a date, or if its day and month could be swapped.
func (m *Metadata) BirthDate() healthlab.Date {
	for _, layout := range []string{time.DateOnly, "20060102"} {
		if t, err := time.Parse(layout, m.DOB); err == nil {
			return healthlab.DateOf(t)
		}
	}
	t, err := time.Parse("1/2/2006", m.DOB)
	if err != nil {
		t, err = time.Parse("2/1/2006", m.DOB)
	}
	if err == nil && (t.Day() > 12 || t.Day() == int(t.Month())) {
		return healthlab.DateOf(t)
	}
	return healthlab.Date{}
}

// UnmarshalJSON reads the JSON of the HTTP API; age may be a number, and clia_# may be named clia_number.
func (m *Metadata) UnmarshalJSON(b []byte) error {
	type plain Metadata
	in := struct {
		*plain
		Age  rules.NumberText `json:"age"`
		CLIA *string          `json:"clia_number"`
	}{plain: (*plain)(m)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	m.Age, m.CLIANumber = string(in.Age), cmp.Or(m.CLIANumber, in.CLIA)
	return nil
}

// Missing is an expected result without a value.
type Missing struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	// InferredFailureType is derived from the lab's text. A later version may derive another type.
	InferredFailureType FailureType    `json:"inferred_failure_type"`
	Note                *string        `json:"note"`
	LOINC               *string        `json:"loinc"`
	LOINCSlug           *string        `json:"loinc_slug"`
	ProviderID          *string        `json:"provider_id"`
	SourceMarkers       []SourceMarker `json:"source_markers" wire:"nullable"`
	// Group, Codes, Methods, Equipment and Parent are as in [Result].
	Group     string        `json:"group,omitempty"`
	Codes     []Code        `json:"codes,omitempty"`
	Methods   []Coded       `json:"methods,omitempty"`
	Equipment []Coded       `json:"equipment,omitempty"`
	Parent    *ParentResult `json:"parent,omitempty"`
}

// SampleData is the data of one sample.
type SampleData struct {
	SampleID      *string              `json:"sample_id"`
	ControlNumber *string              `json:"control_number"`
	DateCollected *TimestampWithOffset `json:"date_collected"`
	DateReceived  *TimestampWithOffset `json:"date_received"`
	DateReported  *TimestampWithOffset `json:"date_reported"`
	// PerformingLaboratories maps PerformingLaboratory of a [Result] to the laboratory.
	PerformingLaboratories map[string]PerformingLaboratory `json:"performing_laboratories" wire:"nullable"`
	ClinicalInformation    *ClinicalInformation            `json:"clinical_information"`
	// SpecimenType is the collected material, and SpecimenSite the site on the body, each with its modifiers.
	// CollectionMethod is the method, and CollectionSite the site at which a device such as a needle was
	// inserted.
	SpecimenType     *Coded  `json:"specimen_type,omitempty"`
	TypeModifiers    []Coded `json:"type_modifiers,omitempty"`
	SpecimenSite     *Coded  `json:"specimen_site,omitempty"`
	SiteModifiers    []Coded `json:"site_modifiers,omitempty"`
	CollectionMethod *Coded  `json:"collection_method,omitempty"`
	CollectionSite   *Coded  `json:"collection_site,omitempty"`
	// Additives are those of the container or the specimen. ContainerType is the type of the container.
	// Description is the laboratory's description, in lines.
	Additives     []Coded `json:"additives,omitempty"`
	ContainerType *Coded  `json:"container_type,omitempty"`
	Description   string  `json:"description,omitempty"`
	// Conditions are the conditions of the specimen at the laboratory. RejectReasons are the laboratory's
	// reasons for refusing it.
	Conditions    []Coded `json:"conditions,omitempty"`
	RejectReasons []Coded `json:"reject_reasons,omitempty"`
}

// TimestampWithOffset is an instant with its original offset from UTC.
type TimestampWithOffset struct {
	// Timestamp is the first instant of the reported time.
	Timestamp healthlab.Time `json:"timestamp"`
	// TimezoneOffset is in seconds east of UTC.
	TimezoneOffset int `json:"timezone_offset"`
	// Precision is the precision of the reported local time.
	Precision Precision `json:"precision,omitempty"`
}

// Precision is the precision of a time; empty if the time has seconds.
type Precision string

// Precisions of times that are less precise than a second.
const (
	YearPrecision   Precision = "year"
	MonthPrecision  Precision = "month"
	DayPrecision    Precision = "day"
	HourPrecision   Precision = "hour"
	MinutePrecision Precision = "minute"
)

// layouts are the ISO 8601 layouts of local times.
var layouts = map[Precision]string{YearPrecision: "2006", MonthPrecision: "2006-01", DayPrecision: time.DateOnly}

// Text formats the time in ISO 8601: a year, a month or a day if the time is not more precise, else the
// instant.
func (t TimestampWithOffset) Text() string {
	layout, ok := layouts[t.Precision]
	if !ok {
		return t.Timestamp.String()
	}
	return t.Local().Format(layout)
}

// Local returns the instant with its original offset.
func (t TimestampWithOffset) Local() time.Time {
	return t.Timestamp.In(time.FixedZone("", t.TimezoneOffset))
}

// UnmarshalJSON reads the JSON of the HTTP API, or a text with a date and an optional time. A text without an
// offset is in UTC.
func (t *TimestampWithOffset) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		type plain TimestampWithOffset
		return json.Unmarshal(b, (*plain)(t))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if day, err := healthlab.ParseDate(text); err == nil {
		*t = TimestampWithOffset{Timestamp: healthlab.At(time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC)), Precision: DayPrecision}
		return nil
	}
	at, offset, err := healthlab.ParseTimeOffset(text)
	if err != nil {
		return fmt.Errorf("timestamp: %w", err)
	}
	*t = TimestampWithOffset{Timestamp: at, TimezoneOffset: offset}
	return nil
}

// PerformingLaboratory is a laboratory that performed a part of the tests.
type PerformingLaboratory struct {
	Name            string          `json:"name"`
	PhoneNumber     *string         `json:"phone_number"`
	MedicalDirector *string         `json:"medical_director"`
	Address         *people.Address `json:"address"`
}

// ClinicalInformation is the lab's information about the patient's condition.
type ClinicalInformation struct {
	Fasting     bool    `json:"fasting"`
	Notes       *string `json:"notes"`
	Information *string `json:"information"`
	TotalVolume *string `json:"total_volume"`
}

// Worst returns the worst interpretation of several results, in the order critical, abnormal, unknown, normal;
// unknown if there are none. A result without an interpretation is unknown.
func Worst(results []Result) Interpretation {
	if len(results) == 0 {
		return UnknownInterpretation
	}
	worst := Normal
	for _, r := range results {
		switch r.Interpretation {
		case Critical:
			return Critical
		case Abnormal:
			worst = Abnormal
		case Normal:
		default:
			if worst == Normal {
				worst = UnknownInterpretation
			}
		}
	}
	return worst
}

// Interpretation is the clinical meaning of one result, or the worst of several.
type Interpretation string

// Interpretations of results.
const (
	Normal                Interpretation = "normal"
	Abnormal              Interpretation = "abnormal"
	Critical              Interpretation = "critical"
	UnknownInterpretation Interpretation = "unknown"
)

// Status is the status of a report: whether more results will follow.
type Status string

// Statuses of reports.
const (
	Final   Status = "final"
	Partial Status = "partial"
	// Corrected is a final report that replaces an earlier final one.
	Corrected Status = "corrected"
)

// Type is the form of a result's text.
type Type string

// Types of results.
const (
	// Numeric is a decimal number.
	Numeric Type = "numeric"
	// Range is a bound or an interval: "<1.2", "3-5".
	Range Type = "range"
	// Comment is free text.
	Comment Type = "comment"
	// CodedValue is an UPPER_SNAKE constant that depends on the test.
	CodedValue Type = "coded_value"
)

// FailureType is the reason for a missing result, as far as the lab's text states it.
type FailureType string

// Failure types.
const (
	QuantityNotSufficientFailure FailureType = "quantity_not_sufficient_failure"
	CollectionProcessFailure     FailureType = "collection_process_failure"
	DropOffFailure               FailureType = "drop_off_failure"
	InternalLabFailure           FailureType = "internal_lab_failure"
	OrderEntryFailure            FailureType = "order_entry_failure"
	NonFailure                   FailureType = "non_failure"
	UnknownFailure               FailureType = "unknown_failure"
	PatientConditionFailure      FailureType = "patient_condition_failure"
	MissingResultCalcFailure     FailureType = "missing_result_calc_failure"
	MissingDemoAOECalcFailure    FailureType = "missing_demo_aoe_calc_failure"
	InsufficientVolume           FailureType = "insufficient_volume"
)

// Interpretations returns every interpretation.
func Interpretations() []Interpretation {
	return []Interpretation{Normal, Abnormal, Critical, UnknownInterpretation}
}
