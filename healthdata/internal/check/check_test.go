package check_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Callers of the API see these texts.
func TestNotFinite_errorNamesTheFieldAndUnit(t *testing.T) {
	var p healthlab.Problems
	check.NotFinite(&p, "", "value")
	check.NotFinite(&p, "bpm", "value")
	check.Numbers(&p, &struct {
		Value float64 `json:"value"`
	}{math.Inf(1)})
	require.EqualError(t, p.Err(), "invalid: value: must be finite; value: must be finite in bpm; value: must be finite")
}
