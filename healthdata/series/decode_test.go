package series_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// What was written once must be readable for ever, and the same samples must go on
// making the same bytes: a no-op merge is recognised by them.
func TestFormat_storedBytesStayReadableAndReproducible(t *testing.T) {
	samples := []series.Sample{
		{Time: newYear, End: newYear + 30*second, Value: 36.6, Attrs: series.Attrs{Offset: 3600, Location: "wrist"}},
		{Time: newYear + minute, Value: 36.7, Attrs: series.Attrs{Offset: 3600, Location: "wrist"}},
		{Time: newYear + 3*minute, Value: 37.1, Attrs: series.Attrs{Offset: 7200, Location: "wrist"}},
		{Time: newYear + 4*minute, Value: 36.9, Attrs: series.Attrs{Offset: 3600, Location: "wrist"}},
	}
	const stored = "0131" + // format, minutes in one byte
		"11ff" + // tenths in one byte, no second values
		"2101" + // ends in seconds in one byte, some have none
		"0000" + "04000000" + // no gaps, four samples
		"c06dc10100000000" + "0100000000000000" + // first minute, smallest delta
		"6e01000000000000" + "1e00000000000000" + // 366 tenths, 30 seconds
		"000100" + "00010503" + "01000000" + // deltas, values, ends
		"02" + "8100" + "a038" + "057772697374" + "8100" + "c070" + "057772697374" + // two attributes
		"03" + "0002" + "0101" + "0001" // three runs
	c := chunkOf(t, blockOf(samples...))
	require.Equal(t, stored, hex.EncodeToString(c.Data))
	data, err := hex.DecodeString(stored)
	require.NoError(t, err)
	var b series.Block
	require.NoError(t, series.Decode(&b, data))
	requireSame(t, samples, samplesOf(&b))
}

// Decode reports every truncation. A damaged byte causes an error or other samples, never a
// panic.
func TestDecode_damagedBytesNeverPanic(t *testing.T) {
	for _, b := range []*series.Block{stepCounts(30), rawNumbers(20), heartRate(newYear, minute, 3000)} {
		data := chunkOf(t, b).Data
		var got series.Block
		for n := range data {
			require.ErrorIs(t, series.Decode(&got, data[:n]), series.ErrCorrupt)
			require.Zero(t, got.Len())
		}
		require.ErrorIs(t, series.Decode(&got, append(data[:len(data):len(data)], 0)), series.ErrCorrupt)
		for i := range data {
			for bit := range 8 {
				bad := append([]byte(nil), data...)
				bad[i] ^= 1 << bit
				if err := series.Decode(&got, bad); err == nil {
					require.NoError(t, got.Validate())
				}
			}
		}
	}
}

// A short input cannot make Decode allocate much memory.
func TestDecode_shortInputAllocatesLittle(t *testing.T) {
	few := chunkOf(t, blockOf(series.Sample{Time: newYear, Value: 1}, series.Sample{Time: newYear + minute, Value: 1})).Data
	claim := func(n uint32) []byte {
		bad := append([]byte(nil), few...)
		binary.LittleEndian.PutUint32(bad[8:], n)
		return bad
	}
	var got series.Block
	require.NoError(t, series.Decode(&got, claim(series.MaxLen)), "evenly ticking samples of one value need no bytes")
	require.Equal(t, series.MaxLen, got.Len())
	for _, n := range []uint32{0, series.MaxLen + 1, 1 << 31, 1<<32 - 1} {
		require.ErrorIs(t, series.Decode(&got, claim(n)), series.ErrCorrupt)
	}
}

func TestChunkDecode_headerOfAnotherChunkIsCorrupt(t *testing.T) {
	c := chunkOf(t, heartRate(newYear, minute, 10))
	var got series.Block
	for _, spoil := range []func(*series.Chunk){
		func(c *series.Chunk) { c.N++ },
		func(c *series.Chunk) { c.Start-- },
		func(c *series.Chunk) { c.Stop++ },
		func(c *series.Chunk) { c.Data = nil },
	} {
		bad := c
		spoil(&bad)
		require.ErrorIs(t, bad.Decode(&got), series.ErrCorrupt)
		require.Zero(t, got.Len())
	}
}
