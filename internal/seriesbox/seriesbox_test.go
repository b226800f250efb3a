package seriesbox_test

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
)

var steps, calories = &healthdata.SeriesKey{Resource: "steps"}, &healthdata.SeriesKey{Resource: "calories"}

const note = "note-zq-marker"

func newKeys(t *testing.T) *personkey.Keys {
	t.Helper()
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": make([]byte, 32)})
	require.NoError(t, err)
	return personkey.New(memory.NewPersonKeys(), sealer, nil)
}

func person() personkey.Ref {
	return personkey.Ref{Team: healthlab.TeamID{UUID: uuid.New()}, User: healthlab.UserID{UUID: uuid.New()}}
}

// samples is a block of two samples of which one has a note.
func samples(t *testing.T) (*series.Block, series.Chunk) {
	t.Helper()
	b := new(series.Block)
	b.Append(series.Sample{Time: 60_000_000, Value: 61, Attrs: series.Attrs{Text: note}})
	b.Append(series.Sample{Time: 120_000_000, Value: 62.5})
	c, err := series.NewChunk(b)
	require.NoError(t, err)
	return b, c
}

// What is encrypted, and what is not, is read by both, a tail of both kinds of pieces too.
func TestRoundTrip(t *testing.T) {
	ctx, keys, ref := t.Context(), newKeys(t), person()
	b, c := samples(t)
	ciphers := map[string]seriesbox.Cipher{"encrypted": {Keys: keys, Encrypt: true}, "clear": {Keys: keys}}
	var tail []byte
	for name, writer := range ciphers {
		w := writer.Series(ref, steps)
		header, data, err := w.Seal(ctx, &c)
		require.NoError(t, err)
		piece, err := w.NewPiece(ctx, b)
		require.NoError(t, err)
		tail = append(piece, tail...)
		for _, stored := range [][]byte{data, piece} {
			require.Equal(t, name == "clear", bytes.Contains(stored, []byte(note)), name)
		}
		require.Equal(t, name == "encrypted", personkey.Sealed(header), name)
		for _, reader := range ciphers {
			r := reader.Series(ref, steps)
			got, err := r.Open(ctx, c.Start, header, data)
			require.NoError(t, err)
			require.Equal(t, c, got)
			h, err := r.OpenHeader(ctx, c.Start, header)
			require.NoError(t, err)
			require.Equal(t, c.Header, h)
			segment, err := r.ReadTail(ctx, piece)
			require.NoError(t, err)
			require.Equal(t, c, segment)
		}
	}
	reader := seriesbox.Cipher{Keys: keys}
	r := reader.Series(ref, steps)
	segment, err := r.ReadTail(ctx, tail)
	require.NoError(t, err)
	require.Equal(t, c, segment)
}

// A box opens for its person, series, start and column alone, and with keys.
func TestBoxesAreBound(t *testing.T) {
	ctx, keys, ref := t.Context(), newKeys(t), person()
	b, c := samples(t)
	cipher, none := seriesbox.Cipher{Keys: keys, Encrypt: true}, seriesbox.Cipher{}
	w := cipher.Series(ref, steps)
	header, data, err := w.Seal(ctx, &c)
	require.NoError(t, err)
	piece, err := w.NewPiece(ctx, b)
	require.NoError(t, err)
	stranger := person()
	_, err = keys.Seal(ctx, stranger, "x", nil)
	require.NoError(t, err)

	for name, of := range map[string]struct {
		series seriesbox.Series
		want   error
	}{
		"another series": {cipher.Series(ref, calories), healthlab.Invalid},
		"another person": {cipher.Series(stranger, steps), healthlab.Invalid},
		"no keys":        {none.Series(ref, steps), healthlab.Unavailable},
	} {
		_, err := of.series.OpenHeader(ctx, c.Start, header)
		require.ErrorIs(t, err, of.want, name)
		_, err = of.series.ReadTail(ctx, piece)
		require.ErrorIs(t, err, of.want, name)
	}
	_, err = w.Open(ctx, c.Start+1, header, data)
	require.ErrorIs(t, err, healthlab.Invalid, "another start")
	_, err = w.Open(ctx, c.Start, header, header)
	require.ErrorIs(t, err, healthlab.Invalid, "another column")

	require.NoError(t, keys.Delete(ctx, ref))
	_, err = w.Open(ctx, c.Start, header, data)
	require.ErrorIs(t, err, personkey.ErrErased)
	_, err = w.ReadTail(ctx, piece)
	require.ErrorIs(t, err, personkey.ErrErased)
	_, _, err = w.Seal(ctx, &c)
	require.ErrorIs(t, err, personkey.ErrErased)
}

// What is kept in clear does not begin as a box does.
func TestClearBytesAreNoBoxes(t *testing.T) {
	b, c := samples(t)
	var clear seriesbox.Cipher
	s := clear.Series(person(), steps)
	header, data, err := s.Seal(t.Context(), &c)
	require.NoError(t, err)
	piece, err := s.NewPiece(t.Context(), b)
	require.NoError(t, err)
	for _, stored := range [][]byte{header, data, piece[2:]} {
		require.False(t, personkey.Sealed(stored))
	}
}
