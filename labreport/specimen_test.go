package labreport_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// A row of another fluid gets no code of blood, whether its name or its panel says so.
func TestLOINC_rowOfAnotherFluidHasNoBloodCode(t *testing.T) {
	r := labreport.NewReader(nil)
	blood := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: "Glucose", Value: "95", Unit: "mg/dL", Panel: "Serum chemistry", Specimen: loinc.Blood}}})
	require.Equal(t, "2345-7", blood.Results[0].LoincMatches[0].LoincCode)
	codes := map[string]bool{}
	for _, m := range blood.Results[0].LoincMatches {
		codes[m.LoincCode] = true
	}
	for _, row := range []labreport.RawRow{
		{Name: "Glucose, CSF"}, {Name: "CSF Glucose"}, {Name: "Glucose (Liquor)"}, {Name: "Glucosa LCR"},
		{Name: "Glucose, pleural fluid"}, {Name: "Glucose, ascites"}, {Name: "Synovial fluid glucose"}, {Name: "Amniotic fluid glucose"},
		{Name: "Glucose, dialysate"}, {Name: "Glucose", Specimen: loinc.OtherSpecimen},
	} {
		row.Value, row.Unit = "31", "mg/dL"
		got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0]
		for _, m := range got.LoincMatches {
			require.False(t, codes[m.LoincCode], "%s: %s", row.Name, m.LoincName)
		}
		fluid := loinc.NamedSpecimen(row.Name)
		if fluid == loinc.NoSpecimen {
			fluid = row.Specimen
		}
		for _, m := range got.LoincMatches {
			term, err := loinc.Embedded().Term(m.LoincCode)
			require.NoError(t, err)
			require.True(t, fluid.Compatible(term.Specimen()), "%s: %s", row.Name, m.LoincName)
		}
		require.Equal(t, fluid == "cerebrospinal_fluid", *got.LoincMatchStatus == labreport.AutoMatch, row.Name)
		require.Equal(t, loinc.OtherSpecimen, got.SampleType, row.Name)
	}
}

// Per high-power field is not per volume.
func TestLOINC_perFieldUnitMatchesNoPerVolumeTerm(t *testing.T) {
	r := labreport.NewReader(nil)
	got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: "WBC", Value: "3", Unit: "/HPF", Specimen: loinc.Urine}}}).Results[0]
	for _, m := range got.LoincMatches {
		require.NotContains(t, m.LoincName, "#/volume")
	}
}

// printed sets a report: a line of text is one line, cells are separated by two spaces or
// more.
func printed(text string) []labreport.Page {
	w := newWriter(10)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		x := 50.0
		for i, cell := range regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1) {
			w.at(x+140*float64(i), cell)
		}
		w.down(1.2)
	}
	return w.pages
}

func rowsOf(t *testing.T, text string) []labreport.Result {
	t.Helper()
	d, reason := labreport.NewReader(nil).Read(printed("Test Laboratory\nPatient: Ann Doe  DOB: 01/02/1980  Sex: F\nCollected: 03/04/2026  Reported: 03/05/2026\n\n" + text))
	require.Empty(t, reason)
	return d.Results
}

func bloodCodes(r labreport.Result) bool {
	return slices.ContainsFunc(r.LoincMatches, func(m labreport.Match) bool {
		return strings.Contains(m.LoincName, "in Serum") || strings.Contains(m.LoincName, "in Blood") || strings.Contains(m.LoincName, "in Plasma")
	})
}

// The specimen is stated by the row, its section, its panel or the report. A row of another
// fluid has no code of blood.
func TestSpecimen_isStatedByRowSectionPanelOrReport(t *testing.T) {
	const head = "Test  Result  Units  Reference\n"
	const rows = "Glucose  31  mg/dL  40 - 70\nProtein, Total  45  mg/dL  15 - 45\nWBC  3  /uL  0 - 5\nChloride  118  mmol/L  118 - 132\n"
	for name, text := range map[string]string{
		"section heading":    "Cerebrospinal Fluid\n" + head + rows,
		"section below head": head + "CSF ANALYSIS\n" + rows,
		"title of the page":  "CEREBROSPINAL FLUID EXAMINATION\nDepartment of Biochemistry\nSample handled on ice\n\nRemarks see over\n\nThank you\n\n" + head + rows,
		"label":              "Specimen type: CSF\n" + head + rows,
		"label and cell":     "Material  Liquor\n" + head + rows,
		"spanish":            "Muestra: Líquido cefalorraquídeo\n" + head + rows,
		"french":             "Nature du prélèvement : liquide céphalo-rachidien\n" + head + rows,
		"department":         "Specimen: Pleural fluid\nHematology\n" + head + rows,
		"ascites":            "Ascitic Fluid Analysis\n" + head + rows,
		"joint":              "Joint fluid\n" + head + rows,
		"peritoneal":         "Body fluid: peritoneal\n" + head + rows,
		"dialysate":          "Sample type: Dialysate\n" + head + rows,
		"subsections":        "SYNOVIAL FLUID\n" + head + "Macroscopic examination\nGlucose  31  mg/dL  40 - 70\nMicroscopic examination\nWBC  3  /uL  0 - 5\nProtein, Total  45  mg/dL  15 - 45\n",
		"after blood":        "Lipid Panel\n" + head + "Cholesterol, Total  180  mg/dL  < 200\nTriglycerides  90  mg/dL  < 150\nCSF\n" + rows,
	} {
		t.Run(name, func(t *testing.T) {
			results := rowsOf(t, text)
			require.GreaterOrEqual(t, len(results), 3)
			for _, r := range results {
				if r.TestName == "Cholesterol, Total" || r.TestName == "Triglycerides" {
					require.Equal(t, labreport.AutoMatch, *r.LoincMatchStatus, r.TestName)
					continue
				}
				require.False(t, bloodCodes(r), "%s %s", r.TestName, r.LoincMatches)
				require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus, r.TestName)
				require.Equal(t, loinc.OtherSpecimen, r.SampleType, r.TestName)
			}
		})
	}
}

// A specimen that nothing states is a guess unless the analyte or its panel has only one.
func TestSpecimen_unstatedSpecimenNeedsReview(t *testing.T) {
	const head = "Test  Result  Units  Reference\n"
	status := func(text string) map[string]labreport.MatchStatus {
		out := map[string]labreport.MatchStatus{}
		for _, r := range rowsOf(t, text) {
			out[r.TestName] = *r.LoincMatchStatus
		}
		return out
	}
	got := status(head + "Glucose  95  mg/dL  70 - 99\nProtein, Total  7.1  g/dL  6.1 - 8.1\nChloride  101  mmol/L  98 - 110\n")
	require.Equal(t, labreport.NeedsReview, got["Glucose"])
	require.Equal(t, labreport.NeedsReview, got["Chloride"])
	got = status("Comprehensive Metabolic Panel\n" + head + "Glucose  95  mg/dL  70 - 99\nChloride  101  mmol/L  98 - 110\nCalcium  9.1  mg/dL  8.6 - 10.3\n")
	require.Equal(t, labreport.AutoMatch, got["Glucose"])
	got = status(head + "Glucose  95  mg/dL  70 - 99\nTSH  2.1  mIU/L  0.4 - 4.5\nMCV  90  fL  80 - 100\nFerritin  40  ng/mL  38 - 380\n")
	require.Equal(t, labreport.AutoMatch, got["Glucose"])
	require.Equal(t, labreport.AutoMatch, got["TSH"])
}

// The unit decides between codes of mass, of substance, of a fraction and of a field.
func TestLOINC_unitDecidesBetweenCodes(t *testing.T) {
	r := labreport.NewReader(nil)
	for _, c := range []struct {
		name, value, unit string
		specimen          loinc.Specimen
		first             string // empty: no auto_match
		never             []string
	}{
		{"Hemoglobin A1c", "5.4", "%", loinc.Blood, "4548-4", []string{"59261-8"}},
		{"Hemoglobin A1c", "36", "mmol/mol", loinc.Blood, "59261-8", []string{"4548-4", "17856-6"}},
		{"HbA1c (IFCC)", "36", "mmol/mol", loinc.Blood, "59261-8", []string{"4548-4", "17856-6"}},
		{"HbA1c", "36", "", loinc.Blood, "", nil},
		{"Glucose", "95", "mg/dL", loinc.Blood, "2345-7", []string{"14749-6"}},
		{"Glucose", "5.3", "mmol/L", loinc.Blood, "14749-6", []string{"2345-7"}},
		{"Glucose", "5.3", "", loinc.Blood, "", nil},
		{"Creatinine", "80", "umol/L", loinc.Blood, "14682-9", []string{"2160-0"}},
		{"Calcium", "9.4", "mg/dL", loinc.Blood, "17861-6", []string{"2000-8"}},
		{"Homocysteine", "9", "umol/L", loinc.Blood, "13965-9", []string{"2428-1"}},
		{"pH", "6.0", "", loinc.Urine, "5803-2", nil},
		{"pH", "6.0", "mg/dL", loinc.Urine, "", []string{"2756-5", "5803-2"}},
		{"WBC", "3", "/HPF", loinc.Urine, "", []string{"26464-8", "6690-2", "30405-5"}},
		{"WBC", "3", "/uL", loinc.Urine, "", []string{"5821-4"}},
		{"Protein, 24h urine", "12", "mg/dL", loinc.NoSpecimen, "", []string{"2888-6"}},
	} {
		got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: c.name, Value: c.value, Unit: c.unit, Specimen: c.specimen}}}).Results[0]
		if c.first != "" {
			require.NotEmpty(t, got.LoincMatches, "%s %s", c.name, c.unit)
			require.Equal(t, c.first, got.LoincMatches[0].LoincCode, "%s %s", c.name, c.unit)
		} else if c.unit != "/HPF" {
			require.NotEqual(t, labreport.AutoMatch, *got.LoincMatchStatus, "%s %s: %v", c.name, c.unit, got.LoincMatches)
		}
		for _, m := range got.LoincMatches {
			require.NotContains(t, c.never, m.LoincCode, "%s %s", c.name, c.unit)
		}
	}
}

// A match without review has a value and a unit that were read surely.
func TestAutoMatch_requiresAUnitAndAValue(t *testing.T) {
	r := labreport.NewReader(nil)
	for _, c := range []struct {
		name, value, unit string
		auto              bool
	}{
		{"TSH", "2.1", "mIU/L", true}, {"TSH", "2.1", "", false}, {"TSH", "2.1", "mlU/tL", false}, {"TSH", "2.1", "mg/dL", false},
		{"Creatinine", "0.9", "pmol/L", false}, {"Creatinine", "0.9", "mg/24h", false}, {"INR", "1.1", "", true}, {"Ferritin", "40", "%", false},
	} {
		got := r.Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: c.name, Value: c.value, Unit: c.unit, Specimen: loinc.Blood}}}).Results[0]
		require.Equal(t, c.auto, *got.LoincMatchStatus == labreport.AutoMatch, "%s %s %s: %v", c.name, c.value, c.unit, got.LoincMatches)
	}
}

// A heading over the patient's data is no name.
func TestMetadata_headingAbovePatientDataIsNoName(t *testing.T) {
	for _, heading := range []string{"Patient Information", "Patient Details", "Patientendaten", "Informations Patient", "Patient: Information"} {
		d, reason := labreport.NewReader(nil).Read(printed("Test Laboratory\n" + heading + "\nDOB: 01/02/1980  Sex: F\nCollected: 03/04/2026\nLipid Panel\nTest  Result  Units  Reference\nCholesterol, Total  180  mg/dL  < 200\nTriglycerides  90  mg/dL  < 150\nTSH  2.1  mIU/L  0.4 - 4.5\n"))
		require.Empty(t, reason)
		require.Nil(t, d.Metadata.PatientLastName, heading)
		require.Nil(t, d.Metadata.PatientFirstName, heading)
	}
}

// A match without review needs a name, a value and a unit that were read surely. A flag that
// contradicts the range shows that something was misread.
func TestAutoMatch_requiresConfidentNameValueAndUnit(t *testing.T) {
	r := labreport.NewReader(nil)
	row := labreport.RawRow{Name: "TSH", Value: "2.1", Unit: "mIU/L", Range: "0.4 - 4.5"}
	status := func(e labreport.Evidence) labreport.MatchStatus {
		row.Evidence = e
		return *r.Complete(labreport.RawReport{Rows: []labreport.RawRow{row}}).Results[0].LoincMatchStatus
	}
	require.Equal(t, labreport.AutoMatch, status(nil))
	require.Equal(t, labreport.AutoMatch, status(labreport.Evidence{"value": {Confidence: 0.95}, "units": {Confidence: 0.95}, "test_name": {Confidence: 0.95}}))
	for _, field := range []string{"value", "units", "test_name"} {
		require.Equal(t, labreport.NeedsReview, status(labreport.Evidence{field: {Confidence: 0.7}}), field)
	}
	require.Equal(t, labreport.NeedsReview, status(labreport.Evidence{"value": {Confidence: 0.95, Alternatives: []string{"21"}}}))

	const head = "Lipid Panel\nTest  Result  Flag  Units  Reference\nTriglycerides  90  mg/dL  < 150\nTSH  2.1  mIU/L  0.4 - 4.5\n"
	for flag, want := range map[string]labreport.MatchStatus{"H": labreport.NeedsReview, "": labreport.AutoMatch} {
		got := rowsOf(t, head+"Cholesterol, Total  180  "+flag+"  mg/dL  < 200\n")
		last := got[len(got)-1]
		require.Equal(t, "Cholesterol, Total", last.TestName)
		require.Equal(t, want, *last.LoincMatchStatus, flag)
	}
}

// The row goes before its section or panel, and those before the report.
func TestSpecimen_rowDecidesBeforeSectionAndReport(t *testing.T) {
	const head = "Test  Result  Units  Reference\n"
	first := func(text string) labreport.Result {
		t.Helper()
		results := rowsOf(t, text)
		require.NotEmpty(t, results, text)
		return results[len(results)-1]
	}
	for name, c := range map[string]struct {
		text string
		want loinc.Specimen
	}{
		"row before section":    {"CSF\n" + head + "Glucose, urine  31  mg/dL  1 - 15\n", loinc.Urine},
		"row before report":     {"Specimen: Serum\n" + head + "Glucose, CSF  31  mg/dL  40 - 70\n", loinc.OtherSpecimen},
		"section before report": {"Specimen: Serum\n" + head + "URINALYSIS\nGlucose  31  mg/dL  1 - 15\nProtein  7  mg/dL  0 - 20\n", loinc.Urine},
		"panel before report":   {"Specimen: Serum\nUrine Chemistry\n" + head + "Creatinine  98  mg/dL  20 - 320\n", loinc.Urine},
		"report":                {"Specimen: Urine\n" + head + "Creatinine  98  mg/dL  20 - 320\n", loinc.Urine},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, first(c.text).SampleType) })
	}
}

// Every specimen is known where a report states it, and has no code of another.
func TestSpecimen_eachStatedOneIsRecognized(t *testing.T) {
	for stated, want := range map[string]loinc.Specimen{
		"Whole blood": loinc.Blood, "Serum": loinc.Blood, "Plasma": loinc.Blood, "Urine": loinc.Urine, "Urine, 24 h": loinc.Urine,
		"CSF": loinc.OtherSpecimen, "Pleural fluid": loinc.OtherSpecimen, "Peritoneal fluid": loinc.OtherSpecimen, "Ascites": loinc.OtherSpecimen,
		"Synovial fluid": loinc.OtherSpecimen, "Joint fluid": loinc.OtherSpecimen, "Amniotic fluid": loinc.OtherSpecimen, "Bile": loinc.OtherSpecimen,
		"Dialysate": loinc.OtherSpecimen, "Stool": loinc.Stool, "Saliva": loinc.Saliva, "Semen": loinc.OtherSpecimen, "Sweat": loinc.OtherSpecimen,
		"Body fluid": loinc.OtherSpecimen,
	} {
		t.Run(stated, func(t *testing.T) {
			got := rowsOf(t, "Specimen: "+stated+"\nTest  Result  Units  Reference\nGlucose  31  mg/dL  40 - 70\nChloride  118  mmol/L  98 - 132\nProtein, Total  45  mg/dL  15 - 45\n")
			require.Len(t, got, 3)
			for _, r := range got {
				require.Equal(t, want, r.SampleType, r.TestName)
				if want != loinc.Blood {
					require.False(t, bloodCodes(r), "%s %v", r.TestName, r.LoincMatches)
				}
			}
		})
	}
}

// A section after one of another specimen has that specimen only if its heading names a part of an examination.
func TestSpecimen_nextSectionDoesNotInheritUrine(t *testing.T) {
	const head = "Test  Result  Units  Reference\n"
	const urine = "Urinalysis\nProtein  negative    negative\npH  6.5    5 - 8\n"
	const blood = "Sodium  140  mmol/L  135 - 146\nPotassium  4.1  mmol/L  3.5 - 5.3\nCreatinine  1.05  mg/dL  0.6 - 1.3\n"
	const count = "CBC\nHemoglobin  13.5  g/dL  12 - 16\nWBC  7.0  10^3/uL  4 - 10\n"
	byName := func(results []labreport.Result, names ...string) (out []labreport.Result) {
		for _, r := range results {
			if slices.Contains(names, r.TestName) {
				out = append(out, r)
			}
		}
		return out
	}
	for _, heading := range []string{
		"Chemistry", "Clinical Chemistry", "General Chemistry", "Special Chemistry", "Routine Chemistry", "Chemistry Panel", "Klinische Chemie", "Klinisch-chemische Untersuchung",
		"Química clínica", "Bioquímica", "Chimie", "Biochimie", "Biochemical examination", "Immunology", "Endocrinology", "Toxicology", "Other tests", "Hematology", "Allergy",
	} {
		for name, text := range map[string]string{
			"below":               head + urine + heading + "\n" + blood,
			"urine before header": urine + heading + "\n" + head + blood,
			"urine title":         "Urinalysis\n" + head + "Protein  negative    negative\npH  6.5    5 - 8\n" + heading + "\n" + blood,
			"after a blood count": head + count + urine + heading + "\n" + blood,
		} {
			t.Run(heading+" "+name, func(t *testing.T) {
				results := byName(rowsOf(t, text), "Sodium", "Potassium", "Creatinine")
				require.Len(t, results, 3)
				for _, r := range results {
					require.NotEqual(t, loinc.Urine, r.SampleType, r.TestName)
					if *r.LoincMatchStatus == labreport.AutoMatch {
						require.True(t, bloodCodes(r), "%s %v", r.TestName, r.LoincMatches)
					}
				}
			})
		}
		t.Run(heading+" on the next page", func(t *testing.T) {
			pages := printed("Test Laboratory\nPatient: Ann Doe  DOB: 01/02/1980  Sex: F\n\n" + head + urine)
			pages = append(pages, printed("Test Laboratory\nPatient: Ann Doe  DOB: 01/02/1980  Sex: F\n\n"+head+heading+"\n"+blood)...)
			pages[1].Number = 2
			d, reason := labreport.NewReader(nil).Read(pages)
			require.Empty(t, reason)
			results := byName(d.Results, "Sodium", "Potassium", "Creatinine")
			require.Len(t, results, 3)
			for _, r := range results {
				require.NotEqual(t, loinc.Urine, r.SampleType, r.TestName)
			}
		})
	}
	for _, heading := range []string{
		"Microscopic examination", "Microscopy", "Chemical examination", "Chemical/dipstick examination of the urine", "Physical examination", "Physical and chemical properties", "Dipstick",
		"Sediment", "Mikroskopische Untersuchung", "Teststreifen", "Examen químico", "Examen physique", "Examen microscopique", "Macroscopic appearance",
	} {
		t.Run(heading+" is a part of the urinalysis", func(t *testing.T) {
			results := byName(rowsOf(t, head+urine+heading+"\nGlucose  5  mg/dL  0 - 15\nKetones  negative    negative\n"), "Glucose", "Ketones")
			require.Len(t, results, 2)
			for _, r := range results {
				require.Equal(t, loinc.Urine, r.SampleType, r.TestName)
			}
		})
	}
}

// A department of the laboratory examines fluids, too: directly below the heading of a fluid it has the specimen of the
// fluid, and after a section of a fluid its specimen is unknown.
func TestSpecimen_departmentAfterAFluidIsNotBlood(t *testing.T) {
	const head = "Test  Result  Units  Reference\n"
	for _, heading := range []string{"Chemistry", "Hematology", "Clinical Chemistry"} {
		for name, text := range map[string]string{
			"directly below": "Pleural fluid\n" + heading + "\n" + head + "Glucose  60  mg/dL  40 - 70\nWBC  3  /uL  0 - 5\n",
			"after":          head + "Pleural fluid\nGlucose  60  mg/dL  40 - 70\n" + heading + "\nWBC  3  /uL  0 - 5\nChloride  118  mmol/L  118 - 132\n",
		} {
			t.Run(heading+" "+name, func(t *testing.T) {
				for _, r := range rowsOf(t, text) {
					require.NotEqual(t, loinc.Blood, r.SampleType, r.TestName)
					require.NotEqual(t, labreport.AutoMatch, *r.LoincMatchStatus, r.TestName)
				}
			})
		}
	}
}
