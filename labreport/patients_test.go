package labreport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

// pagesOf sets each text as one page.
func pagesOf(texts ...string) []labreport.Page {
	var out []labreport.Page
	for i, text := range texts {
		page := printed(text)[0]
		page.Number = i + 1
		out = append(out, page)
	}
	return out
}

const (
	ferritinRow = "Test  Result  Units  Reference\nFerritin  40  ng/mL  38 - 380\nTSH  2.1  mIU/L  0.4 - 4.5\n"
	psaRow      = "Test  Result  Units  Reference\nPSA  9.5  ng/mL  0 - 4\n"
)

// A file with reports of several patients is not the report of one.
func TestRead_reportsOfSeveralPatientsAreRefused(t *testing.T) {
	for name, c := range map[string][2]string{
		"name, birth date and sex":   {"Patient: Jane Roe\nDOB: 1988-04-02\nSex: F\n", "Patient: Bob Other\nDOB: 1955-01-01\nSex: M\n"},
		"name":                       {"Patient: Jane Roe\n", "Patient: Bob Other\n"},
		"name after a general label": {"Name: Jane Roe\n", "Name: Bob Other\n"},
		"given name":                 {"Patient Name: Roe, Jane\n", "Patient Name: Roe, John\n"},
		"family name":                {"Last name: Roe\nFirst name: Jane\n", "Last name: Other\nFirst name: Jane\n"},
		"birth date":                 {"Name: Jane Roe\nDOB: 1988-04-02\n", "Patient: J. Roe\nDate of birth: 2 May 1988\n"},
		"birth date in any order":    {"Patient: Jane Roe\nDOB: 04/02/1988\n", "Patient: Jane Roe\nDOB: 05/03/1988\n"},
		"one of three languages":     {"Patient: Jane Roe\nGeburtsdatum: 02.04.1988\n", "Patient: Jane Roe\nGeburtsdatum: 13.11.1961\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, reason := labreport.NewReader(nil).Read(pagesOf("Test Laboratory\n"+c[0]+ferritinRow, "Test Laboratory\n"+c[1]+psaRow))
			require.Equal(t, labreport.InvalidInput, reason, "pages")
			if name == "name after a general label" || name == "family name" {
				return // on one page the second may be another person than the patient
			}
			_, reason = labreport.NewReader(nil).Read(pagesOf("Test Laboratory\n" + c[0] + ferritinRow + "\n" + c[1] + psaRow))
			require.Equal(t, labreport.InvalidInput, reason, "one page")
		})
	}
}

// A name in another order or with a second name, and the names of other persons, are no contradiction.
func TestRead_reportOfOnePatientIsAccepted(t *testing.T) {
	for name, c := range map[string][2]string{
		"the same":               {"Patient: Jane Roe\nDOB: 1988-04-02\n", "Patient: Jane Roe\nDOB: 1988-04-02\n"},
		"another order":          {"Patient: Jane Roe\n", "Patient: ROE, JANE\n"},
		"second name":            {"Patient: Jane Roe\n", "Patient: Jane Maria Roe\n"},
		"initial":                {"Patient: Jane A. Roe\n", "Patient: Jane Roe\n"},
		"hyphen":                 {"Patient: Anne-Marie Roe\n", "Patient: Annemarie Roe\n"},
		"umlaut":                 {"Patient: Jörg Müller\n", "Patient: MUELLER JOERG\n"},
		"title":                  {"Patient: Mrs. Jane Roe\n", "Patient: Jane Roe\n"},
		"family name only":       {"Patient: Jane Roe\n", "Patient: Roe\n"},
		"physician":              {"Patient: Jane Roe\nPhysician: Bob Other\n", "Patient: Jane Roe\nOrdering physician: Bob Other\n"},
		"physician by name":      {"Patient: Jane Roe\n", "Patient: Jane Roe\nName: Dr. Bob Other\n"},
		"name of the physician":  {"Patient: Jane Roe\nPhysician name: Bob Other\n", "Physician name: Tom Third\n"},
		"physician with a label": {"Name: Jane Roe\n", "Name: Jane Roe\nName: Bob Other\n"},
		"mother":                 {"Patient: Jane Roe\nDOB: 2020-04-02\n", "Mother's name: Ann Roe\nMother DOB: 1988-04-02\n"},
		"laboratory":             {"Client name: Jane Roe\n", "Client name: Hillside Hospital\n"},
		"birth date in words":    {"Patient: Jane Roe\nDOB: 1988-04-02\n", "Patient: Jane Roe\nDOB: 2 Apr 1988\n"},
		"birth date ambiguous":   {"Patient: Jane Roe\nDOB: 04/02/1988\n", "Patient: Jane Roe\nDOB: 02-Apr-1988\n"},
		"year of two digits":     {"Patient: Jane Roe\nDOB: 04/22/1988\n", "Patient: Jane Roe\nDOB: 04/22/88\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, reason := labreport.NewReader(nil).Read(pagesOf("Test Laboratory\n"+c[0]+ferritinRow, "Test Laboratory\n"+c[1]+psaRow))
			require.Empty(t, reason)
			require.Len(t, d.Results, 3)
			if name == "name of the physician" || name == "mother" {
				require.Equal(t, "Roe", *d.Metadata.PatientLastName)
				require.Equal(t, "Jane", *d.Metadata.PatientFirstName)
			}
		})
	}
}

// On a picture one misread digit of the birth date, or one misread word of the name, is no other patient.
func TestRead_misreadLetterOfAPictureIsNoOtherPatient(t *testing.T) {
	for name, c := range map[string]struct {
		second string
		refuse bool
	}{
		"digit": {"Patient: Jane Roe\nDOB: 1988-04-07\n", false},
		"word":  {"Patient: Jane Rae\nDOB: 1988-04-02\n", false},
		"other": {"Patient: Bob Other\nDOB: 1955-01-01\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			pages := pagesOf("Test Laboratory\nPatient: Jane Roe\nDOB: 1988-04-02\n"+ferritinRow, "Test Laboratory\n"+c.second+psaRow)
			for i := range pages {
				pages[i].Image = true
			}
			_, reason := labreport.NewReader(nil).Read(pages)
			require.Equal(t, c.refuse, reason == labreport.InvalidInput, reason)
		})
	}
}

// Of several collection dates none is sure to be that of the report.
func TestRead_severalCollectionDatesAreNotConfident(t *testing.T) {
	const patient = "Patient: Jane Roe\nDOB: 1988-04-02\n"
	for second, least := range map[string]bool{"2026-02-01": true, "2025-01-11": false} {
		d, reason := labreport.NewReader(nil).Read(pagesOf("Test Laboratory\n"+patient+"Collected: 2026-02-01\n"+ferritinRow, "Test Laboratory\n"+patient+"Collected: "+second+"\n"+psaRow))
		require.Empty(t, reason)
		require.Equal(t, least, d.Metadata.Evidence["date_collected"].Confidence >= 0.9, second)
	}
}
