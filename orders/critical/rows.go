package critical

import (
	"context"
	"encoding/base64"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/store"
)

// First byte of the second index value: whether the loop waits for an acknowledgement.
const (
	waiting = "w"
	ended   = "e"
)

// loopTable stores loops. Index[0] is the order's id, then the loop's number. Index[1] is whether the loop waits, then
// the time of opening, then the loop's id.
var loopTable = store.Table[Record]{Name: "critical_result", Row: func(r *Record) store.Row {
	state := ended
	if r.Status.Waits() {
		state = waiting
	}
	id := store.UUID(r.ID.UUID)
	return store.Row{
		Key:   store.Key{Team: r.Team, User: r.UserID, ID: id},
		Due:   r.Due,
		Index: [2]string{orderIndex(r.OrderID) + store.Int(int64(r.Number)), state + store.Time(r.OpenedAt.Time) + id},
	}
}}

func orderIndex(order uuid.UUID) string { return store.UUID(order) }

func loopKey(team healthlab.TeamID, id LoopID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// Tables declares the table of [NewStore] and [Follow].
func Tables() []store.Definition { return []store.Definition{loopTable.Definition()} }

// OfOrder returns the query for the loops of an order, sorted by number, for callers that read more rows in the
// same round trip. [HistoryOf] reads its result.
func OfOrder(team healthlab.TeamID, order uuid.UUID) store.Query {
	from := orderIndex(order)
	return store.Query{Key: loopTable.Key(store.Key{Team: team}), By: store.ByFirst, From: from, To: store.End(from)}
}

// HistoryOf returns the history of all loops of an order, oldest first, from the rows that the query [OfOrder]
// returned.
func HistoryOf(rows []store.Row) ([]OrderEntry, error) {
	entries, err := loopTable.Decoded(rows)
	if err != nil {
		return nil, err
	}
	var out []OrderEntry
	for _, e := range entries {
		for _, h := range e.Value.History {
			out = append(out, OrderEntry{ID: e.Value.ID, At: h.At, Event: h.Event, Revision: h.Revision, Step: h.Step, To: h.To, By: h.By, Reason: h.Reason})
		}
	}
	slices.SortStableFunc(out, func(a, b OrderEntry) int { return a.At.Compare(b.At.Time) })
	return out, nil
}

// Follow applies a new report to the loops of its order: it opens, changes and withdraws loops. It appends their events
// to events; nil means that no events are written. The caller runs it in the transaction that stores the results, after
// it has read the user, and the order with the lock [store.Held].
func Follow(ctx context.Context, tx store.Tx, events store.Events, rep Report) error {
	ask := OfOrder(rep.Team, rep.Order)
	ask.Lock = store.Held
	entries, err := loopTable.Find(tx, ask)
	if err != nil {
		return err
	}
	var loops []*Record
	had := make([]int, len(entries)) // length of the history of each loop
	for i, e := range entries {
		loops, had[i] = append(loops, &e.Value), len(e.Value.History)
	}
	for _, l := range applyReport(loops, rep) {
		e, n := &store.Entry[Record]{Value: *l}, 0
		if i := slices.Index(loops, l); i >= 0 {
			e.Revision, n = entries[i].Revision, had[i]
		}
		if err := write(ctx, tx, events, e, n); err != nil {
			return err
		}
	}
	return nil
}

// write stores a loop, and appends the events of its history from index n on, as eventsFrom returns them.
func write(ctx context.Context, tx store.Tx, events store.Events, e *store.Entry[Record], n int) error {
	e.Value.Due = healthlab.At(e.Value.Due).Time
	list, err := e.Value.eventsFrom(n)
	if err != nil {
		return err
	}
	if err := loopTable.Put(tx, e); err != nil {
		return err
	}
	return store.AppendEvents(ctx, events, tx, list)
}

// StoreOptions are the options of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events stores the events of changes. Default: no event is written.
	Events store.Events
}

// NewStore returns a Store over a store whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) Store {
	v := rows{s: s}
	if opts != nil {
		v.events = opts.Events
	}
	return v
}

type rows struct {
	s      store.Store
	events store.Events
}

// Get implements [Store].
func (v rows) Get(ctx context.Context, team healthlab.TeamID, id LoopID) (Record, error) {
	l, err := loopTable.LookOne(ctx, v.s, loopTable.Key(loopKey(team, id)))
	if err != nil {
		return Record{}, err
	}
	if l == nil {
		return Record{}, errNoLoop()
	}
	got, err := v.s.Read(ctx, store.User(team, l.Value.UserID))
	if err != nil {
		return Record{}, err
	}
	if u := store.StateOf(got[0]); u.Known && !u.Live {
		return Record{}, errNoLoop()
	}
	return l.Value, nil
}

// scanPage is the number of loops that are read at a time.
const scanPage = 200

// List implements [Store].
func (v rows) List(ctx context.Context, q Query) (Page, error) {
	ask := store.Query{Key: loopTable.Key(store.Key{Team: q.Team}), By: store.BySecond}
	index := 1
	switch {
	case q.Order != uuid.Nil:
		ask, index = OfOrder(q.Team, q.Order), 0
	case q.Status != "" && !q.Status.Waits():
		ask.From, ask.To = ended, store.End(ended)
	default:
		ask.From, ask.To = waiting, store.End(waiting)
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(after) != 0 && len(after) != len(loopTable.Row(&Record{}).Index[index]) {
		return Page{}, catalogue.BadCursor()
	}
	deleted, err := store.DeletedIDs(ctx, v.s, q.Team)
	if err != nil {
		return Page{}, err
	}
	page := Page{Loops: []Loop{}}
	for last, end := "", ""; ; {
		list, err := loopTable.Look(ctx, v.s, ask.After(last, scanPage))
		if err != nil {
			return Page{}, err
		}
		for _, e := range list {
			last = loopTable.Row(&e.Value).Index[index]
			if deleted[e.Value.UserID] || !q.match(&e.Value) {
				continue
			}
			page.Total++
			switch {
			case last <= string(after):
			case len(page.Loops) < q.Limit:
				page.Loops, end = append(page.Loops, e.Value.Loop), last
			default:
				page.Next = base64.RawURLEncoding.EncodeToString([]byte(end))
			}
		}
		if len(list) < scanPage {
			return page, nil
		}
	}
}

// Update implements [Store].
func (v rows) Update(ctx context.Context, team healthlab.TeamID, id LoopID, change func(*Record) error) (out Record, err error) {
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, err := loopTable.Get(tx, loopKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			return errNoLoop()
		}
		u, err := store.LockUser(tx, team, e.Value.UserID)
		if err != nil {
			return err
		}
		if u.Known && !u.Live {
			return errNoLoop()
		}
		n := len(e.Value.History)
		if err := change(&e.Value); err != nil {
			return err
		}
		if err := write(ctx, tx, v.events, e, n); err != nil {
			return err
		}
		out, err = loopTable.Copy(&e.Value)
		return err
	})
	return out, err
}

// Claim implements [Store]. Loops of deleted users are postponed to the end of the lease.
func (v rows) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) (out []Record, err error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		due, err := loopTable.Find(tx, store.Query{By: store.ByDue, Until: now, Limit: n, Lock: store.Skip})
		if err != nil || len(due) == 0 {
			return err
		}
		var ask []store.Query
		for _, e := range due {
			ask = append(ask, store.User(e.Value.Team, e.Value.UserID))
		}
		users, err := tx.Read(ask...)
		if err != nil {
			return err
		}
		until := tx.Now()
		if now.After(until) {
			until = now
		}
		for i, e := range due {
			e.Value.Due = healthlab.At(until.Add(lease)).Time
			if err := loopTable.Put(tx, e); err != nil {
				return err
			}
			if u := store.StateOf(users[i]); u.Known && !u.Live {
				continue
			}
			out = append(out, e.Value)
		}
		return nil
	})
	return out, err
}
