package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// An apostrophe is none of the letters of a name, whatever character writes it, on either side.
func TestReportedPatient_apostrophesOfEveryKindAreEqual(t *testing.T) {
	born := healthlab.Date{Year: 1985, Month: 2, Day: 3}
	kinds := []string{"", " ", "'", "’", "‘", "‛", "`", "´", "ʼ", "ʻ", "ʽ", "ʾ", "ʿ", "ʹ", "ˈ", "ˊ", "ˋ", "′", "＇", "ꞌ", "Ꞌ", "\"", "-", "‐", "\u2011", "–", "\u00ad", "\u00a0"}
	for _, a := range kinds {
		for _, b := range kinds {
			first, last := "Siobhán", "O"+a+"Brien"
			of := &people.PatientDetails{FirstName: &first, LastName: &last, DOB: born, Gender: people.Female}
			p := orders.ReportedPatient{FirstName: "SIOBHAN", LastName: "O" + b + "BRIEN", DOB: born}
			require.True(t, p.SamePerson(of), "%+q %+q", a, b)
		}
	}
}

// Names are compared by their letters and digits; no near spelling and no nickname is equal.
func TestReportedPatient_namesAreComparedByLettersAndDigits(t *testing.T) {
	born := healthlab.Date{Year: 1985, Month: 2, Day: 3}
	for _, tc := range []struct {
		name        string
		first, last string
		reported    orders.ReportedPatient
		differs     bool
	}{
		{"case", "Ana", "Roe", orders.ReportedPatient{FirstName: "ANA", LastName: "ROE"}, false},
		{"marks", "José", "Muñoz", orders.ReportedPatient{FirstName: "JOSE", LastName: "MUNOZ"}, false},
		{"apostrophes", "Siobhán", "O’Brien", orders.ReportedPatient{FirstName: "SIOBHAN", LastName: "O'BRIEN"}, false},
		{"spaces", "Anne-Marie", "de la Cruz", orders.ReportedPatient{FirstName: "ANNE MARIE", LastName: "DELACRUZ"}, false},
		{"given and second name together", "Anne-Marie", "Roe", orders.ReportedPatient{FirstName: "Anne", SecondName: "Marie", LastName: "Roe"}, false},
		{"a further second name", "Anne", "Roe", orders.ReportedPatient{FirstName: "Anne", SecondName: "Marie", LastName: "Roe", Suffix: "Jr"}, false},
		{"two given names of one", "Anne", "Roe", orders.ReportedPatient{FirstName: "Anne Marie", LastName: "Roe"}, true},
		{"a twin", "Maria", "Roe", orders.ReportedPatient{FirstName: "Martha", LastName: "Roe"}, true},
		{"a shortened name", "Maria", "Roe", orders.ReportedPatient{FirstName: "Mar", LastName: "Roe"}, true},
		{"a nickname", "Robert", "Roe", orders.ReportedPatient{FirstName: "Bob", LastName: "Roe"}, true},
		{"near spelling", "Ana", "Rowe", orders.ReportedPatient{FirstName: "Ana", LastName: "Powe"}, true},
		{"a letter without a decomposition", "Søren", "Roe", orders.ReportedPatient{FirstName: "Soren", LastName: "Roe"}, true},
		{"transliteration", "Jürgen", "Roe", orders.ReportedPatient{FirstName: "Juergen", LastName: "Roe"}, true},
		{"given and family name exchanged", "Ana", "Roe", orders.ReportedPatient{FirstName: "Roe", LastName: "Ana"}, true},
		{"letters that move between the names", "Ana", "Broe", orders.ReportedPatient{FirstName: "Ana B", LastName: "roe"}, true},
		{"letters that move within the whole name", "Ana", "Broe", orders.ReportedPatient{FullName: "Ana B Roe"}, true},
		{"the whole name", "José", "de la Cruz", orders.ReportedPatient{FullName: "JOSE DE LA CRUZ"}, false},
		{"the whole name with a space for a hyphen", "Anne-Marie", "Roe", orders.ReportedPatient{FullName: "ANNE MARIE ROE"}, false},
		{"the whole name without a hyphen", "Anne-Marie", "Roe", orders.ReportedPatient{FullName: "ANNEMARIE ROE"}, false},
		{"the whole name with a hyphen for a space", "Ana", "García Márquez", orders.ReportedPatient{FullName: "Ana Garcia-Marquez"}, false},
		{"the whole name with a space for an apostrophe", "Siobhán", "O’Brien", orders.ReportedPatient{FullName: "SIOBHAN O BRIEN"}, false},
		{"the whole name without spaces of the family name", "José", "de la Cruz", orders.ReportedPatient{FullName: "JOSE DELACRUZ"}, false},
		{"the whole name in one word", "Ana", "Roe", orders.ReportedPatient{FullName: "ANAROE"}, true},
		{"the whole name with a word more", "Ana", "Roe", orders.ReportedPatient{FullName: "ANA ROE POE"}, true},
		{"the whole name with a word less", "Ana", "Roe Poe", orders.ReportedPatient{FullName: "ANA ROE"}, true},
		{"the whole name, family name first", "Ana", "Roe", orders.ReportedPatient{FullName: "ROE ANA"}, true},
		{"the whole name of a twin", "Ana", "Roe", orders.ReportedPatient{FullName: "ANNA ROE"}, true},
		{"sharp s", "Jörg", "Groß", orders.ReportedPatient{FirstName: "JORG", LastName: "GROSS"}, false},
		{"capital sharp s", "Jörg", "Groß", orders.ReportedPatient{FirstName: "JÖRG", LastName: "GROẞ"}, false},
		{"NFD", "Zoë", "Roe", orders.ReportedPatient{FirstName: "Zoe\u0308", LastName: "ROE"}, false},
		{"dotted I", "İpek", "Roe", orders.ReportedPatient{FirstName: "IPEK", LastName: "ROE"}, false},
		{"dotless i is a letter of its own", "Işık", "Roe", orders.ReportedPatient{FirstName: "ISIK", LastName: "ROE"}, true},
		{"double family name against one", "Ana", "García Márquez", orders.ReportedPatient{FirstName: "Ana", LastName: "GARCIA"}, true},
		{"invisible marks", "Ana", "Roe", orders.ReportedPatient{FirstName: "\ufeffA\u00adna\u200d", LastName: "\u202aRoe\u202c"}, false},
		{"full width", "Ana", "Roe", orders.ReportedPatient{FirstName: "Ａｎａ", LastName: "Ｒｏｅ"}, false},
		{"vowel signs", "राम", "Roe", orders.ReportedPatient{FirstName: "रोम", LastName: "Roe"}, true},
		{"an initial that is the last letter of the name", "Jana", "Roe", orders.ReportedPatient{FirstName: "Jan", SecondName: "A.", LastName: "Roe"}, true},
		{"an initial", "Jan", "Roe", orders.ReportedPatient{FirstName: "Jan", SecondName: "A.", LastName: "Roe"}, false},
		{"an initial that the order has", "Jan A.", "Roe", orders.ReportedPatient{FirstName: "Jan", SecondName: "A", LastName: "Roe"}, false},
		{"the family name alone", "Ana", "Roe", orders.ReportedPatient{LastName: "Roe"}, false},
		{"another family name alone", "Ana", "Roe", orders.ReportedPatient{LastName: "Poe"}, true},
		{"nothing", "Ana", "Roe", orders.ReportedPatient{}, false},
		{"the birth date", "Ana", "Roe", orders.ReportedPatient{DOB: born}, false},
		{"another birth date", "Ana", "Roe", orders.ReportedPatient{DOB: healthlab.Date{Year: 1985, Month: 3, Day: 2}}, true},
		{"the month of birth", "Ana", "Roe", orders.ReportedPatient{DOBText: "198502"}, false},
		{"another month of birth", "Ana", "Roe", orders.ReportedPatient{DOBText: "198503"}, true},
		{"half a day", "Ana", "Roe", orders.ReportedPatient{DOBText: "1985020"}, true},
		{"male", "Ana", "Roe", orders.ReportedPatient{Gender: people.Male}, true},
		{"another gender", "Ana", "Roe", orders.ReportedPatient{Gender: people.OtherGender}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			of := &people.PatientDetails{FirstName: &tc.first, LastName: &tc.last, DOB: born, Gender: people.Female}
			require.Equal(t, tc.differs, tc.reported.Contradicts(of))
			require.False(t, tc.reported.Contradicts(nil))
			require.False(t, tc.reported.Contradicts(&people.PatientDetails{}), "what the order lacks contradicts nothing")
			require.False(t, orders.ReportedAs(of).Contradicts(of))
			require.True(t, orders.ReportedAs(of).Matches(of))
			p := tc.reported
			whole := p.FirstName != "" && p.LastName != "" || p.FullName != ""
			require.Equal(t, !tc.differs && (whole || !p.DOB.IsZero()), p.Matches(of))
		})
	}
}
