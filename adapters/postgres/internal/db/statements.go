package db

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
)

const (
	insertTeam = `insert into healthlab.team (team_id) values ($1) on conflict do nothing`
	lockTeam   = `select from healthlab.team where team_id = $1 for update`
)

// LockTeam adds to a batch what locks all that is counted of a team, such as its users and
// its keys, against other changes.
func LockTeam(b *pgx.Batch, team healthlab.TeamID) {
	b.Queue(insertTeam, team.UUID)
	b.Queue(lockTeam, team.UUID)
}

const readClock = `select healthlab.clock()`

// ReadClock adds to a batch what sets now to the clock of the server.
func ReadClock(b *pgx.Batch, now *time.Time) {
	b.Queue(readClock).QueryRow(func(row pgx.Row) error { return row.Scan(now) })
}
