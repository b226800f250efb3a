package orders

import (
	"encoding/json"
	"slices"
	"strings"
)

// numeral is a text that others write as a number.
type numeral string

// UnmarshalJSON reads text, or a number as it is written.
func (n *numeral) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
		*n = numeral(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(n))
}

func anyOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// holds reports whether text contains part, ignoring case as Unicode's simple
// folding to lower case does.
func holds(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// What a person's data prints and logs as.
const redacted = "[redacted]"

// list is s, or a list without items if it is nil.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clone(s)
}

// copied returns a copy of a published value that shares nothing with it.
func copied[T any](v T) T {
	b, err := json.Marshal(v)
	var out T
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic("orders: a published value does not encode")
	}
	return out
}

// dup is a pointer to a copy, or nil.
func dup[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
