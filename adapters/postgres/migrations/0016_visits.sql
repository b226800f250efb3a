-- +goose Up
-- Appointments of lab orders, patient service centers, and what was free at them.

alter table healthlab.orders add column visit_due timestamptz, add column visit_lease timestamptz;
comment on column healthlab.orders.visit_due is
	'When something is to be done about the order''s appointments; moved to the end of the lease by whoever claims the order. Not in the document.';
comment on column healthlab.orders.visit_lease is 'Until when somebody may be talking to a provider. Not in the document.';
create index orders_visit_due on healthlab.orders (visit_due, order_id) where visit_due is not null;

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
	team_id      uuid    not null,
	lab_id       integer not null,
	site_code    text    collate "C" not null,
	active       boolean not null,
	cell         integer not null,
	x            double precision not null,
	y            double precision not null,
	z            double precision not null,
	capabilities text[]  collate "C" not null,
	doc          json    not null,
	constraint psc_center_pkey primary key (team_id, lab_id, site_code),
	constraint psc_center_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.psc_center is 'Patient service centers: each as a document, and beside it what is searched.';
comment on constraint psc_center_pkey on healthlab.psc_center is 'A lab gives each of its centers a code.';
comment on constraint psc_center_team on healthlab.psc_center is 'Centers are the labs'', so they are no team''s: only work over all teams sees them.';
comment on column healthlab.psc_center.cell is 'The field of a grid over the earth, a degree by a degree, that the center is in.';
comment on column healthlab.psc_center.x is 'With y and z: the place on a sphere of radius 1. The straight line between two is the longer the farther they are apart.';
create index psc_center_cell on healthlab.psc_center (team_id, lab_id, cell) where active;

create table healthlab.slot_cache (
	team_id uuid not null,
	lab     text collate "C" not null,
	site    text collate "C" not null,
	at      timestamptz not null,
	slots   json not null,
	constraint slot_cache_pkey primary key (team_id, lab, site),
	constraint slot_cache_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.slot_cache is 'What was free at centers when their labs were last asked.';
comment on constraint slot_cache_pkey on healthlab.slot_cache is 'Of each center, the latest answer is kept.';
comment on constraint slot_cache_team on healthlab.slot_cache is 'What is free is the same for every team: only work over all teams sees it.';

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['order_hold', 'psc_center', 'slot_cache'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
