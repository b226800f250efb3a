package labhistory

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Source is the origin of a result: an order or a report.
type Source string

// Sources of results.
const (
	// FromOrder: the result belongs to an order. Its laboratory sent it by API, HL7, FHIR or file, or a
	// reviewer matched it to the order.
	FromOrder Source = "order"
	// FromReport: the result belongs to a lab report that a person approved.
	FromReport Source = "report"
)

// Result is one laboratory result of a person. Printing or logging it shows no values.
type Result struct {
	healthlab.Private

	// ID is stable for the same finding of the same order or report, also after corrections.
	ID uuid.UUID `json:"id"`
	// Name is the laboratory's name of the test.
	Name string `json:"name"`
	// LOINC is the LOINC code; null if it is unknown or ambiguous.
	LOINC *string `json:"loinc"`
	// Analyte is the component of a known LOINC code, with the specimen if that is not blood: "Glucose in
	// urine".
	Analyte *string `json:"analyte"`
	// Value is the number in Unit, which is the unit of [UnitOf]. Both are null if the result is no number or
	// cannot be converted. Value is null if the laboratory gives a bound.
	Value *float64 `json:"value"`
	Unit  *string  `json:"unit"`
	// Comparator is <, <=, > or >= if the result is a bound, and Bound the bound's number in Unit.
	Comparator *string  `json:"comparator"`
	Bound      *float64 `json:"bound"`
	// ReportedValue and ReportedUnit are the texts that the laboratory wrote.
	ReportedValue string  `json:"reported_value"`
	ReportedUnit  *string `json:"reported_unit"`
	// Interpretation is normal, abnormal, critical or unknown.
	Interpretation string `json:"interpretation"`
	// ReferenceRange is the range as the laboratory wrote it. RangeLow and RangeHigh are its limits in Unit;
	// null if open or unknown. RangeSource is laboratory, or catalogue if the result has no range and
	// [Options.Catalogue] has one; null without a range. RangeGroup is the name of the person's group, if the
	// range is a list by sex, age, pregnancy or fasting and the person's group on the day of the sample is
	// certain.
	ReferenceRange *string  `json:"reference_range"`
	RangeLow       *float64 `json:"range_low"`
	RangeHigh      *float64 `json:"range_high"`
	RangeSource    *string  `json:"range_source"`
	RangeGroup     *string  `json:"range_group"`
	// Specimen is the examined material in the laboratory's words, else that of the LOINC code.
	Specimen *string `json:"specimen"`
	// CollectedAt and ReportedAt are instants; null if the laboratory gives at most a day. CollectedDate and
	// ReportedDate are the days in the laboratory's time zone.
	CollectedAt   *healthlab.Time `json:"collected_at"`
	CollectedDate *healthlab.Date `json:"collected_date"`
	ReportedAt    *healthlab.Time `json:"reported_at"`
	ReportedDate  *healthlab.Date `json:"reported_date"`
	// Status is partial, final or corrected.
	Status      string          `json:"status"`
	CorrectedAt *healthlab.Time `json:"corrected_at"`
	// Source is order or report, and SourceID the id of the order or of the parsing job.
	Source     Source    `json:"source"`
	SourceID   uuid.UUID `json:"source_id"`
	Laboratory *string   `json:"laboratory"`
}

// Date is the day by which a result is sorted and found: the day of the collection, else of the report. Zero if
// both are unknown.
func (r *Result) Date() healthlab.Date {
	switch {
	case r.CollectedDate != nil:
		return *r.CollectedDate
	case r.ReportedDate != nil:
		return *r.ReportedDate
	}
	return healthlab.Date{}
}
