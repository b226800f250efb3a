-- +goose Up
-- Who read and wrote whose data.

create table healthlab.access_head (
	team_id   uuid   not null,
	seq       bigint not null,
	hash      bytea  not null,
	signature bytea  not null,
	constraint access_head_pkey primary key (team_id)
);
comment on table healthlab.access_head is 'The end of each team''s chain. A transaction that appends locks the row.';
comment on column healthlab.access_head.signature is 'Of the head, by the key of the log. Lines that are missing up to seq were removed.';
comment on constraint access_head_pkey on healthlab.access_head is 'A team has one chain.';

create table healthlab.access_line (
	team_id    uuid        not null,
	seq        bigint      not null,
	at         timestamptz not null,
	actor      text        not null,
	person_id  uuid,
	kind       text        not null,
	operation  text        not null,
	status     int         not null,
	request_id text        not null,
	address    text        not null,
	prev       bytea       not null,
	hash       bytea       not null,
	constraint access_line_pkey primary key (team_id, seq)
);
comment on table healthlab.access_line is 'Accesses to data of persons. Lines are added and, after their retention, removed; never changed. They stay when a person is erased: they hold ids and no value.';
comment on constraint access_line_pkey on healthlab.access_line is 'Numbers of a chain have no gaps.';
comment on column healthlab.access_line.person_id is 'The user; null if the access failed before the user was known.';
comment on column healthlab.access_line.hash is 'SHA-256 of the canonical form, which has prev in it.';
create index access_line_person on healthlab.access_line (team_id, person_id, seq);

create table healthlab.access_anchor (
	team_id   uuid        not null,
	seq       bigint      not null,
	hash      bytea       not null,
	at        timestamptz not null,
	key_id    text        not null,
	signature bytea       not null,
	constraint access_anchor_pkey primary key (team_id, seq)
);
comment on table healthlab.access_anchor is 'Signed ends of chains.';
comment on constraint access_anchor_pkey on healthlab.access_anchor is 'A line is signed once.';

-- Row-level security: the setting healthlab.team names the team of the transaction; 'all' is for
-- work over all teams. The owner of the tables and superusers are exempt.
-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array[
			'access_head', 'access_line', 'access_anchor'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
