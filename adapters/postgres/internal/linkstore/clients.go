package linkstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	clientColumns = `
t.provider, t.client, t.key_id, t.box, t.tail, t.details, t.redirect_url, t.created_at, t.updated_at, t.retired_at, t.proven_at, t.proven_url`

	selectClients = `
select ` + clientColumns + `, case when $2::boolean then (
	select count(*) from healthlab.connection c
	join healthlab.users u on u.user_id = c.user_id and u.team_id = c.team_id
	join healthlab.link_credential k on k.user_id = c.user_id and k.provider = c.provider
	where c.team_id = t.team_id and c.provider = t.provider and c.client = t.client and c.status <> 'deregistered' and u.deleted_at is null) else 0 end
from healthlab.team_client t where t.team_id = $1
order by t.provider, t.retired_at desc nulls first, t.client`

	selectClient = `select ` + clientColumns + ` from healthlab.team_client t where t.team_id = $1 and t.provider = $2 and t.client = $3`

	// The one that takes its place is another one.
	retireClients = `
update healthlab.team_client set retired_at = $3 where team_id = $1 and provider = $2 and retired_at is null and client <> $4`

	putClient = `
insert into healthlab.team_client as t (team_id, provider, client, key_id, box, tail, details, redirect_url, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (team_id, provider, client) do update set key_id = excluded.key_id, box = excluded.box, tail = excluded.tail,
	details = excluded.details, redirect_url = excluded.redirect_url, updated_at = excluded.updated_at, retired_at = null
returning ` + clientColumns

	proveClient = `
update healthlab.team_client set proven_url = $4, proven_at = $5
where team_id = $1 and provider = $2 and client = $3 and (proven_url <> $4 or proven_at is null)`

	forgetClients = `
delete from healthlab.team_client t where t.team_id = $1 and t.retired_at < $2 and not exists (
	select from healthlab.connection c
	join healthlab.link_credential k on k.user_id = c.user_id and k.provider = c.provider
	where c.team_id = t.team_id and c.provider = t.provider and c.client = t.client and c.status <> 'deregistered')`

	eraseClients = `delete from healthlab.team_client where team_id = $1 and provider = $2`
)

func scanTeamClient(row pgx.Row, c *linking.TeamClient, more ...any) error {
	var details []byte
	var retired, proven *time.Time
	if err := row.Scan(append([]any{
		&c.Provider, &c.ClientID, &c.Box.KeyID, &c.Box.Box, &c.Tail, &details, &c.RedirectURL, &c.CreatedAt, &c.UpdatedAt, &retired, &proven, &c.ProvenURL,
	}, more...)...); err != nil {
		return err
	}
	if err := json.Unmarshal(details, &c.Details); err != nil {
		return fmt.Errorf("decode details of client: %w", err)
	}
	if len(c.Details) == 0 {
		c.Details = nil
	}
	c.CreatedAt, c.UpdatedAt, c.RetiredAt, c.ProvenAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC(), db.TimeOrZero(retired), db.TimeOrZero(proven)
	return nil
}

// Clients implements [linking.TeamClients].
func (v *Store) Clients(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
	var out []linking.TeamClient
	err := v.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		b.Queue(selectClients, q.Team.UUID, q.Count).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				c := linking.TeamClient{Team: q.Team}
				if err := scanTeamClient(rows, &c, &c.Connections); err != nil {
					return err
				}
				out = append(out, c)
			}
			return rows.Err()
		})
	})
	return out, err
}

func noClient(err error) error { return db.MissingRow(err, "the team has no such client") }

// Client implements [linking.TeamClients].
func (v *Store) Client(ctx context.Context, team healthlab.TeamID, provider, clientID string) (linking.TeamClient, error) {
	if err := healthlab.CheckText(provider, clientID); err != nil {
		return linking.TeamClient{}, err
	}
	c := linking.TeamClient{Team: team}
	err := v.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectClient, team.UUID, provider, clientID).QueryRow(func(row pgx.Row) error { return scanTeamClient(row, &c) })
	})
	if err != nil {
		return linking.TeamClient{}, noClient(err)
	}
	return c, nil
}

// PutClient implements [linking.TeamClients].
func (v *Store) PutClient(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
	if c.Team.IsZero() || c.Provider == "" || c.ClientID == "" || c.Box.Box == nil {
		return linking.TeamClient{}, fmt.Errorf("%w: a client has a team, a provider, an id and a box", healthlab.Invalid)
	}
	details, err := json.Marshal(c.Details)
	if err != nil {
		return linking.TeamClient{}, fmt.Errorf("encode details of client: %w", err)
	}
	if c.Details == nil {
		details = []byte("{}")
	}
	if err := healthlab.CheckText(c.Provider, c.ClientID, c.Box.KeyID, c.Tail, c.RedirectURL); err != nil {
		return linking.TeamClient{}, err
	}
	if db.Spoilt(details) {
		return linking.TeamClient{}, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	out := linking.TeamClient{Team: c.Team}
	err = v.db.Do(ctx, c.Team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		db.LockTeam(b, c.Team)
		b.Queue(retireClients, c.Team.UUID, c.Provider, db.Instant(c.UpdatedAt), c.ClientID)
		b.Queue(putClient, c.Team.UUID, c.Provider, c.ClientID, c.Box.KeyID, c.Box.Box, c.Tail, details, c.RedirectURL,
			db.Instant(c.CreatedAt), db.Instant(c.UpdatedAt)).QueryRow(func(row pgx.Row) error { return scanTeamClient(row, &out) })
		return u.Commit(ctx, b)
	})
	if err != nil {
		return linking.TeamClient{}, err
	}
	return out, nil
}

// RetireClient implements [linking.TeamClients].
func (v *Store) RetireClient(ctx context.Context, team healthlab.TeamID, provider string, at time.Time) error {
	if err := healthlab.CheckText(provider); err != nil {
		return err
	}
	done, err := v.changeClients(ctx, team, retireClients, team.UUID, provider, db.Instant(at), "")
	if err == nil && done == 0 {
		err = fmt.Errorf("%w: the team has no client at this provider", healthlab.NotFound)
	}
	return err
}

// ProveClient implements [linking.TeamClients].
func (v *Store) ProveClient(ctx context.Context, team healthlab.TeamID, provider, clientID, redirectURL string, at time.Time) error {
	if err := healthlab.CheckText(provider, clientID, redirectURL); err != nil {
		return err
	}
	_, err := v.changeClients(ctx, team, proveClient, team.UUID, provider, clientID, redirectURL, db.Instant(at))
	return err
}

// ForgetClients implements [linking.TeamClients].
func (v *Store) ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return 0, err
	}
	if provider != "" {
		return v.changeClients(ctx, team, eraseClients, team.UUID, provider)
	}
	return v.changeClients(ctx, team, forgetClients, team.UUID, db.Instant(before))
}

// changeClients runs one statement with the clients of the team locked.
func (v *Store) changeClients(ctx context.Context, team healthlab.TeamID, sql string, args ...any) (int, error) {
	var done pgconn.CommandTag
	err := v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		db.LockTeam(b, team)
		db.KeepTag(b.Queue(sql, args...), &done)
		return u.Commit(ctx, b)
	})
	return int(done.RowsAffected()), err
}
