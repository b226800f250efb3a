package labreport

import (
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// FailureReason is why a report has no results, as the HTTP API spells it.
type FailureReason string

// Failure reasons. Clients must accept further ones.
const (
	// InvalidInput: the document is not a lab report with results, or has reports of several patients.
	InvalidInput FailureReason = "invalid_input"
	// LowQuality: the picture cannot be read well enough.
	LowQuality FailureReason = "low_quality"
	// NotEnglish: the language is not supported. The name is part of the API; German, Spanish and French are
	// supported too.
	NotEnglish FailureReason = "not_english"
	// TooManyPages: the file has more pages than allowed, found only while reading.
	TooManyPages FailureReason = "too_many_pages"
	// ProcessingError: the service failed, or had no result in time.
	ProcessingError FailureReason = "processing_error"
)

// Reader extracts results from words. It is pure, immutable and safe for concurrent use.
type Reader struct {
	catalogue loinc.Catalogue
}

// NewReader returns a Reader that matches with the catalogue; nil means [loinc.Embedded].
func NewReader(c loinc.Catalogue) *Reader {
	if c == nil {
		c = loinc.Embedded()
	}
	return &Reader{catalogue: c}
}

// maxWords is the greatest number of words of a report: a thousand per page, which is dense print. A longer
// document is not a report, and would block a worker for minutes.
const maxWords = 1000 * MaxPages

// Read extracts the data of one report of at most 30,000 words. A non-empty reason is why there is no data; a document
// with reports of several patients is [InvalidInput].
func (r *Reader) Read(pages []Page) (Data, FailureReason) {
	words := 0
	for i := range pages {
		words += len(pages[i].Words)
	}
	if words > maxWords {
		return Data{}, InvalidInput
	}
	d := r.document(pages)
	if reason := d.refusal(); reason != "" {
		return Data{}, reason
	}
	data := d.data()
	if d.severalPatients {
		return Data{}, InvalidInput
	}
	return data, ""
}

// Readability scores how well a page was recognized, for an extractor that tries several ways to read a picture.
// It counts known analytes, ranges and units; more is better, 0 is nothing.
func (r *Reader) Readability(p Page) float64 {
	d := r.document([]Page{p})
	score := 0.0
	for i := range d.rows {
		row := &d.rows[i]
		if row.known > 0.8 {
			score++
		}
		if row.unit.UCUM != "" {
			score += 0.5
		}
		if row.bounds.any() || row.reference != "" {
			score += 0.5
		}
		score += confOf(row.p.find(rValue)) * 0.5
	}
	return score
}

// Language returns the language of a page by its words: en, de, es or fr; empty if unknown. An extractor of
// pictures uses it to choose a dictionary.
func (r *Reader) Language(p Page) string { return languageOf(linesOf(p, 0)) }

// document is the state while a Reader reads one report.
type document struct {
	g        grammar
	pages    []Page
	lines    []line
	language string
	rows     []row
	isRow    map[int]bool
	columns  bool // some table has headings
	letters  int
	foreign  int
	words    int
	wordConf float64
	specimen loinc.Specimen // specimen of the whole report
	mixed    bool           // the report states several specimens
	// severalPatients reports whether the document has names or birth dates of different patients.
	severalPatients bool
	bothMarks       bool         // both a point and a comma are used as decimal marks
	shifted         map[int]bool // pages whose numbers lost their decimal points
	crossed         map[int]bool // pages of which names are level with the values of other rows, as on a slanted picture
	catalogue       loinc.Catalogue
}

// row is one result of a report before it becomes a [Result].
type row struct {
	p        *parsed
	at       int // index of the line
	name     string
	nameToks []token
	known    float64
	value    string
	unitText string
	unitToks []token
	unit     ucum.Unit
	repaired bool
	// foreignUnit reports whether the analyte is not measured in the unit.
	foreignUnit bool
	reference   string
	refToks     []token
	bounds      Bounds
	flag        string
	panel       string
	panelLine   int
	specimen    loinc.Specimen
	inTable     bool
	twoValues   bool    // the row has another number or unit
	doubt       float64 // subtracted from the confidence of the value
}

func (r *Reader) document(pages []Page) *document {
	d := &document{pages: pages, specimen: loinc.NoSpecimen, isRow: map[int]bool{}, catalogue: r.catalogue,
		g: newGrammar(r.catalogue)}
	var texts []string
	for _, p := range pages {
		if p.Image {
			d.g.image = true
		}
		for _, w := range p.Words {
			texts = append(texts, refrange.PlainMarks(w.Text))
			d.words++
			d.wordConf += w.Confidence
			for _, c := range w.Text {
				if unicode.IsLetter(c) {
					d.letters++
					if c > 0x24f {
						d.foreign++
					}
				}
			}
		}
	}
	d.g.decimals = decimalsOf(texts)
	comma, point := decimalMarks(texts)
	d.bothMarks = comma > 0 && point > 0
	var whole []line
	for i, p := range pages {
		whole = append(whole, linesOf(p, i)...)
	}
	d.language = languageOf(whole)
	if d.g.decimals == Undecided && (d.language == "de" || d.language == "es" || d.language == "fr") {
		d.g.decimals = Comma
	}
	for i := range pages {
		d.lines = append(d.lines, d.linesInReadingOrder(pages[i], i)...)
	}
	d.read()
	return d
}

// read finds table headings, panels and rows in the lines, and adds the rows to the document.
func (d *document) read() {
	var cols []column
	in := section{line: -1, specimen: loinc.NoSpecimen}
	lastRow := -1
	claimed := map[int]bool{}
	for i := 0; i < len(d.lines); i++ {
		l := &d.lines[i]
		if claimed[i] {
			continue
		}
		if h := heading(*l); h != nil {
			// A heading over two lines: "Reference" above "Range".
			if i+1 < len(d.lines) && d.lines[i+1].page == l.page && d.lines[i+1].y0-l.y1 < 0.8*l.height {
				if more := secondHeading(d.lines[i+1]); more {
					claimed[i+1] = true
				}
			}
			cols = h
			d.columns = true
			claimed[i] = true
			continue
		}
		if olderResult(l) || d.emptyResult(l, cols) {
			claimed[i] = true
			continue
		}
		if rows := d.parseLine(l, cols); len(rows) > 0 {
			for _, p := range rows {
				d.add(p, i, in, cols)
			}
			lastRow = i
			claimed[i] = true
			continue
		}
		if d.appendName(i, lastRow) {
			claimed[i] = true
			continue
		}
		if p, at := d.splitName(i, cols, claimed); p != nil {
			d.add(p, at, in, cols)
			i, lastRow = at, at
			continue
		}
		if r := d.readMultiLine(i, cols, claimed); len(r) > 0 {
			for _, p := range r {
				d.add(p, i, in, cols)
			}
			lastRow = i
			continue
		}
		if d.appendRange(i, lastRow, cols) {
			claimed[i] = true
			continue
		}
		if d.statesSpecimen(l, &in) {
			continue
		}
		if name, ok := d.panelName(i, cols); ok {
			in = in.following(name, i)
		} else {
			d.titleSpecimen(l)
		}
	}
	for i := range claimed {
		d.isRow[i] = true
	}
}

func secondHeading(l line) bool {
	words, known := 0, 0
	for _, cell := range l.cells() {
		for i := 0; i < len(cell); {
			words++
			if _, n := headPhrase(cell[i:]); n > 0 {
				known++
				i += n
				continue
			}
			i++
		}
	}
	return words > 0 && words <= 6 && known*3 >= words*2
}

// parseLine reads a line as one result, or as several separated by semicolons. It returns nil if the line has none.
func (d *document) parseLine(l *line, cols []column) []*parsed {
	if len(l.tokens) < 2 || sentence(l) && !strings.Contains(l.text(), ";") {
		return nil
	}
	if len(l.cells()) == 1 && len(l.tokens) <= 6 && d.g.known(l.text()) > 0.85 &&
		!slices.ContainsFunc(l.tokens, func(t token) bool { return valueShape(t.text, d.g.decimals) == number1 }) {
		return nil // the line has only a name
	}
	var parts []line
	start := 0
	for i, t := range l.tokens {
		if t.text == ";" || strings.HasSuffix(t.text, ";") {
			if i > start || t.text != ";" {
				end := i + 1
				if t.text == ";" {
					end = i
				}
				if end > start {
					parts = append(parts, lineOf(l.tokens[start:end], *l))
				}
			}
			start = i + 1
		}
	}
	if start > 0 && start < len(l.tokens) {
		parts = append(parts, lineOf(l.tokens[start:], *l))
	}
	if len(parts) > 1 {
		var out []*parsed
		for i := range parts {
			if p := d.g.parse(&parts[i], nil); p != nil && d.accept(p, nil) {
				out = append(out, p)
			}
		}
		if len(out) > 1 {
			return out
		}
	}
	if p := d.g.parse(l, cols); p != nil && d.accept(p, cols) {
		return []*parsed{p}
	}
	// A line that does not fit the table above may be read alone.
	if len(cols) > 0 {
		if p := d.g.parse(l, nil); p != nil && p.known > 0.85 && d.accept(p, nil) && (p.has(rUnit) || p.has(rRange)) {
			return []*parsed{p}
		}
	}
	return nil
}

// accept reports whether a parsed line is a result. A name that the catalogue knows needs a fitting value, unit or
// range. Another name needs a known unit and a range or, in a table, one of the two.
func (d *document) accept(p *parsed, cols []column) bool {
	name := cleanName(p.text(rName))
	if name == "" || p.score < 2 {
		return false
	}
	if notAnalyte(name) && p.known < 0.8 || d.ofControl(p) || p.inSentence(&d.g) {
		return false
	}
	known := p.known
	if known < 0.8 && (guidance(name) || isFlagOnly(name)) {
		return false
	}
	if known < 0.8 {
		known = d.g.likeness(name)
		p.known = known
	}
	value := strings.TrimSpace(p.text(rValue))
	sh := valueShape(value, d.g.decimals)
	_, unit := ucum.Parse(strings.TrimRight(p.text(rUnit), ",;:"))
	if !unit && d.g.image {
		_, _, unit = ucum.Repair(p.text(rUnit))
	}
	_, isRange := parseBounds(toPointAll(p.text(rRange), d.g.decimals))
	limits := p.has(rLow) || p.has(rHigh)
	words := p.has(rRange) && !isRange
	inTable := hasRole(cols, rName) && hasRole(cols, rValue) || hasRole(cols, rValue) && hasRole(cols, rRange)
	notes := 0
	for _, s := range p.pieces {
		if s.role == rNote && !fieldLabel(p.line.tokens[s.from:s.to]) && strings.IndexFunc(p.line.tokens[s.from].text, unicode.IsLetter) >= 0 {
			notes++
		}
	}
	if notes > 3 && !hasRole(cols, rNote) && !(known > 0.8 && unit && isRange) {
		return false
	}
	if known >= 0.8 {
		switch {
		case sh == spanShape && !isRange && !words && !inTable && !unit:
			return false
		case unit, isRange, words, limits:
			return true
		case inTable:
			return true
		case sh == wordShape || sh == titerShape || sh == gradeShape:
			return notes == 0
		case sh == number1 || sh == spanShape:
			return d.unitless(name) && notes == 0
		case sh == noteShape:
			return notes == 0
		}
		return false
	}
	if len(strings.Fields(name)) > 8 || sentence(p.line) {
		return false
	}
	// The catalogue does not have the analyte.
	if inTable {
		if v := p.find(rValue); !inValueColumn(cols, v, p.line.height) {
			return false
		}
		return (unit || isRange || limits || words && (sh == wordShape || sh == titerShape || sh == gradeShape)) && sh != noValue
	}
	return unit && (isRange || limits) && (sh == number1)
}

// ofControl reports whether the name's cell marks a control sample.
func (d *document) ofControl(p *parsed) bool {
	for _, s := range p.pieces {
		if s.role != rName {
			continue
		}
		for k := s.from; k < len(p.line.tokens) && (k == s.from || !p.line.tokens[k].gap); k++ {
			if slices.ContainsFunc(fold.Words(p.line.tokens[k].text), func(w string) bool { return controlWords[w] }) {
				return true
			}
		}
	}
	return false
}

// inValueColumn reports whether a value is in a column of results.
func inValueColumn(cols []column, value []token, height float64) bool {
	if len(value) == 0 || len(cols) == 0 {
		return false
	}
	c, _ := columnOf(cols, value[0].x0, value[len(value)-1].x1, height)
	return cols[c].role == rValue || cols[c].role == rOut
}

// unitless reports whether an analyte has no unit: a ratio, pH, INR.
func (d *document) unitless(name string) bool {
	found := d.g.find(cleanName(name))
	for i, f := range found {
		if i > 3 {
			break
		}
		switch f.Term.Kind() {
		case "ratio", "ph", "gravity", "titer":
			return true
		}
	}
	return false
}

func hasRole(cols []column, r role) bool {
	return slices.ContainsFunc(cols, func(c column) bool { return c.role == r || r == rValue && c.role == rOut })
}
