package memory

import (
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// removeEvents removes the events about a user, delivered or not, with their deliveries and
// what receivers answered. The Seq of their keys goes on. It is called with the lock held.
func (s *Store) removeEvents(team healthlab.TeamID, user healthlab.UserID) {
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
			}
		}
	}
	o.stored = slices.DeleteFunc(o.stored, erased)
	o.pending = o.stored[len(o.stored)-unrouted:]
}
