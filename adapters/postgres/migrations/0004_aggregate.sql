-- +goose Up
-- Continuous queries and the priorities of sources.

create table healthlab.continuous_query (
	team_id        uuid        not null,
	query_id       uuid        not null,
	slug           text        collate "C" not null,
	status         text        collate "C" not null,
	resources      text[]      collate "C" not null,
	gap            interval    not null,
	created_at     timestamptz not null,
	revision       bigint      not null,
	backfill_after uuid,
	doc            json        not null,
	constraint continuous_query_pkey primary key (team_id, query_id),
	constraint continuous_query_id unique (query_id),
	constraint continuous_query_status check (status in ('active', 'archived'))
);
comment on table healthlab.continuous_query is
	'Stored questions: each as a document, and beside it what every write of health data looks at to know whom it concerns.';
comment on constraint continuous_query_pkey on healthlab.continuous_query is 'Queries are spread by their team.';
comment on constraint continuous_query_id on healthlab.continuous_query is 'The id of a query is unique over all teams.';
comment on constraint continuous_query_status on healthlab.continuous_query is 'Only what is active is kept up to date.';
comment on column healthlab.continuous_query.resources is 'The slugs of the resources whose changes make a task.';
comment on column healthlab.continuous_query.gap is 'The least time between two starts for one user.';
comment on column healthlab.continuous_query.backfill_after is
	'Users up to this one were given a task when the query was made; null when all were.';
create unique index continuous_query_slug on healthlab.continuous_query (team_id, slug) where status = 'active';
create index continuous_query_list on healthlab.continuous_query (team_id, created_at desc, query_id desc);
create index continuous_query_backfill on healthlab.continuous_query (query_id) where backfill_after is not null and status = 'active';

create table healthlab.continuous_result (
	user_id    uuid        not null,
	query_id   uuid        not null,
	team_id    uuid        not null,
	written_at timestamptz not null,
	data       bytea       not null,
	constraint continuous_result_pkey primary key (user_id, query_id)
);
alter table healthlab.continuous_result alter column data set storage external;
comment on table healthlab.continuous_result is
	'The table of a query for a user, as a Parquet file, which is compressed or small already.';
comment on constraint continuous_result_pkey on healthlab.continuous_result is 'A query has one table for each user.';

create table healthlab.continuous_task (
	user_id      uuid        not null,
	query_id     uuid        not null,
	team_id      uuid        not null,
	gap          interval    not null,
	due_at       timestamptz,
	skipped_at   timestamptz,
	from_at      bigint,
	to_at        bigint,
	run          bigint      not null default 0,
	tries        integer     not null default 0,
	started_at   timestamptz,
	leased_until timestamptz,
	run_due      timestamptz,
	run_from     bigint,
	run_to       bigint,
	wake_at      timestamptz generated always as (COALESCE(leased_until, due_at)) stored,
	constraint continuous_task_pkey primary key (user_id, query_id),
	constraint continuous_task_range check ((from_at is null) = (to_at is null) and (due_at is null or from_at is not null)),
	constraint continuous_task_run check ((leased_until is null) = (run_from is null) and (run_from is null) = (run_to is null))
) with (fillfactor = 80);
comment on table healthlab.continuous_task is
	'One row for each query and user: the task that waits, the one that runs, and when the last one began. Who changes it in a write of data locks rows in the order of the key.';
comment on constraint continuous_task_pkey on healthlab.continuous_task is
	'A query and user have one task that waits and one that runs.';
comment on constraint continuous_task_range on healthlab.continuous_task is
	'What waits has a range; a range without a due time is left from a task that failed.';
comment on constraint continuous_task_run on healthlab.continuous_task is 'What is leased has a range, and nothing else has.';
comment on column healthlab.continuous_task.skipped_at is 'The last change that came while the task waited.';
comment on column healthlab.continuous_task.from_at is
	'Where data may have changed, in microseconds since 1970, both ends included.';
comment on column healthlab.continuous_task.run is
	'Counts the claims, so that a process knows whether the task is still its own.';
comment on column healthlab.continuous_task.wake_at is
	'When there is something to do: the next task does not begin before the lease of this one has ended.';
create index continuous_task_wake on healthlab.continuous_task (wake_at, user_id, query_id) where wake_at is not null;

create table healthlab.continuous_history (
	user_id      uuid        not null,
	query_id     uuid        not null,
	n            bigint      generated always as identity,
	team_id      uuid        not null,
	status       text        collate "C" not null,
	scheduled_at timestamptz not null,
	started_at   timestamptz,
	ended_at     timestamptz,
	details      text,
	constraint continuous_history_pkey primary key (user_id, query_id, n),
	constraint continuous_history_status check (status in ('started', 'completed', 'error', 'skipped'))
);
comment on table healthlab.continuous_history is 'What became of the tasks of a query and user; the last few of each.';
comment on constraint continuous_history_pkey on healthlab.continuous_history is 'In the order in which they began.';
comment on constraint continuous_history_status on healthlab.continuous_history is 'A task that waits is in continuous_task.';

create table healthlab.source_priority (
	team_id uuid not null,
	list    json not null,
	constraint source_priority_pkey primary key (team_id)
);
comment on table healthlab.source_priority is 'Teams'' preferences between providers. A transaction that changes them locks the row.';
comment on constraint source_priority_pkey on healthlab.source_priority is 'A team has one list.';
comment on column healthlab.source_priority.list is 'Sorted by data and provider.';

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'continuous_query', 'continuous_result', 'continuous_task', 'continuous_history', 'source_priority'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
