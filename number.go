package healthlab

import (
	"math"
	"strconv"
	"strings"
)

// ParseNumber parses a finite number in the format of any language: digits with a sign, a decimal point or a
// decimal comma, groups of three digits (separated by points, commas, spaces of any width or apostrophes), and
// an exponent. Spaces around the number are ignored. It returns false for other texts, and for a text such as
// 1,234, which is a different number in different languages.
func ParseNumber(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, thousandsMarks) {
		var ok bool
		if s, ok = withoutMarks(s); !ok {
			return 0, false
		}
	}
	s = strings.Replace(s, "\u2212", "-", 1) // U+2212, the minus sign of typography
	if strings.Trim(s, "0123456789.,+-eE") != "" {
		return 0, false
	}
	if strings.Contains(s, ",") {
		var ok bool
		if s, ok = withoutCommas(s); !ok {
			return 0, false
		}
	}
	if strings.Count(s, ".") > 1 { // only marks of groups repeat, as in 1.234.567
		digits := strings.TrimLeft(s, "+-")
		if !grouped(digits, ".") {
			return 0, false
		}
		s = strings.ReplaceAll(s, ".", "")
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsInf(n, 0)
}

// thousandsMarks separate groups of three digits and are no decimal mark in any language: a space, the
// no-break, narrow and thin spaces, and apostrophes.
const thousandsMarks = " \u00a0\u202f\u2009'\u2019"

// withoutMarks removes the thousands marks, all of which must be the same character. It returns false if the digits
// before the decimal mark are not in groups of three.
func withoutMarks(s string) (string, bool) {
	sign := s[:len(s)-len(strings.TrimLeft(s, "+-\u2212"))]
	s = s[len(sign):]
	at := strings.IndexAny(s, thousandsMarks)
	mark := string([]rune(s[at:])[:1])
	whole, rest := s, ""
	if end := strings.IndexAny(s, ".,eE"); end >= 0 {
		whole, rest = s[:end], s[end:]
	}
	if !grouped(whole, mark) {
		return "", false
	}
	if strings.HasPrefix(rest, ",") { // a decimal comma, as other marks divide the groups
		rest = "." + rest[1:]
	}
	return sign + strings.ReplaceAll(whole, mark, "") + rest, true
}

// withoutCommas converts a number with commas to Go's format. False if the meaning of the commas is ambiguous.
func withoutCommas(s string) (string, bool) {
	sign := s[:len(s)-len(strings.TrimLeft(s, "+-"))]
	s = s[len(sign):]
	switch point, comma := strings.LastIndexByte(s, '.'), strings.LastIndexByte(s, ','); {
	case point > comma: // 1,234.5
		if grouped(s[:point], ",") && strings.Count(s, ".") == 1 {
			return sign + strings.ReplaceAll(s, ",", ""), true
		}
	case point >= 0: // 1.234,5
		if grouped(s[:comma], ".") && strings.Count(s, ",") == 1 {
			return sign + strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", "."), true
		}
	case strings.Count(s, ",") > 1: // 1,234,567
		if grouped(s, ",") {
			return sign + strings.ReplaceAll(s, ",", ""), true
		}
	case comma > 0 && (s[0] == '0' || !grouped(s, ",")): // 0,123 and 12,5
		return sign + s[:comma] + "." + s[comma+1:], true
	}
	return "", false
}

// grouped reports whether digits are in groups of three, of which the first may be shorter.
func grouped(s, separator string) bool {
	for i, group := range strings.Split(s, separator) {
		if strings.Trim(group, "0123456789") != "" || len(group) != 3 && (i > 0 || group == "" || len(group) > 3) {
			return false
		}
	}
	return true
}
