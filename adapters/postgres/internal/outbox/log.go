package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// WebhookLog returns the store as a [webhook.Log].
func (s *Store) WebhookLog() webhook.Log { return webhookLog{s} }

type webhookLog struct{ s *Store }

// logPage is how many lines a page has, of the log or of endpoints, unless told
// otherwise.
const logPage = 50

// What is known of a message that is gone is not shown either.
const listAttempts = `
select a.id, a.at, a.endpoint_id, a.event_id, e.type, a.delivery_id, a.n, a.cause, a.status, a.class, a.duration, a.state, a.reason, a.head,
	a.response
from healthlab.webhook_attempt a join healthlab.webhook_event e on e.team_id = a.team_id and e.id = a.event_id
where a.team_id = $1 and ($2::uuid is null or a.endpoint_id = $2) and ($3::uuid is null or a.event_id = $3)
	and ($4::bigint is null or a.id < $4)
order by a.id desc limit $5`

func (l webhookLog) Attempts(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
	if q.Size <= 0 {
		q.Size = logPage
	}
	var before *int64
	if q.Cursor != "" {
		n, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || n < 0 {
			return webhook.AttemptPage{}, db.BadCursor()
		}
		before = &n
	}
	var page webhook.AttemptPage
	var ids []int64
	err := l.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		page, ids = webhook.AttemptPage{}, nil
		b.Queue(listAttempts, q.Team.UUID, db.Optional(q.Endpoint.UUID), db.Optional(q.Event), before, q.Size+1).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id int64
				var a webhook.Attempt
				err := rows.Scan(&id, &a.At, &a.Endpoint.UUID, &a.Event, &a.Type, (*int64)(&a.Delivery), &a.N, (*string)(&a.Trigger),
					&a.Status, (*string)(&a.Class), (*int64)(&a.Duration), (*string)(&a.State), (*string)(&a.Reason),
					&a.Head, &a.Response)
				if err != nil {
					return err
				}
				a.At = a.At.UTC()
				page.Attempts, ids = append(page.Attempts, a), append(ids, id)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return webhook.AttemptPage{}, err
	}
	if len(ids) > q.Size {
		page.Attempts, page.Next = page.Attempts[:q.Size], strconv.FormatInt(ids[q.Size-1], 10)
	}
	return page, nil
}

const selectMessage = `
select type, user_id, key, seq, at, body from healthlab.webhook_event where team_id = $1 and id = $2`

func (l webhookLog) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	m := webhook.Message{Event: event, Team: team}
	err := l.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectMessage, team.UUID, event).QueryRow(func(row pgx.Row) error {
			var user *uuid.UUID
			if err := row.Scan(&m.Type, &user, &m.Key, &m.Seq, &m.At, &m.Body); err != nil {
				return err
			}
			if user != nil {
				m.User.UUID = *user
			}
			m.At = m.At.UTC()
			if len(m.Body) == 0 {
				m.Body = nil // emptied
				return nil
			}
			var err error
			m.Body, err = l.s.db.Keys.Open(ctx, personkey.Ref{Team: team, User: m.User}, personkey.RowEvent(event), m.Body)
			return err
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return webhook.Message{}, fmt.Errorf("message: %w", healthlab.NotFound)
	}
	return m, err
}
