package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// WebhookLog returns the store as a [webhook.Log]. Attempts are kept with deliveries,
// which this adapter does not keep: asking for them is healthlab.Unimplemented.
func (s *Store) WebhookLog() webhook.Log { return webhookLog{s} }

type webhookLog struct{ s *Store }

func (l webhookLog) Attempts(ctx context.Context, _ webhook.AttemptQuery) (webhook.AttemptPage, error) {
	if err := ctx.Err(); err != nil {
		return webhook.AttemptPage{}, err
	}
	return webhook.AttemptPage{}, fmt.Errorf("attempts: %w", healthlab.Unimplemented)
}

const selectMessage = `
select type, user_id, key, seq, at, body from healthlab.webhook_event where team_id = $1 and id = $2`

func (l webhookLog) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	m := webhook.Message{Event: event, Team: team}
	err := l.s.read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectMessage, team.UUID, event).QueryRow(func(row pgx.Row) error {
			var user *uuid.UUID
			if err := row.Scan(&m.Type, &user, &m.Key, &m.Seq, &m.At, &m.Body); err != nil {
				return err
			}
			if user != nil {
				m.User.UUID = *user
			}
			m.At = m.At.UTC()
			return nil
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return webhook.Message{}, fmt.Errorf("message: %w", healthlab.NotFound)
	}
	return m, err
}
