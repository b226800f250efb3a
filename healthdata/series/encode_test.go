package series_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func TestEncode_thenDecodeGivesTheSameSamples(t *testing.T) {
	var reused series.Block
	rapid.Check(t, func(t *rapid.T) {
		b := blockOf(drawSamples(60).Draw(t, "samples")...)
		require.NoError(t, b.Validate())
		if b.Len() == 0 {
			_, err := series.Encode(nil, b)
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		c := chunkOf(t, b)
		require.NoError(t, c.Decode(&reused))
		requireSame(t, samplesOf(b), samplesOf(&reused))
		require.NoError(t, reused.Validate())

		requireHeader(t, b, c)

		h, err := series.ParseHeader(c.Header.Append(nil))
		require.NoError(t, err)
		require.Equal(t, c.Header, h)
	})
}

// requireHeader checks what a header says against the samples, but for the sum.
func requireHeader(t require.TestingT, b *series.Block, c series.Chunk) {
	samples := samplesOf(b)
	want := series.Header{
		Start: samples[0].Time, Stop: samples[len(samples)-1].Time, N: len(samples),
		Min: samples[0].Value, Max: samples[0].Value, First: samples[0].Value, Last: samples[len(samples)-1].Value,
		OneOffset: true, Offset: samples[0].Offset, Format: series.Format, Size: len(c.Data), Sum: c.Sum,
	}
	for i, s := range samples {
		want.Crossed = want.Crossed || slices.ContainsFunc(samples[:i], func(o series.Sample) bool { return o.End != series.NoEnd && o.End > s.Time })
		want.MaxRank = max(want.MaxRank, s.Rank)
		want.Min, want.Max = min(want.Min, s.Value), max(want.Max, s.Value)
		if s.End != series.NoEnd && (want.MaxEnd == series.NoEnd || s.End > want.MaxEnd) {
			want.MaxEnd = s.End
		}
		want.OneOffset = want.OneOffset && s.Offset == samples[0].Offset
	}
	if !want.OneOffset {
		want.Offset = 0
	}
	require.Equal(t, want, c.Header)
}

func TestEncode_keepsExtremeTimesAndValues(t *testing.T) {
	at := func(times ...int64) (out []series.Sample) {
		for i, x := range times {
			out = append(out, series.Sample{Time: x, Value: float64(i)})
		}
		return out
	}
	values := func(vs ...float64) (out []series.Sample) {
		for i, v := range vs {
			out = append(out, series.Sample{Time: newYear + int64(i)*minute, Value: v})
		}
		return out
	}
	for name, samples := range map[string][]series.Sample{
		"one sample":                 at(newYear),
		"first and last moment":      at(series.MinTime, series.MaxTime),
		"all units":                  at(newYear, newYear+minute, newYear+minute+second, newYear+minute+second+1000, newYear+minute+second+1001),
		"before 1970":                at(-3*minute, -2*minute, -1, 0, 1),
		"gaps":                       at(newYear, newYear+minute, newYear+2*minute, newYear+day, newYear+day+minute, newYear+3*day),
		"negative zero":              values(0, math.Copysign(0, -1), 0),
		"decimals":                   values(0.1, 0.2, 0.3, 36.65, -7.0001),
		"tenths beyond a table":      values(0.1, 0.2),
		"third after many integers":  values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 1.0/3),
		"tenth after many integers":  values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0.1),
		"smallest and largest":       values(math.SmallestNonzeroFloat64, -math.MaxFloat64, math.MaxFloat64),
		"integers of fifty bits":     values(-1<<50, 1<<50, 3),
		"integers too long to trust": values(1<<53, 1<<53+2),
		"an end at the start of time": {
			{Time: newYear, End: series.MinTime}, {Time: newYear + 1}, {Time: newYear + 2, End: series.MaxTime},
		},
		"ends for all": {{Time: newYear, End: newYear + minute}, {Time: newYear + minute, End: newYear + 2*minute}},
		"an end before its start": {
			{Time: newYear, End: newYear - 90*second}, {Time: newYear + minute, End: newYear + minute + 30*second},
		},
		"pairs":         {{Time: newYear, Value: 120, Value2: 80}, {Time: newYear + 1, Value: 119.5, Value2: 79.5}},
		"pair and none": {{Time: newYear, Value: 120}, {Time: newYear + 1, Value: 119.5, Value2: 1.0 / 3}},
		"every attribute": {{Time: newYear, Attrs: series.Attrs{
			Offset: -86399, Type: "a", Unit: "b", App: "c", Device: [16]byte{1}, Workout: [16]byte{2}, Sport: "d",
			Location: "e", Intensity: "f", DeliveryMode: "g", DeliveryForm: "h", BolusPurpose: "i", Text: "j\n\x00", Tags: "k",
		}}, {Time: newYear + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := blockOf(samples...)
			requireValid(t, b)
			var got series.Block
			c := chunkOf(t, b)
			require.NoError(t, c.Decode(&got))
			requireSame(t, samples, samplesOf(&got))
		})
	}
}
