package labreport

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

// ValueType is the class of a value, as the HTTP API spells it.
type ValueType string

// Value types. The first matching one is used, in this order.
const (
	Numeric    ValueType = "numeric"
	Percentage ValueType = "percentage"
	RangeValue ValueType = "range"
	Ratio      ValueType = "ratio"
	Boolean    ValueType = "boolean"
	Duration   ValueType = "duration"
	Comment    ValueType = "comment"
)

// Decimals is the decimal mark of a document. It is decided once for the whole document.
type Decimals uint8

const (
	// Undecided means that the texts have no unambiguous number; numbers are then read with a point.
	Undecided Decimals = iota
	// Point is a document with numbers such as 1,234.5.
	Point
	// Comma is a document with numbers such as 1.234,5.
	Comma
)

var (
	reNum      = regexp.MustCompile(`^` + refrange.NumberPattern + `$`)
	reGrouped  = regexp.MustCompile(`^` + refrange.GroupedPattern + `$`)
	reCmp      = regexp.MustCompile(`^(` + refrange.ComparatorPattern + `)\s*(` + refrange.NumberPattern + `|` + refrange.GroupedPattern + `)$`)
	reSpan     = regexp.MustCompile(`^(` + refrange.NumberPattern + `|` + refrange.GroupedPattern + `)\s*(?:-|–| to )\s*(` + refrange.NumberPattern + `|` + refrange.GroupedPattern + `)$`)
	reRatio    = regexp.MustCompile(`^` + refrange.NumberPattern + `\s*/\s*` + refrange.NumberPattern + `$`)
	reDuration = regexp.MustCompile(`(?i)^` + refrange.NumberPattern + `\s*(?:h|hrs?|hours?|mins?|minutes?|s|secs?|seconds?)$`)
	reClock    = regexp.MustCompile(`^\d{1,2}:\d{2}(?::\d{2})?$`)
	reTiter    = regexp.MustCompile(`^(?:[<>]=?|≤|≥)?\s*1\s*:\s*\d{1,6}$`)
	rePower    = regexp.MustCompile(`^((?:` + refrange.ComparatorPattern + `)?\s*` + refrange.NumberPattern + `)\s*[x×X*·⋅]\s*10\s?(?:(?:\^|\*\*)\s?([+-]?\d{1,2})|([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))$`)
	reTimes    = regexp.MustCompile(`^(?:` + refrange.ComparatorPattern + `)?\s*` + refrange.NumberPattern + `\s*[x×X]\s*10.{0,6}$`)
	reLakhs    = regexp.MustCompile(`^(?:` + refrange.ComparatorPattern + `)?\s*\d{1,2}(?:,\d{2})+,\d{3}$`)
	reFactor   = regexp.MustCompile(`^(?:` + refrange.ComparatorPattern + `)?\s*(?:` + refrange.NumberPattern + `|` + refrange.GroupedPattern + `)\s*(\pL+)\.?$`)
	reGrade    = regexp.MustCompile(`^(?:[1-4]\s?\+|\+{1,4}|\(\+\)|\+/-|\+\s?/\s?-|\+[1-4]|[-–]{1,3}|\(-\))$`)
)

// TypeOf returns the type of a value, and the value as [Result] has it: commas that group digits are removed from
// numbers. unit is the printed unit, which decides whether 12:30 is a duration.
func TypeOf(value, unit string) (ValueType, string) {
	v := strings.Join(strings.Fields(value), " ")
	switch {
	case reNum.MatchString(v):
		return Numeric, v
	case reGrouped.MatchString(v):
		return Numeric, strings.ReplaceAll(v, ",", "")
	case strings.Contains(v, "%") && strings.IndexFunc(v, fold.IsDigit) >= 0:
		return Percentage, v
	case reCmp.MatchString(v), reSpan.MatchString(v):
		return RangeValue, v
	case reRatio.MatchString(v):
		return Ratio, v
	case isBoolean(v):
		return Boolean, v
	case reDuration.MatchString(v), reClock.MatchString(v) && timeUnit(unit):
		return Duration, v
	}
	return Comment, v
}

func isBoolean(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "positive", "negative":
		return true
	}
	return false
}

func timeUnit(unit string) bool {
	switch strings.ToLower(strings.Trim(unit, ". ")) {
	case "h", "hr", "hrs", "hour", "hours", "min", "mins", "minute", "minutes", "s", "sec", "secs", "second", "seconds", "h:min", "min:s", "hh:mm":
		return true
	}
	return false
}

// decimalsOf returns the decimal mark of the numbers in some texts, by the majority of unambiguous numbers.
func decimalsOf(texts []string) Decimals {
	comma, point := decimalMarks(texts)
	switch {
	case comma == 0 && point == 0:
		return Undecided
	case comma > point:
		return Comma
	}
	return Point
}

// decimalMarks counts the numbers in some texts that certainly have a decimal comma, and those with a point.
func decimalMarks(texts []string) (comma, point int) {
	for _, t := range texts {
		if !looksLikeDate(t) {
			c, p := refrange.DecimalMarks(t)
			comma, point = comma+c, point+p
		}
	}
	return comma, point
}

var (
	reApostrophe = regexp.MustCompile(`(\d)['’](\d{3})`)
	reGroupHead  = regexp.MustCompile(`^[(\[]*[<>=]*[+-]?\d{1,3}$`)
	reGroupTail  = regexp.MustCompile(`^\d{3}(?:,\d+)?[)\]]*$`)
	reSpaceGroup = regexp.MustCompile(`^([<>≤≥=~]*\s*[+-]?\d{1,3})((?: \d{3})+)((?:[.,]\d+)?)$`)
)

// toPoint rewrites the numbers of s with a decimal point and without group marks.
func toPoint(s string, d Decimals) string {
	if strings.ContainsAny(s, "'’") {
		s = reApostrophe.ReplaceAllString(s, "$1$2")
	}
	if strings.IndexByte(s, ' ') > 0 {
		if m := reSpaceGroup.FindStringSubmatch(s); m != nil {
			s = m[1] + strings.ReplaceAll(m[2], " ", "") + m[3]
		}
	}
	if d != Comma || !strings.ContainsAny(s, ".,") {
		return s
	}
	return refrange.CommasToPoints(s)
}

func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(s), ",", ""), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// raised are the digits and signs of exponents.
var raised = strings.NewReplacer("⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9", "⁺", "+", "⁻", "-")

// withExponent returns a number with a power of ten, such as 4.5 x 10^5, as 4.5e5. It keeps a comparator. ok is false
// for any other text.
func withExponent(s string) (text string, ok bool) {
	if !strings.Contains(s, "10") {
		return s, false
	}
	m := rePower.FindStringSubmatch(s)
	if m == nil || strings.ContainsAny(m[1], "eE") {
		return s, false
	}
	return m[1] + "e" + m[2] + raised.Replace(m[3]), true
}

// factorWords are words that multiply a number: thousand, Mio, lakh.
var factorWords = words("factor")

func factored(s string) bool {
	// 2.5 lakh, 4.5 x 105 for a power of ten, 2,50,000 with the groups of lakhs
	m := reFactor.FindStringSubmatch(s)
	return m != nil && factorWords[fold.String(m[1])] || reTimes.MatchString(s) || reLakhs.MatchString(s)
}

// valueClasses has the classes of values in words, which are keys in the word files. Two words of one class have the
// same meaning.
var valueClasses = func() map[string]string {
	out := map[string]string{}
	for _, c := range strings.Fields("negative positive trace clear yellow colour cloudy amount normal abnormal between immune notimmune type none") {
		out[c] = c
	}
	return out
}()

// valueWords are words that stand for a value, without case and accents.
var valueWords = wordsBy("value", valueClasses)

func valueClass(s string) (string, bool) {
	t := strings.Trim(strings.TrimSpace(s), "*!.()[]")
	c, ok := valueWords[fold.String(t)]
	return c, ok
}

// shape is the form of a text as a value.
type shape uint8

const (
	noValue   shape = iota
	number1         // a number, perhaps with a comparator
	spanShape       // two numbers: 0-5
	titerShape
	gradeShape
	factorShape // a number with a factor whose meaning is not certain
	wordShape   // a known word
	noteShape   // known words that explain why there is no value
)

// valueShape returns the form of a text that may be in a value column. Its numbers have the decimal mark d.
func valueShape(s string, d Decimals) shape {
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(refrange.PlainMarks(s)), "*!"))
	if s == "" || len(s) > 60 {
		return noValue
	}
	if strings.IndexByte(s, ':') > 0 && reTiter.MatchString(s) {
		return titerShape
	}
	if strings.ContainsAny(s, "+-") && reGrade.MatchString(s) {
		return gradeShape
	}
	if c, ok := valueClass(s); ok {
		if c == "none" {
			return noteShape
		}
		return wordShape
	}
	if strings.IndexFunc(s, fold.IsDigit) < 0 {
		return noValue
	}
	p := toPoint(s, d)
	switch {
	case reNum.MatchString(p), reGrouped.MatchString(p), reCmp.MatchString(p):
		return number1
	case reSpan.MatchString(p):
		return spanShape
	}
	if _, ok := withExponent(p); ok {
		return number1
	}
	if factored(p) {
		return factorShape
	}
	return noValue
}

var reDateLike = regexp.MustCompile(`^\(?\d{1,4}[./-]\d{1,2}[./-]\d{2,4}\)?[,;]?$|^\d{1,2}[./ -](?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|fév|avr|aoû|déc)[a-zäéû]*\.?[./ -]\d{2,4}$|^\d{1,2}\.\d{1,2}\.$`)

func looksLikeDate(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) <= 40 && strings.IndexFunc(s, fold.IsDigit) >= 0 && strings.ContainsAny(s, "./- ") && reDateLike.MatchString(s)
}
