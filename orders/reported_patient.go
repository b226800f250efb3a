package orders

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// ReportedPatient is the patient of a result as the laboratory reported it. Unknown fields are empty. Printing
// or logging it shows nothing.
type ReportedPatient struct {
	healthlab.Private

	// FirstName is the given name and LastName the family name.
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	// SecondName has second and further given names, and Suffix a suffix such as Jr.
	SecondName string `json:"second_name,omitempty"`
	Suffix     string `json:"suffix,omitempty"`
	// FullName is the full name, given name first, if the laboratory does not report its parts; the other name fields
	// are empty then.
	FullName string `json:"full_name,omitempty"`
	// DOB is the birth date. DOBText is the reported text if it cannot be read as one day: a year (YYYY), a
	// month (YYYYMM), or another text.
	DOB     healthlab.Date `json:"dob,omitzero"`
	DOBText string         `json:"dob_text,omitempty"`
	// Gender is empty if the laboratory did not report it.
	Gender people.Gender `json:"gender,omitempty"`
}

// ReportedAs returns the patient of an order in the form of a report; nil for an order without a patient.
func ReportedAs(p *people.PatientDetails) *ReportedPatient {
	if p == nil {
		return nil
	}
	return &ReportedPatient{FirstName: rules.TextOf(p.FirstName), LastName: rules.TextOf(p.LastName), DOB: p.DOB, Gender: p.Gender}
}

// Matches reports whether the reported full name or birth date equals that of the patient, and no reported field
// contradicts the patient. Package exchange uses this rule for results that name the order by one of its ids. A backend
// uses it to separate the reports of one order about different people, not to assign reports to orders.
func (p ReportedPatient) Matches(of *people.PatientDetails) bool {
	return p.compareWith(of).matches()
}

// Contradicts reports whether a reported name, birth date or gender differs from that of the patient. A field
// that either side lacks contradicts nothing. It is pure.
func (p ReportedPatient) Contradicts(of *people.PatientDetails) bool {
	return p.compareWith(of).differs
}

// SamePerson reports whether both the reported full name and the birth date equal those of the patient, and no reported
// field contradicts the patient.
func (p ReportedPatient) SamePerson(of *people.PatientDetails) bool {
	c := p.compareWith(of)
	return c.name && c.born && !c.differs
}

// comparison is the result of comparing a reported patient with that of an order.
type comparison struct {
	// differs is true if a reported field contradicts the order's patient.
	differs bool
	// name and born are true if the reported full name or the reported birth date, respectively, equals that of the
	// order.
	name, born bool
}

func (c comparison) matches() bool { return (c.name || c.born) && !c.differs }

// compareWith compares the fields of a reported patient with those of an order's patient.
//
// Two names are equal if their letters and digits are equal after [healthlab.FoldText]. The reported given name matches
// the order's given name alone, or together with the reported second name. A second name of one letter is an initial:
// it counts as part of the given name only if the order's given name has it as a word. FullName matches if its letters
// are those of the order's given name followed by the family name, and if the order has a space or another mark at each
// space of FullName. Other second names and suffixes that the order does not have contradict nothing. Of genders, only
// female and male contradict each other.
func (p ReportedPatient) compareWith(of *people.PatientDetails) comparison {
	if of == nil {
		return comparison{}
	}
	var c comparison
	contradict := func(differs bool) { c.differs = c.differs || differs }

	given, family := plainName(rules.TextOf(of.FirstName)), plainName(rules.TextOf(of.LastName))
	if whole := nameWords(p.FullName); len(whole) > 0 && given != "" && family != "" {
		c.name = sameWholeName(whole, rules.TextOf(of.FirstName), rules.TextOf(of.LastName))
		contradict(!c.name)
	} else {
		first, last := plainName(p.FirstName), plainName(p.LastName)
		sameGiven := first == given || sameGivenNames(first, plainName(p.SecondName), rules.TextOf(of.FirstName))
		contradict(first != "" && given != "" && !sameGiven)
		contradict(last != "" && family != "" && last != family)
		c.name = first != "" && sameGiven && last != "" && last == family
	}

	switch {
	case of.DOB.IsZero():
	case !p.DOB.IsZero():
		c.born = p.DOB == of.DOB
		contradict(!c.born)
	case p.DOBText != "":
		contradict(!partOfDay(p.DOBText, of.DOB))
	}

	known := func(g people.Gender) bool { return g == people.Female || g == people.Male }
	contradict(known(p.Gender) && known(of.Gender) && p.Gender != of.Gender)
	return c
}

func partOfDay(text string, day healthlab.Date) bool {
	whole := strings.ReplaceAll(day.String(), "-", "")
	return (len(text) == len("YYYY") || len(text) == len("YYYYMM")) && strings.HasPrefix(whole, text)
}

// plainName returns the letters and digits of a name after [healthlab.FoldText], for comparisons. Vowel signs that
// follow a letter are letters, and apostrophes are none, whatever character writes them.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if isNameLetter(r) {
			return r
		}
		return -1
	}, healthlab.FoldText(name))
}

func isNameLetter(r rune) bool {
	if unicode.IsDigit(r) {
		return true
	}
	return unicode.In(r, unicode.Letter, unicode.Other_Alphabetic) && !unicode.Is(apostrophes, r)
}

// apostrophes are the letters of Unicode that are typed as or for an apostrophe: primes, apostrophes, the Hawaiian
// okina, half rings, the accents that stand alone, and the saltillo.
var apostrophes = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x02b9, Hi: 0x02bf, Stride: 1}, {Lo: 0x02c8, Hi: 0x02c8, Stride: 1}, {Lo: 0x02ca, Hi: 0x02cb, Stride: 1}, {Lo: 0xa78b, Hi: 0xa78c, Stride: 1},
}}

// nameWords returns the words of a name, each in the form of plainName.
func nameWords(name string) []string {
	var out []string
	for _, w := range strings.Fields(name) {
		if w = plainName(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func namePieces(name string) []string {
	return strings.FieldsFunc(healthlab.FoldText(name), func(r rune) bool { return !isNameLetter(r) })
}

func sameGivenNames(first, second, given string) bool {
	if utf8.RuneCountInString(second) == 1 { // an initial
		return slices.Equal(nameWords(given), []string{first, second})
	}
	return first+second == plainName(given)
}

// sameWholeName reports whether whole, the words of a reported full name, are the given and family name of the order. A
// reported word may join several words of one of the two names, but not of both. It must not have a part of a word.
func sameWholeName(whole []string, given, family string) bool {
	for _, name := range []string{given, family} {
		for pieces := namePieces(name); len(pieces) > 0; whole = whole[1:] {
			if len(whole) == 0 {
				return false
			}
			word := ""
			for len(pieces) > 0 && len(word) < len(whole[0]) {
				word, pieces = word+pieces[0], pieces[1:]
			}
			if word != whole[0] {
				return false
			}
		}
	}
	return len(whole) == 0
}

// Identifiable reports whether a name and a birth date are reported.
func (p ReportedPatient) Identifiable() bool {
	return plainName(p.FirstName+p.LastName+p.FullName) != "" && !p.DOB.IsZero()
}
