package postgres

// A direct series can be appended to without reading other tables: its user is live, and no
// continuous query reads it. updateSeries sets the flag under the lock of the row; the statements
// below clear it before either changes.
const (
	isLive    = `exists (select from healthlab.users u where u.user_id = s.user_id and u.team_id = s.team_id and u.deleted_at is null)`
	isAwaited = `exists (select from healthlab.continuous_query q where q.team_id = s.team_id and q.status = 'active' and s.resource = any (q.resources))`

	// recallDirect makes the next writer of each series ask: of some users, and of some
	// resources or all. Who is writing is waited for, in the order in which every writer locks.
	recallDirect = recall + `user_id = any ($1) and ($2::text[] is null or resource = any ($2))` + recallEnd

	// recallAdded is recallDirect once more, for what was added before the users were locked.
	recallAdded = recall + `user_id = any ($1) and resource = any ($2) and direct` + recallEnd

	// recallTeam is recallDirect for all users of a team.
	recallTeam = recall + `user_id in (select user_id from healthlab.users where team_id = $1) and resource = any ($2)` + recallEnd

	recall = `
with l as materialized (
	select user_id, series from healthlab.series where `
	recallEnd = `
	order by user_id, resource, provider, source_type, part for no key update
)
update healthlab.series s set direct = false from l where s.user_id = l.user_id and s.series = l.series`
)
