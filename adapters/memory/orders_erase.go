package memory

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

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
