package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// longest is how many letters in a row healthlab.order_grams takes.
const longest = 3

// gram returns what healthlab.order_grams makes of some letters of a team's names.
func gram(team healthlab.TeamID, letters string) int32 {
	sum := sha256.Sum256(append(team.UUID[:], letters...))
	return int32(binary.BigEndian.Uint32(sum[:]))
}

// gramsIn returns what every name has that holds a text in lower case: the text in parts
// that lie side by side, for few of them are read in less time and find hardly more; nil
// for no text.
func gramsIn(team healthlab.TeamID, text string) []int32 {
	letters := []rune(text)
	var out []int32
	for n, i := min(len(letters), longest), 0; i < len(letters); i += n {
		at := min(i, len(letters)-n) // the last may overlap
		out = append(out, gram(team, string(letters[at:at+n])))
	}
	return out
}

// lastName returns the first letters of what is looked for in names, in lower case, with
// which the last name may begin; empty if there are too few of them.
func lastName(q *orders.Query) string {
	for _, text := range namesIn(q) {
		if letters := []rune(text); len(letters) >= longest && !unicode.IsDigit(letters[0]) {
			return string(letters[:longest])
		}
	}
	return ""
}

// namesIn are the texts in lower case that a list looks for in names: what is searched
// only if no names are asked for, for it may be a birth date.
func namesIn(q *orders.Query) []string {
	if q.PatientName == "" && q.Recipient == "" {
		return []string{strings.ToLower(q.Search)}
	}
	return []string{strings.ToLower(q.PatientName), strings.ToLower(q.Recipient)}
}

// nameGrams returns what every order has that has the names, and the method, of a list.
func nameGrams(q *orders.Query) []int32 {
	grams := methodGrams(q)
	for _, text := range namesIn(q) {
		grams = append(grams, gramsIn(q.Team, text)...)
	}
	return grams
}

// elsewhereGram is what three letters are known as of those whose last name does not begin
// with them.
func elsewhereGram(letters string) string { return "+" + letters }

// bornGram is what the beginning of a birth date is known as.
func bornGram(start string) string { return "#" + start }

// methodGrams returns what every order has of the one method that a list asks for; nil if
// it asks for none, or for several.
func methodGrams(q *orders.Query) []int32 {
	if len(q.Methods) != 1 {
		return nil
	}
	return []int32{gram(q.Team, "@"+string(q.Methods[0]))}
}
