package linkstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

const (
	insertOp = `
insert into healthlab.bulk_op (team_id, op_id, type, provider, total, started_at, status, ended_at, due_at, leased_until, fence, next, failed)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
on conflict do nothing`

	insertItems = `
insert into healthlab.bulk_item (op_id, n, team_id, user_id, key_id, box)
select $2, i.n - 1, $1, i.user_id, i.key_id, i.box
from unnest($3::uuid[], $4::text[], $5::bytea[]) with ordinality i (user_id, key_id, box, n)`

	opColumns = `
o.team_id, o.op_id, o.type, o.provider, o.total, o.started_at, o.status, o.ended_at, o.due_at, o.leased_until, o.fence, o.next, o.failed,
(select array_agg(i.user_id order by i.n) from healthlab.bulk_item i where i.team_id = o.team_id and i.op_id = o.op_id and i.running)`

	selectOp = `select ` + opColumns + ` from healthlab.bulk_op o where o.team_id = $1 and o.op_id = $2`

	lockOp = selectOp + ` for no key update`

	updateOp = `
update healthlab.bulk_op set status = $3, ended_at = $4, due_at = $5, leased_until = $6, fence = $7, next = $8, failed = $9
where team_id = $1 and op_id = $2`

	// Few run at a time.
	setRunning = `
update healthlab.bulk_item set running = (user_id = any($3))
where team_id = $1 and op_id = $2 and running <> (user_id = any($3))`

	claimOps = `
with due as (
	select o.team_id, o.op_id from healthlab.bulk_op o
	where o.status = 'in_progress' and o.due_at <= $1 and (o.leased_until is null or o.leased_until <= healthlab.clock()) and not exists (
		select from healthlab.bulk_op e where e.team_id = o.team_id and e.provider = o.provider and e.status = 'in_progress'
			and (e.started_at, e.op_id) < (o.started_at, o.op_id))
	order by o.due_at, o.op_id limit $2 for update of o skip locked
), claimed as (
	update healthlab.bulk_op o set leased_until = healthlab.clock() + $3::interval, fence = o.fence + 1 from due d
	where o.team_id = d.team_id and o.op_id = d.op_id returning o.*
)
select ` + opColumns + ` from claimed o order by o.due_at, o.op_id`

	selectItems = `
select n, user_id, coalesce(key_id, ''), box, outcome from healthlab.bulk_item
where team_id = $1 and op_id = $2 and n >= $3 order by n limit $4`

	dropGrants = `
update healthlab.bulk_item set key_id = null, box = null where team_id = $1 and op_id = $2 and box is not null`

	pruneOps = `
with old as (
	select team_id, op_id from healthlab.bulk_op where ended_at < $1 and status <> 'in_progress'
	order by ended_at, op_id limit $2 for update skip locked
), items as (
	delete from healthlab.bulk_item i using old where i.team_id = old.team_id and i.op_id = old.op_id
)
delete from healthlab.bulk_op o using old where o.team_id = old.team_id and o.op_id = old.op_id`

	selectOps = `
select ` + opColumns + ` from healthlab.bulk_op o
where o.team_id = $1 and ($2::timestamptz is null or (o.started_at, o.op_id) < ($2, $3)) order by o.started_at desc, o.op_id desc limit $4`
)

// opValues are what changes of an operation.
func opValues(op *bulk.Op) []any {
	return []any{string(op.Status), db.Nullable(op.EndedAt), db.Nullable(op.Due), db.Nullable(op.Lease), op.Fence, op.Next, op.Failed}
}

func scanOp(row pgx.Row) (op bulk.Op, err error) {
	var ended, due, lease *time.Time
	var running []uuid.UUID
	err = row.Scan(&op.Team.UUID, &op.ID, &op.Type, &op.Provider, &op.Total, &op.StartedAt, &op.Status, &ended, &due, &lease, &op.Fence, &op.Next,
		&op.Failed, &running)
	op.StartedAt, op.EndedAt, op.Due, op.Lease = op.StartedAt.UTC(), db.TimeOrZero(ended), db.TimeOrZero(due), db.TimeOrZero(lease)
	for _, u := range running {
		op.Running = append(op.Running, healthlab.UserID{UUID: u})
	}
	return op, err
}

func scanOps(out *[]bulk.Op) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*out = nil
		for rows.Next() {
			op, err := scanOp(rows)
			if err != nil {
				return err
			}
			*out = append(*out, op)
		}
		return rows.Err()
	}
}

// keepOp returns an operation in the form in which it is kept.
func keepOp(op bulk.Op) (bulk.Op, error) {
	op.Running = slices.Clone(op.Running)
	if len(op.Running) == 0 {
		op.Running = nil
	}
	op.StartedAt, op.EndedAt, op.Due, op.Lease = db.Instant(op.StartedAt), db.Instant(op.EndedAt), db.Instant(op.Due), db.Instant(op.Lease)
	return op, healthlab.CheckText(string(op.Type), op.Provider, string(op.Status))
}

// bareIDs are the ids of users.
func bareIDs(users []healthlab.UserID) []uuid.UUID {
	out := make([]uuid.UUID, len(users))
	for i, u := range users {
		out[i] = u.UUID
	}
	return out
}

func (v bulkStore) Submit(ctx context.Context, op bulk.Op, items []bulk.Item) error {
	op, err := keepOp(op)
	if err != nil {
		return err
	}
	if op.ID == uuid.Nil || op.Team.IsZero() {
		return fmt.Errorf("%w: a bulk operation needs an id and a team", healthlab.Invalid)
	}
	users, keys, boxes := make([]uuid.UUID, len(items)), make([]*string, len(items)), make([][]byte, len(items))
	for i := range items {
		it := &items[i]
		users[i], boxes[i] = it.User.UUID, it.Grant.Box
		if it.Grant.Box == nil {
			continue
		}
		if err := healthlab.CheckText(it.Grant.KeyID); err != nil {
			return err
		}
		keys[i] = &it.Grant.KeyID
	}
	row := append([]any{op.Team.UUID, op.ID, string(op.Type), op.Provider, op.Total, op.StartedAt}, opValues(&op)...)
	return v.s.db.Do(ctx, op.Team, db.Writing, func(u *db.Tx) error {
		var added pgconn.CommandTag
		b := u.Batch()
		db.KeepTag(b.Queue(insertOp, row...), &added)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return db.Answer(fmt.Errorf("%w: the bulk operation's id is taken", healthlab.Conflict))
		}
		b = u.Batch()
		b.Queue(insertItems, op.Team.UUID, op.ID, users, keys, boxes)
		return u.Commit(ctx, b)
	})
}

func (v bulkStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []bulk.Op
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		b.Queue(claimOps, db.Instant(now), n, lease).Query(scanOps(&out))
		return u.Commit(ctx, b)
	})
	return out, err
}

func (v bulkStore) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
	var out []bulk.Item
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectItems, team.UUID, id, from, max(n, 0)).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var it bulk.Item
				if err := rows.Scan(&it.N, &it.User.UUID, &it.Grant.KeyID, &it.Grant.Box, &it.Outcome); err != nil {
					return err
				}
				out = append(out, it)
			}
			return rows.Err()
		})
	})
	return out, err
}

func queueOp(b *pgx.Batch, sql string, team healthlab.TeamID, id uuid.UUID, op *bulk.Op) {
	b.Queue(sql, team.UUID, id).QueryRow(func(row pgx.Row) (err error) {
		*op, err = scanOp(row)
		return err
	})
}

func noOp(err error) error { return db.MissingRow(err, "the team has no such bulk operation") }

func (v bulkStore) Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (bulk.Op, error) {
	var op bulk.Op
	if err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { queueOp(b, selectOp, team, id, &op) }); err != nil {
		return bulk.Op{}, noOp(err)
	}
	return op, nil
}

func (v bulkStore) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	var next bulk.Op
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var old bulk.Op
		b := u.Batch()
		queueOp(b, lockOp, team, id, &old)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next = old
		next.Running = slices.Clone(old.Running)
		if err := change(&next); err != nil {
			return db.Answer(err)
		}
		next.ID, next.Team, next.Type, next.Provider, next.StartedAt, next.Total = old.ID, old.Team, old.Type, old.Provider, old.StartedAt, old.Total
		var err error
		if next, err = keepOp(next); err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		b.Queue(updateOp, append([]any{team.UUID, id}, opValues(&next)...)...)
		if len(old.Running)+len(next.Running) > 0 {
			b.Queue(setRunning, team.UUID, id, bareIDs(next.Running))
		}
		if next.Status != bulk.InProgress {
			b.Queue(dropGrants, team.UUID, id)
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return bulk.Op{}, noOp(err)
	}
	return next, nil
}

func (v bulkStore) Ops(ctx context.Context, team healthlab.TeamID, before bulk.ListPosition, n int) ([]bulk.Op, error) {
	var out []bulk.Op
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectOps, team.UUID, db.Nullable(db.Instant(before.StartedAt)), before.ID, max(n, 0)).Query(scanOps(&out))
	})
	return out, err
}

func (v bulkStore) Prune(ctx context.Context, n int, before time.Time) (int, error) {
	if n <= 0 {
		return 0, ctx.Err()
	}
	var gone pgconn.CommandTag
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { db.KeepTag(b.Queue(pruneOps, db.Instant(before), n), &gone) })
	})
	if err != nil {
		return 0, err
	}
	return int(gone.RowsAffected()), nil
}
