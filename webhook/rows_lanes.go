package webhook

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// queue holds the lanes that a transaction has read and may have changed. [queue.flush] writes the changed ones.
type queue struct {
	tx    store.Tx
	now   time.Time
	keep  time.Duration            // how long log entries are stored
	ids   *store.Entry[routerRow]  // row with the last delivery id; nil unless it was locked
	drawn bool                     // ids was changed, because a delivery got an id
	lanes map[lanePlace]*laneState // lanes that the transaction has read
}

// laneState is a lane that a transaction has read, with its changes.
type laneState struct {
	store.Entry[laneRow]
	revision int64 // of the endpoint, if Claim chose the lane
	empty    bool
	changed  bool
	waited   bool                                // the lane had a waiting delivery when it was read
	same     map[string]*store.Entry[waitingRow] // waiting deliveries by key, as far as known; nil: there is none
	next     *store.Entry[waitingRow]            // first waiting delivery; nil if it was not read
}

func newQueue(tx store.Tx, keep time.Duration) *queue {
	return &queue{tx: tx, now: tx.Now(), keep: keep, lanes: map[lanePlace]*laneState{}}
}

// load reads and locks the lanes that the transaction has not read yet. A lane is a queue of deliveries to one
// endpoint, sent one after another.
func (q *queue) load(places []lanePlace) error {
	read := make([]store.Query, 0, len(places))
	asked := make([]lanePlace, 0, len(places))
	for _, p := range places {
		if _, known := q.lanes[p]; !known {
			q.lanes[p] = nil
			asked = append(asked, p)
			read = append(read, laneRows.One(p.key(), store.Held))
		}
	}
	if len(read) == 0 {
		return nil
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return err
	}
	for i, rows := range got {
		found, err := laneRows.Decoded(rows)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			q.lanes[asked[i]] = &laneState{Entry: store.Entry[laneRow]{Value: laneRow{lanePlace: asked[i]}}, empty: true}
			continue
		}
		q.add(found[0])
	}
	return nil
}

// add adds a lane that was read and locked to q.lanes, unless it is there, and returns its state.
func (q *queue) add(e *store.Entry[laneRow]) *laneState {
	if l := q.lanes[e.Value.lanePlace]; l != nil {
		return l
	}
	l := &laneState{Entry: *e, waited: e.Value.Waiting > 0}
	q.lanes[e.Value.lanePlace] = l
	return l
}

func (q *queue) lane(p lanePlace) (*laneState, error) {
	if err := q.load([]lanePlace{p}); err != nil {
		return nil, err
	}
	return q.lanes[p], nil
}

// flush writes the changed lanes, and deletes those that have become empty.
func (q *queue) flush() error {
	for _, l := range q.lanes {
		switch {
		case !l.changed:
		case !l.empty:
			if err := laneRows.Put(q.tx, &l.Entry); err != nil {
				return err
			}
		case l.Revision > 0:
			laneRows.Delete(q.tx, &l.Entry)
		}
	}
	if q.drawn {
		return routerRows.Put(q.tx, q.ids)
	}
	return nil
}

func (q *queue) nextDeliveryID() DeliveryID {
	q.drawn = true
	q.ids.Value.Last++
	return q.ids.Value.Last
}

func placeOf(to *Endpoint, e *healthlab.Event, mode healthlab.Mode) lanePlace {
	return lanePlace{to.Team, to.ID, LaneOf(*e, mode, to.OrderScope)}
}

// enqueue adds a delivery of an event to its lane, at the position that [Place] returns. An event about a deleted user
// is left out.
func (q *queue) enqueue(to *Endpoint, e *eventRow, mode healthlab.Mode, by Trigger) error {
	if u, err := q.lockUser(to.Team, e.User); err != nil || u.Known && !u.Live {
		return err
	}
	l, err := q.lane(placeOf(to, &e.Event, mode))
	if err != nil {
		return err
	}
	fresh := queued{
		User: e.User, Event: e.ID, Type: e.Type, Key: e.Key, Seq: e.Seq, Latest: SupersedeKey(e.Event, mode) != "", Trigger: by, Queued: q.now,
	}
	key := fresh.supersedeKey()
	var view LaneView
	var same *store.Entry[waitingRow]
	if !l.empty {
		v := &l.Value
		view.Head = &LaneEntry{Event: v.Head.Event, Key: v.Head.supersedeKey(), Seq: v.Head.Seq, Sending: v.leased(q.now)}
		view.Behind = v.Waiting > 0
		if same, err = q.waitingByKey(l, key); err != nil {
			return err
		}
		if same != nil {
			view.Same = &LaneEntry{Event: same.Value.Event, Key: key, Seq: same.Value.Seq}
		}
	}
	l.changed = true
	switch Place(view, key, e.Seq) {
	case BecomeHead:
		fresh.ID = q.nextDeliveryID()
		l.empty, l.Value = false, laneRow{lanePlace: l.Value.lanePlace, Head: fresh, Due: q.now}
		return nil
	case WaitBehind:
		fresh.ID = q.nextDeliveryID()
		return q.wait(l, &store.Entry[waitingRow]{Value: waitingRow{l.Value.lanePlace, fresh}})
	case ReplaceHead:
		return q.replaceHead(l, fresh)
	case ReplaceWaiting:
		if err := q.cancelled(l, &same.Value.queued, 0, ReasonSuperseded); err != nil {
			return err
		}
		fresh.ID = same.Value.ID
		same.Value.queued = fresh
		return waitingRows.Put(q.tx, same)
	case Drop:
		fresh.ID = q.nextDeliveryID()
		return q.cancelled(l, &fresh, 0, ReasonSuperseded)
	}
	return nil
}

// waitingByKey returns the waiting delivery of a [SupersedeKey] in a lane; nil if there is none.
func (q *queue) waitingByKey(l *laneState, key string) (*store.Entry[waitingRow], error) {
	if key == "" || l.Value.Waiting == 0 {
		return nil, nil
	}
	if w, known := l.same[key]; known || !l.waited {
		return w, nil
	}
	found, err := waitingRows.Find(q.tx, waitingByKeyQuery(&l.Value.lanePlace, key))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	l.remember(key, found[0])
	return found[0], nil
}

func waitingByKeyQuery(p *lanePlace, key string) store.Query {
	return store.Query{Key: waitingRows.Key(store.Key{Team: p.Team}), By: store.ByFirst, Lock: store.Held}.Equal(supersedes(p, key))
}

func (l *laneState) remember(key string, w *store.Entry[waitingRow]) {
	if l.same == nil {
		l.same = map[string]*store.Entry[waitingRow]{}
	}
	l.same[key] = w
}

// wait adds a delivery at the end of a lane.
func (q *queue) wait(l *laneState, w *store.Entry[waitingRow]) error {
	l.Value.Waiting++
	if key := w.Value.supersedeKey(); key != "" {
		l.remember(key, w)
		l.Value.Newer = l.Value.Newer || key == l.Value.Head.supersedeKey()
	}
	return waitingRows.Put(q.tx, w)
}

// replaceHead replaces the lane's first delivery by fresh, which gets the same id.
func (q *queue) replaceHead(l *laneState, fresh queued) error {
	was := &l.Value
	if err := q.cancelled(l, &was.Head, was.Attempts, ReasonSuperseded); err != nil {
		return err
	}
	fresh.ID = was.Head.ID
	l.Value = laneRow{lanePlace: was.lanePlace, Head: fresh, Claims: was.Claims, Due: q.now, Quiet: was.Quiet}
	return nil
}

// removeHead removes the first delivery of a lane. The next delivery becomes the first; it is due at once, but does not
// start before the lane's quiet time has ended.
func (q *queue) removeHead(l *laneState) error {
	l.changed = true
	if l.Value.Waiting == 0 {
		l.empty = true
		return nil
	}
	if err := q.loadNext(nil, l); err != nil {
		return err
	}
	next := l.next
	if l.empty = next == nil; l.empty {
		return nil
	}
	if _, err := q.lockUser(l.Value.Team, next.Value.User); err != nil { // the lane's user changes with its head
		return err
	}
	l.next = nil
	waitingRows.Delete(q.tx, next)
	l.remember(next.Value.Key, nil)
	was := &l.Value
	l.Value = laneRow{lanePlace: was.lanePlace, Head: next.Value.queued, Due: q.now, Quiet: was.Quiet, Waiting: was.Waiting - 1}
	return nil
}

// loadNext reads, in one round trip, the first waiting delivery of each lane, unless it was read before, and runs the
// queries in also.
func (q *queue) loadNext(also []store.Query, lanes ...*laneState) error {
	var read []store.Query
	var asked []*laneState
	for _, l := range lanes {
		if l.Value.Waiting > 0 && l.next == nil {
			asked, read = append(asked, l), append(read, nextOf(&l.Value.lanePlace))
		}
	}
	got, err := q.tx.Read(append(read, also...)...)
	if err != nil {
		return err
	}
	for i, l := range asked {
		found, err := waitingRows.Decoded(got[i])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			l.next = found[0]
		}
	}
	return nil
}

func nextOf(p *lanePlace) store.Query {
	q := store.Query{Key: waitingRows.Key(store.Key{Team: p.Team}), By: store.ByID, Lock: store.Held, Limit: 1}
	return prefixed(q, p.id())
}

// removeWaiting removes a waiting delivery from its lane.
func (q *queue) removeWaiting(w *store.Entry[waitingRow]) error {
	l, err := q.lane(w.Value.lanePlace)
	if err != nil {
		return err
	}
	waitingRows.Delete(q.tx, w)
	l.changed, l.next = true, nil
	l.Value.Waiting--
	if key := w.Value.supersedeKey(); key != "" {
		l.remember(key, nil)
		l.Value.Newer = l.Value.Newer && key != l.Value.Head.supersedeKey()
	}
	return nil
}

func (q *queue) lockUser(team healthlab.TeamID, user healthlab.UserID) (store.UserState, error) {
	if user.IsZero() {
		return store.UserState{}, nil
	}
	return store.LockUser(q.tx, team, user)
}

func (q *queue) cancelled(l *laneState, d *queued, attempts int, why Reason) error {
	return q.logAttempt(&l.Value.lanePlace, d, 0, Attempt{N: attempts, State: Cancelled, Reason: why})
}

// logAttempt adds the entry a to the log of attempts, for the delivery d in the lane p. token is that of the lease; 0
// without one.
func (q *queue) logAttempt(p *lanePlace, d *queued, token int64, a Attempt) error {
	if _, err := q.lockUser(p.Team, d.User); err != nil {
		return err
	}
	a.At, a.Endpoint, a.Event, a.Type, a.Delivery, a.Trigger = q.now, p.Endpoint, d.Event, d.Type, d.ID, d.Trigger
	return attemptRows.Insert(q.tx, &attemptRow{Team: p.Team, User: d.User, Attempt: a, Token: token, Keep: q.keep})
}

// unfinished is an unfinished delivery of an event: the first of its lane, or a waiting one.
type unfinished struct {
	lane    *laneState
	waiting *store.Entry[waitingRow] // nil for the first of the lane
}

func (q *queue) remove(u unfinished) error {
	if u.waiting != nil {
		return q.removeWaiting(u.waiting)
	}
	return q.removeHead(u.lane)
}

// candidates returns the lanes that may have deliveries of an event to an endpoint, whatever the mode and OrderScope:
// the event's own lane, that of its key if it has one, and that of its user if it has both.
func candidates(e *eventRow, to EndpointID) []lanePlace {
	out := []lanePlace{{e.Team, to, LaneOf(e.Event, healthlab.Independent, OrderKey)}}
	if e.Key != "" {
		out = append(out, lanePlace{e.Team, to, LaneOf(e.Event, healthlab.Ordered, OrderKey)})
		if !e.User.IsZero() {
			out = append(out, lanePlace{e.Team, to, LaneOf(e.Event, healthlab.Ordered, OrderUser)})
		}
	}
	return out
}

func waitingOf(e *eventRow, to EndpointID) store.Query {
	q := store.Query{Key: waitingRows.Key(store.Key{Team: e.Team}), By: store.BySecond, Lock: store.Held}
	return q.Equal(store.UUID(e.ID) + store.UUID(to.UUID))
}

// loadUnfinished reads the rows that [queue.unfinished] needs for the events and endpoints, in two round trips.
func (q *queue) loadUnfinished(events []*eventRow, endpoints []EndpointID) error {
	var places []lanePlace
	var read []store.Query
	for _, e := range events {
		for _, to := range endpoints {
			places = append(places, candidates(e, to)...)
			read = append(read, waitingOf(e, to))
		}
	}
	if err := q.load(places); err != nil || len(read) == 0 {
		return err
	}
	_, err := q.tx.Read(read...)
	return err
}

// unfinished returns the unfinished deliveries of an event to an endpoint.
func (q *queue) unfinished(e *eventRow, to EndpointID) ([]unfinished, error) {
	var out []unfinished
	for _, p := range candidates(e, to) {
		l, err := q.lane(p)
		if err != nil {
			return nil, err
		}
		if !l.empty && l.Value.Head.Event == e.ID {
			out = append(out, unfinished{lane: l})
		}
	}
	found, err := waitingRows.Find(q.tx, waitingOf(e, to))
	if err != nil {
		return nil, err
	}
	for _, w := range found {
		l, err := q.lane(w.Value.lanePlace)
		if err != nil {
			return nil, err
		}
		out = append(out, unfinished{l, w})
	}
	return out, nil
}
