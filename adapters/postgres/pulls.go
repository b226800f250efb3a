package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// Pulls returns the store as a [pull.Store]. It shares its users with [Store.Users].
func (s *Store) Pulls() pull.Store { return pullStore{s} }

type pullStore struct{ s *Store }

const (
	claimConnections = `
with due as (
	select c.user_id, c.provider, c.due_at was from healthlab.connection c
	join healthlab.users u on u.user_id = c.user_id
	where c.due_at <= $1 and u.deleted_at is null
	order by c.due_at, c.user_id, c.provider limit $2 for update of c skip locked for no key update of u skip locked
), claimed as (
	update healthlab.connection c set due_at = $3 from due where c.user_id = due.user_id and c.provider = due.provider
	returning c.team_id, c.user_id, c.provider, due.was
)
select team_id, user_id, provider from claimed order by was, user_id, provider`

	setConnectionDue = `update healthlab.connection set due_at = $3 where user_id = $1 and provider = $2`

	taskColumns = `t.team_id, t.user_id, t.provider, t.resource, t.kind, t.turn, t.due_at, t.leased_until, t.fence, t.doc`

	// A task that is due joins the queue, in which only the turn counts.
	queueTasks = `
update healthlab.pull_task t set queued = true from (
	select user_id, provider, resource, kind from healthlab.pull_task
	where due_at <= $1 and not queued order by due_at limit 1000 for update skip locked
) d where t.user_id = d.user_id and t.provider = d.provider and t.resource = d.resource and t.kind = d.kind`

	claimTasks = `
with due as (
	select user_id, provider, resource, kind from healthlab.pull_task
	where queued and due_at <= $1 and (leased_until is null or leased_until <= healthlab.clock())
		and provider || coalesce(' ' || team_id || ' ' || client, '') <> all ($4)
	order by turn, due_at, user_id, provider, resource, kind limit $2 for update skip locked
), claimed as (
	update healthlab.pull_task t set leased_until = healthlab.clock() + $3::interval, fence = t.fence + 1 from due d
	where t.user_id = d.user_id and t.provider = d.provider and t.resource = d.resource and t.kind = d.kind
	returning t.*
)
select ` + taskColumns + ` from claimed t order by t.turn, t.due_at, t.user_id, t.provider, t.resource, t.kind`

	selectTasks = `
select ` + taskColumns + ` from healthlab.pull_task t join healthlab.users u on u.user_id = t.user_id
where t.team_id = $1 and t.user_id = $2 and u.deleted_at is null order by t.user_id, t.provider, t.resource, t.kind`

	lockTask = `
select ` + taskColumns + ` from healthlab.pull_task t join healthlab.users u on u.user_id = t.user_id
where t.team_id = $1 and t.user_id = $2 and t.provider = $3 and t.resource = $4 and t.kind = $5 and u.deleted_at is null
for update of t`

	deleteTasks = `
delete from healthlab.pull_task where user_id = $1 and provider = $2
	and (resource, kind) not in (select * from unnest($3::text[], $4::text[]))`

	// A task that stays keeps its row: a transaction that waits for the row's lock finds it there.
	putTask = `
insert into healthlab.pull_task (team_id, user_id, provider, resource, kind, turn, due_at, leased_until, fence, doc, client)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (user_id, provider, resource, kind) do update set turn = excluded.turn, due_at = excluded.due_at,
	leased_until = excluded.leased_until, fence = excluded.fence, doc = excluded.doc, client = excluded.client, queued = false`

	updateTask = `
update healthlab.pull_task set turn = $6, due_at = $7, leased_until = $8, fence = $9, doc = $10, client = $11, queued = false
where team_id = $1 and user_id = $2 and provider = $3 and resource = $4 and kind = $5`

	insertNotice = `
insert into healthlab.pull_notice (team_id, provider, id, came_at) values ('00000000-0000-0000-0000-000000000000', $1, $2, $3)
on conflict do nothing returning true`

	forgetNotices = `
delete from healthlab.pull_notice n using (
	select team_id, provider, id from healthlab.pull_notice where came_at < $1 order by came_at limit $2 for update skip locked
) old where n.team_id = old.team_id and n.provider = old.provider and n.id = old.id`

	lockAnnounced = `
select ` + taskColumns + ` from healthlab.connection c
join healthlab.users u on u.user_id = c.user_id
join healthlab.pull_task t on t.user_id = c.user_id and t.provider = c.provider
where c.provider = $1 and md5(c.external_user_id) = md5($2) and c.external_user_id = $2 and c.status = 'connected' and u.deleted_at is null
	and t.kind = 'news' and t.due_at is not null and (cardinality($3::text[]) = 0 or t.resource = any($3))
	and ($4::uuid is null or c.team_id = $4 and c.client = $5)
order by t.user_id, t.provider, t.resource, t.kind for update of t`

	selectPeople = `
select u.user_id from healthlab.users u
where u.team_id = $1 and u.deleted_at is null and u.user_id > $2 and ($3::uuid is null or u.user_id = $3) and exists (
	select from healthlab.connection c where c.user_id = u.user_id and c.status <> 'deregistered' and ($4 = '' or c.provider = $4))
order by u.user_id limit $5`

	selectTheirProviders = `
select c.user_id, c.provider from healthlab.connection c
where c.team_id = $1 and c.user_id = any($2) and c.status <> 'deregistered' and ($3 = '' or c.provider = $3) order by c.user_id, c.provider`

	selectTheirTasks = `
select ` + taskColumns + ` from healthlab.pull_task t where t.team_id = $1 and t.user_id = any($2) and ($3 = '' or t.provider = $3)
order by t.user_id, t.provider, t.resource, t.kind`

	selectTheirRefused = `
select p.user_id, r.id, r.provider, r.resource, r.seen_at, r.count, r.reasons
from unnest($2::uuid[]) p (user_id), lateral (
	select * from healthlab.pull_refused r where r.team_id = $1 and r.user_id = p.user_id and exists (
		select from healthlab.connection c
		where c.user_id = r.user_id and c.provider = r.provider and c.status <> 'deregistered' and ($3 = '' or c.provider = $3))
	order by r.seen_at desc, r.id limit $4) r
order by p.user_id, r.seen_at desc, r.id`

	// An erasure of a user waits for the transactions that count for it.
	shareLiveUser = `
select 1 from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null for key share`

	insertBudget = `
insert into healthlab.pull_budget (team_id, user_id, provider, name, doc) values ($1, $2, $3, $4, '{}') on conflict do nothing`
	lockBudget   = `select doc from healthlab.pull_budget where team_id = $1 and user_id = $2 and provider = $3 and name = $4 for update`
	updateBudget = `update healthlab.pull_budget set doc = $5 where team_id = $1 and user_id = $2 and provider = $3 and name = $4`

	putRefused = `
insert into healthlab.pull_refused (user_id, id, team_id, provider, resource, seen_at, count, reasons)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (user_id, id) do update set seen_at = excluded.seen_at, count = pull_refused.count + excluded.count`

	dropRefused = `
delete from healthlab.pull_refused r using (
	select id from healthlab.pull_refused where user_id = $1 order by seen_at desc, id offset $2
) old where r.user_id = $1 and r.id = old.id`

	selectRefused = `
select r.id, r.provider, r.resource, r.seen_at, r.count, r.reasons
from healthlab.pull_refused r join healthlab.users u on u.user_id = r.user_id
where r.team_id = $1 and r.user_id = $2 and u.deleted_at is null order by r.seen_at desc, r.id limit $3`
)

func (v pullStore) ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]pull.Ref, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []pull.Ref
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out = nil
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimConnections, db.Instant(now), n, db.Instant(until)).Query(func(rows pgx.Rows) error {
				var r pull.Ref
				_, err := pgx.ForEachRow(rows, []any{&r.Team.UUID, &r.User.UUID, &r.Provider}, func() error {
					out = append(out, r)
					return nil
				})
				return err
			})
		})
	})
	return out, err
}

// scanTasks reads rows of taskColumns.
func scanTasks(out *[]pull.Task) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			t, err := scanTask(rows)
			if err != nil {
				return err
			}
			*out = append(*out, t)
		}
		return rows.Err()
	}
}

func scanTask(row pgx.Row) (pull.Task, error) {
	var k pull.Key
	var turn, fence int64
	var due, leased *time.Time
	var doc []byte
	if err := row.Scan(&k.Team.UUID, &k.User.UUID, &k.Provider, &k.Resource, &k.Kind, &turn, &due, &leased, &fence, &doc); err != nil {
		return pull.Task{}, err
	}
	var t pull.Task
	if err := json.Unmarshal(doc, &t); err != nil {
		return pull.Task{}, fmt.Errorf("decode task: %w", err)
	}
	t.Key, t.Turn, t.Fence, t.Due, t.Lease = k, turn, fence, db.TimeOrZero(due), db.TimeOrZero(leased)
	return t, nil
}

// keepTask returns a task in the form in which it is kept, and its row.
func keepTask(t pull.Task) (pull.Task, []any, error) {
	t.Days = slices.Clone(t.Days)
	if len(t.Days) == 0 {
		t.Days = nil
	}
	for _, at := range []*time.Time{
		&t.Linked, &t.From, &t.To, &t.Until, &t.Due, &t.Lease, &t.Seen, &t.Swept, &t.Floor, &t.Announced, &t.Reach,
		&t.ScheduledAt, &t.StartedAt, &t.EndedAt, &t.LastTry, &t.Oldest, &t.Newest,
	} {
		*at = db.Instant(*at)
	}
	doc := t
	doc.Key, doc.Turn, doc.Fence, doc.Due, doc.Lease = pull.Key{}, 0, 0, time.Time{}, time.Time{}
	text, err := json.Marshal(doc)
	if err == nil {
		err = healthlab.CheckText(t.Client, t.Provider, t.Resource, string(t.Kind), string(t.Status), t.Cursor, string(t.Error))
	}
	return t, []any{
		t.Team.UUID, t.User.UUID, t.Provider, t.Resource, string(t.Kind), t.Turn, db.Nullable(t.Due), db.Nullable(t.Lease), t.Fence, text, db.NullText(t.Client),
	}, err
}

func noPull(err error) error { return db.MissingRow(err, "no such connection or task") }

func (v pullStore) Plan(ctx context.Context, ref pull.Ref, change func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error)) error {
	if err := healthlab.CheckText(ref.Provider); err != nil {
		return err
	}
	err := v.s.db.Do(ctx, ref.Team, db.Writing, func(u *db.Tx) error {
		person, err := v.s.users.Lock(ctx, u, ref.Team, ref.User)
		if err != nil {
			return err
		}
		if c := person.Connection(ref.Provider); !person.Live() || c == nil {
			return pgx.ErrNoRows
		}
		var all []pull.Task
		b := u.Batch()
		b.Queue(selectTasks+` for update of t`, ref.Team.UUID, ref.User.UUID).Query(scanTasks(&all))
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		old := slices.DeleteFunc(all, func(t pull.Task) bool { return t.Ref != ref })
		planned, err := change(*person.Connection(ref.Provider), person, old)
		if err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		resources, kinds := []string{}, []string{}
		for _, t := range planned.Tasks {
			resources, kinds = append(resources, t.Resource), append(kinds, string(t.Kind))
		}
		b.Queue(deleteTasks, ref.User.UUID, ref.Provider, resources, kinds)
		seen := map[pull.Key]bool{}
		for _, t := range planned.Tasks {
			t, row, err := keepTask(t)
			if err == nil && (t.Ref != ref || seen[t.Key]) {
				err = fmt.Errorf("%w: a plan has tasks of its connection, each once", healthlab.Invalid)
			}
			if err != nil {
				return db.Answer(err)
			}
			seen[t.Key] = true
			b.Queue(putTask, row...)
		}
		b.Queue(setConnectionDue, ref.User.UUID, ref.Provider, db.Nullable(db.Instant(planned.Due)))
		if err := v.s.messages.Emit(ctx, u, b, planned.Events, outbox.Names{{Team: ref.Team, User: ref.User}: person.ClientUserID}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	return noPull(err)
}

func (v pullStore) Claim(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	without := q.Without
	if without == nil {
		without = []string{}
	}
	var out []pull.Task
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out = nil
		b := u.Batch()
		b.Queue(queueTasks, db.Instant(q.Now))
		b.Queue(claimTasks, db.Instant(q.Now), q.N, q.Lease, without).Query(scanTasks(&out))
		return u.Commit(ctx, b)
	})
	return out, err
}

func (v pullStore) Update(ctx context.Context, key pull.Key, change func(*pull.Task) ([]healthlab.Event, error)) (pull.Task, error) {
	if err := healthlab.CheckText(key.Provider, key.Resource, string(key.Kind)); err != nil {
		return pull.Task{}, err
	}
	var next pull.Task
	err := v.s.db.Do(ctx, key.Team, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		b.Queue(lockTask, key.Team.UUID, key.User.UUID, key.Provider, key.Resource, string(key.Kind)).QueryRow(func(row pgx.Row) (err error) {
			next, err = scanTask(row)
			return err
		})
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		events, err := change(&next)
		if err != nil {
			return db.Answer(err)
		}
		next.Key = key
		var row []any
		if next, row, err = keepTask(next); err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		b.Queue(updateTask, row...)
		if err := v.s.messages.Emit(ctx, u, b, events, outbox.Names{}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return pull.Task{}, noPull(err)
	}
	return next, nil
}

func (v pullStore) Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]pull.Task, error) {
	var out []pull.Task
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		out = nil
		b.Queue(selectTasks, team.UUID, user.UUID).Query(scanTasks(&out))
	})
	return out, err
}

func (v pullStore) Notify(ctx context.Context, n pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
	if err := healthlab.CheckText(append([]string{n.Provider, n.ExternalUserID, n.Client}, n.Resources...)...); err != nil {
		return 0, err
	}
	resources := n.Resources
	if resources == nil {
		resources = []string{}
	}
	var only *uuid.UUID
	if !n.Team.IsZero() {
		only = &n.Team.UUID
	}
	var tasks []pull.Task
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		tasks = nil
		fresh := false
		b := u.Batch()
		b.Queue(insertNotice, n.Provider, n.ID[:], db.Instant(n.At)).Query(func(rows pgx.Rows) error {
			fresh = rows.Next()
			rows.Close()
			return rows.Err()
		})
		b.Queue(lockAnnounced, n.Provider, n.ExternalUserID, resources, only, n.Client).Query(scanTasks(&tasks))
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if !fresh {
			tasks = nil
			return u.Commit(ctx, u.Batch())
		}
		b = u.Batch()
		for i := range tasks {
			key := tasks[i].Key
			change(&tasks[i])
			tasks[i].Key = key
			_, row, err := keepTask(tasks[i])
			if err != nil {
				return db.Answer(err)
			}
			b.Queue(updateTask, row...)
		}
		b.Queue(forgetNotices, db.Instant(forget), forgetMost)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return 0, err
	}
	return len(tasks), nil
}

func (v pullStore) UserStatuses(ctx context.Context, q pull.UserStatusQuery) ([]pull.UserStatus, error) {
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	if err := healthlab.CheckText(q.Provider); err != nil {
		return nil, err
	}
	var only *uuid.UUID
	if !q.User.IsZero() {
		only = &q.User.UUID
	}
	var out []pull.UserStatus
	var ids []uuid.UUID
	if err := v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		b.Queue(selectPeople, q.Team.UUID, q.After.UUID, only, q.Provider, q.N).Query(func(rows pgx.Rows) (err error) {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
	}); err != nil || len(ids) == 0 {
		return nil, err
	}
	err := v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		out = make([]pull.UserStatus, len(ids))
		at := map[uuid.UUID]*pull.UserStatus{}
		for i, id := range ids {
			out[i].User.UUID = id
			at[id] = &out[i]
		}
		b.Queue(selectTheirProviders, q.Team.UUID, ids, q.Provider).Query(func(rows pgx.Rows) error {
			var id uuid.UUID
			var provider string
			_, err := pgx.ForEachRow(rows, []any{&id, &provider}, func() error {
				at[id].Providers = append(at[id].Providers, provider)
				return nil
			})
			return err
		})
		b.Queue(selectTheirTasks, q.Team.UUID, ids, q.Provider).Query(func(rows pgx.Rows) error {
			var tasks []pull.Task
			if err := scanTasks(&tasks)(rows); err != nil {
				return err
			}
			for _, t := range tasks {
				if p := at[t.User.UUID]; slices.Contains(p.Providers, t.Provider) {
					p.Tasks = append(p.Tasks, t)
				}
			}
			return nil
		})
		b.Queue(selectTheirRefused, q.Team.UUID, ids, q.Provider, pull.MaxRefusedPerStatus).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id uuid.UUID
				r, err := scanRefused(rows, &id)
				if err != nil {
					return err
				}
				at[id].Refused = append(at[id].Refused, r)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	// Who went away between the two reads has nothing.
	return slices.DeleteFunc(out, func(p pull.UserStatus) bool { return len(p.Providers) == 0 }), nil
}

// scanRefused reads a row of a refusal, after what comes first in it.
func scanRefused(row pgx.Row, first ...any) (pull.RefusedItem, error) {
	var r pull.RefusedItem
	var at time.Time
	var reasons []byte
	if err := row.Scan(append(first, &r.ID, &r.Provider, &r.Resource, &at, &r.Count, &reasons)...); err != nil {
		return r, err
	}
	r.At = healthlab.At(at)
	return r, json.Unmarshal(reasons, &r.Reasons)
}

func (v pullStore) UpdateBudgets(ctx context.Context, keys []pull.BudgetKey, change func([]pull.Budget) error) error {
	team := db.AllTeams // what holds for all users has no team
	users := map[userKey]bool{}
	for i, k := range keys {
		if err := healthlab.CheckText(k.Provider, k.Name); err != nil {
			return err
		}
		if slices.Contains(keys[:i], k) {
			return fmt.Errorf("%w: a budget is named once", healthlab.Invalid)
		}
		if !k.User.IsZero() {
			users[userKey{k.Team, k.User}] = true
		}
	}
	order := make([]int, len(keys)) // all writers lock in this order
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := keys[a], keys[b]
		return cmp.Or(slices.Compare(x.Team.UUID[:], y.Team.UUID[:]), slices.Compare(x.User.UUID[:], y.User.UUID[:]),
			cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Name, y.Name))
	})
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		list := make([]pull.Budget, len(keys))
		b := u.Batch()
		for who := range users {
			b.Queue(shareLiveUser, who.team.UUID, who.user.UUID).QueryRow(func(row pgx.Row) error {
				var any int
				return row.Scan(&any)
			})
		}
		for _, i := range order {
			k := keys[i]
			b.Queue(insertBudget, k.Team.UUID, k.User.UUID, k.Provider, k.Name)
			b.Queue(lockBudget, k.Team.UUID, k.User.UUID, k.Provider, k.Name).QueryRow(func(row pgx.Row) error {
				var doc []byte
				if err := row.Scan(&doc); err != nil {
					return err
				}
				return json.Unmarshal(doc, &list[i])
			})
		}
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if err := change(list); err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		for _, i := range order {
			k := keys[i]
			doc, err := json.Marshal(keepBudget(list[i]))
			if err != nil {
				return err
			}
			b.Queue(updateBudget, k.Team.UUID, k.User.UUID, k.Provider, k.Name, doc)
		}
		return u.Commit(ctx, b)
	})
	return userstore.NoUser(err)
}

func keepBudget(b pull.Budget) pull.Budget {
	b.Next, b.Blocked, b.PaceEnd = db.Instant(b.Next), db.Instant(b.Blocked), db.Instant(b.PaceEnd)
	b.Recent = slices.Clone(b.Recent)
	for i := range b.Recent {
		b.Recent[i] = db.Instant(b.Recent[i])
	}
	if len(b.Recent) == 0 {
		b.Recent = nil
	}
	return b
}

func (v pullStore) Quarantine(ctx context.Context, ref pull.Ref, refused []pull.RefusedItem) error {
	rows := make([][]any, 0, len(refused))
	for _, r := range refused {
		reasons, err := json.Marshal(r.Reasons)
		if err != nil {
			return fmt.Errorf("encode reasons: %w", err)
		}
		text := []string{ref.Provider, r.Resource}
		for _, why := range r.Reasons {
			text = append(text, why.Field, why.Code, why.Message)
		}
		if err := healthlab.CheckText(text...); err != nil {
			return err
		}
		rows = append(rows, []any{ref.User.UUID, r.ID, ref.Team.UUID, ref.Provider, r.Resource, db.Instant(r.At.Time), r.Count, reasons})
	}
	slices.SortFunc(rows, func(a, b []any) int { return db.CompareIDs(a[1].(uuid.UUID), b[1].(uuid.UUID)) })
	err := v.s.db.Do(ctx, ref.Team, db.Writing, func(u *db.Tx) error {
		person, err := v.s.users.Lock(ctx, u, ref.Team, ref.User)
		if err == nil && !person.Live() {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return err
		}
		b := u.Batch()
		for _, row := range rows {
			b.Queue(putRefused, row...)
		}
		b.Queue(dropRefused, ref.User.UUID, pull.MaxRefusedPerUser)
		return u.Commit(ctx, b)
	})
	return userstore.NoUser(err)
}

func (v pullStore) Quarantined(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, n int) ([]pull.RefusedItem, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []pull.RefusedItem
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		out = nil
		b.Queue(selectRefused, team.UUID, user.UUID, n).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				r, err := scanRefused(rows)
				if err != nil {
					return err
				}
				out = append(out, r)
			}
			return rows.Err()
		})
	})
	return out, err
}
