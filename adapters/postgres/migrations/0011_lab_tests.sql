-- +goose Up
-- Lab tests that teams make of the catalogue's markers.

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
	constraint lab_test_pkey primary key (team_id, lab_test_id),
	constraint lab_test_id unique (lab_test_id)
);
comment on table healthlab.lab_test is 'Lab tests of teams'' own: what the team chose. Labs and markers are the catalogue''s.';
comment on constraint lab_test_pkey on healthlab.lab_test is 'A team reads its own tests, all of them.';
comment on constraint lab_test_id on healthlab.lab_test is 'The id of a test is unique over all teams.';
comment on column healthlab.lab_test.marker_ids is 'In the order in which the team chose them.';

alter table healthlab.lab_test enable row level security;
create policy team_only on healthlab.lab_test
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.lab_test is 'Rows of the team that the setting healthlab.team names, and of no other.';
