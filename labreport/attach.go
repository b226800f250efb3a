package labreport

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// readMultiLine reads results that are spread over line i and its neighbours: names in line i above their values, and a
// name that wraps around its value in line i or i+1. claimed is the set of lines that already belong to a result;
// readMultiLine adds the lines that it uses.
func (d *document) readMultiLine(i int, cols []column, claimed map[int]bool) []*parsed {
	l := &d.lines[i]
	// A row whose name is in the lines above and below it.
	if p := d.readWrappedName(i, cols, claimed); p != nil {
		return []*parsed{p}
	}
	if sentence(l) {
		return nil
	}
	cells := l.cells()
	if len(cells) == 1 && i+1 < len(d.lines) && !claimed[i+1] {
		if p := d.readWrappedName(i+1, cols, claimed); p != nil {
			return []*parsed{p}
		}
	}
	return d.readSideBySide(i, cells, claimed)
}

// readSideBySide reads line i, split into cells, as analyte names side by side, and the values from the four lines
// below. claimed is the set of lines that already belong to a result; readSideBySide adds the lines that it uses.
func (d *document) readSideBySide(i int, cells [][]token, claimed map[int]bool) []*parsed {
	l := &d.lines[i]
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
			if d.g.known(textOf(part)) > 0.8 || d.beginsKnown(part) {
				break // the line is a separate row
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
		if !(p.has(rUnit) || p.has(rRange)) || !d.accept(p, nil) || !d.fillsLine(p) {
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

// readWrappedName reads line i as a row with a value and no name, whose name is in the line above, the line below, or
// both. It returns nil if line i is no such row. claimed is the set of lines that already belong to a result;
// readWrappedName adds the lines that it uses.
func (d *document) readWrappedName(i int, cols []column, claimed map[int]bool) *parsed {
	l := &d.lines[i]
	if len(l.tokens) == 0 || !hasRole(cols, rName) {
		return nil
	}
	for _, c := range cols {
		if c.role != rName {
			continue
		}
		if math.Abs(l.tokens[0].x0-c.x0) < 4*l.height || slices.ContainsFunc(l.tokens, func(t token) bool { return t.gap && math.Abs(t.x0-c.x0) < 2.5*l.height }) {
			return nil // the line has its own name
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

// splitName reads a row whose name begins in line i and ends one or two lines below: "Vitamin D," over "25-Hydroxy",
// "Low Density" over "Lipoprotein". It joins the lines if the catalogue has the joined name and line i is not a
// heading. It returns the row and the index of its last line, and adds its lines to claimed; nil and 0 if there is no
// such row.
func (d *document) splitName(i int, cols []column, claimed map[int]bool) (*parsed, int) {
	if !d.namePart(i, claimed) {
		return nil, 0
	}
	parts := slices.Clone(d.lines[i].tokens)
	for j := i + 1; j <= i+2 && j < len(d.lines); j++ {
		l, above := &d.lines[j], &d.lines[j-1]
		if claimed[j] || l.page != above.page || l.y0 <= above.y0 || l.y0-above.y1 > 0.9*l.height || len(l.tokens) == 0 || sentence(l) {
			return nil, 0
		}
		if x := l.tokens[0].x0 - parts[0].x0; x < -0.25*l.height || x > 2.5*l.height {
			return nil, 0
		}
		if p := d.joinedRow(parts, j, cols); p != nil {
			for k := i; k <= j; k++ {
				claimed[k] = true
			}
			return p, j
		}
		if !d.namePart(j, claimed) {
			return nil, 0
		}
		parts = append(parts, l.tokens...)
	}
	return nil, 0
}

func (d *document) namePart(i int, claimed map[int]bool) bool {
	l := &d.lines[i]
	return !claimed[i] && len(l.cells()) == 1 && len(l.tokens) <= 5 && !sentence(l) && strings.IndexFunc(l.text(), unicode.IsLetter) >= 0 && !strings.HasSuffix(l.text(), ":") &&
		loinc.SpecimenOf(l.text()) == loinc.NoSpecimen
}

// joinedRow reads line j as a row whose name begins with parts, the tokens of the lines above; nil if the catalogue
// does not have the joined name or if parts is a heading.
func (d *document) joinedRow(parts []token, j int, cols []column) *parsed {
	l := &d.lines[j]
	tokens := append(slices.Clone(parts), l.tokens...)
	for k := 1; k <= len(parts); k++ {
		tokens[k].gap = false
	}
	v := lineOf(tokens, *l)
	p := d.g.parse(&v, cols)
	if p == nil || p.pieces[0].role != rName || p.pieces[0].to <= len(parts) || !d.accept(p, cols) {
		return nil
	}
	if r, n := headPhrase(l.tokens); n > 0 && r != rName {
		return nil // "Result 0.9" below a name
	}
	if have, all := loinc.Key(textOf(parts)), loinc.Key(cleanName(p.text(rName))); !slices.ContainsFunc(all, func(w string) bool { return !slices.Contains(have, w) }) {
		return nil // the line adds nothing to the name
	}
	known := p.known
	if bare, inside := fold.Parentheses(cleanName(p.text(rName))); inside != "" {
		known = d.g.known(bare) // the name without the parentheses may be in the catalogue
	}
	text := textOf(parts)
	open := strings.HasSuffix(text, ",") || strings.HasSuffix(text, "-") || strings.Count(text, "(") > strings.Count(text, ")")
	if open {
		if known < 0.85 {
			return nil
		}
		return p
	}
	alone := 0.0
	if q := d.g.parse(l, cols); q != nil {
		alone = q.known
	}
	whole := cleanName(p.text(rName))
	if known < 0.9 || alone > 0.8 && d.g.known(text) > 0.8 && !d.sameComponent(text, whole) || d.completesName(text, j+1, cols) {
		return nil
	}
	return p
}

func (d *document) sameComponent(a, b string) bool {
	x, y := d.g.find(a), d.g.find(b)
	return len(x) > 0 && len(y) > 0 && x[0].Term.Component == y[0].Term.Component
}

// completesName reports whether the row in line i needs the heading text as the first part of its name: the catalogue
// has text followed by the row's name, and not the row's name alone.
func (d *document) completesName(text string, i int, cols []column) bool {
	if i >= len(d.lines) {
		return false
	}
	p := d.g.parse(&d.lines[i], cols)
	return p != nil && p.known < 0.8 && d.g.known(text+" "+p.text(rName)) > 0.8
}

// appendRange reads line i as the range of the row above, or as the second line of this range, and adds it to the row.
// It reports whether it did. lastRow is the index of the last line of the row.
func (d *document) appendRange(i, lastRow int, cols []column) bool {
	if lastRow < 0 || len(d.rows) == 0 || i-lastRow > 3 {
		return false
	}
	l, r := &d.lines[i], &d.rows[len(d.rows)-1]
	above := &d.lines[i-1]
	if l.page != above.page || l.y0 <= above.y0 || l.y0-above.y1 > 0.9*l.height || len(l.cells()) > 2 {
		return false
	}
	text := l.text()
	// The range is below its row.
	if r.reference == "" && len(l.tokens) <= 8 {
		if b, ok := parseBounds(toPointAll(text, d.g.decimals)); ok {
			r.reference, r.bounds, r.refToks = text, b, l.tokens
			return true
		}
	}
	// The line is the rest of a range.
	if refs := r.refToks; len(refs) > 0 && l.tokens[0].x0 > refs[0].x0-1.2*l.height && len(r.nameToks) > 0 && l.tokens[0].x0 > r.nameToks[len(r.nameToks)-1].x1 {
		if !sentence(l) && len(l.tokens) <= 10 {
			r.reference = strings.TrimSpace(r.reference + " " + text)
			r.refToks = append(slices.Clone(refs), l.tokens...)
			r.bounds, _ = parseBounds(toPointAll(r.reference, d.g.decimals))
			return true
		}
		return false
	}
	return false
}

// appendName reads line i as the second line of the name of the row above, and adds it to the row. It reports
// whether it did. The catalogue must have the joined name, and must not match the first part clearly better. A remark
// in parentheses need only match about as well as the name before it. A unit in parentheses, at the end of line i or
// alone in it, becomes the unit of a row that has none. lastRow is the index of the last line of the row.
func (d *document) appendName(i, lastRow int) bool {
	if lastRow < 0 || len(d.rows) == 0 || i-lastRow != 1 {
		return false
	}
	l, r := &d.lines[i], &d.rows[len(d.rows)-1]
	above := &d.lines[i-1]
	if l.page != above.page || l.y0 <= above.y0 || l.y0-above.y1 > 0.9*l.height || len(l.cells()) != 1 || len(l.tokens) > 5 || sentence(l) {
		return false
	}
	name := r.nameCell()
	if len(name) == 0 || l.tokens[0].x0 < name[0].x0-0.25*l.height || l.tokens[0].x0 > name[0].x0+2.5*l.height {
		return false // a heading begins to the left of its rows
	}
	tokens := l.tokens
	text := textOf(tokens)
	last := tokens[len(tokens)-1]
	unit, isUnit := ucum.Parse(last.text)
	isUnit = isUnit && strings.HasPrefix(last.text, "(") && strings.HasSuffix(last.text, ")")
	takeUnit := func() {
		if isUnit && r.unitText == "" {
			r.unit, r.unitText, r.unitToks = unit, strings.Trim(last.text, "()"), []token{last}
		}
	}
	if isUnit {
		tokens = tokens[:len(tokens)-1]
		if len(tokens) == 0 {
			takeUnit()
			return true
		}
		text = textOf(tokens)
	}
	if strings.IndexFunc(text, unicode.IsLetter) < 0 {
		return false // the line has a range or a value
	}
	joined := cleanName(textOf(name) + " " + text)
	k := d.g.known(joined)
	remark := strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") && strings.IndexFunc(text, fold.IsDigit) < 0 && len(tokens) <= 4 && k >= r.known-0.1
	have := loinc.Key(r.name)
	if words := loinc.Key(text); len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(have, w) }) {
		return false // the line adds nothing to the name
	}
	if !(remark || k > 0.8 && k >= r.known-0.05 && (k >= 0.95 || d.g.known(text) < 0.8)) {
		return false
	}
	r.name, r.known = joined, max(k, r.known)
	r.nameToks = append(slices.Clone(name), tokens...)
	takeUnit()
	return true
}

// nameCell returns the tokens of a row's name up to the end of its cell or up to a unit, including words that belong to
// no field; nil if another field of the row comes before that end.
func (r *row) nameCell() []token {
	for k, s := range r.p.pieces {
		if s.role != rName {
			continue
		}
		to := s.to
		for _, next := range r.p.pieces[k+1:] {
			if r.p.line.tokens[next.from].gap || next.role == rUnit {
				break
			}
			if next.role != rNote {
				return nil
			}
			to = next.to
		}
		if len(r.nameToks) > s.to-s.from {
			return r.nameToks // the name continues in the next line
		}
		return r.p.line.tokens[s.from:to]
	}
	return nil
}

// nameTruncated reports whether words that belong to no field follow the name in the same cell: "Bilirubin d1rekt" is
// another analyte than bilirubin, and "Vitamin D 1,25" is not vitamin D.
func (r *row) nameTruncated() bool {
	name := r.p.find(rName)
	if len(r.nameToks) != len(name) {
		return false // the name continues in the next line
	}
	for k, s := range r.p.pieces {
		if s.role != rName {
			continue
		}
		for _, next := range r.p.pieces[k+1:] {
			rest := r.p.line.tokens[next.from:next.to]
			if next.role != rNote || rest[0].gap || fieldLabel(rest) {
				return false
			}
			if slices.ContainsFunc(rest, func(t token) bool { return len(fold.Words(t.text)) > 0 }) {
				return true
			}
		}
	}
	return false
}

// panelName returns the first cell of line i if it can be the heading of a panel: it has no value, and one of the
// next four lines is a row, a table heading or a known analyte. It returns false for other lines.
func (d *document) panelName(i int, cols []column) (string, bool) {
	l := &d.lines[i]
	cells := l.cells()
	text := cleanName(textOf(cells[0]))
	words := fold.Words(text)
	if len(words) == 0 || len(words) > 9 || len(text) < 3 || sentence(l) || len(cells) > 2 {
		return "", false
	}
	if f, n := label(l.tokens, 0); n > 0 && f != noField && f != fLab && f != fSpecimen {
		return "", false
	}
	if strings.HasSuffix(text, ".") || strings.IndexFunc(text, unicode.IsLetter) < 0 || reSite.MatchString(l.text()) {
		return "", false
	}
	if _, printed, _ := findDate(text, dayFirst); printed != "" {
		return "", false
	}
	letters := strings.IndexFunc(text, unicode.IsLetter)
	if letters > 3 {
		return "", false
	}
	if d.printsRange(cells[0]) || len(cells) == 2 && inValueColumn(cols, cells[1], l.height) {
		return "", false // the line has a range or an unknown word as a result
	}
	if w := words[0]; w == "page" || w == "seite" || w == "pagina" || w == "note" || w == "comment" || w == "method" || w == "methode" || w == "metodo" || w == "hinweis" || w == "nota" {
		return "", false
	}
	// The next lines must be rows, so that an address at the top is not read as a panel.
	for j := i + 1; j < len(d.lines) && j <= i+4; j++ {
		n := &d.lines[j]
		if f, k := label(n.tokens, 0); k > 0 && f != noField && f != fSpecimen {
			return "", false // the line is in the head of the report
		}
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

// printsRange reports whether the tokens end in a range: "Women: 13 - 150".
func (d *document) printsRange(tokens []token) bool {
	for k := range tokens {
		if b, ok := d.g.bounds(toPointAll(textOf(tokens[k:]), d.g.decimals)); ok && b.any() {
			return true
		}
	}
	return false
}

// reSpecimen matches a line or a cell that states the specimen.
var reSpecimen = regexp.MustCompile(`(?i)^(?:specimen|sample|specimen type|sample type|type of specimen|specimen source|source|material|probenmaterial|untersuchungsmaterial|probenart|probe|muestra|tipo de muestra|tipo de esp[eé]cimen|[eé]chantillon|nature du pr[eé]l[eè]vement|nature de l'[eé]chantillon|type de pr[eé]l[eè]vement|mat[eé]riel)\s*:?\s+(.+)$`)

// reSite matches a line that states the body site of a specimen.
var reSite = regexp.MustCompile(`(?i)^(?:source|specimen source|specimen|sample|site|body site|collection site|material|probe|entnahmeort|entnahmestelle|muestra|sitio|lugar|localizaci[oó]n|pr[eé]l[eè]vement|siège|site de pr[eé]l[eè]vement)\s*:`)

// statesSpecimen records the specimen that line l states with a label, such as "Specimen: serum": before the first row
// as that of the report, later as that of the section in. It reports whether the line has such a label.
func (d *document) statesSpecimen(l *line, in *section) bool {
	state := func(text string) bool {
		of := loinc.StatedSpecimen(text)
		switch {
		case of == loinc.NoSpecimen:
			return false
		case len(d.rows) > 0:
			in.specimen = of
		default:
			d.reportSpecimen(of)
		}
		return true
	}
	cells := l.cells()
	for i, c := range cells {
		text := textOf(c)
		if m := reSpecimen.FindStringSubmatch(text); m != nil && state(m[1]) {
			return true
		}
		if i+1 < len(cells) && reSpecimen.MatchString(strings.TrimRight(text, ":")+": x") && state(textOf(cells[i+1])) {
			return true
		}
	}
	return false
}

// titleSpecimen records the specimen in line l as that of the report if the line is a title before the first row. The
// heading of a section is no title.
func (d *document) titleSpecimen(l *line) {
	if len(d.rows) > 0 || len(l.cells()) != 1 || len(l.tokens) > 6 || sentence(l) {
		return
	}
	if of := loinc.StatedSpecimen(l.text()); of != loinc.NoSpecimen && of != loinc.OtherSpecimen && of != loinc.Blood {
		d.reportSpecimen(of)
	}
}

func (d *document) reportSpecimen(of loinc.Specimen) {
	if d.mixed || d.specimen != loinc.NoSpecimen && d.specimen != of && d.specimen != loinc.Blood {
		d.mixed, of = true, loinc.NoSpecimen // the sections have different specimens
	}
	d.specimen = of
}

// specimenFor returns the specimen that the row, its section or the report states, in this order.
func (d *document) specimenFor(p *parsed, in section) loinc.Specimen {
	for _, s := range p.pieces {
		if s.role == rNote {
			if of := loinc.SpecimenOf(textOf(p.line.tokens[s.from:s.to])); of != loinc.NoSpecimen {
				return of
			}
		}
	}
	if in.specimen != loinc.NoSpecimen && !(isDepartment(in.name) && d.specimen != loinc.NoSpecimen) {
		return in.specimen
	}
	return d.specimen
}
