package healthdata

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/healthlab-dev/healthlab"
)

// appendNumber writes a finite number in the shortest form that reads back as the
// same float64; minus zero as 0.
func appendNumber(b []byte, v float64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	if a := math.Abs(v); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'e', -1, 64)
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	q, _ := json.Marshal(s) //nolint:errchkjson // a string always marshals
	return append(b, q...)
}

// unquote reads a JSON string.
func unquote(b []byte) (string, error) {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%w: not a JSON string", healthlab.Invalid)
	}
	return s, nil
}
