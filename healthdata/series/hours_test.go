package series_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// The hours of a chunk are those of its samples, one by one, and each with its rank and its last sample.
func TestHours_ofAChunkAreThoseOfItsSamples(t *testing.T) {
	type seen struct {
		rank uint32
		last int64
	}
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(60).Draw(t, "samples")
		for i := range samples {
			samples[i].Rank = rapid.SampledFrom([]uint32{0, 0, 0, 2}).Draw(t, "rank")
		}
		if rapid.Bool().Draw(t, "even") {
			step := rapid.SampledFrom([]int64{second, minute, 40 * minute, 3 * hour}).Draw(t, "step")
			for i := range samples {
				samples[i].Time, samples[i].End, samples[i].Attrs = newYear+int64(i)*step, 0, samples[0].Attrs
			}
		}
		b := blockOf(samples...)
		if b.Len() == 0 {
			return
		}
		want := map[int64]map[uint32]seen{}
		for _, s := range samplesOf(b) {
			h := time.UnixMicro(s.Time+int64(s.Offset)*second).UTC().Truncate(time.Hour).UnixMicro() / hour
			if want[h] == nil {
				want[h] = map[uint32]seen{}
			}
			want[h][s.Rank] = seen{s.Rank, s.Time}
		}
		got := map[int64]map[uint32]seen{}
		visit := func(r series.HourRun) {
			if got[r.Hour] == nil {
				got[r.Hour] = map[uint32]seen{}
			}
			if was, ok := got[r.Hour][r.Rank]; !ok || r.Last > was.last {
				got[r.Hour][r.Rank] = seen{r.Rank, r.Last}
			}
		}
		var s series.HourScanner
		c := chunkOf(t, b)
		require.NoError(t, s.Chunk(&c, visit))
		require.Equal(t, want, got)
		clear(got)
		s.Block(b, visit)
		require.Equal(t, want, got)

		c.Stop++
		require.ErrorIs(t, s.Chunk(&c, visit), series.ErrCorrupt)
	})
}
