package accesslog_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// cutStore is a store out of which lines or heads were taken.
type cutStore struct {
	accesslog.Store
	lines func([]accesslog.Line) []accesslog.Line
	heads func([]accesslog.SignedHead) []accesslog.SignedHead
}

func (s *cutStore) Lines(ctx context.Context, q accesslog.Query) ([]accesslog.Line, error) {
	list, err := s.Store.Lines(ctx, q)
	if s.lines != nil {
		list = s.lines(list)
	}
	return list, err
}

func (s *cutStore) Heads(ctx context.Context, q accesslog.HeadQuery) ([]accesslog.SignedHead, error) {
	list, err := s.Store.Heads(ctx, q)
	if s.heads != nil {
		list = s.heads(list)
	}
	return list, err
}

func TestVerify_detectsLinesRemovedFromTheEnd(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	team := healthlab.TeamID{UUID: uuid.New()}
	ctx := t.Context()
	store := &cutStore{Store: memory.New(nil).AccessLog()}
	log, err := accesslog.New(store, key, nil)
	require.NoError(t, err)
	record := func(n int) {
		for range n {
			require.NoError(t, log.Record(ctx, accesslog.Entry{Team: team, Operation: "op"}))
		}
		require.NoError(t, log.Seal(ctx))
	}
	all := func() (lines int64, err error) {
		err = log.VerifyAll(ctx, nil, func(_ healthlab.TeamID, v accesslog.Verification, _ error) { lines += v.Lines })
		return lines, err
	}
	_, err = all()
	require.ErrorIs(t, err, healthlab.NotFound, "a store without a log")

	record(5)
	older, err := store.Store.Heads(ctx, accesslog.HeadQuery{Team: team, N: 1})
	require.NoError(t, err)
	record(3)
	lines, err := all()
	require.NoError(t, err)
	require.EqualValues(t, 8, lines)
	kept, err := log.SignHeads(ctx)
	require.NoError(t, err)

	first := func(n int) func([]accesslog.Line) []accesslog.Line {
		return func(l []accesslog.Line) []accesslog.Line { return l[:min(n, len(l))] }
	}
	for name, cut := range map[string]cutStore{
		"last lines": {lines: first(5)},
		"all lines":  {lines: first(0)},
		"lines, with another head": {lines: first(5), heads: func(h []accesslog.SignedHead) []accesslog.SignedHead {
			h[0].Head = older[0].Head
			return h
		}},
		"lines added without a signature": {heads: func([]accesslog.SignedHead) []accesslog.SignedHead { return older }},
		"the head's signature":            {heads: func(h []accesslog.SignedHead) []accesslog.SignedHead { h[0].Signature = nil; return h }},
		"the head": {heads: func(h []accesslog.SignedHead) []accesslog.SignedHead {
			h[0] = accesslog.SignedHead{Head: accesslog.Head{Team: team}}
			return h
		}},
	} {
		store.lines, store.heads = cut.lines, cut.heads
		_, err := all()
		require.ErrorIs(t, err, healthlab.Conflict, name)
	}

	// An older head that is restored with fewer lines is found by an anchor that was kept elsewhere.
	store.lines = first(5)
	store.heads = func([]accesslog.SignedHead) []accesslog.SignedHead { return older }
	_, err = log.Verify(ctx, team)
	require.NoError(t, err)
	_, err = log.Verify(ctx, team, kept...)
	require.ErrorIs(t, err, healthlab.Conflict)

	read, err := accesslog.ReadAnchors(bytes.NewReader(kept[0].AppendNDJSON([]byte("{\"seq\":1}\n"))))
	require.NoError(t, err)
	require.Equal(t, kept, read)
	_, err = accesslog.ReadAnchors(bytes.NewReader([]byte(`{"anchor":{"hash":"zz"}}`)))
	require.ErrorIs(t, err, healthlab.Invalid)
}
