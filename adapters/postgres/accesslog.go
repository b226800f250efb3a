package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
)

// AccessLog returns the chains of accesses as an [accesslog.Store].
func (s *Store) AccessLog() accesslog.Store { return accessLog{s} }

type accessLog struct{ s *Store }

const (
	insertAccessHead = `insert into healthlab.access_head (team_id, seq, hash, signature) values ($1, 0, $2, '') on conflict (team_id) do nothing`
	lockAccessHead   = `select seq, hash from healthlab.access_head where team_id = $1 for no key update`
	updateAccessHead = `update healthlab.access_head set seq = $2, hash = $3, signature = $4 where team_id = $1`

	insertAccessLines = `
insert into healthlab.access_line (team_id, seq, at, actor, person_id, kind, operation, status, request_id, address, prev, hash)
select $1, l.* from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::int[], $9::text[], $10::text[],
	$11::bytea[], $12::bytea[]) l`

	accessLineColumns = `seq, at, actor, person_id, kind, operation, status, request_id, address, prev, hash`

	selectAccessLines = `
select ` + accessLineColumns + ` from healthlab.access_line where team_id = $1 and seq > $2 order by seq limit $3`
	selectAccessLinesOf = `
select ` + accessLineColumns + ` from healthlab.access_line where team_id = $1 and person_id = $4 and seq > $2 order by seq limit $3`

	selectAccessHeads = `
select coalesce(h.team_id, l.team_id), coalesce(h.seq, 0), coalesce(h.hash, ''), coalesce(h.signature, '')
from healthlab.access_head h full join (select distinct team_id from healthlab.access_line) l on l.team_id = h.team_id
where coalesce(h.team_id, l.team_id) > $1 order by 1 limit $2`
	selectAccessHeadOf = `
select $1::uuid, coalesce(h.seq, 0), coalesce(h.hash, ''), coalesce(h.signature, '')
from (select) one left join healthlab.access_head h on h.team_id = $1
where h.team_id is not null or exists (select from healthlab.access_line l where l.team_id = $1)
limit $2`

	selectUnanchored = `
select h.team_id, h.seq, h.hash from healthlab.access_head h
where h.seq > 0 and not exists (select from healthlab.access_anchor a where a.team_id = h.team_id and a.seq = h.seq)
limit $1`

	insertAccessAnchor = `
insert into healthlab.access_anchor (team_id, seq, hash, at, key_id, signature)
select $1, $2, $3, $4, $5, $6 from healthlab.access_head h where h.team_id = $1 on conflict (team_id, seq) do nothing`

	selectAccessHead    = `select seq from healthlab.access_head where team_id = $1`
	selectAccessAnchors = `select seq, hash, at, key_id, signature from healthlab.access_anchor where team_id = $1 order by seq`

	pruneAccessLines = `
delete from healthlab.access_line l using (
	select team_id, max(seq) as seq from healthlab.access_anchor where at < $1 group by team_id) a
where l.team_id = a.team_id and l.seq <= a.seq`
	pruneAccessAnchors = `
delete from healthlab.access_anchor o using (
	select team_id, max(seq) as seq from healthlab.access_anchor where at < $1 group by team_id) a
where o.team_id = a.team_id and o.seq < a.seq`
)

func (v accessLog) Append(ctx context.Context, entries []accesslog.Entry, sign func(accesslog.Head) []byte) error {
	byTeam := map[healthlab.TeamID][]accesslog.Entry{}
	var teams []healthlab.TeamID // in one order, so that no two calls wait for each other
	for i := range entries {
		e := &entries[i]
		if e.Team.IsZero() {
			return fmt.Errorf("%w: an access has a team", healthlab.Invalid)
		}
		if err := healthlab.CheckText(e.Actor, e.Kind, e.Operation, e.Request, e.Address); err != nil {
			return err
		}
		if byTeam[e.Team] == nil {
			teams = append(teams, e.Team)
		}
		byTeam[e.Team] = append(byTeam[e.Team], *e)
	}
	if len(teams) == 0 {
		return ctx.Err()
	}
	slices.SortFunc(teams, func(a, b healthlab.TeamID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	of := db.AllTeams
	if len(teams) == 1 {
		of = teams[0]
	}
	return v.s.db.Do(ctx, of, db.Writing, func(u *db.Tx) error {
		heads := make([]accesslog.Head, len(teams))
		b := u.Batch()
		for i, team := range teams {
			b.Queue(insertAccessHead, team.UUID, heads[i].Hash[:])
			b.Queue(lockAccessHead, team.UUID).QueryRow(func(row pgx.Row) error {
				var hash []byte
				err := row.Scan(&heads[i].Seq, &hash)
				heads[i].Team = team
				copy(heads[i].Hash[:], hash)
				return err
			})
		}
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		b = u.Batch()
		for i, team := range teams {
			lines, head := accesslog.Chain(heads[i], byTeam[team])
			queueAccessLines(b, team, lines)
			b.Queue(updateAccessHead, team.UUID, head.Seq, head.Hash[:], sign(head))
		}
		return u.Commit(ctx, b)
	})
}

func (v accessLog) Heads(ctx context.Context, q accesslog.HeadQuery) ([]accesslog.SignedHead, error) {
	sql, team, first := selectAccessHeads, db.AllTeams, q.After
	if !q.Team.IsZero() {
		sql, team, first = selectAccessHeadOf, q.Team, q.Team
	}
	var out []accesslog.SignedHead
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(sql, first.UUID, max(q.N, 0)).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var h accesslog.SignedHead
				var hash []byte
				if err := rows.Scan(&h.Team.UUID, &h.Seq, &hash, &h.Signature); err != nil {
					return err
				}
				copy(h.Hash[:], hash)
				out = append(out, h)
			}
			return rows.Err()
		})
	})
	return out, err
}

func queueAccessLines(b *pgx.Batch, team healthlab.TeamID, lines []accesslog.Line) {
	n := len(lines)
	seqs, times, persons, states := make([]int64, n), make([]time.Time, n), make([]*uuid.UUID, n), make([]int32, n)
	actors, kinds, operations, requests, addresses := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	prevs, hashes := make([][]byte, n), make([][]byte, n)
	for i := range lines {
		l := &lines[i]
		seqs[i], times[i], states[i], prevs[i], hashes[i] = l.Seq, l.At, int32(l.Status), l.Prev[:], l.Hash[:]
		actors[i], kinds[i], operations[i], requests[i], addresses[i] = l.Actor, l.Kind, l.Operation, l.Request, l.Address
		if !l.Person.IsZero() {
			persons[i] = &l.Person.UUID
		}
	}
	b.Queue(insertAccessLines, team.UUID, seqs, times, actors, persons, kinds, operations, states, requests, addresses, prevs, hashes)
}

func (v accessLog) Lines(ctx context.Context, q accesslog.Query) ([]accesslog.Line, error) {
	sql, args := selectAccessLines, []any{q.Team.UUID, q.After, max(q.N, 0)}
	if !q.Person.IsZero() {
		sql, args = selectAccessLinesOf, append(args, q.Person.UUID)
	}
	var out []accesslog.Line
	err := v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				l := accesslog.Line{Entry: accesslog.Entry{Team: q.Team}}
				var person *uuid.UUID
				var prev, hash []byte
				if err := rows.Scan(&l.Seq, &l.At, &l.Actor, &person, &l.Kind, &l.Operation, &l.Status, &l.Request, &l.Address, &prev, &hash); err != nil {
					return err
				}
				if person != nil {
					l.Person.UUID = *person
				}
				l.At = l.At.UTC()
				copy(l.Prev[:], prev)
				copy(l.Hash[:], hash)
				out = append(out, l)
			}
			return rows.Err()
		})
	})
	return out, err
}

func (v accessLog) Unanchored(ctx context.Context, n int) ([]accesslog.Head, error) {
	var out []accesslog.Head
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(selectUnanchored, max(n, 0)).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var h accesslog.Head
				var hash []byte
				if err := rows.Scan(&h.Team.UUID, &h.Seq, &hash); err != nil {
					return err
				}
				copy(h.Hash[:], hash)
				out = append(out, h)
			}
			return rows.Err()
		})
	})
	return out, err
}

func (v accessLog) AddAnchor(ctx context.Context, a accesslog.Anchor) error {
	if err := healthlab.CheckText(a.KeyID); err != nil {
		return err
	}
	err := v.s.db.Do(ctx, a.Team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(selectAccessHead, a.Team.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(new(int64)) })
			b.Queue(insertAccessAnchor, a.Team.UUID, a.Seq, a.Hash[:], db.Instant(a.At), a.KeyID, a.Signature)
		})
	})
	return noOrgTeam(err)
}

func (v accessLog) Anchors(ctx context.Context, team healthlab.TeamID) ([]accesslog.Anchor, error) {
	var out []accesslog.Anchor
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectAccessAnchors, team.UUID).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				a := accesslog.Anchor{Head: accesslog.Head{Team: team}}
				var hash []byte
				if err := rows.Scan(&a.Seq, &hash, &a.At, &a.KeyID, &a.Signature); err != nil {
					return err
				}
				a.At = a.At.UTC()
				copy(a.Hash[:], hash)
				out = append(out, a)
			}
			return rows.Err()
		})
	})
	return out, err
}

func (v accessLog) Prune(ctx context.Context, before time.Time) error {
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(pruneAccessLines, db.Instant(before))
			b.Queue(pruneAccessAnchors, db.Instant(before))
		})
	})
}
