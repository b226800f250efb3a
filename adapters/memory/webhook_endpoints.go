package memory

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

type endpoints struct{ *outbox }

func (p endpoints) Insert(ctx context.Context, e webhook.Endpoint, most int) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	if _, taken := p.queue.endpoints[e.ID]; taken {
		return fmt.Errorf("insert endpoint: %w", healthlab.Conflict)
	}
	mine := 0
	for _, t := range p.queue.endpoints {
		if t.Team == e.Team {
			mine++
		}
	}
	if mine >= most {
		return fmt.Errorf("insert endpoint: %w: a team has at most %d", healthlab.Exhausted, most)
	}
	e = normalEndpoint(e)
	e.Revision = 1
	p.queue.endpoints[e.ID] = &target{Endpoint: e, lanes: map[webhook.Lane]*lane{}}
	return nil
}

// normalEndpoint returns e as it is stored: a copy, its times in UTC to the microsecond.
func normalEndpoint(e webhook.Endpoint) webhook.Endpoint {
	e = e.Clone()
	for _, t := range []*time.Time{
		&e.CreatedAt, &e.UpdatedAt, &e.Health.FirstFailedAt, &e.Health.LastFailedAt,
		&e.Health.ArmedAt, &e.Health.PausedUntil,
	} {
		*t = instant(*t)
	}
	for i := range e.Secrets {
		e.Secrets[i].CreatedAt = instant(e.Secrets[i].CreatedAt)
		e.Secrets[i].ExpiresAt = instant(e.Secrets[i].ExpiresAt)
	}
	return e
}

func (p endpoints) Get(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
	if err := p.lock(ctx); err != nil {
		return webhook.Endpoint{}, err
	}
	defer p.mu.Unlock()
	t, err := p.queue.endpoint(team, id)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	return t.Endpoint.Clone(), nil
}

func (p endpoints) Update(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID,
	change func(*webhook.Endpoint) ([]healthlab.Event, error),
) (webhook.Endpoint, error) {
	if err := p.lock(ctx); err != nil {
		return webhook.Endpoint{}, err
	}
	defer p.mu.Unlock()
	t, err := p.queue.endpoint(team, id)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	was := t.Endpoint
	e := was.Clone()
	events, err := change(&e)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	if err := p.emit(ctx, events); err != nil {
		return webhook.Endpoint{}, fmt.Errorf("update endpoint: %w", err)
	}
	e = normalEndpoint(e)
	e.ID, e.Team, e.CreatedAt, e.Revision = was.ID, was.Team, was.CreatedAt, was.Revision+1
	t.Endpoint = e
	now := p.clock()
	if e.Disabled && !was.Disabled {
		p.queue.cancelAll(t, webhook.ReasonDisabled, now)
	}
	if e.Health.PauseStep == 0 && was.Health.PauseStep > 0 {
		t.resume(now)
	}
	return e.Clone(), nil
}

// cancelAll ends every unfinished delivery of the endpoint.
func (q *queue) cancelAll(t *target, why webhook.Reason, now time.Time) {
	for _, l := range t.lanes {
		for _, r := range l.rows {
			q.end(r, webhook.Cancelled, why, now)
			q.drop(r)
		}
	}
	t.lanes, t.due = map[webhook.Lane]*lane{}, nil
}

// resume makes all heads due at once.
func (t *target) resume(now time.Time) {
	for _, r := range t.due {
		if r.due.After(now) {
			r.due = now
		}
	}
	heap.Init(&t.due)
}

func (p endpoints) List(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
	if err := p.lock(ctx); err != nil {
		return webhook.EndpointPage{}, err
	}
	defer p.mu.Unlock()
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return webhook.EndpointPage{}, err
	}
	var mine []webhook.Endpoint
	for _, t := range p.queue.endpoints {
		if t.Team == q.Team && (q.Cursor == "" || after.before(t.CreatedAt, t.ID.UUID)) {
			mine = append(mine, t.Endpoint)
		}
	}
	slices.SortFunc(mine, newestFirst)
	var page webhook.EndpointPage
	for _, e := range mine[:min(size, len(mine))] {
		page.Endpoints = append(page.Endpoints, e.Clone())
	}
	if len(mine) > size {
		last := page.Endpoints[size-1]
		page.Next = cursor{last.CreatedAt, last.ID.UUID}.String()
	}
	return page, nil
}

func newestFirst(a, b webhook.Endpoint) int {
	if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
		return c
	}
	return bytes.Compare(b.ID.UUID[:], a.ID.UUID[:])
}

func (p endpoints) Delete(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) error {
	if err := p.lock(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	t, err := p.queue.endpoint(team, id)
	if err != nil {
		return err
	}
	p.queue.cancelAll(t, webhook.ReasonDeleted, p.clock())
	delete(p.queue.endpoints, id)
	return nil
}

func (p endpoints) Armed(ctx context.Context, until time.Time) ([]webhook.Endpoint, error) {
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	var armed []webhook.Endpoint
	for _, t := range p.queue.endpoints {
		if at := t.Health.ArmedAt; !t.Disabled && !at.IsZero() && !at.After(until) {
			armed = append(armed, t.Endpoint.Clone())
		}
	}
	return armed, nil
}
