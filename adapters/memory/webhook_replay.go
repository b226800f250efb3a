package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

const defaultReplayPage = 500

func (d deliveries) Replay(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
	if err := d.lock(ctx); err != nil {
		return webhook.Replayed{}, err
	}
	defer d.mu.Unlock()
	t, err := d.queue.endpoint(r.Team, r.Endpoint)
	switch {
	case err != nil:
		return webhook.Replayed{}, err
	case t.Disabled:
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the endpoint is disabled", healthlab.Precondition)
	case r.Event != uuid.Nil:
		return d.replayEvent(t, r)
	default:
		return d.replaySince(t, r)
	}
}

// replayEvent resends one message, as the mode of its type allows.
func (d deliveries) replayEvent(t *target, r webhook.Replay) (webhook.Replayed, error) {
	e := d.byID[r.Event]
	switch {
	case e == nil || e.Team != r.Team:
		return webhook.Replayed{}, fmt.Errorf("replay message: %w", healthlab.NotFound)
	case !t.Matches(e.Event):
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the endpoint does not take this type", healthlab.Precondition)
	case d.unrouted(e):
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the message was never sent", healthlab.Precondition)
	}
	mode := webhook.ModeOf(r.Modes, e.Type)
	again := []*storedEvent{e}
	if e.Key != "" && mode != healthlab.Independent {
		again = d.laterOfKey(t, e)
	}
	if mode == healthlab.Latest && len(again) > 1 {
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the newer message %s of its key exists",
			healthlab.Precondition, webhook.MessageID(again[len(again)-1].ID))
	}
	if emptied(again) {
		return webhook.Replayed{}, webhook.BodyDeleted()
	}
	now := d.clock()
	for _, row := range d.queue.unfinished(t, again) {
		if row.leased(now) {
			return webhook.Replayed{}, fmt.Errorf("replay: %w: a delivery is being sent", healthlab.Precondition)
		}
	}
	return webhook.Replayed{Queued: d.requeue(t, again, mode, webhook.TriggerRetry, now)}, nil
}

// replaySince resends what went wrong since a time, one page of messages a call.
func (d deliveries) replaySince(t *target, r webhook.Replay) (webhook.Replayed, error) {
	after := int64(-1)
	if r.After != "" {
		n, err := strconv.ParseInt(r.After, 10, 64)
		if err != nil {
			return webhook.Replayed{}, badCursor()
		}
		after = n
	}
	most := r.Max
	if most <= 0 {
		most = defaultReplayPage
	}
	since := latest(instant(r.Since), t.CreatedAt)
	now := d.clock()
	var done webhook.Replayed
	looked := 0
	for _, e := range d.events[:len(d.events)-len(d.pending)] {
		if e.n <= after || e.at.Before(since) || !r.Until.IsZero() && !e.at.Before(instant(r.Until)) || !t.Matches(e.Event) {
			continue
		}
		if looked == most {
			done.Next = strconv.FormatInt(after, 10)
			break
		}
		looked, after = looked+1, e.n
		if d.missing(t, e) {
			done.Queued += d.resend(t, e, webhook.ModeOf(r.Modes, e.Type), now)
		}
	}
	return done, nil
}

// missing reports whether the endpoint should have the message and has not.
func (d deliveries) missing(t *target, e *storedEvent) bool {
	if len(d.queue.unfinished(t, []*storedEvent{e})) > 0 {
		return false
	}
	end, known := d.queue.ended[delivered{t.ID, e.ID}]
	return !known || end.state != webhook.Succeeded && end.reason != webhook.ReasonSuperseded
}

// resend sends a lost message, or what its mode wants in its stead.
func (d deliveries) resend(t *target, e *storedEvent, mode healthlab.Mode, now time.Time) int {
	rest := []*storedEvent{e}
	if e.Key != "" && mode != healthlab.Independent {
		rest = d.laterOfKey(t, e)
	}
	if mode == healthlab.Latest && len(rest) > 1 || emptied(rest) {
		return 0 // the newest of the key speaks for it; or there is nothing to send
	}
	return d.requeue(t, rest, mode, webhook.TriggerRecover, now)
}

// emptied reports whether the body of one of the events is deleted.
func emptied(events []*storedEvent) bool {
	return slices.ContainsFunc(events, func(e *storedEvent) bool { return e.body == nil })
}

// laterOfKey returns e and the later events of its key that were routed and that the
// endpoint matches, in the order of their Seq.
func (d deliveries) laterOfKey(t *target, e *storedEvent) []*storedEvent {
	var out []*storedEvent
	for _, later := range d.byKey[teamKey{e.Team, e.Key}] {
		if later.Seq >= e.Seq && t.Matches(later.Event) && !d.unrouted(later) {
			out = append(out, later)
		}
	}
	return out
}

// unrouted reports whether the event waits to be routed.
func (d deliveries) unrouted(e *storedEvent) bool {
	return len(d.pending) > 0 && e.n >= d.pending[0].n
}

// requeue puts the events at the end of their lane, in order. Those of them that wait
// there already leave their place; one that is being sent stays, and is sent twice.
func (d deliveries) requeue(t *target, events []*storedEvent, mode healthlab.Mode, by webhook.Trigger, now time.Time) int {
	q := d.queue
	var quiet time.Time
	for _, r := range q.unfinished(t, events) {
		if !r.leased(now) {
			quiet = latest(quiet, r.quiet)
			q.remove(r, now)
		}
	}
	for _, e := range events {
		q.enqueue(t, e, mode, by, now)
	}
	if l := t.lanes[webhook.LaneOf(events[0].Event, mode, t.OrderScope)]; l != nil {
		l.rows[0].quiet = latest(l.rows[0].quiet, quiet)
		t.reorder(l.rows[0])
	}
	return len(events)
}
