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

// WebhookLog returns the store as a [webhook.Log].
func (s *Store) WebhookLog() webhook.Log { return webhookLog{s} }

type webhookLog struct{ s *Store }

const defaultPage = 50

func (l webhookLog) Attempts(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
	s := l.s
	if err := s.lock(ctx); err != nil {
		return webhook.AttemptPage{}, err
	}
	defer s.mu.Unlock()
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	from := len(s.queue.log) - 1
	if q.Cursor != "" {
		n, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || n < 0 {
			return webhook.AttemptPage{}, badCursor()
		}
		from = min(from, int(n-s.queue.base)-1)
	}
	var page webhook.AttemptPage
	for i := from; i >= 0; i-- {
		a := s.queue.log[i]
		e := s.outbox.byID[a.Event]
		if e == nil || e.Team != q.Team ||
			q.Endpoint != (webhook.EndpointID{}) && a.Endpoint != q.Endpoint ||
			q.Event != uuid.Nil && a.Event != q.Event {
			continue
		}
		if len(page.Attempts) == size {
			page.Next = strconv.FormatInt(s.queue.base+int64(i)+1, 10)
			break
		}
		a.Head, a.Response = slices.Clone(a.Head), slices.Clone(a.Response)
		page.Attempts = append(page.Attempts, a)
	}
	return page, nil
}

func badCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{
		Path: []any{"cursor"}, Code: "bad_cursor", Msg: "the cursor is not one of this list",
	}}}
}

func (l webhookLog) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	s := l.s
	if err := s.lock(ctx); err != nil {
		return webhook.Message{}, err
	}
	defer s.mu.Unlock()
	e := s.outbox.byID[event]
	if e == nil || e.Team != team {
		return webhook.Message{}, fmt.Errorf("message: %w", healthlab.NotFound)
	}
	body, err := s.message(ctx, e)
	if err != nil {
		return webhook.Message{}, fmt.Errorf("message: %w", err)
	}
	return webhook.Message{
		Event: e.ID, Type: e.Type, Team: e.Team, User: e.User, Key: e.Key, Seq: e.Seq, At: e.At,
		Body: body,
	}, nil
}

// record writes the line of an outcome that was applied.
func (q *queue) record(r *row, o webhook.Outcome, state webhook.State, reason webhook.Reason, now time.Time) {
	q.logged[o.Delivery.Lease] = now
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: r.target.ID, Event: r.event.ID, Type: r.event.Type, Delivery: r.id,
		N: r.attempts, Trigger: r.trigger, Status: o.Status, Class: o.Class, Duration: o.Duration,
		State: state, Reason: reason, Head: slices.Clone(o.Head), Response: slices.Clone(o.Response),
	})
	if state.Final() {
		q.finish(r, state, reason)
	}
}

// recordLost writes the line of an outcome whose lease is gone, unless its line is
// there already.
func (q *queue) recordLost(o webhook.Outcome, now time.Time) {
	d := o.Delivery
	if _, ok := q.logged[d.Lease]; ok {
		return
	}
	q.logged[d.Lease] = now
	n := d.Attempts
	if o.Sent {
		n++
	}
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: d.Endpoint, Event: d.Event, Type: d.Type, Delivery: d.Lease.Delivery,
		N: n, Trigger: d.Trigger, Status: o.Status, Class: o.Class, Duration: o.Duration,
		State: webhook.Retrying, Reason: webhook.ReasonLeaseLost, Head: slices.Clone(o.Head), Response: slices.Clone(o.Response),
	})
}

// end writes the line of a row that ends without an outcome.
func (q *queue) end(r *row, state webhook.State, reason webhook.Reason, now time.Time) {
	q.log = append(q.log, webhook.Attempt{
		At: now, Endpoint: r.target.ID, Event: r.event.ID, Type: r.event.Type, Delivery: r.id,
		N: r.attempts, Trigger: r.trigger, State: state, Reason: reason,
	})
	q.finish(r, state, reason)
}

func (q *queue) finish(r *row, state webhook.State, reason webhook.Reason) {
	d := delivered{r.target.ID, r.event.ID}
	if _, ok := q.ended[d]; !ok {
		q.sent[d.event] = append(q.sent[d.event], d.endpoint)
	}
	q.ended[d] = ending{state, reason}
}

// sweepLog forgets the lines written before limit.
func (q *queue) sweepLog(limit time.Time) {
	old := 0
	for old < len(q.log) && q.log[old].At.Before(limit) {
		old++
	}
	q.log = slices.Delete(q.log, 0, old)
	q.base += int64(old)
	for l, at := range q.logged {
		if at.Before(limit) {
			delete(q.logged, l)
		}
	}
}

// forget ends what is unfinished of these events, and forgets how their deliveries
// ended.
func (q *queue) forget(events map[uuid.UUID]bool, now time.Time) {
	for _, r := range q.rows {
		if events[r.event.ID] {
			q.cancel(r, webhook.ReasonExpired, now)
		}
	}
	for id := range events {
		for _, to := range q.sent[id] {
			delete(q.ended, delivered{to, id})
		}
		delete(q.sent, id)
	}
}

// cancel ends a row that is not being recorded.
func (q *queue) cancel(r *row, why webhook.Reason, now time.Time) {
	q.end(r, webhook.Cancelled, why, now)
	q.remove(r, now)
}
