package series_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func TestBuilder_keepsTheLatestSampleOfEachTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b series.Builder
		m := model{}
		for _, s := range drawSamples(80).Draw(t, "samples") {
			b.Add(s)
			m[s.Time] = s
		}
		block := b.Block()
		require.NoError(t, block.Validate())
		requireSame(t, m.samples(always), samplesOf(block))
		for i := range block.Len() {
			requireSame(t, samplesOf(block)[i:i+1], []series.Sample{block.At(i)})
		}
		from, to := drawTime(t), drawTime(t)
		i := block.Search(from)
		part := block.Part(i, max(i, block.Search(to)))
		require.NoError(t, part.Validate())
		requireSame(t, m.samples(series.Range{From: from, To: to}), samplesOf(&part))
		var odd series.Block
		block.Keep(&odd, func(i int) bool { return i%3 != 0 })
		require.NoError(t, odd.Validate())
		var want []series.Sample
		for i, s := range block.All() {
			if i%3 != 0 {
				want = append(want, s)
			}
		}
		requireSame(t, want, samplesOf(&odd))
	})
}

func TestValidate_refusesEachBrokenRule(t *testing.T) {
	good := func() *series.Block {
		return blockOf(series.Sample{Time: 1, Value: 1, Value2: 2, End: 5}, series.Sample{Time: 2, Value: 3})
	}
	require.NoError(t, good().Validate())
	require.NoError(t, new(series.Block).Validate())
	for rule, spoil := range map[string]func(*series.Block){
		"length":        func(b *series.Block) { b.Value = b.Value[:1] },
		"End length":    func(b *series.Block) { b.End = b.End[:1] },
		"Value2 length": func(b *series.Block) { b.Value2 = b.Value2[:1] },
		"order":         func(b *series.Block) { b.Time[1] = b.Time[0] },
		"first year":    func(b *series.Block) { b.Time[0] = series.MinTime - 1 },
		"last year":     func(b *series.Block) { b.Time[1] = series.MaxTime + 1 },
		"end":           func(b *series.Block) { b.End[0] = series.MaxTime + 1 },
		"NaN":           func(b *series.Block) { b.Value[1] = math.NaN() },
		"infinite":      func(b *series.Block) { b.Value2[0] = math.Inf(-1) },
		"no runs":       func(b *series.Block) { b.Runs = nil },
		"long run":      func(b *series.Block) { b.Runs[0].N = 3 },
		"empty run":     func(b *series.Block) { b.Runs = append(b.Runs, series.Run{}) },
		"offset":        func(b *series.Block) { b.Runs[0].Offset = 86400 },
	} {
		t.Run(rule, func(t *testing.T) {
			b := good()
			spoil(b)
			require.ErrorIs(t, b.Validate(), healthlab.Invalid)
			_, err := series.NewChunk(b)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func TestEncode_refusesMoreThanMaxLen(t *testing.T) {
	_, err := series.NewChunk(heartRate(newYear, second, series.MaxLen+1))
	require.ErrorIs(t, err, healthlab.Invalid)
}
