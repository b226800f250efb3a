-- +goose Up
-- Organisations: their teams, and the API keys of teams.

create table healthlab.org_team (
	team_id        uuid        not null,
	org_id         uuid        not null,
	name           text        not null,
	integration_id text        collate "C",
	created_at     timestamptz not null,
	updated_at     timestamptz not null,
	deleted_at     timestamptz,
	constraint org_team_pkey primary key (team_id)
);
comment on table healthlab.org_team is
	'Teams of organisations. One that was deleted stays, so that its id is given out once. Who changes one holds an advisory lock of the organisation.';
comment on constraint org_team_pkey on healthlab.org_team is 'A team is one organisation''s.';
comment on column healthlab.org_team.integration_id is 'The organisation''s own name for it; null if it has none.';
create index org_team_list on healthlab.org_team (org_id, team_id) where deleted_at is null;
create unique index org_team_integration on healthlab.org_team (org_id, integration_id) where deleted_at is null;

create table healthlab.team_key (
	team_id    uuid        not null,
	key_id     uuid        not null,
	label      text        not null,
	hint       text        not null,
	sum        bytea       not null,
	scopes     text[]      not null,
	created_at timestamptz not null,
	expires_at timestamptz,
	last_used_at timestamptz,
	constraint team_key_pkey primary key (team_id, key_id),
	constraint team_key_sum unique (sum)
);
comment on table healthlab.team_key is 'API keys of teams, until they are deleted.';
comment on constraint team_key_pkey on healthlab.team_key is 'A key is one team''s.';
comment on constraint team_key_sum on healthlab.team_key is
	'Who calls names nothing but the key, so it is one team''s, over all teams.';
comment on column healthlab.team_key.hint is 'What may be shown of it: its prefix and its last characters.';
comment on column healthlab.team_key.sum is 'SHA-256 of the key, which has 256 random bits. The key itself is stored nowhere.';
comment on column healthlab.team_key.scopes is 'What the key may do; empty is everything.';
comment on column healthlab.team_key.expires_at is 'When the key stops working; null is never.';
comment on column healthlab.team_key.last_used_at is 'Exact to ten minutes; null is never.';
create unique index team_key_id on healthlab.team_key (key_id);

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'org_team', 'team_key'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
