-- +goose Up
-- Personal data is encrypted by the service, with a key for each person: documents, bodies of
-- events and answers are bytes. Names and birth dates are found by keyed tokens.

alter table healthlab.orders
	drop column patient_name, drop column sort_name, drop column recipient, drop column birth_date,
	add column tokens bigint[] not null default '{}',
	add column sort_name bytea not null default '',
	alter column doc type bytea using convert_to(doc::text, 'UTF8');
comment on column healthlab.orders.doc is
	'The order as it was written, encrypted, but for what its transaction and the lab_ columns say.';
comment on column healthlab.orders.tokens is
	'What the order is found by: a keyed hash of each word of the names, each beginning of one, and of the year, month and day of birth.';
comment on column healthlab.orders.sort_name is 'Last and first name in lower case, encrypted; empty if there is none.';
create index orders_user on healthlab.orders (team_id, user_id, created_at desc, order_id) include (last_status);

alter table healthlab.order_search
	drop column patient_name, drop column sort_name, drop column recipient, drop column birth_date,
	add column tokens bigint[] not null default '{}',
	add column sort_name bytea not null default '';
create index order_search_tokens on healthlab.order_search using gin (tokens);

alter table healthlab.raw_result
	drop column name, drop column birth_date,
	add column tokens bigint[] not null default '{}',
	alter column doc type bytea using convert_to(doc::text, 'UTF8');
comment on column healthlab.raw_result.tokens is 'What the result is found by, as in orders.';

alter table healthlab.user_info alter column doc type bytea using convert_to(doc::text, 'UTF8');
alter table healthlab.insurance alter column doc type bytea using convert_to(doc::text, 'UTF8');
alter table healthlab.result_trial alter column doc type bytea using convert_to(doc::text, 'UTF8');
alter table healthlab.parsing_job alter column doc type bytea using convert_to(doc::text, 'UTF8');

alter table healthlab.users alter column birth_date type bytea using convert_to(birth_date::text, 'UTF8');
comment on column healthlab.users.birth_date is 'YYYY-MM-DD, encrypted.';

comment on column healthlab.record.digest is
	'HMAC-SHA-256 of doc and raw with the key of the user, to know a repeated upload without reading them back.';
