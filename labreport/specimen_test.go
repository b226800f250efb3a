package labreport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

// A row of another fluid gets no code of blood, whether its name or its panel says so.
func TestFluidsHaveNoCodesOfBlood(t *testing.T) {
	r := labreport.NewReader(nil)
	blood := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: "Glucose", Value: "95", Unit: "mg/dL", Panel: "Serum chemistry", Specimen: labreport.Blood}}})
	require.Equal(t, "2345-7", blood.Results[0].LoincMatches[0].LoincCode)
	codes := map[string]bool{}
	for _, m := range blood.Results[0].LoincMatches {
		codes[m.LoincCode] = true
	}
	for _, row := range []labreport.RawRow{
		{Name: "Glucose, CSF"}, {Name: "CSF Glucose"}, {Name: "Glucose (Liquor)"}, {Name: "Glucosa LCR"},
		{Name: "Glucose, pleural fluid"}, {Name: "Glucose, ascites"}, {Name: "Synovial fluid glucose"}, {Name: "Amniotic fluid glucose"},
		{Name: "Glucose, dialysate"}, {Name: "Glucose", Specimen: labreport.OtherSpecimen},
	} {
		row.Value, row.Unit = "31", "mg/dL"
		got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0]
		for _, m := range got.LoincMatches {
			require.False(t, codes[m.LoincCode], "%s: %s", row.Name, m.LoincName)
		}
		require.NotEqual(t, labreport.AutoMatch, *got.LoincMatchStatus, row.Name)
		require.Equal(t, labreport.OtherSpecimen, got.SampleType, row.Name)
	}
}

// Per high-power field is not per volume.
func TestCellsPerFieldAreNotPerVolume(t *testing.T) {
	r := labreport.NewReader(nil)
	got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: "WBC", Value: "3", Unit: "/HPF", Specimen: labreport.Urine}}}).Results[0]
	for _, m := range got.LoincMatches {
		require.NotContains(t, m.LoincName, "#/volume")
	}
}
