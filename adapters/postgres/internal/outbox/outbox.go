package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Outbox returns the store as a [webhook.Outbox].
func (s *Store) Outbox() webhook.Outbox { return outbox{s} }

type outbox struct{ s *Store }

func (o outbox) Append(ctx context.Context, events []healthlab.Event) error {
	if len(events) == 0 {
		return ctx.Err()
	}
	return o.s.db.Do(ctx, oneTeam(events), db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		names := Names{}
		names.lock(b, events)
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		b = u.Batch()
		if err := o.s.Emit(ctx, u, b, events, names); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
}

// oneTeam returns the team of events, db.AllTeams if there are several.
func oneTeam(events []healthlab.Event) healthlab.TeamID {
	for _, e := range events {
		if e.Team != events[0].Team {
			return db.AllTeams
		}
	}
	return events[0].Team
}

// Names holds the teams' own names of users, as the transaction sees them.
type Names map[healthdata.UserRef]string

// ofDeleted stands for the name of a deleted user, about whom no event is written.
const ofDeleted = "\x00"

const selectNames = `
select u.team_id, u.user_id, case when u.deleted_at is null then u.client_user_id end
from unnest($1::uuid[], $2::uuid[]) as x (team_id, user_id)
join healthlab.users u on u.user_id = x.user_id and u.team_id = x.team_id`

// A deletion of the user waits for this transaction, and removes the events that it writes.
const lockNames = selectNames + ` order by u.team_id, u.user_id for share of u`

const selectLiveNames = selectNames + ` where u.deleted_at is null`

// NameOf returns the value of [Names] for a user.
func NameOf(u *healthdata.User) string {
	if !u.Live() {
		return ofDeleted
	}
	return u.ClientUserID
}

// look asks for the names of the users of events.
func (n Names) look(b *pgx.Batch, events []healthlab.Event) { n.askOf(b, selectNames, events) }

// lock is look that keeps the users from being deleted until the transaction ends. It is for
// transactions that hold no other lock.
func (n Names) lock(b *pgx.Batch, events []healthlab.Event) { n.askOf(b, lockNames, events) }

func (n Names) askOf(b *pgx.Batch, sql string, events []healthlab.Event) {
	var teams, users []uuid.UUID
	for _, e := range events {
		if _, ok := n[healthdata.UserRef{Team: e.Team, User: e.User}]; !ok && !e.User.IsZero() {
			teams, users = append(teams, e.Team.UUID), append(users, e.User.UUID)
		}
	}
	if len(users) == 0 {
		return
	}
	n.ask(b, sql, teams, users)
}

// LookLive asks for the names of users, those that are deleted left out.
func (n Names) LookLive(b *pgx.Batch, teams, users []uuid.UUID) {
	n.ask(b, selectLiveNames, teams, users)
}

func (n Names) ask(b *pgx.Batch, sql string, teams, users []uuid.UUID) {
	b.Queue(sql, teams, users).Query(func(rows pgx.Rows) error {
		var k healthdata.UserRef
		var name *string
		_, err := pgx.ForEachRow(rows, []any{&k.Team.UUID, &k.User.UUID, &name}, func() error {
			n[k] = ofDeleted
			if name != nil {
				n[k] = *name
			}
			return nil
		})
		return err
	})
}

// live returns the events that are not about a deleted user.
func (n Names) live(events []healthlab.Event) []healthlab.Event {
	about := func(e healthlab.Event) bool { return n[healthdata.UserRef{Team: e.Team, User: e.User}] == ofDeleted }
	if !slices.ContainsFunc(events, about) {
		return events
	}
	return slices.DeleteFunc(slices.Clone(events), about)
}

// missing reports whether the names of some users of events are not known.
func (n Names) missing(events []healthlab.Event) bool {
	return slices.ContainsFunc(events, func(e healthlab.Event) bool {
		_, ok := n[healthdata.UserRef{Team: e.Team, User: e.User}]
		return !ok && !e.User.IsZero()
	})
}

// keyOf returns the hash by which a key is known.
func keyOf(key string) uuid.UUID {
	sum := sha256.Sum256([]byte(key))
	return uuid.UUID(sum[:16])
}

const (
	// The rows are locked in order, so that two writers cannot wait for each other.
	drawSeq = `
insert into healthlab.event_key as k (team_id, key_hash, user_id, seq)
select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[])
on conflict (team_id, key_hash) do update
set seq = k.seq + excluded.seq, user_id = case when k.user_id = excluded.user_id then k.user_id end
returning k.team_id, k.key_hash, k.seq`

	insertEvents = `
insert into healthlab.webhook_event (team_id, id, created_at, user_id, type, key, key_hash, seq, at, body, trace)
select x.team_id, x.id, healthlab.clock(), x.user_id, x.type, x.key, x.key_hash, coalesce(k.seq - x.later, 0), x.at, x.body, x.trace
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::uuid[], $7::bigint[], $8::timestamptz[], $9::bytea[], $10::text[])
	as x (team_id, id, user_id, type, key, key_hash, later, at, body, trace)
left join healthlab.event_key k on k.team_id = x.team_id and k.key_hash = x.key_hash`

	insertPending = `
insert into healthlab.webhook_pending (team_id, event_id, user_id, created_at)
select x.team_id, x.id, x.user_id, healthlab.clock()
from unnest($1::uuid[], $2::uuid[], $3::uuid[]) with ordinality as x (team_id, id, user_id, n)
order by x.n`
)

// Emit adds to a batch what writes events: it draws their Seq under the lock of their
// key, makes their bodies, and marks them to be routed. It sends a batch of its own
// where a name is missing, or where the bodies contain the Seq.
func (s *Store) Emit(ctx context.Context, u *db.Tx, b *pgx.Batch, events []healthlab.Event, names Names) error {
	if len(events) == 0 {
		return nil
	}
	u.Wrote()
	if names.missing(events) {
		first := u.Batch()
		names.look(first, events)
		if err := u.Send(ctx, first); err != nil {
			return err
		}
	}
	if events = names.live(events); len(events) == 0 {
		return nil
	}
	k := countKeys(events)
	if !s.envelope.Sequence {
		k.draw(b)
	} else if k.len() > 0 {
		first := u.Batch()
		k.draw(first)
		if err := u.Send(ctx, first); err != nil {
			return err
		}
	}
	rows, err := s.render(ctx, events, k, names)
	if err != nil {
		return db.Answer(err)
	}
	b.Queue(insertEvents, rows.teams, rows.ids, rows.users, rows.types, rows.keys, rows.hashes, rows.later, rows.at, rows.bodies, rows.traces)
	b.Queue(insertPending, rows.teams, rows.ids, rows.users)
	return nil
}

// keys counts the events of each key.
type keys struct {
	list  []keyCount // by team and hash
	later []int64    // by event: how many of its key come after it
	drawn map[keyName]int64
}

type keyName struct{ team, hash uuid.UUID }

type keyCount struct {
	keyName
	user *uuid.UUID
	n    int64
}

func countKeys(events []healthlab.Event) *keys {
	k := &keys{later: make([]int64, len(events)), drawn: map[keyName]int64{}}
	at := map[keyName]int{}
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Key == "" {
			continue
		}
		name := keyName{e.Team.UUID, keyOf(e.Key)}
		j, ok := at[name]
		if !ok {
			j = len(k.list)
			at[name] = j
			k.list = append(k.list, keyCount{keyName: name, user: db.Optional(e.User.UUID)})
		} else if user := k.list[j].user; user != nil && *user != e.User.UUID {
			k.list[j].user = nil
		}
		k.later[i] = k.list[j].n
		k.list[j].n++
	}
	slices.SortFunc(k.list, func(a, b keyCount) int {
		if c := bytes.Compare(a.team[:], b.team[:]); c != 0 {
			return c
		}
		return bytes.Compare(a.hash[:], b.hash[:])
	})
	return k
}

func (k *keys) len() int { return len(k.list) }

// draw adds to a batch what draws the numbers.
func (k *keys) draw(b *pgx.Batch) {
	if len(k.list) == 0 {
		return
	}
	teams, hashes := make([]uuid.UUID, len(k.list)), make([]uuid.UUID, len(k.list))
	users, counts := make([]*uuid.UUID, len(k.list)), make([]int64, len(k.list))
	for i, c := range k.list {
		teams[i], hashes[i], users[i], counts[i] = c.team, c.hash, c.user, c.n
	}
	b.Queue(drawSeq, teams, hashes, users, counts).Query(func(rows pgx.Rows) error {
		var name keyName
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&name.team, &name.hash, &seq}, func() error {
			k.drawn[name] = seq
			return nil
		})
		return err
	})
}

// eventRows are columns of webhook_event.
type eventRows struct {
	teams, ids []uuid.UUID
	users      []*uuid.UUID
	types      []string
	keys       []string
	hashes     []*uuid.UUID
	later      []int64
	at         []time.Time
	bodies     [][]byte
	traces     []string
}

// render makes the rows of events.
func (s *Store) render(ctx context.Context, events []healthlab.Event, k *keys, names Names) (*eventRows, error) {
	r := &eventRows{later: k.later}
	seen := make(map[uuid.UUID]bool, len(events))
	for i, e := range events {
		switch {
		case e.ID == uuid.Nil:
			return nil, fmt.Errorf("%w: an event needs an id", healthlab.Invalid)
		case seen[e.ID]:
			return nil, fmt.Errorf("%w: an event has this id already", healthlab.Conflict)
		}
		seen[e.ID] = true
		if err := healthlab.CheckText(e.Key); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		var hash *uuid.UUID
		e.Seq = 0
		if e.Key != "" {
			hash = db.Optional(keyOf(e.Key))
			e.Seq = k.drawn[keyName{e.Team.UUID, *hash}] - k.later[i]
		}
		var name *string
		if n, ok := names[healthdata.UserRef{Team: e.Team, User: e.User}]; ok {
			name = &n
		}
		body, err := s.envelope.Render(e, name)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		if body, err = s.db.Keys.Seal(ctx, personkey.Ref{Team: e.Team, User: e.User}, personkey.RowEvent(e.ID), body); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		r.teams, r.ids = append(r.teams, e.Team.UUID), append(r.ids, e.ID)
		r.users = append(r.users, db.Optional(e.User.UUID))
		r.types, r.keys = append(r.types, e.Type), append(r.keys, e.Key)
		r.hashes = append(r.hashes, hash)
		r.at = append(r.at, db.Instant(e.At))
		r.bodies, r.traces = append(r.bodies, body), append(r.traces, cmp.Or(e.Trace, healthlab.TraceOf(ctx)))
	}
	return r, nil
}
