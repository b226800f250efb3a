package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func eventByID(team healthlab.TeamID, event uuid.UUID) store.Query {
	return store.Query{Key: eventRows.Key(store.Key{Team: team}), By: store.ByFirst}.Equal(store.UUID(event))
}

// Message implements [Log].
func (s *Store) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (Message, error) {
	found, err := eventRows.Look(ctx, s.s, eventByID(team, event))
	if err != nil {
		return Message{}, err
	}
	if len(found) == 0 {
		return Message{}, fmt.Errorf("message: %w", healthlab.NotFound)
	}
	e := &found[0].Value
	return Message{Event: e.ID, Type: e.Type, Team: e.Team, User: e.User, Key: e.Key, Seq: e.Seq, At: e.At, Body: e.body}, nil
}

// Attempts implements [Log].
func (s *Store) Attempts(ctx context.Context, q AttemptQuery) (AttemptPage, error) {
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	before, err := decodeCursor(q.Cursor, 40)
	if err != nil {
		return AttemptPage{}, err
	}
	list, prefix := store.Query{Key: store.Key{Team: q.Team}, By: store.ByID}, ""
	switch {
	case q.Event != uuid.Nil:
		list.By, prefix = store.BySecond, store.UUID(q.Event)
	case q.Endpoint != (EndpointID{}):
		list.By, prefix = store.ByFirst, store.UUID(q.Endpoint.UUID)
	}
	list = prefixed(list, prefix)
	list.Desc, list.Limit = true, size+1
	var page AttemptPage
	for {
		if before != "" {
			list.To = prefix + before
		}
		found, err := attemptRows.Look(ctx, s.s, list)
		if err != nil {
			return AttemptPage{}, err
		}
		for _, f := range found {
			a := &f.Value
			switch {
			case q.Endpoint != (EndpointID{}) && a.Endpoint != q.Endpoint:
			case len(page.Attempts) == size:
				page.Next = cursorOf(before)
				return page, nil
			default:
				page.Attempts = append(page.Attempts, a.Attempt)
			}
			before = attemptRows.Row(a).ID
		}
		if len(found) <= size {
			return page, nil
		}
	}
}
