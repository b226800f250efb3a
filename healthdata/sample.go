package healthdata

import (
	"fmt"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Sample is one measurement of a timeseries, as it is published. What may be null and
// what is required depends on the resource: see [Resource].
type Sample struct {
	// Timestamp is the instant of the measurement, in UTC; of an interval, its
	// start.
	Timestamp healthlab.Time `json:"timestamp" wire:"opt"`
	// Start and End bound an interval, half open. Both are nil for an instant.
	Start *healthlab.Time `json:"start,omitempty"`
	End   *healthlab.Time `json:"end,omitempty"`
	// TimezoneOffset is seconds east of UTC where it was measured. Null on the way in
	// means that the source does not know; it is never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled"`
	// Type is the sample's type, for resources that have any.
	Type *string `json:"type"`
	// Unit is the unit of the value. On output it is always the resource's.
	Unit string `json:"unit"`
	// Value is nil for blood pressure only.
	Value *Value `json:"value,omitempty"`
	// Systolic and Diastolic are in mmHg, for blood pressure only.
	Systolic  *float64 `json:"systolic,omitempty"`
	Diastolic *float64 `json:"diastolic,omitempty"`
	// SensorLocation is where on the body a temperature was taken.
	SensorLocation *string `json:"sensor_location,omitempty"`
	// Intensity is low, medium or high, for workout_duration.
	Intensity *string `json:"intensity,omitempty"`
	// DeliveryMode (basal, bolus), DeliveryForm (standard, extended) and
	// BolusPurpose (meal, correction, mixed, unknown) are for insulin_injection.
	DeliveryMode *string `json:"delivery_mode,omitempty"`
	DeliveryForm *string `json:"delivery_form,omitempty"`
	BolusPurpose *string `json:"bolus_purpose,omitempty"`
	// Tags says what a note is about: food, exercise, insulin_injection,
	// unspecified.
	Tags []string `json:"tags,omitempty" wire:"opt"`
}

// Value is the value of a sample: a number, or for notes a text.
type Value struct {
	Number float64
	Text   string
	// IsText says which of the two it is.
	IsText bool
}

// Number returns the value v.
func Number(v float64) *Value { return &Value{Number: v} }

// Text returns the value s.
func Text(s string) *Value { return &Value{Text: s, IsText: true} }

// MarshalJSON writes a number in its shortest form, or a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.IsText {
		return appendString(nil, v.Text), nil
	}
	if !check.Finite(v.Number) {
		return nil, fmt.Errorf("%w: a number is check.Finite", healthlab.Invalid)
	}
	return appendNumber(nil, v.Number), nil
}

// UnmarshalJSON reads a number or a string.
func (v *Value) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		s, err := unquote(b)
		if err != nil {
			return err
		}
		*v = Value{Text: s, IsText: true}
		return nil
	}
	// ParseFloat alone reads more than JSON has: NaN, 0x1p4, +1.
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !isNumber(b) {
		return fmt.Errorf("%w: a value is a number or a text", healthlab.Invalid)
	}
	*v = Value{Number: n}
	return nil
}

// isNumber reports whether b is a number as JSON writes them.
func isNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && b[n]-'0' <= 9 {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 1 && b[0] == '0' && b[1]-'0' <= 9 || !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}

// Batch is the payload of a timeseries event: samples of one resource and one source,
// ascending by timestamp.
type Batch struct {
	UserID healthlab.UserID `json:"user_id"`
	// SourceID is a number that names the provider inside the service. It has no
	// meaning for receivers.
	SourceID int      `json:"source_id"`
	Source   Source   `json:"source"`
	Data     []Sample `json:"data"`
}

// Group is the samples of one source in an answer, ascending by timestamp.
type Group struct {
	Source Source   `json:"source"`
	Data   []Sample `json:"data"`
}
