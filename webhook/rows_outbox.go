package webhook

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// events is a [store.Events] that appends events to the tables of a [Store].
type events struct {
	envelope  Envelope
	retention time.Duration
	readers   []Reader
	written   func() // called after a commit; may be nil
}

func newEvents(opts *StoreOptions) *events {
	if opts == nil {
		opts = &StoreOptions{}
	}
	e := &events{envelope: opts.Envelope, retention: opts.Retention, readers: opts.Readers, written: opts.OnWritten}
	if e.retention <= 0 {
		e.retention = 30 * 24 * time.Hour
	}
	return e
}

// Append implements [store.Events]. It reads once and writes two rows for each event: the event, and the key
// row that counts the events of the key.
func (o *events) Append(ctx context.Context, tx store.Tx, list []healthlab.Event) error {
	if len(list) == 0 {
		return nil
	}
	read := make([]store.Query, 0, 2*len(list))
	for i := range list {
		e := &list[i]
		read = append(read, keyRows.One(store.Key{Team: e.Team, ID: keyID(e)}, store.Held))
		if !e.User.IsZero() {
			read = append(read, store.User(e.Team, e.User))
		}
	}
	if _, err := tx.Read(read...); err != nil {
		return err
	}
	seen := map[uuid.UUID]bool{}
	var appended []healthlab.Event
	for i, e := range list {
		switch {
		case e.ID == uuid.Nil:
			return fmt.Errorf("event %d: %w: id: must be set", i, healthlab.Invalid)
		case seen[e.ID]:
			return fmt.Errorf("event %d: %w: id: must differ from the ids of the other events", i, healthlab.Conflict)
		}
		seen[e.ID] = true
		kept, err := o.append(ctx, tx, &e)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if kept {
			appended = append(appended, e)
		}
	}
	if len(appended) == 0 {
		return nil
	}
	for _, read := range o.readers {
		if err := read(ctx, tx, appended); err != nil {
			return err
		}
	}
	if o.written != nil {
		tx.AfterCommit(o.written)
	}
	return nil
}

// EventQueries returns the queries that appending an event of a user and a key makes. A transaction that reads all its
// rows in one call includes them.
func EventQueries(team healthlab.TeamID, user healthlab.UserID, key string) []store.Query {
	e := healthlab.Event{Team: team, User: user, Key: key}
	return []store.Query{keyRows.One(store.Key{Team: team, ID: keyID(&e)}, store.Held), store.User(team, user)}
}

// append appends one event, and sets its Seq, time and Trace. It returns false for an event about a deleted
// user, which is left out.
func (o *events) append(ctx context.Context, tx store.Tx, e *healthlab.Event) (bool, error) {
	var name *string
	if !e.User.IsZero() {
		got, err := tx.Read(store.User(e.Team, e.User))
		if err != nil {
			return false, err
		}
		switch u := store.StateOf(got[0]); {
		case u.Known && !u.Live:
			return false, nil
		case u.Known:
			id, err := store.ClientUserIDOf(got[0])
			if err != nil {
				return false, err
			}
			name = &id
		}
	}
	k, err := nextOfKey(tx, e)
	if err != nil {
		return false, err
	}
	e.At, e.Trace, e.Seq = healthlab.At(e.At).Time, cmp.Or(e.Trace, healthlab.TraceOf(ctx)), k.Value.Seq
	body, err := o.envelope.Render(*e, name)
	if err != nil {
		return false, err
	}
	if err := keyRows.Put(tx, k); err != nil {
		return false, err
	}
	return true, eventRows.Insert(tx, &eventRow{Event: *e, written: tx.Now(), keep: o.retention, body: body})
}

// nextOfKey returns the key row of an event after counting the event.
func nextOfKey(tx store.Tx, e *healthlab.Event) (*store.Entry[keyRow], error) {
	id := store.Key{Team: e.Team, User: e.User, ID: keyID(e)}
	k, err := keyRows.Get(tx, store.Key{Team: e.Team, ID: id.ID}, store.Held)
	if err != nil {
		return nil, err
	}
	if k == nil {
		k = &store.Entry[keyRow]{Value: keyRow{Key: id}}
	}
	if k.Value.User != e.User {
		k.Value.User = healthlab.UserID{}
	}
	if k.Value.Since.IsZero() {
		k.Value.Since = tx.Now()
	}
	if e.Key != "" {
		k.Value.Seq++
	}
	return k, nil
}

// Append implements [Outbox].
func (s *Store) Append(ctx context.Context, list []healthlab.Event) error {
	return s.s.Update(ctx, func(ctx context.Context, tx store.Tx) error { return s.events.Append(ctx, tx, list) })
}
