package work

import (
	"container/heap"
	"time"
)

// Due is an index of keys by due time, for stores in memory: finding due keys does not scan all rows. The zero
// value is empty. It is not safe for concurrent use.
type Due[K comparable] struct {
	heap  dueHeap[K]
	byKey map[K]*dueKey[K]
	sets  int
}

// dueKey is an element of the heap: a key with its due time.
type dueKey[K comparable] struct {
	key   K
	at    time.Time
	set   int // number in the order in which keys were added
	place int // position in the heap
}

// Set adds a key with a due time, or replaces the due time of the key. The zero time removes the key.
func (d *Due[K]) Set(key K, at time.Time) {
	old := d.byKey[key]
	switch {
	case old == nil && at.IsZero():
	case old == nil:
		if d.byKey == nil {
			d.byKey = map[K]*dueKey[K]{}
		}
		d.sets++
		fresh := &dueKey[K]{key: key, at: at, set: d.sets}
		d.byKey[key] = fresh
		heap.Push(&d.heap, fresh)
	case at.IsZero():
		heap.Remove(&d.heap, old.place)
		delete(d.byKey, key)
	default:
		old.at = at
		heap.Fix(&d.heap, old.place)
	}
}

// First returns the key with the earliest due time, and this time. Among equal times it is the key that was added
// first. ok is false if there are no keys.
func (d *Due[K]) First() (key K, at time.Time, ok bool) {
	if len(d.heap) == 0 {
		return key, at, false
	}
	return d.heap[0].key, d.heap[0].at, true
}

// Until returns the keys due at or before an instant, in no particular order.
func (d *Due[K]) Until(now time.Time) []K {
	var out []K
	// The children of a heap element are due no earlier, so a branch ends at an element that is not due.
	below := []int{0}
	for len(below) > 0 {
		i := below[len(below)-1]
		below = below[:len(below)-1]
		if i >= len(d.heap) || d.heap[i].at.After(now) {
			continue
		}
		out = append(out, d.heap[i].key)
		below = append(below, 2*i+1, 2*i+2)
	}
	return out
}

// dueHeap is a heap of keys with the earliest due key at the top.
type dueHeap[K comparable] []*dueKey[K]

func (h dueHeap[K]) Len() int { return len(h) }

func (h dueHeap[K]) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].set < h[j].set
}

func (h dueHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *dueHeap[K]) Push(x any) {
	k, _ := x.(*dueKey[K])
	k.place = len(*h)
	*h = append(*h, k)
}

func (h *dueHeap[K]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
