package linkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	insertSession = `
insert into healthlab.link_session (team_id, session_id, user_id, token_hash, created_at, expires_at, revision, state, pending_key, pending_box, doc)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (team_id, session_id) do nothing`

	selectSession = `
select user_id, token_hash, created_at, expires_at, revision, state, pending_key, pending_box, doc
from healthlab.link_session where team_id = $1 and session_id = $2`

	lockSession = selectSession + ` for no key update`

	updateSession = `
update healthlab.link_session set revision = $3, state = $4, pending_key = $5, pending_box = $6, doc = $7
where team_id = $1 and session_id = $2`

	// Each new session takes a few with it, so that a team has no more of them than it
	// makes in a day or two.
	pruneSessions = `
delete from healthlab.link_session x using (
	select session_id from healthlab.link_session where team_id = $1 and expires_at < now() - interval '1 day'
	order by expires_at limit 10 for update skip locked
) old
where x.team_id = $1 and x.session_id = old.session_id`
)

// InsertSession implements [linking.Store].
func (v *Store) InsertSession(ctx context.Context, x linking.Session) error {
	if x.ID.UUID == uuid.Nil || x.Team.IsZero() || x.User.IsZero() {
		return fmt.Errorf("%w: a link session needs an id, a team and a user", healthlab.Invalid)
	}
	x.Revision = 1
	kept, written, err := keepSession(x)
	if err != nil {
		return err
	}
	row := append([]any{x.Team.UUID, x.ID.UUID, x.User.UUID, kept.Token[:], kept.CreatedAt, kept.ExpiresAt}, written...)
	var added pgconn.CommandTag
	err = v.db.Do(ctx, x.Team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(pruneSessions, x.Team.UUID)
			db.KeepTag(b.Queue(insertSession, row...), &added)
		})
	})
	if err == nil && added.RowsAffected() == 0 {
		return fmt.Errorf("%w: the link session's id is taken", healthlab.Conflict)
	}
	return err
}

// Session implements [linking.Store].
func (v *Store) Session(ctx context.Context, team healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
	var x linking.Session
	if err := v.db.Read(ctx, team, func(b *pgx.Batch) { queueSession(b, selectSession, team, id, &x) }); err != nil {
		return linking.Session{}, noSession(err)
	}
	return x, nil
}

func queueSession(b *pgx.Batch, sql string, team healthlab.TeamID, id linking.SessionID, x *linking.Session) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) (err error) {
		*x, err = scanSession(row, team, id)
		return err
	})
}

func noSession(err error) error { return db.MissingRow(err, "the team has no such link session") }

// UpdateSession implements [linking.Store].
func (v *Store) UpdateSession(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
	var next linking.Session
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var old linking.Session
		b := u.Batch()
		queueSession(b, lockSession, team, id, &old)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next = cloneSession(old)
		if err := change(&next); err != nil {
			return db.Answer(err)
		}
		var row []any
		var err error
		if next, row, err = rewriteSession(&old, next); err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		b.Queue(updateSession, row...)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return linking.Session{}, noSession(err)
	}
	return next, nil
}

const (
	// The user of a session never changes. Users are locked before their sessions, as
	// an erasure does.
	lockUserOfSession = `
select from healthlab.users where team_id = $1
	and user_id = (select user_id from healthlab.link_session where team_id = $1 and session_id = $2)
for no key update`

	selectUserOfSession = `select ` + userstore.Columns + ` from healthlab.users u join healthlab.link_session x on x.user_id = u.user_id and x.team_id = u.team_id
where x.team_id = $1 and x.session_id = $2`

	hasAccount = `
select exists (
	select from healthlab.connection c join healthlab.users u on u.user_id = c.user_id
	where c.team_id = $1 and c.provider = $3 and md5(c.external_user_id) = md5($4) and c.external_user_id = $4
		and c.status <> 'deregistered' and u.deleted_at is null
		and c.user_id <> (select user_id from healthlab.link_session where team_id = $1 and session_id = $2))`
)

// Complete implements [linking.Store].
func (v *Store) Complete(ctx context.Context, c linking.Completion) (linking.Session, error) {
	text := []string{c.Credential.Provider, c.Credential.Secret.KeyID, c.Credential.Previous.KeyID}
	if c.Sole != nil {
		text = append(text, *c.Sole)
	}
	if err := healthlab.CheckText(text...); err != nil {
		return linking.Session{}, err
	}
	var next linking.Session
	err := v.db.Do(ctx, c.Team, db.Writing, func(u *db.Tx) error {
		var was linking.Session
		var user healthdata.User
		var taken bool
		b := u.Batch()
		if c.Sole != nil { // so that of two people who bring the same account one comes later
			db.LockTeam(b, c.Team)
		}
		b.Queue(lockUserOfSession, c.Team.UUID, c.Session.UUID)
		queueSession(b, lockSession, c.Team, c.Session, &was)
		b.Queue(selectUserOfSession, c.Team.UUID, c.Session.UUID).QueryRow(func(row pgx.Row) (err error) {
			user, err = v.users.Scan(ctx, row)
			return err
		})
		if c.Sole != nil {
			b.Queue(hasAccount, c.Team.UUID, c.Session.UUID, c.Credential.Provider, *c.Sole).
				QueryRow(func(row pgx.Row) error { return row.Scan(&taken) })
		}
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next = cloneSession(was)
		var row []any
		_, b, err := v.users.Change(ctx, u, &user, func(person *healthdata.User) ([]healthlab.Event, error) {
			events, err := c.Change(&next, person)
			if err == nil && taken {
				err = &linking.AccountTakenError{}
			}
			if err == nil {
				next, row, err = rewriteSession(&was, next)
			}
			return events, err
		})
		if err != nil {
			return err
		}
		b.Queue(updateSession, row...)
		queueCredential(b, c.Team, was.User, c.Credential)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return linking.Session{}, noSession(err)
	}
	return next, nil
}

// Credential implements [linking.Store].
func (v *Store) Credential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (linking.Credential, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return linking.Credential{}, err
	}
	c := linking.Credential{Team: team, User: user, Provider: provider}
	err := v.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectCredential, team.UUID, user.UUID, provider).QueryRow(func(row pgx.Row) error { return scanClient(row, &c) })
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return linking.Credential{}, fmt.Errorf("%w: no credential", healthlab.NotFound)
	}
	if err != nil {
		return linking.Credential{}, err
	}
	return c, nil
}

// Disconnect implements [linking.Store].
func (v *Store) Disconnect(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return linking.Credential{}, err
	}
	var c linking.Credential
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		c = linking.Credential{}
		old, err := v.users.Lock(ctx, u, team, user)
		if err != nil {
			return err
		}
		_, b, err := v.users.Change(ctx, u, &old, change)
		if err != nil {
			return err
		}
		b.Queue(takeCredential, team.UUID, user.UUID, provider).QueryRow(func(row pgx.Row) error {
			kept := linking.Credential{Team: team, User: user, Provider: provider}
			if to := old.Connection(provider); to != nil {
				kept.Client = to.Client
			}
			err := scanCredential(row, &kept)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			c = kept
			return err
		})
		return u.Commit(ctx, b)
	})
	if err != nil {
		return linking.Credential{}, userstore.NoUser(err)
	}
	return c, nil
}
