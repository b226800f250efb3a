-- +goose Up
-- What teams have chosen.

create table healthlab.team_settings (
	team_id uuid  not null,
	choices json  not null,
	constraint team_settings_pkey primary key (team_id)
);
comment on table healthlab.team_settings is 'What teams have chosen. Who changes it holds the row.';
comment on constraint team_settings_pkey on healthlab.team_settings is 'A team has one row.';
comment on column healthlab.team_settings.choices is 'By the name of the setting; what is not there is left to the deployment.';

alter table healthlab.team_settings enable row level security;
create policy team_only on healthlab.team_settings
	using (team_id::text = current_setting('healthlab.team', true) or current_setting('healthlab.team', true) = 'all');
comment on policy team_only on healthlab.team_settings is 'Rows of the team that the setting healthlab.team names, and of no other.';
