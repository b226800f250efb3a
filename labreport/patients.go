package labreport

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// severalPatients reports whether the labelled names or birth dates of a document belong to different persons. On
// pictures one wrong letter or digit is no contradiction.
func (m *metaReader) severalPatients(pages []Page) bool {
	for _, of := range []struct {
		field    metaField
		conflict func(a, b found, image bool) bool
	}{{fDOB, differentBirthDates}, {fName, m.differentNames}, {fFirst, m.differentNames}, {fLast, m.differentNames}} {
		list := m.fields[of.field]
		for i, a := range list {
			if slices.ContainsFunc(list[i+1:], func(b found) bool { return of.conflict(a, b, pages[a.page].Image || pages[b.page].Image) }) {
				return true
			}
		}
	}
	return false
}

// differentBirthDates reports whether two texts are different dates in each order of day and month that they allow.
// Dates of pictures must differ in two of day, month and year.
func differentBirthDates(a, b found, image bool) bool {
	least := 1
	if image {
		least = 2
	}
	for _, order := range []dayOrder{dayFirst, monthFirst} {
		for _, other := range []dayOrder{dayFirst, monthFirst} {
			x, _, sureX := findDate(a.text, order)
			y, _, sureY := findDate(b.text, other)
			if !sureX || !sureY {
				return false
			}
			differ := 0
			for i := 2; i < len(x); i += 3 { // without the century
				if x[i:i+2] != y[i:i+2] {
					differ++
				}
			}
			if differ < least {
				return false
			}
		}
	}
	return true
}

// differentNames reports whether two names with the same label, a colon and a cell of their own are those of different
// persons. A label that does not say whose name it is, such as "Name:", may also announce a physician: its names
// contradict each other only on pages that have no name in common.
func (m *metaReader) differentNames(a, b found, image bool) bool {
	if a.label != b.label || !patientName(a) || !patientName(b) || sameName(a.text, b.text, image) {
		return false
	}
	if slices.ContainsFunc(strings.Fields(a.label), func(w string) bool { return patientWords[w] }) {
		return true
	}
	elsewhere := func(text string, page int) bool {
		return slices.ContainsFunc(slices.Concat(m.fields[fName], m.fields[fFirst], m.fields[fLast]), func(f found) bool {
			return f.page == page && sameName(f.text, text, image)
		})
	}
	return a.page != b.page && !elsewhere(a.text, b.page) && !elsewhere(b.text, a.page)
}

// patientWords are words in labels of the patient's name.
var patientWords = fold.Set("patient patientin patientenname patiente paciente pat pt")

func patientName(f found) bool {
	// A title or degree may be that of a physician.
	return f.weight >= 2.5 && !reLabWord.MatchString(f.text) &&
		!slices.ContainsFunc(fold.Words(f.text), func(w string) bool { return degrees[w] })
}

var degrees = fold.Set("dr dra prof med md do phd dnp np pa rn mbbs frcpath")

// sameName reports whether one name has all words of the other, in any order. Initials do not count, and "Anne-Marie"
// is "Annemarie". On a picture one common word is enough.
func sameName(a, b string, image bool) bool {
	x, y := nameWords(a), nameWords(b)
	common := 0
	for _, w := range x {
		if slices.Contains(y, w) || slices.Contains(neighboursJoined(y), w) {
			common++
		}
	}
	back := 0
	for _, w := range y {
		if slices.Contains(x, w) || slices.Contains(neighboursJoined(x), w) {
			back++
		}
	}
	return common == len(x) || back == len(y) || image && common+back > 0
}

func nameWords(s string) []string {
	return slices.DeleteFunc(fold.Words(umlauts.Replace(fold.String(personName(s)))), func(w string) bool { return len(w) < 2 || suffixes[w] })
}

// umlauts replaces the two letters for an umlaut by the letter without accent, which is its form after folding.
var umlauts = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

var suffixes = fold.Set("jr sr ii iii iv")

func neighboursJoined(words []string) (out []string) {
	for i := 1; i < len(words); i++ {
		out = append(out, words[i-1]+words[i])
	}
	return out
}

// otherPersons are words for persons other than the patient. A label after such a word has data of that person:
// "Mother's name", "Physician name".
var otherPersons = fold.Set(`mother father parent partner spouse husband wife guarantor guardian insured subscriber policyholder physician doctor provider clinician practitioner contact
	mutter vater partnerin versicherten arzt madre padre pareja medico mere pere conjoint medecin`)

func ofOtherPerson(l *line, i int) bool {
	return i > 0 && !l.tokens[i].gap && slices.ContainsFunc(fold.Words(l.tokens[i-1].text), func(w string) bool { return otherPersons[w] })
}
