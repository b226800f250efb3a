-- +goose Up
-- Exports of everything that is kept about a person.

create table healthlab.person_export (
	team_id      uuid        not null,
	job_id       uuid        not null,
	user_id      uuid,
	revision     bigint      not null,
	status       text        collate "C" not null,
	files        json,
	next         int         not null,
	tries        int         not null,
	created_at   timestamptz not null,
	updated_at   timestamptz not null,
	completed_at timestamptz,
	expires_at   timestamptz,
	due_at       timestamptz not null,
	constraint person_export_pkey primary key (team_id, job_id)
);
comment on table healthlab.person_export is 'Exports of everything that is kept about a person: how far each is.';
comment on constraint person_export_pkey on healthlab.person_export is 'Jobs are spread by their team.';
comment on column healthlab.person_export.user_id is
	'Whose data is exported; null once the user was erased and the files are still to be deleted.';
comment on column healthlab.person_export.files is 'The planned files; null before the plan. The first next of them are done.';
comment on column healthlab.person_export.due_at is 'When background work goes on; a claim moves it to the end of its lease.';
create index person_export_user on healthlab.person_export (user_id) where user_id is not null;
create index person_export_due on healthlab.person_export (due_at, job_id);

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
alter table healthlab.person_export enable row level security;
create policy team_only on healthlab.person_export
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.person_export is 'Rows of the team that the setting healthlab.team names, and of no other.';
