package labreport

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// found is one field of the metadata with its position on the page and its confidence.
type found struct {
	text   string
	tokens []token
	page   int
	conf   float64
	weight float64
	label  string // in lower case without accents
}

// metaReader collects the metadata of a document.
type metaReader struct {
	fields   map[metaField][]found
	language string
}

// label finds the longest label that begins at tokens[i]; n is its number of tokens. It returns noField and 0 if there
// is none.
func label(tokens []token, i int) (f metaField, n int) {
	for n = min(6, len(tokens)-i); n > 0; n-- {
		var words []string
		ok := true
		for k := i; k < i+n; k++ {
			t := tokens[k].text
			if k > i && tokens[k].gap {
				ok = false
				break
			}
			if k < i+n-1 && (strings.HasSuffix(t, ":") || strings.HasSuffix(t, ",") || strings.HasSuffix(t, ";")) {
				ok = false
				break
			}
			words = append(words, labelKey(t)...)
		}
		if !ok {
			continue
		}
		if f, ok := labelWords[strings.Join(words, " ")]; ok && len(words) > 0 {
			return f, n
		}
	}
	return noField, 0
}

func labelKey(t string) []string {
	return strings.FieldsFunc(strings.ToLower(fold.Plain(t)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// readMeta reads the metadata of a report from the lines that are not results. isRow reports whether line i belongs to
// the results, for example as a heading of a table. several reports whether the document has data of more than one
// patient.
func readMeta(lines []line, pages []Page, isRow func(int) bool, language string) (out Metadata, several bool) {
	m := metaReader{fields: map[metaField][]found{}, language: language}
	var texts []string
	for i := range lines {
		if isRow(i) {
			continue
		}
		texts = append(texts, lines[i].text())
		m.readLine(lines, i)
	}
	for i := range lines {
		if !isRow(i) && lines[i].page == 0 && i < 40 {
			m.readUnlabelled(&lines[i])
		}
	}
	order := orderOf(texts, language)
	earliest := m.earliest(order)
	out = Metadata{Gender: "other", Evidence: Evidence{}}
	set := func(to **string, field string, f found, text string, conf float64) {
		if text == "" {
			return
		}
		*to = &text
		out.Evidence[field] = Reading{Page: pages[f.page].Number, Box: boxOf(f.tokens, pages[f.page]), Confidence: sureOf(pages[f.page], conf*f.conf)}
	}
	date := func(to **string, field string, f metaField) {
		for _, c := range m.best(f) {
			iso, printed, sure := findDate(c.text, order)
			if f == fDOB {
				iso, printed, sure = birthDate(c.text, order, earliest)
			}
			if printed != "" {
				conf := 0.97
				if !sure || f == fCollected && m.severalDates(f, order) {
					conf = 0.5
				}
				set(to, field, c, iso, conf)
				return
			}
		}
	}
	date(&out.DOB, "dob", fDOB)
	date(&out.DateCollected, "date_collected", fCollected)
	date(&out.DateReported, "date_reported", fReported)
	for _, c := range m.best(fSpecimen) {
		if id := specimenID(c.text); id != "" {
			set(&out.SpecimenNumber, "specimen_number", c, id, 0.95)
			break
		}
	}
	if c, g := m.gender(); g != "" {
		out.Gender = g
		out.Evidence["gender"] = Reading{Page: pages[c.page].Number, Box: boxOf(c.tokens, pages[c.page]), Confidence: sureOf(pages[c.page], 0.97*c.conf)}
	}
	m.setName(set, &out)
	if c, ok := labName(lines, m.best(fLab), isRow); ok && !out.names(c.text) {
		set(&out.LabName, "lab_name", c, c.text, 0.9*c.weight)
	}
	return out, m.severalPatients(pages)
}

// earliest returns the earliest collection or report date as YYYY-MM-DD; empty if none is sure.
func (m *metaReader) earliest(order dayOrder) string {
	first := ""
	for _, c := range slices.Concat(m.fields[fCollected], m.fields[fReported]) {
		if iso, _, sure := findDate(c.text, order); sure && (first == "" || iso < first) {
			first = iso
		}
	}
	return first
}

// gender returns the printed sex; empty if there is none or if labels contradict each other.
func (m *metaReader) gender() (at found, sex string) {
	for _, c := range m.best(fSex) {
		switch g := genderOf(c.text); {
		case sex == "":
			at, sex = c, g
		case g != sex && c.weight >= 2.5:
			return found{}, ""
		}
	}
	return at, sex
}

// severalDates reports whether a field has different dates, each with a label, a colon and a cell of its own: the
// document has specimens, or reports, of several days.
func (m *metaReader) severalDates(f metaField, order dayOrder) bool {
	first := ""
	for _, c := range m.fields[f] {
		iso, _, sure := findDate(c.text, order)
		if !sure || c.weight < 2.5 {
			continue
		}
		if first != "" && iso != first {
			return true
		}
		first = iso
	}
	return false
}

func (m *Metadata) names(text string) bool {
	of := fold.Words(deref(m.PatientFirstName) + " " + deref(m.PatientLastName))
	return !slices.ContainsFunc(fold.Words(text), func(w string) bool { return !slices.Contains(of, w) })
}

func (m *metaReader) best(f metaField) []found {
	list := slices.Clone(m.fields[f])
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(b.weight, a.weight) })
	return list
}

// readLine finds the labels of lines[at] and their values: the rest of the cell, otherwise the next cell, otherwise
// the cell below.
func (m *metaReader) readLine(lines []line, at int) {
	l := &lines[at]
	type hit struct {
		f      metaField
		i, n   int
		strong float64
	}
	var hits []hit
	for i := 0; i < len(l.tokens); {
		f, n := label(l.tokens, i)
		if n == 0 {
			i++
			continue
		}
		colon := strings.HasSuffix(l.tokens[i+n-1].text, ":")
		starts := l.tokens[i].gap || i > 0 && (strings.HasSuffix(l.tokens[i-1].text, ".") || strings.HasSuffix(l.tokens[i-1].text, ",") || strings.HasSuffix(l.tokens[i-1].text, ";") || l.tokens[i-1].text == "|" || l.tokens[i-1].text == "/")
		strong := 0.0
		if colon || i+n < len(l.tokens) && (l.tokens[i+n].text == ":" || l.tokens[i+n].text == "#") {
			strong++
		}
		if starts {
			strong += 0.5
		}
		if strings.HasSuffix(l.tokens[i+n-1].text, "#") {
			strong += 0.5
		}
		// Without a colon a label counts only if it is distinctive.
		if strong == 0 && f != fDOB && f != fCollected && f != fReported && f != fIgnore {
			i++
			continue
		}
		if ofOtherPerson(l, i) {
			f = fIgnore
		}
		hits = append(hits, hit{f, i, n, strong})
		i += n
	}
	for k, h := range hits {
		if h.f == fIgnore {
			continue
		}
		from := h.i + h.n
		to := len(l.tokens)
		if k+1 < len(hits) {
			to = hits[k+1].i
		}
		var value []token
		for j := from; j < to; j++ {
			t := l.tokens[j]
			if t.text == "|" || t.text == ":" && len(value) == 0 {
				if len(value) == 0 {
					continue
				}
				break
			}
			// The value is the rest of the cell, or the next cell if the rest is empty.
			if t.gap && len(value) > 0 && !strings.HasSuffix(value[len(value)-1].text, ",") {
				break
			}
			value = append(value, t)
		}
		weight := 1 + h.strong
		if len(value) == 0 {
			if k+1 < len(hits) && !strings.HasSuffix(l.tokens[h.i+h.n-1].text, ":") && hits[k+1].i == from || from >= len(l.tokens) || l.tokens[min(from, len(l.tokens)-1)].gap {
				value = cellBelow(lines, at, l.tokens[h.i].x0, l.tokens[from-1].x1)
				weight -= 0.4
			}
		}
		if len(value) == 0 {
			continue
		}
		m.add(h.f, fold.String(textOf(l.tokens[h.i:from])), value, l.page, weight)
	}
}

// cellBelow returns the cell of the next three lines after lines[at] that is under a label from x0 to x1; nil if there
// is none, or if the cell is another label.
func cellBelow(lines []line, at int, x0, x1 float64) []token {
	l := &lines[at]
	for k := at + 1; k < len(lines) && k <= at+3; k++ {
		n := &lines[k]
		if n.page != l.page || n.y0-l.y1 > 2.2*l.height || n.y0 <= l.y0 {
			continue
		}
		for _, cell := range n.cells() {
			if cell[0].x0 < x1 && cell[len(cell)-1].x1 > x0 && cell[0].x0 > x0-1.5*l.height {
				if f, _ := label(cell, 0); f != noField && strings.HasSuffix(textOf(cell), ":") {
					return nil
				}
				return cell
			}
		}
	}
	return nil
}

func (m *metaReader) add(f metaField, label string, value []token, page int, weight float64) {
	text := strings.TrimSpace(textOf(value))
	ok := false
	switch f {
	case fDOB, fCollected, fReported:
		_, printed, _ := findDate(text, dayFirst)
		ok = printed != ""
		if f == fDOB && ok {
			weight += 0.3
		}
	case fSpecimen:
		ok = specimenID(text) != ""
	case fSex:
		ok = genderOf(text) != ""
	case fName, fFirst, fLast:
		ok = personName(text) != ""
	case fLab:
		ok = len(fold.Words(text)) >= 2 && strings.IndexFunc(text, unicode.IsLetter) >= 0
	}
	if ok {
		m.fields[f] = append(m.fields[f], found{text, value, page, confOf(value), weight, label})
	}
}

// readUnlabelled reads a line that has the patient's data without labels for each field: "Ada Example | DOB 02/04/1988
// | F | #S-1001". It ignores a line without the label of a birth date.
func (m *metaReader) readUnlabelled(l *line) {
	var parts [][]token
	var part []token
	hasDOB := false
	for i, t := range l.tokens {
		if f, n := label(l.tokens, i); n > 0 && f == fDOB {
			hasDOB = true
		}
		if t.text == "|" || t.gap && len(part) > 0 || t.text == "•" || t.text == "/" || t.text == "-" {
			if len(part) > 0 {
				parts = append(parts, part)
			}
			part = nil
			if t.text == "|" || t.text == "•" || t.text == "/" || t.text == "-" {
				continue
			}
		}
		if f, n := label(l.tokens, i); n > 0 && (f == fDOB || f == fCollected || f == fReported || f == fSex) && len(part) > 0 {
			parts = append(parts, part)
			part = nil
		}
		part = append(part, t)
		// "born 1981-06-11, male. Sample": a comma or a full stop ends a part.
		if strings.HasSuffix(t.text, ",") && hasDOB || strings.HasSuffix(t.text, ".") && len(t.text) > 4 && hasDOB {
			parts = append(parts, part)
			part = nil
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	if !hasDOB {
		return
	}
	for i, p := range parts {
		text := strings.Trim(textOf(p), " ,.;|()")
		if f, n := label(p, 0); n > 0 && f != noField && n < len(p) {
			continue
		}
		switch {
		case genderOf(text) != "" && (len(text) == 1 || len(text) > 3):
			m.fields[fSex] = append(m.fields[fSex], found{text, p, l.page, confOf(p), 0.8, ""})
		case strings.HasPrefix(text, "#") && specimenID(text) != "":
			m.fields[fSpecimen] = append(m.fields[fSpecimen], found{text, p, l.page, confOf(p), 0.8, ""})
		case i == 0 && len(m.fields[fName])+len(m.fields[fLast]) == 0:
			if personName(text) != "" && len(strings.Fields(text)) >= 2 {
				m.fields[fName] = append(m.fields[fName], found{text, p, l.page, confOf(p), 0.8, ""})
			}
		}
	}
}

var reSpecimenID = regexp.MustCompile(`^#?([A-Za-z]{0,4}[-/. ]?\d[\dA-Za-z./-]{2,24}|[A-Z]{1,6}-?\d{2,}[A-Za-z0-9-]*|[A-Z]+-[A-Z0-9-]*\d[A-Z0-9-]*)$`)

// specimenID returns the first word with the form of a specimen number.
func specimenID(s string) string {
	for _, w := range strings.Fields(s) {
		w = strings.Trim(w, ".,;:()[]#|*")
		if _, printed, _ := findDate(w, dayFirst); printed != "" || len(w) < 4 {
			continue
		}
		if reSpecimenID.MatchString(w) {
			return w
		}
		break
	}
	return ""
}

func sureOf(p Page, c float64) float64 {
	// A field of a picture never has 0.9 or more.
	if p.Image {
		c = min(0.89, c)
	}
	return round2(c)
}
