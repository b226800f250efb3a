package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

// Teams returns the store as a [teamsettings.Store].
func (s *Store) Teams() teamsettings.Store { return teamStore{s} }

type teamStore struct{ s *Store }

const (
	selectChoices = `select choices from healthlab.team_settings where team_id = $1`

	startChoices = `insert into healthlab.team_settings (team_id, choices) values ($1, '{}') on conflict (team_id) do nothing`

	lockChoices = selectChoices + ` for no key update`

	updateChoices = `update healthlab.team_settings set choices = $2 where team_id = $1`
)

func queueChoices(b *pgx.Batch, sql string, team healthlab.TeamID, to *teamsettings.Choices) {
	b.Queue(sql, team.UUID).QueryRow(func(row pgx.Row) error {
		*to = teamsettings.Choices{}
		var doc []byte
		if err := db.Absent(row.Scan(&doc)); err != nil || doc == nil {
			return err
		}
		return decodeChoices(doc, to)
	})
}

func decodeChoices(doc []byte, to *teamsettings.Choices) error {
	if err := json.Unmarshal(doc, to); err != nil {
		return fmt.Errorf("decode team settings: %w", err)
	}
	return nil
}

func (v teamStore) Choices(ctx context.Context, team healthlab.TeamID) (teamsettings.Choices, error) {
	var out teamsettings.Choices
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { queueChoices(b, selectChoices, team, &out) })
	return out, err
}

func (v teamStore) UpdateChoices(ctx context.Context, team healthlab.TeamID,
	change func(teamsettings.Choices) (teamsettings.Choices, error),
) (teamsettings.Choices, error) {
	var doc []byte
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var old teamsettings.Choices
		b := u.Batch()
		b.Queue(startChoices, team.UUID)
		queueChoices(b, lockChoices, team, &old)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next, err := change(old)
		if err != nil {
			return db.Answer(err)
		}
		if doc, err = json.Marshal(next); err != nil {
			return fmt.Errorf("encode team settings: %w", err)
		}
		b = u.Batch()
		b.Queue(updateChoices, team.UUID, doc)
		return u.Commit(ctx, b)
	})
	var out teamsettings.Choices
	if err == nil { // a copy of its own
		err = decodeChoices(doc, &out)
	}
	return out, err
}
