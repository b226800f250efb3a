package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Deliveries returns the store as a [webhook.Deliveries].
func (s *Store) Deliveries() webhook.Deliveries { return deliveries{s} }

type deliveries struct{ s *Store }

func (d deliveries) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	s := d.s
	if err := s.lock(ctx); err != nil {
		return webhook.Routed{}, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	s.sweep(now)
	routed := webhook.Routed{Events: min(most, len(s.outbox.pending))}
	to := map[webhook.EndpointID]bool{}
	for _, e := range s.outbox.pending[:routed.Events] {
		mode := webhook.ModeOf(modes, e.Type)
		for id, t := range s.queue.endpoints {
			if t.Wants(e.Event) {
				to[id] = true
				s.queue.arrive(t, e, mode, webhook.TriggerEvent, now)
			}
		}
	}
	s.outbox.pending = s.outbox.pending[routed.Events:]
	routed.Endpoints = slices.Collect(maps.Keys(to))
	return routed, nil
}

// arrive puts an event into its lane, where the rule of lanes says.
func (q *queue) arrive(t *target, e *stored, mode healthlab.Mode, by webhook.Trigger, now time.Time) {
	l := t.laneOf(webhook.LaneOf(e.Event, mode, t.OrderScope))
	fresh := &row{event: e, key: webhook.SupersedeKey(e.Event, mode), trigger: by, queued: now, due: now}
	var view webhook.LaneView
	same := 0
	if len(l.rows) > 0 {
		view.Head, view.Behind = l.rows[0].view(now), len(l.rows) > 1
		if fresh.key != "" {
			same = l.same(fresh.key)
		}
		if same > 0 {
			view.Same = l.rows[same].view(now)
		}
	}
	switch webhook.Place(view, fresh.key, e.Seq) {
	case webhook.BecomeHead, webhook.WaitBehind:
		q.enter(t, l, fresh)
	case webhook.ReplaceHead:
		q.replace(l.rows[0], fresh, now)
	case webhook.ReplaceWaiting:
		q.replace(l.rows[same], fresh, now)
	case webhook.Drop:
		q.enter(t, l, fresh)
		q.cancel(fresh, webhook.ReasonSuperseded, now)
	}
}

// replace puts fresh into the place of old, which ends as superseded.
func (q *queue) replace(old, fresh *row, now time.Time) {
	q.end(old, webhook.Cancelled, webhook.ReasonSuperseded, now)
	q.drop(old)
	old.event, old.trigger, old.queued = fresh.event, fresh.trigger, fresh.queued
	old.attempts, old.starts, old.firstFailed = 0, 0, time.Time{}
	old.due, old.token = now, 0
	q.index(old)
	old.target.moved(old)
}

func (d deliveries) Due(ctx context.Context) ([]webhook.EndpointID, error) {
	s := d.s
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	var due []webhook.EndpointID
	for id, t := range s.queue.endpoints {
		if len(t.due) > 0 && !t.due[0].ready().After(now) && !t.Health.Paused(now) && !t.probing(now) {
			due = append(due, id)
		}
	}
	return due, nil
}

// probing reports whether the endpoint is on probation and its one delivery is out.
func (t *target) probing(now time.Time) bool {
	return t.Health.PauseStep > 0 && slices.ContainsFunc(t.due, func(r *row) bool { return r.leased(now) })
}

func (d deliveries) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	s := d.s
	if err := s.lock(ctx); err != nil {
		return webhook.Claimed{}, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	claimed := webhook.Claimed{At: now}
	for _, quota := range c.Quotas {
		t, ok := s.queue.endpoints[quota.Endpoint]
		if !ok || t.Health.Paused(now) || t.probing(now) {
			continue
		}
		for range quota.Max {
			r := t.next(now)
			if r == nil {
				break
			}
			body, err := s.message(ctx, r.event)
			if err != nil {
				return webhook.Claimed{}, fmt.Errorf("claim: %w", err)
			}
			s.queue.lastToken++
			r.token, r.leaseUntil = s.queue.lastToken, now.Add(c.Lease)
			r.starts++
			t.moved(r)
			claimed.Deliveries = append(claimed.Deliveries, r.out(body))
			if t.Health.PauseStep > 0 {
				break
			}
		}
	}
	return claimed, nil
}

// next returns the head to hand out, or nil: the one that is ready for longest; on
// probation, of those that are ready the one with the fewest attempts.
func (t *target) next(now time.Time) *row {
	if len(t.due) == 0 || t.due[0].ready().After(now) {
		return nil
	}
	best := t.due[0]
	if t.Health.PauseStep == 0 {
		return best
	}
	for _, r := range t.due {
		if !r.ready().After(now) && r.attempts < best.attempts {
			best = r
		}
	}
	return best
}

func (r *row) out(body []byte) webhook.Delivery {
	return webhook.Delivery{
		Lease:         webhook.Lease{Team: r.target.Team, Delivery: r.id, Token: r.token},
		Endpoint:      r.target.ID,
		Event:         r.event.ID,
		Type:          r.event.Type,
		Key:           r.event.Key,
		Seq:           r.event.Seq,
		At:            r.event.At,
		Trace:         r.event.Trace,
		Body:          body,
		Trigger:       r.trigger,
		Attempts:      r.attempts,
		Starts:        r.starts,
		QueuedAt:      r.queued,
		FirstFailedAt: r.firstFailed,
		Superseded:    r.lane.supersedes(),
		Blocking:      len(r.lane.rows) > 1,
	}
}

func (d deliveries) RecordOutcomes(ctx context.Context, outcomes []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	s := d.s
	if err := s.lock(ctx); err != nil {
		return webhook.RecordedOutcomes{}, err
	}
	defer s.mu.Unlock()
	for _, o := range outcomes {
		if o.State != webhook.Retrying && !o.State.Final() {
			return webhook.RecordedOutcomes{}, fmt.Errorf("record: %w: an outcome is final or to be retried", healthlab.Invalid)
		}
	}
	var events []healthlab.Event
	for _, o := range outcomes {
		if r := s.queue.held(o.Delivery.Lease); r != nil {
			events = append(events, o.Events...)
		}
	}
	if err := s.emit(ctx, events); err != nil {
		return webhook.RecordedOutcomes{}, fmt.Errorf("record: %w", err)
	}
	now := s.clock()
	var recorded webhook.RecordedOutcomes
	for _, o := range outcomes {
		if !s.queue.applyOutcome(o, now) {
			recorded.Lost = append(recorded.Lost, o.Delivery.Lease)
		}
	}
	return recorded, nil
}

// held returns the row whose lease this is, or nil if another process has it.
func (q *queue) held(l webhook.Lease) *row {
	if r := q.rows[l.Delivery]; r != nil && r.token == l.Token {
		return r
	}
	return nil
}

// applyOutcome applies one outcome and reports whether its lease held.
func (q *queue) applyOutcome(o webhook.Outcome, now time.Time) bool {
	r := q.held(o.Delivery.Lease)
	if r == nil {
		q.recordLost(o, now)
		return false
	}
	if o.Sent {
		r.attempts++
	}
	r.token, r.starts = 0, 0
	if o.Quiet > 0 {
		r.quiet = now.Add(o.Quiet)
	}
	state, reason := o.State, o.Reason
	if state == webhook.Retrying && r.lane.supersedes() {
		state, reason = webhook.Cancelled, webhook.ReasonSuperseded
	}
	q.record(r, o, state, reason, now)
	if state.Final() {
		q.remove(r, now)
		return true
	}
	if r.firstFailed.IsZero() && o.Sent {
		r.firstFailed = now
	}
	r.due = now.Add(o.Delay)
	r.target.moved(r)
	return true
}

func (d deliveries) Release(ctx context.Context, back []webhook.Released) error {
	s := d.s
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.clock()
	for _, b := range back {
		r := s.queue.held(b.Lease)
		if r == nil {
			continue
		}
		r.token = 0
		r.starts--
		r.due = now.Add(b.Delay)
		r.target.moved(r)
	}
	return nil
}
