-- +goose Up
-- Most batches are one update of one row: whether the user is live and whether a continuous
-- query waits was asked of two other tables each time, and is kept in the row now.

alter table healthlab.series add column direct boolean not null default false;
comment on column healthlab.series.direct is
	'Batches may be appended without a look at other tables: the user is live, and no continuous query of the team reads the resource. Written true by who holds the row and looks after that; taken back by the deletion of the user and by the backfill of a query, before anything relies on it.';
