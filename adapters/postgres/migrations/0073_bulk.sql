-- +goose Up
-- Work on many connections at once.

create table healthlab.bulk_op (
	team_id      uuid        not null,
	op_id        uuid        not null,
	type         text        collate "C" not null,
	provider     text        collate "C" not null,
	status       text        collate "C" not null,
	total        integer     not null,
	started_at   timestamptz not null,
	ended_at     timestamptz,
	due_at       timestamptz,
	leased_until timestamptz,
	fence        bigint      not null,
	next         integer     not null,
	failed       integer     not null,
	constraint bulk_op_pkey primary key (team_id, op_id),
	constraint bulk_op_id unique (op_id),
	constraint bulk_op_status check (status in ('in_progress', 'success', 'failure', 'aborted'))
);
comment on table healthlab.bulk_op is 'Work on many connections, and how far it is. Whoever works on one has a lease.';
comment on constraint bulk_op_pkey on healthlab.bulk_op is 'Operations are a team''s.';
comment on constraint bulk_op_id on healthlab.bulk_op is 'The id of an operation is unique over all teams.';
comment on constraint bulk_op_status on healthlab.bulk_op is 'Only what is in progress is worked on.';
comment on column healthlab.bulk_op.next is 'The place of the first user who was not dealt with.';
comment on column healthlab.bulk_op.fence is 'Counts the claims, so that a process knows whether the operation is still its own.';
create index bulk_op_due on healthlab.bulk_op (due_at, op_id) where status = 'in_progress';
create index bulk_op_line on healthlab.bulk_op (team_id, provider, started_at, op_id) where status = 'in_progress';
create index bulk_op_list on healthlab.bulk_op (team_id, started_at desc, op_id desc);

create table healthlab.bulk_item (
	op_id   uuid    not null,
	n       integer not null,
	team_id uuid    not null,
	user_id uuid    not null,
	running boolean not null default false,
	constraint bulk_item_pkey primary key (team_id, op_id, n)
);
comment on table healthlab.bulk_item is 'The users of bulk operations.';
comment on constraint bulk_item_pkey on healthlab.bulk_item is 'In the order in which they are dealt with.';
comment on column healthlab.bulk_item.running is 'Dealt with, and not over.';
create index bulk_item_user on healthlab.bulk_item (user_id);
create index bulk_item_running on healthlab.bulk_item (team_id, op_id, n) where running;

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['bulk_op', 'bulk_item'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
