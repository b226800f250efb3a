package labhistory

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// identity is the UUID namespace of the ids of results.
var identity = uuid.MustParse("5e0a3c52-6d0b-4f5e-9a53-1f4b7e1f9f0d")

// ids makes the ids of the results of one order or report. It counts the results by finding, so that results with the
// same finding get different ids. The finding is that of labresult.Result, or the name of the test in a report.
type ids map[string]int

func (n ids) of(source uuid.UUID, finding string) uuid.UUID {
	n[finding]++
	return uuid.NewSHA1(identity, []byte(source.String()+"\x00"+finding+"\x00"+strconv.Itoa(n[finding])))
}

// ofOrder returns the results of an order.
func ofOrder(o *orders.Order, res *orders.OrderResults) []found {
	var out []found
	n := ids{}
	for i := range res.Results {
		in := &res.Results[i]
		r := Result{
			ID: n.of(o.ID.UUID, in.Finding()), Name: in.Name, LOINC: in.LOINC,
			ReportedValue: in.Result, ReportedUnit: in.Unit, Interpretation: string(in.Interpretation), ReferenceRange: in.ReferenceRange,
			Status: string(res.Metadata.Status), CorrectedAt: in.CorrectedAt,
			Source: FromOrder, SourceID: o.ID.UUID, Laboratory: res.Metadata.Laboratory,
		}
		if r.Status == string(labresult.Corrected) && r.CorrectedAt == nil {
			r.Status = string(labresult.Final)
		} else if r.CorrectedAt != nil {
			r.Status = string(labresult.Corrected)
		}
		sample := sampleOf(in, res)
		r.collectedFrom(&sample, res)
		number := in.Type == labresult.Numeric || in.Type == labresult.Range
		r.setMeasurement(number, decimalText(in.MinRangeValue), decimalText(in.MaxRangeValue))
		out = append(out, found{Result: r, facts: factsOfOrder(o, res, &sample), bounded: in.MinRangeValue != nil || in.MaxRangeValue != nil})
	}
	return out
}

// sampleOf returns the sample of a result; if the result names none, the only sample of the order.
func sampleOf(in *labresult.Result, res *orders.OrderResults) (sample labresult.SampleData) {
	if in.SourceSampleID != nil {
		return res.SampleInformation[*in.SourceSampleID]
	}
	if len(res.SampleInformation) == 1 {
		for _, only := range res.SampleInformation {
			sample = only
		}
	}
	return sample
}

// collectedFrom sets the times and the specimen of an order's result from its sample.
func (r *Result) collectedFrom(sample *labresult.SampleData, res *orders.OrderResults) {
	if s := sample.SpecimenType; s != nil && s.Text != "" {
		r.Specimen = &s.Text
	}
	r.CollectedAt, r.CollectedDate = instantAndDay(sample.DateCollected, res.Metadata.DateCollected)
	reported := &res.Metadata.DateReported
	r.ReportedAt, r.ReportedDate = instantAndDay(sample.DateReported, reported)
}

// instantAndDay returns the instant at and its local day, or the date in day if at is nil. The instant is nil if only
// the day is known; both are nil for a month or year.
func instantAndDay(at *labresult.TimestampWithOffset, day *string) (*healthlab.Time, *healthlab.Date) {
	if at != nil {
		switch at.Precision {
		case labresult.YearPrecision, labresult.MonthPrecision:
			return nil, nil
		}
		date := healthlab.DateOf(at.Local())
		if at.Precision == labresult.DayPrecision {
			return nil, &date
		}
		return &at.Timestamp, &date
	}
	return nil, dateOf(day)
}

func dateOf(text *string) *healthlab.Date {
	if text == nil {
		return nil
	}
	d, err := healthlab.ParseDate(*text)
	if err != nil {
		return nil
	}
	return &d
}

// ofReport returns the results of an approved report.
func ofReport(job uuid.UUID, data *labreport.Data) []found {
	var out []found
	facts := Facts{Sex: sexOf(data.Metadata.Gender)}
	if born := dateOf(data.Metadata.DOB); born != nil {
		facts.BirthDate = *born
	}
	n := ids{}
	for i := range data.Results {
		in := &data.Results[i]
		r := Result{
			ID: n.of(job, in.TestName), Name: in.TestName,
			ReportedValue: in.Value, ReportedUnit: in.Units, Interpretation: string(labreport.Unclear), ReferenceRange: in.ReferenceRange,
			CollectedDate: dateOf(data.Metadata.DateCollected), ReportedDate: dateOf(data.Metadata.DateReported),
			Status: string(labresult.Final), Source: FromReport, SourceID: job, Laboratory: data.Metadata.LabName,
		}
		if in.Interpretation != nil {
			r.Interpretation = string(*in.Interpretation)
		}
		if in.LoincMatchStatus != nil && *in.LoincMatchStatus == labreport.AutoMatch && len(in.LoincMatches) > 0 {
			r.LOINC = &in.LoincMatches[0].LoincCode
		}
		number := in.Type != nil && (*in.Type == labreport.Numeric || *in.Type == labreport.Percentage || *in.Type == labreport.RangeValue)
		r.setMeasurement(number, jsonText(in.MinReferenceRange), jsonText(in.MaxReferenceRange))
		out = append(out, found{Result: r, facts: facts, bounded: in.MinReferenceRange != nil || in.MaxReferenceRange != nil})
	}
	return out
}

func decimalText(n *catalogue.Number) *string {
	if n == nil {
		return nil
	}
	s := n.String()
	return &s
}

func jsonText(n *json.Number) *string {
	if n == nil {
		return nil
	}
	s := n.String()
	return &s
}

// Sources of reference ranges.
const (
	rangeOfLaboratory = "laboratory"
	rangeOfCatalogue  = "catalogue"
)

// setMeasurement sets the fields that follow from the LOINC code, the reported value and the reported unit. number is
// true if the reported value can be a number. low and high are the limits of the reference range in the reported unit.
func (r *Result) setMeasurement(number bool, low, high *string) {
	r.Interpretation = cmp.Or(r.Interpretation, string(labresult.UnknownInterpretation))
	if r.ReferenceRange != nil || low != nil || high != nil {
		r.RangeSource = new(rangeOfLaboratory)
	}
	if r.LOINC == nil {
		return
	}
	a, ok := analytes()[*r.LOINC]
	if !ok {
		return
	}
	r.Analyte = &a.name
	if r.Specimen == nil && a.term.System != "" {
		r.Specimen = &a.term.System
	}
	if number && r.ReportedUnit != nil {
		r.measureValue()
	}
	r.rangeOf(low, high, r.ReportedUnit)
}

// rangeOf sets the limits of the reference range, converted from unit to the unit of the result. Nil is an open limit.
func (r *Result) rangeOf(low, high, unit *string) {
	if r.LOINC == nil || unit == nil {
		return
	}
	a, ok := analytes()[*r.LOINC]
	if !ok {
		return
	}
	r.RangeLow, r.RangeHigh = r.inUnit(low, unit), r.inUnit(high, unit)
	if r.Value != nil || r.Bound != nil || r.RangeLow != nil || r.RangeHigh != nil {
		r.Unit = &a.unit.UCUM
	}
}

// measureValue parses the reported value: a number, or a bound such as <5.
func (r *Result) measureValue() {
	in, ok := refrange.Value(r.ReportedValue)
	if !ok {
		return
	}
	sign := func(mark string, open bool) *string {
		if !open {
			mark += "="
		}
		return &mark
	}
	switch {
	case in.Low != "" && in.Low == in.High:
		r.Value = r.inUnit(&in.Low, r.ReportedUnit)
	case in.Low == "":
		r.Comparator, r.Bound = sign("<", in.HighOpen), r.inUnit(&in.High, r.ReportedUnit)
	case in.High == "":
		r.Comparator, r.Bound = sign(">", in.LowOpen), r.inUnit(&in.Low, r.ReportedUnit)
	}
}

// inUnit converts a number into the unit of the result; nil if the units cannot be converted.
func (r *Result) inUnit(text, unit *string) *float64 {
	if text == nil {
		return nil
	}
	v, err := strconv.ParseFloat(*text, 64)
	if err != nil {
		return nil
	}
	if v, ok := Convert(*r.LOINC, v, *unit); ok {
		return &v
	}
	return nil
}
