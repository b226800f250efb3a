-- +goose Up
-- Lab orders, the idempotency keys of those who place them, and how far the feeds of
-- the labs were read.

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
	patient_name   text        collate "C" not null,
	sort_name      text        collate "C" not null,
	recipient      text        collate "C" not null,
	birth_date     text        collate "C" not null,
	lab_due        timestamptz,
	lab_lease      timestamptz,
	lab_attempts   integer     not null,
	lab_started    boolean     not null,
	member         json        not null,
	doc            json        not null,
	constraint orders_pkey primary key (team_id, order_id),
	constraint orders_id unique (order_id),
	constraint orders_sample unique (sample_id)
);
comment on table healthlab.orders is
	'Lab orders: each as a document, and beside it what lists filter and sort by. Who changes one holds the row of its transaction.';
comment on constraint orders_pkey on healthlab.orders is 'Orders are spread by their team.';
comment on constraint orders_id on healthlab.orders is 'The id of an order is unique over all teams.';
comment on constraint orders_sample on healthlab.orders is 'The id of a sample is unique over all teams: a lab that reports one means one order.';
comment on column healthlab.orders.status is 'The low-level status of the latest event; empty before the first.';
comment on column healthlab.orders.last_status is 'The full status of the latest event.';
comment on column healthlab.orders.patient_name is 'First and last name in lower case, for looking for a part of it; empty if there is none.';
comment on column healthlab.orders.sort_name is 'Last and first name in lower case.';
comment on column healthlab.orders.recipient is 'Who receives the kit, in lower case.';
comment on column healthlab.orders.birth_date is 'YYYY-MM-DD, for looking for its beginning; empty if nobody knows.';
comment on column healthlab.orders.lab_due is 'When the lab is to be told next; moved to the end of the lease by whoever claims the order. Not in the document.';
comment on column healthlab.orders.member is 'The order as its transaction shows it.';
comment on column healthlab.orders.doc is 'The order as it was written, but for what its transaction and the lab_ columns say.';
create index orders_created on healthlab.orders (team_id, created_at desc, order_id);
create index orders_status on healthlab.orders (team_id, status);
create index orders_transaction on healthlab.orders (team_id, transaction_id);
create index orders_user on healthlab.orders (user_id);
create index orders_due on healthlab.orders (lab_due, order_id) where lab_due is not null;

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
	'The ids of events that the latest change might use begin here. Drawn under the lock from a counter over all teams, which nobody waits for.';

create table healthlab.order_key (
	team_id       uuid        not null,
	key_hash      bytea       not null,
	order_id      uuid        not null,
	fingerprint   bytea       not null,
	claimed_until timestamptz,
	answer        bytea,
	forget_at     timestamptz not null,
	constraint order_key_pkey primary key (team_id, key_hash),
	constraint order_key_answer check (answer is null or claimed_until is null)
);
comment on table healthlab.order_key is 'Idempotency keys, and what the requests that had them were answered.';
comment on constraint order_key_pkey on healthlab.order_key is 'The hash is the SHA-256 of endpoint and key, which may hold any bytes.';
comment on constraint order_key_answer on healthlab.order_key is 'Nobody works on what is answered.';
comment on column healthlab.order_key.claimed_until is 'Until when a caller has the key; null if nobody has.';
comment on column healthlab.order_key.forget_at is 'Until when the answer is kept; without one, a day after the claim ended.';
create index order_key_order on healthlab.order_key (team_id, order_id);
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
comment on constraint order_feed_team on healthlab.order_feed is 'A feed has the orders of all teams, so it is no team''s: only work over all teams sees it.';
comment on column healthlab.order_feed.until is 'Until when somebody reads; null if nobody does.';

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['orders', 'order_transaction', 'order_key', 'order_feed'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
