-- +goose Up
-- How lists find names without reading the orders, whatever else they ask for: in a narrow
-- table of all that a list filters and sorts by.
drop table healthlab.order_search;

create table healthlab.order_search (
	team_id        uuid        not null,
	order_id       uuid        not null,
	user_id        uuid        not null,
	transaction_id uuid        not null,
	created_at     timestamptz not null,
	updated_at     timestamptz not null,
	event_at       timestamptz not null,
	patient_name   text        collate "C" not null,
	sort_name      text        collate "C" not null,
	recipient      text        collate "C" not null,
	birth_date     text        collate "C" not null,
	last_status    text        collate "C" not null,
	method         text        collate "C" not null,
	interpretation text        collate "C",
	activate_by    date,
	constraint order_search_pkey primary key (team_id, order_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01);
comment on table healthlab.order_search is
	'What lists filter and sort by, of each order, as it is in the order. No index has what changes with the status, so that a change stays on its page and touches none.';
comment on constraint order_search_pkey on healthlab.order_search is 'Each order has one row.';

insert into healthlab.order_search (team_id, order_id, user_id, transaction_id, created_at, updated_at, event_at, patient_name,
	recipient, birth_date, last_status, method, interpretation, activate_by, sort_name)
select team_id, order_id, user_id, transaction_id, created_at, updated_at, event_at, patient_name,
	recipient, birth_date, last_status, method, interpretation, activate_by, sort_name
from healthlab.orders
order by team_id, created_at;

create function healthlab.order_grams(team uuid, patient text, recipient text, birth text) returns integer[]
language sql immutable parallel safe cost 1000 as $$
select coalesce(array_agg(('x' || encode(substr(sha256(uuid_send(team) || convert_to(g.text, 'UTF8')), 1, 4), 'hex'))::bit(32)::integer), '{}')
from (
	select substr(n.name, at, long) from (select patient union select recipient) n (name), generate_series(1, 3) long,
		generate_series(1, length(n.name) - long + 1) at
	union all
	select '#' || left(birth, long) from generate_series(1, length(birth)) long
) g (text) $$;
comment on function healthlab.order_grams is
	'What an order is found by: every one, two and three letters in a row of the patient''s and the recipient''s names, and every beginning of the birth date after a #: the first four bytes of the SHA-256 of the team''s id and the text. Two texts may share a number, so what is found is compared again. It takes too long to be asked of every order.';

create index order_search_grams on healthlab.order_search
	using gin (healthlab.order_grams(team_id, patient_name, recipient, birth_date));

-- Texts that many orders have are counted here. Alike entries are kept as one.
create index order_search_texts on healthlab.order_search (team_id, patient_name, recipient, birth_date);

alter table healthlab.order_search enable row level security;
create policy team_only on healthlab.order_search
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.order_search is 'Rows of the team that the setting healthlab.team names, and of no other.';

-- These have the names beside them too, so that a common text and a filter are answered
-- by one index, and those by name what else most lists filter by.
drop index healthlab.orders_status, healthlab.orders_status_down, healthlab.orders_name, healthlab.orders_name_down,
	healthlab.orders_interpretation, healthlab.orders_activate;
create index orders_status on healthlab.orders (team_id, last_status, order_id)
	include (method, interpretation, created_at, updated_at, activate_by, sort_name, patient_name, recipient, birth_date);
create index orders_status_down on healthlab.orders (team_id, last_status desc, order_id)
	include (method, interpretation, created_at, updated_at, activate_by, patient_name, recipient, birth_date);
create index orders_name on healthlab.orders (team_id, (sort_name = ''), sort_name, order_id)
	include (patient_name, recipient, birth_date, created_at, updated_at, activate_by, last_status, method, interpretation);
create index orders_name_down on healthlab.orders (team_id, (sort_name = ''), sort_name desc, order_id)
	include (patient_name, recipient, birth_date, created_at, updated_at, activate_by, last_status, method, interpretation);
create index orders_interpretation on healthlab.orders (team_id, interpretation, order_id)
	include (created_at, last_status, sort_name, patient_name, recipient, birth_date) where interpretation <> 'normal';
create index orders_activate on healthlab.orders (team_id, activate_by, order_id)
	include (created_at, last_status, sort_name, patient_name, recipient, birth_date) where activate_by is not null;
