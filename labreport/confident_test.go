package labreport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

func fieldIsSure(r labreport.Result, field string) bool { return r.Evidence[field].Confidence >= 0.9 }

// named returns the results of a name.
func named(all []labreport.Result, name string) (out []labreport.Result) {
	for _, r := range all {
		if r.TestName == name {
			out = append(out, r)
		}
	}
	return out
}

const ofBlood = "Comprehensive Metabolic Panel\nTest  Result  Units  Reference\nGlucose  95  mg/dL  70 - 99\nCreatinine  0.9  mg/dL  0.6 - 1.2\nCalcium  9.1  mg/dL  8.6 - 10.3\n"

// A section below a panel of blood is not of blood only because its heading is of chemistry.
func TestSpecimen_sectionBelowABloodPanelIsNotAssumedBlood(t *testing.T) {
	for _, heading := range []string{"Random spot chemistry", "Timed collection", "Chemistry, spot sample", "Additional tests", "Tap"} {
		t.Run(heading, func(t *testing.T) {
			all := rowsOf(t, ofBlood+heading+"\nCreatinine  120  mg/dL  20 - 320\nSodium  60  mmol/L  \nProtein  45  mg/dL  5 - 24\n")
			require.Equal(t, labreport.AutoMatch, *named(all, "Calcium")[0].LoincMatchStatus)
			require.NotEqual(t, labreport.AutoMatch, *named(all, "Creatinine")[1].LoincMatchStatus)
			require.NotEqual(t, labreport.AutoMatch, *named(all, "Sodium")[0].LoincMatchStatus)
		})
	}
}

// One code twice with two ranges: one of the two is of something else.
func TestLOINC_oneCodeWithTwoRangesNeedsReview(t *testing.T) {
	all := rowsOf(t, ofBlood+"Creatinine  120  mg/dL  20 - 320\n")
	require.Len(t, named(all, "Creatinine"), 2)
	for _, r := range named(all, "Creatinine") {
		require.Equal(t, labreport.NeedsReview, *r.LoincMatchStatus)
	}
	all = rowsOf(t, ofBlood+"Creatinine  1.1  mg/dL  0.6 - 1.2\n")
	require.Equal(t, labreport.AutoMatch, *named(all, "Creatinine")[0].LoincMatchStatus)
}

// The current result is under the newest date.
func TestRows_resultUnderTheNewestDateIsCurrent(t *testing.T) {
	const rows = "Glucose  88  95  mg/dL  70 - 99\nCreatinine  1.4  0.9  mg/dL  0.6 - 1.2\nCalcium  9.9  9.1  mg/dL  8.6 - 10.3\n"
	for _, dates := range []string{"01/02/2025  03/04/2026", "2025-02-01  2026-04-03", "01 Feb 2025  03 Apr 2026"} {
		all := rowsOf(t, "Test  "+dates+"  Units  Reference\n"+rows)
		require.Equal(t, "95", named(all, "Glucose")[0].Value, dates)
		require.True(t, fieldIsSure(named(all, "Glucose")[0], "value"), dates)
	}
	// Neither order of day and month is ruled out, and they disagree.
	all := rowsOf(t, "Test  01/03/2026  03/01/2026  Units  Reference\n"+rows)
	require.False(t, fieldIsSure(named(all, "Glucose")[0], "value"))
}

// A row with two values or two units: which unit belongs to which value is not sure.
func TestRows_twoValuesOrUnitsInARowHaveLowConfidence(t *testing.T) {
	for name, text := range map[string]string{
		"two systems of units":    "Test  Conventional  Unit  SI  Unit\nGlucose  95  mg/dL  5.3  mmol/L\nCreatinine  0.9  mg/dL  80  umol/L\nCalcium  9.1  mg/dL  2.27  mmol/L\n",
		"another decimal mark":    "Test  Result  Units  Reference\nCreatinine  0,9  mg/dL  0.6 - 1.2\nCalcium  9,1  mg/dL  8.6 - 10.3\nMagnesium  2.1  mg/dL  1.5 - 2.5\nPotassium  4.1  mmol/L  3.5 - 5.1\nChloride  101.0  mmol/L  98.0 - 110.0\n",
		"older without a heading": "Test  Result  Units  Reference\nCreatinine  0.9 1.4  mg/dL  0.6 - 1.2\nCalcium  9.1 9.9  mg/dL  8.6 - 10.3\nGlucose  95 88  mg/dL  70 - 99\n",
	} {
		t.Run(name, func(t *testing.T) {
			right := map[string]string{"Creatinine": "0.9", "Calcium": "9.1", "Glucose": "95"}
			for _, r := range rowsOf(t, text) {
				wrong := right[r.TestName] != "" && r.Value != right[r.TestName]
				require.False(t, wrong && fieldIsSure(r, "value"), "%s = %s", r.TestName, r.Value)
				require.False(t, right[r.TestName] != "" && r.Units != nil && *r.Units != "mg/dL" && fieldIsSure(r, "units") && !wrong, "%s %s", r.TestName, *r.Units)
			}
		})
	}
}

// Lines that look like results and are none are at least not sure.
func TestRows_linesThatResembleResultsHaveLowConfidence(t *testing.T) {
	const rows = "CRP  <0.5  mg/L  < 5\nTSH  2.1  mIU/L  0.4 - 4.5\nFerritin  40  ng/mL  38 - 380\n"
	for _, line := range []string{"Measuring range  0.01 - 100  mIU/L", "Measuring range  0.01  mIU/L", "Sensitivity  0.5  ng/mL", "Volume  1500  mL", "Blood pressure  120/80  mmHg",
		"Nachweisgrenze  0.5  mg/L", "Vitamin D  1000  IU  daily", "Interference index  12  mg/dL  < 50"} {
		t.Run(line, func(t *testing.T) {
			for _, r := range rowsOf(t, "Test  Result  Units  Reference\n"+rows+line+"\n") {
				if r.TestName == "CRP" || r.TestName == "TSH" || r.TestName == "Ferritin" {
					continue
				}
				for _, field := range []string{"value", "units", "reference_range"} {
					require.False(t, fieldIsSure(r, field), "%s: %s", r.TestName, field)
				}
			}
		})
	}
}

// Only a heading over rows is a panel: not the laboratory's name above the patient, and not a
// range.
func TestPanels_onlyAHeadingAboveRowsIsAPanel(t *testing.T) {
	all := rowsOf(t, "Test  Result  Units  Reference\nFerritin  40  ng/mL  Men: 30 - 400\n      Women: 13 - 150\nTSH  2.1  mIU/L  1st trimester 0.1 - 2.5\n      2nd trimester 0.2 - 3.0\nEstradiol  120  pg/mL  12 - 166\n")
	require.Len(t, all, 3)
	for _, r := range all {
		require.Nil(t, r.SourcePanelName, r.TestName)
	}
	require.Nil(t, named(all, "Ferritin")[0].MinReferenceRange, "a range by sex has no bounds")
}

// Thousands are grouped by spaces in French.
func TestNumbers_spacesMayGroupThousands(t *testing.T) {
	all := rowsOf(t, "Analyse  Résultat  Unités  Valeurs de référence\nHémoglobine  13,2  g/dL  12,0 - 16,0\nLeucocytes  6 500  /mm3  4 000 - 10 000\nPlaquettes  250 000  /mm3  150 000 - 400 000\n")
	got := named(all, "Leucocytes")[0]
	require.Equal(t, "6500", got.Value)
	require.Equal(t, "4000", got.MinReferenceRange.String())
	require.Equal(t, "10000", got.MaxReferenceRange.String())
	require.Equal(t, labreport.Normal, *got.Interpretation)
}

// A number that means two things in a report that writes decimals both ways is not sure.
func TestNumbers_ambiguousDecimalMarkHasLowConfidence(t *testing.T) {
	all := rowsOf(t, "Test  Result  Units  Reference\nCalcium  9.1  mg/dL  8.6 - 10.3\nSodium  140.0  mmol/L  136.0 - 145.0\nPotassium  4,1  mmol/L  3.5 - 5.1\nFerritin  1.250  ng/mL  30 - 400\n")
	require.False(t, fieldIsSure(named(all, "Ferritin")[0], "value"))
}

// No term of blood is a candidate for any other specimen, whatever the analyte and the unit, and
// no term of one fluid for another.
func TestLOINC_neverMatchesACodeOfAnotherSpecimen(t *testing.T) {
	names := map[loinc.Specimen][]string{
		"cerebrospinal_fluid": {"CSF", "Liquor", "Cerebrospinal Fluid", "LCR"}, "pleural_fluid": {"Pleural Fluid", "Pleurapunktat"}, "peritoneal_fluid": {"Ascites", "Peritoneal fluid", "Ascitic Fluid"},
		"pericardial_fluid": {"Pericardial fluid"}, "synovial_fluid": {"Synovial fluid", "Gelenkpunktat", "Joint fluid"}, "amniotic_fluid": {"Amniotic fluid", "Fruchtwasser"},
		"bile": {"Bile fluid"}, "dialysate": {"Dialysate"}, "semen": {"Semen", "Ejakulat"}, "sweat": {"Sweat", "Sudor"}, loinc.OtherSpecimen: {"Body fluid", "Drain fluid", "Sputum"},
		loinc.Urine: {"Urine", "Urin", "Orina", "Urines"}, loinc.Stool: {"Stool", "Stuhl", "Heces"}, loinc.Saliva: {"Saliva", "Speichel"}, loinc.Blood: {"Serum", "Blood", "Plasma"},
	}
	reader, table := labreport.NewReader(nil), loinc.Embedded()
	rows, matched := 0, 0
	for k, term := range table.All() {
		if k%20 >= prove.Count(1, 20) || len(term.Names) == 0 {
			continue
		}
		for specimen, headings := range names {
			for _, heading := range headings {
				row := labreport.RawRow{Name: term.Names[0], Value: "12", Panel: heading}
				if len(term.Units) > 0 {
					row.Unit = term.Units[0]
				}
				if loinc.NamedSpecimen(row.Name) != loinc.NoSpecimen {
					continue // the row decides
				}
				rows++
				for _, m := range reader.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0].LoincMatches {
					matched++
					got, err := table.Term(m.LoincCode)
					require.NoError(t, err)
					require.True(t, specimen.Compatible(got.Specimen()), "%s under %s: %s", row.Name, heading, got.Name)
				}
			}
		}
	}
	require.Greater(t, rows, prove.Count(500, 10_000))
	require.Greater(t, matched, prove.Count(50, 1000))
}
