package series_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

const (
	micro  = int64(1)
	second = 1_000_000 * micro
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	// newYear is 2026-01-01T00:00:00Z.
	newYear = 1767225600 * second
)

// drawValue draws values as sources send them: integers, decimals, and numbers of any
// shape, negative zero included.
func drawValue(t *rapid.T, label string) float64 {
	switch rapid.IntRange(0, 9).Draw(t, label+" shape") {
	case 0:
		return rapid.Float64Range(-1e300, 1e300).Draw(t, label)
	case 1:
		return math.Copysign(0, -1)
	case 2, 3, 4:
		return float64(rapid.IntRange(-50_000, 50_000).Draw(t, label)) / 10
	default:
		return float64(rapid.IntRange(30, 250).Draw(t, label))
	}
}

func drawAttrs(t *rapid.T) series.Attrs {
	a := series.Attrs{Offset: rapid.SampledFrom([]int32{0, 0, 0, 3600, -18000, 20700}).Draw(t, "offset")}
	if rapid.IntRange(0, 4).Draw(t, "more attributes") == 0 {
		a.App = rapid.SampledFrom([]string{"", "one.app", "another.app"}).Draw(t, "app")
		a.Type = rapid.SampledFrom([]string{"", "lead_1", "stood"}).Draw(t, "type")
		a.Text = rapid.StringN(0, 5, 20).Draw(t, "text")
		a.Device = rapid.SampledFrom([]uuid.UUID{{}, {1}, {2}}).Draw(t, "device")
		a.Workout = rapid.SampledFrom([]uuid.UUID{{}, {3}}).Draw(t, "workout")
	}
	return a
}

// drawTime draws times that collide now and then, on several units.
func drawTime(t *rapid.T) int64 {
	switch rapid.IntRange(0, 20).Draw(t, "time unit") {
	case 0:
		return rapid.Int64Range(series.MinTime, series.MaxTime).Draw(t, "time")
	case 1, 2:
		return newYear + rapid.Int64Range(0, 2*day).Draw(t, "time")
	case 3, 4:
		return newYear + second*rapid.Int64Range(0, 100).Draw(t, "time")
	default:
		return newYear + minute*rapid.Int64Range(-10, 4000).Draw(t, "time")
	}
}

func drawSample(t *rapid.T) series.Sample {
	s := series.Sample{Time: drawTime(t), Value: drawValue(t, "value"), Attrs: drawAttrs(t)}
	switch rapid.IntRange(0, 5).Draw(t, "extra") {
	case 0:
		s.End = drawTime(t)
	case 1:
		s.End = min(s.Time+minute*rapid.Int64Range(-1, 3).Draw(t, "length"), series.MaxTime)
		s.End = max(s.End, series.MinTime)
	case 2:
		s.Value2 = drawValue(t, "second value")
	}
	return s
}

func drawSamples(most int) *rapid.Generator[[]series.Sample] {
	return rapid.SliceOfN(rapid.Custom(drawSample), 0, most)
}

func blockOf(samples ...series.Sample) *series.Block {
	var b series.Builder
	for _, s := range samples {
		b.Add(s)
	}
	return b.Block()
}

// samplesOf lists a block; equal samples give equal lists, whatever the columns.
func samplesOf(b *series.Block) []series.Sample {
	out := make([]series.Sample, 0, b.Len())
	for _, s := range b.All() {
		out = append(out, s)
	}
	return out
}

// bits makes numbers comparable to the bit: -0 is not 0 then.
type bits struct {
	series.Sample
	value, value2 uint64
}

func bitsOf(samples []series.Sample) []bits {
	out := make([]bits, 0, len(samples))
	for _, s := range samples {
		out = append(out, bits{s, math.Float64bits(s.Value), math.Float64bits(s.Value2)})
	}
	return out
}

func requireSame(t require.TestingT, want, got []series.Sample) {
	if len(want) == 0 && len(got) == 0 {
		return
	}
	require.Equal(t, bitsOf(want), bitsOf(got))
}

func chunkOf(t require.TestingT, b *series.Block) series.Chunk {
	c, err := series.NewChunk(b)
	require.NoError(t, err)
	return c
}

// heartRate is a made-up wearer: a sample every step while worn, taken off for an hour
// or two a day, a slow random walk with the day's rhythm.
func heartRate(start, step int64, n int) *series.Block {
	r := rand.New(rand.NewPCG(1, 2))
	b := &series.Block{}
	t, walk := start, 0.0
	for range n {
		walk = 0.95*walk + 3*r.NormFloat64()
		rhythm := 65 - 12*math.Cos(2*math.Pi*float64(t%day)/float64(day))
		b.Append(series.Sample{Time: t, Value: math.Round(rhythm + walk + 20*math.Abs(walk)/10), Attrs: series.Attrs{
			Offset: 3600, Device: uuid.UUID{7}, App: "made.up.app",
		}})
		t += step
		if r.IntN(int(day/step)) == 0 {
			t += hour + int64(r.IntN(60))*minute
		}
	}
	return b
}

func requireValid(t *testing.T, b *series.Block) {
	t.Helper()
	require.NoError(t, b.Validate())
}
