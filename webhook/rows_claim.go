package webhook

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/store"
)

const (
	dueLook     = 1000 // number of lanes that Due reads before it queries each endpoint
	probePage   = 500  // number of lanes that are read at a time
	targetsPage = 500
)

func claimableLanes(to *targetRow, state string, now time.Time) store.Query {
	from := claimable(to.ID, state)
	return store.Query{
		Key: laneRows.Key(store.Key{Team: to.Team}), By: store.ByFirst, From: from, To: from + store.Time(now.Add(time.Microsecond)),
	}
}

// leasedAfter returns the query for one lane of an endpoint whose lease ends after now.
func leasedAfter(to *targetRow, now time.Time) store.Query {
	from := claimable(to.ID, laneLeased)
	return store.Query{
		Key: laneRows.Key(store.Key{Team: to.Team}), By: store.ByFirst, From: from + store.Time(now.Add(time.Microsecond)), To: store.End(from),
		Limit: 1, Bare: true,
	}.Unlocked()
}

// Due implements [Deliveries].
func (s *Store) Due(ctx context.Context) ([]EndpointID, error) {
	var due []EndpointID
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) error { // reads the store's clock
		due = nil
		got, err := tx.Read(store.Query{
			Key: laneRows.Key(store.Key{}), By: store.ByDue, Until: tx.Now(), Limit: dueLook, Lock: store.Plain, Bare: true,
		})
		if err != nil {
			return err
		}
		if len(got[0]) == dueLook { // lanes of a few endpoints may hide other endpoints
			due, err = dueOfEach(tx)
			return err
		}
		to := map[EndpointID]bool{}
		for i := range got[0] {
			to[placeOfRow(&got[0][i]).Endpoint] = true
		}
		targets, err := targetsOf(tx, slices.Collect(maps.Keys(to)))
		if err != nil {
			return err
		}
		due, err = claimableTargets(tx, targets)
		return err
	})
	return due, err
}

// targetsOf reads the rows of endpoints. It omits endpoints that do not exist.
func targetsOf(tx store.Tx, ids []EndpointID) ([]*targetRow, error) {
	read := make([]store.Query, len(ids))
	for i, id := range ids {
		read[i] = targetRows.One(targetKey(id), store.Plain)
	}
	got, err := tx.Read(read...)
	if err != nil {
		return nil, err
	}
	var out []*targetRow
	for _, rows := range got {
		found, err := targetRows.Decoded(rows)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			out = append(out, &t.Value)
		}
	}
	return out, nil
}

// dueOfEach returns the endpoints with claimable deliveries. It reads at most two lanes of each endpoint, and a third
// of an endpoint on probation.
func dueOfEach(tx store.Tx) ([]EndpointID, error) {
	var due []EndpointID
	all := store.Query{Key: targetRows.Key(store.Key{}), By: store.ByID, Lock: store.Plain}
	for last := ""; ; {
		page, err := targetRows.Find(tx, all.After(last, targetsPage))
		if err != nil {
			return nil, err
		}
		var read []store.Query
		for _, t := range page {
			for _, state := range []string{laneDue, laneLeased} {
				one := claimableLanes(&t.Value, state, tx.Now()).Unlocked()
				one.Limit, one.Bare = 1, true
				read = append(read, one)
			}
			last = store.UUID(t.Value.ID.UUID)
		}
		got, err := tx.Read(read...)
		if err != nil {
			return nil, err
		}
		var ready []*targetRow
		for i, t := range page {
			if len(got[2*i])+len(got[2*i+1]) > 0 {
				ready = append(ready, &t.Value)
			}
		}
		more, err := claimableTargets(tx, ready)
		if err != nil {
			return nil, err
		}
		due = append(due, more...)
		if len(page) < targetsPage {
			return due, nil
		}
	}
}

// claimableTargets returns those of targets that may receive a delivery now: they are not paused, and none on probation
// has a leased delivery.
func claimableTargets(tx store.Tx, targets []*targetRow) ([]EndpointID, error) {
	var out []EndpointID
	var probed []EndpointID
	var read []store.Query
	for _, t := range targets {
		switch {
		case t.PausedUntil.After(tx.Now()):
		case t.PauseStep > 0:
			probed, read = append(probed, t.ID), append(read, leasedAfter(t, tx.Now()))
		default:
			out = append(out, t.ID)
		}
	}
	if len(read) == 0 {
		return out, nil
	}
	got, err := tx.Read(read...)
	if err != nil {
		return nil, err
	}
	for i, id := range probed {
		if len(got[i]) == 0 {
			out = append(out, id)
		}
	}
	return out, nil
}

// Claim implements [Deliveries].
func (s *Store) Claim(ctx context.Context, c Claim) (Claimed, error) {
	var claimed Claimed
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) (err error) {
		claimed = Claimed{At: tx.Now()}
		if len(c.Quotas) == 0 {
			return nil
		}
		q := newQueue(tx, s.events.retention)
		lanes, err := q.claimable(c.Quotas)
		if err != nil || len(lanes) == 0 {
			return err
		}
		if claimed.Deliveries, err = q.lease(lanes, c.Lease); err != nil {
			return err
		}
		return q.flush()
	})
	if err != nil {
		return Claimed{}, err
	}
	return claimed, nil
}

// claimable locks and returns lanes whose first delivery may be claimed, at most quota.Max of each endpoint.
func (q *queue) claimable(quotas []Quota) ([]*laneState, error) {
	most := map[EndpointID]int{}
	for _, quota := range quotas {
		most[quota.Endpoint] += quota.Max
	}
	targets, err := targetsOf(q.tx, slices.Collect(maps.Keys(most)))
	if err != nil {
		return nil, err
	}
	var from []*targetRow
	var read []store.Query
	var out []*laneState
	for _, t := range targets {
		switch {
		case t.PausedUntil.After(q.now) || most[t.ID] <= 0:
		case t.PauseStep > 0:
			l, err := q.probe(t)
			if err != nil {
				return nil, err
			}
			if l != nil {
				l.revision = t.Revision
				out = append(out, l)
			}
		default:
			from = append(from, t)
			for _, state := range []string{laneDue, laneLeased} {
				ready := claimableLanes(t, state, q.now)
				ready.Limit, ready.Lock = most[t.ID], store.Skip
				read = append(read, ready)
			}
		}
	}
	if len(read) == 0 {
		return out, nil
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	for i, t := range from {
		ready, err := laneRows.Decoded(slices.Concat(got[2*i], got[2*i+1]))
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(ready, func(a, b *store.Entry[laneRow]) int { return a.Value.claimableAt().Compare(b.Value.claimableAt()) })
		for _, l := range ready[:min(most[t.ID], len(ready))] {
			lane := q.add(l)
			lane.revision = t.Revision
			out = append(out, lane)
		}
	}
	return out, nil
}

// probe returns the lane to send from for an endpoint on probation: the claimable one with the fewest attempts. It
// returns nil if there is none, if a delivery of the endpoint is leased, or if another transaction probes the endpoint.
func (q *queue) probe(t *targetRow) (*laneState, error) {
	got, err := q.tx.Read(targetRows.One(targetKey(t.ID), store.Skip))
	if err != nil || len(got[0]) == 0 {
		return nil, err
	}
	got, err = q.tx.Read(leasedAfter(t, q.now))
	if err != nil || len(got[0]) > 0 {
		return nil, err
	}
	var best *laneRow
	for _, state := range []string{laneDue, laneLeased} {
		ready := claimableLanes(t, state, q.now).Unlocked()
		for last := ""; best == nil || best.Attempts > 0; {
			page, err := laneRows.Find(q.tx, ready.After(last, probePage))
			if err != nil {
				return nil, err
			}
			for _, l := range page {
				if best == nil || cmp.Or(cmp.Compare(l.Value.Attempts, best.Attempts), l.Value.claimableAt().Compare(best.claimableAt())) < 0 {
					best = &l.Value
				}
				last = laneRows.Row(&l.Value).Index[0]
			}
			if len(page) < probePage {
				break
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	held, err := laneRows.Get(q.tx, best.key(), store.Skip)
	if err != nil || held == nil || held.Value.claimableAt().After(q.now) {
		return nil, err
	}
	return q.add(held), nil
}

// lease leases the first deliveries of lanes and returns them with their messages.
func (q *queue) lease(lanes []*laneState, lease time.Duration) ([]Delivery, error) {
	read := make([]store.Query, len(lanes))
	for i, l := range lanes {
		read[i] = eventRows.One(store.Key{Team: l.Value.Team, ID: l.Value.Head.eventID()}, store.Plain)
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	var out []Delivery
	for i, l := range lanes {
		found, err := eventRows.Decoded(got[i])
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || found[0].Value.body == nil { // the event was removed meanwhile
			if err := q.removeHead(l); err != nil {
				return nil, err
			}
			continue
		}
		v := &l.Value
		v.Claims++
		v.Starts++
		v.LeaseUntil, l.changed = q.now.Add(lease), true
		d := v.delivery(&found[0].Value)
		d.Revision = l.revision
		out = append(out, d)
	}
	return out, nil
}

// delivery returns the lane's first delivery, of the event e, after it was leased.
func (l *laneRow) delivery(e *eventRow) Delivery {
	return Delivery{
		Lease:         Lease{Team: l.Team, Delivery: l.Head.ID, Token: l.token()},
		Endpoint:      l.Endpoint,
		Event:         e.ID,
		Type:          e.Type,
		Key:           e.Key,
		Seq:           e.Seq,
		At:            e.At,
		Trace:         e.Trace,
		Body:          e.body,
		Trigger:       l.Head.Trigger,
		Attempts:      l.Attempts,
		Starts:        l.Starts,
		QueuedAt:      l.Head.Queued,
		FirstFailedAt: l.FirstFailed,
		Superseded:    l.Newer,
		Blocking:      l.Waiting > 0,
	}
}
