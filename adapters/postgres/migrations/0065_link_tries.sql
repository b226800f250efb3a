-- +goose Up
-- A client's first wrong try in its window and its later ones are counted apart.

alter table healthlab.link_try add column first bigint not null default 0;
alter table healthlab.link_code add column first_before bigint not null default 0;
comment on column healthlab.link_try.first is 'How many of the wrong tries were the first in their client''s window.';
comment on column healthlab.link_code.first_before is 'How many such first tries the team had seen when the code was made.';

-- Nobody knows which of the past tries were first ones. All count as such: that can end
-- an open code early, and never lets more guesses at it.
update healthlab.link_try set first = wrong;
update healthlab.link_code set first_before = wrong_before;
