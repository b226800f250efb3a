-- +goose Up
-- Events, the outbox, endpoints, deliveries, and the messages that receivers have seen.

-- +goose StatementBegin
create function healthlab.clock() returns timestamptz language sql stable parallel safe as $$ select now() $$;
-- +goose StatementEnd
comment on function healthlab.clock is
	'The clock of leases, of deliveries and of what receivers have seen. Tests put another one in its place.';

create table healthlab.event_key (
	team_id  uuid   not null,
	key_hash uuid   not null,
	user_id  uuid,
	seq      bigint not null,
	constraint event_key_pkey primary key (team_id, key_hash)
);
comment on table healthlab.event_key is
	'How many events a key has had. A transaction that writes an event locks the row until its commit, so a higher number never commits before a lower one.';
comment on constraint event_key_pkey on healthlab.event_key is
	'A key counts by itself. The hash is the first half of its SHA-256.';
comment on column healthlab.event_key.user_id is
	'Whose events these are, so that they go with the user; null if several users share the key.';
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
	trace      text        not null,
	constraint webhook_event_pkey primary key (team_id, id, created_at)
) partition by range (created_at);
alter table healthlab.webhook_event alter column body set storage external;
comment on table healthlab.webhook_event is
	'Messages: what happened, with the bytes that are sent. Written in the commit of the change and never edited.';
comment on column healthlab.webhook_event.trace is
	'The traceparent (W3C Trace Context) of the request that caused it; empty for none.';
comment on constraint webhook_event_pkey on healthlab.webhook_event is
	'A message has one id; the day is part of the key because the table is cut by day.';
create index webhook_event_user on healthlab.webhook_event (user_id) where user_id is not null;
create index webhook_event_key on healthlab.webhook_event (team_id, key_hash, seq desc) where key_hash is not null;
create index webhook_event_written on healthlab.webhook_event (team_id, created_at, id);

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

create table healthlab.webhook_endpoint (
	team_id         uuid        not null,
	id              uuid        not null,
	url             text        not null,
	description     text        not null,
	rate_limit      integer     not null,
	filter_types    text[],
	order_scope     text        not null,
	disabled        boolean     not null,
	disabled_reason text        not null,
	first_failed_at timestamptz,
	last_failed_at  timestamptz,
	armed_at        timestamptz,
	paused_until    timestamptz,
	pause_step      integer     not null,
	secrets         json        not null,
	headers         json        not null,
	revision        bigint      not null,
	created_at      timestamptz not null,
	updated_at      timestamptz not null,
	constraint webhook_endpoint_pkey primary key (team_id, id),
	constraint webhook_endpoint_id unique (id)
);
comment on table healthlab.webhook_endpoint is
	'Receivers, with their sealed secrets and headers and their health. Who adds to their lanes holds the row for share; who empties them holds it alone.';
comment on constraint webhook_endpoint_pkey on healthlab.webhook_endpoint is 'Endpoints are spread by their team.';
comment on constraint webhook_endpoint_id on healthlab.webhook_endpoint is 'The id of an endpoint is unique over all teams.';
comment on column healthlab.webhook_endpoint.filter_types is 'The types that it wants; null for all.';
comment on column healthlab.webhook_endpoint.pause_step is 'Above 0, one delivery at a time is tried.';
create index webhook_endpoint_list on healthlab.webhook_endpoint (team_id, created_at desc, id desc);
create index webhook_endpoint_armed on healthlab.webhook_endpoint (armed_at) where armed_at is not null and not disabled;

create table healthlab.webhook_delivery (
	team_id         uuid        not null,
	id              bigint      generated always as identity,
	endpoint_id     uuid        not null,
	lane            uuid        not null,
	key_hash        uuid,
	seq             bigint      not null,
	event_id        uuid        not null,
	event_created   timestamptz not null,
	cause           text        not null,
	head            boolean     not null,
	attempts        integer     not null,
	starts          integer     not null,
	queued_at       timestamptz not null,
	first_failed_at timestamptz,
	due_at          timestamptz not null,
	quiet_until     timestamptz,
	lease_until     timestamptz,
	lease_token     bigint,
	constraint webhook_delivery_pkey primary key (team_id, id),
	constraint webhook_delivery_lease check ((lease_until is null) = (lease_token is null)),
	constraint webhook_delivery_claimed check (head or lease_token is null)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, fillfactor = 45);
comment on table healthlab.webhook_delivery is
	'Unfinished deliveries: one message to one endpoint each. Finished ones are deleted; the log says how they ended. Small and hot.';
comment on constraint webhook_delivery_pkey on healthlab.webhook_delivery is 'Within a lane in the order in which they came.';
comment on constraint webhook_delivery_lease on healthlab.webhook_delivery is 'A lease has an end and a token.';
comment on constraint webhook_delivery_claimed on healthlab.webhook_delivery is 'Only the head of a lane is sent.';
comment on column healthlab.webhook_delivery.lane is
	'The queue of the endpoint in which it waits its turn. The head is also its lock: who changes the lane holds that row first.';
comment on column healthlab.webhook_delivery.key_hash is
	'The key within which a newer version takes its place; null if none ever does.';
comment on column healthlab.webhook_delivery.event_created is 'When the message was written, which is part of its key.';
comment on column healthlab.webhook_delivery.due_at is 'Never before quiet_until.';
comment on column healthlab.webhook_delivery.quiet_until is 'Before this the lane starts nothing.';
comment on column healthlab.webhook_delivery.lease_until is 'In no index, so that a claim rewrites none.';
create unique index webhook_delivery_head on healthlab.webhook_delivery (lane, team_id) where head;
create index webhook_delivery_due on healthlab.webhook_delivery (endpoint_id, due_at, id) where head;
create index webhook_delivery_waiting on healthlab.webhook_delivery (lane, id) where not head;
create unique index webhook_delivery_same on healthlab.webhook_delivery (lane, key_hash, team_id)
	where not head and key_hash is not null;
create index webhook_delivery_event on healthlab.webhook_delivery (event_id, endpoint_id);

create table healthlab.webhook_attempt (
	team_id     uuid        not null,
	id          bigint      generated always as identity,
	at          timestamptz not null,
	endpoint_id uuid        not null,
	event_id    uuid        not null,
	delivery_id bigint      not null,
	lease_token bigint,
	n           integer     not null,
	cause       text        not null,
	status      integer     not null,
	class       text        not null,
	duration    bigint      not null,
	state       text        not null,
	reason      text        not null,
	response    bytea,
	head        bytea,
	constraint webhook_attempt_pkey primary key (team_id, endpoint_id, id)
);
comment on table healthlab.webhook_attempt is
	'The log: a line for each request, and for each decision not to send. A line is written once, and goes with its message.';
comment on constraint webhook_attempt_pkey on healthlab.webhook_attempt is 'The lines of an endpoint, in the order of writing.';
comment on column healthlab.webhook_attempt.delivery_id is '0 if it ended before it was stored.';
comment on column healthlab.webhook_attempt.lease_token is 'The lease whose outcome this is, to know one that comes twice.';
comment on column healthlab.webhook_attempt.duration is 'In nanoseconds.';
comment on column healthlab.webhook_attempt.response is 'The beginning of the body of the answer, where the host keeps it.';
comment on column healthlab.webhook_attempt.head is
	'Status line and header fields of the answer, a line each, without credentials. Null if there was no answer.';
create index webhook_attempt_event on healthlab.webhook_attempt (event_id, id);

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
	at         timestamptz not null default '0001-01-01 00:00:00+00'::timestamp with time zone,
	forget_at  timestamptz not null,
	constraint seen_pkey primary key (team_id, receiver, kind, name_hash),
	constraint seen_kind check (kind in ('id', 'key')),
	constraint seen_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.seen is 'Which messages receivers have handled, and how new the things were that they were about.';
comment on constraint seen_pkey on healthlab.seen is
	'The hash is the SHA-256 of a message id or a key, which may hold any bytes.';
comment on constraint seen_kind on healthlab.seen is 'A message id, or the key of what it is about.';
comment on constraint seen_team on healthlab.seen is 'A receiver is on the other side: to it, we are one sender.';
comment on column healthlab.seen.until is
	'How long the version, or that the message is done, is remembered; null if there is nothing.';
comment on column healthlab.seen.forget_at is 'When nothing of the row counts any more.';
create index seen_forget on healthlab.seen (forget_at);

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'event_key', 'webhook_event', 'webhook_event_rest', 'webhook_pending', 'webhook_endpoint', 'webhook_delivery',
			'webhook_attempt', 'seen'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
