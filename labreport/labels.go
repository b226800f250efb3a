package labreport

import (
	"github.com/healthlab-dev/healthlab/internal/fold"
)

// metaField is the kind of data that a label such as "Date of birth" announces on a report.
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

// labelFields maps the keys of the list "label" in the word files (data/words) to the fields of the metadata.
var labelFields = map[string]metaField{"name": fName, "first_name": fFirst, "last_name": fLast, "birth_date": fDOB, "sex": fSex, "collected": fCollected,
	"reported": fReported, "specimen_number": fSpecimen, "laboratory": fLab, "other": fIgnore}

// labelWords maps printed labels, in lower case without accents, to the fields that they announce.
var labelWords = wordsBy("label", labelFields)

// titleWords are words in titles of documents and their parts.
var titleWords = words("title")

// languageOf returns the probable language of a document by its labels and headings.
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
