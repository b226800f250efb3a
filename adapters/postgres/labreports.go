package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/personkey"
)

// ParsingJobs returns the store as a [labreport.Store].
func (s *Store) ParsingJobs() labreport.Store { return parsingJobs{s} }

type parsingJobs struct{ s *Store }

const jobColumns = `j.team_id, j.job_id, j.user_id, j.revision, j.status, j.due_at, j.created_at, j.files, j.doc`

const (
	// Counted under the lock of the team, and no further than the quota.
	countJobs = `
select count(*) from (select from healthlab.parsing_job where team_id = $1 and status <> 'failed' limit $2) n`

	insertJob = `
insert into healthlab.parsing_job (team_id, job_id, user_id, revision, status, due_at, created_at, files, corrected, doc)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (team_id, job_id) do nothing`

	selectJob = `select ` + jobColumns + ` from healthlab.parsing_job j where j.team_id = $1 and j.job_id = $2`

	jobNotDeleted = ` and not exists (
	select from healthlab.users u where u.team_id = j.team_id and u.user_id = j.user_id and u.deleted_at is not null)`

	selectVisibleJob = selectJob + jobNotDeleted

	lockJob = selectJob + ` for no key update`

	updateJob = `
update healthlab.parsing_job set user_id = $3, revision = $4, status = $5, due_at = $6, created_at = $7, files = $8, corrected = $9, doc = $10
where team_id = $1 and job_id = $2`

	deleteJob = `delete from healthlab.parsing_job where team_id = $1 and job_id = $2`

	listJobs = `
select ` + jobColumns + ` from healthlab.parsing_job j
where j.team_id = $1 and j.user_id is not null` + jobNotDeleted + `
	and ($2::uuid is null or j.user_id = $2)
	and (cardinality($3::text[]) = 0 or j.status = any($3))
	and (not $4 or j.corrected)
	and ($5::timestamptz is null or (j.created_at, j.job_id) < ($5, $6))
order by j.created_at desc, j.job_id desc limit $7`

	claimJobs = `
with due as (
	select team_id, job_id, due_at as was from healthlab.parsing_job
	where due_at <= healthlab.clock() order by due_at, job_id limit $1 for no key update skip locked
), moved as (
	update healthlab.parsing_job t set due_at = healthlab.clock() + $2::interval, revision = t.revision + 1
	from due where t.team_id = due.team_id and t.job_id = due.job_id
	returning t.*, due.was
)
select ` + jobColumns + ` from moved j order by j.was, j.job_id`
)

func (v parsingJobs) Insert(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
	if j.Team.IsZero() || j.ID == (labreport.JobID{}) || j.User.IsZero() {
		return fmt.Errorf("%w: a parsing job needs a team, a user and an id", healthlab.Invalid)
	}
	j.Revision = 1
	row, err := v.s.keepJob(ctx, &j)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, j.Team, db.Writing, func(u *db.Tx) error {
		var n int
		var added pgconn.CommandTag
		b := u.Batch()
		if quota > 0 {
			db.LockTeam(b, j.Team)
			b.Queue(countJobs, j.Team.UUID, quota).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		}
		db.KeepTag(b.Queue(insertJob, row...), &added)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		switch {
		case added.RowsAffected() == 0:
			return fmt.Errorf("%w: the parsing job's id is taken", healthlab.Conflict)
		case quota > 0 && n >= quota:
			return fmt.Errorf("%w: the team has the maximum number of parsing jobs", healthlab.Exhausted)
		}
		b = u.Batch()
		if err := v.s.messages.Emit(ctx, u, b, events, outbox.Names{}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
}

func (v parsingJobs) Get(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
	var j labreport.Job
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { v.s.queueJob(ctx, b, selectVisibleJob, team, id, &j) })
	if err == nil && j.User.IsZero() {
		err = pgx.ErrNoRows // its user was erased
	}
	if err != nil {
		return labreport.Job{}, noJob(err)
	}
	return j, nil
}

func (v parsingJobs) Update(ctx context.Context, team healthlab.TeamID, id labreport.JobID,
	change func(*labreport.Job) ([]healthlab.Event, error),
) (labreport.Job, error) {
	var next labreport.Job
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		v.s.queueJob(ctx, b, lockJob, team, id, &next)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		revision, user, made := next.Revision, next.User, next.CreatedAt
		events, err := change(&next)
		if err != nil {
			return db.Answer(err)
		}
		next.ID, next.Team, next.User, next.CreatedAt, next.Revision = id, team, user, made, revision+1
		row, err := v.s.keepJob(ctx, &next)
		if err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		if user.IsZero() && len(next.Files) == 0 {
			b.Queue(deleteJob, team.UUID, id.UUID)
		} else {
			b.Queue(updateJob, row...)
		}
		if err := v.s.messages.Emit(ctx, u, b, events, outbox.Names{}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return labreport.Job{}, noJob(err)
	}
	return next, nil
}

func (v parsingJobs) List(ctx context.Context, q labreport.Query) ([]labreport.Job, error) {
	status := make([]string, len(q.Status))
	for i, s := range q.Status {
		status[i] = string(s)
	}
	if err := healthlab.CheckText(status...); err != nil {
		return nil, err
	}
	out := []labreport.Job{}
	for size := max(1, q.Size); len(out) < size; {
		var found []labreport.Job
		var end labreport.ListPosition
		n := 0
		err := v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
			b.Queue(listJobs, q.Team.UUID, db.Optional(q.User.UUID), status, q.Corrected, db.Nullable(q.After.CreatedAt), q.After.ID.UUID, size-len(out)).
				Query(func(rows pgx.Rows) (err error) {
					found, n, end, err = v.s.scanJobs(ctx, rows)
					return err
				})
		})
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); n == len(found) {
			break // those of erased persons have to be made up for
		}
		q.After = end
	}
	return out, nil
}

func (v parsingJobs) Claim(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
	if n <= 0 {
		return []labreport.Job{}, ctx.Err()
	}
	var out []labreport.Job
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimJobs, n, lease).Query(func(rows pgx.Rows) (err error) {
				out, _, _, err = v.s.scanJobs(ctx, rows)
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// What erases the jobs of a user, and before that waits for their changes. Those that have files stay without anything of the
// person, due at once, until their files are deleted.
const (
	deleteJobsOfUser = `
delete from healthlab.parsing_job j using healthlab.users u
where j.user_id = $1 and u.user_id = $1 and j.team_id = u.team_id and (j.files is null or j.files::text = '[]')`

	emptyJobsOfUser = `
update healthlab.parsing_job j set user_id = null, revision = j.revision + 1, status = 'failed', due_at = j.created_at, corrected = false, doc = ''
from healthlab.users u where j.user_id = $1 and u.user_id = $1 and j.team_id = u.team_id`

	// lockJobsOfUser waits for changes of parsing jobs that are under way.
	lockJobsOfUser = `
select from healthlab.parsing_job where team_id = $1 and user_id = $2 order by job_id for no key update`
)

func (s *Store) queueJob(ctx context.Context, b *pgx.Batch, sql string, team healthlab.TeamID, id labreport.JobID, j *labreport.Job) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return s.scanJob(ctx, row, j) })
}

func noJob(err error) error { return db.MissingRow(err, "parsing job") }

// keepJob puts a job into the form in which it is kept, and returns the arguments of
// insertJob and updateJob.
func (s *Store) keepJob(ctx context.Context, j *labreport.Job) ([]any, error) {
	j.DueAt, j.CreatedAt = db.Instant(j.DueAt), db.Instant(j.CreatedAt)
	j.StartedAt, j.UpdatedAt = db.Instant(j.StartedAt), db.Instant(j.UpdatedAt)
	var files []byte
	if j.Files != nil {
		var err error
		if files, err = json.Marshal(j.Files); err != nil {
			return nil, fmt.Errorf("encode parsing job: %w", err)
		}
	}
	rest := *j
	rest.ID, rest.Team, rest.User, rest.Revision = labreport.JobID{}, healthlab.TeamID{}, healthlab.UserID{}, 0
	rest.Status, rest.DueAt, rest.CreatedAt, rest.Files = "", time.Time{}, time.Time{}, nil
	doc, err := json.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("encode parsing job: %w", err)
	}
	if db.Spoilt(doc) || db.Spoilt(files) {
		return nil, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	// The caller's next edit must not reach what is given back.
	var kept labreport.Job
	if err := json.Unmarshal(doc, &kept); err != nil {
		return nil, fmt.Errorf("encode parsing job: %w", err)
	}
	j.Draft, j.Review, j.Files = kept.Draft, kept.Review, slices.Clone(j.Files)
	if doc, err = s.db.Keys.Seal(ctx, personkey.Ref{Team: j.Team, User: j.User}, personkey.RowParsingJob(j.ID), doc); err != nil {
		return nil, err
	}
	return []any{
		j.Team.UUID, j.ID.UUID, db.Optional(j.User.UUID), j.Revision, string(j.Status), db.Nullable(j.DueAt), j.CreatedAt, files, j.Corrected(), doc,
	}, healthlab.CheckText(string(j.Status))
}

// scanJob reads a job. After [personkey.ErrErased], j has its id and when it was made.
func (s *Store) scanJob(ctx context.Context, row pgx.Row, j *labreport.Job) error {
	var kept labreport.Job
	var user *uuid.UUID
	var id, team uuid.UUID
	var revision int64
	var status string
	var due *time.Time
	var made time.Time
	var files, doc []byte
	if err := row.Scan(&team, &id, &user, &revision, &status, &due, &made, &files, &doc); err != nil {
		return err
	}
	j.ID.UUID, j.CreatedAt = id, made.UTC()
	ref := personkey.Ref{Team: healthlab.TeamID{UUID: team}}
	if user != nil {
		ref.User.UUID = *user
	}
	if len(doc) > 0 { // nothing is left once the user was erased
		if err := s.db.OpenDocument(ctx, ref, personkey.RowParsingJob(id), doc, &kept); err != nil {
			return fmt.Errorf("decode parsing job: %w", err)
		}
	}
	if files != nil {
		if err := json.Unmarshal(files, &kept.Files); err != nil {
			return fmt.Errorf("decode parsing job: %w", err)
		}
	}
	kept.ID.UUID, kept.Team.UUID, kept.Revision, kept.Status = id, team, revision, labreport.Status(status)
	kept.DueAt, kept.CreatedAt = db.TimeOrZero(due), made.UTC()
	if user != nil {
		kept.User.UUID = *user
	}
	*j = kept
	return nil
}

// scanJobs reads jobs, without those of persons whose key was deleted. It returns how many rows
// there are, and where the last of them stands in a list.
func (s *Store) scanJobs(ctx context.Context, rows pgx.Rows) (out []labreport.Job, n int, end labreport.ListPosition, err error) {
	out = []labreport.Job{}
	for rows.Next() {
		var j labreport.Job
		err := s.scanJob(ctx, rows, &j)
		if err != nil && !errors.Is(err, personkey.ErrErased) {
			return nil, 0, end, err
		}
		n, end = n+1, labreport.ListPosition{CreatedAt: j.CreatedAt, ID: j.ID}
		if err == nil {
			out = append(out, j)
		}
	}
	return out, n, end, rows.Err()
}
