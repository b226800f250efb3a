-- +goose Up
-- Bulk operations are forgotten a while after they have ended.

create index bulk_op_ended on healthlab.bulk_op (ended_at, op_id) where status <> 'in_progress';
