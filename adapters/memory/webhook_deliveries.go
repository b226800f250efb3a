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

type deliveries struct{ *outbox }

func (d deliveries) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	if err := d.lock(ctx); err != nil {
		return webhook.Routed{}, err
	}
	defer d.mu.Unlock()
	now := d.clock()
	d.sweep(now)
	routed := webhook.Routed{Events: min(most, len(d.pending))}
	to := map[webhook.EndpointID]bool{}
	for _, e := range d.pending[:routed.Events] {
		mode := webhook.ModeOf(modes, e.Type)
		for id, t := range d.queue.endpoints {
			if t.Wants(e.Event) {
				to[id] = true
				d.queue.enqueue(t, e, mode, webhook.TriggerEvent, now)
			}
		}
	}
	d.pending = d.pending[routed.Events:]
	routed.Endpoints = slices.Collect(maps.Keys(to))
	return routed, nil
}

func (d deliveries) Due(ctx context.Context) ([]webhook.EndpointID, error) {
	if err := d.lock(ctx); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	now := d.clock()
	var due []webhook.EndpointID
	for id, t := range d.queue.endpoints {
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
	if err := d.lock(ctx); err != nil {
		return webhook.Claimed{}, err
	}
	defer d.mu.Unlock()
	now := d.clock()
	claimed := webhook.Claimed{At: now}
	for _, quota := range c.Quotas {
		t, ok := d.queue.endpoints[quota.Endpoint]
		if !ok || t.Health.Paused(now) || t.probing(now) {
			continue
		}
		for range quota.Max {
			r := t.next(now)
			if r == nil {
				break
			}
			body, err := d.message(ctx, r.event)
			if err != nil {
				return webhook.Claimed{}, fmt.Errorf("claim: %w", err)
			}
			d.queue.lastToken++
			r.token, r.leaseUntil = d.queue.lastToken, now.Add(c.Lease)
			r.starts++
			t.reorder(r)
			claimed.Deliveries = append(claimed.Deliveries, r.delivery(body))
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

func (r *row) delivery(body []byte) webhook.Delivery {
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
	if err := d.lock(ctx); err != nil {
		return webhook.RecordedOutcomes{}, err
	}
	defer d.mu.Unlock()
	for _, o := range outcomes {
		if o.State != webhook.Retrying && !o.State.Final() {
			return webhook.RecordedOutcomes{}, fmt.Errorf("record outcomes: %w: an outcome is final or to be retried", healthlab.Invalid)
		}
	}
	var events []healthlab.Event
	for _, o := range outcomes {
		if r := d.queue.leasedRow(o.Delivery.Lease); r != nil {
			events = append(events, o.Events...)
		}
	}
	if err := d.emit(ctx, events); err != nil {
		return webhook.RecordedOutcomes{}, fmt.Errorf("record outcomes: %w", err)
	}
	now := d.clock()
	var recorded webhook.RecordedOutcomes
	for _, o := range outcomes {
		if !d.queue.applyOutcome(o, now) {
			recorded.Lost = append(recorded.Lost, o.Delivery.Lease)
		}
	}
	return recorded, nil
}

// leasedRow returns the row whose lease this is, or nil if another process has it.
func (q *queue) leasedRow(l webhook.Lease) *row {
	if r := q.rows[l.Delivery]; r != nil && r.token == l.Token {
		return r
	}
	return nil
}

// applyOutcome applies one outcome and reports whether its lease held.
func (q *queue) applyOutcome(o webhook.Outcome, now time.Time) bool {
	r := q.leasedRow(o.Delivery.Lease)
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
	r.target.reorder(r)
	return true
}

func (d deliveries) Release(ctx context.Context, back []webhook.Released) error {
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.mu.Unlock()
	now := d.clock()
	for _, b := range back {
		r := d.queue.leasedRow(b.Lease)
		if r == nil {
			continue
		}
		r.token = 0
		r.starts--
		r.due = now.Add(b.Delay)
		r.target.reorder(r)
	}
	return nil
}
