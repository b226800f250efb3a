-- +goose Up
-- How lists of a million orders of one team are counted by what only a few values tell
-- apart: in the smallest index that knows them. Alike entries are kept as one, with the
-- places of the orders in order.
create index orders_coarse on healthlab.orders (team_id, interpretation, last_status, activate_by);
