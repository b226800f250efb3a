-- +goose Up
-- Connections are made in bulk of tokens that come from elsewhere.

alter table healthlab.bulk_item add column key_id text collate "C";
alter table healthlab.bulk_item add column box bytea;
alter table healthlab.bulk_item add column outcome text collate "C" not null default '';
alter table healthlab.bulk_item add constraint bulk_item_box check ((key_id is null) = (box is null));
alter table healthlab.bulk_item add constraint bulk_item_outcome check (box is null or outcome = '');
comment on constraint bulk_item_box on healthlab.bulk_item is 'A box opens with the key that it names.';
comment on constraint bulk_item_outcome on healthlab.bulk_item is 'Tokens are not kept for longer than until somebody knows what became of them.';
comment on column healthlab.bulk_item.box is 'What a connection is to be made of, sealed; null in other operations, and once it is dealt with.';
comment on column healthlab.bulk_item.outcome is 'What became of it; empty before, and in other operations.';
