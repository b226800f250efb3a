-- +goose Up
-- The smallest batches wait in the row of their series: one update, no other table, and
-- no index to change. Full tails move into segments as they are.

alter table healthlab.series
	add column tail_at bigint,
	add column tail_closed boolean not null default false,
	add column tail bytea not null default '',
	drop constraint series_segments, -- the server reads a check anew for every statement that writes
	alter column tail set storage main,
	set (fillfactor = 50);
comment on column healthlab.series.tail is
	'Small batches that were appended last, the newest first: the log of the server takes what differs from the row before, up to where all is the same again. Each is its length in 2 bytes and its encoded samples.';
comment on column healthlab.series.tail_at is 'The time of the first sample of the tail.';
comment on column healthlab.series.tail_closed is
	'The tail was full and is a segment now. What comes next begins another; until then the bytes mean nothing.';
comment on column healthlab.segment.header is 'Empty if the data is a full tail of the series.';

-- +goose StatementBegin
create function healthlab.split_tail(tail bytea) returns setof bytea
language plpgsql immutable strict parallel safe as $$
declare
	at integer := 0;
	size integer;
begin
	while at < length(tail) loop
		size := healthlab.little_endian(tail, at, 2);
		return next substr(tail, at + 3, size);
		at := at + 2 + size;
	end loop;
end
$$;
-- +goose StatementEnd
comment on function healthlab.split_tail is 'The encoded batches of a tail, as decode_samples takes them.';

create or replace view healthlab.samples with (security_invoker = true) as
select s.team_id, s.user_id, s.resource, s.provider, s.source_type, s.part,
	'epoch'::timestamptz + x.at * interval '1 microsecond' as at,
	'epoch'::timestamptz + x.end_at * interval '1 microsecond' as end_at,
	x.value, x.value2, x.attributes
from healthlab.series s
cross join lateral (
	select distinct on (d.at) d.at, d.end_at, d.value, d.value2, d.attributes
	from (
		select c.data, -1::bigint as seq from healthlab.chunk c where c.user_id = s.user_id and c.series = s.series
		union all
		select g.data, g.seq from healthlab.segment g where g.user_id = s.user_id and g.series = s.series and g.header <> ''
		union all
		select piece.data, g.seq from healthlab.segment g cross join lateral healthlab.split_tail(g.data) piece (data)
		where g.user_id = s.user_id and g.series = s.series and g.header = ''
		union all
		select piece.data, s.seq + 1 from healthlab.split_tail(s.tail) piece (data) where not s.tail_closed
	) stored
	cross join lateral healthlab.decode_samples(stored.data) d
	order by d.at, stored.seq desc
) x;
