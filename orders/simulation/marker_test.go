package simulation_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// A simulated value is inside, outside or far outside of its marker's reference interval, as
// the requested interpretation says.
func TestSimulation_valuesFitTheMarkersReferenceRange(t *testing.T) {
	for _, tc := range []struct{ loinc, unit, span string }{
		{"4544-3", "%", "36-50"}, {"2951-2", "mmol/L", "136-145"}, {"2085-9", "mg/dL", ">=40"}, {"2093-3", "mg/dL", "<200"}, {"3016-3", "m[IU]/L", "0.40-4.50"},
		{"1968-7", "mg/dL", "<0.30"}, {"10839-9", "ng/mL", "<0.040"}, {"33914-3", "mL/min/{1.73_m2}", ">=60"}, {"2744-1", "[pH]", "7.35-7.45"}, {"30180-4", "%", "<1.0"},
	} {
		marker := catalogue.Marker{ID: 1, Name: tc.loinc, Unit: &tc.unit}
		expected := map[int][]catalogue.ExpectedResult{1: {{Name: tc.loinc, LOINC: &catalogue.LOINC{Code: tc.loinc, Unit: &tc.unit}}}}
		for i := range 200 {
			o := orders.Order{ID: orders.OrderID{UUID: uuid.NewSHA1(uuid.Nil, []byte{byte(i)})}, LabTest: catalogue.LabTest{Markers: []catalogue.Marker{marker}}}
			for _, reading := range []labresult.Interpretation{labresult.Normal, labresult.Abnormal, labresult.Critical} {
				r := simulation.Results(&o, expected, orders.SimulationFlags{Interpretation: reading}, orders.FinalResult, noon).Results[0]
				require.Equal(t, tc.span, *r.ReferenceRange)
				require.Equal(t, tc.unit, *r.Unit)
				above := r.MaxRangeValue != nil && r.Value.GreaterThan(r.MaxRangeValue.Decimal)
				below := r.MinRangeValue != nil && r.Value.LessThan(r.MinRangeValue.Decimal)
				require.Equal(t, reading != labresult.Normal, above || below, "%s is %s: %s", tc.loinc, reading, r.Result)
				require.Equal(t, above, r.IsAboveMaxRange != nil && *r.IsAboveMaxRange)
				require.Equal(t, below, r.IsBelowMinRange != nil && *r.IsBelowMinRange)
			}
		}
	}
	o := orders.Order{LabTest: catalogue.LabTest{Markers: []catalogue.Marker{{ID: 1}}}}
	expected := map[int][]catalogue.ExpectedResult{1: {{LOINC: &catalogue.LOINC{Code: "94500-6"}}}}
	r := simulation.Results(&o, expected, orders.SimulationFlags{}, orders.FinalResult, noon).Results[0]
	require.Equal(t, labresult.CodedValue, r.Type)
	require.Equal(t, "NOT_DETECTED", r.Result)
}
