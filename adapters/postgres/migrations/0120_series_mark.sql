-- +goose Up
-- A process that remembers the number of a series finds its row by that, which takes the
-- server less than its key does. The mark says that the number still means the same series:
-- a database may be restored, and a user who was erased may come again.

alter table healthlab.series add column mark uuid;
alter table healthlab.series alter column mark set default gen_random_uuid();
comment on column healthlab.series.mark is
	'Drawn with the row. Null in rows of before, until the next write that changes more than the tail.';
