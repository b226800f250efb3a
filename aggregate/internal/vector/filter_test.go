package vector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Filters have three truth values: a comparison with null is neither true nor false.
func TestFilter_comparisonWithNullIsUnknown(t *testing.T) {
	T, U, F := IsTrue, IsUnknown, IsFalse
	rows := []struct{ a, b, and, or, not Tri }{
		{T, T, T, T, F}, {T, U, U, T, F}, {T, F, F, T, F},
		{U, T, U, T, U}, {U, U, U, U, U}, {U, F, F, U, U},
		{F, T, F, T, T}, {F, U, F, U, T}, {F, F, F, F, T},
	}
	b := &Batch{N: 1}
	out := make([]Tri, 1)
	for _, r := range rows {
		And{constant(r.a), constant(r.b)}.Eval(b, out)
		require.Equal(t, r.and, out[0])
		Or{constant(r.a), constant(r.b)}.Eval(b, out)
		require.Equal(t, r.or, out[0])
		Not{constant(r.a)}.Eval(b, out)
		require.Equal(t, r.not, out[0])
	}
}
