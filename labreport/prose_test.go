package labreport_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// sentences are remarks of reports in four languages; the analyte, the number and the unit are filled in.
var sentences = map[string][]string{
	"en": {
		"%[1]s below %[2]s %[3]s is consistent with the absence of disease.", "A %[1]s of %[2]s %[3]s or higher suggests disease.", "%[1]s of %[2]s %[3]s or less is optimal for most patients.",
		"%[1]s %[2]s %[3]s may indicate a deficiency.", "The patient's %[1]s %[2]s %[3]s was normal at the last visit.", "%[1]s %[2]s %[3]s was measured on a second instrument.",
		"Patients with %[1]s %[2]s %[3]s should avoid alcohol.", "Repeat testing of %[1]s %[2]s %[3]s recommended in 3 months.", "%[1]s %[2]s %[3]s target for therapy.", "Target %[1]s: %[2]s %[3]s.",
		"Note: %[1]s %[2]s %[3]s is regarded as sufficient by most societies.", "%[1]s %[2]s %[3]s or more are adequate for surgery.", "%[1]s was %[2]s %[3]s, down from a higher value.",
		"Your %[1]s is %[2]s %[3]s today.",
	},
	"de": {
		"Ein %[1]s von %[2]s %[3]s oder mehr spricht für eine Erkrankung.", "Der %[1]s %[2]s %[3]s kann auf einen Mangel hinweisen.", "%[1]s unter %[2]s %[3]s gilt bei Erwachsenen als normal.",
		"Ein %[1]s über %[2]s %[3]s sollte kontrolliert werden.",
	},
	"es": {"Una %[1]s de %[2]s %[3]s o mayor sugiere enfermedad.", "La %[1]s %[2]s %[3]s puede indicar una deficiencia.", "La %[1]s de %[2]s %[3]s es normal en adultos."},
	"fr": {"Un taux de %[1]s de %[2]s %[3]s peut indiquer une carence.", "Une %[1]s de %[2]s %[3]s est normale.", "La %[1]s %[2]s %[3]s doit être contrôlée."},
}

// No row comes out of a sentence, in a table and below one, whatever the analyte is.
func TestRead_sentencesMakeNoRows(t *testing.T) {
	const rows = "Test  Result  Units  Reference\nGlucose  95  mg/dL  70 - 99\nCreatinine  0.9  mg/dL  0.6 - 1.2\nCalcium  9.1  mg/dL  8.6 - 10.3\n"
	random := rand.New(rand.NewPCG(7, 3))
	terms := loinc.Embedded().All()[:120]
	lines := 0
	for _, language := range slices.Sorted(maps.Keys(sentences)) {
		for _, form := range sentences[language] {
			for range prove.Count(3, 120) {
				term := terms[random.IntN(len(terms))]
				if len(term.Names) == 0 || len(term.Units) == 0 {
					continue
				}
				line := fmt.Sprintf(form, term.Names[0], fmt.Sprint(1+random.IntN(200)), term.Units[0])
				lines++
				all := rowsOf(t, rows+line+"\n")
				require.Len(t, all, 3, "%s: %s", language, line)
			}
		}
	}
	t.Logf("%d sentences", lines)
	for _, name := range []string{"Thyroxine (T4)", "ALT (SGPT)", "Folate (Folic Acid), Serum", "Thyroxine"} {
		for _, label := range []string{"Target", "Goal"} {
			require.Len(t, rowsOf(t, rows+label+" "+name+": 16 ug/dL.\n"), 3, label+" "+name)
		}
	}
}

// Remarks below a table that compare an analyte with a limit are no results.
func TestRead_remarksAboutLimitsMakeNoRows(t *testing.T) {
	const rows = "Test  Result  Units  Reference\nGlucose  95  mg/dL  70 - 99\nFerritin  50  ng/mL  30 - 400\nCalcium  9.1  mg/dL  8.6 - 10.3\n"
	labels := []string{
		"Critical values:", "Critical value:", "Critical:", "Critical values", "Panic values:", "Alert value:", "Normal values:", "Critical limits:", "Diabetes:", "Iron deficiency:", "Anemia:", "Treatment goal:",
		"Interference:", "Call if", "Not valid if", "Kritische Werte:", "Alarmwert:", "Normalwerte:", "Valores críticos:", "Valores normales:", "Valeurs critiques :", "Valeurs normales :", "Diabète :",
	}
	limits := []string{"Potassium > 6.5 mmol/L", "Potassium >6.5 mmol/L", "Hemoglobin < 7.0 g/dL", "HbA1c >= 6.5 %", "Cholesterol ≤ 200 mg/dL", "Sodium < 120 mmol/L"}
	for i, label := range labels {
		for k := range prove.Count(2, len(limits)) {
			line := label + " " + limits[(i+k)%len(limits)] + "\n"
			require.Len(t, rowsOf(t, rows+strings.Repeat("\n", 4*k)+line), 3, line)
		}
	}
	for _, row := range []string{"CRP  < 5  mg/L  < 5", "CRP  < 5  mg/L", "CRP < 5 mg/L", "CRP: < 5 mg/L", "Serum: CRP < 5 mg/L", "CRP  <5 mg/L", "Test: CRP < 5 mg/L", "H CRP > 5 mg/L"} {
		require.Len(t, rowsOf(t, rows+row+"\n"), 4, row)
	}
	for _, r := range rowsOf(t, rows+"Potassium > 6.5 mmol/L\nAlbumin < 3 g/dL\n") {
		require.NotContains(t, r.TestName, ">")
		require.NotContains(t, r.TestName, "<")
	}
}

// A name over two or three lines is one name, whether the row stands in its first line or in its last.
func TestRows_nameOverSeveralLinesIsOneName(t *testing.T) {
	const rows = "Test  Result  Units  Reference\nGlucose  95  mg/dL  70 - 99\nCreatinine  0.9  mg/dL  0.6 - 1.2\nCalcium  9.1  mg/dL  8.6 - 10.3\n"
	for lines, want := range map[string][]string{
		"Hemoglobin A1c  5.4  %  4.0 - 5.6\n(HPLC)":                                                                      {"Hemoglobin A1c (HPLC)"},
		"Vitamin D,\n25-Hydroxy  32  ng/mL  30 - 100":                                                                    {"Vitamin D, 25-Hydroxy"},
		"Thyroid Stimulating\nHormone (TSH)  2.1  mIU/L  0.4 - 4.5":                                                      {"Thyroid Stimulating Hormone (TSH)"},
		"Alanine Aminotransferase  22  U/L  7 - 56\n(ALT/SGPT)":                                                          {"Alanine Aminotransferase (ALT/SGPT)"},
		"Iron Binding\nCapacity, Total  310  ug/dL  250 - 450":                                                           {"Iron Binding Capacity, Total"},
		"Total Iron Binding  310  ug/dL  250 - 450\nCapacity":                                                            {"Total Iron Binding Capacity"},
		"Microalbumin/Creatinine  12  mg/g  < 30\nRatio, Urine":                                                          {"Microalbumin/Creatinine Ratio, Urine"},
		"Low Density\nLipoprotein\nCholesterol  99  mg/dL  < 100":                                                        {"Low Density Lipoprotein Cholesterol"},
		"Thyreoidea-stimulierendes\nHormon  2.1  mIU/l  0.4 - 4.5":                                                       {"Thyreoidea-stimulierendes Hormon"},
		"Estimated Glomerular\nFiltration Rate  92  mL/min/1.73m2  > 60":                                                 {"Estimated Glomerular Filtration Rate"},
		"Parathyroid Hormone,\nIntact  41  pg/mL  10 - 65\nMagnesium  2.1  mg/dL  1.6 - 2.6":                             {"Parathyroid Hormone, Intact", "Magnesium"},
		"Testosterone,\nFree  8.1  pg/mL  5.0 - 21.0\nTestosterone,\nTotal  450  ng/dL  291 - 1100":                      {"Testosterone, Free", "Testosterone, Total"},
		"Magnesium  2.1  mg/dL  1.6 - 2.6\nLow Density\nLipoprotein  99  mg/dL  < 100\nHDL Cholesterol  55  mg/dL  > 40": {"Magnesium", "Low Density Lipoprotein", "HDL Cholesterol"},
		"Bilirubin\nTotal  0.7  mg/dL  0.2 - 1.2\nDirect  0.2  mg/dL  0.0 - 0.3":                                         {"Total", "Direct"},
		"Lipid Panel\nCholesterol  180  mg/dL  < 200\nHDL Cholesterol  55  mg/dL  > 40":                                  {"Cholesterol", "HDL Cholesterol"},
		"Bilirubin, Total\nResult  0.9  mg/dL\nReference  0.1 - 1.2":                                                     {"Bilirubin, Total"},
		"Protein\nCreatinine Clearance  92  mL/min  80 - 120":                                                            {"Creatinine Clearance"},
	} {
		var got []string
		for _, r := range rowsOf(t, rows+lines+"\n")[3:] {
			got = append(got, r.TestName)
		}
		require.Equal(t, want, got, lines)
	}
	free := named(rowsOf(t, rows+"Testosterone,\nFree  8.1  pg/mL  5.0 - 21.0\n"), "Testosterone, Free")[0]
	require.Equal(t, "2991-8", free.LoincMatches[0].LoincCode)
	low := named(rowsOf(t, rows+"Low Density\nLipoprotein\nCholesterol  99  mg/dL  < 100\n"), "Low Density Lipoprotein Cholesterol")[0]
	require.Contains(t, low.LoincMatches[0].LoincName, "in LDL")
	require.NotEqual(t, labreport.NoMatch, *low.LoincMatchStatus)
}
