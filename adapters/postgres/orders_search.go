package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// longest is how many letters in a row order_search knows.
const longest = 3

// gram returns what order_search knows some letters of a team's names by. The migration
// that made the table says how, too.
func gram(team healthlab.TeamID, letters string) int32 {
	sum := sha256.Sum256(append(team.UUID[:], letters...))
	return int32(binary.BigEndian.Uint32(sum[:]))
}

// gramsOf returns what an order is found by: its names, in lower case, and the patient's
// birth date.
func gramsOf(team healthlab.TeamID, name, recipient, birth string) []int32 {
	out := []int32{}
	for _, text := range []string{name, recipient} {
		letters := []rune(text)
		for n := 1; n <= longest; n++ {
			for i := range len(letters) - n + 1 {
				out = append(out, gram(team, string(letters[i:i+n])))
			}
		}
	}
	for n := range len(birth) {
		out = append(out, gram(team, bornGram(birth[:n+1])))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gramsIn returns what every name has that holds a text in lower case; nil for no text.
func gramsIn(team healthlab.TeamID, text string) []int32 {
	letters := []rune(text)
	if len(letters) == 0 {
		return nil
	}
	var out []int32
	for n, i := min(len(letters), longest), 0; i+n <= len(letters); i++ {
		out = append(out, gram(team, string(letters[i:i+n])))
	}
	return out
}

// bornGram is what the beginning of a birth date is known as.
func bornGram(start string) string { return "#" + start }
