package series_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func seeds(f *testing.F) {
	pairs := blockOf(
		series.Sample{Time: newYear, Value: 120, Value2: 80, End: newYear + minute, Attrs: series.Attrs{Offset: 3600, Type: "x"}},
		series.Sample{Time: newYear + 1, Value: 1.0 / 3, Value2: 79.5},
	)
	for _, b := range []*series.Block{heartRate(newYear, minute, 300), heartRate(newYear, second+1, 20), pairs} {
		f.Add(chunkOf(f, b).Data)
	}
	f.Add([]byte{})
}

// Whatever the bytes, decoding ends without a panic, with little memory, and with a
// block that is valid and survives the round trip. Adding it up agrees with itself.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var b, again series.Block
		if err := series.Decode(&b, data); err != nil {
			require.ErrorIs(t, err, series.ErrCorrupt)
			require.Zero(t, b.Len())
			// The reducer reads other parts of the same bytes; it must not panic either.
			c := series.Chunk{Header: series.Header{Start: newYear, Stop: newYear + day, N: declared(data)}, Data: data}
			red, err := series.NewReducer(series.Reduction{Edges: []int64{newYear, newYear + minute, newYear + hour}})
			require.NoError(t, err)
			_ = red.Chunk(&c)
			return
		}
		require.NoError(t, b.Validate())
		c := chunkOf(t, &b)
		require.NoError(t, c.Decode(&again))
		requireSame(t, samplesOf(&b), samplesOf(&again))

		mid := b.Time[b.Len()/2]
		r := series.Reduction{Edges: []int64{series.MinTime, mid, series.MaxTime}}
		red, err := series.NewReducer(r)
		require.NoError(t, err)
		require.NoError(t, red.Chunk(&c))
		requireAccs(t, slowly(samplesOf(&b), r), red.Buckets())
	})
}

func declared(data []byte) int {
	if len(data) < 12 {
		return 1
	}
	return int(data[8]) | int(data[9])<<8 | int(data[10])<<16
}

// Merging what two chunks hold is what a map does.
func FuzzMerge(f *testing.F) {
	a, b := chunkOf(f, heartRate(newYear, minute, 50)).Data, chunkOf(f, heartRate(newYear+10*minute, minute, 50)).Data
	f.Add(a, b)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var old, in, merged series.Block
		if series.Decode(&old, a) != nil || series.Decode(&in, b) != nil {
			return
		}
		m := model{}
		m.merge(&old)
		want := m.merge(&in)
		requireOutcome(t, want, series.Merge(&merged, &old, &in))
		requireSame(t, m.samples(always), samplesOf(&merged))
	})
}

func FuzzParseHeader(f *testing.F) {
	c := chunkOf(f, heartRate(newYear, minute, 50))
	f.Add(c.Header.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := series.ParseHeader(data)
		if err != nil {
			require.ErrorIs(t, err, series.ErrCorrupt)
			return
		}
		again, err := series.ParseHeader(h.Append(nil))
		require.NoError(t, err)
		require.Equal(t, h.Append(nil), again.Append(nil))
	})
}
