package memory

import (
	"container/heap"
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
)

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
