package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Data returns the store as a [healthdata.Data].
func (s *Store) Data() healthdata.Data { return data{s} }

type data struct{ s *Store }

func noLiveUser() error { return fmt.Errorf("%w: the team has no such user", healthlab.NotFound) }

const (
	// Records are written under the lock of their user: it orders the writes of a
	// resource, and keeps the user from being erased meanwhile.
	lockLiveUser = `
select client_user_id from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null for no key update`

	selectDigests = `
select id, digest, index_at, utc_offset, created_at, case when id = any ($5) then doc end from healthlab.record
where user_id = $1 and resource = $2 and id = any ($3) and team_id = $4`

	putRecords = `
insert into healthlab.record (user_id, resource, id, team_id, provider, source_type, index_at, utc_offset, digest, doc, raw,
	created_at, updated_at)
select $1, $2, x.id, $3, x.provider, x.source_type, x.index_at, x.utc_offset, x.digest, x.doc, x.raw, x.created_at, x.updated_at
from unnest($4::uuid[], $5::text[], $6::text[], $7::timestamptz[], $8::integer[], $9::bytea[], $10::bytea[], $11::bytea[],
	$12::timestamptz[], $13::timestamptz[])
	as x (id, provider, source_type, index_at, utc_offset, digest, doc, raw, created_at, updated_at)
on conflict (user_id, resource, id) do update
set provider = excluded.provider, source_type = excluded.source_type, index_at = excluded.index_at, utc_offset = excluded.utc_offset,
	digest = excluded.digest, doc = excluded.doc, raw = excluded.raw, updated_at = excluded.updated_at`
)

// version is what tells whether a record is the same as the stored one.
type version struct {
	digest           []byte
	index, createdAt time.Time
	offset           int
	doc              []byte // of a stored record that a write compares
}

// versionsOf returns the versions of records that are to be written. Precondition if a stored
// one is not what its record replaces.
func (s *Store) versionsOf(ctx context.Context, ref personkey.Ref, records []healthdata.Record, stored map[uuid.UUID]version) ([]version, error) {
	versions := make([]version, len(records))
	for i := range records {
		r := &records[i]
		if r.Replaces != nil {
			was, err := s.db.Keys.Open(ctx, ref, personkey.RowRecordDoc(r.Resource, r.ID), stored[r.ID].doc)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(r.Replaces, was) {
				return nil, db.Answer(fmt.Errorf("%w: the record has changed", healthlab.Precondition))
			}
		}
		content := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(r.Doc))), r.Doc, r.Raw)
		digest, err := s.db.Keys.Digest(ctx, ref, content)
		if err != nil {
			return nil, err
		}
		versions[i] = version{digest: digest, index: db.Instant(r.Index), createdAt: db.Instant(r.CreatedAt), offset: r.Offset}
	}
	return versions, nil
}

// same reports whether a stored version is that of w.
func (v *version) same(w *version) bool {
	return bytes.Equal(v.digest, w.digest) && v.index.Equal(w.index) && v.offset == w.offset
}

// openRecord decrypts what was read of a record.
func (s *Store) openRecord(ctx context.Context, ref personkey.Ref, r *healthdata.Record) (err error) {
	if r.Doc, err = s.db.Keys.Open(ctx, ref, personkey.RowRecordDoc(r.Resource, r.ID), r.Doc); err == nil {
		r.Raw, err = s.db.Keys.Open(ctx, ref, personkey.RowRecordRaw(r.Resource, r.ID), r.Raw)
	}
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	return nil
}

func (d data) PutRecords(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record,
	events func([]healthdata.PutResult) ([]healthlab.Event, error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := healthdata.CheckRecords(records); err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(records))
	resource, compared := "", []uuid.UUID{}
	ref := personkey.Ref{Team: team, User: user}
	for i := range records {
		ids[i], resource = records[i].ID, records[i].Resource
		if records[i].Replaces != nil {
			compared = append(compared, ids[i])
		}
	}
	return d.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var name string
		stored := map[uuid.UUID]version{}
		b := u.Batch()
		b.Queue(lockLiveUser, team.UUID, user.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&name) })
		if len(ids) > 0 {
			queueDigests(b, team, user, resource, ids, compared, stored)
		}
		if err := u.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return noLiveUser()
		} else if err != nil {
			return err
		}
		versions, err := d.s.versionsOf(ctx, ref, records, stored)
		if err != nil {
			return err
		}
		results := make([]healthdata.PutResult, len(records))
		var write []int
		var news touched
		for i := range records {
			from := versions[i].index.UnixMicro()
			to := from
			results[i] = healthdata.PutResult{Outcome: healthdata.PutNew, CreatedAt: versions[i].createdAt}
			if was, ok := stored[ids[i]]; ok {
				results[i] = healthdata.PutResult{Outcome: healthdata.PutChanged, CreatedAt: was.createdAt}
				if was.same(&versions[i]) {
					results[i].Outcome = healthdata.PutSame
					continue
				}
				from, to = min(from, was.index.UnixMicro()), max(to, was.index.UnixMicro())
			}
			write = append(write, i)
			news.add(userKey{team, user}, resource, from, to)
		}
		var out []healthlab.Event
		if events != nil && len(records) > 0 {
			if out, err = events(results); err != nil {
				return db.Answer(err)
			}
		}
		if len(write) == 0 && len(out) == 0 {
			return nil
		}
		b = u.Batch()
		if err := d.s.queueRecords(ctx, b, ref, records, versions, write); err != nil {
			return err
		}
		news.queue(b)
		if err := d.s.messages.Emit(ctx, u, b, out, outbox.Names{{Team: team, User: user}: name}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
}

func queueDigests(b *pgx.Batch, team healthlab.TeamID, user healthlab.UserID, resource string, ids, compared []uuid.UUID, to map[uuid.UUID]version) {
	b.Queue(selectDigests, user.UUID, resource, ids, team.UUID, compared).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var v version
			if err := rows.Scan(&id, &v.digest, &v.index, &v.offset, &v.createdAt, &v.doc); err != nil {
				return err
			}
			v.createdAt = v.createdAt.UTC()
			to[id] = v
		}
		return rows.Err()
	})
}

// queueRecords adds to a batch what writes those of the records that are named.
func (s *Store) queueRecords(ctx context.Context, b *pgx.Batch, ref personkey.Ref, records []healthdata.Record, versions []version, write []int) error {
	if len(write) == 0 {
		return nil
	}
	n := len(write)
	ids, digests, docs, raws := make([]uuid.UUID, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	providers, sources, offsets := make([]string, n), make([]string, n), make([]int, n)
	index, created, updated := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for k, i := range write {
		r, v := &records[i], &versions[i]
		ids[k], digests[k] = r.ID, v.digest
		var err error
		if docs[k], err = s.db.Keys.Seal(ctx, ref, personkey.RowRecordDoc(r.Resource, r.ID), r.Doc); err != nil {
			return err
		}
		if r.Raw != nil {
			if raws[k], err = s.db.Keys.Seal(ctx, ref, personkey.RowRecordRaw(r.Resource, r.ID), r.Raw); err != nil {
				return err
			}
		}
		providers[k], sources[k], offsets[k] = r.Provider, string(r.SourceType), r.Offset
		index[k], created[k], updated[k] = v.index, v.createdAt, db.Instant(r.UpdatedAt)
	}
	b.Queue(putRecords, ref.User.UUID, records[0].Resource, ref.Team.UUID,
		ids, providers, sources, index, offsets, digests, docs, raws, created, updated)
	return nil
}

const (
	recordColumns = `r.resource, r.id, r.provider, r.source_type, r.index_at, r.utc_offset, r.doc, r.raw, r.created_at, r.updated_at`

	// An id may be of several users, some of whom are deleted.
	findRecords = `
select r.user_id, ` + recordColumns + ` from healthlab.record r where r.team_id = $1 and r.resource = $2 and r.id = $3`

	selectLiveOf = `
select user_id from healthlab.users where team_id = $1 and user_id = any ($2) and deleted_at is null limit 1`

	selectRecords = `
select r.resource, r.id, r.provider, r.source_type, r.index_at, r.utc_offset, r.doc, case when $8 then r.raw end, r.created_at, r.updated_at
from healthlab.record r
where r.user_id = $1 and r.team_id = $2 and r.resource = $3
	and ($4::timestamptz is null or r.index_at >= $4) and ($5::timestamptz is null or r.index_at <= $5)
	and ($6 = '' or r.provider = $6) and ($7::uuid is null or r.id = $7) and (not $8 or r.raw is not null)
order by r.index_at, r.id`
)

func scanRecord(row pgx.Row, before ...any) (healthdata.Record, error) {
	var r healthdata.Record
	err := row.Scan(append(before, &r.Resource, &r.ID, &r.Provider, (*string)(&r.SourceType), &r.Index, &r.Offset,
		&r.Doc, &r.Raw, &r.CreatedAt, &r.UpdatedAt)...)
	r.Index, r.CreatedAt, r.UpdatedAt = r.Index.UTC(), r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	return r, err
}

func (d data) Find(ctx context.Context, team healthlab.TeamID, resource string, id uuid.UUID) (healthlab.UserID, healthdata.Record, error) {
	var user healthlab.UserID
	var r healthdata.Record
	if err := ctx.Err(); err != nil {
		return user, r, err
	}
	if err := healthlab.CheckText(resource); err != nil {
		return user, r, err
	}
	err := d.s.db.Do(ctx, team, db.Reading, func(u *db.Tx) error {
		found := map[uuid.UUID]healthdata.Record{}
		b := u.Batch()
		b.Queue(findRecords, team.UUID, resource, id).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var of uuid.UUID
				one, err := scanRecord(rows, &of)
				if err != nil {
					return err
				}
				found[of] = one
			}
			return rows.Err()
		})
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if len(found) == 0 {
			return pgx.ErrNoRows
		}
		b = u.Batch()
		b.Queue(selectLiveOf, team.UUID, slices.Collect(maps.Keys(found))).QueryRow(func(row pgx.Row) error { return row.Scan(&user.UUID) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		r = found[user.UUID]
		return d.s.openRecord(ctx, personkey.Ref{Team: team, User: user}, &r)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: the team has no such record", healthlab.NotFound)
	}
	if err != nil {
		return healthlab.UserID{}, healthdata.Record{}, err
	}
	return user, r, nil
}
