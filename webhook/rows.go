package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Store stores events, endpoints, deliveries and attempts in a [store.Store] with the tables of [Tables]. It is
// an [Outbox], [Deliveries], [Endpoints], [Log] and [Bodies]. It is safe for concurrent use.
type Store struct {
	s      store.Store
	events *events
	routed atomic.Int64 // when events were last routed, in Unix microseconds
	swept  atomic.Int64 // last sweep that removed all that was due, in Unix microseconds
}

var _ interface {
	Outbox
	Deliveries
	Endpoints
	Log
	Bodies
} = (*Store)(nil)

// StoreOptions configures a [Store] and the result of [NewOutbox]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Envelope configures how bodies of messages are made.
	Envelope Envelope
	// Retention is how long webhook messages and attempts are kept, delivered or not, by the store's clock. Choose it
	// longer than the longest time that a receiver may be down plus the greatest error of that clock. Default 30 days.
	Retention time.Duration
	// Readers are called with all written events, one Reader after another in this order.
	Readers []Reader
	// OnWritten is called after each commit that wrote events. It must not block; see
	// [Dispatcher.Wake]. Default: nothing.
	OnWritten func()
}

// Reader receives events in the transaction that appends them, with their Seq and Trace; events of a key come in the
// order of Seq. Its writes commit with the events; for later work, a reader writes a row that its own worker reads. It
// may be called again with the same events, because the function of an Update may run twice. After an error none of the
// events is appended. It must not change the events.
type Reader func(ctx context.Context, tx store.Tx, events []healthlab.Event) error

// NewStore returns a Store.
func NewStore(s store.Store, opts *StoreOptions) *Store { return &Store{s: s, events: newEvents(opts)} }

// NewOutbox returns the store.Events of domain packages, which appends their events to the tables of [Tables] in
// the transaction of the change. A program without a [Dispatcher] needs none.
func NewOutbox(opts *StoreOptions) store.Events { return newEvents(opts) }

// Tables declares the tables of [Store].
func Tables() []store.Definition {
	return []store.Definition{
		eventRows.Definition(), keyRows.Definition(), routerRows.Definition(), teamRows.Definition(),
		endpointRows.Definition(), targetRows.Definition(),
		laneRows.Definition(), waitingRows.Definition(), attemptRows.Definition(),
	}
}

// eventRow is a stored event with the body of its message. Only the body changes: it is deleted after its retention.
type eventRow struct {
	healthlab.Event
	written time.Time
	keep    time.Duration // how long the event is stored after it was written
	body    []byte        // nil after it was deleted
}

// eventDoc is the JSON document of an eventRow, which the body follows. The id, the team, the user and Seq are in other
// columns.
type eventDoc struct {
	Type  string
	Key   string `json:",omitempty"`
	At    time.Time
	Trace string `json:",omitempty"`
	Keep  time.Duration
}

// eventRows has the events of a team, in the order of key and Seq. The first index is the event id. The second, only
// while the event has a body, is the time of writing with the id. An event is due when its retention has ended.
var eventRows = store.Table[eventRow]{
	Name: "webhook_event", Unique: [2]bool{true},
	Row: func(e *eventRow) store.Row {
		id := eventID(&e.Event)
		r := store.Row{
			Key:   store.Key{Team: e.Team, User: e.User, ID: id},
			Index: [2]string{store.UUID(e.ID)},
			Due:   e.written.Add(e.keep),
		}
		if e.body != nil {
			r.Index[1] = store.Time(e.written) + id
		}
		return r
	},
	Encode: func(e *eventRow) ([]byte, error) {
		doc, err := store.JSON(&eventDoc{e.Type, e.Key, e.At, e.Trace, e.keep})
		if err != nil || e.body == nil {
			return doc, err
		}
		return append(append(doc, '\n'), e.body...), nil
	},
	Decode: func(r store.Row, e *eventRow) error {
		meta, body, full := bytes.Cut(r.Doc, []byte{'\n'}) // JSON text contains no line break here
		var d eventDoc
		if err := json.Unmarshal(meta, &d); err != nil {
			return err
		}
		*e = eventRow{
			Event: healthlab.Event{
				ID: store.ParseUUID(r.Index[0]), Type: d.Type, Team: r.Team, User: r.User, Key: d.Key, Seq: store.ParseInt(r.ID[len(Lane{}):]), At: d.At, Trace: d.Trace,
			},
			written: r.Due.Add(-d.Keep), keep: d.Keep,
		}
		if full {
			e.body = body
		}
		return nil
	},
}

func keyID(e *healthlab.Event) string {
	l := LaneOf(*e, healthlab.Ordered, OrderKey)
	return string(l[:])
}

func eventID(e *healthlab.Event) string { return keyID(e) + store.Int(e.Seq) }

// keyRow counts the events of a key. An event without a key has a keyRow of its own until it is routed.
type keyRow struct {
	store.Key `json:"-"` // User is the user of all events of the key; zero if there are several
	// Seq is the number of the last event, Routed that of the last routed event.
	Seq, Routed int64
	// Since is when the first event that is not routed yet was written, or earlier; zero if all are routed.
	Since time.Time `json:",omitzero"`
}

// keyRows has the keys of the events of a team. A key is due while it has events that are not routed.
var keyRows = store.Table[keyRow]{
	Name: "webhook_key", Clear: true,
	Row: func(k *keyRow) store.Row { return store.Row{Key: k.Key, Due: k.Since} },
	Decode: func(r store.Row, k *keyRow) error {
		k.Key = r.Key
		return json.Unmarshal(r.Doc, k)
	},
}

// routerRow is the only row of its table. A routing transaction locks it, so that only one runs. Last is the last
// delivery id that was used.
type routerRow struct{ Last DeliveryID }

var (
	routerRows = store.Table[routerRow]{Name: "webhook_router", Clear: true, Row: func(*routerRow) store.Row {
		return store.Row{Key: routerKey}
	}}
	routerKey = store.Key{ID: "router"}
)

// teamRow is a team with endpoints or with a routed event.
type teamRow struct {
	Team healthlab.TeamID `json:"-"`
	// Endpoints is the number of endpoints.
	Endpoints int
}

var teamRows = store.Table[teamRow]{
	Name: "webhook_team", Clear: true,
	Row: func(t *teamRow) store.Row { return store.Row{Key: teamKey(t.Team)} },
	Decode: func(r store.Row, t *teamRow) error {
		t.Team.UUID = store.ParseUUID(r.ID)
		return json.Unmarshal(r.Doc, t)
	},
}

func teamKey(team healthlab.TeamID) store.Key { return store.Key{ID: store.UUID(team.UUID)} }

// endpointRows has the endpoints of a team. The first index is the time of creation. An enabled endpoint is due from
// Health.ArmedAt on.
var endpointRows = store.Table[Endpoint]{Name: "webhook_endpoint", Row: func(e *Endpoint) store.Row {
	r := store.Row{
		Key:   endpointKey(e.Team, e.ID),
		Index: [2]string{store.Time(e.CreatedAt) + store.UUID(e.ID.UUID)},
	}
	if !e.Disabled {
		r.Due = e.Health.ArmedAt
	}
	return r
}}

func endpointKey(team healthlab.TeamID, id EndpointID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// targetRow has the fields of an endpoint that a claim reads.
type targetRow struct {
	ID          EndpointID `json:"-"`
	Team        healthlab.TeamID
	Revision    int64     `json:",omitempty"`
	PausedUntil time.Time `json:",omitzero"`
	PauseStep   int       `json:",omitempty"`
}

// targetRows has a row for each endpoint, of all teams.
var targetRows = store.Table[targetRow]{
	Name: "webhook_target", Clear: true,
	Row: func(t *targetRow) store.Row { return store.Row{Key: targetKey(t.ID)} },
	Decode: func(r store.Row, t *targetRow) error {
		t.ID.UUID = store.ParseUUID(r.ID)
		return json.Unmarshal(r.Doc, t)
	},
}

func targetKey(id EndpointID) store.Key { return store.Key{ID: store.UUID(id.UUID)} }

func targetOf(e *Endpoint) targetRow {
	return targetRow{ID: e.ID, Team: e.Team, Revision: e.Revision, PausedUntil: e.Health.PausedUntil, PauseStep: e.Health.PauseStep}
}

// queued is an unfinished delivery of an event to an endpoint.
type queued struct {
	ID      DeliveryID
	User    healthlab.UserID `json:"-"` // user of the event
	Event   uuid.UUID
	Type    string
	Key     string `json:",omitempty"`
	Seq     int64  `json:",omitempty"`
	Latest  bool   `json:",omitempty"` // its mode is Latest: a newer event of the key replaces it
	Trigger Trigger
	Queued  time.Time
}

func (d *queued) supersedeKey() string {
	if d.Latest {
		return d.Key
	}
	return ""
}

func (d *queued) eventID() string {
	return eventID(&healthlab.Event{ID: d.Event, Key: d.Key, Seq: d.Seq})
}

// lanePlace identifies a lane, a queue of deliveries to one endpoint.
type lanePlace struct {
	Team     healthlab.TeamID
	Endpoint EndpointID
	Lane     Lane
}

func (p *lanePlace) id() string { return store.UUID(p.Endpoint.UUID) + string(p.Lane[:]) }

func (p *lanePlace) key() store.Key { return store.Key{Team: p.Team, ID: p.id()} }

func placeOfRow(r *store.Row) lanePlace {
	return lanePlace{r.Team, EndpointID{store.ParseUUID(r.ID)}, Lane([]byte(r.ID[16:32]))}
}

// laneRow is a lane with its first delivery. Other deliveries of the lane are waitingRows.
type laneRow struct {
	lanePlace   `json:"-"`
	Head        queued
	Attempts    int       `json:",omitempty"` // attempts of the first delivery so far
	Starts      int       `json:",omitempty"` // claims of the first delivery since its last outcome
	Claims      int       `json:",omitempty"` // all claims with the id of the first delivery; part of the token
	FirstFailed time.Time `json:",omitzero"`
	Due         time.Time
	Quiet       time.Time `json:",omitzero"`  // no delivery of the lane starts before this time
	LeaseUntil  time.Time `json:",omitzero"`  // zero without a lease
	Waiting     int       `json:",omitempty"` // number of deliveries behind the first
	Newer       bool      `json:",omitempty"` // a waiting delivery has a newer event of the same key
}

// States of a lane, in the order in which Claim looks for lanes.
const (
	laneDue    = "d"
	laneLeased = "l"
)

func claimable(endpoint EndpointID, state string) string { return store.UUID(endpoint.UUID) + state }

// claimableAt returns the time from which the lane's first delivery may be claimed.
func (l *laneRow) claimableAt() time.Time {
	switch {
	case !l.LeaseUntil.IsZero():
		return l.LeaseUntil
	case l.Quiet.After(l.Due):
		return l.Quiet
	}
	return l.Due
}

func (l *laneRow) token() int64 { return int64(l.Head.ID)<<20 | int64(l.Claims&(1<<20-1)) }

func (l *laneRow) leasedBy(lease Lease) bool {
	return !l.LeaseUntil.IsZero() && l.Head.ID == lease.Delivery && l.token() == lease.Token
}

func (l *laneRow) leased(now time.Time) bool { return l.LeaseUntil.After(now) }

// laneRows has the lanes of a team that are not empty. The first index has the order in which the lanes of an endpoint
// are claimed, the second the id of the first delivery. A lane is due when that delivery may be claimed.
var laneRows = store.Table[laneRow]{
	Name: "webhook_lane",
	Row: func(l *laneRow) store.Row {
		r := store.Row{Key: l.key(), Due: l.claimableAt()}
		r.User = l.Head.User
		state := laneDue
		if !l.LeaseUntil.IsZero() {
			state = laneLeased
		}
		id := store.Int(int64(l.Head.ID))
		r.Index = [2]string{claimable(l.Endpoint, state) + store.Time(r.Due) + id, id}
		return r
	},
	Decode: func(r store.Row, l *laneRow) error {
		if err := json.Unmarshal(r.Doc, l); err != nil {
			return err
		}
		l.lanePlace, l.Head.User = placeOfRow(&r), r.User
		return nil
	},
}

// waitingRow is a delivery of a lane that is not the first one.
type waitingRow struct {
	lanePlace `json:"-"`
	queued
}

// waitingRows has the waiting deliveries of a team, by lane and id. The first index is the lane and the [SupersedeKey],
// the second the event and the endpoint.
var waitingRows = store.Table[waitingRow]{
	Name: "webhook_waiting",
	Row: func(w *waitingRow) store.Row {
		r := store.Row{Key: w.lanePlace.key()}
		r.ID += store.Int(int64(w.ID))
		r.User = w.User
		if key := w.supersedeKey(); key != "" {
			r.Index[0] = supersedes(&w.lanePlace, key)
		}
		r.Index[1] = store.UUID(w.Event) + store.UUID(w.Endpoint.UUID)
		return r
	},
	Decode: func(r store.Row, w *waitingRow) error {
		if err := json.Unmarshal(r.Doc, w); err != nil {
			return err
		}
		w.lanePlace, w.User = placeOfRow(&r), r.User
		return nil
	},
}

func supersedes(p *lanePlace, key string) string {
	h := laneHash("key", []byte(key))
	return p.id() + string(h[:])
}

// attemptRow is an entry of the log of attempts.
type attemptRow struct {
	Team healthlab.TeamID `json:"-"`
	User healthlab.UserID `json:"-"`
	Attempt
	Token int64         `json:",omitempty"` // token of the lease; 0 without one
	Keep  time.Duration // how long the entry is stored after At
}

// attemptRows has the log of attempts of a team, in the order of time. The indexes are the endpoint and the event. An
// entry is due when its retention has ended.
var attemptRows = store.Table[attemptRow]{
	Name: "webhook_attempt",
	Row: func(a *attemptRow) store.Row {
		id := store.Time(a.At) + store.Int(int64(a.Delivery)) + store.Int(a.Token) + store.UUID(a.Event)
		return store.Row{
			Key:   store.Key{Team: a.Team, User: a.User, ID: id},
			Index: [2]string{store.UUID(a.Endpoint.UUID) + id, store.UUID(a.Event) + id},
			Due:   a.At.Add(a.Keep),
		}
	},
	Decode: func(r store.Row, a *attemptRow) error {
		a.Team, a.User = r.Team, r.User
		return json.Unmarshal(r.Doc, a)
	},
}

func prefixed(q store.Query, prefix string) store.Query {
	q.From, q.To = prefix, store.End(prefix)
	return q
}
