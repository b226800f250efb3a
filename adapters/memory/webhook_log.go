package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"

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
