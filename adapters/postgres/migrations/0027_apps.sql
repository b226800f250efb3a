-- +goose Up
-- Companion apps that are signed in for a user.

create table healthlab.app_session (
	team_id    uuid        not null,
	session_id uuid        not null,
	user_id    uuid        not null,
	created_at timestamptz not null,
	expires_at timestamptz,
	rotated_at timestamptz,
	rotations  bigint      not null,
	sign_in    bytea       not null,
	refresh    bytea       not null,
	previous   bytea       not null,
	access     json        not null,
	constraint app_session_pkey primary key (team_id, session_id)
);
comment on table healthlab.app_session is 'Companion apps that were invited to act for a user, or do. Tokens have 256 random bits; their SHA-256 stands here, and they stand nowhere.';
comment on constraint app_session_pkey on healthlab.app_session is 'A token names its team and its session.';
comment on column healthlab.app_session.expires_at is 'When the invitation ends; null once it was taken.';
comment on column healthlab.app_session.sign_in is 'Of the sign-in token until it is exchanged; zeros then.';
comment on column healthlab.app_session.refresh is 'Of the refresh token.';
comment on column healthlab.app_session.previous is 'Of the refresh token before.';
comment on column healthlab.app_session.access is 'Of the access tokens that may still work.';
create index app_session_user on healthlab.app_session (user_id);
create index app_session_expired on healthlab.app_session (team_id, expires_at) where expires_at is not null;

alter table healthlab.app_session enable row level security;
create policy team_only on healthlab.app_session
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.app_session is 'Rows of the team that the setting healthlab.team names, and of no other.';
