package memory

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

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
