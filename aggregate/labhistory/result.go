package labhistory

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Source is where a result was read.
type Source string

// The sources.
const (
	// FromOrder is an order, whether its laboratory sent the result by API, HL7, FHIR or file, or a
	// reviewer gave it to the order.
	FromOrder Source = "order"
	// FromReport is a lab report that a person approved.
	FromReport Source = "report"
)

// Result is one result of a person. Printing or logging it shows nothing.
type Result struct {
	healthlab.Private

	// ID stays while the result is the same finding of the same order or report, and so over
	// corrections.
	ID uuid.UUID `json:"id"`
	// Name is what the laboratory calls it.
	Name string `json:"name"`
	// LOINC is its code; null where none is known, or none without doubt.
	LOINC *string `json:"loinc"`
	// Analyte is the LOINC component of a code that is known, with the specimen if that is not blood:
	// "Glucose in urine".
	Analyte *string `json:"analyte"`
	// Value is the number in Unit, which is that of [UnitOf]. Both are null where the result is no
	// number or cannot be converted, and Value is null where the laboratory gives a bound.
	Value *float64 `json:"value"`
	Unit  *string  `json:"unit"`
	// Comparator is <, <=, > or >= of a result that is a bound, and Bound its number in Unit.
	Comparator *string  `json:"comparator"`
	Bound      *float64 `json:"bound"`
	// ReportedValue and ReportedUnit are what the laboratory wrote.
	ReportedValue string  `json:"reported_value"`
	ReportedUnit  *string `json:"reported_unit"`
	// Interpretation is normal, abnormal, critical or unknown.
	Interpretation string `json:"interpretation"`
	// ReferenceRange is the range as the laboratory wrote it. RangeLow and RangeHigh are the ends of the
	// range in Unit; null is open, or not known. RangeSource is laboratory, or catalogue where the result brings
	// no range and [Options.Catalogue] has one; null without a range. RangeGroup names the group whose
	// range it is, as its source names it, where the range is a list by sex, age, pregnancy or fasting
	// and the person is of one of its groups on the day of the sample without doubt.
	ReferenceRange *string  `json:"reference_range"`
	RangeLow       *float64 `json:"range_low"`
	RangeHigh      *float64 `json:"range_high"`
	RangeSource    *string  `json:"range_source"`
	RangeGroup     *string  `json:"range_group"`
	// Specimen is what was examined, in the laboratory's words; else what the code says.
	Specimen *string `json:"specimen"`
	// CollectedAt and ReportedAt are instants; null where the laboratory gives a day or less.
	// CollectedDate and ReportedDate are the days, on the clock of the laboratory.
	CollectedAt   *healthlab.Time `json:"collected_at"`
	CollectedDate *healthlab.Date `json:"collected_date"`
	ReportedAt    *healthlab.Time `json:"reported_at"`
	ReportedDate  *healthlab.Date `json:"reported_date"`
	// Status is partial, final or corrected.
	Status      string          `json:"status"`
	CorrectedAt *healthlab.Time `json:"corrected_at"`
	// Source and SourceID say where the result was read: an order or a parsing job.
	Source     Source    `json:"source"`
	SourceID   uuid.UUID `json:"source_id"`
	Laboratory *string   `json:"laboratory"`
}

// Date is the day that a result is sorted and found by: that of the collection, else that of the
// report. Zero where neither is known.
func (r *Result) Date() healthlab.Date {
	switch {
	case r.CollectedDate != nil:
		return *r.CollectedDate
	case r.ReportedDate != nil:
		return *r.ReportedDate
	}
	return healthlab.Date{}
}
