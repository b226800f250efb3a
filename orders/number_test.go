package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "1.20", "-0.050", "1e5", "1E-7", "00012", ".5", "5.", "", "NaN", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := catalogue.ParseNumber(s)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		again, err := catalogue.ParseNumber(n.String())
		require.NoError(t, err)
		require.True(t, n.Equal(again.Decimal))
		require.Equal(t, n.String(), again.String())
		b, err := n.MarshalJSON()
		require.NoError(t, err)
		var back catalogue.Number
		require.NoError(t, back.UnmarshalJSON(b))
		require.True(t, n.Equal(back.Decimal))
	})
}
