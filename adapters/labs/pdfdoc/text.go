package pdfdoc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// intricate lists scripts whose letters depend on their neighbours in unsupported ways.
var intricate = []*unicode.RangeTable{
	unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada, unicode.Khmer,
	unicode.Malayalam, unicode.Mongolian, unicode.Myanmar, unicode.Nko, unicode.Oriya, unicode.Sinhala,
	unicode.Syriac, unicode.Tamil, unicode.Telugu, unicode.Thaana, unicode.Tibetan,
}

// prepare normalises a line of text for printing: it composes letters, replaces spaces by plain ones, drops
// invisible characters, joins Arabic letters, and replaces letters that no font has by their code points. unknown
// reports whether there were such letters.
func (p *Printer) prepare(s string) (text string, unknown bool) {
	s = norm.NFC.String(strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case r == zwnj || r == zwj:
			return r // joiners decide which letters are joined
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, s)
	var b strings.Builder
	var lacking []string
	flush := func() {
		if len(lacking) > 0 {
			b.WriteString("[" + strings.Join(lacking, " ") + "]")
			lacking, unknown = nil, true
		}
	}
	for _, r := range p.join([]rune(s)) {
		if p.face(r) < 0 {
			lacking = append(lacking, fmt.Sprintf("U+%04X", r))
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String(), unknown
}

const zwnj, zwj = '\u200c', '\u200d'

func (p *Printer) face(r rune) int {
	if r < 0 || int(r) >= len(p.first) {
		return -1
	}
	return int(p.first[r]) - 1
}

// joining holds the isolated, final, initial and medial form of an Arabic letter. Zero means that the form does not
// exist.
type joining [4]rune

const (
	isolated = iota
	final
	initial
	medial
)

// joiningForms returns the forms of Arabic letters, derived from the compatibility characters of Unicode in the order
// isolated, final, initial, medial.
func (p *Printer) joiningForms() map[rune]joining {
	out := map[rune]joining{}
	for _, part := range [][2]rune{{0xfb50, 0xfbb1}, {0xfbd3, 0xfbe7}, {0xfbfc, 0xfbff}, {0xfe80, 0xfef4}} {
		var last rune
		n := 0
		for r := part[0]; r <= part[1]; r++ {
			base := []rune(norm.NFKC.String(string(r)))
			if len(base) != 1 {
				last = 0
				continue
			}
			if base[0] != last {
				last, n = base[0], 0
			}
			forms := out[last]
			if n < len(forms) && p.face(r) >= 0 {
				forms[n] = r
			}
			out[last] = forms
			n++
		}
	}
	return out
}

// lamAlef maps letters to their ligature with a preceding lam: isolated and final.
var lamAlef = map[rune][2]rune{0x622: {0xfef5, 0xfef6}, 0x623: {0xfef7, 0xfef8}, 0x625: {0xfef9, 0xfefa}, 0x627: {0xfefb, 0xfefc}}

const lam, tatweel = 0x644, 0x640

// join replaces Arabic letters by the form that their neighbours require.
func (p *Printer) join(text []rune) []rune {
	// neighbour returns the next letter in a direction, skipping marks that do not affect joining.
	neighbour := func(i, step int) rune {
		for i += step; i >= 0 && i < len(text); i += step {
			if !unicode.Is(unicode.Mn, text[i]) {
				return text[i]
			}
		}
		return 0
	}
	toNext := func(r rune) bool { return r == tatweel || r == zwj || p.forms[r][initial] != 0 }
	toLast := func(r rune) bool { return r == tatweel || r == zwj || p.forms[r][final] != 0 }
	out := make([]rune, 0, len(text))
	for i := 0; i < len(text); i++ {
		r := text[i]
		forms, known := p.forms[r]
		if r == zwnj || r == zwj {
			continue
		}
		if !known {
			out = append(out, r)
			continue
		}
		before := toNext(neighbour(i, -1))
		if r == lam && i+1 < len(text) {
			if one, ok := lamAlef[text[i+1]]; ok {
				out = append(out, one[map[bool]int{false: 0, true: 1}[before]])
				i++
				continue
			}
		}
		after := forms[initial] != 0 && toLast(neighbour(i, 1))
		form := isolated
		switch {
		case before && after && forms[medial] != 0:
			form = medial
		case before && forms[final] != 0:
			form = final
		case after:
			form = initial
		}
		if forms[form] != 0 {
			r = forms[form]
		}
		out = append(out, r)
	}
	return out
}

// isRightToLeft reports whether the first letter with a direction is right-to-left.
func isRightToLeft(s string) bool {
	for _, r := range s {
		switch p, _ := bidi.LookupRune(r); p.Class() {
		case bidi.L:
			return false
		case bidi.R, bidi.AL:
			return true
		}
	}
	return false
}

func hasRightToLeft(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		p, _ := bidi.LookupRune(r)
		return p.Class() == bidi.R || p.Class() == bidi.AL
	})
}

// visual reorders a prepared line for printing from left to right. rtl is the direction of the paragraph.
func visual(line string, rtl bool) string {
	if !hasRightToLeft(line) {
		return line
	}
	mark := "\u200e"
	if rtl {
		mark = "\u200f"
	}
	var para bidi.Paragraph
	if _, err := para.SetString(mark + line); err != nil {
		return line
	}
	order, err := para.Order()
	if err != nil {
		return line
	}
	var runs []run
	for i := range order.NumRuns() {
		r := order.Run(i)
		text := strings.NewReplacer("\u200e", "", "\u200f", "").Replace(r.String())
		runs = append(runs, splitLeadingNumber(run{text, r.Direction() == bidi.RightToLeft}, len(runs) > 0 && runs[len(runs)-1].back)...)
	}
	var b strings.Builder
	for i := 0; i < len(runs); {
		n := i + 1 // runs[i:n] are printed together, the last one leftmost
		if rtl {
			n = len(runs)
		} else if runs[i].back {
			for n < len(runs) && (runs[n].back || number(runs[n].text)) {
				n++
			}
			for n > i+1 && !runs[n-1].back && strings.TrimSpace(runs[n-1].text) == "" {
				n--
			}
		}
		for _, r := range slices.Backward(runs[i:n]) {
			if r.back {
				b.WriteString(reversed(r.text))
			} else {
				b.WriteString(r.text)
			}
		}
		i = n
	}
	return b.String()
}

// run is a part of a line with one direction.
type run struct {
	text string
	back bool // from right to left
}

// splitLeadingNumber separates a number at the start of a left-to-right run from the rest, because the number belongs
// to the preceding right-to-left run. after reports whether the preceding run is right-to-left.
func splitLeadingNumber(r run, after bool) []run {
	if r.back || !after || number(r.text) {
		return []run{r}
	}
	end := 0
	for i, c := range r.text {
		if p, _ := bidi.LookupRune(c); p.Class() == bidi.L {
			break
		} else if p.Class() == bidi.EN || p.Class() == bidi.AN {
			end = i + len(string(c))
		}
	}
	if end == 0 {
		return []run{r}
	}
	return []run{{r.text[:end], false}, {r.text[end:], false}}
}

// number reports whether a text has digits and no left-to-right letter.
func number(s string) bool {
	digits := false
	for _, c := range s {
		p, _ := bidi.LookupRune(c)
		if p.Class() == bidi.L {
			return false
		}
		digits = digits || p.Class() == bidi.EN || p.Class() == bidi.AN
	}
	return digits
}

// reversed reverses a text. It mirrors brackets and keeps marks behind their letters.
func reversed(s string) string {
	var clusters []string
	for _, r := range s {
		if unicode.Is(unicode.Mn, r) && len(clusters) > 0 {
			clusters[len(clusters)-1] += string(r)
			continue
		}
		clusters = append(clusters, bidi.ReverseString(string(r)))
	}
	slices.Reverse(clusters)
	return strings.Join(clusters, "")
}

// clusters splits a text into letters with their marks.
func clusters(s string) []string {
	var out []string
	for _, r := range s {
		if unicode.Is(unicode.M, r) && len(out) > 0 {
			out[len(out)-1] += string(r)
			continue
		}
		out = append(out, string(r))
	}
	return out
}
