package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// EventBodies returns the store as a [webhook.Bodies].
func (s *Store) EventBodies() webhook.Bodies { return eventBodies{s} }

type eventBodies struct{ s *Store }

const (
	// From team to team; their messages are not read.
	selectBodyTeams = `
with recursive t (team_id) as (
	(select e.team_id from healthlab.webhook_event e order by e.team_id limit 1)
	union all
	select (select e.team_id from healthlab.webhook_event e where e.team_id > t.team_id order by e.team_id limit 1)
	from t where t.team_id is not null)
select t.team_id from t where t.team_id is not null`

	// The length of a body is known without reading it.
	isOver = `octet_length(e.body) > 0 and ` + isRouted + `
	and not exists (select from healthlab.webhook_delivery d where d.event_id = e.id)
	and not exists (select from healthlab.webhook_attempt a where a.event_id = e.id and a.at >= $3)`

	selectOver = `
select e.id, e.created_at from healthlab.webhook_event e
where e.team_id = $1 and e.created_at >= $2 and e.created_at < $3 and ` + isOver + `
order by e.created_at, e.id limit $4`

	emptyBodies = `
update healthlab.webhook_event e set body = ''
where e.team_id = $1 and e.id = any ($2) and e.created_at between $4 and $5 and ` + isOver

	// What is before the first message that has a body need not be looked at by this process.
	selectFirstBody = `
select min(e.created_at) from healthlab.webhook_event e
where e.team_id = $1 and e.created_at >= $2 and e.created_at < $3 and octet_length(e.body) > 0`
)

func (v eventBodies) Teams(ctx context.Context) ([]healthlab.TeamID, error) {
	var out []healthlab.TeamID
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(selectBodyTeams).Query(func(rows pgx.Rows) error {
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			out = out[:0]
			for _, id := range ids {
				out = append(out, healthlab.TeamID{UUID: id})
			}
			return err
		})
	})
	return out, err
}

// EmptyBodies searches without the lock of routing, which all deliveries of all teams wait for.
// Under the lock it looks only at what it found.
func (v eventBodies) EmptyBodies(ctx context.Context, team healthlab.TeamID, ended time.Time, n int) (int, error) {
	ended = db.Instant(ended)
	over, err := v.over(ctx, team, ended, n)
	if err != nil || len(over) == 0 {
		return 0, err
	}
	ids := make([]uuid.UUID, len(over))
	for i, p := range over {
		ids[i] = p.id
	}
	var changed pgconn.CommandTag
	err = v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		u.Tune(b, tuneQueue)
		b.Queue(holdRouting, int64(Routing)) // no replay begins meanwhile
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		b = u.Batch()
		db.KeepTag(b.Queue(emptyBodies, team.UUID, ids, ended, over[0].at, over[len(over)-1].at), &changed)
		return u.Commit(ctx, b)
	})
	return int(changed.RowsAffected()), err
}

// over returns the places of at most n messages whose bodies can be emptied, the oldest first.
func (v eventBodies) over(ctx context.Context, team healthlab.TeamID, ended time.Time, n int) (over []place, err error) {
	from := v.s.emptied.of(team)
	var first *time.Time
	err = v.s.db.Do(ctx, team, db.Reading, func(u *db.Tx) error {
		b := u.Batch()
		u.Tune(b, tuneQueue)
		b.Queue(selectOver, team.UUID, from, ended, n).Query(func(rows pgx.Rows) (err error) {
			over, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
				return p, row.Scan(&p.id, &p.at)
			})
			return err
		})
		b.Queue(selectFirstBody, team.UUID, from, ended).QueryRow(func(row pgx.Row) error { return row.Scan(&first) })
		return u.Commit(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	if first == nil {
		first = &ended
	}
	v.s.emptied.put(team, first.UTC())
	return over, nil
}
