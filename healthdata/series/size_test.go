package series_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// stepCounts is a made-up day's walking: intervals of a minute, at odd moments of it,
// some counts in a row, from two devices.
func stepCounts(n int) *series.Block {
	r := rand.New(rand.NewPCG(3, 4))
	b := &series.Block{}
	t := newYear
	for range n {
		s := series.Sample{Time: t, End: t + minute, Value: float64(r.IntN(130)), Attrs: series.Attrs{Offset: -18000, Device: uuid.UUID{1}}}
		if t%day < 6*hour {
			s.Device = uuid.UUID{2}
		}
		b.Append(s)
		t += minute
		if r.IntN(20) == 0 {
			t += int64(r.IntN(90)) * minute
		}
	}
	return b
}

// glucose is a made-up sensor: every five minutes and a second or two, in tenths.
func glucose(n int) *series.Block {
	r := rand.New(rand.NewPCG(5, 6))
	b := &series.Block{}
	t, v := newYear, 6.0
	for range n {
		v = min(max(v+r.NormFloat64()/4, 3), 15)
		b.Append(series.Sample{Time: t, Value: math.Round(v*10) / 10})
		t += 5*minute + int64(r.IntN(3))*second
	}
	return b
}

// voltage is thirty made-up seconds of an electrocardiogram, 512 a second, in
// microvolts written as millivolts.
func voltage() *series.Block {
	r := rand.New(rand.NewPCG(7, 8))
	b := &series.Block{}
	for i := range int64(30 * 512) {
		beat := math.Exp(-math.Pow(float64(i%440)-200, 2) / 50)
		v := math.Round(1000*(beat+r.NormFloat64()/50)) / 1000
		b.Append(series.Sample{Time: newYear + i*second/512, Value: v + 0, Attrs: series.Attrs{Type: "lead_1"}})
	}
	return b
}

func TestChunk_staysBelowItsBytesPerSample(t *testing.T) {
	for _, c := range []struct {
		name  string
		block *series.Block
		most  float64 // bytes per sample
	}{
		{"heart rate by the minute, four days", heartRate(newYear, minute, 4*1440), 1.1},
		{"heart rate by the second", heartRate(newYear, second, 5400), 1.1},
		{"steps with intervals from two devices", stepCounts(4000), 1.9},
		{"glucose with a wandering clock", glucose(4000), 2.1},
		{"electrocardiogram", voltage(), 3.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.block
			chunk := chunkOf(t, b)
			per := float64(len(chunk.Data)) / float64(b.Len())
			t.Logf("%.2f bytes a sample, raw 16", per)
			require.LessOrEqual(t, per, c.most)
			require.LessOrEqual(t, 5*per, 16.0)
			var got series.Block
			require.NoError(t, chunk.Decode(&got))
			requireSame(t, samplesOf(b), samplesOf(&got))
		})
	}
	minutes := chunkOf(t, heartRate(newYear, minute, 4*1440))
	require.LessOrEqual(t, 6*len(minutes.Data), 16*minutes.N, "heart rate by the minute")
}

// Reading and adding up chunk after chunk makes no garbage.
func TestChunk_decodingAndReducingAllocatesNothing(t *testing.T) {
	var s chunkStore
	s.apply(t, heartRate(newYear, minute, 30_000), series.PerMinute)
	steps := chunkOf(t, stepCounts(3000))

	var b series.Block
	require.NoError(t, s.body[0].Decode(&b))
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for i := range s.body {
			if s.body[i].Decode(&b) != nil {
				panic("decode")
			}
		}
	}), "decode")

	var intervals series.Block
	require.NoError(t, steps.Decode(&intervals))
	require.Zero(t, testing.AllocsPerRun(20, func() {
		if steps.Decode(&intervals) != nil {
			panic("decode")
		}
	}), "decode with ends and several attributes")

	edges := []int64{newYear}
	for range 24 * 30 {
		edges = append(edges, edges[len(edges)-1]+hour)
	}
	red, err := series.NewReducer(series.Reduction{Edges: edges})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for i := range s.body {
			if red.Chunk(&s.body[i]) != nil {
				panic("reduce")
			}
		}
	}), "reduce")

	var sc series.Scanner
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
		for _, err := range sc.Blocks(s.body, nil, series.Range{From: newYear + hour, To: newYear + 20*day}) {
			if err != nil {
				panic("scan")
			}
		}
	}), 12.0, "a scan costs a few closures, nothing per chunk")
}
