-- +goose Up
-- What keeps grants alive.

alter table healthlab.link_credential
	add column grant_id     uuid    not null default gen_random_uuid(),
	add column version      bigint  not null default 0,
	add column previous_key text,
	add column previous_box bytea,
	add column leased_until timestamptz,
	add column failures     integer not null default 0,
	add column retry_at     timestamptz,
	add constraint link_credential_previous check ((previous_key is null) = (previous_box is null));
alter table healthlab.link_credential alter column grant_id drop default;
comment on constraint link_credential_previous on healthlab.link_credential is 'What is sealed names its key.';
comment on column healthlab.link_credential.grant_id is 'Another one after every link.';
comment on column healthlab.link_credential.version is 'How often the secret was renewed.';
comment on column healthlab.link_credential.previous_box is 'The secret before the last renewal; null if there was none.';
comment on column healthlab.link_credential.leased_until is 'Until when somebody may be asking for a new secret; null if nobody is.';
comment on column healthlab.link_credential.failures is 'Tries to renew it that failed in a row.';
comment on column healthlab.link_credential.retry_at is 'When the next try makes sense; null for at once.';
