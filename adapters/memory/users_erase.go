package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
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

func (v users) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	row := v.s.users.find(team, id)
	switch {
	case row == nil:
		return noUser()
	case row.user.Live():
		return fmt.Errorf("%w: a live user is deleted first", healthlab.Precondition)
	}
	if err := v.s.reports.erase(ctx, team, id); err != nil {
		return err
	}
	t := v.s.users.teams[team]
	t.rows = slices.DeleteFunc(t.rows, func(r *userRow) bool { return r == row })
	delete(v.s.users.byID, id)
	delete(v.s.users.deleted, id)
	v.s.data.erase(userKey{team, id})
	v.s.linking.erase(team, id)
	v.s.pulls.erase(team, id)
	v.s.bulk.erase(id)
	v.s.orders.erase(team, id)
	v.s.persons.erase(team, id)
	v.s.reviews.erase(team, id)
	v.s.eraseLabRecords(team, id)
	v.s.continuous.erase(team, id)
	v.s.exports.erase(team, id)
	v.s.removeEvents(team, id)
	for k, user := range v.s.outbox.about {
		if k.team == team && user == id {
			delete(v.s.outbox.seq, k)
			delete(v.s.outbox.about, k)
		}
	}
	return nil
}

// erase removes the orders of a user, and what the requests that placed them were
// answered. It is called with the lock held.
func (t *orderTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	gone := map[orders.OrderID]bool{}
	for id, kept := range t.byID {
		if kept.read.TeamID != team || kept.read.UserID != user {
			continue
		}
		gone[id] = true
		delete(t.byID, id)
		if s := kept.read.SampleID; s != nil {
			delete(t.bySample, *s)
		}
		t.release(&kept.read)
		t.dropTerms(kept)
		t.schedule(id, nil)
		name := teamTransaction{team, kept.read.OrderTransaction.ID}
		t.byTransaction[name] = slices.DeleteFunc(t.byTransaction[name], func(member orders.OrderID) bool { return member == id })
		if len(t.byTransaction[name]) == 0 {
			delete(t.byTransaction, name)
		}
	}
	for scope, k := range t.keys {
		if scope.Team == team && (gone[k.order] || k.user == user) {
			delete(t.keys, scope)
		}
	}
}

// dropAnswers takes away the answers about a user. It is called with the lock held.
func (t *orderTable) dropAnswers(team healthlab.TeamID, user healthlab.UserID) {
	for scope, k := range t.keys {
		order := t.byID[k.order]
		if scope.Team == team && k.answer != nil && (k.user == user || order != nil && order.read.UserID == user) {
			k.answer = nil
		}
	}
}
