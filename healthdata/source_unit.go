package healthdata

import (
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A sample whose source sent another unit than the resource's keeps that unit in [series.Attrs.Unit].
// What the source sent is the stored value turned back, at the fewest digits that give the stored value
// again; where that is another number, the numbers stand behind the unit.

// sourceSeparator stands between a unit and the numbers that a source sent.
const sourceSeparator = "\x1f"

// sourceUnit returns what keeps the unit and the numbers that a source sent; empty if its unit is the one of
// the resource. Stored has a value for each number.
func (r *Resource) sourceUnit(unit, sampleType string, sent, stored []float64) string {
	c, ok := r.conversion(unit, sampleType)
	if unit == r.Unit || !ok || c.Of(1) == 1 && c.Of(0) == 0 {
		return ""
	}
	out := unit
	for i := range sent {
		if back, ok := r.turnedBack(unit, sampleType, stored[i]); !ok || back != sent[i] {
			for _, n := range sent {
				out += sourceSeparator + strconv.FormatFloat(n, 'g', -1, 64)
			}
			return out
		}
	}
	return out
}

// turnedBack returns the number of a unit that gives a stored value, at the fewest digits from 6 on.
func (r *Resource) turnedBack(unit, sampleType string, stored float64) (float64, bool) {
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

// sent returns the unit and the numbers that a source sent for a stored sample; an empty unit if they are
// the stored ones.
func (r *Resource) sent(s *series.Sample) (unit string, first, second float64) {
	if s.Unit == "" {
		return "", 0, 0
	}
	parts := strings.Split(s.Unit, sourceSeparator)
	if len(parts) == 1 {
		first, _ = r.turnedBack(s.Unit, s.Type, s.Value)
		if r.Value == ValuePressure {
			second, _ = r.turnedBack(s.Unit, s.Type, s.Value2)
		}
		return s.Unit, first, second
	}
	first, _ = strconv.ParseFloat(parts[1], 64)
	if len(parts) > 2 {
		second, _ = strconv.ParseFloat(parts[2], 64)
	}
	return parts[0], first, second
}

// appendSent writes the unit and the numbers that a source sent, if they are not the stored ones.
func (r *Resource) appendSent(b []byte, s *series.Sample) []byte {
	unit, first, second := r.sent(s)
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

// setSent sets the fields of a published sample that say what a source sent.
func (r *Resource) setSent(out *Sample, s *series.Sample) {
	unit, first, second := r.sent(s)
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

// keptSource is what [Resource.sourceUnit] keeps for a published sample.
func keptSource(s *Sample) string {
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
