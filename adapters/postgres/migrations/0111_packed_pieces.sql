-- +goose Up
-- The head of a piece of a tail, which is most of a small batch and most of it zeros, is
-- stored without them: 22 bytes for a single sample instead of 43. Readers of older versions do not
-- know such pieces.

-- +goose StatementBegin
create function healthlab.unpack_piece(piece bytea) returns bytea
language plpgsql immutable strict parallel safe as $$
declare
	head bytea := decode('01' || repeat('00', 35), 'hex');
	used integer := 6;
begin
	for i in 0 .. 34 loop
		if get_bit(piece, 8 + i) = 1 then
			head := set_byte(head, i + 1, get_byte(piece, used));
			used := used + 1;
		end if;
	end loop;
	return head || substr(piece, used + 1);
end
$$;
-- +goose StatementEnd
comment on function healthlab.unpack_piece is
	'The encoded batch of a packed piece: a 2; 40 bits that say which of the bytes 1 to 35 are not zero; those bytes; what follows byte 35.';

-- +goose StatementBegin
create or replace function healthlab.split_tail(tail bytea) returns setof bytea
language plpgsql immutable strict parallel safe as $$
declare
	at integer := 0;
	size integer;
	piece bytea;
begin
	while at < length(tail) loop
		size := healthlab.little_endian(tail, at, 2);
		piece := substr(tail, at + 3, size);
		if get_byte(piece, 0) = 2 then
			piece := healthlab.unpack_piece(piece);
		end if;
		return next piece;
		at := at + 2 + size;
	end loop;
end
$$;
-- +goose StatementEnd
