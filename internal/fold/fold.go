// Package fold normalises printed texts for comparison: case, diacritics, punctuation and similar letters.
package fold

import (
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
)

// typographic replaces typographic signs and ligatures by ASCII. Letters that Unicode does not decompose, such as ø
// and ł, stay; [healthlab.FoldText] also keeps them.
var typographic = strings.NewReplacer("ß", "ss", "ẞ", "SS", "æ", "ae", "Æ", "Ae", "œ", "oe", "Œ", "Oe",
	"µ", "u", "μ", "u", "α", "alpha", "β", "beta", "γ", "gamma", "Α", "Alpha", "Β", "Beta", "Γ", "Gamma", "×", "x", "ª", "a", "º", "o", "ı", "i",
	"–", "-", "—", "-", "‐", "-", "‑", "-", "−", "-", "’", "'", "‘", "'", "´", "'", "“", "\"", "”", "\"",
	"⩽", "<=", "⩾", ">=", "≤", "<=", "≥", ">=", "∕", "/", "⁄", "/")

// Plain returns s without diacritics, and with typographic signs replaced by ASCII. Upper and lower case stay.
// Texts that differ only in their Unicode form become equal.
func Plain(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	return healthlab.BareText(typographic.Replace(s))
}

// String returns the words of s, in lower case and without diacritics and punctuation, separated by one space. A
// percent or number sign is a word.
func String(s string) string { return strings.Join(Words(s), " ") }

// Words returns the words of s, as [String] joins them.
func Words(s string) []string {
	s = healthlab.FoldText(Plain(s))
	var out []string
	start := -1
	flush := func(end int) {
		if start >= 0 {
			out = append(out, s[start:end])
			start = -1
		}
	}
	for i, r := range s {
		switch {
		case r == '%' || r == '#':
			flush(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if start < 0 {
				start = i
			}
		case r == '.' && start >= 0 && i == start+1 && i+1 < len(s) && s[i+1] != ' ' && unicode.IsLetter(rune(s[start])):
			// the point in "S.Creatinine" ends a word: it follows a single letter
			flush(i)
		default:
			flush(i)
		}
	}
	flush(len(s))
	return out
}

// IsDigit reports whether r is an ASCII digit.
func IsDigit(r rune) bool { return r >= '0' && r <= '9' }

// Distance returns the edit distance (Levenshtein) of a and b in letters, or most+1 if it is more than most.
func Distance(a, b string, most int) int {
	ra, rb := []rune(a), []rune(b)
	if len(ra)-len(rb) > most || len(rb)-len(ra) > most {
		return most + 1
	}
	prev := make([]int, len(rb)+1)
	next := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		next[0] = i
		low := i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			next[j] = min(prev[j]+1, next[j-1]+1, prev[j-1]+cost)
			low = min(low, next[j])
		}
		if low > most {
			return most + 1
		}
		prev, next = next, prev
	}
	return prev[len(rb)]
}

var alike = strings.NewReplacer("1", "l", "i", "l", "|", "l", "0", "o", "5", "s", "8", "b", "&", "ss")

// Shape maps letters and digits that look alike to one of them: 0 and o become o. Misread texts can then be
// compared.
func Shape(s string) string { return alike.Replace(s) }

// Parentheses splits a text such as "GOT (ASAT)" into the text outside and the text inside of its parentheses.
// inside is "" if there is not exactly one pair.
func Parentheses(s string) (outside, inside string) {
	open := strings.IndexByte(s, '(')
	end := strings.LastIndexByte(s, ')')
	if open < 0 || end < open {
		return s, ""
	}
	inside = strings.TrimSpace(s[open+1 : end])
	if strings.ContainsAny(inside, "()") {
		return s, "" // more than one pair
	}
	return strings.TrimSpace(s[:open] + " " + s[end+1:]), inside
}

// Set returns the set of the words of a text that are separated by spaces.
func Set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
