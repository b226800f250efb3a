package healthdata

import (
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A sample that the source sent in another unit keeps that unit in [series.Attrs.Unit]. The sent number is
// computed from the stored value, with the fewest digits that convert back to it. If that gives another number
// than the source sent, the sent numbers are stored after the unit.

// sourceSeparator stands between a unit and the numbers that a source sent.
const sourceSeparator = "\x1f"

// sourceUnit returns the text that stores the unit and the numbers of a source; empty if the unit is that of the
// resource. stored has a value for each number of sent.
func (r *Resource) sourceUnit(unit, sampleType string, sent, stored []float64) string {
	c, ok := r.conversion(unit, sampleType)
	if unit == r.Unit || !ok || c.Of(1) == 1 && c.Of(0) == 0 {
		return ""
	}
	out := unit
	for i := range sent {
		if back, ok := r.convertBack(unit, sampleType, stored[i]); !ok || back != sent[i] {
			for _, n := range sent {
				out += sourceSeparator + strconv.FormatFloat(n, 'g', -1, 64)
			}
			return out
		}
	}
	return out
}

// convertBack converts a stored value back to a unit. It returns the number with the fewest significant digits, at
// least 6, that converts to the stored value, and false if the unit cannot be converted.
func (r *Resource) convertBack(unit, sampleType string, stored float64) (float64, bool) {
	c, ok := r.conversion(unit, sampleType)
	if !ok {
		return 0, false
	}
	exact := stored*c.Over/c.Times + c.Minus
	for digits := 6; digits <= 17; digits++ {
		n, err := strconv.ParseFloat(strconv.FormatFloat(exact, 'g', digits, 64), 64)
		if err == nil && c.Of(n) == stored {
			return n, true
		}
	}
	return exact, true
}

// SentNumbers returns the unit and the numbers that a source sent for a stored sample of the resource. The unit is empty
// if they equal the stored ones. second is the diastolic pressure of a blood pressure; otherwise it is 0.
func (r *Resource) SentNumbers(s *series.Sample) (unit string, first, second float64) {
	if s.Unit == "" {
		return "", 0, 0
	}
	parts := strings.Split(s.Unit, sourceSeparator)
	if len(parts) == 1 {
		first, _ = r.convertBack(s.Unit, s.Type, s.Value)
		if r.Value == ValuePressure {
			second, _ = r.convertBack(s.Unit, s.Type, s.Value2)
		}
		return s.Unit, first, second
	}
	first, _ = strconv.ParseFloat(parts[1], 64)
	if len(parts) > 2 {
		second, _ = strconv.ParseFloat(parts[2], 64)
	}
	return parts[0], first, second
}

// appendSent appends the unit and the numbers that a source sent, if they differ from the stored ones.
func (r *Resource) appendSent(b []byte, s *series.Sample) []byte {
	unit, first, second := r.SentNumbers(s)
	if unit == "" {
		return b
	}
	b = append(b, `,"source_unit":`...)
	b = appendString(b, unit)
	if r.Value == ValuePressure {
		b = append(b, `,"source_systolic":`...)
		b = appendNumber(b, first)
		b = append(b, `,"source_diastolic":`...)
		return appendNumber(b, second)
	}
	b = append(b, `,"source_value":`...)
	return appendNumber(b, first)
}

// setSent sets the source's unit and numbers on a published sample.
func (r *Resource) setSent(out *Sample, s *series.Sample) {
	unit, first, second := r.SentNumbers(s)
	switch {
	case unit == "":
		return
	case r.Value == ValuePressure:
		out.SourceSystolic, out.SourceDiastolic = &first, &second
	default:
		out.SourceValue = &first
	}
	out.SourceUnit = &unit
}

// sourceUnitText returns the source's unit and numbers of a published sample in the form of [Resource.sourceUnit];
// empty if the sample has none.
func sourceUnitText(s *Sample) string {
	out := deref(s.SourceUnit)
	if out == "" {
		return ""
	}
	for _, n := range []*float64{s.SourceValue, s.SourceSystolic, s.SourceDiastolic} {
		if n != nil {
			out += sourceSeparator + strconv.FormatFloat(*n, 'g', -1, 64)
		}
	}
	return out
}
