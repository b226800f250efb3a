-- +goose Up
-- What receivers of webhooks remember.

create table healthlab.seen (
	team_id    uuid        not null,
	receiver   text        collate "C" not null,
	kind       text        not null,
	name_hash  bytea       not null,
	holder     uuid,
	held_until timestamptz,
	until      timestamptz,
	seq        bigint      not null default 0,
	step       bigint      not null default 0,
	at         timestamptz not null default '0001-01-01 00:00:00+00',
	forget_at  timestamptz not null,
	constraint seen_pkey primary key (team_id, receiver, kind, name_hash),
	constraint seen_kind check (kind in ('id', 'key')),
	constraint seen_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.seen is 'Which messages receivers have handled, and how new the things were that they were about.';
comment on constraint seen_pkey on healthlab.seen is 'The hash is the SHA-256 of a message id or a key, which may hold any bytes.';
comment on constraint seen_kind on healthlab.seen is 'A message id, or the key of what it is about.';
comment on constraint seen_team on healthlab.seen is 'A receiver is on the other side: to it, we are one sender.';
comment on column healthlab.seen.until is 'How long the version, or that the message is done, is remembered; null if there is nothing.';
comment on column healthlab.seen.forget_at is 'When nothing of the row counts any more.';
create index seen_forget on healthlab.seen (forget_at);

alter table healthlab.seen enable row level security;
create policy team_only on healthlab.seen
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.seen is 'Rows of the team that the setting healthlab.team names, and of no other.';
