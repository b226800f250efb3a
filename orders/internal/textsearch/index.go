// Package textsearch finds texts by their words, and allows typing errors and abbreviations.
package textsearch

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
)

// abbreviations maps usual abbreviations to phrases: an abbreviation matches a text that has all words of its
// phrase.
var abbreviations = []struct{ phrase, words string }{
	{"alanine aminotransferase", "alt sgpt"},
	{"albumin", "alb"},
	{"alkaline phosphatase", "alp"},
	{"apolipoprotein", "apo"},
	{"aspartate aminotransferase", "ast sgot"},
	{"calcium", "ca"},
	{"carbon dioxide", "co2"},
	{"chloride", "cl"},
	{"cholesterol hdl", "hdlc"},
	{"cholesterol ldl", "ldlc"},
	{"c reactive protein", "crp hscrp"},
	{"creatine kinase", "ck cpk"},
	{"cortisol", "cort"},
	{"dehydroepiandrosterone", "dhea dheas"},
	{"erythrocyte sedimentation", "esr"},
	{"erythrocytes", "rbc red"},
	{"estradiol", "e2"},
	{"follitropin", "fsh"},
	{"fibroblast growth", "fgf"},
	{"gamma glutamyl transferase", "ggt"},
	{"hematocrit", "hct"},
	{"hemoglobin", "hgb hb haemoglobin"},
	{"hemoglobin a1c", "hba1c a1c ghb"},
	{"hepatitis b", "hbv"},
	{"hepatitis c", "hcv"},
	{"hydroxyvitamin", "vitamin vit d 25oh"},
	{"immunoglobulin", "ig"},
	{"iron", "fe"},
	{"lactate dehydrogenase", "ldh"},
	{"leukocytes", "wbc white"},
	{"lutropin", "lh"},
	{"magnesium", "mg"},
	{"phosphate", "phos"},
	{"platelets", "plt"},
	{"potassium", "k"},
	{"prostate specific", "psa"},
	{"sodium", "na"},
	{"thyrotropin", "tsh thyroid"},
	{"thyroxine", "t4"},
	{"triiodothyronine", "t3"},
	{"urea nitrogen", "bun"},
	{"vitamin", "vit"},
}

// Index finds texts by words, and allows typing errors and abbreviations. It is immutable and safe for
// concurrent use.
type Index struct {
	words []string           // every word of any text, without duplicates
	marks []uint64           // the bytes of each word, as bits (see letters)
	in    [][]int32          // indexes of the texts that contain the word
	codes map[string][]int32 // indexes of the texts that have the code, by the folded code
	size  []int              // number of words of each text
}

// Hit is a found text, by its index. A lower cost is a better match; 0 is an exact match of every word or of a code.
type Hit struct{ Text, Cost int }

// New returns an Index of texts. codes returns the codes of the i-th text; [Index.Find] matches a code only as a whole
// and without typing errors.
func New(texts []string, codes func(i int) []string) *Index {
	x := &Index{size: make([]int, len(texts)), codes: map[string][]int32{}}
	place := map[string]int{}
	for i, t := range texts {
		own := Words(t)
		x.size[i] = len(own)
		for _, c := range codes(i) {
			c = healthlab.FoldText(c)
			x.codes[c] = append(x.codes[c], int32(i))
		}
		words := slices.Clone(own)
		if short := Initials(own); short != "" {
			words = append(words, short)
		}
		for _, a := range abbreviations {
			if containsAll(Words(a.phrase), own) {
				words = append(words, strings.Fields(a.words)...)
			}
		}
		for _, w := range words {
			at, known := place[w]
			if !known {
				at = len(x.words)
				place[w] = at
				x.words, x.in, x.marks = append(x.words, w), append(x.in, nil), append(x.marks, letters(w))
			}
			if of := x.in[at]; len(of) == 0 || of[len(of)-1] != int32(i) {
				x.in[at] = append(of, int32(i))
			}
		}
	}
	return x
}

// Find returns the texts that have the code query. If there are none, it returns those that match every word of query,
// the best first; of equal ones, texts of fewer words first, then in the order of New.
func (x *Index) Find(query string) []Hit {
	if of := x.codes[healthlab.FoldText(strings.TrimSpace(query))]; of != nil {
		var hits []Hit
		for _, i := range slices.Compact(slices.Clone(of)) {
			hits = append(hits, Hit{int(i), 0})
		}
		return hits
	}
	words := Words(query)
	if len(words) == 0 {
		return nil
	}
	const never = 1 << 20
	costs := make([]int, len(x.size))
	best := make([]int, len(x.size))
	for _, q := range words {
		for i := range best {
			best[i] = never
		}
		mark, allowed := letters(q), allowedTypos(q)
		for at, w := range x.words {
			if bits.OnesCount64(mark&^x.marks[at]) > allowed {
				continue // more letters are wrong than are forgiven
			}
			if c, ok := cost(q, w, allowed); ok {
				for _, i := range x.in[at] {
					best[i] = min(best[i], c)
				}
			}
		}
		for i, c := range best {
			costs[i] = min(costs[i]+c, never)
		}
	}
	var hits []Hit
	for i, c := range costs {
		if c < never {
			hits = append(hits, Hit{i, c})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(x.size[a.Text], x.size[b.Text]))
	})
	return hits
}

// cost returns how much a query word q differs from a word w of a text: 0 if they are equal, 1 if q is a prefix of w,
// and 1 + 2n for n typing errors. False if there are more than allowed errors.
func cost(q, w string, allowed int) (int, bool) {
	switch {
	case q == w:
		return 0, true
	case len(q) >= 2 && strings.HasPrefix(w, q):
		return 1, true
	}
	if allowed == 0 || len(w)-len(q) > allowed || len(q)-len(w) > allowed {
		return 0, false
	}
	d := typos(q, w, allowed)
	return 1 + 2*d, d <= allowed
}

// allowedTypos returns the number of typing errors that a query word may have: 2 from 8 bytes, 1 from 4 bytes, else 0.
func allowedTypos(word string) int {
	switch {
	case len(word) >= 8:
		return 2
	case len(word) >= 4:
		return 1
	}
	return 0
}

// letters returns the set of the bytes in a word, as bits; different bytes may share a bit.
func letters(word string) uint64 {
	var set uint64
	for i := range len(word) {
		set |= 1 << (word[i] & 63)
	}
	return set
}

// typos returns the number of wrong, missing, extra and swapped bytes between a and b. If it is higher than most, or a
// or b has more than 32 bytes, typos returns most+1.
func typos(a, b string, most int) int {
	const longest = 32
	if len(a) > longest || len(b) > longest {
		return most + 1
	}
	var rows [3][longest + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Words returns the words of a text after [healthlab.FoldText]: runs of letters and digits.
func Words(text string) []string {
	return strings.FieldsFunc(healthlab.FoldText(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Initials returns the first letters of three or more words; empty for fewer words.
func Initials(words []string) string {
	if len(words) < 3 {
		return ""
	}
	var b strings.Builder
	for _, w := range words {
		for _, r := range w {
			b.WriteRune(r)
			break
		}
	}
	return b.String()
}

// containsAll reports whether a text has every word.
func containsAll(words, text []string) bool {
	for _, w := range words {
		if !slices.Contains(text, w) {
			return false
		}
	}
	return true
}
