-- +goose Up

alter table healthlab.connection
	add column linked_at       timestamptz,
	add column due_at          timestamptz,
	add column failure_type    text,
	add column failure_message text,
	add column failure_details text,
	add column failed_at       timestamptz,
	add constraint connection_failure check (
		(failure_type is null) = (failure_message is null) and (failure_type is null) = (failure_details is null));
comment on constraint connection_failure on healthlab.connection is 'A failure is told whole.';
comment on column healthlab.connection.linked_at is 'When it was connected last, also while it worked already.';
comment on column healthlab.connection.due_at is 'When somebody has to look at it next, to plan its pulls or to close it; null for never.';

-- What was connected before there were plans gets one.
update healthlab.connection set linked_at = created_on, due_at = case when status = 'connected' then now() end;
create index connection_due on healthlab.connection (due_at, user_id) where due_at is not null;
