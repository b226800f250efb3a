-- +goose Up
-- Clients that teams have registered at providers themselves, and what is bound to them.

create table healthlab.team_client (
	team_id      uuid        not null,
	provider     text        collate "C" not null,
	client       text        collate "C" not null,
	key_id       text        not null,
	box          bytea       not null,
	tail         text        not null,
	details      json        not null,
	redirect_url text        not null,
	created_at   timestamptz not null,
	updated_at   timestamptz not null,
	retired_at   timestamptz,
	proven_at    timestamptz,
	proven_url   text        not null default '',
	constraint team_client_pkey primary key (team_id, provider, client)
);
comment on table healthlab.team_client is
	'Clients that teams have registered at providers themselves. Those that were replaced stay while connections are bound to them. Who changes them holds the row of the team.';
comment on constraint team_client_pkey on healthlab.team_client is 'A team names its client by the id that the provider knows.';
comment on column healthlab.team_client.key_id is 'Which key seals the box.';
comment on column healthlab.team_client.box is 'The secret and the details, sealed.';
comment on column healthlab.team_client.tail is 'What is shown of the secret: its last characters.';
comment on column healthlab.team_client.details is 'What is shown of the details, by name.';
comment on column healthlab.team_client.redirect_url is 'Where the provider sends people back to in place of us; empty for us.';
comment on column healthlab.team_client.retired_at is 'When another one took its place, or the team took it back; null while it is the current one.';
comment on column healthlab.team_client.proven_at is 'When somebody came back through it for the first time, to proven_url; null if nobody has.';
create unique index team_client_current on healthlab.team_client (team_id, provider) where retired_at is null;

alter table healthlab.team_client enable row level security;
create policy team_only on healthlab.team_client
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.team_client is 'Rows of the team that the setting healthlab.team names, and of no other.';

alter table healthlab.connection add column client text collate "C";
comment on column healthlab.connection.client is 'By which client of the team it was connected; null for the deployment''s.';
create index connection_client on healthlab.connection (team_id, provider, client) where client is not null and status <> 'deregistered';

alter table healthlab.pull_task add column client text collate "C";
comment on column healthlab.pull_task.client is 'Which client of the team its requests count for; null for the deployment''s.';
