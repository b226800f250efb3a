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
	s := d.s
	if err := s.lock(ctx); err != nil {
		return webhook.Replayed{}, err
	}
	defer s.mu.Unlock()
	t, err := s.endpoint(r.Team, r.Endpoint)
	switch {
	case err != nil:
		return webhook.Replayed{}, err
	case t.Disabled:
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the endpoint is disabled", healthlab.Precondition)
	case r.Event != uuid.Nil:
		return s.retry(t, r)
	default:
		return s.recover(t, r)
	}
}

// retry resends one message, as the mode of its type allows.
func (s *Store) retry(t *target, r webhook.Replay) (webhook.Replayed, error) {
	e := s.outbox.byID[r.Event]
	switch {
	case e == nil || e.Team != r.Team:
		return webhook.Replayed{}, fmt.Errorf("replay message: %w", healthlab.NotFound)
	case !t.Matches(e.Event):
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the endpoint does not take this type", healthlab.Precondition)
	case s.pending(e):
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the message was never sent", healthlab.Precondition)
	}
	mode := webhook.ModeOf(r.Modes, e.Type)
	again := []*stored{e}
	if e.Key != "" && mode != healthlab.Independent {
		again = s.since(t, e)
	}
	if mode == healthlab.Latest && len(again) > 1 {
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the newer message %s of its key exists",
			healthlab.Precondition, webhook.MessageID(again[len(again)-1].ID))
	}
	if emptied(again) {
		return webhook.Replayed{}, webhook.BodyDeleted()
	}
	now := s.clock()
	for _, row := range s.queue.unfinished(t, again) {
		if row.leased(now) {
			return webhook.Replayed{}, fmt.Errorf("replay: %w: a delivery is being sent", healthlab.Precondition)
		}
	}
	return webhook.Replayed{Queued: s.rewind(t, again, mode, webhook.TriggerRetry, now)}, nil
}

// recover resends what went wrong since a time, one page of messages a call.
func (s *Store) recover(t *target, r webhook.Replay) (webhook.Replayed, error) {
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
	now := s.clock()
	var done webhook.Replayed
	looked := 0
	for _, e := range s.outbox.stored[:len(s.outbox.stored)-len(s.outbox.pending)] {
		if e.n <= after || e.at.Before(since) || !r.Until.IsZero() && !e.at.Before(instant(r.Until)) || !t.Matches(e.Event) {
			continue
		}
		if looked == most {
			done.Next = strconv.FormatInt(after, 10)
			break
		}
		looked, after = looked+1, e.n
		if s.lost(t, e) {
			done.Queued += s.again(t, e, webhook.ModeOf(r.Modes, e.Type), now)
		}
	}
	return done, nil
}

// lost reports whether the endpoint should have the message and has not.
func (s *Store) lost(t *target, e *stored) bool {
	if len(s.queue.unfinished(t, []*stored{e})) > 0 {
		return false
	}
	end, known := s.queue.ended[delivered{t.ID, e.ID}]
	return !known || end.state != webhook.Succeeded && end.reason != webhook.ReasonSuperseded
}

// again sends a lost message, or what its mode wants in its stead.
func (s *Store) again(t *target, e *stored, mode healthlab.Mode, now time.Time) int {
	rest := []*stored{e}
	if e.Key != "" && mode != healthlab.Independent {
		rest = s.since(t, e)
	}
	if mode == healthlab.Latest && len(rest) > 1 || emptied(rest) {
		return 0 // the newest of the key speaks for it; or there is nothing to send
	}
	return s.rewind(t, rest, mode, webhook.TriggerRecover, now)
}

// emptied reports whether the body of one of the events is deleted.
func emptied(events []*stored) bool {
	return slices.ContainsFunc(events, func(e *stored) bool { return e.body == nil })
}

// since returns e and the later events of its key that were routed and that the
// endpoint matches, in the order of their Seq.
func (s *Store) since(t *target, e *stored) []*stored {
	var out []*stored
	for _, later := range s.outbox.byKey[teamKey{e.Team, e.Key}] {
		if later.Seq >= e.Seq && t.Matches(later.Event) && !s.pending(later) {
			out = append(out, later)
		}
	}
	return out
}

// pending reports whether the event waits to be routed.
func (s *Store) pending(e *stored) bool {
	return len(s.outbox.pending) > 0 && e.n >= s.outbox.pending[0].n
}

// rewind puts the events at the end of their lane, in order. Those of them that wait
// there already leave their place; one that is being sent stays, and is sent twice.
func (s *Store) rewind(t *target, events []*stored, mode healthlab.Mode, by webhook.Trigger, now time.Time) int {
	q := &s.queue
	var quiet time.Time
	for _, r := range q.unfinished(t, events) {
		if !r.leased(now) {
			quiet = latest(quiet, r.quiet)
			q.remove(r, now)
		}
	}
	for _, e := range events {
		q.arrive(t, e, mode, by, now)
	}
	if l := t.lanes[webhook.LaneOf(events[0].Event, mode, t.OrderScope)]; l != nil {
		l.rows[0].quiet = latest(l.rows[0].quiet, quiet)
		t.moved(l.rows[0])
	}
	return len(events)
}

// unfinished returns the endpoint's unfinished deliveries of the events.
func (q *queue) unfinished(t *target, events []*stored) []*row {
	var out []*row
	for _, e := range events {
		out = append(out, q.open[delivered{t.ID, e.ID}]...)
	}
	return out
}
