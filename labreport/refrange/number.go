package refrange

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Patterns of regular expressions for numbers with a point, for numbers whose thousands are
// grouped by commas, and for comparators.
const (
	NumberPattern     = `[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`
	GroupedPattern    = `[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?`
	ComparatorPattern = `(?:<=|>=|=<|=>|≤|≥|[<>]\s*[oO][rR]\s*=|<|>|~|≈)`
)

var (
	reNumber       = regexp.MustCompile(`^(?:` + NumberPattern + `|` + GroupedPattern + `)$`)
	reAnyNumber    = regexp.MustCompile(`\d[\d.,]*\d|\d`)
	reCommaDecimal = regexp.MustCompile(`^[<>≤≥=~(\[]*[+-]?\d+,\d{1,2}[)\]]?$|^[<>≤≥=~]*0,\d+$|^[<>≤≥=~]*\d{4,},\d+$`)
	rePointDecimal = regexp.MustCompile(`^[<>≤≥=~(\[]*[+-]?\d+\.\d{1,2}[)\]]?$|^[<>≤≥=~]*0\.\d+$|^[<>≤≥=~]*\d{4,}\.\d+$`)
	reCommaNumber  = regexp.MustCompile(`\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+`)
)

// DecimalMarks counts the numbers in a text that certainly have a decimal comma, and those that certainly have a
// decimal point. Numbers such as 1,234 count as neither.
func DecimalMarks(text string) (comma, point int) {
	for _, part := range reAnyNumber.FindAllString(text, -1) {
		switch {
		case strings.Count(part, ".")+strings.Count(part, ",") > 1:
			if i, j := strings.LastIndexByte(part, ','), strings.LastIndexByte(part, '.'); i > j && j >= 0 {
				comma++
			} else if j > i && i >= 0 {
				point++
			}
		case reCommaDecimal.MatchString(part):
			comma++
		case rePointDecimal.MatchString(part):
			point++
		}
	}
	return comma, point
}

// CommasToPoints replaces decimal commas by points in the numbers of a text, and removes group marks.
func CommasToPoints(text string) string {
	return reCommaNumber.ReplaceAllStringFunc(text, func(n string) string {
		return strings.Replace(strings.ReplaceAll(n, ".", ""), ",", ".", 1)
	})
}

// PlainMarks replaces comparators, dashes, spaces, apostrophes and full-width characters by ASCII characters, and
// removes characters without a glyph of their own, such as marks of direction and combining accents.
func PlainMarks(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		const full, fullEnd, apart = '！', '～', '！' - '!'
		switch {
		case r >= full && r <= fullEnd:
			return r - apart
		case unicode.In(r, unicode.Cf, unicode.Mn):
			return -1
		}
		return r
	}, marks.Replace(text))
}

// marks maps signs to ASCII. A soft hyphen becomes a hyphen, because in some PDF files it is the dash of a range.
var marks = strings.NewReplacer("≤", "<=", "≥", ">=", "⩽", "<=", "⩾", ">=", "–", "-", "—", "-", "−", "-", "‐", "-", "‑", "-", "\u00ad", "-",
	"\u00a0", " ", "\u2009", " ", "\u202f", " ", "›", ">", "‹", "<", "’", "'")

// digits returns a number without group marks; false for another text, or for a number outside of float64.
func digits(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !reNumber.MatchString(text) {
		return "", false
	}
	text = strings.ReplaceAll(text, ",", "")
	v, err := strconv.ParseFloat(text, 64)
	return text, err == nil && !math.IsInf(v, 0)
}

func less(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x < y
}
