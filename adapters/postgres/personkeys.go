package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/personkey"
)

// PersonKeys is a [personkey.Store] in the schema healthlab_keys, which may be in another
// database than the data. Backups of the data leave this schema out. It needs a pool of its
// own: it is asked for keys while transactions of a [Store] hold connections of theirs.
type PersonKeys struct{ pool *pgxpool.Pool }

// NewPersonKeys returns a store of keys. The schema must be there; see [MigratePersonKeys].
func NewPersonKeys(pool *pgxpool.Pool) *PersonKeys { return &PersonKeys{pool} }

// createPersonKeys can be repeated.
const createPersonKeys = `
create schema if not exists healthlab_keys;
comment on schema healthlab_keys is 'The keys of persons, sealed by the key of the host. Not part of backups of the data.';
create table if not exists healthlab_keys.person_key (
	user_id    uuid        not null,
	team_id    uuid        not null,
	key_id     text        collate "C" not null,
	box        bytea       not null,
	changed_at timestamptz not null default now(),
	constraint person_key_pkey primary key (user_id, team_id),
	constraint person_key_deleted check ((key_id = '') = (box = ''))
);
comment on table healthlab_keys.person_key is 'One key for each person, and one for each team, whose user_id is zero.';
comment on constraint person_key_pkey on healthlab_keys.person_key is 'A person has one key.';
comment on constraint person_key_deleted on healthlab_keys.person_key is 'A key that was deleted leaves a row without a key.';
comment on column healthlab_keys.person_key.key_id is 'The key of the host that seals this one; empty if it was deleted.';
create index if not exists person_key_sealed on healthlab_keys.person_key (key_id, user_id, team_id);`

// MigratePersonKeys makes the schema healthlab_keys. Several processes may call it at once.
func MigratePersonKeys(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(db.MigrationLock)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createPersonKeys)
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate keys of persons: %w", db.Classify(ctx, err))
	}
	return nil
}

const (
	insertPersonKey = `
insert into healthlab_keys.person_key (user_id, team_id, key_id, box) values ($1, $2, $3, $4)
on conflict (user_id, team_id) do nothing`

	selectPersonKeys = `
select user_id, team_id, key_id, box from healthlab_keys.person_key
where user_id = any ($1) and (user_id, team_id) in (select * from unnest($1::uuid[], $2::uuid[]))`

	deletePersonKey = `
insert into healthlab_keys.person_key (user_id, team_id, key_id, box) values ($1, $2, '', '')
on conflict (user_id, team_id) do update set key_id = '', box = '', changed_at = now()`

	selectOtherKeys = `
select user_id, team_id, key_id, box from healthlab_keys.person_key
where key_id <> '' and key_id <> $1 and (user_id, team_id) > ($2, $3) order by user_id, team_id limit $4`

	replacePersonKey = `
update healthlab_keys.person_key set key_id = $5, box = $6, changed_at = now()
where user_id = $1 and team_id = $2 and key_id = $3 and box = $4`

	selectDeletedKeys = `
select user_id, team_id, key_id, box from healthlab_keys.person_key
where key_id = '' and (user_id, team_id) > ($1, $2) order by user_id, team_id limit $3`

	countPersonKeys = `select key_id, count(*) from healthlab_keys.person_key where key_id <> '' group by key_id`
)

// Insert is [personkey.Store].
func (p *PersonKeys) Insert(ctx context.Context, e personkey.Entry) (personkey.Entry, error) {
	if _, err := p.pool.Exec(ctx, insertPersonKey, e.User.UUID, e.Team.UUID, e.Key.KeyID, e.Key.Box); err != nil {
		return personkey.Entry{}, db.Classify(ctx, err)
	}
	kept, err := p.Find(ctx, []personkey.Ref{e.Ref})
	if err == nil && len(kept) == 0 {
		err = fmt.Errorf("%w: the key was not kept", healthlab.Unavailable)
	}
	if err != nil {
		return personkey.Entry{}, err
	}
	return kept[0], nil
}

// Find is [personkey.Store].
func (p *PersonKeys) Find(ctx context.Context, refs []personkey.Ref) ([]personkey.Entry, error) {
	users, teams := make([]uuid.UUID, len(refs)), make([]uuid.UUID, len(refs))
	for i, ref := range refs {
		users[i], teams[i] = ref.User.UUID, ref.Team.UUID
	}
	return p.entries(ctx, selectPersonKeys, users, teams)
}

func (p *PersonKeys) entries(ctx context.Context, sql string, args ...any) ([]personkey.Entry, error) {
	rows, err := p.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, db.Classify(ctx, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e personkey.Entry, err error) {
		return e, row.Scan(&e.User.UUID, &e.Team.UUID, &e.Key.KeyID, &e.Key.Box)
	})
	if err != nil {
		return nil, db.Classify(ctx, err)
	}
	return out, nil
}

// Delete is [personkey.Store].
func (p *PersonKeys) Delete(ctx context.Context, ref personkey.Ref) error {
	if _, err := p.pool.Exec(ctx, deletePersonKey, ref.User.UUID, ref.Team.UUID); err != nil {
		return db.Classify(ctx, err)
	}
	return nil
}

// Others is [personkey.Store].
func (p *PersonKeys) Others(ctx context.Context, keyID string, after personkey.Ref, n int) ([]personkey.Entry, error) {
	return p.entries(ctx, selectOtherKeys, keyID, after.User.UUID, after.Team.UUID, max(n, 0))
}

// Replace is [personkey.Store].
func (p *PersonKeys) Replace(ctx context.Context, was, e personkey.Entry) error {
	_, err := p.pool.Exec(ctx, replacePersonKey, was.User.UUID, was.Team.UUID, was.Key.KeyID, was.Key.Box, e.Key.KeyID, e.Key.Box)
	if err != nil {
		return db.Classify(ctx, err)
	}
	return nil
}

// Deleted is [personkey.Store].
func (p *PersonKeys) Deleted(ctx context.Context, after personkey.Ref, n int) ([]personkey.Ref, error) {
	page, err := p.entries(ctx, selectDeletedKeys, after.User.UUID, after.Team.UUID, max(n, 0))
	var out []personkey.Ref
	for _, e := range page {
		out = append(out, e.Ref)
	}
	return out, err
}

// Count is [personkey.Store].
func (p *PersonKeys) Count(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	rows, err := p.pool.Query(ctx, countPersonKeys)
	if err != nil {
		return nil, db.Classify(ctx, err)
	}
	var id string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		out[id] = n
		return nil
	}); err != nil {
		return nil, db.Classify(ctx, err)
	}
	return out, nil
}
