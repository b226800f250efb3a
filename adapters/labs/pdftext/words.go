package pdftext

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// run is a row of characters without a gap.
type run struct {
	text           string
	x0, y0, x1, y1 float64
}

func (r run) height() float64 { return r.y1 - r.y0 }
func (r run) mid() float64    { return (r.y0 + r.y1) / 2 }

// wordGap is the smallest gap between two words, as a multiple of the font's height.
const wordGap = 0.22

// wordsOf groups the characters of a page into words by position. It joins parts of a word that are drawn
// separately, and removes the second copy of a word that is drawn twice to look bold.
func wordsOf(chars []char) []run {
	var b builder
	for _, c := range chars {
		b.add(c)
	}
	b.flush()
	slices.SortFunc(b.spaces, func(a, c run) int { return cmp.Compare(a.x0, c.x0) })
	return join(b.runs, b.spaces)
}

// builder joins consecutive characters of the stream. A word ends at a space, a gap or a vertical jump.
type builder struct {
	runs, spaces []run
	cur          strings.Builder
	w            run
	open         bool
	h            float64
}

func (b *builder) add(c char) {
	h := c.y1 - c.y0
	if h <= 0 || math.IsNaN(h) {
		if c.r == ' ' {
			b.flush()
		}
		return
	}
	if c.r == ' ' {
		b.flush()
		b.spaces = append(b.spaces, run{" ", c.x0, c.y0, c.x1, c.y1})
		return
	}
	if b.open {
		height := max(h, b.h)
		gap := c.x0 - b.w.x1
		jump := math.Abs((c.y0+c.y1)/2 - b.w.mid())
		if gap > wordGap*height || gap < -0.6*height || jump > 0.55*height {
			b.flush()
		}
	}
	if !b.open {
		b.w = run{x0: c.x0, y0: c.y0, x1: c.x1, y1: c.y1}
		b.open, b.h = true, h
	}
	b.cur.WriteRune(c.r)
	b.w.x0, b.w.x1 = min(b.w.x0, c.x0), max(b.w.x1, c.x1)
	b.w.y0, b.w.y1 = min(b.w.y0, c.y0), max(b.w.y1, c.y1)
}

func (b *builder) flush() {
	if b.open {
		b.w.text = b.cur.String()
		b.runs = append(b.runs, b.w)
	}
	b.cur.Reset()
	b.open = false
}

// join joins parts of equal height on one line without a gap or space between. It keeps the order of the first parts.
func join(runs, spaces []run) []run {
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(runs[a].x0, runs[b].x0) })
	into := make([]int, len(runs)) // index of the run that each run was joined to
	bands := map[int][]int{}       // indexes of runs by the height of their middle, in half points
	band := func(y float64) int { return int(math.Floor(2 * y)) }
	for i := range into {
		into[i] = i
	}
	for _, i := range order {
		w := runs[i]
		reach := min(40, 1+int(0.2*w.height()))
		for d := -reach; d <= reach && into[i] == i; d++ {
			level := bands[band(w.mid())+d]
			for _, k := range level[max(0, len(level)-64):] {
				if runs[k].text == w.text && math.Abs(runs[k].x0-w.x0)+math.Abs(runs[k].y0-w.y0) < 0.12*w.height() {
					into[i] = k
					break
				}
				if touch(runs[k], w) && !spaceBetween(spaces, runs[k], w) {
					runs[k] = run{joined(runs[k].text, w.text), runs[k].x0, min(runs[k].y0, w.y0), max(runs[k].x1, w.x1), max(runs[k].y1, w.y1)}
					into[i] = k
					break
				}
			}
		}
		if into[i] == i {
			bands[band(w.mid())] = append(bands[band(w.mid())], i)
		}
	}
	var out []run
	done := map[int]bool{}
	for i := range runs {
		if k := into[i]; !done[k] {
			done[k] = true
			out = append(out, runs[k])
		}
	}
	return out
}

func joined(left, right string) string {
	if isRightToLeft(left) && isRightToLeft(right) {
		return right + left
	}
	return left + right
}

func isRightToLeft(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana)
	})
}

func touch(a, b run) bool {
	h := max(a.height(), b.height())
	gap := b.x0 - a.x1
	return math.Abs(a.height()-b.height()) < 0.15*h && math.Abs(a.mid()-b.mid()) < 0.12*h && gap < 0.8*wordGap*h && gap > -0.2*h
}

// spaceBetween reports whether a printed space is between a and b. The spaces are sorted.
func spaceBetween(spaces []run, a, b run) bool {
	h := max(a.height(), b.height())
	from, _ := slices.BinarySearchFunc(spaces, a.x1-0.5*h, func(s run, x float64) int { return cmp.Compare(s.x0, x) })
	for _, s := range spaces[from:] {
		if s.x0 > b.x0+0.1*h {
			return false
		}
		if mid := (s.x0 + s.x1) / 2; math.Abs(s.mid()-a.mid()) < 0.3*h && mid > a.x1-0.2*h && mid < b.x0+0.2*h {
			return true
		}
	}
	return false
}
