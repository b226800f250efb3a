package linkstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/linking"
)

const (
	insertTries = `insert into healthlab.link_try (team_id, wrong) values ($1, 0) on conflict (team_id) do nothing`

	shareTries = `select wrong from healthlab.link_try where team_id = $1 for share`

	lockTries = `select wrong, first from healthlab.link_try where team_id = $1 for update`

	updateTries = `update healthlab.link_try set wrong = $2, first = $3 where team_id = $1`

	// An expired code is free for another draw.
	dropExpiredCode = `delete from healthlab.link_code where code_hash = $1 and expires_at <= $2`

	insertCode = `
insert into healthlab.link_code (team_id, code_hash, user_id, created_at, expires_at, used_at, wrong_before, first_before,
	open_wrong_before, open_first_before)
select t.team_id, $2, $3, $4, $5, $6, t.wrong, t.first, o.wrong, o.first from healthlab.link_try t, healthlab.link_try o
where t.team_id = $1 and o.team_id = '00000000-0000-0000-0000-000000000000'
on conflict do nothing`

	// The row is locked: a try that names the team and one that does not may race.
	selectCode = `
select team_id, user_id, created_at, expires_at, used_at, wrong_before, first_before from healthlab.link_code
where team_id = $1 and code_hash = $2 for update`

	selectOpenCode = `
select team_id, user_id, created_at, expires_at, used_at, open_wrong_before, open_first_before from healthlab.link_code
where code_hash = $1 for update`

	useCode = `update healthlab.link_code set used_at = $3 where team_id = $1 and code_hash = $2`

	pruneCodes = `
delete from healthlab.link_code x using (
	select code_hash from healthlab.link_code where team_id = $1 and expires_at < now() - interval '1 day'
	order by expires_at limit 10 for update skip locked
) old
where x.team_id = $1 and x.code_hash = old.code_hash`

	selectGuesser = `select since, wrong from healthlab.link_guesser where team_id = $1 and client = $2`

	putGuesser = `
insert into healthlab.link_guesser (team_id, client, since, wrong) values ($1, $2, $3, $4)
on conflict (team_id, client) do update set since = excluded.since, wrong = excluded.wrong`

	deleteGuesser = `delete from healthlab.link_guesser where team_id = $1 and client = $2`

	pruneGuessers = `
delete from healthlab.link_guesser x using (
	select client from healthlab.link_guesser where team_id = $1 and since < now() - $2::interval
	order by since limit 10 for update skip locked
) old
where x.team_id = $1 and x.client = old.client`
)

func hashCode(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// InsertCode implements [linking.Store].
func (v *Store) InsertCode(ctx context.Context, c linking.Code) error {
	if err := healthlab.CheckText(c.Text); err != nil {
		return err
	}
	if c.Team.IsZero() || c.User.IsZero() || c.Text == "" {
		return fmt.Errorf("%w: a link code needs a team, a user and a text", healthlab.Invalid)
	}
	hash := hashCode(c.Text)
	var added pgconn.CommandTag
	// A code is unique over all teams, so the work is that of all.
	err := v.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			for _, team := range [...]uuid.UUID{c.Team.UUID, uuid.Nil} {
				b.Queue(insertTries, team)
				b.Queue(shareTries, team)
			}
			b.Queue(pruneCodes, c.Team.UUID)
			b.Queue(dropExpiredCode, hash, db.Instant(c.CreatedAt))
			db.KeepTag(b.Queue(insertCode, c.Team.UUID, hash, c.User.UUID, db.Instant(c.CreatedAt), db.Instant(c.ExpiresAt),
				db.Nullable(db.Instant(c.UsedAt))), &added)
		})
	})
	if err == nil && added.RowsAffected() == 0 {
		return fmt.Errorf("%w: the link code is taken", healthlab.Conflict)
	}
	return err
}

// TryCode implements [linking.Store].
func (v *Store) TryCode(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
	if err := healthlab.CheckText(text); err != nil {
		return err
	}
	hash := hashCode(text)
	return v.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var was linking.CodeAttempt
		b := u.Batch()
		b.Queue(insertTries, team.UUID)
		b.Queue(lockTries, team.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&was.TeamWrong, &was.TeamFirst) })
		b.Queue(selectGuesser, team.UUID, client[:]).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&was.Since, &was.Wrong)
			was.Since = was.Since.UTC()
			return db.Absent(err)
		})
		var code *pgx.QueuedQuery
		if team.IsZero() {
			code = b.Queue(selectOpenCode, hash)
		} else {
			code = b.Queue(selectCode, team.UUID, hash)
		}
		code.QueryRow(func(row pgx.Row) error {
			c := linking.Code{Text: text}
			var used *time.Time
			err := row.Scan(&c.Team.UUID, &c.User.UUID, &c.CreatedAt, &c.ExpiresAt, &used, &c.WrongBefore, &c.FirstBefore)
			if err == nil {
				c.CreatedAt, c.ExpiresAt, c.UsedAt = c.CreatedAt.UTC(), c.ExpiresAt.UTC(), db.TimeOrZero(used)
				was.Code = &c
			}
			return db.Absent(err)
		})
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		next := was
		if was.Code != nil {
			c := *was.Code
			next.Code = &c
		}
		change(&next)
		b = u.Batch()
		if next.TeamWrong != was.TeamWrong || next.TeamFirst != was.TeamFirst {
			b.Queue(updateTries, team.UUID, next.TeamWrong, next.TeamFirst)
		}
		since := db.Instant(next.Since)
		switch {
		case next.Wrong == was.Wrong && since.Equal(was.Since):
		case next.Wrong == 0:
			b.Queue(deleteGuesser, team.UUID, client[:])
		default:
			b.Queue(putGuesser, team.UUID, client[:], since, next.Wrong)
			b.Queue(pruneGuessers, team.UUID, 2*linking.GuessWindow)
		}
		if was.Code != nil && next.Code != nil && !next.Code.UsedAt.Equal(was.Code.UsedAt) {
			b.Queue(useCode, was.Code.Team.UUID, hash, db.Nullable(db.Instant(next.Code.UsedAt)))
		}
		return u.Commit(ctx, b)
	})
}
