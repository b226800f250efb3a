package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

const (
	defaultPage = 50
	cancelBatch = 500 // rows per read when all deliveries of an endpoint are changed
)

// Insert implements [Endpoints].
func (s *Store) Insert(ctx context.Context, e Endpoint, most int) error {
	e = normalEndpoint(e)
	e.Revision = 1
	return s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		team, err := teamRows.Get(tx, teamKey(e.Team), store.Held)
		if err != nil {
			return err
		}
		taken, err := targetRows.Get(tx, targetKey(e.ID), store.Shared)
		if err != nil {
			return err
		}
		if team == nil {
			team = &store.Entry[teamRow]{Value: teamRow{Team: e.Team}}
		}
		switch {
		case taken != nil:
			return fmt.Errorf("insert endpoint: %w: id: an endpoint with this id exists", healthlab.Conflict)
		case team.Value.Endpoints >= most:
			return fmt.Errorf("insert endpoint: %w: a team must have at most %d endpoints", healthlab.Exhausted, most)
		}
		team.Value.Endpoints++
		if err := teamRows.Put(tx, team); err != nil {
			return err
		}
		target := targetOf(&e)
		if err := targetRows.Insert(tx, &target); err != nil {
			return err
		}
		return endpointRows.Insert(tx, &e)
	})
}

// normalEndpoint returns a copy of e in its stored form, with times in UTC to the microsecond.
func normalEndpoint(e Endpoint) Endpoint {
	e = e.Clone()
	for _, t := range []*time.Time{
		&e.CreatedAt, &e.UpdatedAt, &e.Health.FirstFailedAt, &e.Health.LastFailedAt, &e.Health.ArmedAt, &e.Health.PausedUntil,
	} {
		*t = microsecond(*t)
	}
	for i := range e.Secrets {
		e.Secrets[i].CreatedAt, e.Secrets[i].ExpiresAt = microsecond(e.Secrets[i].CreatedAt), microsecond(e.Secrets[i].ExpiresAt)
	}
	return e
}

func microsecond(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Get implements [Endpoints].
func (s *Store) Get(ctx context.Context, team healthlab.TeamID, id EndpointID) (Endpoint, error) {
	e, err := endpointRows.LookOne(ctx, s.s, endpointRows.Key(endpointKey(team, id)))
	switch {
	case err != nil:
		return Endpoint{}, err
	case e == nil:
		return Endpoint{}, noEndpoint()
	}
	return e.Value, nil
}

func noEndpoint() error { return fmt.Errorf("endpoint: %w", healthlab.NotFound) }

// Update implements [Endpoints].
func (s *Store) Update(ctx context.Context, team healthlab.TeamID, id EndpointID,
	change func(*Endpoint) ([]healthlab.Event, error),
) (Endpoint, error) {
	var out Endpoint
	err := s.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, target, err := lockEndpoint(tx, team, id)
		if err != nil {
			return err
		}
		was := e.Value.Clone()
		events, err := change(&e.Value)
		if err != nil {
			return err
		}
		if err := s.events.Append(ctx, tx, events); err != nil {
			return fmt.Errorf("update endpoint: %w", err)
		}
		now := normalEndpoint(e.Value)
		now.ID, now.Team, now.CreatedAt, now.Revision = was.ID, was.Team, was.CreatedAt, was.Revision+1
		e.Value, out = now, now.Clone()
		if err := endpointRows.Put(tx, e); err != nil {
			return err
		}
		target.Value = targetOf(&now)
		if err := targetRows.Put(tx, target); err != nil {
			return err
		}
		q := newQueue(tx, s.events.retention)
		switch {
		case now.Disabled && !was.Disabled:
			err = q.cancelAll(&now, ReasonDisabled)
		case now.Health.PauseStep == 0 && was.Health.PauseStep > 0:
			err = q.resume(&now)
		}
		if err != nil {
			return err
		}
		return q.flush()
	})
	if err != nil {
		return Endpoint{}, err
	}
	return out, nil
}

// lockEndpoint reads both rows of an endpoint and locks them exclusively. It returns NotFound if there is no endpoint.
func lockEndpoint(tx store.Tx, team healthlab.TeamID, id EndpointID) (*store.Entry[Endpoint], *store.Entry[targetRow], error) {
	if _, err := tx.Read(endpointRows.One(endpointKey(team, id), store.Held), targetRows.One(targetKey(id), store.Held)); err != nil {
		return nil, nil, err
	}
	e, err := endpointRows.Get(tx, endpointKey(team, id), store.Held)
	if err != nil {
		return nil, nil, err
	}
	target, err := targetRows.Get(tx, targetKey(id), store.Held)
	if err != nil {
		return nil, nil, err
	}
	if e == nil || target == nil {
		return nil, nil, noEndpoint()
	}
	return e, target, nil
}

// cancelAll ends every unfinished delivery of an endpoint as Cancelled with the reason why.
func (q *queue) cancelAll(to *Endpoint, why Reason) error {
	err := q.eachLane(to, func(l *laneState) error {
		if err := q.cancelled(l, &l.Value.Head, l.Value.Attempts, why); err != nil {
			return err
		}
		l.empty, l.changed = true, true
		return nil
	})
	if err != nil {
		return err
	}
	list := store.Query{Key: waitingRows.Key(store.Key{Team: to.Team}), By: store.ByID, Lock: store.Held}
	list = prefixed(list, store.UUID(to.ID.UUID))
	for last := ""; ; {
		found, err := waitingRows.Find(q.tx, list.After(last, cancelBatch))
		if err != nil {
			return err
		}
		for _, w := range found {
			p := w.Value.lanePlace
			if err := q.logAttempt(&p, &w.Value.queued, 0, Attempt{State: Cancelled, Reason: why}); err != nil {
				return err
			}
			waitingRows.Delete(q.tx, w)
			last = p.id() + store.Int(int64(w.Value.ID))
		}
		if len(found) < cancelBatch {
			return nil
		}
	}
}

// resume makes the first deliveries of all lanes of an endpoint due at once.
func (q *queue) resume(to *Endpoint) error {
	return q.eachLane(to, func(l *laneState) error {
		if l.Value.Due.After(q.now) {
			l.Value.Due, l.changed = q.now, true
		}
		return nil
	})
}

// eachLane locks each lane of an endpoint that is not empty, and calls do with it.
func (q *queue) eachLane(to *Endpoint, do func(*laneState) error) error {
	list := store.Query{Key: laneRows.Key(store.Key{Team: to.Team}), By: store.ByID, Lock: store.Held}
	list = prefixed(list, store.UUID(to.ID.UUID))
	for last := ""; ; {
		found, err := laneRows.Find(q.tx, list.After(last, cancelBatch))
		if err != nil {
			return err
		}
		for _, l := range found {
			last = l.Value.id()
			if err := do(q.add(l)); err != nil {
				return err
			}
		}
		if len(found) < cancelBatch {
			return nil
		}
	}
}

// List implements [Endpoints].
func (s *Store) List(ctx context.Context, q EndpointQuery) (EndpointPage, error) {
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	before, err := decodeCursor(q.Cursor, 24)
	if err != nil {
		return EndpointPage{}, err
	}
	found, err := endpointRows.Look(ctx, s.s, store.Query{
		Key: store.Key{Team: q.Team}, By: store.ByFirst, To: before, Desc: true, Limit: size + 1,
	})
	if err != nil {
		return EndpointPage{}, err
	}
	var page EndpointPage
	for _, e := range found[:min(size, len(found))] {
		page.Endpoints = append(page.Endpoints, e.Value)
	}
	if len(found) > size {
		page.Next = cursorOf(endpointRows.Row(&found[size-1].Value).Index[0])
	}
	return page, nil
}

func cursorOf(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// decodeCursor decodes a cursor, which must have size bytes; empty for an empty cursor.
func decodeCursor(cursor string, size int) (string, error) {
	if cursor == "" {
		return "", nil
	}
	place, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(place) != size {
		return "", &healthlab.InvalidError{Problems: []healthlab.Problem{{
			Path: []any{"cursor"}, Code: "bad_cursor", Msg: "must be the next_cursor of an earlier page of the same list",
		}}}
	}
	return string(place), nil
}

// Delete implements [Endpoints].
func (s *Store) Delete(ctx context.Context, team healthlab.TeamID, id EndpointID) error {
	return s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		owner, err := teamRows.Get(tx, teamKey(team), store.Held)
		if err != nil {
			return err
		}
		e, target, err := lockEndpoint(tx, team, id)
		if err != nil {
			return err
		}
		owner.Value.Endpoints--
		if err := teamRows.Put(tx, owner); err != nil {
			return err
		}
		q := newQueue(tx, s.events.retention)
		if err := q.cancelAll(&e.Value, ReasonDeleted); err != nil {
			return err
		}
		endpointRows.Delete(tx, e)
		targetRows.Delete(tx, target)
		return q.flush()
	})
}

// Armed implements [Endpoints].
func (s *Store) Armed(ctx context.Context, until time.Time) ([]Endpoint, error) {
	found, err := endpointRows.Look(ctx, s.s, store.Query{By: store.ByDue, Until: until})
	if err != nil {
		return nil, err
	}
	var armed []Endpoint
	for _, e := range found {
		armed = append(armed, e.Value)
	}
	return armed, nil
}
