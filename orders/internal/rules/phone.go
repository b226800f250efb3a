package rules

import (
	"regexp"
	"strings"
)

var (
	// phoneForm is a telephone number as people write it: perhaps tel:, perhaps +, groups of
	// digits, and perhaps an extension (RFC 3966 has ";ext=").
	phoneForm = regexp.MustCompile(`(?i)^\s*(?:tel:)?\s*(\+?)([0-9()/.\s\x{00A0}\x{2010}-\x{2015}-]+?)(?:\s*(?:;ext=|ext\.?|x|#)\s*[0-9]{1,7})?\s*$`)
	notDigits = regexp.MustCompile(`[^0-9]`)
)

// internationalPrefix is dialled in the US before a country code.
const internationalPrefix = "011"

// Digits of telephone numbers.
const (
	leastInternational, mostInternational = 7, 15 // ITU-T E.164, section 6; the minimum is for small networks
	localUS, nationalUS                   = 7, 10 // North American Numbering Plan, without and with the area code
)

// phone reports whether s has the form of a telephone number: with its country code after + or 011, or as it is dialled
// in the US. It does not check whether the number is assigned.
func phone(s string) bool {
	parts := phoneForm.FindStringSubmatch(s)
	if parts == nil {
		return false
	}
	digits := notDigits.ReplaceAllString(parts[2], "")
	international := parts[1] == "+"
	if !international {
		if rest, ok := strings.CutPrefix(digits, internationalPrefix); ok {
			digits, international = rest, true
		}
	}
	if !international {
		digits = "1" + strings.TrimPrefix(digits, "1")
	}
	if strings.HasPrefix(digits, "1") {
		n := len(digits) - 1
		return n == localUS || n == nationalUS
	}
	return !strings.HasPrefix(digits, "0") && len(digits) >= leastInternational && len(digits) <= mostInternational
}
