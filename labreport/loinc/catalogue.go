package loinc

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Term is one entry of a catalogue of laboratory terms.
type Term struct {
	// Code is the LOINC code with its check digit: "2345-7".
	Code string
	// Name is the official long name.
	Name string
	// Display is a short label; it may be empty.
	Display string
	// Component, Property, System and Scale are the parts of a LOINC name that matching uses. System is in words
	// ("serum/plasma", "urine") or in LOINC's own abbreviations ("Ser/Plas", "Ur"); Scale is Qn, Ord, Nom and so
	// on.
	Component, Property, System, Scale string
	// Units are examples of units in UCUM.
	Units []string
	// Names are other names, in any language.
	Names []string
	// Rank is the frequency of the term, 1 for the most common; 0 if unknown.
	Rank int
}

// Found is a possible term of a printed name.
type Found struct {
	Term *Term
	// Likeness is how well the name matches, 0 to 1; 1 is exactly one of the term's names.
	Likeness float64
}

// Catalogue finds the possible terms of a printed name of an analyte.
//
// Find returns the possible terms, best match first, ties by rank and then by code; none if no term has a similar
// name. It uses only the name: the caller considers unit, specimen and kind of value. The caller must not change the
// terms. Implementations are safe for concurrent use. If Find fails, the results of a report have no match status,
// and reading the report does not fail.
//
// Term returns the term with a code. It returns [healthlab.NotFound] if the catalogue does not have the code.
type Catalogue interface {
	Find(name string) ([]Found, error)
	Term(code string) (*Term, error)
}

//go:embed data/loinc_common.csv
var loincCSV string

//go:embed data/loinc_more.csv
var moreCSV string

//go:embed data/names.csv
var namesCSV string

// License is the licence of the embedded terms. A program that shows licences must show it.
//
//go:embed data/LOINC_LICENSE.txt
var License string

// Notices names the authors of the embedded tables, with their terms. Show it together with [License].
//
//go:embed data/NOTICES.md
var Notices string

// Embedded returns the catalogue that comes with the package: about 1,100 common
// laboratory terms with names in English, German, Spanish and French. It is built
// on first use, immutable and shared.
func Embedded() *Table { return embedded() }

var embedded = sync.OnceValue(func() *Table {
	terms, err := readCommon(strings.NewReader(namesCSV), strings.NewReader(loincCSV), strings.NewReader(moreCSV))
	if err != nil {
		panic("labreport: embedded catalogue: " + err.Error())
	}
	t, err := NewTable(terms)
	if err != nil {
		panic("labreport: embedded catalogue: " + err.Error())
	}
	return t
})

// Table is a catalogue in memory. It is immutable and safe for concurrent use.
type Table struct {
	terms []Term
	byKey map[string][]entry
	// grams maps each trigram of a key to the indexes in keys of the keys that contain it, to find similar names.
	grams map[string][]int32
	keys  []string
	// squeezed are the names without spaces and with similar letters and digits made equal, to find misread
	// names such as "HbA1c" and "Plaquettes".
	squeezed map[string][]entry
}

func squeeze(name string) string {
	return fold.Shape(strings.Join(fold.Words(name), ""))
}

// entry is a term, by its index in the table, under one of its names, with a weight of at most 1 for the name.
type entry struct {
	term   int
	weight float64
}

// NewTable returns a catalogue of the terms. It returns [healthlab.Invalid] if the check digit of a code is
// wrong or a code occurs twice.
func NewTable(terms []Term) (*Table, error) {
	t := &Table{terms: slices.Clone(terms), byKey: make(map[string][]entry, len(terms)*4), grams: map[string][]int32{}, squeezed: map[string][]entry{}}
	seen := make(map[string]int, len(terms))
	for i := range t.terms {
		term := &t.terms[i]
		if !ValidCode(term.Code) {
			return nil, fmt.Errorf("%w: terms[%d].Code: must be a LOINC code with its check digit, such as 2345-7", healthlab.Invalid, i)
		}
		if first, ok := seen[term.Code]; ok {
			return nil, fmt.Errorf("%w: terms[%d].Code: must be unique; terms[%d] has the same code", healthlab.Invalid, i, first)
		}
		seen[term.Code] = i
		for n, name := range term.Names {
			// Names are listed best first.
			t.add(i, name, 1-min(0.03, 0.003*float64(n)))
		}
		t.add(i, strings.ReplaceAll(term.Component, ".", " "), 0.93)
		t.add(i, term.Name, 1)
		if term.Display != "" {
			t.add(i, term.Display, 1)
		}
	}
	for key := range t.byKey {
		t.keys = append(t.keys, key)
	}
	slices.Sort(t.keys)
	for n, key := range t.keys {
		for g := range trigrams(key) {
			t.grams[g] = append(t.grams[g], int32(n))
		}
	}
	return t, nil
}

// add adds a name of the term with index term, and with a lower weight the name without its noiseWords.
func (t *Table) add(term int, name string, weight float64) {
	key := Key(name)
	if len(key) == 0 {
		return
	}
	t.note(strings.Join(key, " "), term, weight)
	if tight := squeeze(name); len(tight) >= 4 {
		t.squeezed[tight] = append(t.squeezed[tight], entry{term, weight})
	}
	// A single letter is significant here: DHEA-S is not DHEA in serum.
	less := slices.DeleteFunc(slices.Clone(key), func(w string) bool { return noiseWords[w] && len(w) > 1 })
	if len(less) < len(key) && slices.ContainsFunc(less, func(w string) bool { return specimenWords[w] == "" }) {
		t.note(strings.Join(less, " "), term, weight-0.06)
	}
}

func (t *Table) note(key string, term int, weight float64) {
	list := t.byKey[key]
	for i := range list {
		if list[i].term == term {
			list[i].weight = max(list[i].weight, weight)
			return
		}
	}
	t.byKey[key] = append(list, entry{term, weight})
}

// Terms returns how many terms the table has.
func (t *Table) Terms() int { return len(t.terms) }

// All returns the terms, in the order of the table.
func (t *Table) All() []Term { return slices.Clone(t.terms) }

// Term implements [Catalogue].
func (t *Table) Term(code string) (*Term, error) {
	i := slices.IndexFunc(t.terms, func(t Term) bool { return t.Code == code })
	if i < 0 {
		return nil, fmt.Errorf("%w: the catalogue has no term with this LOINC code", healthlab.NotFound)
	}
	return &t.terms[i], nil
}

// Find implements [Catalogue].
func (t *Table) Find(name string) ([]Found, error) {
	found := map[int]float64{}
	t.exact(found, name, 1)
	if bare, inside := fold.Parentheses(name); inside != "" {
		t.exact(found, bare, 0.97)
		t.exact(found, inside, 0.92)
	}
	best := 0.0
	for _, w := range found {
		best = max(best, w)
	}
	if best < 0.88 {
		for _, e := range t.squeezed[squeeze(name)] {
			found[e.term] = max(found[e.term], 0.95*e.weight)
		}
		t.addSimilar(found, name)
	}
	if len(found) == 0 {
		t.addContained(found, name)
	}
	out := make([]Found, 0, len(found))
	for i, w := range found {
		out = append(out, Found{Term: &t.terms[i], Likeness: min(w, 1)})
	}
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Likeness, a.Likeness), cmp.Compare(rankOf(a.Term), rankOf(b.Term)), strings.Compare(a.Term.Code, b.Term.Code))
	})
	return out, nil
}

func rankOf(t *Term) int {
	if t.Rank == 0 {
		return 1 << 20
	}
	return t.Rank
}

func (t *Table) exact(found map[int]float64, name string, weight float64) {
	key := Key(name)
	if len(key) == 0 {
		return
	}
	for _, e := range t.byKey[strings.Join(key, " ")] {
		found[e.term] = max(found[e.term], e.weight*weight)
	}
	if less := withoutNoise(key); len(less) > 0 && len(less) < len(key) {
		for _, e := range t.byKey[strings.Join(less, " ")] {
			found[e.term] = max(found[e.term], (e.weight-0.04)*weight)
		}
	}
	// "Urea nitrogen, urine": the specimen in the name is scored separately.
	if without := slices.DeleteFunc(slices.Clone(key), func(w string) bool { return specimenWords[w] != "" }); len(without) > 0 && len(without) < len(key) {
		for _, e := range t.byKey[strings.Join(without, " ")] {
			found[e.term] = max(found[e.term], (e.weight-0.08)*weight)
		}
	}
}

// addSimilar adds to found the terms with similar names, by index with their likeness to name.
func (t *Table) addSimilar(found map[int]float64, name string) {
	key := strings.Join(Key(name), " ")
	if len(key) < 5 {
		return
	}
	want := trigrams(key)
	hits := make([]uint16, len(t.keys))
	var seen []int32 // the keys with hits
	for g := range want {
		for _, n := range t.grams[g] {
			if hits[n] == 0 {
				seen = append(seen, n)
			}
			hits[n]++
		}
	}
	for _, n := range seen {
		have, both := t.keys[n], int(hits[n])
		all := len(want) + max(1, len(have)) - both
		if d := float64(2*both) / float64(len(want)+len(have)); d < 0.6 && float64(both)/float64(all) < 0.5 {
			continue
		}
		like := likeness(key, have)
		if like < 0.8 {
			continue
		}
		for _, e := range t.byKey[have] {
			found[e.term] = max(found[e.term], e.weight*like*0.95)
		}
	}
}

// addContained adds to found the terms of which one name is a part of name: "Ferritin i.S.", "LDL berechnet". The part
// must have more than three fifths of the letters. The likeness of these terms, less than 0.8, is too low for a match
// without review.
func (t *Table) addContained(found map[int]float64, name string) {
	key := Key(name)
	const most = 8
	if len(key) > most {
		return
	}
	letters := len(strings.Join(key, ""))
	for from := range key {
		for to := len(key); to > from; to-- {
			part := strings.Join(key[from:to], " ")
			share := float64(len(part)-(to-from-1)) / float64(letters)
			if share <= 0.6 || len(part) < 3 {
				continue
			}
			for _, e := range t.byKey[part] {
				found[e.term] = max(found[e.term], e.weight*(0.7+0.08*share))
			}
		}
	}
}

// likeness returns 1 minus the edit distance of two keys divided by the length of the longer one. It returns 0 if
// more than a quarter of the letters, a digit or a short word differs.
func likeness(a, b string) float64 {
	longest := max(len(a), len(b))
	most := longest / 4
	d := fold.Distance(a, b, most)
	if d > most || !sameDigits(a, b) || !sameShort(a, b) {
		return 0
	}
	return 1 - float64(d)/float64(longest)
}

// sameDigits reports whether two names have the same digits: B6 is not B12.
func sameDigits(a, b string) bool {
	only := func(s string) string {
		return strings.Map(func(r rune) rune {
			if fold.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	return only(a) == only(b)
}

// sameShort reports whether the words of at most three letters in two keys are the same, if both have equally
// many: HDL is not LDL, and IgA is not IgG.
func sameShort(a, b string) bool {
	only := func(s string) []string {
		return slices.DeleteFunc(strings.Fields(s), func(w string) bool { return len(w) > 3 })
	}
	x, y := only(a), only(b)
	return len(x) != len(y) || slices.Equal(x, y)
}

func trigrams(s string) map[string]bool {
	s = " " + s + " "
	out := make(map[string]bool, len(s))
	for i := 0; i+3 <= len(s); i++ {
		out[s[i:i+3]] = true
	}
	return out
}

// ValidCode reports whether code has the shape of a LOINC code and the right check
// digit (mod 10, doubling every other digit from the right).
func ValidCode(code string) bool {
	digits, check, ok := strings.Cut(code, "-")
	if !ok || len(check) != 1 || len(digits) == 0 || len(digits) > 7 || check[0] < '0' || check[0] > '9' {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 0 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return (10-sum%10)%10 == int(check[0]-'0')
}

// readCommon reads the tables that come with the package, and the file of further
// names.
func readCommon(names io.Reader, tables ...io.Reader) ([]Term, error) {
	more := map[string][]string{}
	less := map[string][]string{}
	err := fold.ReadCSV(names, []string{"loinc_num", "names", "not"}, func(column func(string) string) {
		code := column("loinc_num")
		more[code] = append(more[code], fold.Split(column("names"))...)
		less[code] = append(less[code], fold.Split(column("not"))...)
	})
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	var out []Term
	read := func(column func(string) string) {
		code := column("loinc_num")
		t := Term{Code: code, Name: column("long_common_name"), Component: column("component"), Property: column("property"),
			System: column("system"), Scale: column("scale"), Units: fold.Split(strings.ReplaceAll(column("example_ucum_units"), "[U]", "U"))} // [U] is not a code of UCUM
		given := fold.Split(column("synonyms"))
		t.Names = append(slices.Clone(more[code]), given...)
		t.Names = slices.DeleteFunc(t.Names, func(n string) bool { return slices.Contains(less[code], n) })
		if len(given) > 0 {
			t.Display = given[0]
		}
		us, _ := strconv.Atoi(column("rank_us"))
		si, _ := strconv.Atoi(column("rank_si"))
		switch {
		case us > 0 && si > 0:
			t.Rank = min(us, si)
		default:
			t.Rank = us + si
		}
		if column("tier") == "2" && t.Rank == 0 {
			t.Rank = 3000
		}
		out = append(out, t)
	}
	for _, table := range tables {
		if err := fold.ReadCSV(table, []string{"loinc_num", "long_common_name", "component"}, read); err != nil {
			return nil, fmt.Errorf("read terms: %w", err)
		}
	}
	copyNamesAcrossUnits(out, less)
	return out, nil
}

// copyNamesAcrossUnits adds to each term the names of the term that measures the same analyte as an amount of substance
// instead of a mass, or the reverse: the unit distinguishes them and the name does not. The own names are first;
// names in less, by code, are not added.
func copyNamesAcrossUnits(terms []Term, less map[string][]string) {
	type measured struct{ component, system, scale, rest string }
	mass, substance := map[measured]int{}, map[measured]int{}
	for i, t := range terms {
		_, rest, _ := strings.Cut(t.Name, "]")
		key := measured{t.Component, t.System, t.Scale, rest}
		switch t.Property {
		case "MCnc", "MRat":
			mass[key] = i
		case "SCnc", "SRat":
			substance[key] = i
		}
	}
	for key, i := range mass {
		j, ok := substance[key]
		if !ok {
			continue
		}
		a, b := terms[i].Names, terms[j].Names
		for to, from := range map[int][]string{i: b, j: a} {
			for _, name := range from {
				if !slices.Contains(terms[to].Names, name) && !slices.Contains(less[terms[to].Code], name) {
					terms[to].Names = append(slices.Clip(terms[to].Names), name)
				}
			}
		}
	}
}

// Load reads the table that LOINC publishes (LoincTable/Loinc.csv of a release, columns by name, in any order)
// and returns its laboratory terms. Deprecated and discouraged terms are left out. Names of the embedded
// catalogue are added by code, so that reports in German, Spanish and French still match. The caller is
// responsible for the licence of the table. [healthlab.Invalid] if it is not a CSV with at least LOINC_NUM,
// COMPONENT and LONG_COMMON_NAME, or has no term.
func Load(r io.Reader) ([]Term, error) {
	known := map[string]*Term{}
	ours := Embedded()
	for i := range ours.terms {
		known[ours.terms[i].Code] = &ours.terms[i]
	}
	var out []Term
	err := fold.ReadCSV(r, []string{"LOINC_NUM", "COMPONENT", "LONG_COMMON_NAME"}, func(column func(string) string) {
		if s := column("STATUS"); s == "DEPRECATED" || s == "DISCOURAGED" {
			return
		}
		if c := column("CLASSTYPE"); c != "" && c != "1" {
			return
		}
		t := Term{Code: column("LOINC_NUM"), Name: column("LONG_COMMON_NAME"), Display: column("DisplayName"), Component: column("COMPONENT"),
			Property: column("PROPERTY"), System: column("SYSTEM"), Scale: column("SCALE_TYP")}
		for _, u := range strings.Split(column("EXAMPLE_UCUM_UNITS"), ";") {
			if u = strings.TrimSpace(u); u != "" {
				t.Units = append(t.Units, u)
			}
		}
		t.Rank, _ = strconv.Atoi(column("COMMON_TEST_RANK"))
		for _, name := range []string{column("CONSUMER_NAME"), column("SHORTNAME")} {
			if name != "" {
				t.Names = append(t.Names, name)
			}
		}
		if k := known[t.Code]; k != nil {
			t.Names = append(slices.Clone(k.Names), t.Names...)
			if t.Rank == 0 {
				t.Rank = k.Rank
			}
			if t.Display == "" {
				t.Display = k.Display
			}
		}
		out = append(out, t)
	})
	if err != nil {
		return nil, fmt.Errorf("load LOINC: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("load LOINC: %w: the table must have a laboratory term (CLASSTYPE 1) whose STATUS is not DEPRECATED or DISCOURAGED", healthlab.Invalid)
	}
	return out, nil
}
