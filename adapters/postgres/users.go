package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Users returns the store as a [healthdata.Users].
func (s *Store) Users() healthdata.Users { return users{s} }

type users struct{ s *Store }

const (
	insertTeam = `insert into healthlab.team (team_id) values ($1) on conflict do nothing`
	lockTeam   = `select from healthlab.team where team_id = $1 for update`

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
	return v.s.do(ctx, u.Team, writing, func(x *unit) error {
		b := x.batch()
		if limit > 0 {
			b.Queue(insertTeam, u.Team.UUID)
			b.Queue(lockTeam, u.Team.UUID)
		}
		var added, named pgconn.CommandTag
		count(b.Queue(insertUser, values...), &added)
		count(b.Queue(insertName, u.Team.UUID, u.ClientUserID, u.ID.UUID), &named)
		live := 0
		if limit > 0 {
			b.Queue(countNames, u.Team.UUID, limit+1).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
		}
		if err := x.send(ctx, b); err != nil {
			return err
		}
		switch {
		case added.RowsAffected() == 0:
			return fmt.Errorf("%w: a user has this id already", healthlab.Conflict)
		case named.RowsAffected() == 0:
			return x.taken(ctx, u.Team, u.ClientUserID)
		case live > limit && limit > 0:
			return fmt.Errorf("%w: a team has at most %d users", healthlab.Exhausted, limit)
		}
		b = x.batch()
		insertConnections(b, &u)
		return x.commit(ctx, b)
	})
}

// count keeps the tag of a statement.
func count(q *pgx.QueuedQuery, tag *pgconn.CommandTag) {
	q.Exec(func(t pgconn.CommandTag) error {
		*tag = t
		return nil
	})
}

// taken returns the error that names who has a client user id.
func (u *unit) taken(ctx context.Context, team healthlab.TeamID, name string) error {
	var by healthdata.ClientUserIDError
	b := u.batch()
	b.Queue(selectHolder, team.UUID, name).QueryRow(func(row pgx.Row) error {
		return row.Scan(&by.User.UUID, &by.CreatedOn.Time)
	})
	if err := u.send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
		return errAgain // it has become free
	} else if err != nil {
		return err
	}
	by.CreatedOn = healthlab.At(by.CreatedOn.Time)
	return &by
}

const selectUser = `select ` + userColumns + ` from healthlab.users u where u.team_id = $1 and u.user_id = $2`

func (v users) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	var u healthdata.User
	err := v.s.read(ctx, team, func(b *pgx.Batch) { v.s.queueUser(ctx, b, team, id, &u) })
	return u, noUser(err)
}

func (s *Store) queueUser(ctx context.Context, b *pgx.Batch, team healthlab.TeamID, id healthlab.UserID, u *healthdata.User) {
	b.Queue(selectUser, team.UUID, id.UUID).QueryRow(func(row pgx.Row) (err error) {
		*u, err = s.scanUser(ctx, row)
		return err
	})
}

// noUser says of a row that is not there what it means.
func noUser(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
	}
	return err
}

// The lock comes in a statement of its own: the next one then sees what the
// transactions before have committed. It waits for those that write about the user.
const lockUser = `select from healthlab.users where team_id = $1 and user_id = $2 for update`

func (v users) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, error) {
	var next healthdata.User
	err := v.s.do(ctx, team, writing, func(x *unit) error {
		old, err := x.lockUser(ctx, team, id)
		if err != nil {
			return err
		}
		var b *pgx.Batch
		if next, b, err = x.changeUser(ctx, &old, change); err != nil {
			return err
		}
		return x.commit(ctx, b)
	})
	if err != nil {
		return healthdata.User{}, noUser(err)
	}
	return next, nil
}

// lockUser locks the row of a user and reads it.
func (u *unit) lockUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	var old healthdata.User
	b := u.batch()
	b.Queue(lockUser, team.UUID, id.UUID)
	u.store.queueUser(ctx, b, team, id, &old)
	err := u.send(ctx, b)
	return old, err
}

// changeUser lets change edit a user whose row is locked, and returns a batch that
// writes what came of it.
func (u *unit) changeUser(ctx context.Context, old *healthdata.User, change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, *pgx.Batch, error) {
	next, err := old.Normal() // a copy, for change to edit
	if err != nil {
		return next, nil, err
	}
	events, err := change(&next)
	if err != nil {
		return next, nil, answer{err}
	}
	if next, err = next.Normal(); err != nil {
		return next, nil, answer{err}
	}
	next.ID, next.Team, next.CreatedOn, next.Revision = old.ID, old.Team, old.CreatedOn, old.Revision+1
	if err := u.rename(ctx, old, &next); err != nil {
		return next, nil, err
	}
	values, err := u.store.userValues(ctx, &next)
	if err != nil {
		return next, nil, answer{err}
	}
	b := u.batch()
	b.Queue(updateUser, values...)
	if old.Live() != next.Live() {
		b.Queue(hideOrdersOfUser, old.Team.UUID, old.ID.UUID, old.Live())
	}
	if old.Live() && !next.Live() {
		recallAll.queue(b, []uuid.UUID{old.ID.UUID}, nil)
		b.Queue(dropAnswersOfUser, old.ID.UUID)
		b.Queue(lockJobsOfUser, old.Team.UUID, old.ID.UUID)
		b.Queue(holdRouting, int64(routing))
		for _, sql := range dropMessagesOfUser {
			b.Queue(sql, old.ID.UUID)
		}
	}
	if !reflect.DeepEqual(old.Connections, next.Connections) {
		b.Queue(deleteConnections, old.ID.UUID)
		insertConnections(b, &next)
	}
	// The envelopes name the user as it is now.
	if err := u.emit(ctx, b, events, names{{old.Team, old.ID}: nameOf(&next)}); err != nil {
		return next, nil, err
	}
	return next, b, nil
}

// rename gives the client user id of a user free and takes the next one, where they
// differ.
func (u *unit) rename(ctx context.Context, old, next *healthdata.User) error {
	if old.Live() == next.Live() && (old.ClientUserID == next.ClientUserID || !next.Live()) {
		return nil
	}
	b := u.batch()
	if old.Live() {
		b.Queue(deleteName, old.Team.UUID, old.ClientUserID, old.ID.UUID)
	}
	var named pgconn.CommandTag
	if next.Live() {
		count(b.Queue(insertName, next.Team.UUID, next.ClientUserID, next.ID.UUID), &named)
	}
	if err := u.send(ctx, b); err != nil {
		return err
	}
	if next.Live() && named.RowsAffected() == 0 {
		return u.taken(ctx, next.Team, next.ClientUserID)
	}
	return nil
}

const claimErasures = `
update healthlab.users set leased_until = now() + $3
where user_id = any (array(
	select u.user_id from healthlab.users u
	where u.deleted_at is not null and u.deleted_at <= $1 and (u.leased_until is null or u.leased_until <= now())
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
	err := v.s.do(ctx, allTeams, writing, func(x *unit) error {
		found = nil
		return x.alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimErasures, instant(deletedBefore), n, lease).Query(func(rows pgx.Rows) error {
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
		return compareIDs(a.ref.User.UUID, b.ref.User.UUID)
	})
	var out []healthdata.UserRef
	for _, d := range found {
		out = append(out, d.ref)
	}
	return out, nil
}

const lockForErase = `select deleted_at is null from healthlab.users where team_id = $1 and user_id = $2 for update`

// eraseUser deletes what is kept of a user: what is a lock first, as the series are of
// their chunks and segments, the tasks of their tables and the transactions of their
// orders. Every table with a user_id is here or in eraseMessages, but user_name, where a
// deleted user has no row.
var eraseUser = [...]string{
	lockOrdersOfUser, deleteKeysOfUser, deleteHoldsOfUser, deleteTransactionsOfUser, deleteSearchOfUser, deleteOrdersOfUser,
	deleteInfoOfUser, deleteInsuranceOfUser, deleteResultsOfUser,
	deleteLabRecordsOfUser, deleteLabDeliveriesOfUser, deleteLabMessagesOfUser,
	deleteJobsOfUser, emptyJobsOfUser, deleteExportsOfUser, emptyExportsOfUser,
	`delete from healthlab.series where user_id = $1`,
	`delete from healthlab.segment where user_id = $1`,
	`delete from healthlab.chunk where user_id = $1`,
	`delete from healthlab.record where user_id = $1`,
	`delete from healthlab.continuous_task where user_id = $1`,
	`delete from healthlab.continuous_result where user_id = $1`,
	`delete from healthlab.continuous_history where user_id = $1`,
	`delete from healthlab.connection where user_id = $1`,
	`delete from healthlab.link_code where user_id = $1`,
	`delete from healthlab.link_session where user_id = $1`,
	`delete from healthlab.link_credential where user_id = $1`,
	`delete from healthlab.app_session where user_id = $1`,
	`delete from healthlab.bulk_item where user_id = $1`,
	`delete from healthlab.pull_task where user_id = $1`,
	`delete from healthlab.pull_budget where user_id = $1`,
	`delete from healthlab.pull_refused where user_id = $1`,
}

func (v users) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	err := v.s.do(ctx, team, writing, func(x *unit) error {
		var live bool
		b := x.batch()
		b.Queue(lockForErase, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
		if err := x.send(ctx, b); err != nil {
			return noUser(err)
		}
		if live {
			return fmt.Errorf("%w: a live user is deleted first", healthlab.Precondition)
		}
		b = x.batch()
		for _, sql := range eraseUser {
			b.Queue(sql, id.UUID)
		}
		b.Queue(holdRouting, int64(routing))
		for _, sql := range eraseMessages {
			b.Queue(sql, id.UUID)
		}
		return x.commit(ctx, b)
	})
	return noUser(err)
}
