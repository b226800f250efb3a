package memory

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
)

// Backlog counts what the store still has to deliver. A program that stops says so, because
// with the process it is gone.
func (s *Store) Backlog(ctx context.Context) (webhook.Backlog, error) {
	if err := s.lock(ctx); err != nil {
		return webhook.Backlog{}, err
	}
	defer s.mu.Unlock()
	b := webhook.Backlog{Unrouted: len(s.outbox.pending), Unfinished: len(s.queue.rows)}
	now := s.now()
	older := func(at time.Time) { b.Oldest = max(b.Oldest, now.Sub(at)) }
	if b.Unrouted > 0 {
		older(s.outbox.pending[0].at)
	}
	for _, r := range s.queue.rows {
		older(r.queued)
	}
	return b, nil
}
