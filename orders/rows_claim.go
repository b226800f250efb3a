package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Claim implements [Store].
func (v orderRows) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error) {
	return v.claim(ctx, labWork, n, now, func(r *Record, at time.Time) bool {
		r.Lab.Lease, r.Lab.Started = at.Add(lease), true
		r.Lab.Attempts++
		return true
	})
}

// ClaimNotifications implements [Store].
func (v orderRows) ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error) {
	return v.claim(ctx, notificationWork, n, now, func(r *Record, at time.Time) bool {
		r.Notifications.Lease = at.Add(lease)
		return !r.UserDeleted
	})
}

// ClaimSimulations implements [Store].
func (v orderRows) ClaimSimulations(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error) {
	return v.claim(ctx, simulationWork, n, now, func(r *Record, at time.Time) bool {
		r.SimulationWork.Lease = at.Add(lease)
		return !r.UserDeleted
	})
}

// ClaimVisits implements [VisitStore].
func (v orderRows) ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error) {
	return v.claim(ctx, visitWork, n, now, func(r *Record, at time.Time) bool {
		r.VisitWork.Lease = at.Add(lease)
		return true
	})
}

// claim claims up to n orders that are due for a kind of work. take leases an order at an instant of the
// store's clock; an order for which it returns false is not claimed.
func (v orderRows) claim(ctx context.Context, t *workTable, n int, now time.Time, take func(r *Record, at time.Time) bool) (out []Record, err error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		claimed, err := t.candidates(tx, n, now, take)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			if err := orderTable.Put(tx, c.order); err != nil {
				return err
			}
			_, lease := t.times(&c.order.Value)
			c.work.Value.Lease = *lease
			if err := t.Put(tx, c.work); err != nil {
				return err
			}
		}
		var keys []store.Key
		for _, c := range claimed {
			keys = append(keys, orderKey(c.order.Value.TeamID, c.order.Value.ID))
		}
		out, err = loadOrders(tx.Read, keys...)
		return err
	})
	return out, err
}

// claimedOrder is a leased order with its row of work.
type claimedOrder struct {
	order *store.Entry[Record]
	work  *store.Entry[orderWork]
}

// candidates leases up to n orders, the longest due first. It skips orders that another process has leased or
// is changing, so it may read more than n rows.
func (t *workTable) candidates(tx store.Tx, n int, now time.Time, take func(r *Record, at time.Time) bool) ([]claimedOrder, error) {
	var out []claimedOrder
	seen := map[OrderID]bool{}
	for limit := n; ; limit *= 2 {
		due, err := t.Find(tx, store.Query{By: store.ByDue, Until: now, Limit: limit, Lock: store.Skip})
		if err != nil {
			return nil, err
		}
		var free []*store.Entry[orderWork]
		for _, w := range due {
			if !seen[w.Value.Order] && !w.Value.Lease.After(tx.Now()) {
				free = append(free, w)
			}
			seen[w.Value.Order] = true
		}
		more, err := leaseOrders(tx, free, n-len(out), take)
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) == n || len(due) < limit {
			return out, nil
		}
	}
}

// leaseOrders leases up to n of the orders that the rows in free name. Each row is the background work of one
// order.
func leaseOrders(tx store.Tx, free []*store.Entry[orderWork], n int, take func(r *Record, at time.Time) bool) ([]claimedOrder, error) {
	var ask []store.Query
	for _, w := range free {
		ask = append(ask, orderTable.One(orderKey(w.Value.Team, w.Value.Order), store.Skip),
			store.User(w.Value.Team, w.Value.User).Unlocked())
	}
	if len(ask) == 0 {
		return nil, nil
	}
	got, err := tx.Read(ask...)
	if err != nil {
		return nil, err
	}
	var out []claimedOrder
	for i, w := range free {
		order, err := orderTable.Decoded(got[2*i])
		if err != nil {
			return nil, err
		}
		if len(order) == 0 {
			continue
		}
		u := store.StateOf(got[2*i+1])
		order[0].Value.UserDeleted = u.Known && !u.Live
		if len(out) < n && take(&order[0].Value, tx.Now()) {
			out = append(out, claimedOrder{order[0], w})
		}
	}
	return out, nil
}

// ClaimFeed implements [Store].
func (v orderRows) ClaimFeed(ctx context.Context, lab string, lease time.Duration) (cursor string, until time.Time, err error) {
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		cursor, until = "", time.Time{}
		f, err := labFeeds.Get(tx, feedKey(lab), store.Held)
		if err != nil {
			return err
		}
		if f == nil {
			f = &store.Entry[labFeed]{Value: labFeed{Lab: lab}}
		}
		if f.Value.Until.After(tx.Now()) {
			return nil
		}
		f.Value.Until = healthlab.At(tx.Now().Add(lease)).Time
		cursor, until = f.Value.Cursor, f.Value.Until
		return labFeeds.Put(tx, f)
	})
	return cursor, until, err
}

// MoveFeed implements [Store].
func (v orderRows) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		f, err := labFeeds.Get(tx, feedKey(lab), store.Held)
		if err != nil {
			return err
		}
		if f == nil || !f.Value.Until.Equal(healthlab.At(until).Time) {
			return fmt.Errorf("%w: the lease of the laboratory's feed has passed to another process", healthlab.Precondition)
		}
		f.Value.Cursor, f.Value.Until = cursor, time.Time{}
		return labFeeds.Put(tx, f)
	})
}
