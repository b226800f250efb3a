package webhook

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Store keeps events, endpoints, deliveries and attempts in a [store.Store] that has the tables of
// [Tables]. It is an [Outbox]. Safe for concurrent use.
type Store struct {
	s      store.Store
	events *events
}

var _ Outbox = (*Store)(nil)

// StoreOptions adjusts a [Store] and what [NewOutbox] returns. The zero value, and nil, mean the
// defaults.
type StoreOptions struct {
	// Envelope says how bodies of messages are made.
	Envelope Envelope
	// Retention is how long messages and attempts are kept. Default 30 days.
	Retention time.Duration
	// OnWritten is called after each commit that wrote events. It must not block; see
	// [Dispatcher.Wake]. Default: nothing.
	OnWritten func()
}

// NewStore returns a Store.
func NewStore(s store.Store, opts *StoreOptions) *Store { return &Store{s, newEvents(opts)} }

// NewOutbox returns what domain packages write their events to: it keeps them for delivery, in the
// transaction of the change, in the tables of [Tables]. A program without a [Dispatcher] needs none.
func NewOutbox(opts *StoreOptions) store.Events { return newEvents(opts) }

// Tables declares what a [Store] keeps.
func Tables() []store.Definition {
	return []store.Definition{eventRows.Definition(), keyRows.Definition()}
}

// eventRow is an event with its message. It does not change until its body is emptied.
type eventRow struct {
	healthlab.Event
	written time.Time
	keep    time.Duration // how long, from written on
	body    []byte        // nil once it is emptied
}

// eventDoc is the document of an eventRow, before the body.
type eventDoc struct {
	ID    uuid.UUID
	Type  string
	Key   string `json:",omitempty"`
	At    time.Time
	Trace string `json:",omitempty"`
	Keep  time.Duration
}

// eventRows has the events of a team under the name of their key and their Seq. The first index is
// the id, the second the time of writing. Due is when they are removed.
var eventRows = store.Table[eventRow]{
	Name: "webhook_event", Unique: [2]bool{true},
	Row: func(e *eventRow) store.Row {
		id := eventID(&e.Event)
		return store.Row{
			Key:   store.Key{Team: e.Team, User: e.User, ID: id},
			Index: [2]string{store.UUID(e.ID), store.Time(e.written) + id},
			Due:   e.written.Add(e.keep),
		}
	},
	Encode: func(e *eventRow) ([]byte, error) {
		doc, err := store.JSON(&eventDoc{e.ID, e.Type, e.Key, e.At, e.Trace, e.keep})
		if err != nil || e.body == nil {
			return doc, err
		}
		return append(append(doc, '\n'), e.body...), nil
	},
	Decode: func(r store.Row, e *eventRow) error {
		meta, body, full := bytes.Cut(r.Doc, []byte{'\n'}) // JSON has no line end in itself
		var d eventDoc
		if err := json.Unmarshal(meta, &d); err != nil {
			return err
		}
		*e = eventRow{
			Event: healthlab.Event{
				ID: d.ID, Type: d.Type, Team: r.Team, User: r.User, Key: d.Key, Seq: store.ParseInt(r.ID[len(Lane{}):]), At: d.At, Trace: d.Trace,
			},
			written: store.ParseTime(r.Index[1]), keep: d.Keep,
		}
		if full {
			e.body = body
		}
		return nil
	},
}

// keyID returns the name of the key of an event; of the event itself if it has none.
func keyID(e *healthlab.Event) string {
	l := LaneOf(*e, healthlab.Ordered, OrderKey)
	return string(l[:])
}

// eventID returns the id of the row of an event.
func eventID(e *healthlab.Event) string { return keyID(e) + store.Int(e.Seq) }

// keyRow counts the events of a key. An event without a key has one as long as it is not routed.
type keyRow struct {
	store.Key `json:"-"` // User is the user of all its events; zero for several
	// Seq is that of the last event, Routed that of the last event in lanes.
	Seq, Routed int64
	// Since is when the first event that is not routed was written.
	Since time.Time `json:",omitzero"`
}

// keyRows has the keys of a team. Those with events that are not routed are due.
var keyRows = store.Table[keyRow]{
	Name: "webhook_key", Clear: true,
	Row: func(k *keyRow) store.Row { return store.Row{Key: k.Key, Due: k.Since} },
	Decode: func(r store.Row, k *keyRow) error {
		k.Key = r.Key
		return json.Unmarshal(r.Doc, k)
	},
}
