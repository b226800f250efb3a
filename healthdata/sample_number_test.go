package healthdata_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// A value reads the numbers that JSON has, and no others.
func TestValue_readsExactlyTheNumbersOfJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0+]?[0-9_x]{0,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?|NaN|Inf|1 | 1`).Draw(t, "text")
		var n float64
		want := json.Unmarshal([]byte(text), &n) == nil && text == strings.TrimSpace(text)
		var v healthdata.Value
		got := v.UnmarshalJSON([]byte(text)) == nil
		require.Equal(t, want, got)
		if got {
			require.InDelta(t, n, v.Number, 0)
		}
	})
}
