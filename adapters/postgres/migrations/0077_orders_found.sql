-- +goose Up
-- How lists find names without reading the orders, whatever else they ask for: what names
-- are found by lies beside all that a list filters and sorts by.
alter table healthlab.order_search rename to order_search_before;
alter table healthlab.order_search_before rename constraint order_search_pkey to order_search_before_pkey;
drop index healthlab.order_search_grams;

create table healthlab.order_search (
	team_id        uuid        not null,
	order_id       uuid        not null,
	user_id        uuid        not null,
	transaction_id uuid        not null,
	created_at     timestamptz not null,
	updated_at     timestamptz not null,
	event_at       timestamptz not null,
	patient_name   text        collate "C" not null,
	recipient      text        collate "C" not null,
	birth_date     text        collate "C" not null,
	last_status    text        collate "C" not null,
	method         text        collate "C" not null,
	interpretation text        collate "C",
	activate_by    date,
	sort_name      text        collate "C" not null,
	grams          integer[]   not null,
	constraint order_search_pkey primary key (team_id, order_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01,
	autovacuum_analyze_scale_factor = 0.02);
comment on table healthlab.order_search is
	'What lists filter and sort by, of each order, as it is in the order, and what its names are found by. No index has what changes with the status, so that a change stays on its page and touches none.';
comment on constraint order_search_pkey on healthlab.order_search is 'Each order has one row.';
comment on column healthlab.order_search.grams is
	'Every one, two and three letters in a row of the patient''s and the recipient''s names, and every beginning of the birth date after a #: the first four bytes of the SHA-256 of the team''s id and the text. Two texts may share a number, so what is found is compared again.';

insert into healthlab.order_search (team_id, order_id, user_id, transaction_id, created_at, updated_at, event_at, patient_name,
	recipient, birth_date, last_status, method, interpretation, activate_by, sort_name, grams)
select team_id, order_id, o.user_id, o.transaction_id, o.created_at, o.updated_at, o.event_at, o.patient_name,
	o.recipient, o.birth_date, o.last_status, o.method, o.interpretation, o.activate_by, o.sort_name, b.grams
from healthlab.orders o join healthlab.order_search_before b using (team_id, order_id)
order by team_id, o.created_at;
drop table healthlab.order_search_before;

create index order_search_grams on healthlab.order_search using gin (grams);

-- Texts that many orders have are counted here. Alike entries are kept as one.
create index order_search_texts on healthlab.order_search (team_id, patient_name, recipient, birth_date);

alter table healthlab.order_search enable row level security;
create policy team_only on healthlab.order_search
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.order_search is 'Rows of the team that the setting healthlab.team names, and of no other.';

-- These have the names beside them too, so that a common text and a filter are answered
-- by one index.
drop index healthlab.orders_status, healthlab.orders_status_down, healthlab.orders_interpretation, healthlab.orders_activate;
create index orders_status on healthlab.orders (team_id, last_status, order_id)
	include (method, interpretation, created_at, sort_name, patient_name, recipient, birth_date);
create index orders_status_down on healthlab.orders (team_id, last_status desc, order_id)
	include (method, interpretation, patient_name, recipient, birth_date);
create index orders_interpretation on healthlab.orders (team_id, interpretation, order_id)
	include (created_at, last_status, sort_name, patient_name, recipient, birth_date) where interpretation <> 'normal';
create index orders_activate on healthlab.orders (team_id, activate_by, order_id)
	include (created_at, last_status, sort_name, patient_name, recipient, birth_date) where activate_by is not null;
