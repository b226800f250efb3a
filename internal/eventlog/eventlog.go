// Package eventlog is a [store.Events] for tests of packages that write events. Unlike the outbox of package
// webhook it only stores events and returns them.
package eventlog

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Log is a [store.Events] whose events tests can read. It is safe for concurrent use.
type Log struct{ s store.Store }

// New returns a log in the store s, whose tables must include [Tables].
func New(s store.Store) Log { return Log{s} }

type counter struct {
	Team healthlab.TeamID
	User healthlab.UserID
	Key  string
	N    int64
}

// kept is a stored event with the client user id that the user had when the event was written.
type kept struct {
	healthlab.Event
	ClientUserID string
}

var (
	events = store.Table[kept]{Name: "test_event", Row: func(e *kept) store.Row {
		return store.Row{Key: store.Key{Team: e.Team, User: e.User, ID: store.UUID(e.ID)}}
	}}
	counters = store.Table[counter]{Name: "test_event_counter", Row: func(c *counter) store.Row {
		return store.Row{Key: store.Key{Team: c.Team, User: c.User, ID: c.Key}}
	}}
)

// Tables returns the tables that the store passed to [New] must have.
func Tables() []store.Definition {
	return []store.Definition{events.Definition(), counters.Definition()}
}

// Append implements [store.Events].
func (l Log) Append(ctx context.Context, tx store.Tx, list []healthlab.Event) error {
	for _, e := range list {
		got, err := tx.Read(store.User(e.Team, e.User))
		if err != nil {
			return err
		}
		name, err := store.ClientUserIDOf(got[0])
		switch u := store.StateOf(got[0]); {
		case err != nil:
			return err
		case u.Known && !u.Live:
			continue
		case e.ID == uuid.Nil:
			return fmt.Errorf("%w: event id: must be set", healthlab.Invalid)
		}
		e.At, e.Trace = healthlab.At(e.At).Time, cmp.Or(e.Trace, healthlab.TraceOf(ctx))
		if e.Key != "" {
			c, err := counters.Get(tx, store.Key{Team: e.Team, ID: e.Key}, store.Held)
			if err != nil {
				return err
			}
			if c == nil {
				c = &store.Entry[counter]{Value: counter{Team: e.Team, User: e.User, Key: e.Key}}
			}
			c.Value.N++
			if err := counters.Put(tx, c); err != nil {
				return err
			}
			e.Seq = c.Value.N
		}
		if err := events.Insert(tx, &kept{e, name}); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements [store.Events].
func (l Log) Forget(_ context.Context, tx store.Tx, _ healthlab.TeamID, user healthlab.UserID) error {
	list, err := events.Find(tx, store.Query{Key: store.Key{User: user}, By: store.ByUser, Lock: store.Held})
	for _, e := range list {
		events.Delete(tx, e)
	}
	return err
}

// Message returns a stored event in the form in which package webhook delivers it. Its body is a JSON object with
// data and client_user_id.
func (l Log) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	e, err := events.LookOne(ctx, l.s, store.Key{Team: team, ID: store.UUID(event)})
	if err != nil {
		return webhook.Message{}, err
	}
	if e == nil {
		return webhook.Message{}, fmt.Errorf("%w: event not found in the team", healthlab.NotFound)
	}
	v := e.Value
	return webhook.Message{Event: v.ID, Type: v.Type, Team: v.Team, User: v.User, Key: v.Key, Seq: v.Seq, At: v.At, Body: fmt.Appendf(nil, `{"data":%s,"client_user_id":%q}`, v.Data, v.ClientUserID)}, nil
}
