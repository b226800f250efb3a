package wire

import "encoding/json"

// Opt is a field of a PATCH body. It distinguishes an absent key, a null and a value. The zero value is absent.
type Opt[T any] struct {
	// Value is the sent value; zero if absent or null.
	Value T
	// Set reports that the key was present, null or not.
	Set bool
	// Null reports that the key was present and null.
	Null bool
}

// Ptr returns a pointer to the value, or nil for absent and null. Use Null to tell these two apart.
func (o Opt[T]) Ptr() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// UnmarshalJSON reads the value with encoding/json, for callers that do not use [Decode].
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = Opt[T]{Set: true, Null: true}
		return nil
	}
	*o = Opt[T]{Set: true}
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes the value or null. With the tag omitzero an absent value is omitted.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

func (o Opt[T]) isOpt() {}

// Indexes of the fields of Opt, for package reflect.
const (
	optValue = iota
	optSet
	optNull
)
