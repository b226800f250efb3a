package linkstore

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

const (
	// The user of an item never changes. Users are locked before what is theirs, as every transaction that
	// erases one does.
	lockUserOfItem = `
select from healthlab.users where team_id = $1
	and user_id = (select user_id from healthlab.bulk_item where team_id = $1 and op_id = $2 and n = $3)
for no key update`

	lockItem = `
select user_id, box is not null, outcome from healthlab.bulk_item where team_id = $1 and op_id = $2 and n = $3 for no key update`

	selectUserOfItem = `select ` + userstore.Columns + ` from healthlab.users u join healthlab.bulk_item i on i.user_id = u.user_id and i.team_id = u.team_id
where i.team_id = $1 and i.op_id = $2 and i.n = $3`

	itemAccountTaken = `
select exists (
	select from healthlab.connection c join healthlab.users u on u.user_id = c.user_id
	where c.team_id = $1 and c.provider = $4 and md5(c.external_user_id) = md5($5) and c.external_user_id = $5
		and c.status <> 'deregistered' and u.deleted_at is null
		and c.user_id <> (select user_id from healthlab.bulk_item where team_id = $1 and op_id = $2 and n = $3))`

	settleItem = `
update healthlab.bulk_item set outcome = $4, key_id = null, box = null where team_id = $1 and op_id = $2 and n = $3`
)

// waiting is an item, and whether it has a grant.
type waiting struct {
	user    healthlab.UserID
	granted bool
	outcome bulk.Outcome
}

func queueItem(b *pgx.Batch, team healthlab.TeamID, id uuid.UUID, n int, it *waiting) {
	b.Queue(lockItem, team.UUID, id, n).QueryRow(func(row pgx.Row) error { return row.Scan(&it.user.UUID, &it.granted, &it.outcome) })
}

func noItem(err error) error {
	return db.MissingRow(err, "the team has no such item of a bulk operation, or no such user")
}

func (v bulkStore) Import(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
	text := []string{c.Credential.Provider, c.Credential.Secret.KeyID, c.Credential.Previous.KeyID}
	if c.Sole != nil {
		text = append(text, *c.Sole)
	}
	if err := healthlab.CheckText(text...); err != nil {
		return "", err
	}
	var out bulk.Outcome
	err := v.s.db.Do(ctx, c.Team, db.Writing, func(u *db.Tx) error {
		var it waiting
		var user healthdata.User
		var taken, there bool
		place := []any{c.Team.UUID, c.Op, c.N}
		b := u.Batch()
		if c.Sole != nil { // so that of two people who bring the same account one comes later
			db.LockTeam(b, c.Team)
		}
		b.Queue(lockUserOfItem, place...)
		queueItem(b, c.Team, c.Op, c.N, &it)
		b.Queue(selectUserOfItem, place...).QueryRow(func(row pgx.Row) (err error) {
			user, err = v.s.users.Scan(ctx, row)
			if there = err == nil; errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if c.Sole != nil {
			b.Queue(itemAccountTaken, append(place, c.Credential.Provider, *c.Sole)...).QueryRow(func(row pgx.Row) error { return row.Scan(&taken) })
		}
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if out = it.outcome; !it.granted {
			return nil
		}
		if !there {
			return db.Answer(noItem(pgx.ErrNoRows))
		}
		_, b, err := v.s.users.Change(ctx, u, &user, func(person *healthdata.User) ([]healthlab.Event, error) {
			events, err := c.Change(person)
			if err == nil && taken {
				err = &linking.AccountTakenError{}
			}
			return events, err
		})
		if err != nil {
			return err
		}
		out = bulk.Connected
		b.Queue(settleItem, append(place, string(out))...)
		queueCredential(b, c.Team, it.user, c.Credential)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return "", noItem(err)
	}
	return out, nil
}

// queueCredential replaces a user's credential. One without a box is removed.
func queueCredential(b *pgx.Batch, team healthlab.TeamID, user healthlab.UserID, c linking.Credential) {
	if c.Secret.Box == nil {
		b.Queue(takeCredential, team.UUID, user.UUID, c.Provider)
		return
	}
	c.Team, c.User = team, user
	b.Queue(putCredential, credentialValues(&c)...)
}

func (v bulkStore) Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error) {
	if err := healthlab.CheckText(string(why)); err != nil {
		return "", err
	}
	var out bulk.Outcome
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var it waiting
		b := u.Batch()
		queueItem(b, team, id, n, &it)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if out = it.outcome; !it.granted {
			return nil
		}
		out = why
		b = u.Batch()
		b.Queue(settleItem, team.UUID, id, n, string(why))
		return u.Commit(ctx, b)
	})
	if err != nil {
		return "", noItem(err)
	}
	return out, nil
}
