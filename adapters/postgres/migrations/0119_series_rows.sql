-- +goose Up
-- Folding reads and computes before it locks the row of a series, so that nobody who appends
-- waits for that; rewrites tells it whether what it read is still so. A process that remembers
-- the number of a series finds its row by that, which takes the server less than its key does;
-- the mark says that the number still means the same series: a database may be restored, and a
-- user who was erased may come again.

-- Not bigint: behind the tail, whose length changes with every small batch, only a column that
-- is not aligned stays where it was from the end, and is not logged again.
alter table healthlab.series
	add column rewrites numeric not null default 0,
	add column mark uuid;
alter table healthlab.series alter column mark set default gen_random_uuid();
comment on column healthlab.series.rewrites is
	'How many transactions have changed its chunks or taken segments away, otherwise than by appending.';
comment on column healthlab.series.mark is
	'Drawn with the row. Null in rows of before, until the next write that changes more than the tail.';
