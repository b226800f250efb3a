package labreport

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// piece is a part of a line with its role.
type piece struct {
	role     role
	from, to int // the part is tokens[from:to] of the line
}

// parsed is the best reading of a line as one result.
type parsed struct {
	line   *line
	pieces []piece
	score  float64
	// known is the likeness of the best catalogue term for the name, 0 to 1. Before accept, it is 0 if the likeness is
	// less than 0.85.
	known float64
	cols  []column
}

func (p *parsed) has(r role) bool { return p.find(r) != nil }

func (p *parsed) find(r role) []token {
	for _, s := range p.pieces {
		if s.role == r {
			return p.line.tokens[s.from:s.to]
		}
	}
	return nil
}

// withGroup returns the tokens of a role, with a word of sex or age in front of them.
func (p *parsed) withGroup(r role) []token {
	for i, s := range p.pieces {
		if s.role != r {
			continue
		}
		if i > 0 && p.pieces[i-1].role == rNote && refrange.ByGroups(textOf(p.line.tokens[p.pieces[i-1].from:p.pieces[i-1].to])) {
			return p.line.tokens[p.pieces[i-1].from:s.to]
		}
		return p.line.tokens[s.from:s.to]
	}
	return nil
}

// rangeLabel returns the words directly before the range that begin its cell: "Deficient < 20". A word that can be a
// flag is no label in a flag column, and before a range with two ends only if it is a usual word.
func (p *parsed) rangeLabel() []token {
	at := slices.IndexFunc(p.pieces, func(s piece) bool { return s.role == rRange })
	if at < 0 {
		return nil
	}
	tokens := p.line.tokens
	end := p.pieces[at].from
	from := end
	for k := at - 1; k >= 0 && !tokens[from].gap; k-- {
		s := p.pieces[k]
		text := textOf(tokens[s.from:s.to])
		if s.role == rFlag && (p.inFlagColumn(s) || !strings.ContainsAny(tokens[end].text, "<>") && !usualWord(tokens[s.from:s.to])) || s.role != rFlag && s.role != rNote ||
			strings.IndexFunc(text, unicode.IsLetter) < 0 || len(text) < 3 {
			break
		}
		from = s.from
	}
	if !tokens[from].gap {
		return nil
	}
	return tokens[from:end]
}

func (p *parsed) inFlagColumn(s piece) bool {
	c, _ := columnOf(p.cols, p.line.tokens[s.from].x0, p.line.tokens[s.to-1].x1, p.line.height)
	return c >= 0 && p.cols[c].role == rFlag
}

func (p *parsed) inSecondResult(s piece) bool {
	c, _ := columnOf(p.cols, p.line.tokens[s.from].x0, p.line.tokens[s.to-1].x1, p.line.height)
	return c >= 0 && p.cols[c].second
}

// nameWithIndex returns the tokens of the name and of a word after it that was read as a unit: "IgG index", "LDH
// ratio". It returns nil if no such word follows.
func (p *parsed) nameWithIndex() []token {
	for k, s := range p.pieces[:len(p.pieces)-1] {
		unit := p.pieces[k+1]
		if s.role != rName || unit.role != rUnit || p.line.tokens[unit.from].gap {
			continue
		}
		if wordUnits[strings.ToLower(textOf(p.line.tokens[unit.from:unit.to]))] && slices.ContainsFunc(p.pieces[k+2:], func(s piece) bool { return s.role == rValue }) {
			return p.line.tokens[s.from:unit.to]
		}
	}
	return nil
}

// twoValues reports whether a second number or unit follows the name, outside of the columns of older results, codes
// and remarks.
func (p *parsed) twoValues(d Decimals) bool {
	named := false
	for _, s := range p.pieces {
		named = named || s.role == rName
		if !named || s.role != rNote && s.role != rCode && s.role != rPrev || hasRole(p.cols, s.role) && !p.inSecondResult(s) {
			continue
		}
		if slices.ContainsFunc(p.line.tokens[s.from:s.to], func(t token) bool {
			_, unit := ucum.Parse(t.text)
			return unit && len(t.text) > 2 || valueShape(strings.Trim(t.text, "()"), d) == number1
		}) {
			return true
		}
	}
	return false
}

func (p *parsed) text(r role) string { return textOf(p.find(r)) }

// grammar parses the lines of one document.
type grammar struct {
	catalogue loinc.Catalogue
	decimals  Decimals
	names     map[string]float64
	ranges    map[string]ranged
	fits      map[stretch]float64
	image     bool
}

func newGrammar(c loinc.Catalogue) grammar {
	return grammar{catalogue: c, names: map[string]float64{}, ranges: map[string]ranged{}, fits: map[stretch]float64{}}
}

// stretch is a text with a role, as the key of a cache: the same units are in every row, and a line is parsed
// more than once.
type stretch struct {
	role   role
	tokens int
	cols   roleSet
	text   string
}

// roleSet is a set of roles.
type roleSet uint16

func (s roleSet) has(r role) bool { return s&(1<<r) != 0 }

// known returns the likeness, 0 to 1, of the best catalogue term for a name; 0 if the likeness is less than 0.85.
func (g *grammar) known(name string) float64 {
	name = cleanName(name)
	if name == "" {
		return 0
	}
	if k, ok := g.names[name]; ok {
		return k
	}
	k := 0.0
	if found := g.find(name); len(found) > 0 && found[0].Likeness >= 0.85 {
		k = found[0].Likeness
	}
	g.names[name] = k
	return k
}

// bounds is parseBounds with a cache, because the same texts are parsed repeatedly.
func (g *grammar) bounds(text string) (Bounds, bool) {
	if strings.IndexFunc(text, fold.IsDigit) < 0 {
		return Bounds{}, false
	}
	if b, ok := g.ranges[text]; ok {
		return b.b, b.ok
	}
	b, ok := parseBounds(text)
	g.ranges[text] = ranged{b, ok}
	return b, ok
}

type ranged struct {
	b  Bounds
	ok bool
}

// likeness returns the likeness, 0 to 1, of the best catalogue term for a name, even if the name is misread or
// misspelt. Unlike known it has no lower limit.
func (g *grammar) likeness(name string) float64 {
	if k := g.known(name); k > 0.8 {
		return k
	}
	found := g.find(cleanName(name))
	if len(found) == 0 {
		return 0
	}
	return found[0].Likeness
}

// find returns the terms of a name. If the catalogue fails, it uses the embedded names, so that only codes are
// missing.
func (g *grammar) find(name string) []loinc.Found {
	found, err := g.catalogue.Find(name)
	if err != nil {
		found, _ = loinc.Embedded().Find(name)
	}
	return found
}

var (
	reFootnote = regexp.MustCompile(`[\s*†‡¹²³]+$|\s*\(?[*†‡]+\)?$`)
	reBullet   = regexp.MustCompile(`^(?:[•●■▪◦‣○·*>»+e-]\s+|\*+\s*|\d{1,2}[.)]\s+)`)
)

// cleanName removes bullets, colons and footnote marks around a name.
func cleanName(s string) string {
	s = strings.TrimSpace(s)
	if first, _ := utf8.DecodeRuneInString(s); !unicode.IsLetter(first) || len(s) > 1 && s[1] == ' ' {
		s = reBullet.ReplaceAllString(s, "")
	}
	s = strings.TrimRight(s, " :;.,-=|")
	if last, _ := utf8.DecodeLastRuneInString(s); !unicode.IsLetter(last) && !fold.IsDigit(last) {
		s = reFootnote.ReplaceAllString(s, "")
	}
	s = strings.TrimLeft(s, " :;.,|*•-")
	return strings.Join(strings.Fields(s), " ")
}

const impossible = -1e9

// mostTokens is the greatest number of tokens of any part of a line.
const mostTokens = 12

// longest is the greatest number of tokens of a part by role.
var longest = [roles]int{rName: 9, rValue: 4, rFlag: 2, rUnit: 4, rRange: mostTokens, rLow: 2, rHigh: 2, rPrev: 2, rCode: 2, rNote: 3, rDate: 3, rOut: 0}

// parse reads a line as one result. It returns nil if no reading has a name and a value.
func (g *grammar) parse(l *line, cols []column) *parsed {
	n := len(l.tokens)
	if n < 2 || n > 48 {
		return nil
	}
	s := search{g: g, l: l, cols: cols, memo: map[int]step{}, scores: make([]scored, int(roles)*n*mostTokens)}
	for _, c := range cols {
		r := c.role
		if r == rOut {
			r = rValue
		}
		s.hasCol |= 1 << r
	}
	best := s.best(0, 0)
	if best.score <= impossible/2 {
		return nil
	}
	p := &parsed{line: l, score: best.score, cols: cols}
	for i, mask := 0, 0; i < n; {
		st := s.memo[i<<8|mask]
		p.pieces = append(p.pieces, piece{st.role, i, i + st.n})
		if st.role < rPrev {
			mask |= 1 << st.role
		}
		i += st.n
	}
	p.known = g.known(p.text(rName))
	return p
}

// search finds the best sequence of parts, by dynamic programming over the position and the set of used roles.
type search struct {
	g      *grammar
	l      *line
	cols   []column
	hasCol roleSet
	memo   map[int]step
	scores []scored // by role, first token and number of tokens
}

type scored struct {
	v    float64
	done bool
}

type step struct {
	score float64
	role  role
	n     int
}

func (s *search) best(i, mask int) step {
	if i == len(s.l.tokens) {
		if mask&(1<<rName) == 0 || mask&(1<<rValue) == 0 {
			return step{score: impossible}
		}
		return step{}
	}
	key := i<<8 | mask
	if st, ok := s.memo[key]; ok {
		return st
	}
	top := step{score: impossible}
	for r := rName; r < rOut; r++ {
		if r < rPrev && mask&(1<<r) != 0 {
			continue
		}
		if (r == rPrev || r == rCode) && mask&(1<<rValue) == 0 && !s.hasCol.has(r) {
			continue
		}
		if (r == rLow || r == rHigh) && !s.hasCol.has(r) {
			continue
		}
		next := mask
		if r < rPrev {
			next |= 1 << r
		}
		for n := 1; n <= longest[r] && i+n <= len(s.l.tokens); n++ {
			c := s.score(r, i, n) + s.orderScore(r, mask)
			if c <= impossible/2 {
				continue
			}
			rest := s.best(i+n, next)
			if rest.score <= impossible/2 {
				continue
			}
			if t := c + rest.score; t > top.score {
				top = step{t, r, n}
			}
		}
	}
	s.memo[key] = top
	return top
}

// orderScore returns 0, or a negative score if role r is unusual after the roles in the bit set mask, such as a name
// after its value. A table column for a name, value, range or unit makes any order usual for that role.
func (s *search) orderScore(r role, mask int) float64 {
	value, name := mask&(1<<rValue) != 0, mask&(1<<rName) != 0
	switch r {
	case rName:
		if value && !s.hasCol.has(rName) {
			return -2.5
		}
	case rValue:
		if !name && !s.hasCol.has(rValue) {
			return -0.5
		}
	case rRange:
		if !value && !s.hasCol.has(rRange) {
			return -1
		}
	case rUnit:
		if !value && !s.hasCol.has(rUnit) {
			return -2
		}
	case rNote:
		if !name {
			return -1.5
		}
	case rFlag:
		if !name {
			return -0.4
		}
	}
	return 0
}

// score returns how well the n tokens from i on fit role r, by their text, their column and the gaps around them.
func (s *search) score(r role, i, n int) float64 {
	known := &s.scores[(int(r)*len(s.l.tokens)+i)*mostTokens+n-1]
	if known.done {
		return known.v
	}
	v := s.contentScore(r, i, n)
	if v > impossible/2 {
		v += s.columnScore(r, i, n) + s.gapScore(r, i, n)
	}
	*known = scored{v, true}
	return v
}

// crossing is the cost of a wide gap inside of a part, by role.
var crossing = [roles]float64{rName: -1.3, rValue: -2, rUnit: -2, rRange: -0.25, rFlag: -3, rPrev: -2, rLow: -2, rHigh: -2, rCode: -3, rDate: -0.2}

// gapScore scores whether the n tokens from i on, as a part with role r, start and end where the cells of the line do.
func (s *search) gapScore(r role, i, n int) float64 {
	v := 0.0
	crossed := 0
	for k := i + 1; k < i+n; k++ {
		if s.l.tokens[k].gap {
			crossed++
		}
	}
	v += float64(crossed) * crossing[r]
	end := i + n
	atEnd := end == len(s.l.tokens) || s.l.tokens[end].gap
	last := s.l.tokens[end-1].text
	switch r {
	case rName:
		if atEnd || strings.HasSuffix(last, ":") {
			v += 0.8
		}
		if strings.HasSuffix(last, ":") {
			v += 0.6
		}
		// "Proteína C reactiva" is one name, not a protein with the value reactive.
		if whole := s.cellEnd(end); whole > end && whole-i <= longest[rName] && wordsOnly(s.l.tokens[end:whole]) && s.g.known(textOf(s.l.tokens[i:whole])) > 0.85 {
			v -= 3.5
		}
		if !s.l.tokens[i].gap && i > 0 && !isMark(s.l.tokens[i-1].text) {
			v--
		}
	case rValue:
		if s.l.tokens[i].gap {
			v += 0.3
		}
		if i > 0 && strings.HasSuffix(s.l.tokens[i-1].text, ":") {
			v += 0.3
		}
	case rFlag:
		if atEnd || s.l.tokens[i].gap {
			v += 0.3
		} else {
			v -= 0.3
		}
	}
	return v
}

func wordsOnly(tokens []token) bool {
	for _, t := range tokens {
		if strings.IndexFunc(t.text, func(r rune) bool { return !unicode.IsLetter(r) }) >= 0 {
			return false
		}
	}
	return true
}

func (s *search) cellEnd(end int) int {
	for end < len(s.l.tokens) && !s.l.tokens[end].gap {
		end++
	}
	return end
}

func isMark(s string) bool {
	_, ok := flagMeaning(s)
	return ok || strings.Trim(s, "•●■▪◦‣○·*>|-") == ""
}

// columnScore scores the horizontal position of the n tokens from i on, as a part with role r, against the table's
// columns.
func (s *search) columnScore(r role, i, n int) float64 {
	if len(s.cols) == 0 || r == rNote && !s.hasCol.has(rNote) {
		return 0
	}
	x0, x1 := s.l.tokens[i].x0, s.l.tokens[i+n-1].x1
	c, off := columnOf(s.cols, x0, x1, s.l.height)
	col := s.cols[c].role
	if col == rOut {
		col = rValue
	}
	near := off < 2.5
	switch {
	case col == r && near:
		return 2.2
	case col == r:
		return 1
	}
	// A part that begins at the name column is a name.
	if r == rName {
		for _, k := range s.cols {
			if k.role == rName && math.Abs(x0-k.x0) < 3.5*s.l.height {
				return 1.6
			}
		}
		if !s.hasCol.has(rName) && c == 0 && x0 < s.cols[0].x0 {
			return 1
		}
		if col == rNote || col == rCode {
			return -1
		}
		return -2.5
	}
	switch {
	case r == rFlag && (col == rValue || col == rRange || col == rUnit || col == rPrev):
		if s.hasCol.has(rFlag) {
			return -0.3
		}
		return 0
	case r == rUnit && (col == rValue || col == rRange):
		if s.hasCol.has(rUnit) {
			return -1.2
		}
		return 0
	case r == rRange && col == rValue && !s.hasCol.has(rRange) && !s.hasCol.has(rLow):
		return 0
	case r == rNote:
		return -0.2
	case r == rDate, r == rCode:
		return -0.3
	case !s.hasCol.has(r):
		return -0.7
	case !near:
		return -0.8
	}
	return -2.2
}

// toPointAll rewrites every number of a text with a decimal point and without group marks.
func toPointAll(s string, d Decimals) string {
	fields := strings.Fields(refrange.PlainMarks(s))
	if d == Comma {
		fields = joinThousands(fields)
	}
	for i, f := range fields {
		fields[i] = toPoint(f, d)
	}
	return strings.Join(fields, " ")
}

// joinThousands joins the parts of numbers whose thousands are grouped by spaces.
func joinThousands(fields []string) []string {
	var out []string
	for i, f := range fields {
		if last := len(out) - 1; i > 0 && reGroupTail.MatchString(f) && reGroupHead.MatchString(fields[i-1]) {
			out[last] += f
			continue
		}
		out = append(out, f)
	}
	return out
}

// repairNumber removes stray characters that OCR adds around a number, and reports whether it did. It never changes a
// digit.
func repairNumber(s string, d Decimals) (string, bool) {
	t := strings.Trim(s, "|'\"`_~°*.,:;[]{}()!\\ ")
	if t == s || t == "" {
		return s, false
	}
	switch valueShape(t, d) {
	case number1:
		return t, true
	}
	return s, false
}
