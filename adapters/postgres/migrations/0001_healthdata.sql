-- +goose Up
-- Users, teams and health data. Every primary key begins with the column that rows are spread
-- by: the user, or the team where there is no user.

create schema if not exists healthlab;

create table healthlab.users (
	user_id          uuid        not null,
	team_id          uuid        not null,
	client_user_id   text        collate "C" not null,
	created_on       timestamptz not null,
	zone_id          text        not null,
	zone_source      text        not null,
	zone_updated_at  timestamptz not null,
	birth_date       bytea,
	birth_source     text,
	birth_updated_at timestamptz,
	ingestion_start  date,
	ingestion_end    date,
	deleted_at       timestamptz,
	revision         bigint      not null,
	consents         json,
	leased_until     timestamptz,
	constraint users_pkey primary key (user_id),
	constraint users_birth check ((birth_date is null) = (birth_source is null) and (birth_date is null) = (birth_updated_at is null))
);
comment on table healthlab.users is 'People whose data a team keeps; deleted ones until they are erased.';
comment on constraint users_pkey on healthlab.users is
	'The id of a user is unique over all teams. Users are what data is spread by.';
comment on constraint users_birth on healthlab.users is
	'A birth date comes with where it is from and since when; all three or none.';
comment on column healthlab.users.birth_date is 'YYYY-MM-DD, encrypted.';
comment on column healthlab.users.consents is 'The consents that the person gave or withdrew, oldest first; null for none.';
comment on column healthlab.users.leased_until is 'The end of the lease under which a process erases this user, by the clock of the server.';
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

create table healthlab.team_settings (
	team_id uuid not null,
	choices json not null,
	constraint team_settings_pkey primary key (team_id)
);
comment on table healthlab.team_settings is 'What teams have chosen. A transaction that changes it locks the row.';
comment on constraint team_settings_pkey on healthlab.team_settings is 'A team has one row.';
comment on column healthlab.team_settings.choices is 'By the name of the setting; what is not there is left to the deployment.';

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
comment on column healthlab.record.digest is
	'HMAC-SHA-256 of doc and raw with the key of the user, to know a repeated upload without reading them back.';
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
	tail_at       bigint,
	tail_closed   boolean  not null default false,
	tail          bytea    not null default '',
	direct        boolean  not null default false,
	rewrites      numeric  not null default 0,
	constraint series_pkey primary key (user_id, series),
	constraint series_key unique (user_id, resource, provider, source_type, part)
) with (fillfactor = 50);
alter table healthlab.series alter column tail set storage main;
comment on table healthlab.series is
	'What one user measures of one thing with one source. The row is the lock of its chunks and segments: a transaction that writes them locks it first.';
comment on constraint series_pkey on healthlab.series is 'Series are numbered from 1 within their user.';
comment on constraint series_key on healthlab.series is 'The natural key: a sample is known by its series and its time.';
comment on column healthlab.series.last_at is
	'The time of the last sample, in microseconds since 1970; what comes after it can be appended unseen.';
comment on column healthlab.series.seq is 'The number of the segment that was appended last.';
comment on column healthlab.series.fold_due is
	'When the segments should be folded into chunks. A claim moves it to the end of its lease.';
comment on column healthlab.series.tail_at is 'The time of the first sample of the tail.';
comment on column healthlab.series.tail_closed is
	'The tail was full and has become a segment. What comes next begins another; until then the bytes mean nothing.';
comment on column healthlab.series.tail is
	'Small batches that were appended last, the newest first: the log of the server takes what differs from the row before, up to where both are equal. Each is its length in 2 bytes and its encoded samples, encrypted or not.';
comment on column healthlab.series.direct is
	'The user is live, and no continuous query of the team reads the resource, so that a batch is appended without reading other tables. Set by a transaction that has locked the row; cleared by the deletion of the user and by the backfill of a query, before either relies on it.';
comment on column healthlab.series.rewrites is
	'How many transactions have changed its chunks or taken segments away, otherwise than by appending.';
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
	'The body of a series: encoded samples, in stretches that do not overlap. They may be encrypted.';
comment on column healthlab.chunk.header is 'Number of samples, sums and extremes; encrypted or not, as data is. An encrypted one begins with the byte 0x81.';
comment on constraint chunk_pkey on healthlab.chunk is
	'A chunk is known by the time of its first sample, in microseconds since 1970.';
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
comment on constraint segment_pkey on healthlab.segment is
	'Numbered in the order of their commits: the number is drawn under the lock of the series.';
comment on constraint segment_times on healthlab.segment is 'The first sample is not after the last.';
comment on column healthlab.segment.header is 'Empty if the data is a full tail of the series.';

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'users', 'user_name', 'team', 'team_settings', 'record', 'series', 'chunk', 'segment'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
