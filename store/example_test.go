package store_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/store"
)

// A package of a host's own declares a table and keeps values beside those of healthlab.
func Example() {
	type note struct {
		Team healthlab.TeamID
		ID   uuid.UUID
		Text string
	}
	notes := store.Table[note]{Name: "host_note", Row: func(n *note) store.Row {
		return store.Row{Key: store.Key{Team: n.Team, ID: store.UUID(n.ID)}}
	}}
	s, err := memstore.New([]store.Definition{notes.Definition()}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, first := context.Background(), note{healthlab.TeamID{UUID: uuid.New()}, uuid.New(), "call back"}
	err = s.Update(ctx, func(_ context.Context, tx store.Tx) error { return notes.Insert(tx, &first) })
	fmt.Println(err)

	key := store.Key{Team: first.Team, ID: store.UUID(first.ID)}
	err = s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		n, err := notes.Get(tx, key, store.Held)
		if err != nil || n == nil {
			return err
		}
		n.Value.Text = "called"
		return notes.Put(tx, n)
	})
	fmt.Println(err)
	n, err := notes.LookOne(ctx, s, key)
	fmt.Println(n.Value.Text, n.Revision, err)
	// Output:
	// <nil>
	// <nil>
	// called 2 <nil>
}
