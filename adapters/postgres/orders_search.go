package postgres

import (
	"crypto/sha256"
	"encoding/binary"

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
