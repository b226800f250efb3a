package healthdata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A unit that is not converted is answered with the unit of the resource, and with an example that is converted
// where there is one.
func TestUnitError_namesTheUnitAndAConvertibleExample(t *testing.T) {
	examples := 0
	for _, r := range Timeseries() {
		types := append([]string{""}, r.Types...)
		for _, kind := range types {
			words := r.unitWords(kind)
			require.Contains(t, words, "must be "+r.Unit, r.Slug)
			_, example, ok := strings.Cut(words, "such as ")
			if !ok {
				continue
			}
			examples++
			require.NotEqual(t, r.Unit, example)
			_, ok = r.Convert(1, example, kind)
			require.True(t, ok, "%s: %s", r.Slug, example)
		}
	}
	require.Greater(t, examples, 30)
	require.Equal(t, "must be mmol/L or a unit that is converted to it, such as mg/dL", ResourceBySlug("glucose").unitWords(""))
	require.Equal(t, "must be kg or a unit that is converted to it, such as lb", ResourceBySlug("weight").unitWords(""))
}
