-- +goose Up
-- Lab tests that the service built for orders of several tests, or of markers on their own,
-- are kept beside those that teams made.

alter table healthlab.lab_test add column auto boolean not null default false, add column price text collate "C";
comment on column healthlab.lab_test.auto is 'The service built it.';
comment on column healthlab.lab_test.price is 'What it costs, in major units, with all digits; null where that follows from the markers.';

create index lab_test_made on healthlab.lab_test (team_id, auto, created_at, lab_test_id);
comment on index healthlab.lab_test_made is 'Lists show what teams made, or what was built for them, as it came to be.';
