package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

const selectBacklog = `
select p.n, d.n, greatest(0, extract(epoch from healthlab.clock() - least(p.oldest, d.oldest)))::float8
from (select count(*) as n, min(created_at) as oldest from healthlab.webhook_pending) p,
     (select count(*) as n, min(queued_at) as oldest from healthlab.webhook_delivery) d`

// Backlog counts what the store still has to deliver, over all teams.
func (s *Store) Backlog(ctx context.Context) (webhook.Backlog, error) {
	var b webhook.Backlog
	var seconds *float64
	if err := s.db.QueryRow(ctx, selectBacklog).Scan(&b.Unrouted, &b.Unfinished, &seconds); err != nil {
		return webhook.Backlog{}, fmt.Errorf("count backlog: %w", db.Classify(ctx, err))
	}
	if seconds != nil {
		b.Oldest = time.Duration(*seconds * float64(time.Second))
	}
	return b, nil
}
