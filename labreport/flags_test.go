package labreport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

// A printed mark keeps its strength, in a cell of its own and glued to the value.
func TestFlags_singleMarkIsAbnormalAndDoubleMarkCritical(t *testing.T) {
	for mark, want := range map[string]labreport.Interpretation{
		"H": labreport.Abnormal, "L": labreport.Abnormal, "*": labreport.Abnormal, "+": labreport.Abnormal, "↑": labreport.Abnormal, "▼": labreport.Abnormal, "!": labreport.Abnormal,
		"HH": labreport.Critical, "LL": labreport.Critical, "++": labreport.Critical, "--": labreport.Critical, "+++": labreport.Critical, "↑↑": labreport.Critical, "↓↓": labreport.Critical, "**": labreport.Abnormal,
	} {
		for _, form := range []string{"%s  %s", "%s%s"} {
			if form == "%s%s" && mark == "+" {
				continue // a grade
			}
			t.Run(fmt.Sprintf(form, "n", mark), func(t *testing.T) {
				text := "Test  Result  Flag  Units  Reference\nSodium  139  -  mmol/L  136 - 145\nPotassium  " + fmt.Sprintf(form, "6.9", mark) + "  mmol/L  3.5 - 5.1\nTSH  2.1    mIU/L  0.4 - 4.5\n"
				all := rowsOf(t, text)
				got := named(all, "Potassium")[0]
				require.Equal(t, "6.9", got.Value)
				require.Equal(t, want, *got.Interpretation)
				require.Equal(t, labreport.Normal, *named(all, "Sodium")[0].Interpretation, "a dash is no flag")
			})
		}
	}
}

// A dash is no flag, wherever it stands and whatever the range is.
func TestFlags_dashIsNoFlagInAnyColumn(t *testing.T) {
	for _, dash := range []string{"-", "–", "—", "(-)"} {
		require.Equal(t, labreport.Unclear, labreport.Interpret(labreport.Numeric, "5", dash, "", labreport.Bounds{}), dash)
		all := rowsOf(t, "Test  Result  Flag  Units\nSodium  139  "+dash+"  mmol/L\nPotassium  4.1  "+dash+"  mmol/L\nTSH  2.1  "+dash+"  mIU/L\n")
		require.Len(t, all, 3)
		for _, r := range all {
			require.Equal(t, labreport.Unclear, *r.Interpretation, "%s %s", dash, r.TestName)
		}
	}
}

// Litres per litre are a unit, beside a flag and glued to the value too.
func TestUnits_litresPerLitreIsAUnitBesideAFlag(t *testing.T) {
	for text, want := range map[string]labreport.Interpretation{
		"0.42  L/L": labreport.Normal, "0.42 L/L": labreport.Normal, "0.42L/L": labreport.Normal, "0.42  l/l": labreport.Normal,
		"0.31 L  L/L": labreport.Abnormal, "0.31  L L/L": labreport.Abnormal, "0.31  L/L  L": labreport.Abnormal,
	} {
		t.Run(text, func(t *testing.T) {
			got := named(rowsOf(t, "Test  Result  Units  Reference\nTSH  2.1  mIU/L  0.4 - 4.5\nHematocrit  "+text+"  0.37 - 0.47\nSodium  139  mmol/L  136 - 145\n"), "Hematocrit")
			require.Len(t, got, 1)
			require.NotNil(t, got[0].Units)
			require.Equal(t, "l/l", strings.ToLower(*got[0].Units))
			require.Equal(t, want, *got[0].Interpretation)
		})
	}
}

// A flag is computed where the value, the unit and the range were each read with 0.9 or more.
func TestFlags_areComputedOnlyFromFieldsOfHighConfidence(t *testing.T) {
	reader := labreport.NewReader(nil)
	fields := []string{"value", "units", "reference_range"}
	for _, field := range append(fields, "") {
		for _, printed := range []string{"", "H", "HH"} {
			for _, confidence := range []float64{0.3, 0.89, 0.9, 0.99} {
				e := labreport.Evidence{}
				for _, f := range fields {
					e[f] = labreport.Reading{Page: 1, Confidence: 0.95}
				}
				if field != "" {
					e[field] = labreport.Reading{Page: 1, Confidence: confidence}
				}
				got := reader.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: "Potassium", Value: "6.9", Unit: "mmol/L", Range: "3.5 - 5.1", Flag: printed, Evidence: e}}}).Results[0]
				want := map[string]labreport.Interpretation{"": labreport.Unclear, "H": labreport.Abnormal, "HH": labreport.Critical}[printed]
				if field == "" || confidence >= 0.9 {
					require.NotNil(t, got.IsAboveMaxRange)
					require.True(t, *got.IsAboveMaxRange)
					if printed == "" {
						want = labreport.Abnormal
					}
				} else {
					require.Nil(t, got.IsAboveMaxRange, "%s %v", field, confidence)
					require.Nil(t, got.IsBelowMinRange, "%s %v", field, confidence)
				}
				require.Equal(t, want, *got.Interpretation, "%s %v %s", field, confidence, printed)
			}
		}
	}
}

// Two rows with unit and range are a report without a letterhead; other lines of that kind
// keep a document from being one.
func TestRead_twoRowsWithUnitAndRangeAreAReport(t *testing.T) {
	reader := labreport.NewReader(nil)
	for text, rows := range map[string]int{
		"Sodium  139  mmol/L  136 - 145\nPotassium  4.1  mmol/L  3.5 - 5.1\n":                         2,
		"Test  Result  Units  Reference\nTSH  2.1  mIU/L  0.4 - 4.5\nFerritin  40  ng/mL  15 - 150\n": 2,
		"Glucose: 95 mg/dL (70 - 99)\nCreatinine: 0.9 mg/dL (0.6 - 1.2)\n":                            2,
		"Sodium  139  mmol/L  136 - 145\n":                                                            0,
		"Iron  14  mg\nVitamin C  80  mg\n":                                                           0,
		"Invoice\nSodium  139  mmol/L  136 - 145\nPotassium  4.1  mmol/L  3.5 - 5.1\n":                0,
		"Drinking water analysis\nSodium  39  mg/L  0 - 200\nChloride  41  mg/L  0 - 250\n":           0,
	} {
		d, reason := reader.Read(printed(text))
		require.Len(t, d.Results, rows, text)
		require.Equal(t, rows == 0, reason == labreport.InvalidInput, text)
	}
}
