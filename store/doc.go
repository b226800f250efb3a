// Package store keeps values as rows in transactions. [Store] is the one interface that a host
// implements to keep everything of healthlab in a database of its own.
//
// A row is a document under a key, with the few values by which it is found: a user, a due time
// and two index values. Domain packages declare a [Table] for each type of value and write their
// rules over it. An engine (adapters/memory, adapters/sqlite, a host's own) knows rows alone.
//
//	var notes = store.Table[Note]{Name: "note", Row: func(n *Note) store.Row {
//		return store.Row{Key: store.Key{Team: n.Team, User: n.User, ID: store.UUID(n.ID)}}
//	}}
//
//	err := s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
//		note, err := notes.Get(tx, store.Key{Team: team, ID: store.UUID(id)}, store.Held)
//		if err != nil || note == nil {
//			return err
//		}
//		note.Value.Text = "changed"
//		return notes.Put(tx, note)
//	})
//
// The names to know: [Store] and [Tx]; [Query] selects rows, with a [Lock]; [Table] is the
// typed form; most engines use [Buffer] and [KV].
package store
