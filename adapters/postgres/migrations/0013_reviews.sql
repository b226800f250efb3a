-- +goose Up
-- Results that match no order for certain, and the test runs of their queue.

create table healthlab.raw_result (
	team_id    uuid        not null,
	raw_id     uuid        not null,
	user_id    uuid,
	revision   bigint      not null,
	status     text        collate "C" not null,
	escalated  boolean     not null,
	decision   text        collate "C" not null,
	lab        text        collate "C" not null,
	name       text        collate "C" not null,
	birth_date text        collate "C" not null,
	created_at timestamptz not null,
	doc        json        not null,
	constraint raw_result_pkey primary key (team_id, raw_id),
	constraint raw_result_status check (status in ('pending_customer_review', 'pending_ops_review', 'resolved'))
);
comment on table healthlab.raw_result is
	'Results under review, and what was decided: each as a document, and beside it what lists filter by. Who changes one, and orders with it, holds the orders'' transaction first.';
comment on constraint raw_result_pkey on healthlab.raw_result is 'The id follows from the lab''s message, so that one that comes again is held once.';
comment on constraint raw_result_status on healthlab.raw_result is 'The statuses of a review.';
comment on column healthlab.raw_result.user_id is 'With whom it is erased; null if nobody is known.';
comment on column healthlab.raw_result.escalated is 'The team handed it to operations, and still sees it.';
comment on column healthlab.raw_result.name is 'The reported first and last name in lower case; empty if there is none.';
comment on column healthlab.raw_result.birth_date is 'The reported birth date as YYYY-MM-DD; empty if there is none.';
create index raw_result_created on healthlab.raw_result (team_id, created_at desc, raw_id);
create index raw_result_user on healthlab.raw_result (user_id) where user_id is not null;

create table healthlab.result_trial (
	team_id     uuid        not null,
	trial_id    uuid        not null,
	key_hash    bytea       not null,
	due_at      timestamptz,
	doc         json        not null,
	constraint result_trial_pkey primary key (team_id, trial_id),
	constraint result_trial_key unique (team_id, key_hash)
);
comment on table healthlab.result_trial is 'Test runs of the queue of results under review, in a sandbox.';
comment on constraint result_trial_pkey on healthlab.result_trial is 'Runs are spread by their team.';
comment on constraint result_trial_key on healthlab.result_trial is 'One key means one run of a team. The hash is the SHA-256 of the key.';
comment on column healthlab.result_trial.due_at is 'When it is to be worked on; moved to the end of the lease by whoever does. Null once it has ended. Not in the document.';
create index result_trial_due on healthlab.result_trial (due_at, trial_id) where due_at is not null;

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['raw_result', 'result_trial'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
