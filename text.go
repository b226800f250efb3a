package healthlab

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// CheckText returns [Invalid] unless every store can store the texts: they must be UTF-8 without NUL, which
// PostgreSQL's type text does not allow. Stores call it for their arguments before they write. The error does
// not repeat the text.
func CheckText(texts ...string) error {
	for _, s := range texts {
		if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
			return fmt.Errorf("%w: text must be UTF-8 without NUL", Invalid)
		}
	}
	return nil
}

// FoldText returns text in a form for comparing and searching: decomposed (NFKD), without marks (Mn),
// case-folded, then composed (NFC). Letters without a decomposition, such as ø and ł, stay unchanged. It is
// pure and safe for concurrent use.
func FoldText(s string) string {
	ascii := true
	for i := 0; ascii && i < len(s); i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	return norm.NFC.String(cases.Fold().String(decomposed(s)))
}

// BareText returns text as [FoldText] does, but keeps the case.
func BareText(s string) string { return norm.NFC.String(decomposed(s)) }

// decomposed returns text in NFKD without marks (Mn).
func decomposed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}
