package labreport

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// Bounds are the two ends of a reference range. A nil end is open.
type Bounds struct {
	Low, High *float64
	// LowOpen and HighOpen report whether the end itself is outside of the range, as in "<5" and ">3", unlike
	// "<=5" and "3-5".
	LowOpen, HighOpen bool
}

func (b Bounds) any() bool { return b.Low != nil || b.High != nil }

func parseBounds(s string) (b Bounds, isRange bool) {
	r, ok := refrange.Parse(s)
	return boundsOf(r), ok
}

func boundsOf(r refrange.Range) Bounds {
	end := func(text string) *float64 {
		if text == "" {
			return nil
		}
		v, _ := number(text)
		return &v
	}
	return Bounds{Low: end(r.Low), High: end(r.High), LowOpen: r.LowOpen, HighOpen: r.HighOpen}
}

// span is the set of numbers that a printed value can mean.
type span struct {
	low, high         float64
	lowOpen, highOpen bool
}

// spanOf returns the set of numbers that a value of type t can mean. It returns false if the value is neither a
// number nor a range of numbers.
func spanOf(t ValueType, value string) (span, bool) {
	r, ok := refrange.Value(value)
	if !ok || t != Numeric && t != RangeValue {
		return span{}, false
	}
	end := func(text string, open bool, infinite int) (float64, bool) {
		if text == "" {
			return math.Inf(infinite), true
		}
		v, _ := number(text)
		return v, open
	}
	var p span
	p.low, p.lowOpen = end(r.Low, r.LowOpen, -1)
	p.high, p.highOpen = end(r.High, r.HighOpen, 1)
	return p, true
}

// RangeFlags reports whether a value is above the upper bound or below the lower one. A flag is nil if the bounds
// have no such end, or if the value can lie on both sides of it: ">500" may or may not be above 1100. Both are nil if
// the value is neither a number nor a range of numbers.
func RangeFlags(t ValueType, value string, b Bounds) (above, below *bool) {
	p, ok := spanOf(t, value)
	if !ok {
		return nil, nil
	}
	if b.Low != nil && *b.Low >= 0 && math.IsInf(p.low, -1) {
		p.low, p.lowOpen = 0, false // a quantity that starts at zero has no negative values
	}
	if b.High != nil {
		hi := *b.High
		switch {
		// All numbers that the value can mean are above the range.
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

// Interpretation is the meaning of a result compared with its reference range.
type Interpretation string

// Interpretations. Critical is never inferred from numbers: only a printed flag
// makes it.
const (
	Normal   Interpretation = "normal"
	Abnormal Interpretation = "abnormal"
	Critical Interpretation = "critical"
	Unclear  Interpretation = "unknown"
)

// flagWords are printed flags with their meaning, without case and accents. A doubled mark is critical if the
// single one is abnormal. A single dash is an empty cell, not a flag.
var flagWords = lists(map[Interpretation]string{
	Critical: "hh|ll|++|--|+++|---|↑↑|↓↓|↑↑↑|↓↓↓|▲▲|▼▼|⬆⬆|⬇⬇|!!|(++)|(--)|c|crit|critical|panic|critical high|critical low|h!|l!|kritisch|critico|critique|hh*|ll*|h*!|alert|++ critical|high panic|low panic|aa|panic high|panic low",
	Abnormal: "h|l|a|*|**|!|high|low|abnormal|abn|above|below|hi|lo|+|↑|↓|▲|▼|⬆|⬇|△|▽|alto|bajo|hoch|niedrig|erhoht|erniedrigt|eleve|bas|haut|h *|l *|out|above high|below low|" +
		"(h)|(l)|h*|l*|*h|*l|[h]|[l]|alta|baja|elevado|elevada|disminuido|disminuida|bas*|augmente|diminue|auffallig|above range|below range|out of range|above normal|below normal|(+)|anormal|(a)|fuera de rango|hors norme|pathologisch|>|<|high *|low *|superieur|inferieur|high (h)|low (l)",
	Normal:  "n|normal|within|within range|wnl|ok|in range|im normbereich|dentro|norm|dans la norme|dentro de rango|en rango|=|within limits|innerhalb|normale|within normal limits|o k|✓",
	Unclear: "-|–|—|(-)", // a dash fills an empty cell or begins a list
})

// flagMeaning returns the meaning of a printed flag.
func flagMeaning(s string) (Interpretation, bool) {
	key := strings.ToLower(fold.Plain(strings.TrimSpace(s)))
	if m, ok := flagWords[key]; ok {
		return m, true
	}
	key = strings.Trim(key, "()[]*.: ")
	m, ok := flagWords[key]
	return m, ok && key != "<" && key != ">"
}

func doubledMark(flag string) bool {
	return strings.IndexFunc(flag, unicode.IsLetter) < 0
}

// Interpret returns the meaning of a result from its printed flag and its bounds. expected is the printed
// reference in words ("Negative"), flag the printed flag.
func Interpret(t ValueType, value, flag, expected string, b Bounds) Interpretation {
	if plain, ok := withExponent(value); ok && t == Comment {
		t, value = TypeOf(plain, "")
	}
	printed, _ := flagMeaning(flag)
	above, below := RangeFlags(t, value, b)
	out := above != nil && *above || below != nil && *below
	switch {
	case printed == Critical && doubledMark(flag) && t == Numeric && b.any() && !out:
		return Unclear // the flag contradicts the range, or fills an empty cell
	case printed == Critical:
		return Critical
	case out, printed == Abnormal:
		return Abnormal
	case printed == Normal:
		return Normal
	case t == Numeric && b.any():
		return Normal
	case t == RangeValue && above != nil && below != nil, t == RangeValue && b.Low == nil && above != nil, t == RangeValue && b.High == nil && below != nil:
		// the value is inside all bounds
		return Normal
	}
	return inWords(value, expected)
}

// inWords compares a value in words, a titer or a grade with the printed expected
// value of the same kind.
func inWords(value, expected string) Interpretation {
	v, okV := wordKind(value)
	e, okE := wordKind(expected)
	switch {
	case !okV || v == "none" || e == "none":
		return Unclear
	case !okE:
		return amongWords(value, v, expected)
	case v == e && unlikeWords[v] && fold.String(value) != fold.String(expected):
		return Unclear
	case v == e:
		return Normal
	case strings.HasPrefix(v, "titer") && strings.HasPrefix(e, "titer"):
		return titerWithin(value, expected)
	case strings.HasPrefix(v, "titer") != strings.HasPrefix(e, "titer") && e != "negative":
		return Unclear
	}
	return Abnormal
}

// unlikeWords are classes of words of one kind with different meanings: few and many, red and brown.
var unlikeWords = map[string]bool{"amount": true, "colour": true, "type": true}

// reBetweenWords and reInsideWords match what separates the words of a range or a list: "negative - trace",
// "Clear/Hazy". A mark inside a word may belong to the word: "non-reactive".
var (
	reBetweenWords = regexp.MustCompile(`(?i)\s*,\s*|\s+[-/]\s+|\s+(?:to|bis|a|hasta|or|oder|o|ou)\s+`)
	reInsideWords  = regexp.MustCompile(`\b[-/]\b`)
)

// expectedWords returns the words of a range or a list of expected words.
func expectedWords(expected string) (out []string) {
	for _, part := range reBetweenWords.Split(fold.Plain(refrange.PlainMarks(expected)), -1) {
		if _, ok := wordKind(part); ok {
			out = append(out, part)
			continue
		}
		out = append(out, reInsideWords.Split(part, -1)...)
	}
	return out
}

// amongWords compares a value of a class with a range or a list of expected words. A list with both negative and
// positive has all possible values, and expects none of them.
func amongWords(value, class, expected string) Interpretation {
	var found, positive, negative, more bool
	for _, word := range expectedWords(expected) {
		kind, ok := wordKind(word)
		if !ok || kind == "none" {
			return Unclear
		}
		found = found || kind == class && (!unlikeWords[class] || fold.String(word) == fold.String(value))
		positive, negative = positive || kind == "positive", negative || kind == "negative"
		more = more || kind != "negative" && kind != "trace"
	}
	switch {
	case positive && negative:
		return Unclear
	case found:
		return Normal
	case !more && (class == "positive" || strings.HasPrefix(class, "grade")):
		return Abnormal
	}
	return Unclear
}

// wordKind returns the class of a value in words, such as negative, which includes non-reactive. It returns false for
// a text that has none.
func wordKind(s string) (string, bool) {
	s = strings.TrimSpace(refrange.PlainMarks(s))
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

// titerWithin compares a titer such as 1:80 with an expected limit such as <1:40.
func titerWithin(value, expected string) Interpretation {
	read := func(s string) (sign string, n float64, ok bool) {
		s = strings.ReplaceAll(refrange.PlainMarks(s), " ", "")
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
