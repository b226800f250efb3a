package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func suite(sum func(a, b int) int) func(*testing.T) {
	return func(t *testing.T) {
		t.Run("Zero", func(t *testing.T) { require.Equal(t, 3, sum(3, 0)) })
		t.Run("Order", func(t *testing.T) { require.Equal(t, sum(1, 2), sum(2, 1)) })
	}
}

func TestRunBroken_passesIfTheNamedSubtestFails(t *testing.T) {
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "adds one", Suite: suite(func(a, b int) int { return a + b + 1 }), Subtest: "Zero"},
		{Name: "subtracts", Suite: suite(func(a, b int) int { return a - b }), Subtest: "Order"},
	})
}
