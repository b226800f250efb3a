package healthlab

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckText is [Invalid] unless every store can keep the texts: they are UTF-8 and contain
// no NUL, which the text type of PostgreSQL does not hold. Stores call it for what they
// are given before they write anything. The error does not repeat the text.
func CheckText(texts ...string) error {
	for _, s := range texts {
		if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
			return fmt.Errorf("%w: text is UTF-8 without NUL", Invalid)
		}
	}
	return nil
}
