package labreport

import (
	"cmp"
	"context"
	"errors"
	"image"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// Box is a rectangle on a page, in fractions of the page's width and height, from the top left corner.
type Box struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// Word is a text without white space and its position on the page.
type Word struct {
	healthlab.Private

	Text string
	// Box should reach from the ascender to the descender of the font, so that words
	// of one line have the same height.
	Box Box
	// Confidence is the confidence of the letters, 0 to 1. Text of a PDF has 1.
	Confidence float64
	// Votes is how many independent OCR passes over this area gave this text; 0 counts as 1.
	Votes int
	// Alternative is a different text that another OCR pass over this area gave; empty if there is none.
	Alternative string
}

// Page has the words of one page.
type Page struct {
	healthlab.Private

	// Number counts from 1.
	Number int
	// Width and Height are the size of the page in any unit (points, pixels).
	Width, Height float64
	// Words are in any order.
	Words []Word
	// Image reports whether the words were read from a picture, so that letters may be wrong.
	Image bool
	// Unread reports whether the page has content that the extractor could not read: a picture without OCR, or
	// one without a recognized word. A blank page is read.
	Unread bool
	// Original converts a box of this page to the page as uploaded, for an extractor that straightens a picture. Nil
	// means that the boxes are the same. It must be a pure function.
	Original func(Box) Box
}

// unreadPages returns the numbers of the pages that could not be read.
func unreadPages(pages []Page) (out []int) {
	for i := range pages {
		if pages[i].Unread {
			out = append(out, pages[i].Number)
		}
	}
	return out
}

// File is one uploaded file.
type File struct {
	healthlab.Private

	// Type is the media type: application/pdf, image/jpeg or image/png.
	Type string
	Data []byte
}

// ErrPassword is the error for a file that requires a password. Extractors wrap it together with
// [healthlab.Invalid].
var ErrPassword = errors.New("the file needs a password")

// TextExtractor reads the words of a file, page by page.
//
// Check returns the number of pages of a file quickly, without reading them, and refuses an unreadable file.
// Extract calls page once for each page in order and stops at the first error that page returns, returning it
// unchanged.
//
// Errors: [healthlab.Invalid] if the file is corrupt, needs a password (with [ErrPassword]), has no pages, or is
// of a type that the extractor does not read; [healthlab.Exhausted] if it needs more memory, pixels or time than
// the extractor allows; [healthlab.Unimplemented] if the file has only pictures and there is no OCR; any other
// error is temporary. Implementations are safe for concurrent use and stop soon after ctx ends. The file may be
// malicious.
type TextExtractor interface {
	Check(ctx context.Context, file File) (pages int, err error)
	Extract(ctx context.Context, file File, page func(Page) error) error
}

// Renderer draws the pages of files.
//
// RenderPage draws one page, counted from 1, upright, with at most pixels pixels.
// [healthlab.NotFound] if the file has no such page; the other errors are those of
// [TextExtractor].
type Renderer interface {
	RenderPage(ctx context.Context, file File, page, pixels int) (image.Image, error)
}

// token is a word, or a part of a word, with its box in the unit of the page's width and height.
type token struct {
	text           string
	x0, x1, y0, y1 float64
	conf           float64
	votes          int
	alt            string
	// gap reports whether the token begins a cell, after a wide space.
	gap bool
	// spaced is false for the second part of one printed word.
	spaced bool
}

func (t token) height() float64 { return t.y1 - t.y0 }
func (t token) mid() float64    { return (t.y0 + t.y1) / 2 }

// line is a line of tokens, from left to right.
type line struct {
	tokens []token
	y0, y1 float64
	page   int // index into the pages
	height float64
}

func (l line) text() string {
	return textOf(l.tokens)
}

func textOf(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && t.spaced {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// cells returns the tokens between wide gaps.
func (l line) cells() [][]token {
	var out [][]token
	start := 0
	for i := 1; i <= len(l.tokens); i++ {
		if i == len(l.tokens) || l.tokens[i].gap {
			out = append(out, l.tokens[start:i])
			start = i
		}
	}
	return out
}

// maxLevel is the greatest number of lines in one band of the page's height that are compared with a word.
const maxLevel = 100

// linesOf groups the words of a page into lines.
func linesOf(p Page, index int) []line {
	words := make([]token, 0, len(p.Words))
	var heights []float64
	for _, w := range p.Words {
		text := strings.TrimSpace(refrange.PlainMarks(w.Text))
		if text == "" || w.Box.Width < 0 || w.Box.Height <= 0 || math.IsNaN(w.Box.X+w.Box.Y+w.Box.Width+w.Box.Height) {
			continue
		}
		t := token{text: text, x0: w.Box.X * p.Width, x1: (w.Box.X + w.Box.Width) * p.Width, y0: w.Box.Y * p.Height,
			y1: (w.Box.Y + w.Box.Height) * p.Height, conf: w.Confidence, votes: w.Votes, alt: w.Alternative, spaced: true}
		words = append(words, t)
		heights = append(heights, t.height())
	}
	if len(words) == 0 {
		return nil
	}
	slices.Sort(heights)
	typical := heights[len(heights)/2]
	slices.SortFunc(words, func(a, b token) int {
		return cmp.Or(cmp.Compare(a.x0, b.x0), cmp.Compare(a.y0, b.y0), strings.Compare(a.text, b.text))
	})
	// Each word joins the line whose last word is on the same level, so that a line may be slightly slanted.
	type row struct{ tokens []token }
	var rows []*row
	byBand := map[int][]*row{}
	band := func(y float64) int { return int(y / (typical + 1e-9)) }
	for _, w := range words {
		var best *row
		bestD := math.Inf(1)
		for b := band(w.mid()) - 2; b <= band(w.mid())+2; b++ {
			// Only a malicious page has so many overlapping lines.
			level := byBand[b]
			for _, r := range level[max(0, len(level)-maxLevel):] {
				last := r.tokens[len(r.tokens)-1]
				d := math.Abs(last.mid() - w.mid())
				h := min(max(last.height(), typical*0.6), max(w.height(), typical*0.6))
				if d > 0.5*h || last.x1 > w.x0+0.6*h {
					continue
				}
				if d < bestD {
					best, bestD = r, d
				}
			}
		}
		if best == nil {
			best = &row{}
			rows = append(rows, best)
		} else {
			old := band(best.tokens[len(best.tokens)-1].mid())
			byBand[old] = slices.DeleteFunc(byBand[old], func(r *row) bool { return r == best })
		}
		best.tokens = append(best.tokens, w)
		byBand[band(w.mid())] = append(byBand[band(w.mid())], best)
	}
	out := make([]line, 0, len(rows))
	for _, r := range rows {
		if l := newLine(r.tokens, index, p.Image); len(l.tokens) > 0 {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b line) int {
		return cmp.Compare(a.tokens[0].mid(), b.tokens[0].mid())
	})
	return out
}

// newLine splits the words of a line into tokens and marks the cells.
func newLine(words []token, page int, image bool) line {
	l := line{page: page, y0: math.Inf(1), y1: math.Inf(-1)}
	var hs []float64
	for _, w := range words {
		l.y0, l.y1 = min(l.y0, w.y0), max(l.y1, w.y1)
		hs = append(hs, w.height())
	}
	slices.Sort(hs)
	l.height = hs[len(hs)/2]
	// Boxes of OCR are tight, so that a space is wider relative to the height.
	wide := 0.95
	if image {
		wide = 1.3
	}
	for i, w := range words {
		w.gap = i == 0 || w.x0-words[i-1].x1 > wide*max(l.height, 1e-6)
		l.tokens = append(l.tokens, splitWord(w)...)
	}
	if len(l.tokens) > 0 {
		l.tokens[0].gap = true
	}
	return l
}

var (
	reLeaders  = regexp.MustCompile(`\.{3,}|_{2,}|…+|·{2,}|-{4,}`)
	reGlued    = regexp.MustCompile(`^([<>]=?|≤|≥)?([+-]?\d[\d.,]*)([A-Za-zµμ%/°][^\s]*)$`)
	reFlagged  = regexp.MustCompile(`^((?:[<>]=?)?[+-]?\d[\d.,]*)(\*{1,2}|!{1,2}|↑{1,3}|↓{1,3}|▲{1,2}|▼{1,2}|\+{2,3}|-{2,3}|\((?:H|L|HH|LL|A)\))$`)
	reMarked   = regexp.MustCompile(`^(\*{1,2}|!{1,2}|↑{1,3}|↓{1,3}|▲{1,2}|▼{1,2})((?:[<>]=?)?\d[\d.,]*)$`)
	reColon    = regexp.MustCompile(`^(.*[^\d\s].*|[^:]{2,}):([^\s:/\\].*)$`)
	reParenTwo = regexp.MustCompile(`^(\d[\d.,]*)(\([\d<>].*)$`)
)

// splitWord splits a printed word with several parts: a number and its unit, a label and its value, dot leaders.
func splitWord(w token) []token {
	if strings.HasSuffix(w.text, ").") || strings.HasSuffix(w.text, "].") {
		w.text = w.text[:len(w.text)-1] // without the full stop of a sentence
	}
	text := w.text
	if strings.Trim(text, ".…_-·•●■▪◦‣○*|") == "" && text != "-" && text != "--" && text != "*" && text != "**" && text != "---" {
		if text == "|" {
			w.gap = true
			return []token{w}
		}
		if strings.ContainsAny(text, "•●■▪◦‣○·") || len(text) >= 2 {
			return nil
		}
	}
	var parts []string
	switch {
	case reLeaders.MatchString(text):
		for _, p := range reLeaders.Split(text, -1) {
			if p = strings.TrimSpace(p); p != "" {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			return nil
		}
	case strings.Contains(text, "|") && len(text) > 1:
		for _, p := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' }) {
			parts = append(parts, p, "|")
		}
		if len(parts) > 0 {
			parts = parts[:len(parts)-1]
		}
	case reFlagged.MatchString(text):
		m := reFlagged.FindStringSubmatch(text)
		parts = []string{m[1], m[2]}
	case reMarked.MatchString(text):
		m := reMarked.FindStringSubmatch(text)
		parts = []string{m[1], m[2]}
	case reParenTwo.MatchString(text) && strings.HasSuffix(text, ")"):
		m := reParenTwo.FindStringSubmatch(text)
		parts = []string{m[1], m[2]}
	case strings.ContainsRune(text, ';') && len(text) > 1:
		head := strings.TrimRight(text, ";")
		if head != "" && head != text {
			parts = []string{head, ";"}
		}
	default:
		if m := reGlued.FindStringSubmatch(text); m != nil {
			rest := strings.TrimRight(m[3], ",;")
			_, unit := ucum.Parse(rest)
			_, flag := flagMeaning(rest)
			if (unit && !strings.HasPrefix(rest, "/") || unit && len(rest) > 2 || flag) && !looksLikeDate(text) && !reExponent.MatchString(text) {
				parts = []string{m[1] + m[2], m[3]}
			}
		} else if m := reColon.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") && !reTiter.MatchString(text) && !reClock.MatchString(text) {
			parts = []string{m[1] + ":", m[2]}
		}
	}
	if len(parts) < 2 && (len(parts) == 0 || parts[0] == text) {
		return []token{w}
	}
	return cutToken(w, parts)
}

var reExponent = regexp.MustCompile(`^x?10(?:\^|e|E|\*|³|⁶|⁹|')?\d*`)

// cutToken divides a word's box among its parts by their length.
func cutToken(w token, parts []string) []token {
	total := 0
	for _, p := range parts {
		total += len([]rune(p))
	}
	all := max(total, len([]rune(w.text)))
	var out []token
	at := 0
	rest := w.text
	for i, p := range parts {
		skip := strings.Index(rest, p)
		if skip < 0 {
			skip = 0
		}
		at += len([]rune(rest[:skip]))
		n := len([]rune(p))
		t := w
		t.text = p
		t.x0 = w.x0 + (w.x1-w.x0)*float64(at)/float64(all)
		t.x1 = w.x0 + (w.x1-w.x0)*float64(at+n)/float64(all)
		t.gap = i == 0 && w.gap || i > 0 && skip >= 3
		t.spaced = i == 0 && w.spaced || i > 0
		at += n
		rest = rest[min(len(rest), skip+len(p)):]
		if p == "|" {
			t.gap = true
		}
		out = append(out, t)
	}
	return out
}

// boxOf returns the box of some tokens as fractions of their page.
func boxOf(tokens []token, p Page) Box {
	if len(tokens) == 0 || p.Width <= 0 || p.Height <= 0 {
		return Box{}
	}
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, t := range tokens {
		x0, y0, x1, y1 = min(x0, t.x0), min(y0, t.y0), max(x1, t.x1), max(y1, t.y1)
	}
	clamp := func(v float64) float64 { return min(1, max(0, v)) }
	b := Box{X: clamp(x0 / p.Width), Y: clamp(y0 / p.Height)}
	b.Width, b.Height = clamp(x1/p.Width)-b.X, clamp(y1/p.Height)-b.Y
	if p.Original != nil {
		b = p.Original(b)
	}
	return b
}

func confOf(tokens []token) float64 {
	c := 1.0
	for _, t := range tokens {
		c = min(c, t.conf)
	}
	return c
}
