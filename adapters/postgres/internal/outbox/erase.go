package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/webhook"
)

// takeAway returns the statements that take messages away, with their deliveries and
// their log. gone names them: a query of their ids, with the argument $1; lock locks them.
// The caller holds the lock of routing, so that nothing comes into the lanes meanwhile.
// The statements lock lanes as all writers do, the head first, and then the messages, so
// that no line is added to the log of one that goes; those that waited behind move up.
func takeAway(gone, lock string) []string {
	with := `with gone as materialized (` + gone + `)`
	return []string{
		with + `
select count(*) from (
	select from healthlab.webhook_delivery d
	where d.lane in (select o.lane from healthlab.webhook_delivery o where o.event_id in (select id from gone))
	order by d.lane, d.id for update) locked`,
		`select count(*) from (` + lock + ` order by id for update) locked`,
		with + `, dropped as (
	delete from healthlab.webhook_delivery d using gone where d.event_id = gone.id
	returning d.team_id, d.lane, d.head, d.quiet_until)
update healthlab.webhook_delivery n
set head = true, due_at = greatest(healthlab.clock(), h.quiet_until), quiet_until = h.quiet_until
from dropped h where h.head and n.team_id = h.team_id and n.id = (
	select w.id from healthlab.webhook_delivery w
	where w.lane = h.lane and not w.head and w.event_id not in (select id from gone)
	order by w.id limit 1)`,
		with + ` delete from healthlab.webhook_attempt a using gone where a.event_id = gone.id`,
	}
}

// dropMessagesOfUser removes the events about a user, with their deliveries and log.
var dropMessagesOfUser = append(takeAway(`select e.id from healthlab.webhook_event e where e.user_id = $1`,
	`select from healthlab.webhook_event where user_id = $1`),
	`delete from healthlab.webhook_pending where user_id = $1`,
	`delete from healthlab.webhook_event where user_id = $1`,
)

// eraseMessages removes the events about a user, and the user.
var eraseMessages = append(slices.Clone(dropMessagesOfUser),
	`delete from healthlab.event_key where user_id = $1`,
	`delete from healthlab.users where user_id = $1`,
)

// DropMessagesOf adds to a batch what removes the events about a user.
func DropMessagesOf(b *pgx.Batch, user healthlab.UserID) {
	queueUnderRouting(b, dropMessagesOfUser, user)
}

// EraseMessagesOf adds to a batch what removes the events about a user, and the user.
func EraseMessagesOf(b *pgx.Batch, user healthlab.UserID) { queueUnderRouting(b, eraseMessages, user) }

func queueUnderRouting(b *pgx.Batch, statements []string, user healthlab.UserID) {
	b.Queue(holdRouting, int64(Routing))
	for _, sql := range statements {
		b.Queue(sql, user.UUID)
	}
}

const (
	// retentionIdle is how often a process looks for messages that are too old.
	retentionIdle = time.Hour
	// retentionBatch is how many of them go in one transaction.
	retentionBatch = 500
)

const (
	isStale = `e.created_at < healthlab.clock() - $1::interval and ` + isRouted

	// From team to team; their messages are not read.
	selectStaleTeams = `
with recursive t (team_id) as (
	(select e.team_id from healthlab.webhook_event e order by e.team_id limit 1)
	union all
	select (select e.team_id from healthlab.webhook_event e where e.team_id > t.team_id order by e.team_id limit 1)
	from t where t.team_id is not null)
select t.team_id from t where t.team_id is not null
	and exists (select from healthlab.webhook_event e where e.team_id = t.team_id and ` + isStale + `)
limit $2`

	selectStale = `
select e.id from healthlab.webhook_event e where e.team_id = $2 and ` + isStale + `
order by e.created_at, e.id limit $3`

	countUnfinished = `select count(*) from healthlab.webhook_delivery where event_id = any ($1)`
)

// dropMessages takes away messages by their ids.
var dropMessages = append(takeAway(`select unnest($1::uuid[]) as id`, `select from healthlab.webhook_event where id = any ($1)`),
	`delete from healthlab.webhook_event where id = any ($1)`)

// RunRetention deletes messages that are older than the retention, with their deliveries and
// attempts, until ctx ends. It logs how many unfinished deliveries were cancelled, by team.
func (s *Store) RunRetention(ctx context.Context) error {
	loop := work.Loop[uuid.UUID]{
		Name:    "retention",
		Claim:   s.staleTeams,
		Do:      s.DropStale,
		Workers: 1,
		Idle:    retentionIdle,
		Log:     s.log,
	}
	return loop.Run(ctx)
}

func (s *Store) staleTeams(ctx context.Context, n int) (teams []uuid.UUID, err error) {
	err = s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		u.Tune(b, tuneQueue)
		b.Queue(selectStaleTeams, s.retention, n).Query(func(rows pgx.Rows) (err error) {
			teams, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
		return u.Commit(ctx, b)
	})
	return teams, err
}

// DropStale takes a team's old messages away, some at a time.
func (s *Store) DropStale(ctx context.Context, team uuid.UUID) error {
	for again := true; again; {
		expired := 0
		err := s.db.Do(ctx, healthlab.TeamID{UUID: team}, db.Writing, func(u *db.Tx) error {
			var ids []uuid.UUID
			b := u.Batch()
			u.Tune(b, tuneQueue)
			b.Queue(holdRouting, int64(Routing))
			b.Queue(selectStale, s.retention, team, retentionBatch).Query(func(rows pgx.Rows) (err error) {
				ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				return err
			})
			if err := u.Send(ctx, b); err != nil {
				return err
			}
			again = len(ids) == retentionBatch
			b = u.Batch()
			b.Queue(dropMessages[0], ids) // locks the lanes
			b.Queue(countUnfinished, ids).QueryRow(func(row pgx.Row) error { return row.Scan(&expired) })
			for _, sql := range dropMessages[1:] {
				b.Queue(sql, ids)
			}
			return u.Commit(ctx, b)
		})
		if err != nil {
			return err
		}
		if expired > 0 {
			s.log.Warn("deliveries were cancelled with messages that are too old", "team", team, "reason", webhook.ReasonExpired, "deliveries", expired)
		}
	}
	return nil
}
