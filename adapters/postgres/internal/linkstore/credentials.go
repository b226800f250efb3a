package linkstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// credentialColumns are what scanCredential reads, of a row k of link_credential.
const credentialColumns = `
k.grant_id, k.key_id, k.box, k.expires_at, k.created_at, k.version, k.previous_key, k.previous_box, k.leased_until, k.failures, k.retry_at`

// clientColumn is whose grant it is, of the connection c.
const clientColumn = `, coalesce(c.client, '')`

const (
	putCredential = `
insert into healthlab.link_credential (user_id, provider, team_id, grant_id, created_at, key_id, box, expires_at,
	version, previous_key, previous_box, leased_until, failures, retry_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict (user_id, provider) do update
set grant_id = excluded.grant_id, created_at = excluded.created_at, key_id = excluded.key_id, box = excluded.box,
	expires_at = excluded.expires_at, version = excluded.version, previous_key = excluded.previous_key,
	previous_box = excluded.previous_box, leased_until = excluded.leased_until, failures = excluded.failures, retry_at = excluded.retry_at`

	selectCredential = `
select ` + credentialColumns + clientColumn + `
from healthlab.link_credential k
join healthlab.users u on u.user_id = k.user_id and u.team_id = k.team_id
join healthlab.connection c on c.user_id = k.user_id and c.provider = k.provider
where k.team_id = $1 and k.user_id = $2 and k.provider = $3 and u.deleted_at is null and c.status <> 'deregistered'`

	takeCredential = `
delete from healthlab.link_credential k where k.team_id = $1 and k.user_id = $2 and k.provider = $3
returning ` + credentialColumns
)

// credentialValues are the arguments of putCredential.
func credentialValues(c *linking.Credential) []any {
	var key *string
	if c.Previous.Box != nil {
		key = &c.Previous.KeyID
	}
	return []any{
		c.User.UUID, c.Provider, c.Team.UUID, c.ID, db.Instant(c.CreatedAt), c.Secret.KeyID, c.Secret.Box, db.Nullable(db.Instant(c.ExpiresAt)),
		c.Version, key, c.Previous.Box, db.Nullable(db.Instant(c.Lease)), c.Failures, db.Nullable(db.Instant(c.RetryAt)),
	}
}

// scanClient reads a credential with whose it is.
func scanClient(row pgx.Row, c *linking.Credential) error { return scanCredential(row, c, &c.Client) }

func scanCredential(row pgx.Row, c *linking.Credential, more ...any) error {
	var expires, leased, retry *time.Time
	var key *string
	if err := row.Scan(append([]any{
		&c.ID, &c.Secret.KeyID, &c.Secret.Box, &expires, &c.CreatedAt, &c.Version, &key, &c.Previous.Box, &leased, &c.Failures, &retry,
	}, more...)...); err != nil {
		return err
	}
	if key != nil {
		c.Previous.KeyID = *key
	}
	c.CreatedAt, c.ExpiresAt, c.Lease, c.RetryAt = c.CreatedAt.UTC(), db.TimeOrZero(expires), db.TimeOrZero(leased), db.TimeOrZero(retry)
	return nil
}

// UpdateCredential implements [linking.CredentialStore].
func (v *Store) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return linking.Credential{}, err
	}
	var next linking.Credential
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		was := linking.Credential{Team: team, User: user, Provider: provider}
		var person healthdata.User
		b := u.Batch()
		v.users.QueueLock(ctx, b, team, user, &person)
		b.Queue(selectCredential, team.UUID, user.UUID, provider).QueryRow(func(row pgx.Row) error { return scanClient(row, &was) })
		db.ReadClock(b, &was.StoreTime)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next = was
		next.StoreTime = was.StoreTime.UTC()
		next.Secret.Box, next.Previous.Box = slices.Clone(was.Secret.Box), slices.Clone(was.Previous.Box)
		edited, err := person.Normal()
		if err != nil {
			return err
		}
		events, err := change(&next, &edited)
		if err != nil {
			return db.Answer(err)
		}
		next.ID, next.Team, next.User, next.Provider, next.Client, next.CreatedAt = was.ID, team, user, provider, was.Client, was.CreatedAt
		if err := healthlab.CheckText(next.Secret.KeyID, next.Previous.KeyID); err != nil {
			return db.Answer(err)
		}
		next.Secret.Box, next.Previous.Box = slices.Clone(next.Secret.Box), slices.Clone(next.Previous.Box)
		next.ExpiresAt, next.Lease, next.RetryAt = db.Instant(next.ExpiresAt), db.Instant(next.Lease), db.Instant(next.RetryAt)
		next.StoreTime = time.Time{}
		b = u.Batch()
		if len(events) > 0 {
			if _, b, err = v.users.Change(ctx, u, &person, func(p *healthdata.User) ([]healthlab.Event, error) {
				*p = edited
				return events, nil
			}); err != nil {
				return err
			}
		}
		b.Queue(putCredential, credentialValues(&next)...)
		return u.Commit(ctx, b)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return linking.Credential{}, fmt.Errorf("%w: no credential", healthlab.NotFound)
	}
	if err != nil {
		return linking.Credential{}, err
	}
	return next, nil
}
