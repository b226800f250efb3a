package labreport

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// notAnalyte reports whether a name is a label, an address or a counter of the document.
func notAnalyte(name string) bool {
	words := fold.Words(name)
	if len(words) == 0 {
		return true
	}
	if r, ok := headWords[strings.Join(words, " ")]; ok && (r == rValue || r == rUnit || r == rRange || r == rFlag || r == rPrev) {
		return true
	}
	for _, w := range words {
		if frameWords[w] {
			return true
		}
	}
	return false
}

// guidanceWords are words in explanations of values: by risk, by age, by state.
var guidanceWords = words("guidance")

func guidance(name string) bool {
	return slices.ContainsFunc(fold.Words(name), func(w string) bool { return guidanceWords[w] })
}

func isFlagOnly(name string) bool {
	words := slices.DeleteFunc(strings.Fields(name), func(w string) bool { return strings.IndexFunc(w, unicode.IsLetter) < 0 })
	_, flag := flagMeaning(strings.Join(words, " "))
	return flag
}

// controlWords are words in rows with the value of a control sample.
var controlWords = words("control")

// olderResult reports whether a line is an older result of the row above it: "Previous: 5.2 mg/dL".
func olderResult(l *line) bool {
	for n := 1; n <= min(3, len(l.tokens)); n++ {
		if !strings.HasSuffix(l.tokens[n-1].text, ":") {
			continue
		}
		r, k := headPhrase(l.tokens[:n])
		return k == n && r == rPrev
	}
	return false
}

// emptyResult reports whether a line of a table has a name and a range, and no result: each cell after the name is a
// range in the column of ranges, a unit, a mark, or in a column of older results, codes, remarks or dates. In a picture
// the result may be there and not read.
func (d *document) emptyResult(l *line, cols []column) bool {
	cells := l.cells()
	if d.g.image || len(cells) < 2 || !hasRole(cols, rValue) || !hasRole(cols, rRange) || strings.IndexFunc(textOf(cells[0]), unicode.IsLetter) < 0 {
		return false
	}
	ranged := false
	for _, cell := range cells[1:] {
		text := textOf(cell)
		c, off := columnOf(cols, cell[0].x0, cell[len(cell)-1].x1, l.height)
		_, isRange := parseBounds(toPointAll(text, d.g.decimals))
		_, isUnit := ucum.Parse(text)
		other := cols[c].role == rPrev || cols[c].role == rCode || cols[c].role == rNote || cols[c].role == rDate
		switch {
		case cols[c].role == rRange && off < 1 && isRange:
			ranged = true
		case strings.Trim(text, "*-.") != "" && !isUnit && !(other && off < 1):
			return false
		}
	}
	return ranged
}

// frameWords are words that do not occur in names of analytes.
var frameWords = words("frame")

// stopWords are frequent words of sentences.
var stopWords = words("stop")

// verbWords are verbs in sentences.
var verbWords = words("verb")

func isVerb(t token) bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsLower(first) && verbWords[fold.String(strings.TrimRight(t.text, ",;."))]
}

// inSentence reports whether a row is a part of a sentence. Signs of a sentence are a verb in its cell, a word
// of guidance or a range label before the name, a name that matches better without its first word ("Target
// Thyroxine (T4)"), a value of words in the cell of the name, or a number without a range at the end of a
// sentence.
func (p *parsed) inSentence(g *grammar) bool {
	name := slices.IndexFunc(p.pieces, func(s piece) bool { return s.role == rName })
	from, to := p.pieces[name].from, p.pieces[name].to
	tokens := p.line.tokens
	for from > 0 && !tokens[from].gap {
		from--
	}
	for to < len(tokens) && !tokens[to].gap {
		to++
	}
	cell := tokens[from:to]
	if p.inFootnote(g, from, to) {
		return true
	}
	if len(cell) >= 5 && slices.ContainsFunc(cell[1:], isVerb) {
		return true
	}
	if before := tokens[from:p.pieces[name].from]; len(before) > 0 {
		if r, _ := headPhrase(before); r == rRange && strings.HasSuffix(textOf(before), ":") || guidance(textOf(before)) {
			return true
		}
	}
	if words := tokens[p.pieces[name].from:p.pieces[name].to]; len(words) > 1 {
		label, _ := headPhrase(words[:1])
		if (label == rRange || label == rValue && from < p.pieces[name].from || guidance(words[0].text)) && g.known(textOf(words[1:])) > max(0.8, g.known(textOf(words))) {
			return true
		}
	}
	value := p.find(rValue)
	last := p.pieces[len(p.pieces)-1]
	if valueShape(textOf(value), g.decimals) == number1 && !p.has(rRange) && last.role == rNote && last.to == to && reSentenceEnd.MatchString(tokens[to-1].text) {
		return true
	}
	if len(value) == 0 || value[0].gap || valueShape(textOf(value), g.decimals) != noValue && valueShape(textOf(value), g.decimals) != noteShape {
		return false
	}
	return slices.ContainsFunc(value, func(t token) bool {
		return slices.ContainsFunc(fold.Words(t.text), func(w string) bool { return stopWords[w] }) || isVerb(t)
	})
}

// inFootnote reports whether a row, whose cell is tokens[from:to] of the line, is a remark about an analyte: "Critical
// values: Potassium > 6.5 mmol/L". It has a label of guidance before the name, or it is a comparison without a range in
// the cell of its name, with other words than the name or with a name that the catalogue does not know.
func (p *parsed) inFootnote(g *grammar, from, to int) bool {
	tokens := p.line.tokens
	name := p.pieces[slices.IndexFunc(p.pieces, func(s piece) bool { return s.role == rName })]
	end := name.from
	for k := name.from; k < name.to-1; k++ {
		if strings.HasSuffix(tokens[k].text, ":") {
			end = k + 1
		}
	}
	label := textOf(tokens[from:end])
	_, flag := flagMeaning(label)
	labelled := strings.IndexFunc(label, unicode.IsLetter) >= 0 && !fieldLabel(tokens[from:end]) && (!flag || strings.HasSuffix(label, ":")) &&
		loinc.NamedSpecimen(textOf(tokens[from:name.to])) == loinc.NoSpecimen
	if labelled && end > name.from && guidance(label) {
		return true
	}
	value := p.find(rValue)
	ranged := slices.ContainsFunc(p.pieces, func(s piece) bool { return s.role == rRange && s.from >= name.to })
	compared := strings.ContainsAny(textOf(value), "<>") && !value[0].gap && !ranged
	between := slices.ContainsFunc(p.pieces, func(s piece) bool {
		words := tokens[s.from:s.to]
		return s.role == rNote && s.from >= name.to && s.from < to && strings.IndexFunc(textOf(words), unicode.IsLetter) >= 0 && !fieldLabel(words)
	})
	return compared && (labelled || between || g.likeness(textOf(tokens[name.from:name.to])) < 0.8)
}

// reSentenceEnd is the last word of a sentence.
var reSentenceEnd = regexp.MustCompile(`^\p{Ll}{3,}\.$`)

// sentence reports whether a line is running text.
func sentence(l *line) bool {
	words, stops, digits := 0, 0, 0
	for _, t := range l.tokens {
		for _, w := range fold.Words(t.text) {
			words++
			if stopWords[w] {
				stops++
			}
			if strings.IndexFunc(w, fold.IsDigit) >= 0 {
				digits++
			}
		}
	}
	return words >= 6 && stops >= 3 && float64(stops) >= 0.22*float64(words-digits) || words >= 12 && stops >= 2 && len(l.cells()) == 1 && stops*6 >= words
}
