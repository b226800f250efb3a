package labreport

import (
	"math"
	"slices"
)

// linesInReadingOrder returns the lines of page p, number index of the document, in reading order: the left column
// before the right one. The page is split into columns only if the columns give better results than the undivided page.
func (d *document) linesInReadingOrder(p Page, index int) []line {
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

// namesOnBothSides reports whether in at least two lines the parts left and right of the gutter both begin with a
// known analyte. It is a fast check before cutLines.
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

// cutLines splits a page at a gutter. The head above the first row is not split.
func (d *document) cutLines(lines []line, gutter float64) (head, left, right []line) {
	first := 0
	for i, l := range lines {
		k := slices.IndexFunc(l.tokens, func(t token) bool { return t.x0 >= gutter })
		if k > 0 && d.beginsKnown(l.tokens[:k]) && d.beginsKnown(l.tokens[k:]) {
			first = i
			break
		}
	}
	// Headings above the two columns belong to them.
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

// findGutters returns vertical gaps near the middle that almost no word crosses.
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

// worth is how well lines can be read as results: the number of results and their total score.
type worth struct {
	rows  int
	score float64
}

// fillsLine reports whether a result uses nearly all of its line.
func (d *document) fillsLine(p *parsed) bool {
	notes := 0
	for _, s := range p.pieces {
		if s.role == rNote && !fieldLabel(p.line.tokens[s.from:s.to]) {
			notes++
		}
	}
	return notes <= 1
}

func (d *document) worth(lines []line) worth {
	var w worth
	var cols []column
	for i := range lines {
		if h := heading(lines[i]); h != nil {
			cols = h
			continue
		}
		if p := d.g.parse(&lines[i], cols); p != nil && p.known > 0.8 && (p.has(rUnit) || p.has(rRange) || p.has(rHigh) || p.has(rLow)) && d.fillsLine(p) {
			w.rows++
			w.score += p.score
		}
	}
	return w
}
