package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// outbox keeps the events that were written, and which of them are not routed yet.
type outbox struct {
	*database
	users     *userTable
	queue     *queue
	envelope  webhook.Envelope
	retention time.Duration
	written   func() // nil for none

	events  []*storedEvent // in the order in which they were written
	pending []*storedEvent // the end of events that is not routed
	byID    map[uuid.UUID]*storedEvent
	byKey   map[teamKey][]*storedEvent // in the order of their Seq
	seq     map[teamKey]int64
	about   map[teamKey]healthlab.UserID // the user of all events of a key; zero for several
	swept   time.Time
}

type teamKey struct {
	team healthlab.TeamID
	key  string
}

func newOutbox(db *database, users *userTable, queue *queue, envelope webhook.Envelope, retention time.Duration) *outbox {
	if retention <= 0 {
		retention = 30 * 24 * time.Hour
	}
	return &outbox{
		database: db, users: users, queue: queue, envelope: envelope, retention: retention,
		byID:  map[uuid.UUID]*storedEvent{},
		byKey: map[teamKey][]*storedEvent{},
		seq:   map[teamKey]int64{},
		about: map[teamKey]healthlab.UserID{},
	}
}

type outboxStore struct{ *outbox }

func (o outboxStore) Append(ctx context.Context, events []healthlab.Event) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.mu.Unlock()
	return o.emit(ctx, events)
}

// emit writes events: it draws their Seq, makes their bodies, and marks them to be
// routed. It is called with the lock held, by every write that has events, and before
// that write changes anything: an error means that nothing was written.
func (o *outbox) emit(ctx context.Context, events []healthlab.Event) error {
	if len(events) == 0 {
		return nil
	}
	at := o.clock()
	o.sweep(at)
	drawn := map[teamKey]int64{}
	fresh := make([]*storedEvent, 0, len(events))
	for i, e := range events {
		if o.users.isDeleted(e.Team, e.User) {
			continue
		}
		_, taken := o.byID[e.ID]
		taken = taken || slices.ContainsFunc(fresh, func(f *storedEvent) bool { return f.ID == e.ID })
		switch {
		case e.ID == uuid.Nil:
			return fmt.Errorf("%w: an event needs an id", healthlab.Invalid)
		case taken:
			return fmt.Errorf("%w: an event has this id already", healthlab.Conflict)
		}
		e.At, e.Trace = instant(e.At), cmp.Or(e.Trace, o.trace)
		if e.Key != "" {
			k := teamKey{e.Team, e.Key}
			if drawn[k] == 0 {
				drawn[k] = o.seq[k]
			}
			drawn[k]++
			e.Seq = drawn[k]
		}
		body, err := o.envelope.Render(e, o.users.clientUserID(e.Team, e.User))
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if body, err = o.keys.Seal(ctx, refOfEvent(&e), personkey.RowEvent(e.ID), body); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		e.Data = nil // its bytes are in the body
		fresh = append(fresh, &storedEvent{Event: e, body: body, at: at})
	}
	for _, f := range fresh {
		o.add(f)
	}
	for k, n := range drawn {
		o.seq[k] = n
	}
	if len(fresh) == 0 {
		return nil
	}
	if o.written != nil {
		o.written()
	}
	return nil
}

func (o *outbox) add(f *storedEvent) {
	if len(o.events) > 0 {
		f.n = o.events[len(o.events)-1].n
	}
	f.n++
	o.events = append(o.events, f)
	o.pending = append(o.pending, f)
	o.byID[f.ID] = f
	if f.Key != "" {
		k := teamKey{f.Team, f.Key}
		o.byKey[k] = append(o.byKey[k], f)
		if user, known := o.about[k]; known && user != f.User {
			o.about[k] = healthlab.UserID{}
		} else {
			o.about[k] = f.User
		}
	}
}

// sweep forgets, at most once an hour, what is older than the retention. A delivery
// that is still unfinished then ends as cancelled.
func (o *outbox) sweep(at time.Time) {
	if at.Sub(o.swept) < time.Hour {
		return
	}
	o.swept = at
	limit := at.Add(-o.retention)
	routed := len(o.events) - len(o.pending)
	old := map[uuid.UUID]bool{}
	for _, f := range o.events[:routed] {
		if !f.at.Before(limit) {
			break
		}
		old[f.ID] = true
		delete(o.byID, f.ID)
		if f.Key != "" {
			o.dropOldest(teamKey{f.Team, f.Key})
		}
	}
	pending := len(o.pending)
	o.events = slices.Delete(o.events, 0, len(old))
	o.pending = o.events[len(o.events)-pending:]
	o.queue.forget(old, at)
	o.queue.sweepLog(limit)
}

// dropOldest forgets the oldest event of a key. Its count stays, so that Seq
// goes on.
func (o *outbox) dropOldest(k teamKey) {
	if rest := o.byKey[k][1:]; len(rest) > 0 {
		o.byKey[k] = rest
	} else {
		delete(o.byKey, k)
	}
}

// removeEvents removes the events about a user, delivered or not, with their deliveries and
// what receivers answered. The Seq of their keys goes on. It is called with the lock held.
func (o *outbox) removeEvents(team healthlab.TeamID, user healthlab.UserID) {
	gone := map[uuid.UUID]bool{}
	for _, e := range o.events {
		if e.Team == team && e.User == user {
			gone[e.ID] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	o.queue.forget(gone, o.clock())
	for i := range o.queue.log {
		if gone[o.queue.log[i].Event] {
			o.queue.log[i].Head, o.queue.log[i].Response = nil, nil
		}
	}
	erased := func(e *storedEvent) bool { return gone[e.ID] }
	unrouted := len(o.pending)
	for _, e := range o.pending {
		if erased(e) {
			unrouted--
		}
	}
	for _, e := range o.events {
		if erased(e) {
			delete(o.byID, e.ID)
			k := teamKey{e.Team, e.Key}
			if o.byKey[k] = slices.DeleteFunc(o.byKey[k], erased); len(o.byKey[k]) == 0 {
				delete(o.byKey, k)
			}
		}
	}
	o.events = slices.DeleteFunc(o.events, erased)
	o.pending = o.events[len(o.events)-unrouted:]
}

// erase removes the events about a user, and what is left of keys that are the user's alone.
func (o *outbox) erase(team healthlab.TeamID, user healthlab.UserID) {
	o.removeEvents(team, user)
	for k, about := range o.about {
		if k.team == team && about == user {
			delete(o.seq, k)
			delete(o.about, k)
		}
	}
}

// message returns the bytes that are sent about an event; nil once they are deleted.
func (o *outbox) message(ctx context.Context, e *storedEvent) ([]byte, error) {
	if e.body == nil {
		return nil, nil
	}
	return o.keys.Open(ctx, refOfEvent(&e.Event), personkey.RowEvent(e.ID), slices.Clone(e.body))
}
