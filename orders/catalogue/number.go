package catalogue

import (
	"encoding/json"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
)

// Number is an exact decimal number: a lab's result, a limit of a range, a price. In JSON it is a number with
// the digits that the lab printed, trailing zeros included; it is never converted to a binary float.
type Number struct{ decimal.Decimal }

// ParseNumber reads a decimal number as a lab prints it. Anything else is Invalid;
// the error does not repeat the text.
func ParseNumber(s string) (Number, error) {
	d, err := decimal.NewFromString(s)
	if err != nil || d.Exponent() < -maxNumberDigits || d.NumDigits()+max(int(d.Exponent()), 0) > maxNumberDigits {
		return Number{}, fmt.Errorf("%w: must be a decimal number such as 12.5", healthlab.Invalid)
	}
	return Number{d}, nil
}

// maxNumberDigits is the highest number of digits of a written number, before and after the decimal point.
const maxNumberDigits = 100

// String returns the number with all the digits it was read with.
func (n Number) String() string {
	if n.Exponent() < 0 {
		return n.StringFixed(-n.Exponent())
	}
	return n.Decimal.String()
}

// MarshalJSON returns the digits, without quotes.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalJSON reads a JSON number, or a string with a number.
func (n *Number) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	v, err := ParseNumber(s)
	if err != nil {
		return err
	}
	*n = v
	return nil
}
