package userstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	insertName = `
insert into healthlab.user_name (team_id, client_user_id, user_id) values ($1, $2, $3)
on conflict (team_id, client_user_id) do nothing`

	deleteName = `delete from healthlab.user_name where team_id = $1 and client_user_id = $2 and user_id = $3`

	// One more than the limit is enough to know.
	countNames = `select count(*) from (select from healthlab.user_name where team_id = $1 limit $2) n`

	selectHolder = `
select u.user_id, u.created_on from healthlab.user_name n join healthlab.users u on u.user_id = n.user_id
where n.team_id = $1 and n.client_user_id = $2`
)

func (v users) Insert(ctx context.Context, u healthdata.User, limit int) error {
	u, err := u.Normal()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case u.ID.IsZero() || u.Team.IsZero():
		return fmt.Errorf("%w: a user needs an id and a team", healthlab.Invalid)
	case !u.Live():
		return fmt.Errorf("%w: a new user is live", healthlab.Invalid)
	}
	u.Revision = 1
	values, err := v.s.userValues(ctx, &u)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, u.Team, db.Writing, func(x *db.Tx) error {
		b := x.Batch()
		if limit > 0 {
			db.LockTeam(b, u.Team)
		}
		var added, named pgconn.CommandTag
		db.KeepTag(b.Queue(insertUser, values...), &added)
		db.KeepTag(b.Queue(insertName, u.Team.UUID, u.ClientUserID, u.ID.UUID), &named)
		live := 0
		if limit > 0 {
			b.Queue(countNames, u.Team.UUID, limit+1).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
		}
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		switch {
		case added.RowsAffected() == 0:
			return fmt.Errorf("%w: a user has this id already", healthlab.Conflict)
		case named.RowsAffected() == 0:
			return taken(ctx, x, u.Team, u.ClientUserID)
		case live > limit && limit > 0:
			return fmt.Errorf("%w: a team has at most %d users", healthlab.Exhausted, limit)
		}
		b = x.Batch()
		insertConnections(b, &u)
		return x.Commit(ctx, b)
	})
}

// taken returns the error that names who has a client user id.
func taken(ctx context.Context, u *db.Tx, team healthlab.TeamID, name string) error {
	var by healthdata.ClientUserIDError
	b := u.Batch()
	b.Queue(selectHolder, team.UUID, name).QueryRow(func(row pgx.Row) error {
		return row.Scan(&by.User.UUID, &by.CreatedOn.Time)
	})
	if err := u.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
		return db.ErrChanged // it has become free
	} else if err != nil {
		return err
	}
	by.CreatedOn = healthlab.At(by.CreatedOn.Time)
	return &by
}

const selectUser = `select ` + Columns + ` from healthlab.users u where u.team_id = $1 and u.user_id = $2`

func (v users) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	var u healthdata.User
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { v.s.queue(ctx, b, team, id, &u) })
	return u, NoUser(err)
}

func (v *Store) queue(ctx context.Context, b *pgx.Batch, team healthlab.TeamID, id healthlab.UserID, u *healthdata.User) {
	b.Queue(selectUser, team.UUID, id.UUID).QueryRow(func(row pgx.Row) (err error) {
		*u, err = v.Scan(ctx, row)
		return err
	})
}

// NoUser returns NotFound if err says that there is no row, else err.
func NoUser(err error) error { return db.MissingRow(err, "the team has no such user") }

// The lock comes in a statement of its own: the next one then sees what the
// transactions before have committed. It waits for those that write about the user.
const lockUser = `select from healthlab.users where team_id = $1 and user_id = $2 for update`

func (v users) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, error) {
	var next healthdata.User
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		old, err := v.s.Lock(ctx, x, team, id)
		if err != nil {
			return err
		}
		var b *pgx.Batch
		if next, b, err = v.s.Change(ctx, x, &old, change); err != nil {
			return err
		}
		return x.Commit(ctx, b)
	})
	if err != nil {
		return healthdata.User{}, NoUser(err)
	}
	return next, nil
}

// QueueLock adds to a batch what locks the row of a user and reads it.
func (v *Store) QueueLock(ctx context.Context, b *pgx.Batch, team healthlab.TeamID, id healthlab.UserID, u *healthdata.User) {
	b.Queue(lockUser, team.UUID, id.UUID)
	v.queue(ctx, b, team, id, u)
}

// Lock locks the row of a user and reads it. pgx.ErrNoRows if the team has no such user.
func (v *Store) Lock(ctx context.Context, u *db.Tx, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	var old healthdata.User
	b := u.Batch()
	v.QueueLock(ctx, b, team, id, &old)
	err := u.Send(ctx, b)
	return old, err
}

// Change calls change with a user whose row is locked, and returns the edited user and a
// batch of the statements that write it and its events.
func (v *Store) Change(ctx context.Context, u *db.Tx, old *healthdata.User, change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, *pgx.Batch, error) {
	next, err := old.Normal() // a copy, for change to edit
	if err != nil {
		return next, nil, err
	}
	events, err := change(&next)
	if err != nil {
		return next, nil, db.Answer(err)
	}
	if next, err = next.Normal(); err != nil {
		return next, nil, db.Answer(err)
	}
	next.ID, next.Team, next.CreatedOn, next.Revision = old.ID, old.Team, old.CreatedOn, old.Revision+1
	if err := rename(ctx, u, old, &next); err != nil {
		return next, nil, err
	}
	values, err := v.userValues(ctx, &next)
	if err != nil {
		return next, nil, db.Answer(err)
	}
	b := u.Batch()
	b.Queue(updateUser, values...)
	v.follow(b, old, &next)
	if old.Live() && !next.Live() {
		outbox.DropMessagesOf(b, old.ID)
	}
	if !reflect.DeepEqual(old.Connections, next.Connections) {
		b.Queue(deleteConnections, old.ID.UUID)
		insertConnections(b, &next)
	}
	// The envelopes name the user as it is now.
	if err := v.messages.Emit(ctx, u, b, events, outbox.Names{{Team: old.Team, User: old.ID}: outbox.NameOf(&next)}); err != nil {
		return next, nil, err
	}
	return next, b, nil
}

// rename gives the client user id of a user free and takes the next one, where they
// differ.
func rename(ctx context.Context, u *db.Tx, old, next *healthdata.User) error {
	if old.Live() == next.Live() && (old.ClientUserID == next.ClientUserID || !next.Live()) {
		return nil
	}
	b := u.Batch()
	if old.Live() {
		b.Queue(deleteName, old.Team.UUID, old.ClientUserID, old.ID.UUID)
	}
	var named pgconn.CommandTag
	if next.Live() {
		db.KeepTag(b.Queue(insertName, next.Team.UUID, next.ClientUserID, next.ID.UUID), &named)
	}
	if err := u.Send(ctx, b); err != nil {
		return err
	}
	if next.Live() && named.RowsAffected() == 0 {
		return taken(ctx, u, next.Team, next.ClientUserID)
	}
	return nil
}

const claimErasures = `
update healthlab.users set leased_until = healthlab.clock() + $3
where user_id = any (array(
	select u.user_id from healthlab.users u
	where u.deleted_at is not null and u.deleted_at <= $1 and (u.leased_until is null or u.leased_until <= healthlab.clock())
	order by u.deleted_at, u.user_id limit $2 for update skip locked))
returning team_id, user_id, deleted_at`

func (v users) ClaimErasures(ctx context.Context, deletedBefore time.Time, n int, lease time.Duration,
) ([]healthdata.UserRef, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	type due struct {
		ref healthdata.UserRef
		at  time.Time
	}
	var found []due
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		found = nil
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimErasures, db.Instant(deletedBefore), n, lease).Query(func(rows pgx.Rows) error {
				var d due
				_, err := pgx.ForEachRow(rows, []any{&d.ref.Team.UUID, &d.ref.User.UUID, &d.at}, func() error {
					found = append(found, d)
					return nil
				})
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b due) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return db.CompareIDs(a.ref.User.UUID, b.ref.User.UUID)
	})
	var out []healthdata.UserRef
	for _, d := range found {
		out = append(out, d.ref)
	}
	return out, nil
}

const lockForErase = `select deleted_at is null from healthlab.users where team_id = $1 and user_id = $2 for update`

func (v users) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var live bool
		b := x.Batch()
		b.Queue(lockForErase, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
		if err := x.Send(ctx, b); err != nil {
			return NoUser(err)
		}
		if live {
			return fmt.Errorf("%w: a live user is deleted first", healthlab.Precondition)
		}
		b = x.Batch()
		for _, sql := range v.s.erase {
			b.Queue(sql, id.UUID)
		}
		outbox.EraseMessagesOf(b, id)
		return x.Commit(ctx, b)
	})
	return NoUser(err)
}
