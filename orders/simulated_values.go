package orders

import (
	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// simulatedMarker is how a simulated laboratory reports a marker. The reference intervals are
// those of adults, as laboratories print them; they are for simulations only.
type simulatedMarker struct {
	unit string
	// low and high bound the reference interval; zero for no such bound.
	low, high float64
	// critical is the value from which a result is critical.
	critical float64
	// digits are the decimal places.
	digits int32
	// qualitative: the result is detected or not detected.
	qualitative bool
}

// simulatedMarkers are by LOINC code.
var simulatedMarkers = map[string]simulatedMarker{
	"2345-7":  {unit: "mg/dL", low: 70, high: 99, critical: 400},
	"4548-4":  {unit: "%", low: 4.0, high: 5.6, critical: 14, digits: 1},
	"2093-3":  {unit: "mg/dL", high: 200, critical: 500},
	"2085-9":  {unit: "mg/dL", low: 40, critical: 10},
	"13457-7": {unit: "mg/dL", high: 100, critical: 300},
	"2571-8":  {unit: "mg/dL", high: 150, critical: 1000},
	"3016-3":  {unit: "m[IU]/L", low: 0.40, high: 4.50, critical: 50, digits: 2},
	"3024-7":  {unit: "ng/dL", low: 0.8, high: 1.8, critical: 7, digits: 1},
	"2276-4":  {unit: "ng/mL", low: 30, high: 300, critical: 5000},
	"1989-3":  {unit: "ng/mL", low: 30, high: 100, critical: 150},
	"1988-5":  {unit: "mg/L", high: 8.0, critical: 200, digits: 1},
	"2160-0":  {unit: "mg/dL", low: 0.60, high: 1.30, critical: 7.5, digits: 2},
	"3094-0":  {unit: "mg/dL", low: 7, high: 25, critical: 100},
	"1742-6":  {unit: "U/L", low: 7, high: 56, critical: 1000},
	"1920-8":  {unit: "U/L", low: 8, high: 40, critical: 1000},
	"6768-6":  {unit: "U/L", low: 40, high: 129, critical: 1000},
	"1975-2":  {unit: "mg/dL", low: 0.2, high: 1.2, critical: 15, digits: 1},
	"1751-7":  {unit: "g/dL", low: 3.5, high: 5.0, critical: 7.0, digits: 1},
	"2885-2":  {unit: "g/dL", low: 6.0, high: 8.3, critical: 12.0, digits: 1},
	"2951-2":  {unit: "mmol/L", low: 136, high: 145, critical: 160},
	"2823-3":  {unit: "mmol/L", low: 3.5, high: 5.1, critical: 6.5, digits: 1},
	"2075-0":  {unit: "mmol/L", low: 98, high: 107, critical: 125},
	"2028-9":  {unit: "mmol/L", low: 22, high: 29, critical: 40},
	"17861-6": {unit: "mg/dL", low: 8.6, high: 10.3, critical: 13.0, digits: 1},
	"2498-4":  {unit: "ug/dL", low: 50, high: 180, critical: 500},
	"2132-9":  {unit: "pg/mL", low: 200, high: 1100, critical: 3000},
	"2986-8":  {unit: "ng/dL", low: 264, high: 916, critical: 2000},
	"718-7":   {unit: "g/dL", low: 12.0, high: 17.5, critical: 21.0, digits: 1},
	"4544-3":  {unit: "%", low: 36, high: 50, critical: 60},
	"789-8":   {unit: "10*6/uL", low: 4.0, high: 5.8, critical: 8.0, digits: 2},
	"6690-2":  {unit: "10*3/uL", low: 4.0, high: 11.0, critical: 50.0, digits: 1},
	"777-3":   {unit: "10*3/uL", low: 150, high: 400, critical: 1000},
	"787-2":   {unit: "fL", low: 80, high: 100, critical: 140},
	"785-6":   {unit: "pg", low: 27, high: 33, critical: 45},
	"94500-6": {qualitative: true},
	"21613-5": {qualitative: true},
	"24111-7": {qualitative: true},
	"75622-1": {qualitative: true},
	"5196-1":  {qualitative: true},
}

// simulatedOf returns how a marker is simulated; false for a marker that is not in the
// table, or is ordered in another unit.
func simulatedOf(loinc, unit *string) (simulatedMarker, bool) {
	m, ok := simulatedMarkers[textOf(loinc)]
	return m, ok && (m.qualitative || textOf(unit) == "" || textOf(unit) == m.unit)
}

// types are the result types of the marker where a simulation does not name any.
func (m simulatedMarker) types() []ResultType {
	if m.qualitative {
		return []ResultType{CodedValueResult}
	}
	return []ResultType{NumericResult}
}

// result makes up a numeric result with the reference interval of the marker. A seed gives
// the same result each time.
func (m simulatedMarker) result(reading Interpretation, seed uint64) LabResult {
	number := func(f float64) catalogue.Number {
		return catalogue.Number{Decimal: decimal.NewFromFloat(f).Round(m.digits)}
	}
	text := func(n catalogue.Number) string { return n.StringFixed(m.digits) }
	part := float64(seed%1000) / 1000 // from 0 to 1
	low, high := m.low, m.high
	span := high - low
	r := LabResult{Type: NumericResult, Interpretation: reading, SourceInterpretation: "N"}
	above, below := false, false
	var value float64
	switch {
	case high == 0: // only a lower bound
		value = low * (1.1 + 0.8*part)
		switch reading {
		case Abnormal:
			value, below, r.SourceInterpretation = low*(0.65+0.3*part), true, "L"
		case Critical:
			value, below, r.SourceInterpretation = m.critical*(0.6+0.4*part), true, "LL"
		default:
		}
	default:
		value = low + span*(0.15+0.7*part)
		switch reading {
		case Abnormal:
			value, above, r.SourceInterpretation = high+min(span, m.critical-high)*(0.1+0.4*part), true, "H"
		case Critical:
			value, above, r.SourceInterpretation = m.critical*(1+0.1*part), true, "HH"
		default:
		}
	}
	if reading == UnknownInterpretation {
		r.SourceInterpretation = ""
	}
	v := number(value)
	r.Value, r.Result = &v, text(v)
	least, most := number(low), number(high)
	var words string
	switch {
	case low == 0:
		words, r.MaxRangeValue, r.IsAboveMaxRange = "<"+text(most), &most, &above
	case high == 0:
		words, r.MinRangeValue, r.IsBelowMinRange = ">="+text(least), &least, &below
	default:
		words = text(least) + "-" + text(most)
		r.MinRangeValue, r.MaxRangeValue, r.IsAboveMaxRange, r.IsBelowMinRange = &least, &most, &above, &below
	}
	r.ReferenceRange = &words
	unit := m.unit
	r.Unit = &unit
	return r
}
