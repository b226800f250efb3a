package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func leasedLane(l Lease, lock store.Lock) store.Query {
	q := store.Query{Key: laneRows.Key(store.Key{Team: l.Team}), By: store.BySecond, Lock: lock}
	return q.Equal(store.Int(int64(l.Delivery)))
}

// leasedLanes reads, for each lease, the lane whose first delivery is that of the lease. An entry is nil if there is no
// such lane, or if lock is Skip and another transaction has locked it.
func (q *queue) leasedLanes(leases []Lease, lock store.Lock) ([]*laneState, error) {
	read := make([]store.Query, len(leases))
	for i, l := range leases {
		read[i] = leasedLane(l, lock)
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	out := make([]*laneState, len(leases))
	for i, rows := range got {
		found, err := laneRows.Decoded(rows)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			out[i] = q.add(l)
		}
	}
	return out, nil
}

// RecordOutcomes implements [Deliveries].
func (s *Store) RecordOutcomes(ctx context.Context, outcomes []Outcome) (RecordedOutcomes, error) {
	leases := make([]Lease, len(outcomes))
	for i, o := range outcomes {
		if o.State != Retrying && !o.State.Final() {
			return RecordedOutcomes{}, fmt.Errorf("record outcomes: %w: outcome %d: State must be one of %s, %s, %s, %s",
				healthlab.Invalid, i, Succeeded, Retrying, Failed, Cancelled)
		}
		leases[i] = o.Delivery.Lease
	}
	var recorded RecordedOutcomes
	err := s.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		recorded = RecordedOutcomes{}
		q := newQueue(tx, s.events.retention)
		lanes, err := q.leasedLanes(leases, store.Skip)
		if err != nil {
			return err
		}
		locked, err := q.locked(leases, lanes)
		if err != nil {
			return err
		}
		if err := q.loadFollowers(outcomes, lanes); err != nil {
			return err
		}
		var events []healthlab.Event
		for i, o := range outcomes {
			switch l := lanes[i]; {
			case locked[i]:
				recorded.Locked = append(recorded.Locked, leases[i])
			case l != nil && !l.empty && l.Value.leasedBy(leases[i]):
				events = append(events, o.Events...)
				err = q.apply(l, &o)
			default:
				recorded.Lost = append(recorded.Lost, leases[i])
				err = q.logLost(&o)
			}
			if err != nil {
				return err
			}
		}
		if err := s.events.Append(ctx, tx, events); err != nil {
			return fmt.Errorf("record outcomes: %w", err)
		}
		return q.flush()
	})
	if err != nil {
		return RecordedOutcomes{}, err
	}
	return recorded, nil
}

// locked reports, for each lane that is nil, whether the lane exists: then another transaction has locked it.
func (q *queue) locked(leases []Lease, lanes []*laneState) ([]bool, error) {
	var read []store.Query
	var missing []int
	for i, l := range lanes {
		if l == nil {
			missing, read = append(missing, i), append(read, leasedLane(leases[i], store.Plain))
		}
	}
	out := make([]bool, len(lanes))
	if len(read) == 0 {
		return out, nil
	}
	got, err := q.tx.Read(read...)
	for i, at := range missing {
		out[at] = err == nil && len(got[i]) > 0
	}
	return out, err
}

// loadFollowers reads, in one round trip, what [queue.apply] needs: the second delivery of each lane whose first one
// ends, and the users of the first deliveries.
func (q *queue) loadFollowers(outcomes []Outcome, lanes []*laneState) error {
	var ending []*laneState
	var users []store.Query
	for i, l := range lanes {
		if l == nil {
			continue
		}
		if user := l.Value.Head.User; !user.IsZero() {
			users = append(users, store.User(l.Value.Team, user))
		}
		if outcomes[i].State != Retrying || l.Value.Newer {
			ending = append(ending, l)
		}
	}
	return q.loadNext(users, ending...)
}

// apply applies an outcome to the first delivery of a lane, and logs it.
func (q *queue) apply(l *laneState, o *Outcome) error {
	v := &l.Value
	token := v.token()
	if o.Sent {
		v.Attempts++
	}
	v.Starts, v.LeaseUntil, l.changed = 0, time.Time{}, true
	if o.Quiet > 0 {
		v.Quiet = q.now.Add(o.Quiet)
	}
	state, reason := o.State, o.Reason
	if state == Retrying && v.Newer {
		state, reason = Cancelled, ReasonSuperseded
	}
	line := o.line()
	line.N, line.State, line.Reason = v.Attempts, state, reason
	if err := q.logAttempt(&v.lanePlace, &v.Head, token, line); err != nil {
		return err
	}
	if state.Final() {
		return q.removeHead(l)
	}
	if v.FirstFailed.IsZero() && o.Sent {
		v.FirstFailed = q.now
	}
	v.Due = q.now.Add(o.Delay)
	return nil
}

func (o *Outcome) line() Attempt {
	return Attempt{Status: o.Status, Class: o.Class, Duration: o.Duration, Head: o.Head, Response: o.Response}
}

// logLost logs an outcome whose token is outdated, unless the outcome is logged already or the event was removed.
func (q *queue) logLost(o *Outcome) error {
	d := &o.Delivery
	lines := store.Query{Key: attemptRows.Key(store.Key{Team: d.Team}), By: store.BySecond, Lock: store.Plain}
	lines = prefixed(lines, store.UUID(d.Event))
	got, err := q.tx.Read(eventByID(d.Team, d.Event), lines)
	if err != nil {
		return err
	}
	events, err := eventRows.Decoded(got[0])
	if err != nil || len(events) == 0 {
		return err
	}
	logged, err := attemptRows.Decoded(got[1])
	if err != nil {
		return err
	}
	for _, a := range logged {
		if a.Value.Delivery == d.Delivery && a.Value.Token == d.Token {
			return nil
		}
	}
	line := o.line()
	line.N, line.State, line.Reason = d.Attempts, Retrying, ReasonLeaseLost
	if o.Sent {
		line.N++
	}
	e := &events[0].Value
	about := queued{ID: d.Delivery, User: e.User, Event: e.ID, Type: e.Type, Trigger: d.Trigger}
	return q.logAttempt(&lanePlace{Team: d.Team, Endpoint: d.Endpoint}, &about, d.Token, line)
}

// Release implements [Deliveries].
func (s *Store) Release(ctx context.Context, back []Released) error {
	leases := make([]Lease, len(back))
	for i, b := range back {
		leases[i] = b.Lease
	}
	return s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		q := newQueue(tx, s.events.retention)
		lanes, err := q.leasedLanes(leases, store.Held)
		if err != nil {
			return err
		}
		for i, l := range lanes {
			if l == nil || !l.Value.leasedBy(back[i].Lease) {
				continue
			}
			l.Value.Starts--
			l.Value.LeaseUntil, l.Value.Due, l.changed = time.Time{}, q.now.Add(back[i].Delay), true
		}
		return q.flush()
	})
}
