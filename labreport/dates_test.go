package labreport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

func metadataOf(t *testing.T, head string) labreport.Metadata {
	t.Helper()
	d, reason := labreport.NewReader(nil).Read(pagesOf("Test Laboratory\nPatient: Ann Doe\n" + head + ferritinRow))
	require.Empty(t, reason)
	return d.Metadata
}

// A date is YYYY-MM-DD only if its own numbers, the language or another date of the report show the order of day and
// month; otherwise it is as printed, with little confidence.
func TestDates_areISOOnlyIfUnambiguous(t *testing.T) {
	for name, c := range map[string]struct{ head, dob, collected, reported string }{
		"near dates decide nothing":   {"DOB: 06/05/1990\nCollected: 01/05/2026\nReported: 02/05/2026\n", "06/05/1990", "01/05/2026", "02/05/2026"},
		"far dates decide nothing":    {"DOB: 04/02/1988\nCollected: 03/04/2026\nReported: 03/09/2026\n", "04/02/1988", "03/04/2026", "03/09/2026"},
		"another date, month first":   {"DOB: 06/05/1990\nCollected: 01/25/2026\nReported: 02/05/2026\n", "1990-06-05", "2026-01-25", "2026-02-05"},
		"another date, day first":     {"DOB: 06/05/1990\nCollected: 25/01/2026\nReported: 02/05/2026\n", "1990-05-06", "2026-01-25", "2026-05-02"},
		"points, month first":         {"DOB: 04.02.1988\nCollected: 02.13.2026\nReported: 02.03.2026\n", "1988-04-02", "2026-02-13", "2026-02-03"},
		"points, day first":           {"DOB: 04.02.1988\nCollected: 13.02.2026\nReported: 03.04.2026\n", "1988-02-04", "2026-02-13", "2026-04-03"},
		"both orders":                 {"DOB: 04/22/1988\nCollected: 01/02/2026\nReported: 13/02/2026\n", "1988-04-22", "01/02/2026", "2026-02-13"},
		"telephone number":            {"Tel: 01.23.45.67.89\nDOB: 04/02/1988\nCollected: 01/02/2026\nReported: 03/02/2026\n", "04/02/1988", "01/02/2026", "03/02/2026"},
		"year of two digits first":    {"DOB: 1988-04-02\nCollected: 26-02-01\nReported: 26-02-03\n", "1988-04-02", "26-02-01", "26-02-03"},
		"year of two digits last":     {"DOB: 1988-04-02\nCollected: 02-13-26\nReported: 02/15/26\n", "1988-04-02", "2026-02-13", "2026-02-15"},
		"named month and year first":  {"DOB: 2 Apr 1988\nCollected: Feb 1, 2026\nReported: 2026-02-03\n", "1988-04-02", "2026-02-01", "2026-02-03"},
		"same number of day as month": {"DOB: 04/04/1988\nCollected: 02/02/2026\nReported: 03/03/2026\n", "1988-04-04", "2026-02-02", "2026-03-03"},
	} {
		t.Run(name, func(t *testing.T) {
			m := metadataOf(t, c.head)
			for field, d := range map[string]struct {
				want string
				got  *string
			}{"dob": {c.dob, m.DOB}, "date_collected": {c.collected, m.DateCollected}, "date_reported": {c.reported, m.DateReported}} {
				require.NotNil(t, d.got, field)
				require.Equal(t, d.want, *d.got, field)
				iso := len(d.want) == 10 && d.want[4] == '-'
				require.Equal(t, iso, m.Evidence[field].Confidence >= 0.9, field)
			}
		})
	}
}

// A point is that of the language: in a German report the day is first.
func TestDates_languageDecidesTheOrder(t *testing.T) {
	d, reason := labreport.NewReader(nil).Read(pagesOf("Labor Nord\nPatientin: Ann Doe\nGeburtsdatum: 04.02.1988\nEntnahme: 03.02.2026\nUntersuchung  Ergebnis  Einheit  Referenzbereich\nKreatinin  1,12  mg/dl  0,60 - 1,30\nKalium  4,1  mmol/l  3,50 - 5,0\n"))
	require.Empty(t, reason)
	require.Equal(t, "1988-02-04", *d.Metadata.DOB)
	require.Equal(t, "2026-02-03", *d.Metadata.DateCollected)
}

// A birth date is not after the dates of the report. A year of two digits is completed if one century is possible.
func TestDates_birthDateIsBeforeTheReport(t *testing.T) {
	const at2026 = "Collected: 2026-02-01\nReported: 2026-02-03\n"
	for _, c := range []struct {
		head, want string
		sure       bool
	}{
		{"DOB: 09/14/31\n" + at2026, "1931-09-14", true},
		{"DOB: 14.04.28\n" + at2026, "1928-04-14", true},
		{"DOB: 14-Apr-28\n" + at2026, "1928-04-14", true},
		{"DOB: 14.04.88\n" + at2026, "1988-04-14", true},
		{"DOB: 14.04.12\n" + at2026, "2012-04-14", true},
		{"DOB: 14.04.20\n" + at2026, "14.04.20", false}, // a child of 5 or a person of 105 years
		{"DOB: 09/14/31\nCollected: 02/01/26\nReported: 02/13/26\n", "1931-09-14", true},
		{"DOB: 09/14/31\n", "09/14/31", false},
		{"DOB: 09/14/61\n", "1961-09-14", true},
		{"DOB: 2031-01-01\n" + at2026, "2031-01-01", false},
		{"DOB: 14/04/2028\n" + at2026, "14/04/2028", false},
		{"DOB: 2026-02-01\n" + at2026, "2026-02-01", true},
	} {
		t.Run(c.head, func(t *testing.T) {
			m := metadataOf(t, c.head)
			require.NotNil(t, m.DOB)
			require.Equal(t, c.want, *m.DOB)
			require.Equal(t, c.sure, m.Evidence["dob"].Confidence >= 0.9)
		})
	}
}

// A text that names two sexes, or has check boxes, names none.
func TestMetadata_genderIsOtherUnlessOneIsPrinted(t *testing.T) {
	for head, want := range map[string]string{
		"Sex: F": "female", "Sex: M": "male", "Gender: F / 37": "female", "Sex (M/F): F": "female", "Sex: Male / Female: F": "female", "Geschlecht: w": "female",
		"Sex: Female 37 y 3 m": "female", "Sexo: Mujer": "female", "Sexo: H": "male", "Sex: Male, 37 years": "male", "Gender (male/female): male": "male",
		"Sex: M/F": "other", "Sex: M / F": "other", "Geschlecht: m/w/d": "other", "Geschlecht: m / w / d": "other", "Sex: male or female": "other", "Sex: male to female transgender": "other",
		"Sex: [ ] Male [X] Female": "other", "Sex: [ ] Male  [X] Female": "other", "Sex: [ ] M [X] F": "other", "Sex: Male [ ] Female [X]": "other", "Sex: D": "other", "Sex: ☐ Male  ☒ Female": "other",
		"Sex: F  Gender: M": "other", "Sex: F\nSex: M": "other",
	} {
		t.Run(head, func(t *testing.T) {
			require.Equal(t, want, metadataOf(t, head+"\n").Gender)
		})
	}
}
