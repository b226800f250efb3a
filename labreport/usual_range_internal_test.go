package labreport

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// A range as laboratories print it is never doubted; one that is ten or a hundred times as large is always,
// and so is a tenth if both ends are known.
func TestUsualRange_detectsRangesOfAnotherMagnitude(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ranges := 0
	for key, list := range usualRanges() {
		for _, u := range list {
			ranges++
			require.True(t, u.any(), key)
			require.True(t, u.Low == nil || u.High == nil || *u.Low < *u.High, key)
			times := func(k float64) Bounds {
				var b Bounds
				if u.Low != nil {
					b.Low = ptr(*u.Low * k * (0.7 + random.Float64()))
				}
				if u.High != nil {
					b.High = ptr(*u.High * k * (0.7 + random.Float64()))
				}
				return b
			}
			positive := func(end *float64) bool { return end != nil && *end > 0 }
			for range 50 {
				size, places := sizeOf(times(1), u.Bounds)
				require.Equal(t, usualSize, size, key)
				require.Zero(t, places, key)
				if !positive(u.Low) && !positive(u.High) {
					continue
				}
				for k, want := range map[float64]int{10: 1, 100: 2, 0.1: -1, 0.01: -2} {
					size, places = sizeOf(times(k), u.Bounds)
					if want < 0 && !(positive(u.Low) && positive(u.High)) {
						require.Equal(t, usualSize, size, key)
						continue
					}
					require.Equal(t, otherPlaces, size, key)
					require.Equal(t, want, places, key)
				}
			}
		}
	}
	require.Greater(t, ranges, 150)
	size, _ := sizeOf(Bounds{Low: ptr(3000.0), High: ptr(5000.0)}, Bounds{Low: ptr(3.5), High: ptr(5.0)})
	require.Equal(t, farFromUsual, size)
}

// Most codes of numbers that laboratories report most have a published range.
func TestUsualRange_coversMostFrequentCodes(t *testing.T) {
	frequent, covered := 0, 0
	for _, term := range loinc.Embedded().All() {
		if term.Scale != "Qn" || term.Rank == 0 || term.Rank > 300 {
			continue
		}
		frequent++
		if usualRanges()[usualKey(&term)] != nil {
			covered++
		}
	}
	t.Logf("%d of %d frequent codes of numbers have a published range", covered, frequent)
	require.Greater(t, covered*100, frequent*60)
}

func TestMovePoints_movesDecimalPointsOfNumbersAndRanges(t *testing.T) {
	for _, c := range []struct {
		in     string
		places int
		want   string
	}{
		{"46", 1, "4.6"}, {"6 - 13", 1, "0.6 - 1.3"}, {"<5", 1, "<0.5"}, {"214", 2, "2.14"}, {"5", 2, "0.05"}, {"14.1", -1, "141"}, {"13.5 - 14.6", -1, "135 - 146"}, {"0.05", -1, "0.5"},
		{"14", -1, "140"}, {"0.5", -2, "50"}, {"41.0", 1, "4.10"},
	} {
		require.Equal(t, c.want, movePoints(c.in, c.places), "%s by %d", c.in, c.places)
	}
}
