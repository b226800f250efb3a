package labreport

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// wordFiles hold the words of lab reports, one file a language. A row is a list, a key of
// that list, and words:
//
//	heading   headings of columns, by the role of the column
//	label     labels of the frame of a report, by field
//	value     values in words, by what they mean
//	factor    words that multiply a number
//	guidance  words of lists that say what a value means
//	control   words of rows that show the value of a control sample
//	title     words of titles of reports
//	person    words of headings over the patient's data
//	frame     words that names of analytes do not have
//	stop      words of sentences
//	verb      verbs of sentences
//	usual     words of ranges without a finding
//	language  words that show the language of a report
//
//go:embed data/words/*.csv
var wordFiles embed.FS

// wordRow is a row of a word file.
type wordRow struct {
	language, list, key string
	words               []string
}

// vocabulary has all rows, in the order of the languages.
var vocabulary = func() []wordRow {
	var out []wordRow
	err := fs.WalkDir(wordFiles, "data/words", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := wordFiles.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return fold.ReadCSV(f, []string{"list", "key", "words"}, func(column func(string) string) {
			out = append(out, wordRow{strings.TrimSuffix(path.Base(name), ".csv"), column("list"), column("key"), fold.Split(column("words"))})
		})
	})
	if err != nil {
		panic("labreport: embedded words: " + err.Error())
	}
	return out
}()

// wordsBy returns the words of a list of the word files, each with the value that keys has for the key of the word.
// Words with other keys are left out.
func wordsBy[K any](list string, keys map[string]K) map[string]K {
	out := map[string]K{}
	for _, row := range vocabulary {
		key, ok := keys[row.key]
		if row.list != list || !ok {
			continue
		}
		for _, w := range row.words {
			if _, taken := out[w]; !taken {
				out[w] = key
			}
		}
	}
	return out
}

func words(list string) map[string]bool { return wordsBy(list, map[string]bool{"": true}) }

// languageWords maps words to the language that they identify, or to "several" if more than one language has the
// word.
var languageWords = func() map[string]string {
	out := map[string]string{}
	for _, row := range vocabulary {
		if row.list != "language" {
			continue
		}
		for _, w := range row.words {
			if out[w] != "" && out[w] != row.language {
				out[w] = "several"
			} else {
				out[w] = row.language
			}
		}
	}
	return out
}()

// languages are the supported languages, English first.
var languages = func() []string {
	out := []string{"en"}
	for _, row := range vocabulary {
		if !slices.Contains(out, row.language) {
			out = append(out, row.language)
		}
	}
	return out
}()
