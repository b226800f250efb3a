package refrange

import (
	"cmp"
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
	// Unit is the unit that the text states for the ends, as it is printed; empty if it states none.
	Unit string
}

// Any reports whether the range has at least one end.
func (r Range) Any() bool { return r.Low != "" || r.High != "" }

const maxText = 300

// Parse reads a reference range whose numbers have a decimal point. ok reports whether the text has the form of a
// range. A list by age or sex, or a range with swapped ends, returns a range without ends and ok true. Words and
// single numbers return ok false. From a list of categories Parse takes the good one, such as normal, optimal or
// negative, if there is only one.
func Parse(text string) (r Range, ok bool) {
	text = strings.Join(strings.Fields(PlainMarks(text)), " ")
	if text == "" || len(text) > maxText {
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
	if m := reCategory.FindAllStringSubmatchIndex(text, 2); len(m) == 1 {
		if r, ok := oneRange(strings.TrimSpace(text[m[0][2]:m[0][3]])); ok {
			r.Unit, _, _ = firstUnit(strings.Fields(text[m[0][3]:]))
			return r, true
		}
	}
	return Range{}, false
}

// ParseBeside reads the reference range of a result as [Parse] does, and also a range with decimal commas. ok is
// false if it is not clear whether commas are decimal: they may group thousands, as in 3,500-5,000, and the result,
// such as 4.2, has a decimal point.
func ParseBeside(text, result string) (r Range, ok bool) {
	text, ok = withDecimalPoints(text, result)
	if !ok {
		return Range{}, false
	}
	return Parse(text)
}

// ParseIn reads the reference range of a result in unit as [ParseBeside] does, and compares the units. Of ranges in
// several units, as in "2.1-2.6 mmol/L (8.5-10.5 mg/dL)", it returns the one that states the unit of the result. It
// returns no ends if the text states only other units, or units that may be others. A range without a unit is in the
// unit of the result. If unit is empty, it is not known: then ParseIn returns no ends for ranges in several units.
func ParseIn(text, result, unit string) (r Range, ok bool) {
	text, ok = withDecimalPoints(text, result)
	if !ok {
		return Range{}, false
	}
	first, ok := Parse(text)
	all := rangesOf(text)
	another := func(r Range) bool { return !SameUnit(r.Unit, first.Unit) }
	switch {
	case unit == "" && slices.ContainsFunc(all, another):
		return Range{}, ok
	case unit == "" || ok && SameUnit(first.Unit, unit):
		return first, ok
	}
	own := slices.DeleteFunc(all, func(r Range) bool { return !SameUnit(r.Unit, unit) })
	switch {
	case len(own) == 1:
		return own[0], true
	case len(own) == 0 && first.Unit == "":
		return first, ok
	}
	return Range{}, ok
}

// SameUnit reports whether two printed units are certainly the same, such as K/uL and x10^9/L. An unknown unit is the
// same as its own text only.
func SameUnit(a, b string) bool {
	if strings.TrimSpace(a) == strings.TrimSpace(b) {
		return true
	}
	u, ok := ucum.Parse(a)
	v, known := ucum.Parse(b)
	return ok && known && ucum.Same(u.UCUM, v.UCUM)
}

// withDecimalPoints replaces the decimal commas of a range or a list of ranges. It returns false if it is not clear
// whether commas are decimal.
func withDecimalPoints(text, result string) (string, bool) {
	if !strings.Contains(text, ",") {
		return text, true
	}
	comma, point := DecimalMarks(text)
	switch {
	case comma > point:
		return CommasToPoints(text), true
	case point == 0 && reGroups.MatchString(text) && strings.Contains(result, "."):
		return "", false
	}
	return text, true
}

// reBetweenRanges separates ranges in several units.
var reBetweenRanges = regexp.MustCompile(`[\n;|()\[\]]|,\s+|\s/\s`)

// rangesOf returns the ranges of a text that consists of several, such as "2.1-2.6 mmol/L (8.5-10.5 mg/dL)"; nil for
// another text.
func rangesOf(text string) []Range {
	if len(text) > maxText || ByGroups(text) {
		return nil
	}
	var out []Range
	for _, part := range reBetweenRanges.Split(PlainMarks(text), -1) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		r, ok := Parse(part)
		if !ok {
			return nil
		}
		out = append(out, r)
	}
	return out
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
	reCategory   = regexp.MustCompile(`(?i)(?:^|[^\pL-])(?:desirable|optimal|normal|deseable|óptimo|optimo|wünschenswert|souhaitable|sufficient|suffisant|suficiente|ausreichend|non-diabetic|nondiabetic|low risk|negative)\s*(?:range|level|value)?\s*[:=]?\s*((?:[<>]=?|≤|≥)?\s*\d[\d.,]*(?:\s*(?:-|–|to)\s*\d[\d.,]*)?)`)
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
	unit := ""
	for {
		inside, after, ok := insideParentheses(s)
		if !ok {
			break
		}
		s, unit = WithoutLabel(inside), cmp.Or(after, unit)
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
	r, ok := rangeWithUnit(s)
	r.Unit = cmp.Or(r.Unit, unit)
	return r, ok
}

// rangeWithUnit reads a range that a unit or remarks in parentheses may follow.
func rangeWithUnit(s string) (Range, bool) {
	if r, ok := rangeBeforeUnit(s); ok {
		return r, true
	}
	remark := ""
	for range 3 {
		i := strings.LastIndexAny(s, "([")
		if i <= 0 || !strings.HasSuffix(s, ")") && !strings.HasSuffix(s, "]") {
			break
		}
		remark, s = cmp.Or(unitInRemark(s[i+1:len(s)-1]), remark), strings.TrimSpace(s[:i])
		if r, ok := rangeBeforeUnit(s); ok {
			r.Unit = cmp.Or(r.Unit, remark)
			return r, true
		}
	}
	// Both ends may have the unit: "70 mg/dL - 99 mg/dL".
	if left, right, ok := strings.Cut(s, " - "); ok {
		low, unit, okL := cutUnit(left)
		high, unitOfHigh, okR := cutUnit(right)
		if okL && okR && (unit == "" || unitOfHigh == "" || SameUnit(unit, unitOfHigh)) {
			r, ok := parsePlainRange(low + "-" + high)
			r.Unit = cmp.Or(unit, unitOfHigh)
			return r, ok
		}
	}
	return Range{}, false
}

// rangeBeforeUnit reads a range that a unit may follow.
func rangeBeforeUnit(s string) (Range, bool) {
	if r, ok := parsePlainRange(s); ok {
		return r, true
	}
	for cut := strings.LastIndexByte(s, ' '); cut >= 0; cut = strings.LastIndexByte(s[:cut], ' ') {
		if unit, ok := unitOf(s[cut+1:]); ok {
			if r, ok := parsePlainRange(strings.TrimSpace(s[:cut])); ok {
				r.Unit = unit
				return r, true
			}
		}
	}
	if m := reAfterNum.FindStringSubmatch(s); m != nil {
		if unit, ok := unitOf(m[2]); ok {
			r, ok := parsePlainRange(m[1])
			r.Unit = unit
			return r, ok
		}
	}
	return Range{}, false
}

// unitOf returns a text that is a unit. It returns "" and true for a word such as "(calc)", which names no unit.
func unitOf(text string) (string, bool) {
	u, ok := ucum.Parse(text)
	if !ok || u.UCUM == "{ratio}" {
		return "", ok
	}
	return strings.Trim(text, " ,;"), true
}

// unitInRemark returns the unit in a remark such as "mmol/L" and "adults, in mmol/L"; empty if there is none, or if the
// remark has a number.
func unitInRemark(text string) string {
	words := strings.Fields(text)
	unit, at, n := firstUnit(words)
	if strings.IndexFunc(strings.Join(slices.Delete(words, at, at+n), ""), fold.IsDigit) >= 0 {
		return ""
	}
	return unit
}

// firstUnit returns the first unit in a text, and the place and the number of its words. A unit without a slash is one
// only at the start and after "in".
func firstUnit(words []string) (unit string, at, n int) {
	for at := range words {
		for n := min(3, len(words)-at); n > 0; n-- {
			unit, _ := unitOf(strings.Trim(strings.Join(words[at:at+n], " "), "()[],;."))
			if unit != "" && (at == 0 || words[at-1] == "in" || strings.Contains(unit, "/")) {
				return unit, at, n
			}
		}
	}
	return "", 0, 0
}

// insideParentheses returns the content of parentheses or brackets around a text, and the unit that may follow them.
func insideParentheses(s string) (inside, unit string, ok bool) {
	if s == "" || s[0] != '(' && s[0] != '[' {
		return "", "", false
	}
	end := strings.LastIndexByte(s, map[byte]byte{'(': ')', '[': ']'}[s[0]])
	if end < 0 {
		return "", "", false
	}
	if rest := strings.TrimSpace(s[end+1:]); rest != "" {
		if unit, ok = unitOf(rest); !ok {
			return "", "", false
		}
	}
	return strings.TrimSpace(s[1:end]), unit, true
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

// cutUnit splits a number from the unit that may follow it.
func cutUnit(s string) (number, unit string, ok bool) {
	number, unit, spaced := strings.Cut(strings.TrimSpace(s), " ")
	if !spaced {
		return number, "", reNumber.MatchString(number)
	}
	unit, ok = unitOf(unit)
	return number, unit, ok
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
