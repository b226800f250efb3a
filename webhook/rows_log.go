package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// eventByID returns the query for the event of a team.
func eventByID(team healthlab.TeamID, event uuid.UUID) store.Query {
	return store.Query{Key: eventRows.Key(store.Key{Team: team}), By: store.ByFirst}.Equal(store.UUID(event))
}

// Message is that of [Log].
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
