package orderstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Persons returns the store as a [people.Store].
func (s *Store) Persons() people.Store { return persons{s} }

type persons struct{ s *Store }

const (
	putInfo = `
insert into healthlab.user_info (team_id, user_id, doc) values ($1, $2, $3)
on conflict (team_id, user_id) do update set doc = excluded.doc`

	// notDeleted leaves out rows of users who are deleted, and can come back.
	notDeleted = ` and not exists (
	select from healthlab.users u where u.team_id = r.team_id and u.user_id = r.user_id and u.deleted_at is not null)`

	selectInfo = `select r.doc from healthlab.user_info r where r.team_id = $1 and r.user_id = $2` + notDeleted

	// Records of one user are added one after another.
	lockCoverages = `select pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::uuid::text, 0))`

	hasCoverage = `select exists (select from healthlab.insurance where insurance_id = $1)`

	// The record that ends says when: at the start of the new one, which is later.
	endCoverage = `
update healthlab.insurance set valid_until = greatest($4, valid_from + interval '1 microsecond')
where team_id = $1 and user_id = $2 and is_primary = $3 and valid_until is null`

	insertCoverage = `
insert into healthlab.insurance (team_id, user_id, insurance_id, is_primary, valid_from, doc)
values ($1, $2, $3, $4, greatest($5, (select max(valid_until) from healthlab.insurance
	where team_id = $1 and user_id = $2 and is_primary = $4)), $6)`

	coverageColumns = `select user_id, insurance_id, valid_from, valid_until, doc from healthlab.insurance r `

	selectCoverage = coverageColumns + `where team_id = $1 and insurance_id = $2` + notDeleted

	selectCoverageAt = coverageColumns + `
where team_id = $1 and user_id = $2 and is_primary = $3
	and case when $4::timestamptz is null then valid_until is null else valid_from <= $4 and (valid_until is null or valid_until > $4) end` + notDeleted

	insertPayor = `
insert into healthlab.payor (team_id, payor_code, created_at, doc) values ($1, $2, $3, $4)`

	selectPayors = `select doc from healthlab.payor where team_id = $1 order by created_at, payor_code`
)

func (v persons) PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info people.UserInfo) error {
	doc, err := v.s.db.SealDocument(ctx, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, info)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) { b.Queue(putInfo, team.UUID, user.UUID, doc) })
	})
}

func (v persons) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (info people.UserInfo, err error) {
	err = v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectInfo, team.UUID, user.UUID).QueryRow(func(row pgx.Row) error {
			var doc []byte
			if err := row.Scan(&doc); err != nil {
				return err
			}
			info = people.UserInfo{}
			return v.s.db.OpenDocument(ctx, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, doc, &info)
		})
	})
	return info, db.MissingRow(err, "demographics")
}

func (v persons) AddCoverage(ctx context.Context, c people.Coverage) error {
	doc, err := v.s.db.SealDocument(ctx, refOfCoverage(&c), personkey.RowInsurance(c.ID), c.Record)
	if err != nil {
		return err
	}
	from := db.Instant(c.ValidFrom)
	err = v.s.db.Do(ctx, c.Team, db.Writing, func(x *db.Tx) error {
		var taken bool
		b := x.Batch()
		b.Queue(lockCoverages, c.Team.UUID, c.User.UUID)
		b.Queue(hasCoverage, c.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&taken) })
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		if taken {
			return fmt.Errorf("%w: the record's id is taken", healthlab.Conflict)
		}
		b = x.Batch()
		b.Queue(endCoverage, c.Team.UUID, c.User.UUID, c.Record.IsPrimary, from)
		b.Queue(insertCoverage, c.Team.UUID, c.User.UUID, c.ID, c.Record.IsPrimary, from, doc)
		return x.Commit(ctx, b)
	})
	return err
}

func refOfCoverage(c *people.Coverage) personkey.Ref {
	return personkey.Ref{Team: c.Team, User: c.User}
}

// coverage reads one record.
func (v persons) coverage(ctx context.Context, team healthlab.TeamID, sql string, args ...any) (people.Coverage, error) {
	var c people.Coverage
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
			c = people.Coverage{Team: team}
			var doc []byte
			var until *time.Time
			if err := row.Scan(&c.User.UUID, &c.ID, &c.ValidFrom, &until, &doc); err != nil {
				return err
			}
			c.ValidFrom = c.ValidFrom.UTC()
			if until != nil {
				c.ValidUntil = until.UTC()
			}
			return v.s.db.OpenDocument(ctx, refOfCoverage(&c), personkey.RowInsurance(c.ID), doc, &c.Record)
		})
	})
	return c, db.MissingRow(err, "insurance record")
}

func (v persons) Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error) {
	return v.coverage(ctx, team, selectCoverage, team.UUID, id)
}

func (v persons) CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (people.Coverage, error) {
	return v.coverage(ctx, team, selectCoverageAt, team.UUID, user.UUID, primary, db.Nullable(at.UTC()))
}

func (v persons) AddPayor(ctx context.Context, p people.StoredPayor) error {
	p.CreatedAt = db.Instant(p.CreatedAt)
	doc, err := db.EncodeDocument(p)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, p.Team, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) { b.Queue(insertPayor, p.Team.UUID, p.PayorCode, p.CreatedAt, doc) })
	})
}

func (v persons) Payors(ctx context.Context, team healthlab.TeamID) ([]people.StoredPayor, error) {
	var out []people.StoredPayor
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectPayors, team.UUID).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				var doc []byte
				var p people.StoredPayor
				if err := rows.Scan(&doc); err != nil {
					return err
				}
				if err := json.Unmarshal(doc, &p); err != nil {
					return err
				}
				out = append(out, p)
			}
			return rows.Err()
		})
	})
	return out, err
}
