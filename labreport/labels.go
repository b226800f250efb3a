package labreport

import (
	"github.com/healthlab-dev/healthlab/internal/fold"
)

// metaField is what a label of the frame of a report announces.
type metaField uint8

const (
	noField metaField = iota
	fName
	fFirst
	fLast
	fDOB
	fSex
	fCollected
	fReported
	fSpecimen
	fLab
	fIgnore
)

// labelFields are the fields that labels announce, as the word files name them.
var labelFields = map[string]metaField{"name": fName, "first_name": fFirst, "last_name": fLast, "birth_date": fDOB, "sex": fSex, "collected": fCollected,
	"reported": fReported, "specimen_number": fSpecimen, "laboratory": fLab, "other": fIgnore}

// labelWords are labels, folded.
var labelWords = wordsBy("label", labelFields)

// titleWords make titles of documents and of their parts.
var titleWords = words("title")

// languageOf guesses the language of a document's frame from its labels and
// headings.
func languageOf(lines []line) string {
	votes := map[string]int{}
	for i := range lines {
		for _, t := range lines[i].tokens {
			for _, w := range fold.Words(t.text) {
				if l := languageWords[w]; l != "" {
					votes[l]++
				}
			}
		}
	}
	best, most := "", 0
	for _, l := range languages {
		if votes[l] > most {
			best, most = l, votes[l]
		}
	}
	return best
}
