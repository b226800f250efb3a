package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A direct series can be appended to without reading other tables: its user is live, and no
// continuous query reads it. updateSeries sets the flag under the lock of the row; recallDirect
// clears it before either changes.
const (
	// recallDirect makes the next writer of each series of a user ask: of some resources or all.
	// Who is writing is waited for, in the order in which every writer locks.
	recallDirect = `
with l as materialized (
	select user_id, series from healthlab.series
	where user_id = $1 and ($2::text[] is null or resource = any ($2)) and (direct or not $3)
	order by user_id, resource, provider, source_type, part for no key update
)
update healthlab.series s set direct = false from l where s.user_id = $1 and s.user_id = l.user_id and s.series = l.series`

	selectUsersOfTeam = `select user_id from healthlab.users where team_id = $1 order by user_id`

	setDirect = `update healthlab.series set direct = true where user_id = $1 and series = $2`

	// selectAwaited returns the places of the series that a continuous query reads. It runs
	// after the series are locked.
	selectAwaited = `
select x.n from unnest($1::uuid[], $2::text[]) with ordinality as x (team_id, resource, n)
where exists (select from healthlab.continuous_query q where q.team_id = x.team_id and q.status = 'active' and x.resource = any (q.resources))`
)

// queueAwaited adds to a batch the question which series a continuous query reads.
func queueAwaited(b *pgx.Batch, teams []uuid.UUID, resources []string, awaited func(i int)) {
	b.Queue(selectAwaited, teams, resources).Query(func(rows pgx.Rows) error {
		var n int
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			awaited(n - 1)
			return nil
		})
		return err
	})
}

// recall is whom recallDirect is about.
type recall string

const (
	recallAll recall = ""
	// recallAdded is once more, for what was added before the users were locked.
	recallAdded recall = "added"
)

// queue adds to a batch what recalls series of users; nil resources are all.
func (r recall) queue(b *pgx.Batch, users []uuid.UUID, resources []string) {
	for _, u := range users {
		b.Queue(recallDirect, u, resources, r == recallAdded)
	}
}
