-- +goose Up
-- The log is read by the endpoint or by the message. A key that begins with the endpoint
-- saves each line that is written an index.
alter table healthlab.webhook_attempt drop constraint webhook_attempt_pkey;
drop index healthlab.webhook_attempt_endpoint;
alter table healthlab.webhook_attempt add constraint webhook_attempt_pkey primary key (team_id, endpoint_id, id);
comment on constraint webhook_attempt_pkey on healthlab.webhook_attempt is 'The lines of an endpoint, in the order of writing.';
