-- +goose Up
-- Which providers a team prefers.

create table healthlab.source_priority (
	team_id uuid  not null,
	list    json  not null,
	constraint source_priority_pkey primary key (team_id)
);
comment on table healthlab.source_priority is 'Teams'' preferences between providers. Who changes them holds the row.';
comment on constraint source_priority_pkey on healthlab.source_priority is 'A team has one list.';
comment on column healthlab.source_priority.list is 'Sorted by data and provider.';

alter table healthlab.source_priority enable row level security;
create policy team_only on healthlab.source_priority
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.source_priority is 'Rows of the team that the setting healthlab.team names, and of no other.';
