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

type webhookLog struct{ *outbox }

func (l webhookLog) Attempts(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
	if err := l.lock(ctx); err != nil {
		return webhook.AttemptPage{}, err
	}
	defer l.mu.Unlock()
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	from := len(l.queue.log) - 1
	if q.Cursor != "" {
		n, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || n < 0 {
			return webhook.AttemptPage{}, badCursor()
		}
		from = min(from, int(n-l.queue.base)-1)
	}
	var page webhook.AttemptPage
	for i := from; i >= 0; i-- {
		a := l.queue.log[i]
		e := l.byID[a.Event]
		if e == nil || e.Team != q.Team ||
			q.Endpoint != (webhook.EndpointID{}) && a.Endpoint != q.Endpoint ||
			q.Event != uuid.Nil && a.Event != q.Event {
			continue
		}
		if len(page.Attempts) == size {
			page.Next = strconv.FormatInt(l.queue.base+int64(i)+1, 10)
			break
		}
		a.Head, a.Response = slices.Clone(a.Head), slices.Clone(a.Response)
		page.Attempts = append(page.Attempts, a)
	}
	return page, nil
}

func (l webhookLog) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	if err := l.lock(ctx); err != nil {
		return webhook.Message{}, err
	}
	defer l.mu.Unlock()
	e := l.byID[event]
	if e == nil || e.Team != team {
		return webhook.Message{}, fmt.Errorf("message: %w", healthlab.NotFound)
	}
	body, err := l.message(ctx, e)
	if err != nil {
		return webhook.Message{}, fmt.Errorf("message: %w", err)
	}
	return webhook.Message{
		Event: e.ID, Type: e.Type, Team: e.Team, User: e.User, Key: e.Key, Seq: e.Seq, At: e.At,
		Body: body,
	}, nil
}

type eventBodies struct{ *outbox }

func (v eventBodies) Teams(ctx context.Context) ([]healthlab.TeamID, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	seen := map[healthlab.TeamID]bool{}
	var out []healthlab.TeamID
	for _, e := range v.events {
		if !seen[e.Team] {
			seen[e.Team] = true
			out = append(out, e.Team)
		}
	}
	return out, nil
}

func (v eventBodies) EmptyBodies(ctx context.Context, team healthlab.TeamID, ended time.Time, n int) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	o, q := v.outbox, v.queue
	busy := map[uuid.UUID]bool{}
	for _, r := range q.rows {
		busy[r.event.ID] = true
	}
	for i := range q.log {
		if !q.log[i].At.Before(ended) {
			busy[q.log[i].Event] = true
		}
	}
	emptied := 0
	for _, e := range o.events[:len(o.events)-len(o.pending)] {
		if emptied == n || !e.at.Before(ended) {
			break
		}
		if e.Team == team && e.body != nil && !busy[e.ID] {
			e.body = nil
			emptied++
		}
	}
	return emptied, nil
}
