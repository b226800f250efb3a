package orders

import (
	"slices"
	"strings"
	"unicode"
)

// MaxSortedByName is how many matches a list can sort by the patient's name: a Store that
// encrypts names decrypts and sorts those of all matches.
const MaxSortedByName = 5000

// Names and birth dates are found by terms: a store that encrypts them keeps one token for
// each term and compares tokens (see personkey). A term is the kind of the text and a word,
// or the beginning of a word, of at least termLetters letters.
const (
	termPatient   = "patient "
	termRecipient = "recipient "
	termBorn      = "born "
	termLetters   = 3
)

// SearchTerms returns the terms by which an order is found, each once.
func SearchTerms(o *Order) []string {
	var born string
	if o.PatientDetails != nil {
		born = o.PatientDetails.DOB.String()
	}
	return slices.Concat(termsOf(termPatient, o.PatientDetails.Name()), termsOf(termRecipient, o.Recipient()), bornTerms(born))
}

// SearchTerms returns the terms by which a result is found, each once.
func (r *RawResult) SearchTerms() []string {
	return slices.Concat(termsOf(termPatient, r.ReportedName()), bornTerms(r.ReportedDOB()))
}

// termsOf returns the words of a text and their beginnings.
func termsOf(kind, text string) []string {
	var out []string
	for _, w := range searchWords(text) {
		letters := []rune(w)
		for n := termLetters; n < len(letters); n++ {
			out = append(out, kind+string(letters[:n]))
		}
		out = append(out, kind+w)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bornTerms returns the year, the month and the day of a birth date as YYYY-MM-DD.
func bornTerms(date string) []string {
	year, rest, ok := strings.Cut(date, "-")
	month, _, whole := strings.Cut(rest, "-")
	if !ok || !whole {
		return nil
	}
	return []string{termBorn + year, termBorn + year + "-" + month, termBorn + date}
}

// searchWords returns the words of a text in lower case: letters, marks and digits.
func searchWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

// wanted returns the terms that a row has if its name has all words of a text. A text without
// words is found nowhere.
func wanted(kind, text string) []string {
	words := searchWords(text)
	if len(words) == 0 {
		return []string{kind}
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = kind + w
	}
	return out
}

// Terms returns the terms of PatientName and Recipient: an order that matches has all of
// them. Empty if the query names neither.
func (q *Query) Terms() []string {
	var out []string
	if q.PatientName != "" {
		out = wanted(termPatient, q.PatientName)
	}
	if q.Recipient != "" {
		out = append(out, wanted(termRecipient, q.Recipient)...)
	}
	return out
}

// SearchTerms returns lists of terms: an order that matches Search by a name or the birth date
// has all terms of at least one list. Empty if the query has no Search.
func (q *Query) SearchTerms() [][]string {
	if q.Search == "" {
		return nil
	}
	return [][]string{wanted(termPatient, q.Search), wanted(termRecipient, q.Search), {termBorn + q.Search}}
}

// SearchTerms is that of [Query], for results.
func (q *ResultQuery) SearchTerms() [][]string {
	if q.Search == "" {
		return nil
	}
	return [][]string{wanted(termPatient, q.Search), {termBorn + q.Search}}
}

// hasAll reports whether terms has all of the wanted ones.
func hasAll(terms, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(terms, w) })
}

// hasOne reports whether terms has all of at least one of the lists, or there are none.
func hasOne(terms []string, lists [][]string) bool {
	return len(lists) == 0 || slices.ContainsFunc(lists, func(l []string) bool { return hasAll(terms, l) })
}
