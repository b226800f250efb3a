package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// Priorities returns the store as an [aggregate.PriorityStore].
func (s *Store) Priorities() aggregate.PriorityStore { return continuousStore{s} }

const (
	selectPriorities = `select list from healthlab.source_priority where team_id = $1`

	startPriorities = `insert into healthlab.source_priority (team_id, list) values ($1, '[]') on conflict (team_id) do nothing`

	lockPriorities = selectPriorities + ` for no key update`

	updatePriorities = `update healthlab.source_priority set list = $2 where team_id = $1`

	// A worker goes through all users of the team.
	rescheduleQueries = `
update healthlab.continuous_query set backfill_after = '00000000-0000-0000-0000-000000000000' where team_id = $1`
)

func queuePriorities(b *pgx.Batch, sql string, team healthlab.TeamID, to *[]aggregate.Priority) {
	b.Queue(sql, team.UUID).QueryRow(func(row pgx.Row) error {
		var list []byte
		if err := db.Absent(row.Scan(&list)); err != nil || list == nil {
			return err
		}
		if err := json.Unmarshal(list, to); err != nil {
			return fmt.Errorf("decode priorities: %w", err)
		}
		return nil
	})
}

func (v continuousStore) Priorities(ctx context.Context, team healthlab.TeamID) ([]aggregate.Priority, error) {
	var out []aggregate.Priority
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		out = nil
		queuePriorities(b, selectPriorities, team, &out)
	})
	return out, err
}

func (v continuousStore) UpdatePriorities(ctx context.Context, team healthlab.TeamID,
	change func([]aggregate.Priority) ([]aggregate.Priority, error),
) ([]aggregate.Priority, error) {
	var list []aggregate.Priority
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var old []aggregate.Priority
		b := u.Batch()
		b.Queue(startPriorities, team.UUID)
		queuePriorities(b, lockPriorities, team, &old)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next, err := change(slices.Clone(old))
		if err != nil {
			return db.Answer(err)
		}
		list = slices.Clone(next)
		for _, p := range list {
			if err := healthlab.CheckText(p.Provider, p.Data); err != nil {
				return db.Answer(err)
			}
		}
		if err := aggregate.SortPriorities(list); err != nil {
			return db.Answer(err)
		}
		if slices.Equal(list, old) {
			return nil
		}
		doc, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("encode priorities: %w", err)
		}
		b = u.Batch()
		b.Queue(updatePriorities, team.UUID, doc)
		b.Queue(rescheduleQueries, team.UUID)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
