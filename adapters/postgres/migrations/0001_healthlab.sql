-- +goose Up
-- Users, what was measured of them, and the events to send. Every primary key begins
-- with what the rows can be spread by: the user, or the team where there is no user.

create schema if not exists healthlab;

create table healthlab.users (
	user_id          uuid        not null,
	team_id          uuid        not null,
	client_user_id   text        collate "C" not null,
	created_on       timestamptz not null,
	zone_id          text        not null,
	zone_source      text        not null,
	zone_updated_at  timestamptz not null,
	birth_date       date,
	birth_source     text,
	birth_updated_at timestamptz,
	ingestion_start  date,
	ingestion_end    date,
	deleted_at       timestamptz,
	revision         bigint      not null,
	leased_until     timestamptz,
	constraint users_pkey primary key (user_id),
	constraint users_birth check ((birth_date is null) = (birth_source is null) and (birth_date is null) = (birth_updated_at is null))
);
comment on table healthlab.users is 'People whose data a team keeps; deleted ones until they are erased.';
comment on constraint users_pkey on healthlab.users is 'The id of a user is unique over all teams. Users are what data is spread by.';
comment on constraint users_birth on healthlab.users is 'A birth date comes with where it is from and since when; all three or none.';
comment on column healthlab.users.leased_until is 'Until when somebody is erasing this user; by the clock of the server.';
create index users_live on healthlab.users (team_id, created_on, user_id) where deleted_at is null;
create index users_deleted on healthlab.users (team_id, deleted_at desc, user_id) where deleted_at is not null;
create index users_due on healthlab.users (deleted_at, user_id) where deleted_at is not null;
create index users_client on healthlab.users (team_id, client_user_id);
create index users_search on healthlab.users (team_id, lower(client_user_id));
create index users_team on healthlab.users (team_id, user_id);

create table healthlab.user_name (
	team_id        uuid not null,
	client_user_id text collate "C" not null,
	user_id        uuid not null,
	constraint user_name_pkey primary key (team_id, client_user_id)
);
comment on table healthlab.user_name is
	'One row for each live user: it keeps a client user id unique in its team, wherever the users themselves are stored.';
comment on constraint user_name_pkey on healthlab.user_name is 'A client user id is taken once among the live users of a team.';

create table healthlab.team (
	team_id uuid not null,
	constraint team_pkey primary key (team_id)
);
comment on table healthlab.team is 'A row to lock while the users of a team are counted against a limit. It holds nothing else.';
comment on constraint team_pkey on healthlab.team is 'One lock for each team.';

create table healthlab.connection (
	user_id          uuid        not null,
	provider         text        collate "C" not null,
	team_id          uuid        not null,
	status           text        not null,
	created_on       timestamptz not null,
	external_user_id text,
	scopes           text[],
	demo             boolean     not null,
	constraint connection_pkey primary key (user_id, provider)
);
comment on table healthlab.connection is 'The sources that a user has, or had, connected.';
comment on constraint connection_pkey on healthlab.connection is 'A user connects a provider once.';
create index connection_team on healthlab.connection (team_id, created_on) where status <> 'deregistered';

create table healthlab.record (
	user_id     uuid        not null,
	resource    text        collate "C" not null,
	id          uuid        not null,
	team_id     uuid        not null,
	provider    text        collate "C" not null,
	source_type text        collate "C" not null,
	index_at    timestamptz not null,
	utc_offset  integer     not null,
	digest      bytea       not null,
	doc         bytea       not null,
	raw         bytea,
	created_at  timestamptz not null,
	updated_at  timestamptz not null,
	constraint record_pkey primary key (user_id, resource, id)
);
comment on table healthlab.record is 'Summaries and workout streams: the JSON of each, byte for byte as it was written.';
comment on constraint record_pkey on healthlab.record is 'A record is known by its id within its resource.';
comment on column healthlab.record.digest is 'SHA-256 of doc and raw, to know a repeated upload without reading them back.';
create index record_index on healthlab.record (user_id, resource, index_at, id);
create index record_find on healthlab.record (team_id, resource, id);

create table healthlab.series (
	user_id       uuid     not null,
	series        integer  not null,
	team_id       uuid     not null,
	resource      text     collate "C" not null,
	provider      text     collate "C" not null,
	source_type   text     collate "C" not null,
	part          text     collate "C" not null,
	span          smallint not null,
	last_at       bigint   not null,
	seq           bigint   not null default 0,
	segments      integer  not null default 0,
	segment_bytes integer  not null default 0,
	fold_due      timestamptz,
	constraint series_pkey primary key (user_id, series),
	constraint series_key unique (user_id, resource, provider, source_type, part),
	constraint series_segments check (segments >= 0 and segment_bytes >= 0 and (segments = 0) = (fold_due is null))
) with (fillfactor = 80);
comment on table healthlab.series is
	'What one user measures of one thing with one source. The row is the lock of its chunks and segments: who writes them holds it.';
comment on constraint series_pkey on healthlab.series is 'Series are numbered from 1 within their user.';
comment on constraint series_key on healthlab.series is 'The natural key: a sample is known by its series and its time.';
comment on constraint series_segments on healthlab.series is 'A series with segments is due to be folded at some time, and no other is.';
comment on column healthlab.series.last_at is 'The time of the last sample, in microseconds since 1970; what comes after it can be appended unseen.';
comment on column healthlab.series.seq is 'The number of the segment that was appended last.';
comment on column healthlab.series.fold_due is 'When the segments should be folded into chunks; moved on while somebody is at it.';
create index series_fold on healthlab.series (fold_due) where fold_due is not null;

create table healthlab.chunk (
	user_id  uuid    not null,
	series   integer not null,
	start_at bigint  not null,
	team_id  uuid    not null,
	stop_at  bigint  not null,
	header   bytea   not null,
	data     bytea   not null,
	constraint chunk_pkey primary key (user_id, series, start_at),
	constraint chunk_times check (start_at <= stop_at)
);
alter table healthlab.chunk alter column header set storage plain, alter column data set storage external;
comment on table healthlab.chunk is
	'The body of a series: encoded samples, in stretches that do not overlap. The view healthlab.samples shows what is inside.';
comment on constraint chunk_pkey on healthlab.chunk is 'A chunk is known by the time of its first sample, in microseconds since 1970.';
comment on constraint chunk_times on healthlab.chunk is 'The first sample is not after the last.';

create table healthlab.segment (
	user_id  uuid    not null,
	series   integer not null,
	seq      bigint  not null,
	team_id  uuid    not null,
	start_at bigint  not null,
	stop_at  bigint  not null,
	header   bytea   not null,
	data     bytea   not null,
	constraint segment_pkey primary key (user_id, series, seq),
	constraint segment_times check (start_at <= stop_at)
);
alter table healthlab.segment alter column header set storage plain, alter column data set storage external;
comment on table healthlab.segment is
	'The log of a series: small batches, appended and not folded into chunks yet. A later one wins over an earlier one, and all over the chunks.';
comment on constraint segment_pkey on healthlab.segment is 'Numbered in the order of their commits: the number is drawn under the lock of the series.';
comment on constraint segment_times on healthlab.segment is 'The first sample is not after the last.';

create table healthlab.event_key (
	team_id  uuid   not null,
	key_hash uuid   not null,
	user_id  uuid,
	seq      bigint not null,
	constraint event_key_pkey primary key (team_id, key_hash)
);
comment on table healthlab.event_key is
	'How many events a key has had. Who writes an event holds the row until the commit, so a higher number never commits before a lower one.';
comment on constraint event_key_pkey on healthlab.event_key is 'A key counts by itself. The hash is the first half of its SHA-256.';
comment on column healthlab.event_key.user_id is 'Whose events these are, so that they go with the user; null if several users share the key.';
create index event_key_user on healthlab.event_key (user_id) where user_id is not null;

create table healthlab.webhook_event (
	team_id    uuid        not null,
	id         uuid        not null,
	created_at timestamptz not null,
	user_id    uuid,
	type       text        not null,
	key        text        not null,
	key_hash   uuid,
	seq        bigint      not null,
	at         timestamptz not null,
	body       bytea       not null,
	constraint webhook_event_pkey primary key (team_id, id, created_at)
) partition by range (created_at);
alter table healthlab.webhook_event alter column body set storage external;
comment on table healthlab.webhook_event is
	'Messages: what happened, with the bytes that are sent. Written in the commit of the change and never edited.';
comment on constraint webhook_event_pkey on healthlab.webhook_event is 'A message has one id; the day is part of the key because the table is cut by day.';
create index webhook_event_user on healthlab.webhook_event (user_id) where user_id is not null;
create index webhook_event_key on healthlab.webhook_event (team_id, key_hash, seq desc) where key_hash is not null;
create table healthlab.webhook_event_rest partition of healthlab.webhook_event default;
comment on table healthlab.webhook_event_rest is 'Messages of days for which no partition was made.';
create unique index webhook_event_rest_id on healthlab.webhook_event_rest (id);

create table healthlab.webhook_pending (
	team_id    uuid        not null,
	n          bigint      generated always as identity,
	event_id   uuid        not null,
	user_id    uuid,
	created_at timestamptz not null,
	constraint webhook_pending_pkey primary key (team_id, n)
);
comment on table healthlab.webhook_pending is 'Messages that are not handed to endpoints yet. A few rows at a time.';
comment on constraint webhook_pending_pkey on healthlab.webhook_pending is
	'In the order of writing. Within a key that is the order of its Seq: both are drawn under the lock of the key.';
create index webhook_pending_order on healthlab.webhook_pending (n);
create index webhook_pending_user on healthlab.webhook_pending (user_id) where user_id is not null;

-- Row-level security: with it a statement that forgets the team finds nothing. It holds
-- for every role but the owner of the tables and superusers. The setting healthlab.team
-- names the team of the transaction; 'all' is for work over all teams.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['users', 'user_name', 'team', 'connection', 'record', 'series', 'chunk', 'segment',
			'event_key', 'webhook_event', 'webhook_event_rest', 'webhook_pending'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
