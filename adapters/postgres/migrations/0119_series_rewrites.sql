-- +goose Up
-- Folding reads and computes before it locks the row of a series, so that nobody who appends
-- waits for that. This tells it whether what it read is still so.

-- Not bigint: behind the tail, whose length changes with every small batch, only a column
-- that is not aligned stays where it was from the end, and is not logged again.
alter table healthlab.series add column rewrites numeric not null default 0;
comment on column healthlab.series.rewrites is
	'How many transactions have changed its chunks or taken segments away, otherwise than by appending.';
