-- +goose Up
-- Views that show in plain SQL what the stored bytes say, for people with psql. They are
-- slower than the library by two orders of magnitude: filter by user, resource and time.

-- +goose StatementBegin
create function healthlab.little_endian(data bytea, at integer, width integer) returns bigint
language sql immutable strict parallel safe as $$
	select case width
		when 0 then 0
		when 1 then get_byte(data, at)::bigint
		when 2 then get_byte(data, at)::bigint | (get_byte(data, at + 1)::bigint << 8)
		when 4 then get_byte(data, at)::bigint | (get_byte(data, at + 1)::bigint << 8) | (get_byte(data, at + 2)::bigint << 16) | (get_byte(data, at + 3)::bigint << 24)
		else get_byte(data, at)::bigint | (get_byte(data, at + 1)::bigint << 8) | (get_byte(data, at + 2)::bigint << 16) | (get_byte(data, at + 3)::bigint << 24)
			| (get_byte(data, at + 4)::bigint << 32) | (get_byte(data, at + 5)::bigint << 40) | (get_byte(data, at + 6)::bigint << 48) | (get_byte(data, at + 7)::bigint << 56)
	end
$$;
-- +goose StatementEnd
comment on function healthlab.little_endian is 'The integer of 0, 1, 2, 4 or 8 bytes at a place; eight bytes are signed, fewer are not.';

-- +goose StatementBegin
create function healthlab.float_of_bits(bits bigint) returns double precision
language sql immutable strict parallel safe as $$
	select case when bits < 0 then -1.0::double precision else 1.0::double precision end
		* case when bits >> 52 & 2047 = 0
			then (bits & 4503599627370495)::double precision * power(2.0::double precision, -1074)
			else ((bits & 4503599627370495) + 4503599627370496)::double precision
				* power(2.0::double precision, (bits >> 52 & 2047)::double precision - 1075)
		end
$$;
-- +goose StatementEnd
comment on function healthlab.float_of_bits is 'The finite IEEE 754 number with these bits.';

-- +goose StatementBegin
create function healthlab.decode_number(data bytea, at integer, spec integer, base bigint, i integer) returns double precision
language sql immutable strict parallel safe as $$
	select case
		when spec >> 4 = 15 then healthlab.float_of_bits(healthlab.little_endian(data, at + i * 8, 8))
		-- Eight bytes wrap around: 2^64 is taken away until the sum is a bigint again.
		when spec & 15 = 8 then ((base::numeric + healthlab.little_endian(data, at + i * 8, 8)
				+ 27670116110564327424) % 18446744073709551616 - 9223372036854775808)::bigint::double precision
			/ (array[1, 10, 100, 1000, 10000])[(spec >> 4) + 1]
		else (base + healthlab.little_endian(data, at + i * (spec & 15), spec & 15))::double precision
			/ (array[1, 10, 100, 1000, 10000])[(spec >> 4) + 1]
	end
$$;
-- +goose StatementEnd
comment on function healthlab.decode_number is 'Value i of a column of values: a decimal as an integer above a base, or raw.';

-- +goose StatementBegin
create function healthlab.decode_attributes(data bytea, at integer, n integer,
	out first integer, out last integer, out attributes jsonb) returns setof record
language plpgsql immutable strict parallel safe as $$
declare
	names constant text[] := array['type', 'unit', 'app', 'sport', 'location', 'intensity',
		'delivery_mode', 'delivery_form', 'bolus_purpose', 'text', 'tags'];
	dictionary jsonb[] := '{}';
	entry jsonb;
	step integer := 0; -- what is read next: 0 the number of entries, 1 an entry, 2 the number of runs, 3 a run
	mask integer;
	field integer;
	entries bigint;
	runs bigint;
	number bigint;
	shift integer;
	which bigint;
	before integer := 0;
begin
	-- A varint is read in one place, by what it is read for.
	loop
		if step = 1 then
			mask := healthlab.little_endian(data, at, 2);
			at := at + 2;
			entry := '{}';
			for field in 0 .. 13 loop
				continue when mask >> field & 1 = 0;
				if field in (1, 2) then
					entry := entry || jsonb_build_object(case field when 1 then 'device' else 'workout' end,
						encode(substr(data, at + 1, 16), 'hex')::uuid);
					at := at + 16;
					continue;
				end if;
				number := 0;
				shift := 0;
				loop
					number := number | ((get_byte(data, at) & 127)::bigint << shift);
					shift := shift + 7;
					at := at + 1;
					exit when get_byte(data, at - 1) < 128;
				end loop;
				if field = 0 then -- zigzag
					entry := entry || jsonb_build_object('offset', (number >> 1) # -(number & 1));
				else
					entry := entry || jsonb_build_object(names[field - 2], convert_from(substr(data, at + 1, number::integer), 'UTF8'));
					at := at + number::integer;
				end if;
			end loop;
			dictionary := dictionary || entry;
			entries := entries - 1;
			if entries = 0 then
				if cardinality(dictionary) = 1 then
					first := 0;
					last := n - 1;
					attributes := entry;
					return next;
					return;
				end if;
				step := 2;
			end if;
			continue;
		end if;
		number := 0;
		shift := 0;
		loop
			number := number | ((get_byte(data, at) & 127)::bigint << shift);
			shift := shift + 7;
			at := at + 1;
			exit when get_byte(data, at - 1) < 128;
		end loop;
		if step = 0 then
			entries := number;
			step := 1;
		elsif step = 2 then
			runs := number;
			step := 3;
		elsif step = 3 then
			which := number;
			step := 4;
		else
			first := before;
			last := before + number - 1;
			attributes := dictionary[which + 1];
			return next;
			before := last + 1;
			runs := runs - 1;
			exit when runs = 0;
			step := 3;
		end if;
	end loop;
end
$$;
-- +goose StatementEnd
comment on function healthlab.decode_attributes is 'What the samples from first to last, counted from 0, carry besides time and value.';

-- +goose StatementBegin
create function healthlab.decode_samples(data bytea) returns table (
	at bigint, end_at bigint, value double precision, value2 double precision, attributes jsonb)
language plpgsql immutable strict parallel safe as $$
declare
	units constant bigint[] := array[1, 1000, 1000000, 60000000];
	n constant integer := healthlab.little_endian(data, 8, 4);
	unit constant bigint := units[(get_byte(data, 1) >> 4) + 1];
	width constant integer := get_byte(data, 1) & 15;
	value_spec constant integer := get_byte(data, 2);
	second_spec constant integer := get_byte(data, 3);
	end_spec constant integer := get_byte(data, 4);
	gaps constant integer := healthlab.little_endian(data, 6, 2);
	second_base bigint := 0;
	end_base bigint := 0;
	gap_at integer;
	delta_at integer;
	value_at integer;
	second_at integer;
	codes_at integer; -- of the ends
	attribute_at integer;
	place integer := 36;
begin
	if get_byte(data, 0) <> 1 then
		raise exception 'samples of format %, which these functions do not know', get_byte(data, 0);
	end if;
	if second_spec <> 255 then
		second_base := healthlab.little_endian(data, place, 8);
		place := place + 8;
	end if;
	if end_spec <> 255 then
		end_base := healthlab.little_endian(data, place, 8);
		place := place + 8;
	end if;
	gap_at := place;
	delta_at := gap_at + 12 * gaps;
	value_at := delta_at + (n - 1) * width;
	second_at := value_at + n * (value_spec & 15);
	codes_at := second_at + case when second_spec = 255 then 0 else n * (second_spec & 15) end;
	attribute_at := codes_at + case when end_spec = 255 then 0 else n * (end_spec & 15) end;
	return query
	with gap as (
		select healthlab.little_endian(data, gap_at + 12 * g, 4)::integer i, healthlab.little_endian(data, gap_at + 12 * g + 4, 8) extra
		from generate_series(0, gaps - 1) g
	), tick as (
		select s.i, (healthlab.little_endian(data, 12, 8) + coalesce(sum(case when s.i > 0 then
			healthlab.little_endian(data, 20, 8) + healthlab.little_endian(data, delta_at + (s.i - 1) * width, width)
			+ coalesce(gap.extra, 0) end) over (order by s.i), 0))::bigint * unit t
		from generate_series(0, n - 1) s (i) left join gap on gap.i = s.i
	)
	select tick.t,
		case
			when end_spec = 255 then null
			when get_byte(data, 5) = 0
			then tick.t + (end_base + healthlab.little_endian(data, codes_at + tick.i * (end_spec & 15), end_spec & 15)) * units[(end_spec >> 4) + 1]
			when healthlab.little_endian(data, codes_at + tick.i * (end_spec & 15), end_spec & 15) = 0 then null
			else tick.t + (end_base + healthlab.little_endian(data, codes_at + tick.i * (end_spec & 15), end_spec & 15) - 1) * units[(end_spec >> 4) + 1]
		end,
		healthlab.decode_number(data, value_at, value_spec, healthlab.little_endian(data, 28, 8), tick.i),
		case when second_spec = 255 then 0
			else healthlab.decode_number(data, second_at, second_spec, second_base, tick.i) end,
		a.attributes
	from healthlab.decode_attributes(data, attribute_at, n) a
	join tick on tick.i between a.first and a.last
	order by tick.t;
end
$$;
-- +goose StatementEnd
comment on function healthlab.decode_samples is
	'The samples of a chunk or segment of format 1. Times are microseconds since 1970; what a sample does not have is null, a second value 0.';

create view healthlab.samples with (security_invoker = true) as
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
		select g.data, g.seq from healthlab.segment g where g.user_id = s.user_id and g.series = s.series
	) stored
	cross join lateral healthlab.decode_samples(stored.data) d
	order by d.at, stored.seq desc
) x;
comment on view healthlab.samples is 'Every sample, as the library would read it. Filter by user_id and resource.';

create view healthlab.records with (security_invoker = true) as
select team_id, user_id, resource, id, provider, source_type, index_at, utc_offset,
	convert_from(doc, 'UTF8')::jsonb as doc, created_at, updated_at
from healthlab.record;
comment on view healthlab.records is 'Summaries and workout streams, with their JSON as JSON.';
