-- +goose Up
-- Link codes and the limits of guessing them, link sessions, and what connections need
-- to fetch data, sealed.

create table healthlab.link_code (
	team_id      uuid        not null,
	code_hash    bytea       not null,
	user_id      uuid        not null,
	created_at   timestamptz not null,
	expires_at   timestamptz not null,
	used_at      timestamptz,
	wrong_before bigint      not null,
	constraint link_code_pkey primary key (team_id, code_hash),
	constraint link_code_hash unique (code_hash)
);
comment on table healthlab.link_code is 'Link codes, until a day after they expire.';
comment on constraint link_code_pkey on healthlab.link_code is 'Codes are tried within a team.';
comment on constraint link_code_hash on healthlab.link_code is 'A code is one user''s, over all teams: who redeems it names the team only by a key.';
comment on column healthlab.link_code.code_hash is
	'SHA-256 of the code. It keeps codes out of sight, not secret: they have 32 random bits. Their secrecy is their short life.';
comment on column healthlab.link_code.wrong_before is 'How many wrong tries the team had seen when the code was made.';
create index link_code_user on healthlab.link_code (user_id);
create index link_code_expired on healthlab.link_code (team_id, expires_at);

create table healthlab.link_try (
	team_id uuid   not null,
	wrong   bigint not null,
	constraint link_try_pkey primary key (team_id)
);
comment on table healthlab.link_try is
	'How many wrong tries at its codes a team has ever seen. Who tries a code or makes one holds the row, so that they do it one after another.';
comment on constraint link_try_pkey on healthlab.link_try is 'One count, and one lock, for each team.';

create table healthlab.link_guesser (
	team_id uuid        not null,
	client  bytea       not null,
	since   timestamptz not null,
	wrong   integer     not null,
	constraint link_guesser_pkey primary key (team_id, client)
);
comment on table healthlab.link_guesser is 'Clients that have tried wrong codes, by a keyed hash, for a few hours.';
comment on constraint link_guesser_pkey on healthlab.link_guesser is 'A client is known by the hash of what tells it from others.';
comment on column healthlab.link_guesser.since is 'When the window of its wrong tries began.';
create index link_guesser_old on healthlab.link_guesser (team_id, since);

create table healthlab.link_session (
	team_id     uuid        not null,
	session_id  uuid        not null,
	user_id     uuid        not null,
	token_hash  bytea       not null,
	revision    bigint      not null,
	state       text        collate "C" not null,
	created_at  timestamptz not null,
	expires_at  timestamptz not null,
	pending_key text,
	pending_box bytea,
	doc         json        not null,
	constraint link_session_pkey primary key (team_id, session_id),
	constraint link_session_pending check ((pending_key is null) = (pending_box is null))
);
comment on table healthlab.link_session is 'People''s ways from a link token to a connection, until a day after they expire.';
comment on constraint link_session_pkey on healthlab.link_session is 'A token names its team and its session.';
comment on constraint link_session_pending on healthlab.link_session is 'What is sealed names its key.';
comment on column healthlab.link_session.token_hash is 'SHA-256 of the token, which has 256 random bits. The token itself is stored nowhere.';
comment on column healthlab.link_session.pending_box is 'What the next part of a try needs, sealed.';
comment on column healthlab.link_session.doc is 'The session but for what has a column.';
create index link_session_user on healthlab.link_session (user_id);
create index link_session_expired on healthlab.link_session (team_id, expires_at);

create table healthlab.link_credential (
	user_id    uuid        not null,
	provider   text        collate "C" not null,
	team_id    uuid        not null,
	key_id     text        not null,
	box        bytea       not null,
	expires_at timestamptz,
	created_at timestamptz not null,
	constraint link_credential_pkey primary key (user_id, provider)
);
comment on table healthlab.link_credential is 'What connections need to fetch data, sealed. Who changes one holds the row of its user.';
comment on constraint link_credential_pkey on healthlab.link_credential is 'A user connects a provider once.';
comment on column healthlab.link_credential.key_id is 'Which key seals the box.';
comment on column healthlab.link_credential.expires_at is 'When the secret stops working; null if nobody knows.';

-- Who else has connected an account. Hashed, because providers choose how long their
-- names of people are.
create index connection_account on healthlab.connection (team_id, provider, md5(external_user_id))
	where external_user_id is not null and status <> 'deregistered';

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['link_code', 'link_try', 'link_guesser', 'link_session', 'link_credential'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
