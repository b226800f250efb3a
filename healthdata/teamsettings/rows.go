package teamsettings

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// chosen is a row with the choices of a team.
type chosen struct {
	Team    healthlab.TeamID
	Choices Choices
}

var choicesTable = store.Table[chosen]{Name: "team_settings", Row: func(c *chosen) store.Row {
	return store.Row{Key: choicesKey(c.Team)}
}}

func choicesKey(team healthlab.TeamID) store.Key { return store.Key{Team: team, ID: "settings"} }

// Queries returns the queries of [Store].Choices for a team, for a transaction that reads all rows at once.
func Queries(team healthlab.TeamID) []store.Query {
	return []store.Query{choicesTable.One(choicesKey(team), store.Plain)}
}

// Tables declares the tables of [NewStore].
func Tables() []store.Definition { return []store.Definition{choicesTable.Definition()} }

// NewStore returns a Store that keeps choices in s, whose tables must include [Tables].
func NewStore(s store.Store) Store { return rowStore{s} }

type rowStore struct{ s store.Store }

func (r rowStore) Choices(ctx context.Context, team healthlab.TeamID) (Choices, error) {
	e, err := choicesTable.LookOne(ctx, r.s, choicesKey(team))
	if err != nil || e == nil {
		return Choices{}, err
	}
	return e.Value.Choices, nil
}

func (r rowStore) UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(Choices) (Choices, error)) (Choices, error) {
	var out Choices
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := choicesTable.Get(tx, choicesKey(team), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[chosen]{Value: chosen{Team: team}}
		}
		if e.Value.Choices, err = change(e.Value.Choices); err != nil {
			return err
		}
		kept, err := choicesTable.Copy(&e.Value)
		if err != nil {
			return err
		}
		out = kept.Choices
		return choicesTable.Put(tx, e)
	})
	return out, err
}

// DeleteTeam deletes the choices of a team, in the transaction that deletes the team.
func DeleteTeam(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	tx.Delete(choicesTable.Key(choicesKey(team)))
	return nil
}
