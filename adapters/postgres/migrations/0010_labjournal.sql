-- +goose Up
-- The messages to and from laboratories.

create table healthlab.lab_journal (
	team_id    uuid   not null,
	lab        text   collate "C" not null,
	deliveries bigint not null default 0,
	messages   bigint not null default 0,
	constraint lab_journal_pkey primary key (team_id, lab),
	constraint lab_journal_team check (team_id = '00000000-0000-0000-0000-000000000000')
);
comment on table healthlab.lab_journal is 'The last places of each laboratory''s journal. A transaction that takes a delivery locks the row. team_id is zero.';
comment on constraint lab_journal_pkey on healthlab.lab_journal is 'A laboratory has one journal.';
comment on constraint lab_journal_team on healthlab.lab_journal is 'A laboratory serves all teams.';

create table healthlab.lab_record (
	team_id uuid  not null,
	user_id uuid  not null,
	lab     text  collate "C" not null,
	number  text  collate "C" not null,
	doc     bytea not null,
	constraint lab_record_pkey primary key (team_id, user_id, lab, number),
	constraint lab_record_number unique (lab, number)
);
comment on table healthlab.lab_record is 'What the backend of a laboratory knows of one order.';
comment on constraint lab_record_pkey on healthlab.lab_record is 'Records of a person are found by the person.';
comment on constraint lab_record_number on healthlab.lab_record is 'A number names one order at a laboratory.';
comment on column healthlab.lab_record.doc is 'The document of the backend, encrypted with the key of the user.';

create table healthlab.lab_delivery (
	team_id uuid        not null,
	user_id uuid        not null,
	lab     text        collate "C" not null,
	key     text        collate "C" not null,
	number  text        collate "C" not null,
	place   bigint      not null,
	at      timestamptz not null,
	review  text        not null,
	raw     bytea       not null,
	constraint lab_delivery_pkey primary key (team_id, user_id, lab, key),
	constraint lab_delivery_key unique (lab, key)
);
comment on table healthlab.lab_delivery is 'Messages that came in, of the user of an order, or of the team that reviews them with a zero user_id. A zero team_id is the operator.';
comment on constraint lab_delivery_pkey on healthlab.lab_delivery is 'Messages about a person are found by the person.';
comment on constraint lab_delivery_key on healthlab.lab_delivery is 'A repeated message is taken once.';
comment on column healthlab.lab_delivery.number is 'The order that it is kept for; empty for none.';
comment on column healthlab.lab_delivery.place is 'Place among the messages of the laboratory, from 1.';
comment on column healthlab.lab_delivery.review is 'The reason for review; empty if it is not under review.';
comment on column healthlab.lab_delivery.raw is 'The message, encrypted with the key of the user or team; empty if it is kept for no order and under no review.';
create index lab_delivery_number on healthlab.lab_delivery (lab, number, place);
create index lab_delivery_review on healthlab.lab_delivery (lab, place) where review <> '';

create table healthlab.lab_message (
	team_id uuid   not null,
	user_id uuid   not null,
	lab     text   collate "C" not null,
	place   bigint not null,
	doc     bytea  not null,
	constraint lab_message_pkey primary key (team_id, user_id, lab, place),
	constraint lab_message_place unique (lab, place)
);
comment on table healthlab.lab_message is 'The feed of a laboratory to the orders. user_id is zero if the person is not known.';
comment on constraint lab_message_pkey on healthlab.lab_message is 'Messages about a person are found by the person.';
comment on constraint lab_message_place on healthlab.lab_message is 'Places are in the order of the commits.';
comment on column healthlab.lab_message.doc is 'The message, encrypted with the key of the user, or of the team if the user is not known.';
create index lab_message_unknown on healthlab.lab_message (lab, place) where user_id = '00000000-0000-0000-0000-000000000000';

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['lab_journal', 'lab_record', 'lab_delivery', 'lab_message'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
