-- +goose Up
-- Connections, links, OAuth clients, pulls and bulk operations.

create table healthlab.connection (
	user_id          uuid        not null,
	provider         text        collate "C" not null,
	team_id          uuid        not null,
	status           text        not null,
	created_on       timestamptz not null,
	external_user_id text,
	scopes           text[],
	demo             boolean     not null,
	linked_at        timestamptz,
	due_at           timestamptz,
	failure_type     text,
	failure_message  text,
	failure_details  text,
	failed_at        timestamptz,
	client           text        collate "C",
	constraint connection_pkey primary key (user_id, provider),
	constraint connection_failure check ( (failure_type is null) = (failure_message is null) and (failure_type is null) = (failure_details is null))
);
comment on table healthlab.connection is 'The sources that a user has, or had, connected.';
comment on constraint connection_pkey on healthlab.connection is 'A user connects a provider once.';
comment on constraint connection_failure on healthlab.connection is 'A failure has all of its columns or none.';
comment on column healthlab.connection.linked_at is 'When it was connected last, also while it worked already.';
comment on column healthlab.connection.due_at is
	'When its pulls are to be planned next, or it is to be closed; null for never.';
comment on column healthlab.connection.client is 'By which client of the team it was connected; null for the deployment''s.';
create index connection_team on healthlab.connection (team_id, created_on) where status <> 'deregistered';
create index connection_provider_account on healthlab.connection (provider, md5(external_user_id))
	where external_user_id is not null and status <> 'deregistered';
create index connection_account on healthlab.connection (team_id, provider, md5(external_user_id))
	where external_user_id is not null and status <> 'deregistered';
create index connection_due on healthlab.connection (due_at, user_id) where due_at is not null;
create index connection_client on healthlab.connection (team_id, provider, client) where client is not null and status <> 'deregistered';

create table healthlab.link_code (
	team_id           uuid        not null,
	code_hash         bytea       not null,
	user_id           uuid        not null,
	created_at        timestamptz not null,
	expires_at        timestamptz not null,
	used_at           timestamptz,
	wrong_before      bigint      not null,
	first_before      bigint      not null default 0,
	open_wrong_before bigint      not null default 0,
	open_first_before bigint      not null default 0,
	constraint link_code_pkey primary key (team_id, code_hash),
	constraint link_code_hash unique (code_hash)
);
comment on table healthlab.link_code is 'Link codes, until a day after they expire.';
comment on constraint link_code_pkey on healthlab.link_code is 'Codes are tried within a team.';
comment on constraint link_code_hash on healthlab.link_code is
	'A code is one user''s, over all teams: who redeems it names the team only by a key.';
comment on column healthlab.link_code.code_hash is
	'SHA-256 of the code. It keeps codes out of sight, not secret: they have 32 random bits. Their secrecy is their short life.';
comment on column healthlab.link_code.wrong_before is 'How many wrong tries the team had seen when the code was made.';
comment on column healthlab.link_code.first_before is 'How many such first tries the team had seen when the code was made.';
comment on column healthlab.link_code.open_wrong_before is
	'How many wrong tries without a team there had been when the code was made.';
comment on column healthlab.link_code.open_first_before is 'How many of them were the first in their client''s window.';
create index link_code_user on healthlab.link_code (user_id);
create index link_code_expired on healthlab.link_code (team_id, expires_at);

create table healthlab.link_try (
	team_id uuid   not null,
	wrong   bigint not null,
	first   bigint not null default 0,
	constraint link_try_pkey primary key (team_id)
);
comment on table healthlab.link_try is
	'How many wrong tries at its codes a team has ever seen. Who tries a code or makes one holds the row, so that they do it one after another.';
comment on constraint link_try_pkey on healthlab.link_try is 'One count, and one lock, for each team.';
comment on column healthlab.link_try.first is 'How many of the wrong tries were the first in their client''s window.';

create table healthlab.link_guesser (
	team_id uuid        not null,
	client  bytea       not null,
	since   timestamptz not null,
	wrong   integer     not null,
	constraint link_guesser_pkey primary key (team_id, client)
);
comment on table healthlab.link_guesser is 'Clients that have tried wrong codes, by a keyed hash, for a few hours.';
comment on constraint link_guesser_pkey on healthlab.link_guesser is
	'A client is known by the hash of what tells it from others.';
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
comment on column healthlab.link_session.token_hash is
	'SHA-256 of the token, which has 256 random bits. The token itself is stored nowhere.';
comment on column healthlab.link_session.pending_box is 'What the next part of a try needs, sealed.';
comment on column healthlab.link_session.doc is 'The session but for what has a column.';
create index link_session_user on healthlab.link_session (user_id);
create index link_session_expired on healthlab.link_session (team_id, expires_at);

create table healthlab.link_credential (
	user_id      uuid        not null,
	provider     text        collate "C" not null,
	team_id      uuid        not null,
	key_id       text        not null,
	box          bytea       not null,
	expires_at   timestamptz,
	created_at   timestamptz not null,
	grant_id     uuid        not null,
	version      bigint      not null default 0,
	previous_key text,
	previous_box bytea,
	leased_until timestamptz,
	failures     integer     not null default 0,
	retry_at     timestamptz,
	constraint link_credential_pkey primary key (user_id, provider),
	constraint link_credential_previous check ((previous_key is null) = (previous_box is null))
);
comment on table healthlab.link_credential is
	'What connections need to fetch data, sealed. A change locks the row of its user first.';
comment on constraint link_credential_pkey on healthlab.link_credential is 'A user connects a provider once.';
comment on constraint link_credential_previous on healthlab.link_credential is 'What is sealed names its key.';
comment on column healthlab.link_credential.key_id is 'Which key seals the box.';
comment on column healthlab.link_credential.expires_at is 'When the secret stops working; null if unknown.';
comment on column healthlab.link_credential.grant_id is 'Another one after every link.';
comment on column healthlab.link_credential.version is 'How often the secret was renewed.';
comment on column healthlab.link_credential.previous_box is 'The secret before the last renewal; null if there was none.';
comment on column healthlab.link_credential.leased_until is
	'The end of the lease under which a process refreshes the secret; null if none does.';
comment on column healthlab.link_credential.failures is 'Tries to renew it that failed in a row.';
comment on column healthlab.link_credential.retry_at is 'When the next try makes sense; null for at once.';

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
comment on table healthlab.app_session is
	'Companion apps that were invited to act for a user, or do. Tokens have 256 random bits; their SHA-256 stands here, and they stand nowhere.';
comment on constraint app_session_pkey on healthlab.app_session is 'A token names its team and its session.';
comment on column healthlab.app_session.expires_at is 'When the invitation ends; null once it was taken.';
comment on column healthlab.app_session.sign_in is 'Of the sign-in token until it is exchanged; zeros then.';
comment on column healthlab.app_session.refresh is 'Of the refresh token.';
comment on column healthlab.app_session.previous is 'Of the refresh token before.';
comment on column healthlab.app_session.access is 'Of the access tokens that may still work.';
create index app_session_user on healthlab.app_session (user_id);
create index app_session_expired on healthlab.app_session (team_id, expires_at) where expires_at is not null;

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
	'Clients that teams have registered at providers themselves. Those that were replaced stay while connections are bound to them. A transaction that changes them locks the row of the team.';
comment on constraint team_client_pkey on healthlab.team_client is 'A team names its client by the id that the provider knows.';
comment on column healthlab.team_client.key_id is 'Which key seals the box.';
comment on column healthlab.team_client.box is 'The secret and the details, sealed.';
comment on column healthlab.team_client.tail is 'What is shown of the secret: its last characters.';
comment on column healthlab.team_client.details is 'What is shown of the details, by name.';
comment on column healthlab.team_client.redirect_url is 'Where the provider sends people back to in place of us; empty for us.';
comment on column healthlab.team_client.retired_at is
	'When another one took its place, or the team took it back; null while it is the current one.';
comment on column healthlab.team_client.proven_at is
	'When a person first returned through it, to proven_url; null before that.';
create unique index team_client_current on healthlab.team_client (team_id, provider) where retired_at is null;

create table healthlab.pull_task (
	user_id      uuid    not null,
	provider     text    collate "C" not null,
	resource     text    collate "C" not null,
	kind         text    collate "C" not null,
	team_id      uuid    not null,
	turn         bigint  not null,
	due_at       timestamptz,
	leased_until timestamptz,
	fence        bigint  not null,
	queued       boolean not null default false,
	doc          json    not null,
	client       text    collate "C",
	constraint pull_task_pkey primary key (user_id, provider, resource, kind)
);
comment on table healthlab.pull_task is 'What is to be fetched of each resource of a connection, and how far that is.';
comment on constraint pull_task_pkey on healthlab.pull_task is 'A resource has one history and one task for news.';
comment on column healthlab.pull_task.turn is 'Tasks that are due go by it, the lowest first.';
comment on column healthlab.pull_task.due_at is 'When it is to go on; null if it is not to.';
comment on column healthlab.pull_task.fence is 'How often it was claimed.';
comment on column healthlab.pull_task.queued is 'It was seen to be due. Claims read these rows alone.';
comment on column healthlab.pull_task.doc is 'The task but for what has a column.';
comment on column healthlab.pull_task.client is 'Which client of the team its requests count for; null for the deployment''s.';
create index pull_task_due on healthlab.pull_task (due_at) where due_at is not null and not queued;
create index pull_task_queue on healthlab.pull_task (turn, due_at, user_id, provider, resource, kind) where queued;

create table healthlab.pull_budget (
	team_id  uuid not null,
	user_id  uuid not null,
	provider text collate "C" not null,
	name     text collate "C" not null,
	doc      json not null,
	constraint pull_budget_pkey primary key (team_id, user_id, provider, name)
);
comment on table healthlab.pull_budget is
	'What is left of limits on requests. Those of a provider for all users together have no team and no user: only work over all teams sees them.';
comment on constraint pull_budget_pkey on healthlab.pull_budget is 'A limit is counted once.';
create index pull_budget_user on healthlab.pull_budget (user_id);

create table healthlab.pull_refused (
	user_id  uuid        not null,
	id       uuid        not null,
	team_id  uuid        not null,
	provider text        collate "C" not null,
	resource text        collate "C" not null,
	seen_at  timestamptz not null,
	count    bigint      not null,
	reasons  json        not null,
	constraint pull_refused_pkey primary key (user_id, id)
);
comment on table healthlab.pull_refused is 'What providers sent and was not kept: why, and nothing of what it was.';
comment on constraint pull_refused_pkey on healthlab.pull_refused is 'The same thing is the same refusal.';
create index pull_refused_seen on healthlab.pull_refused (user_id, seen_at desc, id);

create table healthlab.pull_notice (
	team_id  uuid        not null,
	provider text        collate "C" not null,
	id       bytea       not null,
	came_at  timestamptz not null,
	constraint pull_notice_pkey primary key (team_id, provider, id)
);
comment on table healthlab.pull_notice is
	'What providers said is new, to know repetitions for a while. It is no team''s: only work over all teams sees it.';
comment on constraint pull_notice_pkey on healthlab.pull_notice is 'What comes twice is acted upon once.';
comment on column healthlab.pull_notice.id is 'A hash of the provider''s own name for it.';
create index pull_notice_came on healthlab.pull_notice (came_at);

create table healthlab.bulk_op (
	team_id      uuid        not null,
	op_id        uuid        not null,
	type         text        collate "C" not null,
	provider     text        collate "C" not null,
	status       text        collate "C" not null,
	total        integer     not null,
	started_at   timestamptz not null,
	ended_at     timestamptz,
	due_at       timestamptz,
	leased_until timestamptz,
	fence        bigint      not null,
	next         integer     not null,
	failed       integer     not null,
	constraint bulk_op_pkey primary key (team_id, op_id),
	constraint bulk_op_id unique (op_id),
	constraint bulk_op_status check (status in ('in_progress', 'success', 'failure', 'aborted'))
);
comment on table healthlab.bulk_op is 'Work on many connections, and how far it is. A process works on one under a lease.';
comment on constraint bulk_op_pkey on healthlab.bulk_op is 'Operations are a team''s.';
comment on constraint bulk_op_id on healthlab.bulk_op is 'The id of an operation is unique over all teams.';
comment on constraint bulk_op_status on healthlab.bulk_op is 'Only what is in progress is worked on.';
comment on column healthlab.bulk_op.fence is 'Counts the claims, so that a process knows whether the operation is still its own.';
comment on column healthlab.bulk_op.next is 'The place of the first user who was not dealt with.';
create index bulk_op_due on healthlab.bulk_op (due_at, op_id) where status = 'in_progress';
create index bulk_op_line on healthlab.bulk_op (team_id, provider, started_at, op_id) where status = 'in_progress';
create index bulk_op_list on healthlab.bulk_op (team_id, started_at desc, op_id desc);
create index bulk_op_ended on healthlab.bulk_op (ended_at, op_id) where status <> 'in_progress';

create table healthlab.bulk_item (
	op_id   uuid    not null,
	n       integer not null,
	team_id uuid    not null,
	user_id uuid    not null,
	running boolean not null default false,
	key_id  text    collate "C",
	box     bytea,
	outcome text    collate "C" not null default '',
	constraint bulk_item_pkey primary key (team_id, op_id, n),
	constraint bulk_item_box check ((key_id is null) = (box is null)),
	constraint bulk_item_outcome check (box is null or outcome = '')
);
comment on table healthlab.bulk_item is 'The users of bulk operations.';
comment on constraint bulk_item_pkey on healthlab.bulk_item is 'In the order in which they are dealt with.';
comment on constraint bulk_item_box on healthlab.bulk_item is 'A box opens with the key that it names.';
comment on constraint bulk_item_outcome on healthlab.bulk_item is
	'Tokens are deleted as soon as their outcome is known.';
comment on column healthlab.bulk_item.running is 'Dealt with, and not over.';
comment on column healthlab.bulk_item.box is
	'What a connection is to be made of, sealed; null in other operations, and once it is dealt with.';
comment on column healthlab.bulk_item.outcome is 'What became of it; empty before, and in other operations.';
create index bulk_item_user on healthlab.bulk_item (user_id);
create index bulk_item_running on healthlab.bulk_item (team_id, op_id, n) where running;

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'connection', 'link_code', 'link_try', 'link_guesser', 'link_session', 'link_credential', 'app_session',
			'team_client', 'pull_task', 'pull_budget', 'pull_refused', 'pull_notice', 'bulk_op', 'bulk_item'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
