-- +goose Up
-- How lists of a million orders of one team find a page, and count, without reading the
-- orders: indexes that carry what is filtered and sorted by, and parts of names.

-- Lists count in the indexes alone where a vacuum has seen the orders.
alter table healthlab.orders set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01,
	autovacuum_analyze_scale_factor = 0.02);

-- What every filter needs: whatever no other index finds is looked for in this one.
drop index healthlab.orders_created;
create index orders_created on healthlab.orders (team_id, created_at desc, order_id)
	include (updated_at, event_at, last_status, method, interpretation, activate_by, patient_name, recipient, birth_date, sort_name);
drop index healthlab.orders_status;
create index orders_status on healthlab.orders (team_id, last_status, order_id) include (method, interpretation, created_at, sort_name);
create index orders_status_down on healthlab.orders (team_id, last_status desc, order_id) include (method, interpretation);
create index orders_updated on healthlab.orders (team_id, updated_at, order_id) include (created_at, last_status, sort_name);
create index orders_name on healthlab.orders (team_id, (sort_name = ''), sort_name, order_id) include (patient_name, recipient, birth_date);
create index orders_name_down on healthlab.orders (team_id, (sort_name = ''), sort_name desc, order_id) include (patient_name, recipient, birth_date);
create index orders_interpretation on healthlab.orders (team_id, interpretation, order_id) include (created_at, last_status, sort_name)
	where interpretation <> 'normal';
create index orders_activate on healthlab.orders (team_id, activate_by, order_id) include (created_at, last_status, sort_name)
	where activate_by is not null;
drop index healthlab.orders_user;
create index orders_user on healthlab.orders (team_id, user_id, created_at desc, order_id) include (last_status, sort_name);

create table healthlab.order_search (
	team_id      uuid        not null,
	order_id     uuid        not null,
	created_at   timestamptz not null,
	patient_name text        collate "C" not null,
	sort_name    text        collate "C" not null,
	recipient    text        collate "C" not null,
	birth_date   text        collate "C" not null,
	grams        integer[]   not null,
	constraint order_search_pkey primary key (team_id, order_id)
);
comment on table healthlab.order_search is
	'The names and the birth date of each order, as they are in the order, and what they are found by. Apart from the order, because it hardly ever changes.';
comment on constraint order_search_pkey on healthlab.order_search is 'Each order has one row.';
comment on column healthlab.order_search.grams is
	'Every one, two and three letters in a row of the patient''s and the recipient''s names, and every beginning of the birth date after a #: the first four bytes of the SHA-256 of the team''s id and the text. Two texts may share a number, so what is found is compared again.';

insert into healthlab.order_search (team_id, order_id, created_at, patient_name, sort_name, recipient, birth_date, grams)
select o.team_id, o.order_id, o.created_at, o.patient_name, o.sort_name, o.recipient, o.birth_date, coalesce(array_agg(distinct ('x' || encode(substr(sha256(uuid_send(o.team_id) || convert_to(g.text, 'UTF8')), 1, 4), 'hex'))::bit(32)::integer)
	filter (where g.text is not null), '{}')
from healthlab.orders o left join lateral (
	select substr(n.name, at, long) from (values (o.patient_name), (o.recipient)) n (name), generate_series(1, 3) long,
		generate_series(1, length(n.name) - long + 1) at
	union all
	select '#' || left(o.birth_date, long) from generate_series(1, length(o.birth_date)) long
) g (text) on true
group by o.team_id, o.order_id;

create index order_search_grams on healthlab.order_search using gin (grams);

alter table healthlab.order_search enable row level security;
create policy team_only on healthlab.order_search
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.order_search is 'Rows of the team that the setting healthlab.team names, and of no other.';
