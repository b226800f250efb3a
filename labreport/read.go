package labreport

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// FailureReason says why a report has no results, as published.
type FailureReason string

// Failure reasons. Clients accept further ones.
const (
	// InvalidInput is a document that is not a lab report with results.
	InvalidInput FailureReason = "invalid_input"
	// LowQuality is a picture that cannot be read well enough.
	LowQuality FailureReason = "low_quality"
	// NotEnglish is a language that is not supported. (The name is the wire's; we
	// also read German, Spanish and French.)
	NotEnglish FailureReason = "not_english"
	// TooManyPages is the page limit, found only while reading.
	TooManyPages FailureReason = "too_many_pages"
	// ProcessingError is a failure of ours, or no outcome in time.
	ProcessingError FailureReason = "processing_error"
)

// Reader turns words into results. It is pure, immutable and safe for concurrent
// use.
type Reader struct {
	catalogue Catalogue
}

// NewReader returns a Reader that matches with the catalogue; nil means [Embedded].
func NewReader(c Catalogue) *Reader {
	if c == nil {
		c = Embedded()
	}
	return &Reader{catalogue: c}
}

// Read reads the pages of one report. A reason that is not empty says why there is
// no data.
func (r *Reader) Read(pages []Page) (Data, FailureReason) {
	d := r.document(pages)
	if reason := d.refuse(); reason != "" {
		return Data{}, reason
	}
	return d.data(), ""
}

// Judge says how well a page could be read, for an extractor that tries several ways
// to read a picture: known analytes, ranges and units count. More is better; 0 is
// nothing.
func (r *Reader) Judge(p Page) float64 {
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
		if row.bounds.Any() || row.reference != "" {
			score += 0.5
		}
		score += confOf(row.p.find(rValue)) * 0.5
	}
	return score
}

// document is one report while it is read.
type document struct {
	g         grammar
	pages     []Page
	lines     []line
	language  string
	rows      []row
	isRow     map[int]bool
	columns   bool // some table had headings
	letters   int
	foreign   int
	words     int
	wordConf  float64
	catalogue Catalogue
}

// row is one result before it is published.
type row struct {
	p         *parsed
	at        int // line
	name      string
	nameToks  []token
	known     float64
	value     string
	unitText  string
	unit      Unit
	repaired  bool
	reference string
	refToks   []token
	bounds    Bounds
	flag      string
	panel     string
	panelLine int
	specimen  Specimen
	inTable   bool
	doubt     float64 // taken from the confidence of the value
}

func (r *Reader) document(pages []Page) *document {
	d := &document{pages: pages, isRow: map[int]bool{}, catalogue: r.catalogue,
		g: grammar{catalogue: r.catalogue, names: map[string]float64{}, ranges: map[string]ranged{}}}
	var texts []string
	for _, p := range pages {
		if p.Image {
			d.g.image = true
		}
		for _, w := range p.Words {
			texts = append(texts, plainMarks(w.Text))
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
	var whole []line
	for i, p := range pages {
		whole = append(whole, linesOf(p, i)...)
	}
	d.language = languageOf(whole)
	if d.g.decimals == Undecided && (d.language == "de" || d.language == "es" || d.language == "fr") {
		d.g.decimals = Comma
	}
	for i := range pages {
		d.lines = append(d.lines, d.regions(pages[i], i)...)
	}
	d.read()
	return d
}

// regions returns the lines of a page in reading order: of a page in two columns,
// the left ones before the right ones. A page is cut only where it reads better cut
// than whole.
func (d *document) regions(p Page, index int) []line {
	lines := linesOf(p, index)
	gutters := findGutters(lines, p.Width)
	if len(gutters) == 0 {
		return lines
	}
	gutters = slices.DeleteFunc(gutters, func(x float64) bool { return !d.namesOnBothSides(lines, x) })
	if len(gutters) == 0 {
		return lines
	}
	best, whole := lines, d.worth(lines)
	for _, gutter := range gutters {
		head, left, right := d.cutLines(lines, gutter)
		l, r := d.worth(left), d.worth(right)
		if l.rows < 2 || r.rows < 2 || l.rows+r.rows <= whole.rows {
			continue
		}
		if both := (worth{l.rows + r.rows, l.score + r.score}); both.score > whole.score {
			best, whole.score = append(append(head, left...), right...), both.score
		}
	}
	return best
}

// namesOnBothSides is the cheap question before a page is cut: are there lines whose
// left part and whose right part both begin with a known analyte?
func (d *document) namesOnBothSides(lines []line, gutter float64) bool {
	n := 0
	for _, l := range lines {
		k := slices.IndexFunc(l.tokens, func(t token) bool { return t.x0 >= gutter })
		if k <= 0 || !d.beginsKnown(l.tokens[:k]) || !d.beginsKnown(l.tokens[k:]) {
			continue
		}
		n++
	}
	return n >= 2
}

func (d *document) beginsKnown(tokens []token) bool {
	for n := min(4, len(tokens)); n > 0; n-- {
		if d.g.known(textOf(tokens[:n])) > 0.8 {
			return true
		}
	}
	return false
}

// cutLines cuts a page at a gutter. What stands above the first row is the head, and
// stays whole.
func (d *document) cutLines(lines []line, gutter float64) (head, left, right []line) {
	first := 0
	for i, l := range lines {
		k := slices.IndexFunc(l.tokens, func(t token) bool { return t.x0 >= gutter })
		if k > 0 && d.beginsKnown(l.tokens[:k]) && d.beginsKnown(l.tokens[k:]) {
			first = i
			break
		}
	}
	// Headings over the two columns belong to them.
	for first > 0 && (heading(lines[first-1]) != nil || len(lines[first-1].cells()) == 2 && lines[first].y0-lines[first-1].y1 < lines[first].height) {
		first--
	}
	for i, l := range lines {
		if i < first {
			head = append(head, l)
			continue
		}
		var a, b []token
		crosses := false
		for _, t := range l.tokens {
			switch {
			case t.x1 <= gutter:
				a = append(a, t)
			case t.x0 >= gutter:
				b = append(b, t)
			default:
				crosses = true
			}
		}
		if crosses {
			if len(left)+len(right) == 0 {
				head = append(head, l)
			} else {
				left = append(left, l)
			}
			continue
		}
		if len(a) > 0 {
			left = append(left, lineOf(a, l))
		}
		if len(b) > 0 {
			right = append(right, lineOf(b, l))
		}
	}
	return head, left, right
}

func lineOf(tokens []token, of line) line {
	l := line{tokens: slices.Clone(tokens), page: of.page, height: of.height, y0: math.Inf(1), y1: math.Inf(-1)}
	l.tokens[0].gap = true
	for _, t := range tokens {
		l.y0, l.y1 = min(l.y0, t.y0), max(l.y1, t.y1)
	}
	return l
}

// findGutters finds vertical stretches near the middle that almost no word crosses.
func findGutters(lines []line, width float64) []float64 {
	if len(lines) < 6 || width <= 0 {
		return nil
	}
	var out []float64
	run, start := 0, 0.0
	for k := 36; k <= 65; k++ {
		x := width * float64(k) / 100
		crossed, both := 0, 0
		for _, l := range lines {
			if l.tokens[0].x0 < x && l.tokens[len(l.tokens)-1].x1 > x {
				both++
				for _, t := range l.tokens {
					if t.x0 < x && t.x1 > x {
						crossed++
						break
					}
				}
			}
		}
		if k == 65 || both < 3 || crossed*12 > len(lines) {
			if run > 0 {
				out = append(out, start+width*float64(run-1)/200)
			}
			run = 0
			continue
		}
		if run == 0 {
			start = x
		}
		run++
	}
	return out
}

// worth says how well lines read as results of known analytes.
type worth struct {
	rows  int
	score float64
}

func (d *document) worth(lines []line) worth {
	var w worth
	var cols []column
	for i := range lines {
		if h := heading(lines[i]); h != nil {
			cols = h
			continue
		}
		if p := d.g.parse(&lines[i], cols); p != nil && p.known > 0.8 && (p.has(rUnit) || p.has(rRange) || p.has(rHigh) || p.has(rLow)) && d.tidy(p) {
			w.rows++
			w.score += p.score
		}
	}
	return w
}

// tidy reports whether a reading explains nearly all of its line.
func (d *document) tidy(p *parsed) bool {
	notes := 0
	for _, s := range p.pieces {
		if s.role == rNote && !fieldLabel(p.line.tokens[s.from:s.to]) {
			notes++
		}
	}
	return notes <= 1
}

// read goes through the lines.
func (d *document) read() {
	var cols []column
	var panel string
	panelLine, lastRow := -1, -1
	claimed := map[int]bool{}
	for i := 0; i < len(d.lines); i++ {
		l := &d.lines[i]
		if claimed[i] {
			continue
		}
		if h := heading(*l); h != nil {
			// A heading in two lines: "Reference" over "Range".
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
		if rows := d.clauses(l, cols); len(rows) > 0 {
			for _, p := range rows {
				d.add(p, i, panel, panelLine, cols)
			}
			lastRow = i
			claimed[i] = true
			continue
		}
		if r := d.stacked(i, cols, claimed); len(r) > 0 {
			for _, p := range r {
				d.add(p, i, panel, panelLine, cols)
			}
			lastRow = i
			continue
		}
		if d.continues(i, lastRow, cols) {
			claimed[i] = true
			continue
		}
		if name, ok := d.panelName(i, cols); ok {
			panel, panelLine = name, i
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

// clauses reads a line as one result, or as several that are separated by
// semicolons or repeated "Name: value".
func (d *document) clauses(l *line, cols []column) []*parsed {
	if len(l.tokens) < 2 || sentence(l) && !strings.Contains(l.text(), ";") {
		return nil
	}
	if len(l.cells()) == 1 && len(l.tokens) <= 6 && d.g.known(l.text()) > 0.85 &&
		!slices.ContainsFunc(l.tokens, func(t token) bool { return valueShape(t.text, d.g.decimals) == number1 }) {
		return nil // nothing but a name
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
	// A line that does not fit the table above may stand on its own.
	if len(cols) > 0 {
		if p := d.g.parse(l, nil); p != nil && p.known > 0.85 && d.accept(p, nil) && (p.has(rUnit) || p.has(rRange)) {
			return []*parsed{p}
		}
	}
	return nil
}

// accept decides whether a reading is a result: its name or its unit must be known.
func (d *document) accept(p *parsed, cols []column) bool {
	name := cleanName(p.text(rName))
	if name == "" || p.score < 2 {
		return false
	}
	if notAnalyte(name) && p.known < 0.8 {
		return false
	}
	known := p.known
	if known < 0.8 {
		known = d.g.nearly(name)
		p.known = known
	}
	value := strings.TrimSpace(p.text(rValue))
	sh := valueShape(value, d.g.decimals)
	_, unit := ParseUnit(strings.TrimRight(p.text(rUnit), ",;:"))
	if !unit && d.g.image {
		_, _, unit = units().repair(p.text(rUnit))
	}
	bounds, isRange := parseBounds(toPointAll(p.text(rRange), d.g.decimals))
	_ = bounds
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
	// An analyte that the catalogue does not have.
	if inTable {
		return (unit || isRange || limits || words && (sh == wordShape || sh == titerShape || sh == gradeShape)) && sh != noValue
	}
	return unit && (isRange || limits) && (sh == number1)
}

// unitless reports whether an analyte is printed without a unit: a ratio, pH, INR.
func (d *document) unitless(name string) bool {
	found := d.g.find(cleanName(name))
	for i, f := range found {
		if i > 3 {
			break
		}
		switch propertyKind(f.Term) {
		case "ratio", "ph", "gravity", "titer":
			return true
		}
	}
	return false
}

func hasRole(cols []column, r role) bool {
	return slices.ContainsFunc(cols, func(c column) bool { return c.role == r || r == rValue && c.role == rOut })
}

// stacked reads results whose parts stand under each other: the name above the
// value, alone or several side by side, and names that wrap round their values.
func (d *document) stacked(i int, cols []column, claimed map[int]bool) []*parsed {
	l := &d.lines[i]
	// A row without its name, which stands in the lines above and below it.
	if p := d.wrapped(i, cols, claimed); p != nil {
		return []*parsed{p}
	}
	if sentence(l) {
		return nil
	}
	cells := l.cells()
	if len(cells) == 1 && i+1 < len(d.lines) && !claimed[i+1] {
		if p := d.wrapped(i+1, cols, claimed); p != nil {
			return []*parsed{p}
		}
	}
	known := 0
	for _, c := range cells {
		if d.g.known(textOf(c)) > 0.8 {
			known++
		}
	}
	if known == 0 || known*2 < len(cells) {
		return nil
	}
	var out []*parsed
	used := map[int]bool{}
	for k, c := range cells {
		left, right := c[0].x0-1.5*l.height, math.Inf(1)
		if k+1 < len(cells) {
			right = cells[k+1][0].x0 - 0.5*l.height
		}
		tokens := slices.Clone(c)
		last := l.y1
		var lineNos []int
		for j := i + 1; j < len(d.lines) && j <= i+4; j++ {
			n := &d.lines[j]
			if n.page != l.page || n.y0-last > 1.8*l.height || claimed[j] {
				break
			}
			var part []token
			for _, t := range n.tokens {
				if t.x0 >= left && t.x1 <= right+l.height {
					part = append(part, t)
				}
			}
			if len(part) == 0 {
				continue
			}
			if d.g.known(textOf(part)) > 0.8 {
				break
			}
			part = slices.Clone(part)
			part[0].gap = true
			tokens = append(tokens, part...)
			lineNos = append(lineNos, j)
			last = n.y1
		}
		if len(tokens) == len(c) {
			continue
		}
		v := lineOf(tokens, *l)
		p := d.g.parse(&v, nil)
		if p == nil || p.known < 0.8 || p.pieces[0].role != rName && p.pieces[0].role != rFlag {
			continue
		}
		if !(p.has(rUnit) || p.has(rRange)) || !d.accept(p, nil) || !d.tidy(p) {
			continue
		}
		out = append(out, p)
		for _, j := range lineNos {
			used[j] = true
		}
	}
	for j := range used {
		claimed[j] = true
	}
	if len(out) > 0 {
		claimed[i] = true
	}
	return out
}

// wrapped reads a line that has a value but no name, whose name stands half a line
// above and below it, or just above it.
func (d *document) wrapped(i int, cols []column, claimed map[int]bool) *parsed {
	l := &d.lines[i]
	if len(l.tokens) == 0 || !hasRole(cols, rName) {
		return nil
	}
	for _, c := range cols {
		if c.role != rName {
			continue
		}
		if math.Abs(l.tokens[0].x0-c.x0) < 4*l.height || slices.ContainsFunc(l.tokens, func(t token) bool { return t.gap && math.Abs(t.x0-c.x0) < 2.5*l.height }) {
			return nil // it has a name of its own
		}
	}
	if valueShape(l.tokens[0].text, d.g.decimals) == noValue && !isMark(l.tokens[0].text) {
		return nil
	}
	part := func(j int) []token {
		if j < 0 || j >= len(d.lines) || claimed[j] || d.lines[j].page != l.page || len(d.lines[j].cells()) != 1 {
			return nil
		}
		n := &d.lines[j]
		if math.Abs((n.y0+n.y1)/2-(l.y0+l.y1)/2) > 1.6*l.height || n.tokens[0].x0 > l.tokens[0].x0 {
			return nil
		}
		return n.tokens
	}
	above, under := part(i-1), part(i+1)
	for _, names := range [][][]token{{above, under}, {above}, {under}} {
		var tokens []token
		for _, n := range names {
			tokens = append(tokens, n...)
		}
		if len(tokens) == 0 || len(names) == 2 && (above == nil || under == nil) {
			continue
		}
		for k := range tokens {
			tokens[k].gap = k == 0
		}
		v := lineOf(append(slices.Clone(tokens), l.tokens...), *l)
		for k := range v.tokens {
			if k > 0 && k < len(tokens) {
				v.tokens[k].gap = false
			}
		}
		p := d.g.parse(&v, cols)
		if p == nil || !d.accept(p, cols) {
			continue
		}
		if p.known < 0.8 && len(names) < 2 {
			continue
		}
		claimed[i] = true
		if under != nil && (len(names) == 2 || &names[0][0] == &under[0]) {
			claimed[i+1] = true
		}
		if above != nil && (len(names) == 2 || &names[0][0] == &above[0]) {
			claimed[i-1] = true
		}
		return p
	}
	return nil
}

// continues attaches a line to the row above it: the rest of a wrapped name, the
// second line of a range.
func (d *document) continues(i, lastRow int, cols []column) bool {
	if lastRow < 0 || len(d.rows) == 0 || i-lastRow > 3 {
		return false
	}
	l, r := &d.lines[i], &d.rows[len(d.rows)-1]
	above := &d.lines[i-1]
	if l.page != above.page || l.y0 <= above.y0 || l.y0-above.y1 > 0.9*l.height || len(l.cells()) > 2 {
		return false
	}
	text := l.text()
	// The range under its row.
	if r.reference == "" && len(l.tokens) <= 8 {
		if b, ok := parseBounds(toPointAll(text, d.g.decimals)); ok {
			r.reference, r.bounds, r.refToks = text, b, l.tokens
			return true
		}
	}
	// The rest of a range.
	if refs := r.refToks; len(refs) > 0 && l.tokens[0].x0 > refs[0].x0-1.2*l.height && len(r.nameToks) > 0 && l.tokens[0].x0 > r.nameToks[len(r.nameToks)-1].x1 {
		if !sentence(l) && len(l.tokens) <= 10 {
			r.reference = strings.TrimSpace(r.reference + " " + text)
			r.refToks = append(slices.Clone(refs), l.tokens...)
			r.bounds, _ = parseBounds(toPointAll(r.reference, d.g.decimals))
			return true
		}
		return false
	}
	// The rest of a name: the catalogue knows the two together and not the first
	// alone, or better.
	if i-lastRow == 1 && len(l.cells()) == 1 && len(r.nameToks) > 0 && len(l.tokens) <= 5 &&
		math.Abs(l.tokens[0].x0-r.nameToks[0].x0) < 2.5*l.height && !sentence(l) {
		joined := r.name + " " + text
		k := d.g.known(joined)
		if k > 0.8 && k >= r.known-0.02 && d.g.known(text) < 0.8 || strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") && strings.IndexFunc(text, isDigit) < 0 && len(l.tokens) <= 4 && k >= r.known-0.1 {
			r.name = cleanName(joined)
			r.known = max(k, r.known)
			r.nameToks = append(slices.Clone(r.nameToks), l.tokens...)
			return true
		}
	}
	return false
}

// panelName returns the heading that a line without a value may be.
func (d *document) panelName(i int, cols []column) (string, bool) {
	l := &d.lines[i]
	cells := l.cells()
	text := cleanName(textOf(cells[0]))
	words := foldWords(text)
	if len(words) == 0 || len(words) > 9 || len(text) < 3 || sentence(l) || len(cells) > 2 {
		return "", false
	}
	if f, n := label(l.tokens, 0); n > 0 && f != noField && f != fLab && f != fSpecimen {
		return "", false
	}
	if strings.HasSuffix(text, ".") || strings.IndexFunc(text, unicode.IsLetter) < 0 {
		return "", false
	}
	if _, printed, _ := findDate(text, dayFirst); printed != "" {
		return "", false
	}
	letters := strings.IndexFunc(text, unicode.IsLetter)
	if letters > 3 {
		return "", false
	}
	if w := words[0]; w == "page" || w == "seite" || w == "pagina" || w == "note" || w == "comment" || w == "method" || w == "methode" || w == "metodo" || w == "hinweis" || w == "nota" {
		return "", false
	}
	// The next lines must be rows, so that the address at the top is no panel.
	for j := i + 1; j < len(d.lines) && j <= i+4; j++ {
		n := &d.lines[j]
		if heading(*n) != nil {
			return text, true
		}
		if p := d.g.parse(n, cols); p != nil && d.accept(p, cols) {
			return text, true
		}
		if cells := n.cells(); d.g.known(textOf(cells[0])) > 0.8 {
			return text, true
		}
	}
	return "", false
}
