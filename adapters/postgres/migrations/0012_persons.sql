-- +goose Up
-- Who people are, what insurers cover, and the payors that teams made.

create table healthlab.user_info (
	team_id uuid not null,
	user_id uuid not null,
	doc     json not null,
	constraint user_info_pkey primary key (team_id, user_id)
);
comment on table healthlab.user_info is
	'Demographics: one row for a user. Who adds an insurance record holds the user''s row.';
comment on constraint user_info_pkey on healthlab.user_info is 'Only the newest are kept.';

create table healthlab.insurance (
	team_id      uuid        not null,
	user_id      uuid        not null,
	insurance_id uuid        not null,
	is_primary   boolean     not null,
	valid_from   timestamptz not null,
	valid_until  timestamptz,
	doc          json        not null,
	constraint insurance_pkey primary key (team_id, user_id, insurance_id),
	constraint insurance_id unique (insurance_id),
	constraint insurance_validity check (valid_until > valid_from)
);
comment on table healthlab.insurance is 'Insurance records. None is ever changed, but for the time when the next one took its place.';
comment on constraint insurance_pkey on healthlab.insurance is 'Records are spread by their user.';
comment on constraint insurance_id on healthlab.insurance is 'Orders name a record by its id.';
comment on constraint insurance_validity on healthlab.insurance is 'The records of a user with one is_primary follow each other without gap or overlap.';
comment on column healthlab.insurance.valid_until is 'When the next record took its place; null for the one that is valid.';
create unique index insurance_valid on healthlab.insurance (team_id, user_id, is_primary) where valid_until is null;
comment on index healthlab.insurance_valid is 'One record of a kind is valid at a time.';

create table healthlab.payor (
	team_id    uuid        not null,
	payor_code text        collate "C" not null,
	created_at timestamptz not null,
	doc        json        not null,
	constraint payor_pkey primary key (team_id, payor_code)
);
comment on table healthlab.payor is 'Payors that a team made for itself.';
comment on constraint payor_pkey on healthlab.payor is 'A code means one payor of a team.';

-- +goose StatementBegin
do $$
declare name text;
begin
	foreach name in array array['user_info', 'insurance', 'payor'] loop
		execute format('alter table healthlab.%I enable row level security', name);
		execute format($policy$create policy team_only on healthlab.%I
			using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all')$policy$, name);
		execute format('comment on policy team_only on healthlab.%I is %L', name, 'Rows of the team that the setting healthlab.team names, and of no other.');
	end loop;
end $$;
-- +goose StatementEnd
