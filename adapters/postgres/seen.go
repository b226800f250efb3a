package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// forgetMost is how many rows that are over one Done takes away. It adds two at most,
// so that the table does not grow for ever.
const forgetMost = 8

// Seen returns the memory of one receiver of messages, as a [receiver.Seen]. Receivers
// that do different things with the same messages have different names. A receiver
// needs the schema of this package, and nothing else of it.
func (s *Store) Seen(name string) receiver.Seen { return seen{s, name} }

type seen struct {
	s    *Store
	name string
}

const (
	addSeen = `
insert into healthlab.seen (team_id, receiver, kind, name_hash, forget_at)
select '00000000-0000-0000-0000-000000000000', $1, x.kind, x.name_hash, healthlab.clock()
from unnest($2::text[], $3::bytea[]) x (kind, name_hash) order by x.kind
on conflict do nothing`

	lockSeen = `
select kind, holder, held_until, until, seq, step, at from healthlab.seen
where team_id = '00000000-0000-0000-0000-000000000000' and receiver = $1 and (kind, name_hash) in (select * from unnest($2::text[], $3::bytea[]))
order by kind for update`

	updateSeen = `
update healthlab.seen set holder = $4, held_until = $5, until = $6, seq = $7, step = $8, at = $9,
	forget_at = greatest($5::timestamptz, $6, healthlab.clock())
where team_id = '00000000-0000-0000-0000-000000000000' and receiver = $1 and kind = $2 and name_hash = $3`

	releaseSeen = `
update healthlab.seen set holder = null, held_until = null, forget_at = coalesce(until, healthlab.clock())
where team_id = '00000000-0000-0000-0000-000000000000' and receiver = $1 and (kind, name_hash) in (select * from unnest($2::text[], $3::bytea[]))
	and holder = $4`

	forgetSeen = `
delete from healthlab.seen g using (
	select team_id, receiver, kind, name_hash from healthlab.seen
	where forget_at <= healthlab.clock() order by forget_at limit $1 for update skip locked
) old
where g.team_id = old.team_id and g.receiver = old.receiver and g.kind = old.kind and g.name_hash = old.name_hash`
)

// sighting is what is known of one id or key.
type sighting struct {
	holder      *uuid.UUID
	held, until *time.Time
	version     receiver.Version
}

func (s *sighting) isHeld(now time.Time) bool     { return s.held != nil && now.Before(*s.held) }
func (s *sighting) remembered(now time.Time) bool { return s.until != nil && now.Before(*s.until) }

// drop ends what the token holds.
func (s *sighting) drop(token uuid.UUID) {
	if s.holder != nil && *s.holder == token {
		s.holder, s.held = nil, nil
	}
}

const (
	kindID  = "id"
	kindKey = "key"
)

// look is one transaction that looks at what is known of a claim.
type look struct {
	seen
	u      *db.Tx
	kinds  []string
	hashes [][]byte
	now    time.Time
	known  map[string]*sighting
}

func (v seen) check(ctx context.Context, c receiver.Claim) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ID == "" || strings.ContainsRune(c.ID, 0) || strings.ContainsRune(c.Key, 0):
		return fmt.Errorf("%w: the id of a message is not empty, and has no NUL", healthlab.Invalid)
	}
	return healthlab.CheckText(v.name)
}

func (v seen) look(u *db.Tx, c receiver.Claim) *look {
	id := sha256.Sum256([]byte(c.ID))
	l := &look{seen: v, u: u, kinds: []string{kindID}, hashes: [][]byte{id[:]}, known: map[string]*sighting{}}
	if c.Key != "" {
		key := sha256.Sum256([]byte(c.Key))
		l.kinds, l.hashes = append(l.kinds, kindKey), append(l.hashes, key[:])
	}
	return l
}

// lock makes the rows, if they are not there, and locks them: the id first.
func (l *look) lock(ctx context.Context) error {
	b := l.u.Batch()
	b.Queue(addSeen, l.name, l.kinds, l.hashes)
	b.Queue(lockSeen, l.name, l.kinds, l.hashes).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var kind string
			s := &sighting{}
			err := rows.Scan(&kind, &s.holder, &s.held, &s.until, &s.version.Seq, &s.version.Step, &s.version.At)
			if err != nil {
				return err
			}
			l.known[kind] = s
		}
		return rows.Err()
	})
	db.ReadClock(b, &l.now)
	if err := l.u.Send(ctx, b); err != nil {
		return err
	}
	if len(l.known) < len(l.kinds) {
		return db.ErrChanged // another transaction forgot one of them between the two statements
	}
	return nil
}

func (l *look) write(b *pgx.Batch) {
	for i, kind := range l.kinds {
		s := l.known[kind]
		b.Queue(updateSeen, l.name, kind, l.hashes[i], s.holder, s.held, s.until, s.version.Seq, s.version.Step, s.version.At)
	}
}

// errVerdict ends a transaction that changes nothing.
var errVerdict = errors.New("nothing to write")

// Claim asks for a message. See [receiver.Seen].
func (v seen) Claim(ctx context.Context, c receiver.Claim) (receiver.Verdict, error) {
	if err := v.check(ctx, c); err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	var verdict receiver.Verdict
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		l := v.look(u, c)
		if err := l.lock(ctx); err != nil {
			return err
		}
		if verdict = l.verdict(c); verdict != receiver.Fresh {
			return db.Answer(errVerdict)
		}
		until := l.now.Add(c.Lease)
		for _, s := range l.known {
			s.holder, s.held = &c.Token, &until
		}
		b := u.Batch()
		l.write(b)
		return u.Commit(ctx, b)
	})
	if err != nil && !errors.Is(err, errVerdict) {
		return 0, err
	}
	return verdict, nil
}

func (l *look) verdict(c receiver.Claim) receiver.Verdict {
	id, key := l.known[kindID], l.known[kindKey]
	switch {
	case id.remembered(l.now):
		return receiver.Repeated
	case id.isHeld(l.now):
		return receiver.Busy
	case key != nil && key.remembered(l.now) && c.Version.Before(key.version):
		return receiver.Outdated
	case key != nil && key.isHeld(l.now):
		return receiver.Busy
	}
	return receiver.Fresh
}

// Done remembers a message. See [receiver.Seen].
func (v seen) Done(ctx context.Context, c receiver.Claim) error {
	if err := v.check(ctx, c); err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		l := v.look(u, c)
		if err := l.lock(ctx); err != nil {
			return err
		}
		id := l.known[kindID]
		id.until = db.Nullable(l.now.Add(c.Keep))
		id.drop(c.Token)
		if key := l.known[kindKey]; key != nil {
			if !key.remembered(l.now) || !c.Version.Before(key.version) {
				key.version, key.until = c.Version, db.Nullable(l.now.Add(c.KeepVersion))
				key.version.At = db.Instant(key.version.At)
			}
			key.drop(c.Token)
		}
		b := u.Batch()
		l.write(b)
		b.Queue(forgetSeen, forgetMost)
		return u.Commit(ctx, b)
	})
}

// Release gives a claim back. See [receiver.Seen].
func (v seen) Release(ctx context.Context, c receiver.Claim) error {
	if err := v.check(ctx, c); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		l := v.look(u, c)
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(releaseSeen, l.name, l.kinds, l.hashes, c.Token) })
	})
}
