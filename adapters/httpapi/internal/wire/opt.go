package wire

import "encoding/json"

// Opt is a field of a PATCH body. It tells a key that is absent, one that is null,
// and one with a value apart. The zero value is absent.
type Opt[T any] struct {
	// Value is what was sent; zero when absent or null.
	Value T
	// Set says that the key was there, null or not.
	Set bool
	// Null says that the key was there and null.
	Null bool
}

// Ptr returns nil for absent and null, else the value. Look at Null first.
func (o Opt[T]) Ptr() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// UnmarshalJSON reads the value as encoding/json does, for those who decode without
// this package.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = Opt[T]{Set: true, Null: true}
		return nil
	}
	*o = Opt[T]{Set: true}
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes the value or null. With omitzero an absent one is left out.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

func (o Opt[T]) isOpt() {}

// The order of the fields of Opt, for the decoder.
const (
	optValue = iota
	optSet
	optNull
)
