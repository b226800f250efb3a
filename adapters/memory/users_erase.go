package memory

import (
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// eraseEvents removes what was ever announced about a user, sent or not: the events,
// their deliveries, and what receivers answered. It is called with the lock held.
func (s *Store) eraseEvents(team healthlab.TeamID, user healthlab.UserID) {
	o := &s.outbox
	gone := map[uuid.UUID]bool{}
	for _, e := range o.stored {
		if e.Team == team && e.User == user {
			gone[e.ID] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	s.queue.forget(gone, s.clock())
	for i := range s.queue.log {
		if gone[s.queue.log[i].Event] {
			s.queue.log[i].Head, s.queue.log[i].Response = nil, nil
		}
	}
	erased := func(e *stored) bool { return gone[e.ID] }
	unrouted := len(o.pending)
	for _, e := range o.pending {
		if erased(e) {
			unrouted--
		}
	}
	for _, e := range o.stored {
		if erased(e) {
			delete(o.byID, e.ID)
			k := teamKey{e.Team, e.Key}
			if o.byKey[k] = slices.DeleteFunc(o.byKey[k], erased); len(o.byKey[k]) == 0 {
				delete(o.byKey, k)
				delete(o.seq, k)
			}
		}
	}
	o.stored = slices.DeleteFunc(o.stored, erased)
	o.pending = o.stored[len(o.stored)-unrouted:]
}
