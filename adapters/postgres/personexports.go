package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/personexport"
)

// PersonExports returns the store as a [personexport.Store].
func (s *Store) PersonExports() personexport.Store { return personExports{s} }

type personExports struct{ s *Store }

const (
	exportColumns = `e.team_id, e.job_id, e.user_id, e.revision, e.status, e.files, e.next, e.tries, e.created_at, e.updated_at, e.completed_at, e.expires_at, e.due_at`

	// Exports of one user are counted and added one after another.
	lockExportUser = `
select true from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null for no key update`

	countExports = `select count(*) from healthlab.person_export where team_id = $1 and user_id = $2 and status <> 'failed'`

	insertExport = `
insert into healthlab.person_export (team_id, job_id, user_id, revision, status, files, next, tries, created_at, updated_at, completed_at, expires_at, due_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
on conflict (team_id, job_id) do nothing`

	selectExport = `select ` + exportColumns + ` from healthlab.person_export e where e.team_id = $1 and e.job_id = $2`

	lockExport = selectExport + ` for no key update`

	updateExport = `
update healthlab.person_export set user_id = $3, revision = $4, status = $5, files = $6, next = $7, tries = $8, created_at = $9,
	updated_at = $10, completed_at = $11, expires_at = $12, due_at = $13
where team_id = $1 and job_id = $2`

	selectExportsOfUser = `
select ` + exportColumns + ` from healthlab.person_export e where e.team_id = $1 and e.user_id = $2 order by e.created_at, e.job_id`

	claimExports = `
with due as (
	select team_id, job_id, due_at as was from healthlab.person_export
	where due_at <= healthlab.clock() order by due_at, job_id limit $1 for no key update skip locked
), moved as (
	update healthlab.person_export t set due_at = healthlab.clock() + $2::interval, revision = t.revision + 1
	from due where t.team_id = due.team_id and t.job_id = due.job_id
	returning t.*, due.was
)
select ` + exportColumns + ` from moved e order by e.was, e.job_id`

	deleteExport = `delete from healthlab.person_export where team_id = $1 and job_id = $2`
)

// What erases the exports of a user. Those that have files stay until the files are deleted,
// which waits for the process that may be writing one.
const (
	deleteExportsOfUser = `
delete from healthlab.person_export e using healthlab.users u
where e.user_id = $1 and u.user_id = $1 and e.team_id = u.team_id and (e.files is null or e.files::text = '[]')`

	emptyExportsOfUser = `
update healthlab.person_export e set user_id = null, revision = e.revision + 1, status = 'failed',
	due_at = case when e.status = 'in_progress' then e.due_at else e.created_at end,
	next = 0, tries = 0, updated_at = e.created_at, completed_at = null, expires_at = null
from healthlab.users u where e.user_id = $1 and u.user_id = $1 and e.team_id = u.team_id`
)

func (v personExports) Insert(ctx context.Context, j personexport.Job, most int) error {
	if err := personexport.CheckJob(&j); err != nil {
		return err
	}
	j, err := j.Normal()
	if err != nil {
		return err
	}
	j.Revision = 1
	row, err := exportRow(&j)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, j.Team, db.Writing, func(u *db.Tx) error {
		var live bool
		var n int
		var added pgconn.CommandTag
		b := u.Batch()
		b.Queue(lockExportUser, j.Team.UUID, j.User.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
		b.Queue(countExports, j.Team.UUID, j.User.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		db.KeepTag(b.Queue(insertExport, row...), &added)
		if err := u.Send(ctx, b); err != nil {
			return db.MissingRow(err, "user")
		}
		switch {
		case added.RowsAffected() == 0:
			return fmt.Errorf("%w: the export's id is taken", healthlab.Conflict)
		case n >= most:
			return fmt.Errorf("%w: the user has the most exports that are allowed", healthlab.Exhausted)
		}
		return u.Commit(ctx, u.Batch())
	})
}

func (v personExports) Get(ctx context.Context, team healthlab.TeamID, id personexport.JobID) (personexport.Job, error) {
	var j personexport.Job
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { queueExport(b, selectExport, team, id, &j) })
	if err == nil && j.User.IsZero() {
		err = pgx.ErrNoRows // its user was erased
	}
	if err != nil {
		return personexport.Job{}, db.MissingRow(err, "export")
	}
	return j, nil
}

func (v personExports) Update(ctx context.Context, team healthlab.TeamID, id personexport.JobID, change func(*personexport.Job) error) (personexport.Job, error) {
	var next personexport.Job
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		queueExport(b, lockExport, team, id, &next)
		db.ReadClock(b, &next.StoreTime)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next.StoreTime = next.StoreTime.UTC()
		was := next
		if err := change(&next); err != nil {
			return db.Answer(err)
		}
		next.ID, next.Team, next.User, next.CreatedAt, next.Revision = id, team, was.User, was.CreatedAt, was.Revision+1
		var err error
		if next, err = next.Normal(); err != nil {
			return db.Answer(err)
		}
		row, err := exportRow(&next)
		if err != nil {
			return err
		}
		b = u.Batch()
		b.Queue(updateExport, row...)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return personexport.Job{}, db.MissingRow(err, "export")
	}
	return next, nil
}

func (v personExports) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]personexport.Job, error) {
	var out []personexport.Job
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectExportsOfUser, team.UUID, user.UUID).Query(func(rows pgx.Rows) (err error) {
			out, err = scanExports(rows)
			return err
		})
	})
	return out, err
}

func (v personExports) Claim(ctx context.Context, n int, lease time.Duration) ([]personexport.Job, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []personexport.Job
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimExports, n, lease).Query(func(rows pgx.Rows) (err error) {
				out, err = scanExports(rows)
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v personExports) Delete(ctx context.Context, team healthlab.TeamID, id personexport.JobID) error {
	return v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(deleteExport, team.UUID, id.UUID) })
	})
}

func queueExport(b *pgx.Batch, sql string, team healthlab.TeamID, id personexport.JobID, j *personexport.Job) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return scanExport(row, j) })
}

// exportRow returns the arguments of insertExport and updateExport for a job in its Normal form.
func exportRow(j *personexport.Job) ([]any, error) {
	var files []byte
	if j.Files != nil {
		var err error
		if files, err = db.EncodeDocument(j.Files); err != nil {
			return nil, err
		}
	}
	return []any{
		j.Team.UUID, j.ID.UUID, db.Optional(j.User.UUID), j.Revision, string(j.Status), files, j.Next, j.Tries,
		j.CreatedAt, j.UpdatedAt, db.Nullable(j.CompletedAt), db.Nullable(j.ExpiresAt), j.DueAt,
	}, nil
}

func scanExport(row pgx.Row, j *personexport.Job) error {
	var user *uuid.UUID
	var status string
	var files []byte
	var completed, expires *time.Time
	*j = personexport.Job{}
	if err := row.Scan(&j.Team.UUID, &j.ID.UUID, &user, &j.Revision, &status, &files, &j.Next, &j.Tries,
		&j.CreatedAt, &j.UpdatedAt, &completed, &expires, &j.DueAt); err != nil {
		return err
	}
	if user != nil {
		j.User.UUID = *user
	}
	if files != nil {
		if err := json.Unmarshal(files, &j.Files); err != nil {
			return fmt.Errorf("decode export: %w", err)
		}
	}
	j.Status, j.CompletedAt, j.ExpiresAt = personexport.Status(status), db.TimeOrZero(completed), db.TimeOrZero(expires)
	j.CreatedAt, j.UpdatedAt, j.DueAt = j.CreatedAt.UTC(), j.UpdatedAt.UTC(), j.DueAt.UTC()
	return nil
}

func scanExports(rows pgx.Rows) ([]personexport.Job, error) {
	out := []personexport.Job{}
	for rows.Next() {
		var j personexport.Job
		if err := scanExport(rows, &j); err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, rows.Err()
}
