package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/personkey"
)

// ContinuousWork returns the store as a [continuous.Work].
func (s *Store) ContinuousWork() continuous.Work { return continuousWork{s} }

type continuousWork struct{ s *Store }

const (
	continuousTaskColumns = `healthlab.continuous_task as t (user_id, query_id, team_id, gap, from_at, to_at, due_at)`

	// A task that waits becomes wider; otherwise one waits until the gap has passed.
	onTask = `
on conflict (user_id, query_id) do update
set gap = excluded.gap, from_at = least(t.from_at, excluded.from_at), to_at = greatest(t.to_at, excluded.to_at),
	skipped_at = case when t.due_at is not null then healthlab.clock() end,
	due_at = coalesce(t.due_at, greatest(healthlab.clock(), t.started_at + excluded.gap))`

	// Rows are locked in the order of their key, so that two writers cannot wait for
	// each other.
	touchTasks = `
insert into ` + continuousTaskColumns + `
select x.user_id, q.query_id, x.team_id, q.gap, min(x.from_at), max(x.to_at), healthlab.clock()
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[]) as x (team_id, user_id, resource, from_at, to_at)
join healthlab.continuous_query q on q.team_id = x.team_id and q.status = 'active' and x.resource = any (q.resources)
group by x.user_id, x.team_id, q.query_id, q.gap
order by x.user_id, q.query_id` + onTask

	lockBackfill = `
select team_id, query_id, backfill_after, resources from healthlab.continuous_query
where backfill_after is not null and status = 'active' order by query_id limit 1 for no key update skip locked`

	selectForBackfill = `
select user_id from healthlab.users where team_id = $1 and deleted_at is null and user_id > $2 order by user_id limit $3`

	// Who writes for these users, or erases one, is waited for.
	lockForBackfill = `select from healthlab.users where user_id = any ($1) order by user_id for share`

	backfillTasks = `
insert into ` + continuousTaskColumns + `
select u.user_id, q.query_id, u.team_id, q.gap, $4, $5, healthlab.clock()
from healthlab.users u join healthlab.continuous_query q on q.team_id = u.team_id and q.query_id = $2
where u.team_id = $1 and u.user_id = any ($3) and u.deleted_at is null
order by u.user_id` + onTask

	moveBackfill = `update healthlab.continuous_query set backfill_after = $3 where team_id = $1 and query_id = $2`

	// What others hold is passed over. A task whose lease has ended goes on with what
	// it had; another one takes what waits.
	claimContinuousTasks = `
with due as materialized (
	select user_id, query_id, wake_at, leased_until is not null as again, skipped_at from healthlab.continuous_task
	where wake_at <= healthlab.clock() order by wake_at, user_id, query_id limit $1 for no key update skip locked
), moved as (
	update healthlab.continuous_task t
	set run = t.run + 1, tries = case when d.again then t.tries + 1 else 1 end, started_at = healthlab.clock(), leased_until = healthlab.clock() + $2::interval,
		run_due = case when d.again then t.run_due else t.due_at end,
		run_from = case when d.again then t.run_from else t.from_at end, run_to = case when d.again then t.run_to else t.to_at end,
		due_at = case when d.again then t.due_at end, skipped_at = case when d.again then t.skipped_at end,
		from_at = case when d.again then t.from_at end, to_at = case when d.again then t.to_at end
	from due d where t.user_id = d.user_id and t.query_id = d.query_id
	returning t.team_id, t.user_id, t.query_id, t.run_from, t.run_to, t.run_due, t.started_at, t.tries, t.run, d.wake_at, d.again, d.skipped_at
), told as (
	insert into healthlab.continuous_history (user_id, query_id, team_id, status, scheduled_at, started_at, ended_at)
	select x.user_id, x.query_id, x.team_id, x.status, x.scheduled_at, x.started_at, x.ended_at from (
		select user_id, query_id, team_id, 'skipped' as status, skipped_at as scheduled_at, null::timestamptz as started_at, skipped_at as ended_at, 1 as k
		from moved where skipped_at is not null and not again
		union all select user_id, query_id, team_id, 'started', run_due, started_at, null, 2 from moved where not again
	) x order by x.k
)
select team_id, user_id, query_id, run_from, run_to, run_due, started_at, tries, run from moved order by wake_at, user_id, query_id`

	finishTask = `
with t as (
	update healthlab.continuous_task t
	set leased_until = null, run_due = null, run_from = null, run_to = null,
		from_at = case when $5 = 'error' then least(t.from_at, t.run_from) else t.from_at end,
		to_at = case when $5 = 'error' then greatest(t.to_at, t.run_to) else t.to_at end
	where t.user_id = $2 and t.query_id = $3 and t.team_id = $1 and t.run = $4 and t.leased_until is not null
	returning t.user_id, t.query_id
), h as (
	update healthlab.continuous_history h set status = $5, ended_at = healthlab.clock(), details = $6
	from t where h.user_id = t.user_id and h.query_id = t.query_id and h.status = 'started'
)
select count(*) from t`

	putResult = `
insert into healthlab.continuous_result (user_id, query_id, team_id, written_at, data) values ($2, $3, $1, now(), $4)
on conflict (user_id, query_id) do update set written_at = excluded.written_at, data = excluded.data`

	trimHistory = `
delete from healthlab.continuous_history h where h.user_id = $2 and h.query_id = $3 and h.team_id = $1 and h.n < (
	select k.n from healthlab.continuous_history k where k.user_id = $2 and k.query_id = $3 order by k.n desc offset $4 limit 1)`
)

// touched is where a transaction changed data, as columns.
type touched struct {
	teams, users []uuid.UUID
	resources    []string
	from, to     []int64
}

func (t *touched) add(k userKey, resource string, from, to int64) {
	t.teams, t.users, t.resources = append(t.teams, k.team.UUID), append(t.users, k.user.UUID), append(t.resources, resource)
	t.from, t.to = append(t.from, from), append(t.to, to)
}

// addSamples adds those samples of a batch that are new or changed.
func (t *touched) addSamples(k userKey, b *healthdata.SampleBatch, o *series.Outcome) {
	if o.Idle() {
		return
	}
	first, last := 0, len(o.States)-1
	for o.States[first] == series.Same {
		first++
	}
	for o.States[last] == series.Same {
		last--
	}
	t.add(k, b.Key.Resource, b.Samples.Time[first], b.Samples.Time[last])
}

// queue adds to a batch what schedules the queries that depend on it.
func (t *touched) queue(b *pgx.Batch) {
	if len(t.users) > 0 {
		b.Queue(touchTasks, t.teams, t.users, t.resources, t.from, t.to)
	}
}

func (v continuousWork) Backfill(ctx context.Context, n int) (int, error) {
	if n <= 0 {
		return 0, ctx.Err()
	}
	done := 0
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		for done = 0; ; {
			var team, query, after uuid.UUID
			var resources []string
			found := false
			b := u.Batch()
			b.Queue(lockBackfill).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					found = true
					if err := rows.Scan(&team, &query, &after, &resources); err != nil {
						return err
					}
				}
				return rows.Err()
			})
			if err := u.Send(ctx, b); err != nil {
				return err
			}
			if !found {
				return u.Commit(ctx, u.Batch())
			}
			b = u.Batch()
			var users []uuid.UUID
			b.Queue(selectForBackfill, team, after, n).Query(func(rows pgx.Rows) (err error) {
				users, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				return err
			})
			if err := u.Send(ctx, b); err != nil {
				return err
			}
			b = u.Batch()
			var tag pgconn.CommandTag
			if len(users) > 0 {
				// These tasks are about what open writes do not schedule, since they did not see
				// the query. As in merges, series come before users; what
				// was added until a user was locked comes last.
				recallAll.queue(b, users, resources)
				b.Queue(lockForBackfill, users)
				recallAdded.queue(b, users, resources)
				db.KeepTag(b.Queue(backfillTasks, team, query, users, aggregate.Always.From, aggregate.Always.To), &tag)
			}
			if len(users) == n {
				b.Queue(moveBackfill, team, query, users[n-1])
			} else {
				b.Queue(moveBackfill, team, query, nil) // these were the last
			}
			if err := u.Send(ctx, b); err != nil {
				return err
			}
			if done = int(tag.RowsAffected()); done > 0 {
				return u.Commit(ctx, u.Batch())
			}
		}
	})
	if err != nil {
		return 0, err
	}
	return done, nil
}

func (v continuousWork) Claim(ctx context.Context, n int, lease time.Duration) ([]continuous.Task, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []continuous.Task
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out = nil
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimContinuousTasks, n, lease).Query(func(rows pgx.Rows) error {
				var t continuous.Task
				_, err := pgx.ForEachRow(rows, []any{
					&t.Team.UUID, &t.User.UUID, &t.Query.UUID, &t.Range.From, &t.Range.To, &t.ScheduledAt, &t.StartedAt, &t.Try, &t.Run,
				}, func() error {
					t.ScheduledAt, t.StartedAt = t.ScheduledAt.UTC(), t.StartedAt.UTC()
					out = append(out, t)
					return nil
				})
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v continuousWork) Finish(ctx context.Context, t continuous.Task, o continuous.Outcome) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := healthlab.CheckText(o.Details); err != nil {
		return err
	}
	var details *string
	if o.Details != "" {
		details = &o.Details
	}
	table := o.Table
	if table != nil {
		var err error
		if table, err = v.s.db.Keys.Seal(ctx, personkey.Ref{Team: t.Team, User: t.User}, personkey.RowResultTable(t.Query), table); err != nil {
			return err
		}
	}
	return v.s.db.Do(ctx, t.Team, db.Writing, func(u *db.Tx) error {
		held := 0
		b := u.Batch()
		b.Queue(finishTask, t.Team.UUID, t.User.UUID, t.Query.UUID, t.Run, string(o.Status), details).QueryRow(func(row pgx.Row) error {
			return row.Scan(&held)
		})
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if held == 0 {
			return fmt.Errorf("%w: another process has the task", healthlab.Precondition)
		}
		b = u.Batch()
		if table != nil {
			b.Queue(putResult, t.Team.UUID, t.User.UUID, t.Query.UUID, table)
		}
		b.Queue(trimHistory, t.Team.UUID, t.User.UUID, t.Query.UUID, continuous.HistoryKept-1)
		if err := v.s.messages.Emit(ctx, u, b, o.Events, outbox.Names{}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
}

// parseNumber reads a cursor that is a number: only what is below it comes.
func parseNumber(cursor string) (int64, error) {
	if cursor == "" {
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, db.BadCursor()
	}
	return n, nil
}

// numberCursor is the cursor behind the first entries of a page.
func numberCursor(numbers []int64, size int) string {
	if n := numbers[size-1]; n > 0 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(numbers[size]+1, 10) // behind the one that waits
}
