-- +goose Up
-- Lab orders, lab tests, results under review, patients and visits.
-- Documents are encrypted by the service, with a key for each person. Names and birth dates are
-- found by keyed tokens.

create table healthlab.orders (
	team_id        uuid        not null,
	order_id       uuid        not null,
	transaction_id uuid        not null,
	user_id        uuid        not null,
	revision       bigint      not null,
	sample_id      text        collate "C",
	method         text        collate "C" not null,
	status         text        collate "C" not null,
	last_status    text        collate "C" not null,
	created_at     timestamptz not null,
	updated_at     timestamptz not null,
	event_at       timestamptz not null,
	activate_by    date,
	interpretation text        collate "C",
	tokens         bigint[]    not null default '{}',
	sort_name      bytea       not null default '',
	lab_due        timestamptz,
	lab_lease      timestamptz,
	lab_attempts   integer     not null,
	lab_started    boolean     not null,
	member         json        not null,
	doc            bytea       not null,
	later_due      timestamptz,
	later_lease    timestamptz,
	visit_due      timestamptz,
	visit_lease    timestamptz,
	hidden         boolean     not null default false,
	constraint orders_pkey primary key (team_id, order_id),
	constraint orders_id unique (order_id),
	constraint orders_sample unique (sample_id),
	constraint orders_method check (method in ('testkit', 'walk_in_test', 'at_home_phlebotomy', 'on_site_collection')),
	constraint orders_low_level check (status = split_part(last_status, '.', 3)),
	constraint orders_interpretation check (interpretation in ('normal', 'abnormal', 'critical', 'unknown'))
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02);
comment on table healthlab.orders is
	'Lab orders: each as a document, and beside it what lists filter and sort by. A change locks the row of its transaction first.';
comment on constraint orders_pkey on healthlab.orders is 'Orders are spread by their team.';
comment on constraint orders_id on healthlab.orders is 'The id of an order is unique over all teams.';
comment on constraint orders_sample on healthlab.orders is
	'The id of a sample is unique over all teams: a lab that reports one means one order.';
comment on constraint orders_method on healthlab.orders is 'The collection methods.';
comment on constraint orders_low_level on healthlab.orders is 'The low-level status is the last part of the full one.';
comment on constraint orders_interpretation on healthlab.orders is 'The interpretations of results.';
comment on column healthlab.orders.status is 'The low-level status of the latest event; empty before the first.';
comment on column healthlab.orders.last_status is 'The full status of the latest event.';
comment on column healthlab.orders.tokens is
	'What the order is found by: a keyed hash of each word of the names, each beginning of one, and of the year, month and day of birth.';
comment on column healthlab.orders.sort_name is 'Last and first name in lower case, encrypted; empty if there is none.';
comment on column healthlab.orders.lab_due is
	'When the lab is to be called next. Not in the document.';
comment on column healthlab.orders.lab_lease is 'The end of the lease under which a process calls the lab, by healthlab.clock. Not in the document.';
comment on column healthlab.orders.member is 'The order as its transaction shows it.';
comment on column healthlab.orders.doc is
	'The order as it was written, encrypted, but for what its transaction and the lab_ columns say.';
comment on column healthlab.orders.later_due is
	'When something is to happen by itself: a message to the patient, the next step of a simulation. Not in the document.';
comment on column healthlab.orders.later_lease is 'The end of the lease under which a process does what later_due is about, by healthlab.clock. Not in the document.';
comment on column healthlab.orders.visit_due is
	'When something is to be done about the order''s appointments. Not in the document.';
comment on column healthlab.orders.visit_lease is 'The end of the lease under which a process calls the provider, by healthlab.clock. Not in the document.';
comment on column healthlab.orders.hidden is 'The user is deleted, and can come back. Lists have no row of the order in order_search.';
create index orders_transaction on healthlab.orders (team_id, transaction_id);
create index orders_due on healthlab.orders (lab_due, order_id) where lab_due is not null;
create index orders_later on healthlab.orders (later_due, order_id) where later_due is not null;
create index orders_user on healthlab.orders (team_id, user_id, created_at desc, order_id) include (last_status);
create index orders_visit_due on healthlab.orders (visit_due, order_id) where visit_due is not null;

create table healthlab.order_search (
	team_id        uuid        not null,
	order_id       uuid        not null,
	user_id        uuid        not null,
	transaction_id uuid        not null,
	created_at     timestamptz not null,
	updated_at     timestamptz not null,
	event_at       timestamptz not null,
	tokens         bigint[]    not null default '{}',
	sort_name      bytea       not null default '',
	last_status    text        collate "C" not null,
	method         text        collate "C" not null,
	interpretation text        collate "C",
	activate_by    date,
	constraint order_search_pkey primary key (team_id, order_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01);
comment on table healthlab.order_search is
	'What lists filter and sort by, of each order that is not hidden, as it is in the order: a narrow table, so that lists do not read documents.';
comment on constraint order_search_pkey on healthlab.order_search is 'An order has at most one row.';
create index order_search_created on healthlab.order_search (team_id, created_at desc, order_id);
create index order_search_updated on healthlab.order_search (team_id, updated_at);
create index order_search_status on healthlab.order_search (team_id, last_status, order_id);
create index order_search_status_down on healthlab.order_search (team_id, last_status desc, order_id);
create index order_search_coarse on healthlab.order_search (team_id, interpretation, last_status, activate_by, method);
create index order_search_activate on healthlab.order_search (team_id, activate_by) where activate_by is not null;
create index order_search_user on healthlab.order_search (team_id, user_id);
create index order_search_transaction on healthlab.order_search (team_id, transaction_id);
create index order_search_tokens on healthlab.order_search using gin (tokens);

create table healthlab.order_transaction (
	team_id        uuid   not null,
	transaction_id uuid   not null,
	event_id       bigint generated always as identity (increment by 200),
	constraint order_transaction_pkey primary key (team_id, transaction_id)
);
comment on table healthlab.order_transaction is
	'A row to lock while orders of one transaction change, so that they do it one after another.';
comment on constraint order_transaction_pkey on healthlab.order_transaction is 'A transaction is one team''s.';
comment on column healthlab.order_transaction.event_id is
	'The ids of events that the latest change might use begin here. Drawn under the lock from a counter over all teams, which no transaction waits for.';

create table healthlab.order_key (
	team_id       uuid        not null,
	key_hash      bytea       not null,
	order_id      uuid        not null,
	fingerprint   bytea       not null,
	claimed_until timestamptz,
	answer        bytea,
	user_id       uuid,
	forget_at     timestamptz not null,
	constraint order_key_pkey primary key (team_id, key_hash),
	constraint order_key_answer check (answer is null or claimed_until is null)
);
comment on table healthlab.order_key is 'Idempotency keys, and what the requests that had them were answered.';
comment on constraint order_key_pkey on healthlab.order_key is
	'The hash is the SHA-256 of endpoint and key, which may hold any bytes.';
comment on constraint order_key_answer on healthlab.order_key is 'An answered request has no claim.';
comment on column healthlab.order_key.claimed_until is 'The end of the claim of the key, by healthlab.clock; null without a claim.';
comment on column healthlab.order_key.user_id is 'Whom the answer is about; null for the order''s user, or none.';
comment on column healthlab.order_key.forget_at is 'Until when the answer is kept; without one, a day after the claim ended.';
create index order_key_order on healthlab.order_key (team_id, order_id);
create index order_key_user on healthlab.order_key (user_id) where user_id is not null;
create index order_key_forget on healthlab.order_key (forget_at);

create table healthlab.order_feed (
	team_id uuid not null,
	lab     text collate "C" not null,
	cursor  text not null,
	until   timestamptz,
	constraint order_feed_pkey primary key (team_id, lab),
	constraint order_feed_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.order_feed is 'How far the messages of each lab were read, and who reads them. A few rows.';
comment on constraint order_feed_pkey on healthlab.order_feed is 'A lab has one feed.';
comment on constraint order_feed_team on healthlab.order_feed is
	'A feed has the orders of all teams, so it is no team''s: only work over all teams sees it.';
comment on column healthlab.order_feed.until is 'The end of the lease of the reader, by healthlab.clock; null without a lease.';

create table healthlab.lab_test (
	team_id     uuid        not null,
	lab_test_id uuid        not null,
	slug        text        collate "C" not null,
	name        text        not null,
	description text        not null,
	method      text        collate "C" not null,
	sample_type text        collate "C" not null,
	fasting     boolean     not null,
	status      text        collate "C" not null,
	lab_id      bigint      not null,
	marker_ids  bigint[],
	created_at  timestamptz not null,
	updated_at  timestamptz not null,
	auto        boolean     not null default false,
	price       text        collate "C",
	constraint lab_test_pkey primary key (team_id, lab_test_id),
	constraint lab_test_id unique (lab_test_id)
);
comment on table healthlab.lab_test is 'Lab tests of teams'' own: what the team chose. Labs and markers are the catalogue''s.';
comment on constraint lab_test_pkey on healthlab.lab_test is 'A team reads its own tests, all of them.';
comment on constraint lab_test_id on healthlab.lab_test is 'The id of a test is unique over all teams.';
comment on column healthlab.lab_test.marker_ids is 'In the order in which the team chose them.';
comment on column healthlab.lab_test.auto is 'The service built it.';
comment on column healthlab.lab_test.price is
	'What it costs, in major units, with all digits; null where that follows from the markers.';
create index lab_test_made on healthlab.lab_test (team_id, auto, created_at, lab_test_id);
comment on index healthlab.lab_test_made is 'Lists show what teams made, or what was built for them, as it came to be.';

create table healthlab.user_info (
	team_id uuid  not null,
	user_id uuid  not null,
	doc     bytea not null,
	constraint user_info_pkey primary key (team_id, user_id)
);
comment on table healthlab.user_info is 'Demographics: one row for a user. Who adds an insurance record holds the user''s row.';
comment on constraint user_info_pkey on healthlab.user_info is 'Only the newest are kept.';

create table healthlab.insurance (
	team_id      uuid        not null,
	user_id      uuid        not null,
	insurance_id uuid        not null,
	is_primary   boolean     not null,
	valid_from   timestamptz not null,
	valid_until  timestamptz,
	doc          bytea       not null,
	constraint insurance_pkey primary key (team_id, user_id, insurance_id),
	constraint insurance_id unique (insurance_id),
	constraint insurance_validity check (valid_until > valid_from)
);
comment on table healthlab.insurance is
	'Insurance records. None is ever changed, but for the time when the next one took its place.';
comment on constraint insurance_pkey on healthlab.insurance is 'Records are spread by their user.';
comment on constraint insurance_id on healthlab.insurance is 'Orders name a record by its id.';
comment on constraint insurance_validity on healthlab.insurance is
	'The records of a user with one is_primary follow each other without gap or overlap.';
comment on column healthlab.insurance.valid_until is 'When the next record took its place; null for the one that is valid.';
create unique index insurance_valid on healthlab.insurance (team_id, user_id, is_primary) where valid_until is null;
comment on index healthlab.insurance_valid is 'One record of a kind is valid at a time.';

create table healthlab.payor (
	team_id    uuid        not null,
	payor_code text        collate "C" not null,
	created_at timestamptz not null,
	doc        json        not null,
	constraint payor_pkey primary key (team_id, payor_code)
);
comment on table healthlab.payor is 'Payors that a team made for itself.';
comment on constraint payor_pkey on healthlab.payor is 'A code means one payor of a team.';

create table healthlab.raw_result (
	team_id    uuid        not null,
	raw_id     uuid        not null,
	user_id    uuid,
	revision   bigint      not null,
	status     text        collate "C" not null,
	escalated  boolean     not null,
	decision   text        collate "C" not null,
	lab        text        collate "C" not null,
	tokens     bigint[]    not null default '{}',
	created_at timestamptz not null,
	doc        bytea       not null,
	constraint raw_result_pkey primary key (team_id, raw_id),
	constraint raw_result_status check (status in ('pending_customer_review', 'pending_ops_review', 'resolved'))
);
comment on table healthlab.raw_result is
	'Results under review, and what was decided: each as a document, and beside it what lists filter by. Who changes one, and orders with it, holds the orders'' transaction first.';
comment on constraint raw_result_pkey on healthlab.raw_result is
	'The id follows from the lab''s message, so that a repeated message is held once.';
comment on constraint raw_result_status on healthlab.raw_result is 'The statuses of a review.';
comment on column healthlab.raw_result.user_id is 'The user with whom it is erased; null if unknown.';
comment on column healthlab.raw_result.escalated is 'The team handed it to operations, and still sees it.';
comment on column healthlab.raw_result.tokens is 'What the result is found by, as in orders.';
create index raw_result_created on healthlab.raw_result (team_id, created_at desc, raw_id);
create index raw_result_user on healthlab.raw_result (user_id) where user_id is not null;

create table healthlab.result_trial (
	team_id  uuid  not null,
	trial_id uuid  not null,
	key_hash bytea not null,
	due_at   timestamptz,
	doc      bytea not null,
	constraint result_trial_pkey primary key (team_id, trial_id),
	constraint result_trial_key unique (team_id, key_hash)
);
comment on table healthlab.result_trial is 'Test runs of the queue of results under review, in a sandbox.';
comment on constraint result_trial_pkey on healthlab.result_trial is 'Runs are spread by their team.';
comment on constraint result_trial_key on healthlab.result_trial is
	'One key means one run of a team. The hash is the SHA-256 of the key.';
comment on column healthlab.result_trial.due_at is
	'When it is to be worked on; a claim moves it to the end of its lease. Null once it has ended. Not in the document.';
create index result_trial_due on healthlab.result_trial (due_at, trial_id) where due_at is not null;

create table healthlab.order_hold (
	team_id  uuid not null,
	name     text collate "C" not null,
	order_id uuid not null,
	constraint order_hold_pkey primary key (team_id, name)
);
comment on table healthlab.order_hold is
	'What only one order of a team can have: a booking key, and a provider''s next visit to a patient.';
comment on constraint order_hold_pkey on healthlab.order_hold is 'Of two orders that want the same, one gets it.';
create index order_hold_order on healthlab.order_hold (team_id, order_id);

create table healthlab.psc_center (
	team_id      uuid             not null,
	lab_id       integer          not null,
	site_code    text             collate "C" not null,
	active       boolean          not null,
	cell         integer          not null,
	x            double precision not null,
	y            double precision not null,
	z            double precision not null,
	capabilities text[]           collate "C" not null,
	doc          json             not null,
	constraint psc_center_pkey primary key (team_id, lab_id, site_code),
	constraint psc_center_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.psc_center is 'Patient service centers: each as a document, and beside it what is searched.';
comment on constraint psc_center_pkey on healthlab.psc_center is 'A lab gives each of its centers a code.';
comment on constraint psc_center_team on healthlab.psc_center is
	'Centers are the labs'', so they are no team''s: only work over all teams sees them.';
comment on column healthlab.psc_center.cell is 'The field of a grid over the earth, a degree by a degree, that the center is in.';
comment on column healthlab.psc_center.x is
	'With y and z: the place on a sphere of radius 1. The straight line between two is the longer the farther they are apart.';
create index psc_center_cell on healthlab.psc_center (team_id, lab_id, cell) where active;

create table healthlab.slot_cache (
	team_id uuid        not null,
	lab     text        collate "C" not null,
	site    text        collate "C" not null,
	at      timestamptz not null,
	slots   json        not null,
	constraint slot_cache_pkey primary key (team_id, lab, site),
	constraint slot_cache_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.slot_cache is 'The free slots of centers, as of the last request to their labs.';
comment on constraint slot_cache_pkey on healthlab.slot_cache is 'Of each center, the latest answer is kept.';
comment on constraint slot_cache_team on healthlab.slot_cache is
	'What is free is the same for every team: only work over all teams sees it.';

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'orders', 'order_search', 'order_transaction', 'order_key', 'order_feed', 'lab_test', 'user_info', 'insurance',
			'payor', 'raw_result', 'result_trial', 'order_hold', 'psc_center', 'slot_cache'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
