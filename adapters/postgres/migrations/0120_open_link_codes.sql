-- +goose Up
-- A companion app tries a code without naming its team. Such tries are counted for all teams
-- together, under the id 00000000-0000-0000-0000-000000000000.

alter table healthlab.link_code add column open_wrong_before bigint not null default 0;
alter table healthlab.link_code add column open_first_before bigint not null default 0;
comment on column healthlab.link_code.open_wrong_before is 'How many wrong tries without a team there had been when the code was made.';
comment on column healthlab.link_code.open_first_before is 'How many of them were the first in their client''s window.';
