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

// Report is what a laboratory reports of a sample. Printing or logging it shows nothing.
type Report struct {
	healthlab.Private

	Metadata Metadata `json:"metadata"`
	Results  []Result `json:"results"`
	// MissingResults were expected and are not there; null before a final report.
	MissingResults []Missing `json:"missing_results" wire:"nullable"`
	// SampleInformation is by sample id.
	SampleInformation map[string]SampleData `json:"sample_information" wire:"nullable"`
}

// Result is one result. Printing or logging it shows nothing.
type Result struct {
	healthlab.Private

	Name string `json:"name"`
	// Slug is the lab's; other labs have others.
	Slug string `json:"slug"`
	// Value is deprecated: the number of a numeric result, -1 for any other.
	Value *catalogue.Number `json:"value"`
	// Result is the text to be read as Type says.
	Result string  `json:"result"`
	Type   Type    `json:"type"`
	Unit   *string `json:"unit"`
	// Timestamp is the time of the result. TimestampPrecision is how much of it the laboratory
	// said, and TimestampOffset the offset that it was noted with, in seconds east of UTC; both
	// are left out where they are not known.
	Timestamp          *healthlab.Time `json:"timestamp"`
	TimestampPrecision Precision       `json:"timestamp_precision,omitempty"`
	TimestampOffset    *int            `json:"timestamp_offset,omitempty"`
	Notes              *string         `json:"notes"`
	// PreviousResult is the text before the latest correction of this result, and
	// CorrectedAt is when the correction came. Both are left out of a result that was
	// never corrected; PreviousResult is left out of one that a correction added.
	PreviousResult *string         `json:"previous_result,omitempty"`
	CorrectedAt    *healthlab.Time `json:"corrected_at,omitempty"`
	// ReferenceRange is text: the only place that shows whether its bounds are part
	// of it.
	ReferenceRange  *string           `json:"reference_range"`
	MinRangeValue   *catalogue.Number `json:"min_range_value"`
	MaxRangeValue   *catalogue.Number `json:"max_range_value"`
	IsAboveMaxRange *bool             `json:"is_above_max_range"`
	IsBelowMinRange *bool             `json:"is_below_min_range"`
	// Interpretation is the mapped flag, SourceInterpretation the lab's own.
	Interpretation       Interpretation `json:"interpretation"`
	SourceInterpretation string         `json:"source_interpretation"`
	LOINC                *string        `json:"loinc"`
	LOINCSlug            *string        `json:"loinc_slug"`
	// ProviderID is the lab's result code.
	ProviderID *string `json:"provider_id"`
	// SourceMarkers are the ordered markers that it comes from; null for a result
	// that was not ordered.
	SourceMarkers []SourceMarker `json:"source_markers" wire:"nullable"`
	// PerformingLaboratory is a key of the sample's performing laboratories.
	PerformingLaboratory *string `json:"performing_laboratory"`
	// SourceSampleID is a key of SampleInformation.
	SourceSampleID *string `json:"source_sample_id"`
	// Group is the laboratory's id of the group that the result belongs to, such as an
	// isolate with its susceptibilities. It is unique within one test of one report.
	Group string `json:"group,omitempty"`
	// Codes are those of a coded result; Result has its text.
	Codes []Code `json:"codes,omitempty"`
	// Methods are how it was measured.
	Methods []Coded `json:"methods,omitempty"`
	// Equipment are the instruments that measured it.
	Equipment []Coded `json:"equipment,omitempty"`
	// Parent is the result that led to the test of this one; nil for none.
	Parent *ParentResult `json:"parent,omitempty"`
}

// Code is a code of a code system, with the text that the laboratory sends with it. Printing
// or logging it shows nothing.
type Code struct {
	healthlab.Private

	Code string `json:"code"`
	Text string `json:"text"`
	// System is what the laboratory calls the code system, such as SCT for SNOMED CT.
	System string `json:"system"`
}

// Coded is a term that a laboratory sends, as text and as codes. Codes are nil where it
// sends text alone. Printing or logging it shows nothing.
type Coded struct {
	healthlab.Private

	Text  string `json:"text"`
	Codes []Code `json:"codes,omitempty"`
}

// ParentResult names the result that led to a reflex test, such as the isolate whose
// susceptibilities were tested. What the laboratory does not say is empty. Printing or
// logging it shows nothing.
type ParentResult struct {
	healthlab.Private

	// PlacerNumber and FillerNumber are the numbers of the parent's test, ours and the
	// laboratory's.
	PlacerNumber string `json:"placer_number"`
	FillerNumber string `json:"filler_number"`
	// Result names the parent result, and Group is its group.
	Result *Coded `json:"result"`
	Group  string `json:"group"`
	// Value is the value of the parent result.
	Value string `json:"value"`
}

// plainResult is LabResult without its methods.
type plainResult Result

// resultJSON has the type under both of its names.
type resultJSON struct {
	plainResult
	ResultType Type `json:"result_type"`
}

// MarshalJSON writes the type as type and as result_type.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{plainResult(r), r.Type})
}

// UnmarshalJSON reads either name of the type, result_type first.
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

// SourceMarker is an ordered marker that a result comes from.
type SourceMarker struct {
	MarkerID   int     `json:"marker_id"`
	Name       string  `json:"name"`
	Slug       string  `json:"slug"`
	ProviderID *string `json:"provider_id"`
}

// Metadata is the head of a report. Printing or logging it shows nothing.
type Metadata struct {
	healthlab.Private

	// Age is in years, as text.
	Age string `json:"age"`
	// DOB is the birth date as it was printed, in any format.
	DOB string `json:"dob"`
	// CLIANumber is the lab's licence.
	CLIANumber     *string `json:"clia_#"`
	Patient        string  `json:"patient"`
	SpecimenNumber string  `json:"specimen_number"`
	// Provider is the physician.
	Provider   *string `json:"provider"`
	Laboratory *string `json:"laboratory"`
	// The three dates are deprecated; see SampleInformation.
	DateReported   string          `json:"date_reported"`
	DateCollected  *string         `json:"date_collected"`
	DateReceived   *string         `json:"date_received"`
	Status         Status          `json:"status"`
	Interpretation *Interpretation `json:"interpretation"`
	// PatientID and AccountID are the lab's own.
	PatientID *string `json:"patient_id"`
	AccountID *string `json:"account_id"`
	// Notes are the laboratory's notes on the patient or the visit, in lines.
	Notes *string `json:"notes,omitempty"`
}

// BirthDate reads DOB as labs print it. It is zero if DOB is not a date, or if its day and month
// could be exchanged.
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

// UnmarshalJSON reads what is published; the age may be a number, and the licence be
// called clia_number.
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

// Missing is a result that was expected and is not there.
type Missing struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	// InferredFailureType is read from the lab's words, and may be read better later.
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

// SampleData is what is known of one sample.
type SampleData struct {
	SampleID      *string              `json:"sample_id"`
	ControlNumber *string              `json:"control_number"`
	DateCollected *TimestampWithOffset `json:"date_collected"`
	DateReceived  *TimestampWithOffset `json:"date_received"`
	DateReported  *TimestampWithOffset `json:"date_reported"`
	// PerformingLaboratories are by the key that results name.
	PerformingLaboratories map[string]PerformingLaboratory `json:"performing_laboratories" wire:"nullable"`
	ClinicalInformation    *ClinicalInformation            `json:"clinical_information"`
	// SpecimenType is what was collected, and SpecimenSite from where on the body, each with
	// its modifiers. CollectionMethod is how, and CollectionSite where the needle or the like
	// went in.
	SpecimenType     *Coded  `json:"specimen_type,omitempty"`
	TypeModifiers    []Coded `json:"type_modifiers,omitempty"`
	SpecimenSite     *Coded  `json:"specimen_site,omitempty"`
	SiteModifiers    []Coded `json:"site_modifiers,omitempty"`
	CollectionMethod *Coded  `json:"collection_method,omitempty"`
	CollectionSite   *Coded  `json:"collection_site,omitempty"`
	// Additives are those of the container or the specimen, ContainerType what it came in, and
	// Description the laboratory's words on it, in lines.
	Additives     []Coded `json:"additives,omitempty"`
	ContainerType *Coded  `json:"container_type,omitempty"`
	Description   string  `json:"description,omitempty"`
	// Conditions are those of the specimen at the laboratory, RejectReasons why the
	// laboratory refused it.
	Conditions    []Coded `json:"conditions,omitempty"`
	RejectReasons []Coded `json:"reject_reasons,omitempty"`
}

// TimestampWithOffset is an instant and the local offset it was noted with.
type TimestampWithOffset struct {
	// Timestamp is the first instant of what the laboratory said.
	Timestamp healthlab.Time `json:"timestamp"`
	// TimezoneOffset is in seconds east of UTC.
	TimezoneOffset int `json:"timezone_offset"`
	// Precision is how much of the local time the laboratory said.
	Precision Precision `json:"precision,omitempty"`
}

// Precision is how much of a time was said; empty for seconds or more.
type Precision string

// The precisions of times that are not said to the second.
const (
	YearPrecision   Precision = "year"
	MonthPrecision  Precision = "month"
	DayPrecision    Precision = "day"
	HourPrecision   Precision = "hour"
	MinutePrecision Precision = "minute"
)

// layouts are those of ISO 8601 for local times.
var layouts = map[Precision]string{YearPrecision: "2006", MonthPrecision: "2006-01", DayPrecision: time.DateOnly}

// Text writes the time in ISO 8601: a year, a month or a day alone where no more was said, else
// the instant.
func (t TimestampWithOffset) Text() string {
	layout, ok := layouts[t.Precision]
	if !ok {
		return t.Timestamp.String()
	}
	return t.Local().Format(layout)
}

// Local returns the instant with the offset that it was noted with.
func (t TimestampWithOffset) Local() time.Time {
	return t.Timestamp.In(time.FixedZone("", t.TimezoneOffset))
}

// UnmarshalJSON reads what is published; others write a date, or a date and a time, as
// text. One without an offset is in UTC.
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

// PerformingLaboratory did a part of the work.
type PerformingLaboratory struct {
	Name            string          `json:"name"`
	PhoneNumber     *string         `json:"phone_number"`
	MedicalDirector *string         `json:"medical_director"`
	Address         *people.Address `json:"address"`
}

// ClinicalInformation is what the lab knows of the patient's state.
type ClinicalInformation struct {
	Fasting     bool    `json:"fasting"`
	Notes       *string `json:"notes"`
	Information *string `json:"information"`
	TotalVolume *string `json:"total_volume"`
}

// Worst returns the interpretation of several results: critical over abnormal over unknown
// over normal; unknown if there are none. A result without an interpretation is unknown.
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

// Interpretation is the reading of one result, or the worst of several.
type Interpretation string

// The Interpretations().
const (
	Normal                Interpretation = "normal"
	Abnormal              Interpretation = "abnormal"
	Critical              Interpretation = "critical"
	UnknownInterpretation Interpretation = "unknown"
)

// Status says whether more results are to come.
type Status string

// The result statuses.
const (
	Final   Status = "final"
	Partial Status = "partial"
	// Corrected is final, and replaces an earlier final report.
	Corrected Status = "corrected"
)

// Type says how the text of a result is to be read.
type Type string

// The result types.
const (
	// Numeric is a decimal number.
	Numeric Type = "numeric"
	// Range is a bound or an interval: "<1.2", "3-5".
	Range Type = "range"
	// Comment is free text.
	Comment Type = "comment"
	// CodedValue is an UPPER_SNAKE constant of the test.
	CodedValue Type = "coded_value"
)

// FailureType is why, as far as a lab's words tell, a result is missing.
type FailureType string

// The failure types.
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

// Interpretations returns every reading of a result.
func Interpretations() []Interpretation {
	return []Interpretation{Normal, Abnormal, Critical, UnknownInterpretation}
}
