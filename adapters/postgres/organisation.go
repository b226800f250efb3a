package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Organisations returns teams and their keys as an [organisation.Store].
func (s *Store) Organisations() organisation.Store { return orgStore{s} }

type orgStore struct{ s *Store }

const (
	orgTeamColumns = `t.team_id, t.org_id, t.name, t.integration_id, t.created_at, t.updated_at`

	// Changes of the teams of an organisation run one after another.
	holdOrg = `select pg_advisory_xact_lock(hashtextextended('healthlab organisation ' || $1::uuid, 0))`

	insertOrgTeam = `
insert into healthlab.org_team (team_id, org_id, name, integration_id, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)
on conflict (team_id) do nothing`

	selectOrgTeam = `select ` + orgTeamColumns + ` from healthlab.org_team t where t.team_id = $1 and t.deleted_at is null`

	lockOrgTeam = selectOrgTeam + ` and t.org_id = $2 for no key update`

	// Only one team can have it: the organisation's row is held.
	selectIntegration = `
select t.team_id from healthlab.org_team t where t.org_id = $1 and t.integration_id = $2 and t.team_id <> $3 and t.deleted_at is null`

	selectOrgTeams = `
select ` + orgTeamColumns + ` from healthlab.org_team t
where t.org_id = $1 and t.deleted_at is null and t.team_id > $2 and ($3 = '' or t.integration_id = $3) order by t.team_id limit $4`

	updateOrgTeam = `update healthlab.org_team set name = $2, integration_id = $3, updated_at = $4 where team_id = $1`

	countLiveUsers = `select count(*) from healthlab.users where team_id = $1 and deleted_at is null`

	deleteOrgTeam  = `update healthlab.org_team set deleted_at = $2 where team_id = $1`
	deleteTeamKeys = `delete from healthlab.team_key where team_id = $1`
	deleteChoices  = `delete from healthlab.team_settings where team_id = $1`
	deleteClients  = `delete from healthlab.team_client where team_id = $1`

	teamKeyColumns = `k.team_id, k.key_id, k.label, k.hint, k.sum, k.scopes, k.created_at, k.expires_at, k.last_used_at`

	countTeamKeys = `select count(*) from healthlab.team_key where team_id = $1`

	insertTeamKey = `
insert into healthlab.team_key (team_id, key_id, label, hint, sum, scopes, created_at, expires_at, last_used_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`

	expireTeamKey = `update healthlab.team_key set expires_at = least(expires_at, $3) where team_id = $1 and key_id = $2`
	touchTeamKey  = `
update healthlab.team_key set last_used_at = $3 where team_id = $1 and key_id = $2 and (last_used_at is null or last_used_at < $3)`

	selectTeamKeys     = `select ` + teamKeyColumns + ` from healthlab.team_key k where k.team_id = $1 order by k.created_at, k.key_id`
	selectTeamKey      = `select ` + teamKeyColumns + ` from healthlab.team_key k where k.key_id = $1`
	selectTeamKeyBySum = `select ` + teamKeyColumns + ` from healthlab.team_key k where k.sum = $1`
	deleteTeamKey      = `delete from healthlab.team_key where team_id = $1 and key_id = $2`
)

func scanOrgTeam(row pgx.Row, t *organisation.Team) error {
	var integration *string
	if err := row.Scan(&t.ID.UUID, &t.Org, &t.Name, &integration, &t.CreatedAt, &t.UpdatedAt); err != nil {
		return err
	}
	if t.IntegrationID = ""; integration != nil {
		t.IntegrationID = *integration
	}
	t.CreatedAt, t.UpdatedAt = t.CreatedAt.UTC(), t.UpdatedAt.UTC()
	return nil
}

func noOrgTeam(err error) error { return db.MissingRow(err, "no such team") }

// queueIntegration asks which other team has an integration id.
func queueIntegration(b *pgx.Batch, t *organisation.Team, by *healthlab.TeamID) {
	if t.IntegrationID != "" {
		b.Queue(selectIntegration, t.Org, t.IntegrationID, t.ID.UUID).QueryRow(func(row pgx.Row) error { return db.Absent(row.Scan(&by.UUID)) })
	}
}

func (v orgStore) InsertTeam(ctx context.Context, t organisation.Team) error {
	if t.ID.IsZero() || t.Org == uuid.Nil || t.Name == "" {
		return fmt.Errorf("%w: a team has an id, an organisation and a name", healthlab.Invalid)
	}
	if err := healthlab.CheckText(t.Name, t.IntegrationID); err != nil {
		return err
	}
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		var by healthlab.TeamID
		b := u.Batch()
		b.Queue(holdOrg, t.Org)
		queueIntegration(b, &t, &by)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if !by.IsZero() {
			return db.Answer(&organisation.IntegrationTakenError{Team: by})
		}
		var added pgconn.CommandTag
		b = u.Batch()
		db.KeepTag(b.Queue(insertOrgTeam, t.ID.UUID, t.Org, t.Name, db.NullText(t.IntegrationID), db.Instant(t.CreatedAt), db.Instant(t.UpdatedAt)), &added)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return db.Answer(fmt.Errorf("%w: the id of the team is taken", healthlab.Conflict))
		}
		return u.Commit(ctx, u.Batch())
	})
}

func (v orgStore) Team(ctx context.Context, id healthlab.TeamID) (organisation.Team, error) {
	var t organisation.Team
	err := v.s.db.Read(ctx, id, func(b *pgx.Batch) {
		b.Queue(selectOrgTeam, id.UUID).QueryRow(func(row pgx.Row) error { return scanOrgTeam(row, &t) })
	})
	if err != nil {
		return organisation.Team{}, noOrgTeam(err)
	}
	return t, nil
}

func (v orgStore) Teams(ctx context.Context, q organisation.Query) ([]organisation.Team, error) {
	if err := healthlab.CheckText(q.IntegrationID); err != nil {
		return nil, err
	}
	var out []organisation.Team
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(selectOrgTeams, q.Org, q.After.UUID, q.IntegrationID, max(q.N, 0)).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var t organisation.Team
				if err := scanOrgTeam(rows, &t); err != nil {
					return err
				}
				out = append(out, t)
			}
			return rows.Err()
		})
	})
	return out, err
}

// changeTeam holds an organisation and one of its teams, and lets change end the transaction.
func (v orgStore) changeTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*db.Tx, organisation.Team) error) error {
	return noOrgTeam(v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		var old organisation.Team
		b := u.Batch()
		b.Queue(holdOrg, org)
		b.Queue(lockOrgTeam, id.UUID, org).QueryRow(func(row pgx.Row) error { return scanOrgTeam(row, &old) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		return change(u, old)
	}))
}

func (v orgStore) UpdateTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*organisation.Team) error) (organisation.Team, error) {
	var next organisation.Team
	err := v.changeTeam(ctx, org, id, func(u *db.Tx, old organisation.Team) error {
		next = old
		if err := change(&next); err != nil {
			return db.Answer(err)
		}
		next.ID, next.Org, next.CreatedAt, next.UpdatedAt = old.ID, old.Org, old.CreatedAt, db.Instant(next.UpdatedAt)
		if err := healthlab.CheckText(next.Name, next.IntegrationID); err != nil {
			return db.Answer(err)
		}
		var by healthlab.TeamID
		b := u.Batch()
		queueIntegration(b, &next, &by)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if !by.IsZero() {
			return db.Answer(&organisation.IntegrationTakenError{Team: by})
		}
		b = u.Batch()
		b.Queue(updateOrgTeam, id.UUID, next.Name, db.NullText(next.IntegrationID), next.UpdatedAt)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return organisation.Team{}, err
	}
	return next, nil
}

func (v orgStore) DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, at time.Time) error {
	return v.changeTeam(ctx, org, id, func(u *db.Tx, _ organisation.Team) error {
		users := 0
		b := u.Batch()
		db.LockTeam(b, id) // who adds users with a limit, and who adds keys, waits
		b.Queue(countLiveUsers, id.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&users) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if users > 0 {
			return db.Answer(&organisation.NotEmptyError{Users: users})
		}
		b = u.Batch()
		b.Queue(deleteOrgTeam, id.UUID, db.Instant(at))
		for _, sql := range []string{deleteTeamKeys, deleteChoices, deleteClients} {
			b.Queue(sql, id.UUID)
		}
		return u.Commit(ctx, b)
	})
}

func scanTeamKey(row pgx.Row, k *organisation.Key) error {
	var sum []byte
	var scopes []string
	var expires, used *time.Time
	if err := row.Scan(&k.Team.UUID, &k.ID, &k.Label, &k.Hint, &sum, &scopes, &k.CreatedAt, &expires, &used); err != nil {
		return err
	}
	copy(k.Sum[:], sum)
	k.Scopes = nil
	for _, scope := range scopes {
		k.Scopes = append(k.Scopes, organisation.Scope(scope))
	}
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = k.CreatedAt.UTC(), db.TimeOrZero(expires), db.TimeOrZero(used)
	return nil
}

func (v orgStore) InsertKey(ctx context.Context, k organisation.Key, most int) error {
	return v.addKey(ctx, k, most, nil)
}

func (v orgStore) RotateKey(ctx context.Context, id uuid.UUID, until time.Time, next organisation.Key, most int) error {
	return v.addKey(ctx, next, most, func(u *db.Tx) error {
		var expired pgconn.CommandTag
		b := u.Batch()
		db.KeepTag(b.Queue(expireTeamKey, next.Team.UUID, id, db.Instant(until)), &expired)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if expired.RowsAffected() == 0 {
			return db.Answer(fmt.Errorf("%w: no such key", healthlab.NotFound))
		}
		return nil
	})
}

// addKey inserts a key after before, in one transaction.
func (v orgStore) addKey(ctx context.Context, k organisation.Key, most int, before func(*db.Tx) error) error {
	if k.ID == uuid.Nil || k.Team.IsZero() || k.Sum == [sha256.Size]byte{} {
		return fmt.Errorf("%w: a key has an id, a team and a sum", healthlab.Invalid)
	}
	if err := healthlab.CheckText(k.Label, k.Hint, k.Scopes.String()); err != nil {
		return err
	}
	return noOrgTeam(v.s.db.Do(ctx, k.Team, db.Writing, func(u *db.Tx) error {
		had := 0
		b := u.Batch()
		db.LockTeam(b, k.Team)
		b.Queue(selectOrgTeam, k.Team.UUID).QueryRow(func(row pgx.Row) error { return scanOrgTeam(row, &organisation.Team{}) })
		b.Queue(countTeamKeys, k.Team.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&had) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if before != nil {
			if err := before(u); err != nil {
				return err
			}
		}
		var added pgconn.CommandTag
		b = u.Batch()
		db.KeepTag(b.Queue(insertTeamKey, k.Team.UUID, k.ID, k.Label, k.Hint, k.Sum[:], append(organisation.Scopes{}, k.Scopes...),
			db.Instant(k.CreatedAt), db.Nullable(k.ExpiresAt), db.Nullable(k.LastUsedAt)), &added)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if added.RowsAffected() == 0 {
			return db.Answer(fmt.Errorf("%w: the API key exists", healthlab.Conflict))
		}
		if had >= most {
			return db.Answer(&organisation.TooManyKeysError{Most: most})
		}
		return u.Commit(ctx, u.Batch())
	}))
}

func (v orgStore) TouchKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error {
	return v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(touchTeamKey, team.UUID, id, db.Instant(at)) })
	})
}

func (v orgStore) Keys(ctx context.Context, team healthlab.TeamID) ([]organisation.Key, error) {
	var out []organisation.Key
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectTeamKeys, team.UUID).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var k organisation.Key
				if err := scanTeamKey(rows, &k); err != nil {
					return err
				}
				out = append(out, k)
			}
			return rows.Err()
		})
	})
	return out, err
}

func (v orgStore) find(ctx context.Context, sql string, by any) (organisation.Key, error) {
	var k organisation.Key
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(sql, by).QueryRow(func(row pgx.Row) error { return scanTeamKey(row, &k) })
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: no such key", healthlab.NotFound)
	}
	if err != nil {
		return organisation.Key{}, err
	}
	return k, nil
}

func (v orgStore) Key(ctx context.Context, id uuid.UUID) (organisation.Key, error) {
	return v.find(ctx, selectTeamKey, id)
}

func (v orgStore) FindKey(ctx context.Context, sum [sha256.Size]byte) (organisation.Key, error) {
	return v.find(ctx, selectTeamKeyBySum, sum[:])
}

func (v orgStore) DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
	var gone pgconn.CommandTag
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { db.KeepTag(b.Queue(deleteTeamKey, team.UUID, id), &gone) })
	})
	if err == nil && gone.RowsAffected() == 0 {
		err = fmt.Errorf("%w: no such key", healthlab.NotFound)
	}
	return err
}
