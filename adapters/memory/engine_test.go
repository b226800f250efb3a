package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/google/uuid"
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/store"
)

type note struct {
	Team healthlab.TeamID
	ID   string
	Text string
}

func TestEngine(t *testing.T) {
	notes := store.Table[note]{Name: "note", Unique: [2]bool{true}, Row: func(n *note) store.Row {
		return store.Row{Key: store.Key{Team: n.Team, ID: n.ID}, Index: [2]string{n.Text}}
	}}
	e, err := memory.NewEngine([]store.Definition{notes.Definition()}, nil)
	require.NoError(t, err)
	ctx := t.Context()
	team := healthlab.TeamID{UUID: uuid.New()}
	put := func(id, text string) error {
		return e.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			n, err := notes.Get(tx, store.Key{Team: team, ID: id}, store.Held)
			if err != nil {
				return err
			}
			if n == nil {
				n = &store.Entry[note]{Value: note{Team: team, ID: id}}
			}
			n.Value.Text = text
			return notes.Put(tx, n)
		})
	}
	require.NoError(t, put("a", "x\x00"[:1]))
	require.NoError(t, put("b", "y"))
	require.ErrorIs(t, put("b", "x"), healthlab.Conflict)
	require.NoError(t, put("a", "z"))
	require.NoError(t, put("b", "x"))
	got, err := notes.Look(ctx, e, store.Query{Key: store.Key{Team: team}, By: store.ByFirst, Desc: true})
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "z", got[0].Value.Text)
	require.EqualValues(t, 2, got[0].Revision)
	got, err = notes.Look(ctx, e, store.Query{Key: store.Key{Team: team}, By: store.ByFirst, From: "x", To: "z"})
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// A context that has ended before an update is its error, whatever run would return.
func TestEngine_updateOfAnEndedContext(t *testing.T) {
	e, err := memory.NewEngine(nil, nil)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	end()
	for range 100 {
		require.ErrorIs(t, e.Update(ctx, func(context.Context, store.Tx) error { return healthlab.NotFound }), context.Canceled)
	}
}
