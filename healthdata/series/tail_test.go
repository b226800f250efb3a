package series_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A tail holds the samples of its pieces in order of arrival; for equal times the later piece
// wins.
func TestTail_holdsItsPiecesAndTheLaterPieceWins(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var tail []byte
		var pending []series.Segment
		for range rapid.IntRange(1, 8).Draw(r, "pieces") {
			var build series.Builder
			for range rapid.IntRange(1, 5).Draw(r, "samples") {
				build.Add(drawSample(r))
			}
			b := build.Block()
			piece, err := series.NewPiece(b, nil)
			require.NoError(r, err)
			tail = append(piece, tail...)
			c, err := series.NewChunk(b)
			require.NoError(r, err)
			pending = append(pending, c)
		}
		got, err := series.ReadTail(tail, nil)
		require.NoError(r, err)
		require.Equal(r, scanned(r, pending), scanned(r, []series.Segment{got}))
	})
}

func scanned(t require.TestingT, pending []series.Segment) (out []series.Sample) {
	var scan series.Scanner
	for b, err := range scan.Blocks(nil, pending, series.Range{From: series.MinTime, To: series.MaxTime}) {
		require.NoError(t, err)
		for _, s := range b.All() {
			out = append(out, s)
		}
	}
	return out
}

// Pieces that older versions wrote are read together with those of this version.
func TestTail_piecesAreShortAndReadWithOlderFormats(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var build series.Builder
		for range rapid.IntRange(1, 5).Draw(r, "samples") {
			build.Add(drawSample(r))
		}
		plain, err := series.Encode(nil, build.Block())
		require.NoError(r, err)
		piece, err := series.NewPiece(build.Block(), nil)
		require.NoError(r, err)
		require.LessOrEqual(r, len(piece), 2+len(plain))
		old := append(binary.LittleEndian.AppendUint16(nil, uint16(len(plain))), plain...)
		for _, tail := range [][]byte{old, piece, append(old, piece...)} {
			got, err := series.ReadTail(tail, nil)
			require.NoError(r, err)
			data, err := series.Encode(nil, decoded(r, got))
			require.NoError(r, err)
			require.Equal(r, plain, data)
		}
	})
	b := new(series.Block)
	b.Append(series.Sample{Time: newYear, Value: 61, Attrs: series.Attrs{Offset: 3600}})
	piece, err := series.NewPiece(b, nil)
	require.NoError(t, err)
	require.Len(t, piece, 22)
}

func decoded(t require.TestingT, c series.Chunk) *series.Block {
	b := new(series.Block)
	require.NoError(t, c.Decode(b))
	return b
}

func TestTail_damagedOrOversizedPieceIsRefused(t *testing.T) {
	b := new(series.Block)
	b.Append(series.Sample{Time: newYear, Value: 1})
	piece, err := series.NewPiece(b, nil)
	require.NoError(t, err)
	for n := range piece {
		_, err := series.ReadTail(piece[:n], nil)
		require.ErrorIs(t, err, series.ErrCorrupt, n)
	}
	head := func(change func(packed []byte)) []byte {
		bad := slices.Clone(piece)
		change(bad[2:])
		return bad
	}
	for name, tail := range map[string][]byte{
		"no such format":            head(func(packed []byte) { packed[0] = 3 }),
		"a bit behind the head":     head(func(packed []byte) { packed[5] |= 1 << 3 }),
		"a zero that is not one":    head(func(packed []byte) { packed[6] = 0 }),
		"bits and nothing behind":   {6, 0, 2, 255, 255, 255, 255, 7},
		"no bits":                   {1, 0, 2},
		"nothing":                   {0, 0},
		"a head and nothing behind": {6, 0, 2, 0, 0, 0, 0, 0},
	} {
		_, err := series.ReadTail(tail, nil)
		require.ErrorIs(t, err, series.ErrCorrupt, name)
	}
	_, err = series.NewPiece(&series.Block{}, nil)
	require.ErrorIs(t, err, healthlab.Invalid)

	long := new(series.Block)
	for i := range 9000 {
		long.Append(series.Sample{Time: newYear + int64(i*i), Value: 1 / float64(i+3)})
	}
	_, err = series.NewPiece(long, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Pieces that are encrypted and pieces in clear are read from one tail.
func TestTail_readsEncryptedAndPlainPiecesTogether(t *testing.T) {
	flip := func(data []byte) ([]byte, error) {
		box := []byte{0x80}
		for _, v := range data {
			box = append(box, ^v)
		}
		return box, nil
	}
	open := func(data []byte) ([]byte, error) {
		if data[0] != 0x80 {
			return data, nil
		}
		plain, _ := flip(data[1:])
		return plain[1:], nil
	}
	one, two := new(series.Block), new(series.Block)
	one.Append(series.Sample{Time: newYear, Value: 61, Attrs: series.Attrs{Text: "a note"}})
	two.Append(series.Sample{Time: newYear + minute, Value: 62})
	sealed, err := series.NewPiece(one, flip)
	require.NoError(t, err)
	plain, err := series.NewPiece(two, nil)
	require.NoError(t, err)
	tail := slices.Concat(plain, sealed)
	require.NotContains(t, string(tail), "a note")
	got, err := series.ReadTail(tail, open)
	require.NoError(t, err)
	require.Equal(t, []float64{61, 62}, decoded(t, got).Value)
	_, err = series.ReadTail(tail, nil)
	require.ErrorIs(t, err, series.ErrCorrupt)

	errNo := errors.New("no")
	refuse := func([]byte) ([]byte, error) { return nil, errNo }
	_, err = series.NewPiece(one, refuse)
	require.ErrorIs(t, err, errNo)
	_, err = series.ReadTail(tail, refuse)
	require.ErrorIs(t, err, errNo)
}

func FuzzReadTail(f *testing.F) {
	b := new(series.Block)
	b.Append(series.Sample{Time: newYear, Value: 61, Attrs: series.Attrs{Offset: 3600, App: "one.app"}})
	older, err := series.NewPiece(b, nil)
	require.NoError(f, err)
	f.Add(older)
	b.Append(series.Sample{Time: newYear + minute, End: newYear + 2*minute, Value: 61.5, Value2: 3})
	newer, err := series.NewPiece(b, nil)
	require.NoError(f, err)
	f.Add(append(newer, older...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := series.ReadTail(data, nil)
		if err != nil {
			require.ErrorIs(t, err, series.ErrCorrupt)
			return
		}
		var got series.Block
		require.NoError(t, c.Decode(&got))
		require.NoError(t, got.Validate())
	})
}
