-- +goose Up
-- What providers announce by themselves.

create table healthlab.pull_notice (
	team_id  uuid        not null,
	provider text        collate "C" not null,
	id       bytea       not null,
	came_at  timestamptz not null,
	constraint pull_notice_pkey primary key (team_id, provider, id)
);
comment on table healthlab.pull_notice is
	'What providers said is new, to know it again for a while. It is no team''s: only work over all teams sees it.';
comment on constraint pull_notice_pkey on healthlab.pull_notice is 'What comes twice is acted upon once.';
comment on column healthlab.pull_notice.id is 'A hash of the provider''s own name for it.';
create index pull_notice_came on healthlab.pull_notice (came_at);

alter table healthlab.pull_notice enable row level security;
create policy team_only on healthlab.pull_notice
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.pull_notice is 'Rows of the team that the setting healthlab.team names, and of no other.';

-- Whose an account is, whatever the team: providers do not know our teams.
create index connection_provider_account on healthlab.connection (provider, md5(external_user_id))
	where external_user_id is not null and status <> 'deregistered';
