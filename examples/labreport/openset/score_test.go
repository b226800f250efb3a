package openset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/labreport/openset"
	"github.com/healthlab-dev/healthlab/labreport"
)

// resultsOf is what a reader publishes that reads a sheet without an error.
func resultsOf(s openset.Sheet) (d labreport.Data) {
	for _, w := range s.Rows {
		r := labreport.Result{TestName: w.Name, Value: w.Value, Evidence: labreport.Evidence{}}
		if w.Unit != "" {
			r.Units = &w.Unit
		}
		for _, field := range []string{"test_name", "value", "units"} {
			r.Evidence[field] = labreport.Reading{Confidence: 0.95}
		}
		d.Results = append(d.Results, r)
	}
	return d
}

// What a sheet says scores one; a lost point, a row too few and a row too many cost what they are.
func TestScore_countsMissingExtraAndWrongFields(t *testing.T) {
	for _, s := range openset.Sheets() {
		var c openset.Score
		require.Empty(t, c.Add(s, resultsOf(s)))
		require.Equal(t, 1.0, c.F1(), s.Layout)
		require.Zero(t, c.SureWrong)
		require.Equal(t, 3*len(s.Rows), c.Sure)

		wrong := resultsOf(s)
		wrong.Results[0].Value += "1"
		c = openset.Score{}
		require.Len(t, c.Add(s, wrong), 2, "a row that was not found, and a wrong field")
		require.Equal(t, 1, c.SureValuesWrong)

		c = openset.Score{}
		require.Len(t, c.Add(s, labreport.Data{Results: wrong.Results[1:]}), 1)
		require.Zero(t, c.SureWrong)
		require.Less(t, c.F1(), 1.0)
	}
}

func TestSheets_eachIsAPDF(t *testing.T) {
	require.NotEmpty(t, openset.Media())
	for _, s := range openset.Sheets() {
		require.Contains(t, string(s.PDF()[:8]), "%PDF-1.4")
	}
}
