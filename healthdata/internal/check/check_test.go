package check_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Callers of the API see these texts.
func TestNotFinite(t *testing.T) {
	var p healthlab.Problems
	check.NotFinite(&p, "", "value")
	check.NotFinite(&p, "bpm", "value")
	check.Numbers(&p, &struct {
		Value float64 `json:"value"`
	}{math.Inf(1)})
	require.EqualError(t, p.Err(), "invalid: value: a number is finite; value: a number is finite in bpm; value: a number is finite")
}
