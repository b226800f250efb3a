-- +goose Up
-- Texts are counted here, and a page that goes by name is walked to. Alike entries are
-- kept as one.
drop index healthlab.order_search_texts;
create index order_search_texts on healthlab.order_search (team_id, sort_name, patient_name, recipient, birth_date);
