package simulation

import (
	"math"

	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// markerValues has the data for simulated results of a marker. The reference intervals are those of adults;
// they are for simulations only.
type markerValues struct {
	unit string
	// low and high are the limits of the reference interval; zero for none.
	low, high float64
	// critical is the value from which a result is critical, inclusive. It is above the interval, or below low if high
	// is zero.
	critical float64
	// digits is the number of decimal places.
	digits int32
	// qualitative is true if the marker's results are DETECTED or NOT_DETECTED.
	qualitative bool
}

func markerOf(loinc, unit *string) (markerValues, bool) {
	m, ok := markerTable[rules.TextOf(loinc)]
	return m, ok && (m.qualitative || rules.TextOf(unit) == "" || rules.TextOf(unit) == m.unit)
}

func (m markerValues) types() []labresult.Type {
	if m.qualitative {
		return []labresult.Type{labresult.CodedValue}
	}
	return []labresult.Type{labresult.Numeric}
}

// result generates a numeric result with the interpretation reading and the marker's reference interval. An abnormal
// result lies outside of the interval by at least one unit of the last printed digit, and at most by half the interval,
// or by 35 % of the limit if only low is set. The same seed gives the same result.
func (m markerValues) result(reading labresult.Interpretation, seed uint64) labresult.Result {
	number := func(f float64) catalogue.Number {
		return catalogue.Number{Decimal: decimal.NewFromFloat(f).Round(m.digits)}
	}
	text := func(n catalogue.Number) string { return n.StringFixed(m.digits) }
	part := float64(seed%1000) / 1000 // from 0 to 1
	low, high := m.low, m.high
	span := high - low
	step := math.Pow10(-int(m.digits)) // the smallest difference that the printed digits show
	r := labresult.Result{Type: labresult.Numeric, Interpretation: reading, SourceInterpretation: "N"}
	above, below := false, false
	var value float64
	switch {
	case high == 0: // only a lower bound
		value = low * (1.1 + 0.8*part)
		switch reading {
		case labresult.Abnormal:
			value, below, r.SourceInterpretation = low-max(step, low*0.35*part), true, "L"
		case labresult.Critical:
			value, below, r.SourceInterpretation = m.critical*(0.6+0.4*part), true, "LL"
		default:
		}
	default:
		value = low + span*(0.15+0.7*part)
		switch reading {
		case labresult.Abnormal:
			value, above, r.SourceInterpretation = high+max(step, min(span, m.critical-high)*0.5*part), true, "H"
		case labresult.Critical:
			value, above, r.SourceInterpretation = m.critical*(1+0.1*part), true, "HH"
		default:
		}
	}
	if reading == labresult.UnknownInterpretation {
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
	if unit := m.unit; unit != "" {
		r.Unit = &unit
	}
	return r
}
