package refrange

import (
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// Range is a set of numbers between two ends.
type Range struct {
	// Low and High are the ends as decimal numbers, without marks of groups; empty for an
	// open end.
	Low, High string
	// LowOpen and HighOpen report whether the end itself is outside of the range, as in "<5" and ">3", unlike
	// "<=5" and "3-5".
	LowOpen, HighOpen bool
}

// Any reports whether the range has at least one end.
func (r Range) Any() bool { return r.Low != "" || r.High != "" }

// Parse reads a reference range whose numbers have a decimal point. ok reports whether the text has the form of a
// range. A list by age or sex, or a range with swapped ends, returns a range without ends and ok true. Words and
// single numbers return ok false. From a list of categories Parse takes the good one, such as normal, optimal or
// negative, if there is only one.
func Parse(text string) (r Range, ok bool) {
	text = strings.Join(strings.Fields(PlainMarks(text)), " ")
	if text == "" || len(text) > 300 {
		return Range{}, false
	}
	if r, ok := oneRange(text); ok {
		return r, true
	}
	if strings.IndexFunc(text, fold.IsDigit) < 0 {
		return Range{}, false
	}
	if ByGroups(text) {
		return Range{}, len(reAnyNumber.FindAllString(text, 3)) > 1
	}
	if !hasCategory(text) {
		return Range{}, false
	}
	if m := reCategory.FindAllStringSubmatch(text, 2); len(m) == 1 {
		if r, ok := oneRange(strings.TrimSpace(m[0][1])); ok {
			return r, true
		}
	}
	return Range{}, false
}

// ParseBeside reads the reference range of a result as [Parse] does, and also a range with decimal commas. ok is
// false if it is not clear whether commas are decimal: they may group thousands, as in 3,500-5,000, and the result,
// such as 4.2, has a decimal point.
func ParseBeside(text, result string) (r Range, ok bool) {
	if !strings.Contains(text, ",") {
		return Parse(text)
	}
	comma, point := DecimalMarks(text)
	switch {
	case comma > point:
		return Parse(CommasToPoints(text))
	case point == 0 && reGroups.MatchString(text) && strings.Contains(result, "."):
		return Range{}, false
	}
	return Parse(text)
}

// Value reads the value of a result, with a decimal point, as the set of numbers that it can mean. A number is both
// ends of the range; "<5" has only an upper end, and "3-5" has both. It returns false for any other text and for a
// range with swapped ends.
func Value(text string) (Range, bool) {
	text = strings.Join(strings.Fields(PlainMarks(text)), " ")
	if n, ok := digits(text); ok {
		return Range{Low: n, High: n}, true
	}
	r, ok := parsePlainRange(turned.Replace(reOrEqual.ReplaceAllString(text, "$1=")))
	return r, ok && r.Any()
}

var (
	reWordsLess = regexp.MustCompile(`(?i)^(?:(?:less|lower|smaller) than or equal to|(?:not|no) (?:more|greater|higher) than|up ?to|bis zu|bis|hasta|jusqu'?[aà]|at most|max\.?|maximum|menor o igual (?:a|que)|inf[ée]rieur ou [ée]gal [aà]|inferior o igual a|kleiner gleich|nicht [üu]ber)\s*([^\pL\s].*)$`)
	reWordsLT   = regexp.MustCompile(`(?i)^(?:(?:less|lower|smaller) than|below|under|menor (?:de|que|a)|inferior a|inf[ée]rieur [àa]|unter|kleiner(?: als)?|inf\.? [àa]|moins de|less)\s*([^\pL\s].*)$`)
	reWordsMore = regexp.MustCompile(`(?i)^(?:(?:greater|more|higher) than or equal to|(?:not|no) (?:less|lower) than|at least|from|mindestens|ab|al menos|mayor o igual (?:a|que)|sup[ée]rieur ou [ée]gal [àa]|min\.?|minimum|superior o igual a|gr[öo](?:ß|ss)er gleich)\s*([^\pL\s].*)$`)
	reWordsGT   = regexp.MustCompile(`(?i)^(?:(?:greater|more|higher) than|above|over|mayor (?:de|que|a)|superior a|sup[ée]rieur [àa]|[üu]ber|gr[öo](?:ß|ss)er(?: als)?|sup\.? [àa]|plus de)\s*([^\pL\s].*)$`)
	reOrEqual   = regexp.MustCompile(`(?i)([<>])\s*(?:or|oder|o|ó|ou|/)\s*=\s*`)
	reTo        = regexp.MustCompile(`(?i)^(` + NumberPattern + `|` + GroupedPattern + `)\s*(?:-{1,2}|to|bis|a|à|hasta|thru|through|\.\.\.?|~|_)\s*(` + NumberPattern + `|` + GroupedPattern + `)$`)
	// One or both ends have a comparator: ">3 <5", "3 - <5".
	reTwoSided   = regexp.MustCompile(`(?i)^(>=?)?\s*(` + NumberPattern + `|` + GroupedPattern + `)\s*(-|to|bis|a|à|hasta|and|und|y|et|,|)\s*(<=?)?\s*(` + NumberPattern + `|` + GroupedPattern + `)$`)
	reWordAfter  = regexp.MustCompile(`(?i)^(` + NumberPattern + `|` + GroupedPattern + `)\s+(?:or|and)\s+(?:(less|lower|below|under|smaller)|more|greater|higher|above|over)$`)
	reRefWord    = regexp.MustCompile(`(?i)^(?:reference (?:range|interval|values?|limits?)|biological reference interval|normal (?:range|values?)|ref\.? (?:range|interval|values?)|ref(?:erence|erenz|erencia|\.)?|normal|norm|norme|normbereich|referenzbereich|valor(?:es)? (?:normal(?:es)?|de referencia)|v\.? ?r\.?|valeurs? (?:normales?|de référence)|vr|vn|rr|r|range|bereich|rango|soll|sollwert|n)\s*[:.=]?\s+|^(?:ref|normal|norm|range|vr|vn|n)\s*[:=.]\s*`)
	reAfterNum   = regexp.MustCompile(`^(.*\d)\s*([^\d\s<>=-][^<>]*)$`)
	reBetween    = regexp.MustCompile(`(?i)^(?:between|entre|zwischen|von|de|desde)\s+(.+?)\s+(?:and|y|et|und|bis|a|à|hasta)\s+(.+)$`)
	reGroups     = regexp.MustCompile(`\d,\d{3}(?:[^\d.,]|$)`)
	reComparison = regexp.MustCompile(`^(` + ComparatorPattern + `)\s*(` + NumberPattern + `|` + GroupedPattern + `)$`)
	reCategory   = regexp.MustCompile(`(?i)(?:desirable|optimal|normal|deseable|óptimo|optimo|wünschenswert|souhaitable|sufficient|suffisant|suficiente|ausreichend|non-diabetic|nondiabetic|low risk|negative)\s*(?:range|level|value)?\s*[:=]?\s*((?:[<>]=?|≤|≥)?\s*\d[\d.,]*(?:\s*(?:-|–|to)\s*\d[\d.,]*)?)`)
)

// groupWords are words in lists by sex, age or state, without case and accents.
var groupWords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`
		male female men women man woman m f children adult adults year years yr yrs month months trimester week weeks
		follicular luteal midcycle postmenopausal pregnant pregnancy
		manner frauen mann frau w kinder erwachsene jahre monate follikelphase lutealphase
		hombre hombres mujer mujeres varones ninos adultos anos
		homme hommes femme femmes ans trimestre`) {
		out[w] = true
	}
	return out
}()

// ByGroups reports whether a range is a list by sex, age or state.
func ByGroups(text string) bool {
	return slices.ContainsFunc(fold.Words(text), func(w string) bool { return groupWords[w] })
}

// categoryWords are the starts of categories whose bounds are used.
var categoryWords = []string{"desirable", "optim", "normal", "deseable", "ptimo", "nschenswert", "souhaitable", "sufficient", "suffisant", "suficiente", "ausreichend", "diabetic", "low risk", "negative"}

func hasCategory(s string) bool {
	low := strings.ToLower(s)
	return slices.ContainsFunc(categoryWords, func(w string) bool { return strings.Contains(low, w) })
}

var turned = strings.NewReplacer("=<", "<=", "=>", ">=")

// oneRange reads a text that is a single range, without groups and categories. It returns false for other texts.
func oneRange(s string) (Range, bool) {
	s = WithoutLabel(strings.TrimSpace(s))
	for {
		inside, ok := insideParentheses(s)
		if !ok {
			break
		}
		s = WithoutLabel(inside)
	}
	s = withoutGroupSpaces(strings.TrimRight(strings.Trim(s, " ,;"), "*"))
	if s == "" {
		return Range{}, false
	}
	if strings.ContainsAny(s, "<>=") {
		s = turned.Replace(reOrEqual.ReplaceAllString(s, "$1="))
	}
	if !fold.IsDigit(rune(s[0])) {
		s = withoutWords(s)
	}
	if b, ok := parsePlainRange(s); ok {
		return b, true
	}
	// A unit or a remark in parentheses may follow.
	for range 3 {
		if i := strings.LastIndexAny(s, "(["); i > 0 && strings.HasSuffix(s, ")") || i > 0 && strings.HasSuffix(s, "]") {
			s = strings.TrimSpace(s[:i])
			if b, ok := parsePlainRange(s); ok {
				return b, true
			}
			continue
		}
		break
	}
	for cut := len(s); cut > 0; {
		i := strings.LastIndexByte(s[:cut], ' ')
		if i < 0 {
			break
		}
		if _, ok := ucum.Parse(s[i+1:]); ok {
			if b, ok := parsePlainRange(strings.TrimSpace(s[:i])); ok {
				return b, true
			}
		}
		cut = i
	}
	if m := reAfterNum.FindStringSubmatch(s); m != nil {
		if _, ok := ucum.Parse(m[2]); ok {
			if b, ok := parsePlainRange(m[1]); ok {
				return b, true
			}
		}
	}
	// Both ends may have the unit: "70 mg/dL - 99 mg/dL".
	if left, right, ok := strings.Cut(s, " - "); ok {
		l, okL := withoutUnit(left)
		r, okR := withoutUnit(right)
		if okL && okR {
			return parsePlainRange(l + "-" + r)
		}
	}
	return Range{}, false
}

// insideParentheses returns the content of parentheses or brackets around a text; a unit may follow.
func insideParentheses(s string) (string, bool) {
	if s == "" || s[0] != '(' && s[0] != '[' {
		return "", false
	}
	end := strings.LastIndexByte(s, map[byte]byte{'(': ')', '[': ']'}[s[0]])
	if end < 0 {
		return "", false
	}
	if rest := strings.TrimSpace(s[end+1:]); rest != "" {
		if _, ok := ucum.Parse(rest); !ok {
			return "", false
		}
	}
	return strings.TrimSpace(s[1:end]), true
}

// WithoutLabel removes a word such as "Ref:" or "Normal range".
func WithoutLabel(s string) string {
	if s == "" || strings.IndexByte("rnvbsRNVBS", s[0]) < 0 {
		return s
	}
	return strings.TrimSpace(reRefWord.ReplaceAllString(s, ""))
}

// withoutWords replaces a comparison in words by signs, and "between 3 and 5" by a hyphen.
func withoutWords(s string) string {
	for _, w := range []struct {
		re   *regexp.Regexp
		sign string
	}{{reWordsLess, "<="}, {reWordsMore, ">="}, {reWordsLT, "<"}, {reWordsGT, ">"}} {
		if m := w.re.FindStringSubmatch(s); m != nil {
			s = w.sign + m[1]
			break
		}
	}
	if strings.IndexByte("bezvdBEZVD", s[0]) >= 0 {
		if m := reBetween.FindStringSubmatch(s); m != nil {
			s = m[1] + " - " + m[2]
		}
	}
	return s
}

func withoutUnit(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if i := strings.IndexByte(s, ' '); i > 0 {
		if _, ok := ucum.Parse(s[i+1:]); ok {
			return s[:i], true
		}
		return s, false
	}
	return s, reNumber.MatchString(s)
}

// parsePlainRange reads a comparison, or two numbers with a dash or a word between them.
func parsePlainRange(s string) (Range, bool) {
	if m := reComparison.FindStringSubmatch(s); m != nil {
		n, ok := digits(m[2])
		if !ok {
			return Range{}, false
		}
		switch m[1] {
		case "<":
			return Range{High: n, HighOpen: true}, true
		case "<=":
			return Range{High: n}, true
		case ">":
			return Range{Low: n, LowOpen: true}, true
		case ">=":
			return Range{Low: n}, true
		}
		return Range{}, false
	}
	if m := reWordAfter.FindStringSubmatch(s); m != nil {
		n, ok := digits(m[1])
		if m[2] != "" {
			return Range{High: n}, ok
		}
		return Range{Low: n}, ok
	}
	if strings.ContainsAny(s, "<>") {
		if m := reTwoSided.FindStringSubmatch(s); m != nil && (m[1] != "" && m[4] != "" || m[3] != "" && m[1]+m[4] != "") {
			return rangeBetween(m[2], m[5], m[1] == ">", m[4] == "<")
		}
		return Range{}, false
	}
	m := reTo.FindStringSubmatch(s)
	if m == nil {
		return Range{}, false
	}
	if strings.HasPrefix(m[1], "-") && strings.Contains(s, "--") {
		m[2] = "-" + m[2] // -5--1: the second dash is a sign too
	}
	return rangeBetween(m[1], m[2], false, false)
}

// rangeBetween returns the range between two numbers. A range with swapped ends is returned without ends, and true. It
// returns false if one of the texts is not a number.
func rangeBetween(from, to string, lowOpen, highOpen bool) (Range, bool) {
	low, ok1 := digits(from)
	high, ok2 := digits(to)
	if !ok1 || !ok2 {
		return Range{}, false
	}
	if less(high, low) {
		return Range{}, true
	}
	return Range{Low: low, High: high, LowOpen: lowOpen, HighOpen: highOpen}, true
}

// reGroupSpaces matches a range, or one end, whose last number has thousands that are grouped by a space.
var reGroupSpaces = regexp.MustCompile(`(?i)^((?:[<>]=?|\d{1,3}(?: \d{3})*\s*(?:-|to|bis|a|à|hasta))\s*)(\d{1,3}(?: \d{3})+)(?:[^\d.,]|$)`)

// withoutGroupSpaces removes the spaces that group thousands: 150 000 - 450 000.
func withoutGroupSpaces(s string) string {
	m := reGroupSpaces.FindStringSubmatchIndex(s)
	if m == nil {
		return s
	}
	begin, end := s[:m[3]], s[m[4]:m[5]]
	begin = reSpaceInNumber.ReplaceAllString(begin, "$1$2")
	return begin + strings.ReplaceAll(end, " ", "") + s[m[5]:]
}

var reSpaceInNumber = regexp.MustCompile(`(\d) (\d)`)
