-- +goose Up
-- Jobs that parse lab reports.

create table healthlab.parsing_job (
	team_id    uuid        not null,
	job_id     uuid        not null,
	user_id    uuid,
	revision   bigint      not null,
	status     text        collate "C" not null,
	due_at     timestamptz,
	created_at timestamptz not null,
	files      json,
	corrected  boolean     not null default false,
	doc        bytea       not null,
	constraint parsing_job_pkey primary key (team_id, job_id)
);
comment on table healthlab.parsing_job is
	'Lab reports on their way: each job as a document, and beside it what lists and claims look at.';
comment on constraint parsing_job_pkey on healthlab.parsing_job is 'Jobs are spread by their team.';
comment on column healthlab.parsing_job.user_id is
	'Whose report it is; null once the user was erased and the files are still to be deleted.';
comment on column healthlab.parsing_job.due_at is
	'When background work goes on; a claim moves it to the end of its lease. Not in the document.';
comment on column healthlab.parsing_job.files is 'The names of the files; null if there are none. Not in the document.';
comment on column healthlab.parsing_job.corrected is 'Whether the review has corrections.';
create index parsing_job_corrected on healthlab.parsing_job (team_id, created_at, job_id) where corrected;
create index parsing_job_created on healthlab.parsing_job (team_id, created_at, job_id);
create index parsing_job_quota on healthlab.parsing_job (team_id) where status <> 'failed';
create index parsing_job_user on healthlab.parsing_job (user_id) where user_id is not null;
create index parsing_job_due on healthlab.parsing_job (due_at, job_id) where due_at is not null;

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'parsing_job'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
