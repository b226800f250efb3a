package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// What a source sent in another unit can be read beside the value in the resource's.
func TestSourceUnit_isReadBesideTheConvertedValue(t *testing.T) {
	fixture := newFixture(t, nil)
	for resource, c := range map[string]struct{ item, want string }{
		"weight":         {`"unit":"LB","value":154.3`, `"source_unit":"LB","source_value":154.3`},
		"glucose":        {`"unit":"mg/dL","value":101`, `"source_unit":"mg/dL","source_value":101`},
		"blood_pressure": {`"unit":"kPa","systolic":16.1,"diastolic":10.7`, `"source_unit":"kPa","source_systolic":16.1,"source_diastolic":10.7`},
	} {
		path := healthdata.ResourceBySlug(resource).Path
		fixture.post(fixture.timeseries(path), upload(`{"timestamp":"2026-03-01T07:00:00Z",`+c.item+`}`), 200)
		reply := fixture.get(fixture.timeseries(path+"/grouped"+year), 200)
		require.Contains(t, string(reply.Body), c.want)
	}
	fixture.post(fixture.timeseries("heartrate"), upload(`{"timestamp":"2026-03-01T07:00:00Z","unit":"count/min","value":60}`), 200)
	require.NotContains(t, string(fixture.get(fixture.timeseries("heartrate/grouped"+year), 200).Body), "source_unit")
}
