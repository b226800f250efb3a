package linkstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	lockUserForApp = `select from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null for key share`

	insertApp = `
insert into healthlab.app_session (team_id, session_id, user_id, created_at, expires_at, rotated_at, rotations, sign_in, refresh, previous, access)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (team_id, session_id) do nothing`

	selectApp = `
select a.user_id, a.created_at, a.expires_at, a.rotated_at, a.rotations, a.sign_in, a.refresh, a.previous, a.access
from healthlab.app_session a join healthlab.users u on u.user_id = a.user_id and u.team_id = a.team_id
where a.team_id = $1 and a.session_id = $2 and u.deleted_at is null`

	lockApp = selectApp + ` for no key update of a`

	updateApp = `
update healthlab.app_session set expires_at = $3, rotated_at = $4, rotations = $5, sign_in = $6, refresh = $7, previous = $8, access = $9
where team_id = $1 and session_id = $2`

	deleteApps = `
delete from healthlab.app_session where team_id = $1 and user_id = $2 and ($3::uuid = '00000000-0000-0000-0000-000000000000' or session_id = $3)`

	pruneApps = `
delete from healthlab.app_session x using (
	select session_id from healthlab.app_session where team_id = $1 and expires_at < now() - interval '1 day'
	order by expires_at limit 10 for update skip locked
) old
where x.team_id = $1 and x.session_id = old.session_id`
)

// appValues are what is written of a session at every change.
func appValues(a *linking.AppSession) ([]any, error) {
	access, err := json.Marshal(a.Access)
	if err != nil {
		return nil, fmt.Errorf("encode access of app: %w", err)
	}
	return []any{db.Nullable(a.ExpiresAt), db.Nullable(a.RotatedAt), a.Rotations, a.SignIn[:], a.Refresh[:], a.Previous[:], access}, nil
}

// InsertApp implements [linking.AppSessions].
func (v *Store) InsertApp(ctx context.Context, a linking.AppSession) error {
	if a.ID == uuid.Nil || a.Team.IsZero() || a.User.IsZero() {
		return fmt.Errorf("%w: the session of an app needs an id, a team and a user", healthlab.Invalid)
	}
	a = keepApp(a)
	values, err := appValues(&a)
	if err != nil {
		return err
	}
	row := append([]any{a.Team.UUID, a.ID, a.User.UUID, a.CreatedAt}, values...)
	err = v.db.Do(ctx, a.Team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		b.Queue(lockUserForApp, a.Team.UUID, a.User.UUID).QueryRow(func(row pgx.Row) error { return row.Scan() })
		b.Queue(pruneApps, a.Team.UUID)
		var added pgconn.CommandTag
		db.KeepTag(b.Queue(insertApp, row...), &added)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return db.Answer(fmt.Errorf("%w: the id of the app's session is taken", healthlab.Conflict))
		}
		return u.Commit(ctx, u.Batch())
	})
	return noApp(err)
}

func queueApp(b *pgx.Batch, sql string, team healthlab.TeamID, id uuid.UUID, a *linking.AppSession) {
	b.Queue(sql, team.UUID, id).QueryRow(func(row pgx.Row) error {
		x := linking.AppSession{ID: id, Team: team}
		var expires, rotated *time.Time
		var signIn, refresh, previous, access []byte
		if err := row.Scan(&x.User.UUID, &x.CreatedAt, &expires, &rotated, &x.Rotations, &signIn, &refresh, &previous, &access); err != nil {
			return err
		}
		if err := json.Unmarshal(access, &x.Access); err != nil {
			return fmt.Errorf("decode access of app: %w", err)
		}
		copy(x.SignIn[:], signIn)
		copy(x.Refresh[:], refresh)
		copy(x.Previous[:], previous)
		x.ExpiresAt, x.RotatedAt = db.TimeOrZero(expires), db.TimeOrZero(rotated)
		*a = keepApp(x)
		return nil
	})
}

func noApp(err error) error { return db.MissingRow(err, "no such user, or no such app is signed in") }

// App implements [linking.AppSessions].
func (v *Store) App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	var a linking.AppSession
	if err := v.db.Read(ctx, team, func(b *pgx.Batch) { queueApp(b, selectApp, team, id, &a) }); err != nil {
		return linking.AppSession{}, noApp(err)
	}
	return a, nil
}

// UpdateApp implements [linking.AppSessions].
func (v *Store) UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*linking.AppSession) error) (linking.AppSession, error) {
	var next linking.AppSession
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var old linking.AppSession
		b := u.Batch()
		queueApp(b, lockApp, team, id, &old)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next = keepApp(old)
		if err := change(&next); err != nil {
			return db.Answer(err)
		}
		next.ID, next.Team, next.User, next.CreatedAt = old.ID, old.Team, old.User, old.CreatedAt
		next = keepApp(next)
		values, err := appValues(&next)
		if err != nil {
			return err
		}
		b = u.Batch()
		b.Queue(updateApp, append([]any{team.UUID, id}, values...)...)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return linking.AppSession{}, noApp(err)
	}
	return next, nil
}

// DeleteApps implements [linking.AppSessions].
func (v *Store) DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
	var gone pgconn.CommandTag
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { db.KeepTag(b.Queue(deleteApps, team.UUID, user.UUID, id), &gone) })
	})
	return int(gone.RowsAffected()), err
}

// keepApp returns a copy of a session in the form in which it is kept.
func keepApp(a linking.AppSession) linking.AppSession {
	a.CreatedAt, a.ExpiresAt, a.RotatedAt = db.Instant(a.CreatedAt), db.Instant(a.ExpiresAt), db.Instant(a.RotatedAt)
	a.Access = slices.Clone(a.Access)
	for i := range a.Access {
		a.Access[i].ExpiresAt = db.Instant(a.Access[i].ExpiresAt)
	}
	if len(a.Access) == 0 {
		a.Access = nil
	}
	return a
}
