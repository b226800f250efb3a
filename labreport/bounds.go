package labreport

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport/internal/fold"
	"github.com/healthlab-dev/healthlab/labreport/ucum"
)

// Bounds are the two ends of a reference range. A nil end is open.
type Bounds struct {
	Low, High *float64
	// LowOpen and HighOpen say that the end itself is outside: "<5" and ">3", as
	// against "<=5" and "3-5".
	LowOpen, HighOpen bool
}

// Any reports whether there is at least one end.
func (b Bounds) Any() bool { return b.Low != nil || b.High != nil }

var (
	reWordsLess = regexp.MustCompile(`(?i)^(?:(?:less|lower|smaller) than or equal to|up to|bis zu|bis|hasta|jusqu'?[aà]|at most|max\.?|maximum|menor o igual (?:a|que)|inf[ée]rieur ou [ée]gal [aà]|inferior o igual a|kleiner gleich|nicht [üu]ber)\s*`)
	reWordsLT   = regexp.MustCompile(`(?i)^(?:(?:less|lower|smaller) than|below|under|menor (?:de|que|a)|inferior a|inf[ée]rieur [àa]|unter|kleiner(?: als)?|inf\.? [àa]|moins de|less)\s*`)
	reWordsMore = regexp.MustCompile(`(?i)^(?:(?:greater|more|higher) than or equal to|at least|from|mindestens|ab|al menos|mayor o igual (?:a|que)|sup[ée]rieur ou [ée]gal [àa]|min\.?|minimum|superior o igual a|gr[öo](?:ß|ss)er gleich)\s*`)
	reWordsGT   = regexp.MustCompile(`(?i)^(?:(?:greater|more|higher) than|above|over|mayor (?:de|que|a)|superior a|sup[ée]rieur [àa]|[üu]ber|gr[öo](?:ß|ss)er(?: als)?|sup\.? [àa]|plus de)\s*`)
	reOrEqual   = regexp.MustCompile(`(?i)([<>])\s*(?:or|oder|o|ou)\s*=\s*`)
	reTo        = regexp.MustCompile(`(?i)^(` + numPattern + `|` + groupedPattern + `)\s*(?:-{1,2}|to|bis|a|à|hasta|\.\.\.?|~)\s*(` + numPattern + `|` + groupedPattern + `)$`)
	reRefWord   = regexp.MustCompile(`(?i)^(?:reference (?:range|interval|values?|limits?)|biological reference interval|normal (?:range|values?)|ref\.? (?:range|interval|values?)|ref(?:erence|erenz|erencia|\.)?|normal|norm|norme|normbereich|referenzbereich|valor(?:es)? (?:normal(?:es)?|de referencia)|v\.? ?r\.?|valeurs? (?:normales?|de référence)|vr|vn|rr|r|range|bereich|rango|soll|sollwert|n)\s*[:.=]?\s+|^(?:ref|normal|norm|range|vr|vn|n)\s*[:=.]\s*`)
	reAfterNum  = regexp.MustCompile(`^(.*\d)\s*([^\d\s<>=-][^<>]*)$`)
	reBetween   = regexp.MustCompile(`(?i)^(?:between|entre|zwischen|von|de|desde)\s+(.+?)\s+(?:and|y|et|und|bis|a|à|hasta)\s+(.+)$`)
	reCategory  = regexp.MustCompile(`(?i)(?:desirable|optimal|normal|deseable|óptimo|optimo|wünschenswert|souhaitable|sufficient|suffisant|suficiente|ausreichend|non-diabetic|nondiabetic|low risk|negative)\s*(?:range|level|value)?\s*[:=]?\s*((?:[<>]=?|≤|≥)?\s*\d[\d.,]*(?:\s*(?:-|–|to)\s*\d[\d.,]*)?)`)
)

// groupWords are words of lists by sex, age or state, folded.
var groupWords = words("group")

// byGroups reports whether a range is one of several, by sex, age or state.
func byGroups(s string) bool {
	return slices.ContainsFunc(fold.Words(s), func(w string) bool { return groupWords[w] })
}

// categoryWords begin the categories that reCategory takes the bounds of.
var categoryWords = []string{"desirable", "optim", "normal", "deseable", "ptimo", "nschenswert", "souhaitable", "sufficient", "suffisant", "suficiente", "ausreichend", "diabetic", "low risk", "negative"}

func hasCategory(s string) bool {
	low := strings.ToLower(s)
	return slices.ContainsFunc(categoryWords, func(w string) bool { return strings.Contains(low, w) })
}

var turned = strings.NewReplacer("=<", "<=", "=>", ">=")

// ParseBounds reads a printed reference range whose numbers are written with a
// point. Text that is not one range (lists by age or sex, words) has no bounds, nor
// has a range whose ends are swapped. Of a list of categories the one called normal,
// desirable, optimal or sufficient counts.
func ParseBounds(s string) Bounds {
	b, _ := parseBounds(s)
	return b
}

// parseBounds also reports whether the text has the form of a range at all.
func parseBounds(s string) (Bounds, bool) {
	s = strings.Join(strings.Fields(plainMarks(s)), " ")
	if s == "" || len(s) > 300 {
		return Bounds{}, false
	}
	if b, ok := oneRange(s); ok {
		return b, true
	}
	if strings.IndexFunc(s, fold.IsDigit) < 0 {
		return Bounds{}, false
	}
	if byGroups(s) {
		return Bounds{}, len(reAnyNumber.FindAllString(s, 3)) > 1
	}
	if !hasCategory(s) {
		return Bounds{}, false
	}
	if m := reCategory.FindAllStringSubmatch(s, 2); len(m) == 1 {
		if b, ok := oneRange(strings.TrimSpace(m[0][1])); ok {
			return b, true
		}
	}
	return Bounds{}, false
}

// oneRange reads forms 1 to 6 of a range.
func oneRange(s string) (Bounds, bool) {
	s = withoutRefWord(strings.TrimSpace(s))
	for len(s) > 1 && (s[0] == '(' && s[len(s)-1] == ')' || s[0] == '[' && s[len(s)-1] == ']') {
		s = withoutRefWord(strings.TrimSpace(s[1 : len(s)-1]))
	}
	s = strings.Trim(s, " ,;")
	if s == "" {
		return Bounds{}, false
	}
	if strings.ContainsAny(s, "<>=") {
		s = turned.Replace(reOrEqual.ReplaceAllString(s, "$1="))
	}
	if !fold.IsDigit(rune(s[0])) {
		s = withoutWords(s)
	}
	if b, ok := bareRange(s); ok {
		return b, true
	}
	// A unit or a remark in parentheses may follow.
	for range 3 {
		if i := strings.LastIndexAny(s, "(["); i > 0 && strings.HasSuffix(s, ")") || i > 0 && strings.HasSuffix(s, "]") {
			s = strings.TrimSpace(s[:i])
			if b, ok := bareRange(s); ok {
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
			if b, ok := bareRange(strings.TrimSpace(s[:i])); ok {
				return b, true
			}
		}
		cut = i
	}
	if m := reAfterNum.FindStringSubmatch(s); m != nil {
		if _, ok := ucum.Parse(m[2]); ok {
			return bareRange(m[1])
		}
	}
	// Both ends may carry the unit: "70 mg/dL - 99 mg/dL".
	if left, right, ok := strings.Cut(s, " - "); ok {
		l, okL := withoutUnit(left)
		r, okR := withoutUnit(right)
		if okL && okR {
			return bareRange(l + "-" + r)
		}
	}
	return Bounds{}, false
}

// withoutRefWord takes off a word such as "Ref:" or "Normal range".
func withoutRefWord(s string) string {
	if s == "" || strings.IndexByte("rnvbsRNVBS", s[0]) < 0 {
		return s
	}
	return strings.TrimSpace(reRefWord.ReplaceAllString(s, ""))
}

// withoutWords writes a comparison in words with signs, and "between 3 and 5" with a
// hyphen.
func withoutWords(s string) string {
	for _, w := range []struct {
		re   *regexp.Regexp
		sign string
	}{{reWordsLess, "<="}, {reWordsMore, ">="}, {reWordsLT, "<"}, {reWordsGT, ">"}} {
		if t := w.re.ReplaceAllString(s, ""); t != s {
			s = w.sign + t
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
	return s, reNum.MatchString(s)
}

func bareRange(s string) (Bounds, bool) {
	if m := reCmp.FindStringSubmatch(s); m != nil {
		v, ok := number(m[2])
		if !ok {
			return Bounds{}, false
		}
		switch strings.ReplaceAll(m[1], " ", "") {
		case "<":
			return Bounds{High: &v, HighOpen: true}, true
		case "<=", "=<":
			return Bounds{High: &v}, true
		case ">":
			return Bounds{Low: &v, LowOpen: true}, true
		case ">=", "=>":
			return Bounds{Low: &v}, true
		}
		return Bounds{}, false
	}
	if m := reTo.FindStringSubmatch(s); m != nil {
		low, ok1 := number(m[1])
		high, ok2 := number(m[2])
		if !ok1 || !ok2 {
			return Bounds{}, false
		}
		if low > high {
			return Bounds{}, true
		}
		return Bounds{Low: &low, High: &high}, true
	}
	return Bounds{}, false
}

// span is the set of values that a result may really have.
type span struct {
	low, high         float64
	lowOpen, highOpen bool
}

// spanOf returns the set for a value of a type; false if it is not known.
func spanOf(t ValueType, value string) (span, bool) {
	switch t {
	case Numeric:
		v, ok := number(value)
		return span{low: v, high: v}, ok
	case RangeValue:
		value = plainMarks(value)
		if m := reCmp.FindStringSubmatch(value); m != nil {
			v, ok := number(m[2])
			switch strings.ToLower(strings.ReplaceAll(m[1], " ", "")) {
			case ">":
				return span{v, math.Inf(1), true, true}, ok
			case ">=", "=>", ">or=":
				return span{v, math.Inf(1), false, true}, ok
			case "<":
				return span{math.Inf(-1), v, true, true}, ok
			case "<=", "=<", "<or=":
				return span{math.Inf(-1), v, true, false}, ok
			}
			return span{}, false
		}
		if m := reSpan.FindStringSubmatch(value); m != nil {
			a, ok1 := number(m[1])
			b, ok2 := number(m[2])
			return span{low: a, high: b}, ok1 && ok2 && a <= b
		}
	}
	return span{}, false
}

// RangeFlags says whether a value is above or below its bounds. Nil means that
// there is no such bound or that it cannot be told: ">500" may or may not be above
// 1100.
func RangeFlags(t ValueType, value string, b Bounds) (above, below *bool) {
	p, ok := spanOf(t, value)
	if !ok {
		return nil, nil
	}
	if b.Low != nil && *b.Low >= 0 && math.IsInf(p.low, -1) {
		p.low, p.lowOpen = 0, false // what is measured from zero on has no values below it
	}
	if b.High != nil {
		hi := *b.High
		switch {
		// P lies inside (hi, ∞), or [hi, ∞) if hi itself is outside the range.
		case p.low > hi, p.low == hi && (p.lowOpen || b.HighOpen):
			above = ptr(true)
		case p.high < hi, p.high == hi && (!b.HighOpen || p.highOpen):
			above = ptr(false)
		}
	}
	if b.Low != nil {
		lo := *b.Low
		switch {
		case p.high < lo, p.high == lo && (p.highOpen || b.LowOpen):
			below = ptr(true)
		case p.low > lo, p.low == lo && (!b.LowOpen || p.lowOpen):
			below = ptr(false)
		}
	}
	return above, below
}

func ptr[T any](v T) *T { return &v }

// Interpretation is what a result means against its reference, as published.
type Interpretation string

// Interpretations. Critical is never inferred from numbers: only a printed flag
// makes it.
const (
	Normal   Interpretation = "normal"
	Abnormal Interpretation = "abnormal"
	Critical Interpretation = "critical"
	Unclear  Interpretation = "unknown"
)

// flagWords are printed flags, folded but for signs, with their meaning.
var flagWords = lists(map[Interpretation]string{
	Critical: "hh|ll|c|crit|critical|panic|critical high|critical low|h!|l!|kritisch|critico|critique|hh*|ll*|h*!|alert|++ critical|high panic|low panic|aa|panic high|panic low",
	Abnormal: "h|l|a|*|**|!|high|low|abnormal|abn|above|below|hi|lo|++|--|+|-|↑|↓|▲|▼|↑↑|↓↓|⬆|⬇|△|▽|alto|bajo|hoch|niedrig|erhoht|erniedrigt|eleve|bas|haut|h *|l *|out|above high|below low|" +
		"(h)|(l)|h*|l*|*h|*l|[h]|[l]|alta|baja|elevado|elevada|disminuido|disminuida|bas*|augmente|diminue|auffallig|+++|---|above range|below range|out of range|above normal|below normal|(+)|(-)|anormal|(a)|fuera de rango|hors norme|pathologisch|>|<|high *|low *|superieur|inferieur|high (h)|low (l)",
	Normal: "n|normal|within|within range|wnl|ok|in range|im normbereich|dentro|norm|dans la norme|dentro de rango|en rango|=|within limits|innerhalb|normale|within normal limits|o k|✓",
})

// flagMeaning returns what a printed flag means.
func flagMeaning(s string) (Interpretation, bool) {
	key := strings.ToLower(fold.Plain(strings.TrimSpace(s)))
	if m, ok := flagWords[key]; ok {
		return m, true
	}
	key = strings.Trim(key, "()[]*.: ")
	m, ok := flagWords[key]
	return m, ok && key != "<" && key != ">"
}

// Interpret decides what a result means: the printed flag and the bounds together.
// expected is the printed reference in words ("Negative"), flag the printed flag.
func Interpret(t ValueType, value, flag, expected string, b Bounds) Interpretation {
	printed, _ := flagMeaning(flag)
	above, below := RangeFlags(t, value, b)
	out := above != nil && *above || below != nil && *below
	switch {
	case printed == Critical:
		return Critical
	case out, printed == Abnormal:
		return Abnormal
	case printed == Normal:
		return Normal
	case t == Numeric && b.Any():
		return Normal
	case t == RangeValue && above != nil && below != nil, t == RangeValue && b.Low == nil && above != nil, t == RangeValue && b.High == nil && below != nil:
		// every bound that there is has been met
		return Normal
	}
	return inWords(value, expected)
}

// inWords compares a value in words, a titer or a grade with the printed expected
// value of the same kind.
func inWords(value, expected string) Interpretation {
	if strings.TrimSpace(expected) == "" {
		return Unclear
	}
	v, okV := wordKind(value)
	e, okE := wordKind(expected)
	if !okV || !okE || v == "none" || e == "none" {
		return Unclear
	}
	if v == e || fold.String(value) == fold.String(expected) {
		return Normal
	}
	if strings.HasPrefix(v, "titer") && strings.HasPrefix(e, "titer") {
		return titerWithin(value, expected)
	}
	if strings.HasPrefix(v, "titer") != strings.HasPrefix(e, "titer") && e != "negative" {
		return Unclear
	}
	// A range of words: "Straw-Yellow", "Clear/Hazy".
	for _, part := range strings.FieldsFunc(expected, func(r rune) bool { return r == '-' || r == '/' || r == ',' }) {
		if k, ok := wordKind(part); ok && k == v {
			return Normal
		}
	}
	return Abnormal
}

// wordKind folds a value in words to its class: negative = non-reactive.
func wordKind(s string) (string, bool) {
	s = strings.TrimSpace(plainMarks(s))
	if reTiter.MatchString(s) {
		return "titer " + strings.ReplaceAll(s, " ", ""), true
	}
	if reGrade.MatchString(s) {
		if strings.ContainsRune(s, '+') {
			return "grade " + s, true
		}
		return "negative", true
	}
	c, ok := valueClass(s)
	return c, ok
}

// titerWithin compares "1:80" with "<1:40".
func titerWithin(value, expected string) Interpretation {
	read := func(s string) (sign string, n float64, ok bool) {
		s = strings.ReplaceAll(plainMarks(s), " ", "")
		i := strings.Index(s, "1:")
		if i < 0 {
			return "", 0, false
		}
		n, ok = number(s[i+2:])
		return s[:i], n, ok
	}
	vs, v, ok1 := read(value)
	es, e, ok2 := read(expected)
	if !ok1 || !ok2 {
		return Unclear
	}
	switch es {
	case "<":
		if v < e || vs == "<" && v <= e {
			return Normal
		}
	case "<=", "":
		if v <= e {
			return Normal
		}
	case ">", ">=":
		return Unclear
	}
	return Abnormal
}
