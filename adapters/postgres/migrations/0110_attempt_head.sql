-- +goose Up
-- The head of a receiver's answer, beside the beginning of its body.
alter table healthlab.webhook_attempt add column head bytea;
comment on column healthlab.webhook_attempt.head is
	'Status line and header fields of the answer, a line each, without credentials. Null if there was no answer.';
comment on column healthlab.webhook_attempt.response is 'The beginning of the body of the answer, where the host keeps it.';
