package memory

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// queue holds the endpoints, the lanes of each, and the log.
type queue struct {
	endpoints map[webhook.EndpointID]*target
	rows      map[webhook.DeliveryID]*row
	open      map[delivered][]*row // the same rows by what they deliver; mostly one
	lastRow   webhook.DeliveryID
	lastToken int64

	log    []webhook.Attempt                  // in the order in which they were made
	base   int64                              // how many lines of the log were forgotten
	logged map[webhook.Lease]time.Time        // leases whose outcome is in the log
	ended  map[delivered]ending               // how each finished delivery ended
	sent   map[uuid.UUID][]webhook.EndpointID // which endpoints ended has for an event
}

type delivered struct {
	endpoint webhook.EndpointID
	event    uuid.UUID
}

type ending struct {
	state  webhook.State
	reason webhook.Reason
}

func newQueue() *queue {
	return &queue{
		endpoints: map[webhook.EndpointID]*target{},
		rows:      map[webhook.DeliveryID]*row{},
		open:      map[delivered][]*row{},
		logged:    map[webhook.Lease]time.Time{},
		ended:     map[delivered]ending{},
		sent:      map[uuid.UUID][]webhook.EndpointID{},
	}
}

// endpoint returns the team's endpoint; it is called with the lock held.
func (q *queue) endpoint(team healthlab.TeamID, id webhook.EndpointID) (*target, error) {
	t, ok := q.endpoints[id]
	if !ok || t.Team != team {
		return nil, fmt.Errorf("endpoint: %w", healthlab.NotFound)
	}
	return t, nil
}

// push puts a new row at the end of a lane.
func (q *queue) push(t *target, l *lane, r *row) {
	q.lastRow++
	r.id, r.target, r.lane, r.index = q.lastRow, t, l, -1
	q.index(r)
	l.rows = append(l.rows, r)
	if len(l.rows) == 1 {
		heap.Push(&t.due, r)
	}
}

// index makes the row findable.
func (q *queue) index(r *row) {
	q.rows[r.id] = r
	d := delivered{r.target.ID, r.event.ID}
	q.open[d] = append(q.open[d], r)
}

// drop undoes index.
func (q *queue) drop(r *row) {
	delete(q.rows, r.id)
	d := delivered{r.target.ID, r.event.ID}
	rest := slices.DeleteFunc(slices.Clone(q.open[d]), func(o *row) bool { return o == r })
	if len(rest) == 0 {
		delete(q.open, d)
	} else {
		q.open[d] = rest
	}
}

// remove takes a row out of its lane. If it was the head, the next one is, due at once
// but for the lane's quiet time.
func (q *queue) remove(r *row, now time.Time) {
	t, l := r.target, r.lane
	q.drop(r)
	at := slices.Index(l.rows, r)
	l.rows = slices.Delete(l.rows, at, at+1)
	if at > 0 {
		return
	}
	heap.Remove(&t.due, r.index)
	if len(l.rows) == 0 {
		delete(t.lanes, l.name)
		return
	}
	next := l.rows[0]
	next.due, next.quiet = now, r.quiet
	heap.Push(&t.due, next)
}

// record writes the line of an outcome that was applied.
func (q *queue) record(r *row, o webhook.Outcome, state webhook.State, reason webhook.Reason, now time.Time) {
	q.logged[o.Delivery.Lease] = now
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: r.target.ID, Event: r.event.ID, Type: r.event.Type, Delivery: r.id,
		N: r.attempts, Trigger: r.trigger, Status: o.Status, Class: o.Class, Duration: o.Duration,
		State: state, Reason: reason, Head: slices.Clone(o.Head), Response: slices.Clone(o.Response),
	})
	if state.Final() {
		q.finish(r, state, reason)
	}
}

// recordLost writes the line of an outcome whose lease is gone, unless its line is
// there already.
func (q *queue) recordLost(o webhook.Outcome, now time.Time) {
	d := o.Delivery
	if _, ok := q.logged[d.Lease]; ok {
		return
	}
	q.logged[d.Lease] = now
	n := d.Attempts
	if o.Sent {
		n++
	}
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: d.Endpoint, Event: d.Event, Type: d.Type, Delivery: d.Lease.Delivery,
		N: n, Trigger: d.Trigger, Status: o.Status, Class: o.Class, Duration: o.Duration,
		State: webhook.Retrying, Reason: webhook.ReasonLeaseLost, Head: slices.Clone(o.Head), Response: slices.Clone(o.Response),
	})
}

// end writes the line of a row that ends without an outcome.
func (q *queue) end(r *row, state webhook.State, reason webhook.Reason, now time.Time) {
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: r.target.ID, Event: r.event.ID, Type: r.event.Type, Delivery: r.id,
		N: r.attempts, Trigger: r.trigger, State: state, Reason: reason,
	})
	q.finish(r, state, reason)
}

func (q *queue) finish(r *row, state webhook.State, reason webhook.Reason) {
	d := delivered{r.target.ID, r.event.ID}
	if _, ok := q.ended[d]; !ok {
		q.sent[d.event] = append(q.sent[d.event], d.endpoint)
	}
	q.ended[d] = ending{state, reason}
}

// cancel ends a row without an attempt.
func (q *queue) cancel(r *row, why webhook.Reason, now time.Time) {
	q.end(r, webhook.Cancelled, why, now)
	q.remove(r, now)
}

// forget ends what is unfinished of these events, and forgets how their deliveries
// ended.
func (q *queue) forget(events map[uuid.UUID]bool, now time.Time) {
	for _, r := range q.rows {
		if events[r.event.ID] {
			q.cancel(r, webhook.ReasonExpired, now)
		}
	}
	for id := range events {
		for _, to := range q.sent[id] {
			delete(q.ended, delivered{to, id})
		}
		delete(q.sent, id)
	}
}

// sweepLog forgets the lines written before limit.
func (q *queue) sweepLog(limit time.Time) {
	old := 0
	for old < len(q.log) && q.log[old].At.Before(limit) {
		old++
	}
	q.log = slices.Delete(q.log, 0, old)
	q.base += int64(old)
	for l, at := range q.logged {
		if at.Before(limit) {
			delete(q.logged, l)
		}
	}
}

// enqueue puts an event into its lane, where the rule of lanes says.
func (q *queue) enqueue(t *target, e *storedEvent, mode healthlab.Mode, by webhook.Trigger, now time.Time) {
	l := t.laneOf(webhook.LaneOf(e.Event, mode, t.OrderScope))
	fresh := &row{event: e, key: webhook.SupersedeKey(e.Event, mode), trigger: by, queued: now, due: now}
	var view webhook.LaneView
	same := 0
	if len(l.rows) > 0 {
		view.Head, view.Behind = l.rows[0].view(now), len(l.rows) > 1
		if fresh.key != "" {
			same = l.indexOfKey(fresh.key)
		}
		if same > 0 {
			view.Same = l.rows[same].view(now)
		}
	}
	switch webhook.Place(view, fresh.key, e.Seq) {
	case webhook.BecomeHead, webhook.WaitBehind:
		q.push(t, l, fresh)
	case webhook.ReplaceHead:
		q.replace(l.rows[0], fresh, now)
	case webhook.ReplaceWaiting:
		q.replace(l.rows[same], fresh, now)
	case webhook.Drop:
		q.push(t, l, fresh)
		q.cancel(fresh, webhook.ReasonSuperseded, now)
	}
}

// replace puts fresh into the place of old, which ends as superseded.
func (q *queue) replace(old, fresh *row, now time.Time) {
	q.end(old, webhook.Cancelled, webhook.ReasonSuperseded, now)
	q.drop(old)
	old.event, old.trigger, old.queued = fresh.event, fresh.trigger, fresh.queued
	old.attempts, old.starts, old.firstFailed = 0, 0, time.Time{}
	old.due, old.token = now, 0
	q.index(old)
	old.target.reorder(old)
}

// unfinished returns the endpoint's unfinished deliveries of the events.
func (q *queue) unfinished(t *target, events []*storedEvent) []*row {
	var out []*row
	for _, e := range events {
		out = append(out, q.open[delivered{t.ID, e.ID}]...)
	}
	return out
}

// target is an endpoint and its unfinished deliveries.
type target struct {
	webhook.Endpoint
	lanes map[webhook.Lane]*lane
	due   heads // the heads of the lanes, the first due at the top
}

// lane is a queue of deliveries. The first is the head.
type lane struct {
	name webhook.Lane
	rows []*row
}

// row is an unfinished delivery.
type row struct {
	id       webhook.DeliveryID
	target   *target
	lane     *lane
	event    *storedEvent
	key      string // the key within which it is superseded; empty if never
	trigger  webhook.Trigger
	queued   time.Time
	attempts int
	starts   int // claims since the last outcome

	firstFailed time.Time
	due         time.Time
	quiet       time.Time // before this the lane starts nothing
	leaseUntil  time.Time
	token       int64 // 0: no lease
	index       int   // in the heap of heads; -1 if it waits
}

// ready is when the row may be claimed, if it is a head.
func (r *row) ready() time.Time {
	if r.token != 0 {
		return r.leaseUntil
	}
	return latest(r.due, r.quiet)
}

func (r *row) leased(now time.Time) bool { return r.token != 0 && r.leaseUntil.After(now) }

func (r *row) view(now time.Time) *webhook.LaneEntry {
	return &webhook.LaneEntry{Event: r.event.ID, Key: r.key, Seq: r.event.Seq, Sending: r.leased(now)}
}

// laneOf returns the lane of this name, made if it is new.
func (t *target) laneOf(name webhook.Lane) *lane {
	l, ok := t.lanes[name]
	if !ok {
		l = &lane{name: name}
		t.lanes[name] = l
	}
	return l
}

// indexOfKey returns where in the lane a delivery of the key waits, or 0.
func (l *lane) indexOfKey(key string) int {
	for i := 1; i < len(l.rows); i++ {
		if l.rows[i].key == key {
			return i
		}
	}
	return 0
}

// supersedes reports whether a newer version of the head's key waits behind it.
func (l *lane) supersedes() bool {
	head := l.rows[0]
	if head.key == "" {
		return false
	}
	i := l.indexOfKey(head.key)
	return i > 0 && l.rows[i].event.Seq > head.event.Seq
}

// reorder puts a head in its place in the heap after its times have changed.
func (t *target) reorder(r *row) {
	if r.index >= 0 {
		heap.Fix(&t.due, r.index)
	}
}

// heads is a heap of the heads of one endpoint's lanes, by when they are ready; ties
// by who was there first.
type heads []*row

func (h heads) Len() int { return len(h) }

func (h heads) Less(i, j int) bool {
	if c := h[i].ready().Compare(h[j].ready()); c != 0 {
		return c < 0
	}
	return h[i].id < h[j].id
}

func (h heads) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *heads) Push(x any) {
	r, _ := x.(*row)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *heads) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	r.index = -1
	*h = old[:len(old)-1]
	return r
}
