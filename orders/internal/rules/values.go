package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// NumberText is a text that may be a number in JSON.
type NumberText string

// UnmarshalJSON reads text, or a number as it is written.
func (n *NumberText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
		*n = NumberText(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(n))
}

// MatchesAny reports whether a list is empty or contains a value.
func MatchesAny[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// ContainsFold reports whether text contains part, both after [healthlab.FoldText].
func ContainsFold(text, part string) bool {
	return strings.Contains(healthlab.FoldText(text), healthlab.FoldText(part))
}

// NonNil returns s, or an empty list if s is nil.
func NonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clone(s)
}

// DeepCopy returns a deep copy of a value.
func DeepCopy[T any](v T) T {
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

// ClonePtr returns a pointer to a copy, or nil.
func ClonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// UnmarshalZip reads the JSON of an address, whose postal code may be named zip or zip_code.
func UnmarshalZip(b []byte, into any, zip *string) error {
	if err := json.Unmarshal(b, into); err != nil {
		return err
	}
	if *zip != "" || !bytes.Contains(b, []byte(`"zip`)) {
		return nil
	}
	var other struct {
		Zip     string `json:"zip"`
		ZipCode string `json:"zip_code"`
	}
	if err := json.Unmarshal(b, &other); err != nil {
		return err
	}
	*zip = cmp.Or(other.Zip, other.ZipCode)
	return nil
}

// Join joins the texts that are not nil with spaces.
func Join(parts ...*string) string {
	var out []string
	for _, p := range parts {
		if p != nil && *p != "" {
			out = append(out, *p)
		}
	}
	return strings.Join(out, " ")
}

// UTCDay returns the day of an instant in UTC.
func UTCDay(at time.Time) healthlab.Date { return healthlab.DateOf(at.UTC()) }

// TextOf returns the text that v points to; empty for nil.
func TextOf[T ~string](v *T) string {
	if v == nil {
		return ""
	}
	return string(*v)
}

// NonEmpty returns a pointer to a text; nil for an empty one.
func NonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
