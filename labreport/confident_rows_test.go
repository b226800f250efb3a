package labreport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

const tableHead = "Test  Result  Units  Reference\n"

// A heading that joins two specimens decides none of its rows.
func TestSpecimen_headingWithTwoSpecimensSetsNone(t *testing.T) {
	for _, heading := range []string{"Renal Panel and Urine", "Serum and CSF", "Blutbild und Urin", "Suero y orina", "Serum / urine chemistry"} {
		t.Run(heading, func(t *testing.T) {
			all := rowsOf(t, heading+"\n"+tableHead+"Creatinine  0.9  mg/dL  0.6 - 1.2\nGlucose  95  mg/dL  70 - 99\nSodium (U)  60  mmol/L  20 - 200\n")
			for _, name := range []string{"Creatinine", "Glucose"} {
				r := named(all, name)[0]
				require.Equal(t, loinc.NoSpecimen, r.SampleType, name)
				require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus, name)
			}
			require.Equal(t, loinc.Urine, named(all, "Sodium (U)")[0].SampleType)
		})
	}
}

// A line that says where a specimen was taken keeps the specimen of the heading over it.
func TestSpecimen_lineWithABodySiteDoesNotChangeTheSpecimen(t *testing.T) {
	for _, text := range []string{"Body fluid analysis\nSource: Left knee\n", "Pleural fluid\nRight side\n", "Breast milk\n", "Gastric aspirate\n", "Muttermilch\n"} {
		t.Run(text, func(t *testing.T) {
			for _, r := range rowsOf(t, text+tableHead+"WBC  12500  /uL  < 200\nGlucose  40  mg/dL\nProtein  4.2  g/dL\n") {
				require.Equal(t, loinc.OtherSpecimen, r.SampleType, r.TestName)
				require.Empty(t, r.LoincMatches, r.TestName)
			}
		})
	}
}

// Blood is an analyte of urine and stool; colour and appearance are of any fluid.
func TestSpecimen_analytesBloodColourAndAppearanceSetNoSpecimen(t *testing.T) {
	all := rowsOf(t, "Urinalysis\nTest  Result  Reference\nBlood  2+  Negative\nNitrite  Negative  Negative\nGlucose  Negative  Negative\nKetones  Negative  Negative\n")
	require.Equal(t, loinc.Urine, named(all, "Blood")[0].SampleType)
	require.Contains(t, named(all, "Blood")[0].LoincMatches[0].LoincName, "Urine")
	all = rowsOf(t, "Stool\nTest  Result  Reference\nOccult blood  Negative  Negative\nColor  Brown\nWBC  Negative  Negative\nCalprotectin  20 ug/g  < 50\n")
	require.Equal(t, loinc.Stool, named(all, "Occult blood")[0].SampleType)
	all = rowsOf(t, "Tap\nTest  Result  Reference\nColor  Yellow  Yellow\nAppearance  Clear  Clear\nGlucose  60 mg/dL  40 - 70\nProtein  30 mg/dL  15 - 45\n")
	for _, name := range []string{"Color", "Appearance"} {
		require.NotEqual(t, labreport.AutoMatch, *named(all, name)[0].LoincMatchStatus)
		require.Equal(t, loinc.NoSpecimen, named(all, name)[0].SampleType)
	}
}

// A letter or an abbreviation in the name states the specimen.
func TestNamedSpecimen_readsLettersAndAbbreviations(t *testing.T) {
	for name, want := range map[string]loinc.Specimen{"S-Natrium": loinc.Blood, "fP-Glucose": loinc.Blood, "U-Albumin": loinc.Urine, "Sodium (U)": loinc.Urine, "Kreatinin i.U.": loinc.Urine,
		"Creatinine, U": loinc.Urine, "S-100": loinc.NoSpecimen, "Blood": loinc.NoSpecimen, "Occult blood": loinc.NoSpecimen, "Sangre": loinc.NoSpecimen, "Okkultes Blut im Stuhl": loinc.Stool} {
		require.Equal(t, want, loinc.NamedSpecimen(name), name)
	}
}

// Arterial, capillary, cord, dried and whole blood have terms of their own.
func TestLOINC_arterialCapillaryAndCordBloodNeedReview(t *testing.T) {
	for _, heading := range []string{"Arterial blood gas", "Cord blood", "Capillary blood", "Dried blood spot", "Nabelschnurblut"} {
		t.Run(heading, func(t *testing.T) {
			for _, r := range rowsOf(t, heading+"\n"+tableHead+"pH  7.38    7.35 - 7.45\nGlucose  95  mg/dL  70 - 99\nSodium  139  mmol/L  136 - 145\nTSH  2.1  mIU/L  0.4 - 4.0\n") {
				require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus, r.TestName)
			}
		})
	}
	reader := labreport.NewReader(nil)
	for _, row := range []labreport.RawRow{{Name: "Hemoglobin, plasma", Value: "3", Unit: "g/dL"}, {Name: "Ferritin, whole blood", Value: "40", Unit: "ng/mL"}} {
		row.Specimen = loinc.Blood
		require.NotEqual(t, labreport.AutoMatch, *reader.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0].LoincMatchStatus, row.Name)
	}
	for _, row := range []labreport.RawRow{{Name: "Glucose, whole blood", Value: "95", Unit: "mg/dL"}, {Name: "Sodium, whole blood", Value: "139", Unit: "mmol/L"}} {
		row.Specimen = loinc.Blood
		require.Contains(t, reader.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0].LoincMatches[0].LoincName, "in Blood", row.Name)
	}
}

// Names of one term do not lead to another.
func TestLOINC_similarNamesFindNoWrongTerm(t *testing.T) {
	for name, wrong := range map[string]string{"High Sensitivity Troponin I": "20448-7", "Anti HCV": "11011-4", "DHEA": "2191-5", "Mean corpuscular hemoglobin": "28540-3",
		"Urea/Creatinine Ratio": "3091-6", "Urine": "53963-5", "Epithelial Cells": "11277-1"} {
		found, err := loinc.Embedded().Find(name)
		require.NoError(t, err)
		for _, f := range found {
			require.False(t, f.Term.Code == wrong && f.Likeness >= 0.85, "%s: %s", name, f.Term.Name)
		}
	}
}

// Lines of limits and of control samples are no results.
func TestRows_limitsAndControlSamplesAreNoResults(t *testing.T) {
	all := rowsOf(t, tableHead+"LDL Cholesterol  130  mg/dL  < 100\nHigh  160 - 189  mg/dL\nVery high  190  mg/dL\nProthrombin time  12.1  sec  11.0 - 13.5\nPT control  12.0  sec\n"+
		"Control  100  %\nKontrolle  98  %\naPTT  30  sec  25 - 36\nFerritin  40  ng/mL  15 - 150\n")
	var names []string
	for _, r := range all {
		names = append(names, r.TestName)
	}
	require.Equal(t, []string{"LDL Cholesterol", "Prothrombin time", "aPTT", "Ferritin"}, names)
}

// What looks like a flag or a unit may be a part of its neighbour.
func TestRows_partsOfNeighbouringCellsAreNoFlagOrUnit(t *testing.T) {
	all := rowsOf(t, "Analyte  Reference  Units  Result\nGlucose  70 - 99  mg/dL  95\neGFR  > 60  mL/min/1.73m2  > 90\nCRP  < 5  mg/L  < 0.5\nFerritin  15 - 150  ng/mL  8 L\n")
	require.Equal(t, "> 90", named(all, "eGFR")[0].Value)
	require.Equal(t, labreport.Normal, *named(all, "eGFR")[0].Interpretation)
	require.Equal(t, labreport.Normal, *named(all, "CRP")[0].Interpretation)
	require.Equal(t, labreport.Abnormal, *named(all, "Ferritin")[0].Interpretation)

	all = rowsOf(t, tableHead+"Glucose fasting  92  mg/dL  70 - 99\nGlucose 1 h  165  mg/dL  < 180\nInsulin  8  uIU/mL  2 - 20\nIgG index  0.55    0.3 - 0.7\nNormal forms  6  %\nIgG  980  mg/dL  700 - 1600\n")
	require.Equal(t, "0.55", named(all, "IgG index")[0].Value)
	require.Nil(t, named(all, "IgG index")[0].Units)
	require.NotEqual(t, labreport.AutoMatch, *named(all, "IgG index")[0].LoincMatchStatus)
	for _, r := range all {
		if r.Value == "165" {
			require.NotEqual(t, labreport.Abnormal, *r.Interpretation, "the hour is no flag")
			require.False(t, fieldIsSure(r, "test_name") && r.TestName == "Glucose", "the name is cut")
		}
		if r.Value == "6" {
			require.Equal(t, labreport.Unclear, *r.Interpretation, "normal is a part of the name")
		}
	}
}

// A name of which a part was left over is not sure, whatever the part is.
func TestRows_partlyReadNameHasLowConfidence(t *testing.T) {
	for _, name := range []string{"Vitamin D 1,25", "Glucose tolerance 2 hr", "Bilirubin xyz", "Calcium qq"} {
		t.Run(name, func(t *testing.T) {
			for _, r := range rowsOf(t, tableHead+"TSH  2.1  mIU/L  0.4 - 4.0\nFerritin  40  ng/mL  15 - 150\n"+name+"  45  mg/dL  18 - 72\n")[2:] {
				require.False(t, r.TestName != name && fieldIsSure(r, "test_name"), r.TestName)
				require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus)
			}
		})
	}
}

// Two columns of results that no heading tells apart are doubted.
func TestRows_twoResultColumnsWithoutDatesHaveLowConfidence(t *testing.T) {
	for _, r := range rowsOf(t, "Test  Result 1  Result 2  Mean  Units  Reference\nGlucose  94  96  95  mg/dL  70 - 99\nSodium  138  140  139  mmol/L  136 - 145\nPotassium  4.0  4.2  4.1  mmol/L  3.5 - 5.1\n") {
		require.False(t, fieldIsSure(r, "value"), r.TestName)
	}
}

// A row with a value in words that are not known is no heading.
func TestPanels_rowWithAnUnknownWordAsValueIsNoHeading(t *testing.T) {
	all := rowsOf(t, "Serology\n"+tableHead+"TSH  2.1  mIU/L  0.4 - 4.0\nANA pattern  Speckled\nFerritin  40  ng/mL  15 - 150\nCRP  1  mg/L  < 5\n")
	require.Equal(t, "Serology", *named(all, "Ferritin")[0].SourcePanelName)
}

// A label is no name, and a patient is no laboratory.
func TestMetadata_labelIsNotReadAsNameNorPatientAsLaboratory(t *testing.T) {
	const rows = "Test  Result  Units  Reference\nGlucose  95  mg/dL  70 - 99\nSodium  139  mmol/L  136 - 145\nTSH  2.1  mIU/L  0.4 - 4.5\n"
	for name, c := range map[string]struct{ text, first, last, lab string }{
		"label below": {"Northlab Diagnostics\nName  Test, Anna\nBirth date  1980-05-13\nSpecimen ID  A-1234\n", "", "", "Northlab Diagnostics"},
		"heading":     {"Northlab Diagnostics\nPatient Information\nDOB: 05/13/1980  Sex: F\n", "", "", "Northlab Diagnostics"},
		"two columns": {"Patient  Physician\nJohn Smith  Dr. Mary Jones\nDOB: 05/17/1970  Sex: M\n", "John", "Smith", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, reason := labreport.NewReader(nil).Read(printed(c.text + rows))
			require.Empty(t, reason)
			text := func(s *string) string {
				if s == nil {
					return ""
				}
				return *s
			}
			m := d.Metadata
			require.Equal(t, []string{c.first, c.last, c.lab}, []string{text(m.PatientFirstName), text(m.PatientLastName), text(m.LabName)})
		})
	}
}

// An empty cell of a result takes neither a number of the range nor an older result.
func TestRows_emptyResultMakesNoRow(t *testing.T) {
	set := func(rows ...[]string) []labreport.Page {
		w := newWriter(9)
		for _, row := range append([][]string{{"Test Laboratory"}, {"Patient: Ann Doe", "DOB: 01/02/1980"}, {"Collected: 2026-03-04"}}, rows...) {
			for i, cell := range row {
				w.at(40+95*float64(i), cell)
			}
			w.down(1.2)
		}
		return w.pages
	}
	for _, head := range [][]string{
		{"Test", "Result", "Units", "Reference"}, {"Test", "Result", "Flag", "Reference", "Units"}, {"Test", "Result", "Previous", "Reference", "Units"},
		{"Test", "Previous", "Current", "Reference", "Units"}, {"Test", "Result (previous)", "Result (current)", "Units", "Reference"}, {"Test", "Earlier result", "Result", "Units", "Reference"},
		{"Untersuchung", "Vorheriger Wert", "Wert", "Einheit", "Referenzbereich"}, {"Analyse", "Valeur antérieure", "Résultat", "Unité", "Valeurs de référence"}, {"Prueba", "Resultado previo", "Resultado", "Unidad", "Referencia"},
	} {
		line := func(name, value, previous, unit, reference string) (out []string) {
			for i, h := range head {
				switch h {
				case "Test", "Untersuchung", "Analyse", "Prueba":
					out = append(out, name)
				case "Result", "Current", "Result (current)", "Wert", "Résultat", "Resultado":
					out = append(out, value)
				case "Units", "Einheit", "Unité", "Unidad":
					out = append(out, unit)
				case "Flag":
					out = append(out, "")
				default:
					if i < 3 && len(head) > 4 && h != "Reference" {
						out = append(out, previous)
					} else {
						out = append(out, reference)
					}
				}
			}
			return out
		}
		for _, reference := range []string{"30 - 400", "30-400", "< 5", "<5", "0.4 - 4.0", "0-4", "> 60"} {
			for _, empty := range []string{"", "***", "--"} {
				for _, previous := range []string{"", "22"} {
					d, reason := labreport.NewReader(nil).Read(set(head, line("Potassium", "4.1", "4.2", "mmol/L", "3.5 - 5.1"), line("Ferritin", empty, previous, "ng/mL", reference), line("Sodium", "139", "141", "mmol/L", "136 - 145")))
					require.Empty(t, reason)
					require.Len(t, d.Results, 2, "%v %q %q %s", head, empty, previous, reference)
					require.Equal(t, "4.1", d.Results[0].Value, "%v", head)
					require.Equal(t, "139", d.Results[1].Value, "%v", head)
				}
			}
		}
	}
}

// Of two columns of results, of which one has an unknown word in its heading, either may be the older one.
func TestRows_resultUnderAnUnknownHeadingHasLowConfidence(t *testing.T) {
	for _, head := range []string{"Baseline result  Result", "Result  Baseline result", "Result 08/2025  Result 02/2026"} {
		for _, row := range []string{"Ferritin  22  50", "Ferritin  22  "} {
			for _, r := range named(rowsOf(t, "Test  "+head+"  Units\nSodium  139  141  mmol/L\n"+row+"  ng/mL\n"), "Ferritin") {
				require.Less(t, r.Evidence["value"].Confidence, 0.9, "%s, %s", head, row)
				require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus)
			}
		}
	}
	got := rowsOf(t, "Analyse  Valeur antérieure  Résultat antérieur  Résultat\nGlycémie  80 mg/dL  90 mg/dL  95 mg/dL\nFerritine  50 ng/mL  60 ng/mL  70 ng/mL\n")
	require.Equal(t, []string{"95", "70"}, []string{got[0].Value, got[1].Value})
}

func TestNumbers_groupsOfLakhsAreKeptAndUncertain(t *testing.T) {
	got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nPlatelets  2,50,000  /cumm  1,50,000 - 4,50,000\n"), "Platelets")[0]
	require.Equal(t, "2,50,000", got.Value)
	require.Less(t, got.Evidence["value"].Confidence, 0.9)
	require.Equal(t, labreport.Unclear, *got.Interpretation)
}
