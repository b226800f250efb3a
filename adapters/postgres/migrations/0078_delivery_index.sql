-- +goose Up
-- Deliveries are found by their team and their id: one index less for each that is written.
drop index healthlab.webhook_delivery_id;

-- Each delivery is claimed once at least. There is room for the claimed row beside the
-- written one, or the claim would have to write every index again.
alter table healthlab.webhook_delivery set (fillfactor = 45);
