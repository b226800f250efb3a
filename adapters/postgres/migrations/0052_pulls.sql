-- +goose Up
-- What is to be fetched of people's connections, within which limits, and what of it was
-- refused.

create table healthlab.pull_task (
	user_id      uuid    not null,
	provider     text    collate "C" not null,
	resource     text    collate "C" not null,
	kind         text    collate "C" not null,
	team_id      uuid    not null,
	turn         bigint  not null,
	due_at       timestamptz,
	leased_until timestamptz,
	fence        bigint  not null,
	queued       boolean not null default false,
	doc          json    not null,
	constraint pull_task_pkey primary key (user_id, provider, resource, kind)
);
comment on table healthlab.pull_task is 'What is to be fetched of each resource of a connection, and how far that is.';
comment on constraint pull_task_pkey on healthlab.pull_task is 'A resource has one history and one task for news.';
comment on column healthlab.pull_task.turn is 'Tasks that are due go by it, the lowest first.';
comment on column healthlab.pull_task.due_at is 'When it is to go on; null if it is not to.';
comment on column healthlab.pull_task.fence is 'How often it was claimed.';
comment on column healthlab.pull_task.queued is 'It was seen to be due: whoever claims looks at these alone.';
comment on column healthlab.pull_task.doc is 'The task but for what has a column.';
create index pull_task_due on healthlab.pull_task (due_at) where due_at is not null and not queued;
create index pull_task_queue on healthlab.pull_task (turn, due_at, user_id, provider, resource, kind) where queued;

create table healthlab.pull_budget (
	team_id  uuid not null,
	user_id  uuid not null,
	provider text collate "C" not null,
	name     text collate "C" not null,
	doc      json not null,
	constraint pull_budget_pkey primary key (team_id, user_id, provider, name)
);
comment on table healthlab.pull_budget is
	'What is left of limits on requests. Those of a provider for all users together have no team and no user: only work over all teams sees them.';
comment on constraint pull_budget_pkey on healthlab.pull_budget is 'A limit is counted once.';
create index pull_budget_user on healthlab.pull_budget (user_id);

create table healthlab.pull_refused (
	user_id  uuid        not null,
	id       uuid        not null,
	team_id  uuid        not null,
	provider text        collate "C" not null,
	resource text        collate "C" not null,
	seen_at  timestamptz not null,
	count    bigint      not null,
	reasons  json        not null,
	constraint pull_refused_pkey primary key (user_id, id)
);
comment on table healthlab.pull_refused is 'What providers sent and was not kept: why, and nothing of what it was.';
comment on constraint pull_refused_pkey on healthlab.pull_refused is 'The same thing is the same refusal.';
create index pull_refused_seen on healthlab.pull_refused (user_id, seen_at desc, id);

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['pull_task', 'pull_budget', 'pull_refused'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
