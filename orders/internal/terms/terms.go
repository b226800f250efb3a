// Package terms answers the question: by which words is a name or a birth date found?
//
// A store that encrypts names and birth dates keeps one token for each term and compares tokens (see package
// personkey). A term is the kind of the text and a word, or the beginning of a word, of at least three letters.
package terms

import (
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
)

// Kinds of search terms, as prefixes of the terms.
const (
	Patient   = "patient "
	Recipient = "recipient "
	BirthDate = "born "
)

// minLetters is the length of the shortest prefix of a word that is a term.
const minLetters = 3

// Of returns the search terms of a text, without duplicates: each of its words, and each prefix of a word that has at
// least three letters. Each term begins with kind.
func Of(kind, text string) []string {
	var out []string
	for _, w := range words(text) {
		letters := []rune(w)
		for n := minLetters; n < len(letters); n++ {
			out = append(out, kind+string(letters[:n]))
		}
		out = append(out, kind+w)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Born returns the search terms of a birth date YYYY-MM-DD: YYYY, YYYY-MM and YYYY-MM-DD, each after [BirthDate]. Text
// of another form has none.
func Born(date string) []string {
	year, rest, ok := strings.Cut(date, "-")
	month, _, whole := strings.Cut(rest, "-")
	if !ok || !whole {
		return nil
	}
	return []string{BirthDate + year, BirthDate + year + "-" + month, BirthDate + date}
}

// Wanted returns the terms that a name must have to match all words of a search text, each after kind. For a text
// without words it returns a term that no name has.
func Wanted(kind, text string) []string {
	found := words(text)
	if len(found) == 0 {
		return []string{kind}
	}
	out := make([]string, len(found))
	for i, w := range found {
		out[i] = kind + w
	}
	return out
}

func words(text string) []string {
	return strings.FieldsFunc(healthlab.FoldText(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

// HaveAll reports whether terms contains all wanted terms.
func HaveAll(terms, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(w string) bool { return !slices.Contains(terms, w) })
}

// HaveOne reports whether terms contains all terms of at least one list, or there is no list.
func HaveOne(terms []string, lists [][]string) bool {
	return len(lists) == 0 || slices.ContainsFunc(lists, func(l []string) bool { return HaveAll(terms, l) })
}
