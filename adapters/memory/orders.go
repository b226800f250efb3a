package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/personkey"
)

type ordersStore struct {
	*database
	outbox *outbox
	orders *orderTable
}

func (v ordersStore) Insert(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	if r.TeamID.IsZero() || r.ID.IsZero() {
		return orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.mu.Unlock()
	if err := v.orders.checkUser(&r); err != nil {
		return orders.Record{}, err
	}
	if v.orders.byID[r.ID] != nil {
		return orders.Record{}, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	r.Revision = 0
	return v.write(ctx, r, change)
}

func (v ordersStore) InsertAfter(ctx context.Context, parent orders.OrderID, child orders.Record, change orders.PairChange) (orders.Record, orders.Record, error) {
	if child.TeamID.IsZero() || child.ID.IsZero() {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	defer v.mu.Unlock()
	t := v.orders
	p, err := t.get(ctx, child.TeamID, parent)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if t.byID[child.ID] != nil {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	child.Revision = 0
	child.OrderTransaction = transactionWith(&p, &child)
	wasParent, wasChild, revision := identityOf(&p), identityOf(&child), p.Revision
	p.NextEventID = t.nextEventID(p.TeamID)
	child.NextEventID = p.NextEventID + eventRoom
	now := v.clock()
	p.StoreTime, child.StoreTime = now, now
	events, err := change(&p, &child)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	keptParent, err := t.check(ctx, p, wasParent, revision)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if !child.OrderTransaction.ID.IsZero() {
		wasChild.transaction = child.OrderTransaction.ID // it may be one of its own
	}
	keptChild, err := t.check(ctx, child, wasChild, 0)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if s := child.SampleID; s != nil && p.SampleID != nil && *s == *p.SampleID {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: another order has this sample id", healthlab.Conflict)
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	t.keep(keptParent)
	t.keep(keptChild)
	if p, err = t.load(ctx, keptParent); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	child, err = t.load(ctx, keptChild)
	return p, child, err
}

func (v ordersStore) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.mu.Unlock()
	return v.orders.get(ctx, team, id)
}

func (v ordersStore) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.mu.Unlock()
	r, err := v.orders.get(ctx, team, id)
	if err != nil {
		return orders.Record{}, err
	}
	return v.write(ctx, r, change)
}

func (v ordersStore) CountByStatus(ctx context.Context, team healthlab.TeamID) (map[orders.LowLevel]int, error) {
	q, err := orders.Query{Team: team}.Normal()
	if err != nil {
		return nil, err
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	counts := map[orders.LowLevel]int{}
	for _, kept := range v.orders.byID {
		if q.MatchClear(&kept.read.Order) && !v.orders.ofDeletedUser(&kept.read) {
			counts[kept.read.LowLevel()]++
		}
	}
	return counts, nil
}

func (v ordersStore) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.Page{}, err
	}
	if err := v.lock(ctx); err != nil {
		return orders.Page{}, err
	}
	defer v.mu.Unlock()
	found, err := v.orders.matching(ctx, &q)
	if err == nil {
		err = v.orders.sort(ctx, &q, found)
	}
	if err != nil {
		return orders.Page{}, err
	}
	page := orders.Page{Orders: []orders.Order{}, Total: len(found)}
	first := min((q.Page-1)*q.Size, len(found))
	for _, kept := range found[first:min(first+q.Size, len(found))] {
		r, err := v.orders.load(ctx, kept)
		if errors.Is(err, personkey.ErrErased) {
			continue
		}
		if err != nil {
			return orders.Page{}, err
		}
		page.Orders = append(page.Orders, r.Order)
	}
	return page, nil
}

// matching returns the orders that a query asks for, in no order.
func (t *orderTable) matching(ctx context.Context, q *orders.Query) ([]*keptOrder, error) {
	all, err := t.personKeys.Tokens(ctx, q.Team, q.Terms())
	if err != nil {
		return nil, err
	}
	search, err := tokenLists(ctx, t.personKeys, q.Team, q.SearchTerms())
	if err != nil {
		return nil, err
	}
	among := t.byID
	for _, token := range all {
		if with := t.byTerm[teamTerm{q.Team, token}]; len(with) < len(among) {
			among = with
		}
	}
	var found []*keptOrder
	for _, kept := range among {
		if q.MatchClear(&kept.read.Order) && !t.ofDeletedUser(&kept.read) && hasTokens(kept.terms, all) &&
			(len(search) == 0 || q.MatchID(&kept.read.Order) || hasAnyTokens(kept.terms, search)) {
			found = append(found, kept)
		}
	}
	return found, nil
}

// sort orders a list. Names are decrypted for it.
func (t *orderTable) sort(ctx context.Context, q *orders.Query, found []*keptOrder) error {
	if err := q.CheckSorted(len(found)); err != nil {
		return err
	}
	by := make(map[*keptOrder]*orders.Order, len(found))
	for _, kept := range found {
		by[kept] = &kept.read.Order
		if q.Sort == orders.SortPatientName {
			r, err := t.decode(ctx, kept)
			if err != nil && !errors.Is(err, personkey.ErrErased) { // the order is left out when it is read
				return err
			}
			by[kept] = &r.Order
		}
	}
	slices.SortFunc(found, func(a, b *keptOrder) int {
		if q.Less(by[a], by[b]) {
			return -1
		}
		return 1
	})
	return nil
}

func (v ordersStore) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]orders.OrderID, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	ids := []orders.OrderID{}
	for id, kept := range v.orders.byID {
		if kept.read.TeamID == team && kept.read.UserID == user {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b orders.OrderID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return ids, nil
}

func (v ordersStore) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.mu.Unlock()
	if err := healthlab.CheckText(sampleID); err != nil {
		return orders.Record{}, err
	}
	id, ok := v.orders.bySample[sampleID]
	if !ok {
		return orders.Record{}, fmt.Errorf("%w: sample", healthlab.NotFound)
	}
	return v.orders.get(ctx, team, id)
}

func (v ordersStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	due := v.orders.due(n, now, &v.orders.labDue, func(r *orders.Record) time.Time { return dueUnlessLeased(r.Lab.Due, r.Lab.Lease, at) })
	return v.orders.claim(ctx, due, func(r *orders.Record) {
		r.Lab.Lease = at.Add(lease)
		r.Lab.Attempts++
		r.Lab.Started = true
	})
}

func (v ordersStore) ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	due := v.orders.due(n, now, &v.orders.notificationsDue, func(r *orders.Record) time.Time {
		if v.orders.ofDeletedUser(r) {
			return time.Time{}
		}
		return dueUnlessLeased(r.Notifications.Due, r.Notifications.Lease, at)
	})
	return v.orders.claim(ctx, due, func(r *orders.Record) { r.Notifications.Lease = at.Add(lease) })
}

func (v ordersStore) ClaimFeed(ctx context.Context, lab string, lease time.Duration) (string, time.Time, error) {
	if err := v.lock(ctx); err != nil {
		return "", time.Time{}, err
	}
	defer v.mu.Unlock()
	f, now := v.orders.feeds[lab], v.clock()
	if f.until.After(now) {
		return "", time.Time{}, nil
	}
	f.until = now.Add(lease)
	v.orders.feeds[lab] = f
	return f.cursor, f.until, nil
}

func (v ordersStore) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	f, ok := v.orders.feeds[lab]
	if !ok || !f.until.Equal(instant(until)) {
		return fmt.Errorf("%w: another worker has the feed", healthlab.Precondition)
	}
	v.orders.feeds[lab] = feed{cursor: cursor}
	return nil
}

// write runs change on r, checks the outcome, and keeps it with its events. It is
// called with the lock held; an error means that nothing was written.
func (v ordersStore) write(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	t := v.orders
	was, revision := identityOf(&r), r.Revision
	r.NextEventID, r.StoreTime = t.nextEventID(r.TeamID), v.clock()
	events, err := change(&r)
	if err != nil {
		return orders.Record{}, err
	}
	kept, err := t.check(ctx, r, was, revision)
	if err != nil {
		return orders.Record{}, err
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return orders.Record{}, err
	}
	t.keep(kept)
	return t.load(ctx, kept)
}
