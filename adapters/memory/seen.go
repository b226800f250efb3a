package memory

import (
	"container/heap"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// Seen is a [receiver.Seen] in memory, for a receiver that is one process. What it
// remembers goes when its time is over, so it is as large as the messages of the last
// days and the things they were about. Safe for concurrent use.
type Seen struct {
	now func() time.Time

	mu       sync.Mutex // guards everything below
	ids      map[string]*sighting
	keys     map[string]*sighting
	expiries expiries
}

var _ receiver.Seen = (*Seen)(nil)

// sighting is what is known of one id or key.
type sighting struct {
	holder    uuid.UUID
	heldUntil time.Time
	until     time.Time // how long version, or that it is done, is remembered
	version   receiver.Version
}

func (s *sighting) held(now time.Time) bool       { return s != nil && now.Before(s.heldUntil) }
func (s *sighting) remembered(now time.Time) bool { return s != nil && now.Before(s.until) }

// end is when nothing of it counts any more.
func (s *sighting) end() time.Time {
	if s.heldUntil.After(s.until) {
		return s.heldUntil
	}
	return s.until
}

// NewSeen returns an empty memory. Of the options only Now counts.
func NewSeen(opts *Options) *Seen {
	s := &Seen{now: time.Now, ids: map[string]*sighting{}, keys: map[string]*sighting{}}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// begin checks a call and takes the lock; without an error, the caller gives it back.
func (s *Seen) begin(ctx context.Context, c receiver.Claim) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	if c.ID == "" || strings.ContainsRune(c.ID, 0) || strings.ContainsRune(c.Key, 0) {
		return time.Time{}, fmt.Errorf("%w: the id of a message is not empty, and has no NUL", healthlab.Invalid)
	}
	s.mu.Lock()
	now := instant(s.now())
	s.forget(now)
	return now, nil
}

// Claim asks for a message. See [receiver.Seen].
func (s *Seen) Claim(ctx context.Context, c receiver.Claim) (receiver.Verdict, error) {
	now, err := s.begin(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	defer s.mu.Unlock()
	id, key := s.ids[c.ID], s.keys[c.Key]
	if c.Key == "" {
		key = nil
	}
	switch {
	case id.remembered(now):
		return receiver.Repeated, nil
	case id.held(now):
		return receiver.Busy, nil
	case key.remembered(now) && c.Version.Before(key.version):
		return receiver.Outdated, nil
	case key.held(now):
		return receiver.Busy, nil
	}
	until := now.Add(c.Lease)
	s.change(s.ids, c.ID, func(e *sighting) { e.holder, e.heldUntil = c.Token, until })
	if c.Key != "" {
		s.change(s.keys, c.Key, func(e *sighting) { e.holder, e.heldUntil = c.Token, until })
	}
	return receiver.Fresh, nil
}

// Done remembers a message. See [receiver.Seen].
func (s *Seen) Done(ctx context.Context, c receiver.Claim) error {
	now, err := s.begin(ctx, c)
	if err != nil {
		return fmt.Errorf("done: %w", err)
	}
	defer s.mu.Unlock()
	s.change(s.ids, c.ID, func(e *sighting) {
		e.until = now.Add(c.Keep)
		e.drop(c.Token)
	})
	if c.Key != "" {
		s.change(s.keys, c.Key, func(e *sighting) {
			if !e.remembered(now) || !c.Version.Before(e.version) {
				e.version, e.until = c.Version, now.Add(c.KeepVersion)
			}
			e.drop(c.Token)
		})
	}
	return nil
}

// Release gives a claim back. See [receiver.Seen].
func (s *Seen) Release(ctx context.Context, c receiver.Claim) error {
	if _, err := s.begin(ctx, c); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	defer s.mu.Unlock()
	if e := s.ids[c.ID]; e != nil {
		e.drop(c.Token)
	}
	if e := s.keys[c.Key]; e != nil {
		e.drop(c.Token)
	}
	return nil
}

// drop ends what the token holds.
func (s *sighting) drop(token uuid.UUID) {
	if s.holder == token {
		s.holder, s.heldUntil = uuid.Nil, time.Time{}
	}
}

// change edits the entry of name in table, which is made if it is not there. Each entry
// is in the heap once, at a time not after its end.
func (s *Seen) change(table map[string]*sighting, name string, edit func(*sighting)) {
	e, there := table[name]
	if !there {
		e = &sighting{}
		table[name] = e
	}
	edit(e)
	if !there {
		heap.Push(&s.expiries, expiry{e.end(), table, name})
	}
}

// forget drops what has ended.
func (s *Seen) forget(now time.Time) {
	for len(s.expiries) > 0 && !s.expiries[0].at.After(now) {
		first := &s.expiries[0]
		if end := first.table[first.name].end(); end.After(now) {
			first.at = end
			heap.Fix(&s.expiries, 0)
			continue
		}
		delete(first.table, first.name)
		heap.Pop(&s.expiries)
	}
}

// expiries is a heap: the first expires next.
type expiries []expiry

type expiry struct {
	at    time.Time
	table map[string]*sighting
	name  string
}

func (h expiries) Len() int           { return len(h) }
func (h expiries) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h expiries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *expiries) Push(x any) { *h = append(*h, x.(expiry)) }

// Pop is for package heap.
func (h *expiries) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = expiry{}
	*h = old[:len(old)-1]
	return last
}
