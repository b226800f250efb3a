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

// A word before the limit in a range column is no flag, and a limit under a word of a finding is not the reference range.
func TestRanges_limitOfAFindingIsNoReferenceRange(t *testing.T) {
	for _, word := range []string{"Critical", "Panic", "High", "Low", "Elevated", "Deficient", "Deficiency:", "Toxic", "Diabetes", "High risk", "Risk", "Kritisch", "Hoch", "Mangel", "Erhöht", "Crítico", "Alto", "Carence", "Élevé"} {
		for _, limit := range []string{"< 50", "> 6.5", ">= 240", "<20"} {
			for head, row := range map[string]string{
				"Test  Result  Units  Reference":       "Potassium  4.1  mmol/L  ",
				"Test  Result  Flag  Units  Reference": "Potassium  4.1    mmol/L  ",
			} {
				if strings.Contains(head, "Flag") {
					row = "Potassium  4.1  -  mmol/L  "
				}
				got := named(rowsOf(t, head+"\n"+row+word+" "+limit+"\n"), "Potassium")
				require.Len(t, got, 1, word+limit)
				require.Equal(t, word+" "+limit, *got[0].ReferenceRange)
				require.Nil(t, got[0].MinReferenceRange, word+limit)
				require.Nil(t, got[0].MaxReferenceRange, word+limit)
				require.Equal(t, labreport.Unclear, *got[0].Interpretation, word+limit)
			}
		}
		got := named(rowsOf(t, "Test  Result  Flag  Units  Reference\nPotassium  7.1  H  mmol/L  "+word+" > 6.5\n"), "Potassium")[0]
		require.Equal(t, labreport.Abnormal, *got.Interpretation, word)
	}
	for _, word := range []string{"Normal", "Normal:", "Desirable", "Desirable:", "Optimal", "Reference", "Ref:", "Referenz", "Norm", "Wünschenswert", "Óptimo", "Souhaitable"} {
		for value, want := range map[string]labreport.Interpretation{"4.1": labreport.Normal, "5.9": labreport.Abnormal} {
			got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nPotassium  "+value+"  mmol/L  "+word+" < 5.1\n"), "Potassium")[0]
			require.Equal(t, want, *got.Interpretation, word)
			require.Equal(t, "5.1", got.MaxReferenceRange.String(), word)
		}
	}
	for _, word := range []string{"Expected:", "Normal:", "Reference:", "Referenz:"} {
		for value, want := range map[string]labreport.Interpretation{"Non-reactive": labreport.Normal, "Reactive": labreport.Abnormal} {
			got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nHIV 1/2 Ab  "+value+"    "+word+" Non-reactive\nTSH  2.1  mIU/L  0.4 - 4.5\n"), "HIV 1/2 Ab")[0]
			require.Equal(t, want, *got.Interpretation, "%s %s", word, value)
		}
	}
	for _, reference := range []string{"Normal: < 5.7\n      Prediabetes: 5.7 - 6.4", "Deficient < 20\n      Insufficient 20 - 29\n      Sufficient 30 - 100"} {
		got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nHbA1c  5.9  %  "+reference+"\n"), "HbA1c")[0]
		require.NotEqual(t, labreport.Normal, *got.Interpretation, reference)
	}
}

// Letters and words of a value or a name are no flags.
func TestFlags_partOfAValueOrNameIsNoFlag(t *testing.T) {
	for _, group := range []string{"A", "B", "AB", "O"} {
		for _, factor := range []string{"positive", "pos", "negative", "neg", "Rh positive", "Rh negative"} {
			for _, flag := range []string{"", "Flag  "} {
				got := named(rowsOf(t, "Test  Result  "+flag+"Units  Reference\nSodium  139  mmol/L  136 - 145\nBlood group  "+group+" "+factor+"\nTSH  2.1  mIU/L  0.4 - 4.5\n"), "Blood group")
				require.Len(t, got, 1, group+factor)
				require.Equal(t, group+" "+factor, got[0].Value)
				require.Equal(t, labreport.Unclear, *got[0].Interpretation)
			}
		}
	}
	for _, group := range []string{"A positiv", "0 negativ", "AB positivo", "A negatif", "A Rh pos"} {
		require.Equal(t, group, named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nBlood group  "+group+"\nTSH  2.1  mIU/L  0.4 - 4.5\n"), "Blood group")[0].Value)
	}
	for _, row := range []string{"ANA  1:40    < 1:80", "ANA  1:40    <1:80", "CRP, high sens.  1.2  mg/L  < 3", "Creatinine  1.05a  mg/dL  0.60 - 1.29", "Chloride  100 c  mmol/L  98 - 110", "Potassium  4.1h  mmol/L  3.5 - 5.3"} {
		for _, head := range []string{"Test  Result  Units  Reference", "Test  Result  Units  Reference  Flag"} {
			got := rowsOf(t, head+"\nSodium  139  mmol/L  136 - 145\n"+row+"\nTSH  2.1  mIU/L  0.4 - 4.5\n")
			require.Len(t, got, 3, row)
			require.Equal(t, labreport.Normal, *got[1].Interpretation, row)
		}
	}
	glued := rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nChloride  100c  mmol/L  98 - 110\nTSH  2.1  mIU/L  0.4 - 4.5\n")[1]
	require.NotEqual(t, labreport.Critical, *glued.Interpretation)
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
