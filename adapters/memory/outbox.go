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
	stored  []*stored // in the order in which they were written
	pending []*stored // the end of stored that is not routed
	byID    map[uuid.UUID]*stored
	byKey   map[teamKey][]*stored // in the order of their Seq
	seq     map[teamKey]int64
	about   map[teamKey]healthlab.UserID // the user of all events of a key; zero for several
	swept   time.Time
}

type teamKey struct {
	team healthlab.TeamID
	key  string
}

// stored is an event with its message.
type stored struct {
	healthlab.Event
	body []byte    // encrypted; nil once it is deleted
	at   time.Time // when it was written
	n    int64     // grows with every event written
}

func newOutbox() outbox {
	return outbox{
		byID:  map[uuid.UUID]*stored{},
		byKey: map[teamKey][]*stored{},
		seq:   map[teamKey]int64{},
		about: map[teamKey]healthlab.UserID{},
	}
}

// Outbox returns the store as a [webhook.Outbox].
func (s *Store) Outbox() webhook.Outbox { return outboxStore{s} }

type outboxStore struct{ s *Store }

func (o outboxStore) Append(ctx context.Context, events []healthlab.Event) error {
	if err := o.s.lock(ctx); err != nil {
		return err
	}
	defer o.s.mu.Unlock()
	return o.s.emit(ctx, events)
}

// emit writes events: it draws their Seq, makes their bodies, and marks them to be
// routed. It is called with the lock held, by every write that has events, and before
// that write changes anything: an error means that nothing was written.
func (s *Store) emit(ctx context.Context, events []healthlab.Event) error {
	if len(events) == 0 {
		return nil
	}
	at := s.clock()
	s.sweep(at)
	drawn := map[teamKey]int64{}
	fresh := make([]*stored, 0, len(events))
	for i, e := range events {
		if s.users.isDeleted(e.Team, e.User) {
			continue
		}
		_, taken := s.outbox.byID[e.ID]
		taken = taken || slices.ContainsFunc(fresh, func(f *stored) bool { return f.ID == e.ID })
		switch {
		case e.ID == uuid.Nil:
			return fmt.Errorf("%w: an event needs an id", healthlab.Invalid)
		case taken:
			return fmt.Errorf("%w: an event has this id already", healthlab.Conflict)
		}
		e.At, e.Trace = instant(e.At), cmp.Or(e.Trace, s.trace)
		if e.Key != "" {
			k := teamKey{e.Team, e.Key}
			if drawn[k] == 0 {
				drawn[k] = s.outbox.seq[k]
			}
			drawn[k]++
			e.Seq = drawn[k]
		}
		body, err := s.envelope.Render(e, s.clientUserID(e.Team, e.User))
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if body, err = s.keys.Seal(ctx, refOfEvent(&e), personkey.RowEvent(e.ID), body); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		e.Data = nil // its bytes are in the body
		fresh = append(fresh, &stored{Event: e, body: body, at: at})
	}
	for _, f := range fresh {
		s.outbox.add(f)
	}
	for k, n := range drawn {
		s.outbox.seq[k] = n
	}
	if len(fresh) == 0 {
		return nil
	}
	if s.written != nil {
		s.written()
	}
	return nil
}

func refOfEvent(e *healthlab.Event) personkey.Ref {
	return personkey.Ref{Team: e.Team, User: e.User}
}

// message returns the bytes that are sent about an event; nil once they are deleted.
func (s *Store) message(ctx context.Context, e *stored) ([]byte, error) {
	if e.body == nil {
		return nil, nil
	}
	return s.keys.Open(ctx, refOfEvent(&e.Event), personkey.RowEvent(e.ID), slices.Clone(e.body))
}

func (o *outbox) add(f *stored) {
	if len(o.stored) > 0 {
		f.n = o.stored[len(o.stored)-1].n
	}
	f.n++
	o.stored = append(o.stored, f)
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
func (s *Store) sweep(at time.Time) {
	if at.Sub(s.outbox.swept) < time.Hour {
		return
	}
	s.outbox.swept = at
	limit := at.Add(-s.retention)
	o := &s.outbox
	routed := len(o.stored) - len(o.pending)
	old := map[uuid.UUID]bool{}
	for _, f := range o.stored[:routed] {
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
	o.stored = slices.Delete(o.stored, 0, len(old))
	o.pending = o.stored[len(o.stored)-pending:]
	s.queue.forget(old, at)
	s.queue.sweepLog(limit)
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

// Backlog counts what the store still has to deliver. A program that stops says so, because
// with the process it is gone.
func (s *Store) Backlog(ctx context.Context) (webhook.Backlog, error) {
	if err := s.lock(ctx); err != nil {
		return webhook.Backlog{}, err
	}
	defer s.mu.Unlock()
	b := webhook.Backlog{Unrouted: len(s.outbox.pending), Unfinished: len(s.queue.rows)}
	now := s.now()
	older := func(at time.Time) { b.Oldest = max(b.Oldest, now.Sub(at)) }
	if b.Unrouted > 0 {
		older(s.outbox.pending[0].at)
	}
	for _, r := range s.queue.rows {
		older(r.queued)
	}
	return b, nil
}
