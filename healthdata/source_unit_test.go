package healthdata

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// What a source sent in another unit can be read as it was sent, whatever the digits of its numbers, and
// costs nothing where it is the unit of the resource.
func TestSourceUnit_valueIsReadAsItWasSent(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ resource, kind, unit string }{
		{"weight", "", "lb"}, {"weight", "", "[stone_av]"}, {"glucose", "", "mg/dL"}, {"cholesterol", "cholesterol/ldl", "mg/dL"}, {"body_temperature", "", "°F"}, {"body_temperature", "", "K"}, {"body_temperature_delta", "", "°F"},
		{"distance", "", "mi"}, {"blood_oxygen", "", "fraction"}, {"calories_active", "", "kJ"}, {"blood_pressure", "", "kPa"}, {"hrv", "", "s"}, {"water", "", "fl_oz_us"},
	} {
		r := ResourceBySlug(c.resource)
		for i := range 500 {
			n := random.Float64() * 200
			if i%2 == 0 {
				n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'f', i%5, 64), 64)
			}
			stored, ok := r.Convert(n, c.unit, c.kind)
			require.True(t, ok)
			row := series.Sample{Value: stored, Value2: stored, End: series.NoEnd}
			row.Type = c.kind
			row.Unit = r.sourceUnit(c.unit, c.kind, []float64{n, n}, []float64{stored, stored})
			out := r.sample(&row)
			require.Equal(t, c.unit, *out.SourceUnit, c.resource)
			got := out.SourceValue
			if r.Value == ValuePressure {
				got = out.SourceSystolic
				require.Equal(t, *got, *out.SourceDiastolic)
			}
			require.Equal(t, n, *got, "%s in %s", c.resource, c.unit)

			var written, again Sample
			require.NoError(t, json.Unmarshal(r.appendSample(nil, &row), &written))
			require.Equal(t, out.SourceUnit, written.SourceUnit)
			require.Equal(t, out.SourceValue, written.SourceValue)
			require.NoError(t, json.Unmarshal(r.AppendSample(nil, &out), &again))
			require.Equal(t, written, again)
		}
	}
	for _, c := range []struct{ resource, unit string }{{"weight", "kg"}, {"weight", "KG"}, {"heartrate", "count/min"}, {"steps", "{steps}"}, {"body_temperature", "Cel"}} {
		r := ResourceBySlug(c.resource)
		require.Empty(t, r.sourceUnit(c.unit, "", []float64{0}, []float64{0}), c.unit)
	}
}

// Numbers with few digits cost the unit alone, once for all samples of a source.
func TestSourceUnit_isStoredOnceForAllSamplesOfASource(t *testing.T) {
	r := ResourceBySlug("weight")
	for i := range 3000 {
		n := float64(i) / 10
		stored, _ := r.Convert(n, "lb", "")
		require.Equal(t, "lb", r.sourceUnit("lb", "", []float64{n}, []float64{stored}))
	}
}
