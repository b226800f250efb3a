package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// laneName names a lane of an endpoint. The lane says it all: it is not the name that
// package webhook gives it, but a hash of that and the endpoint, so that statements find
// a lane by one index and by no other.
type laneName struct{ team, endpoint, lane uuid.UUID }

func laneOf(t *webhook.Endpoint, e healthlab.Event, mode healthlab.Mode) laneName {
	name := webhook.LaneOf(e, mode, t.OrderScope)
	sum := sha256.Sum256(append(t.ID.UUID[:], name[:]...))
	return laneName{t.Team.UUID, t.ID.UUID, uuid.UUID(sum[:16])}
}

// laneRow is an unfinished delivery.
type laneRow struct {
	laneName
	id       int64 // 0 until it is stored
	key      *uuid.UUID
	seq      int64
	event    uuid.UUID
	created  time.Time // when the event was written
	cause    string
	head     bool
	attempts int
	starts   int
	queued   time.Time
	failed   *time.Time
	due      time.Time
	quiet    *time.Time
	until    *time.Time
	token    *int64

	changed bool
	deleted bool // it is not stored any more
}

// lease is the right to deliver it, which a process has.
func (r *laneRow) lease() webhook.Lease {
	return webhook.Lease{Team: healthlab.TeamID{UUID: r.team}, Delivery: webhook.DeliveryID(r.id), Token: *r.token}
}

func (r *laneRow) leased(now time.Time) bool { return r.token != nil && r.until.After(now) }

func (r *laneRow) view(now time.Time) *webhook.LaneEntry {
	w := &webhook.LaneEntry{Event: r.event, Seq: r.seq, Sending: r.leased(now)}
	if r.key != nil {
		w.Key = r.key.String()
	}
	return w
}

// hush keeps the row from being claimed before an instant.
func (r *laneRow) hush(until *time.Time) {
	if until != nil && (r.quiet == nil || until.After(*r.quiet)) {
		r.quiet = until
		r.changed = true
	}
}

// lane is what a transaction has read of a lane: the head first, then by id. Where not
// all of it was read, more says whether anything waits.
type lane struct {
	rows []*laneRow
	more bool
}

// lanes are lanes as a transaction holds and changes them. It has locked their heads,
// and so the lanes, and no other process adds to any: that needs the lock of routing.
type lanes struct {
	now   time.Time
	all   map[laneName]*lane
	fresh []*laneRow
	gone  []*laneRow
	log   attemptRows
}

// newLanes makes room for about so many.
func newLanes(n int) *lanes { return &lanes{all: make(map[laneName]*lane, n)} }

func (l *lanes) of(name laneName) *lane {
	at := l.all[name]
	if at == nil {
		at = &lane{}
		l.all[name] = at
	}
	return at
}

func (l *lanes) add(r *laneRow) { at := l.of(r.laneName); at.rows = append(at.rows, r) }

const (
	laneColumns = `
d.team_id, d.endpoint_id, d.lane, d.id, d.key_hash, d.seq, d.event_id, d.event_created, d.cause, d.head, d.attempts, d.starts,
d.queued_at, d.first_failed_at, d.due_at, d.quiet_until, d.lease_until, d.lease_token`

	laneRows = `
from unnest($1::uuid[]) x (lane) join healthlab.webhook_delivery d on d.lane = x.lane`

	headRows = laneRows + ` and d.head`

	headOrder = ` order by d.lane`

	peekHeads = `select d.lane` + headRows

	// What another transaction has made the head meanwhile is seen by a statement of
	// its own only, so locking and reading are two.
	lockHeads = `select d.id` + headRows + headOrder + ` for update of d`
	tryHeads  = lockHeads + ` skip locked`

	readHeads = `
select ` + laneColumns + `, exists (select from healthlab.webhook_delivery w where w.lane = d.lane and not w.head)` + headRows

	// Those that wait behind a head, of the keys that arrive.
	readSame = `
select ` + laneColumns + `
from unnest($1::uuid[], $2::uuid[]) x (lane, key_hash)
join healthlab.webhook_delivery d on d.lane = x.lane and d.key_hash = x.key_hash and not d.head`

	wholeOrder = ` order by d.lane, d.id`
	lockWhole  = `select count(*) from (select` + laneRows + wholeOrder + ` for update of d) locked`
	readWhole  = `select ` + laneColumns + laneRows + wholeOrder
)

// scanLaneRow reads laneColumns, and what stands behind them.
func scanLaneRow(rows pgx.Rows, more ...any) (*laneRow, error) {
	r := &laneRow{}
	err := rows.Scan(append(db.PlainTargets(
		&r.team, &r.endpoint, &r.lane, &r.id, &r.key, &r.seq, &r.event, &r.created, &r.cause, &r.head, &r.attempts, &r.starts,
		&r.queued, &r.failed, &r.due, &r.quiet, &r.until, &r.token,
	), more...)...)
	return r, err
}

// laneArgument returns lanes as an argument, each once and in the order of locking.
func laneArgument(names []laneName) []uuid.UUID {
	of := make([]uuid.UUID, len(names))
	for i, name := range names {
		of[i] = name.lane
	}
	slices.SortFunc(of, db.CompareIDs)
	return slices.Compact(of)
}

// loadHeads locks lanes and reads what arrivals need of them: the heads, and what waits
// of the keys given, one for each name and nil where nothing is superseded. With skip,
// a lane that another process holds is left out and returned instead of waited for. The
// caller holds the lock of routing, so that a lane that has no head stays empty.
func loadHeads(ctx context.Context, u *db.Tx, names []laneName, keys []*uuid.UUID, skip bool) (*lanes, map[laneName]bool, error) {
	l, busy := newLanes(len(names)), map[laneName]bool{}
	of, err := readHeadsOf(ctx, u, laneArgument(names), &l.now)
	if err != nil || len(of) == 0 {
		return l, busy, err
	}
	lock := lockHeads
	if skip {
		lock = tryHeads
	}
	var same struct{ of, keys []uuid.UUID }
	for i, name := range names {
		if _, full := slices.BinarySearchFunc(of, name.lane, db.CompareIDs); full && keys[i] != nil {
			same.of, same.keys = append(same.of, name.lane), append(same.keys, *keys[i])
		}
	}
	held := map[int64]bool{}
	for again := true; again; {
		again = false
		clear(l.all)
		b := u.Batch()
		b.Queue(lock, of).Query(func(rows pgx.Rows) error {
			var id int64
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { held[id] = true; return nil })
			return err
		})
		b.Queue(readHeads, of).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				more := false
				r, err := scanLaneRow(rows, &more)
				if err != nil {
					return err
				}
				switch {
				case held[r.id]:
					l.add(r)
					l.of(r.laneName).more = more
				case skip:
					busy[r.laneName] = true
				default:
					again = true // it has become the head since
				}
			}
			return rows.Err()
		})
		b.Queue(readSame, same.of, same.keys).Query(l.scan)
		if err := u.Send(ctx, b); err != nil {
			return nil, nil, err
		}
	}
	for name, at := range l.all {
		if len(at.rows) > 0 && !at.rows[0].head {
			delete(l.all, name) // its head is not ours
		}
		slices.SortFunc(at.rows, func(a, b *laneRow) int { return cmp.Compare(a.id, b.id) })
		at.rows = slices.CompactFunc(at.rows, func(a, b *laneRow) bool { return a.id == b.id })
	}
	return l, busy, nil
}

// readHeadsOf returns those of lanes that have a head, in their order, and reads the clock.
func readHeadsOf(ctx context.Context, u *db.Tx, of []uuid.UUID, now *time.Time) (full []uuid.UUID, err error) {
	b := u.Batch()
	b.Queue(peekHeads, of).Query(func(rows pgx.Rows) (err error) {
		full, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	db.ReadClock(b, now)
	err = u.Send(ctx, b)
	slices.SortFunc(full, db.CompareIDs)
	return full, err
}

// scan reads rows into their lanes.
func (l *lanes) scan(rows pgx.Rows) error {
	for rows.Next() {
		r, err := scanLaneRow(rows)
		if err != nil {
			return err
		}
		l.add(r)
	}
	return rows.Err()
}

// loadWhole locks lanes and reads all of them.
func loadWhole(ctx context.Context, u *db.Tx, names []laneName) (*lanes, error) {
	l := newLanes(len(names))
	of := laneArgument(names)
	b := u.Batch()
	b.Queue(lockWhole, of)
	b.Queue(readWhole, of).Query(l.scan)
	db.ReadClock(b, &l.now)
	return l, u.Send(ctx, b)
}

// written is an event as those see it who put it into lanes.
type written struct {
	healthlab.Event
	at      time.Time // when it was written
	emptied bool      // its body is deleted
}

const eventColumns = `e.team_id, e.id, e.type, e.user_id, e.key, e.seq, e.at, e.created_at, octet_length(e.body) = 0`

// scanWritten reads eventColumns, and what stands behind them.
func scanWritten(row pgx.Row, more ...any) (*written, error) {
	var to scannedEvent
	err := row.Scan(to.targets(more...)...)
	return to.event(), err
}

// scannedEvent takes eventColumns, of one row after the other.
type scannedEvent struct {
	written
	user *uuid.UUID
}

func (s *scannedEvent) targets(more ...any) []any {
	return append(db.PlainTargets(&s.Team.UUID, &s.ID, &s.Type, &s.user, &s.Key, &s.Seq, &s.At, &s.at, &s.emptied), more...)
}

// event returns the event of the row that was scanned last.
func (s *scannedEvent) event() *written {
	e := s.written
	if s.user != nil {
		e.User.UUID = *s.user
	}
	return &e
}

// arrival is an event on its way into a lane.
type arrival struct {
	event *written
	name  laneName
	key   *uuid.UUID // within which it supersedes
}

func arrivalOf(t *webhook.Endpoint, e *written, mode healthlab.Mode) arrival {
	a := arrival{event: e, name: laneOf(t, e.Event, mode)}
	if k := webhook.SupersedeKey(e.Event, mode); k != "" {
		a.key = db.Optional(keyOf(k))
	}
	return a
}

// arrive puts an event into its lane, where the rule of lanes says.
func (l *lanes) arrive(a arrival, by webhook.Trigger) {
	fresh := &laneRow{
		laneName: a.name, key: a.key, seq: a.event.Seq, event: a.event.ID, created: a.event.at, cause: string(by),
		queued: l.now, due: l.now,
	}
	to := l.of(a.name)
	var view webhook.LaneView
	key, same := "", 0
	if len(to.rows) > 0 {
		view.Head, view.Behind = to.rows[0].view(l.now), to.more || len(to.rows) > 1
	}
	if a.key != nil {
		key = a.key.String()
		if len(to.rows) > 1 {
			same = slices.IndexFunc(to.rows[1:], func(r *laneRow) bool { return r.key != nil && *r.key == *a.key }) + 1
		}
		if same > 0 {
			view.Same = to.rows[same].view(l.now)
		}
	}
	switch webhook.Place(view, key, a.event.Seq) {
	case webhook.BecomeHead, webhook.WaitBehind:
		fresh.head = len(to.rows) == 0
		to.rows = append(to.rows, fresh)
		l.fresh = append(l.fresh, fresh)
	case webhook.ReplaceHead:
		l.replace(to.rows[0], fresh)
	case webhook.ReplaceWaiting:
		l.replace(to.rows[same], fresh)
	case webhook.Drop:
		l.end(fresh, webhook.ReasonSuperseded)
	}
}

// end notes that a row ends as cancelled.
func (l *lanes) end(r *laneRow, why webhook.Reason) {
	l.log.add(r, l.now, &webhook.Outcome{State: webhook.Cancelled, Reason: why})
}

// replace puts fresh into the place of old, which ends as superseded.
func (l *lanes) replace(old, fresh *laneRow) {
	l.end(old, webhook.ReasonSuperseded)
	old.event, old.created, old.seq, old.cause, old.queued = fresh.event, fresh.created, fresh.seq, fresh.cause, fresh.queued
	old.attempts, old.starts, old.failed, old.due, old.until, old.token = 0, 0, nil, l.now, nil, nil
	old.changed = true
}

// remove takes a row out of its lane. If it was the head, the next one is, due at once but
// for the lane's quiet time.
func (l *lanes) remove(r *laneRow) {
	from := l.of(r.laneName)
	at := slices.Index(from.rows, r)
	from.rows = slices.Delete(from.rows, at, at+1)
	switch {
	case r.deleted:
	case r.id != 0:
		l.gone = append(l.gone, r)
	default:
		l.fresh = slices.DeleteFunc(l.fresh, func(f *laneRow) bool { return f == r })
	}
	if at == 0 && len(from.rows) > 0 {
		next := from.rows[0]
		next.head, next.due, next.quiet, next.changed = true, l.now, r.quiet, true
	}
}

const (
	dropDeliveries = `
delete from healthlab.webhook_delivery d using unnest($1::uuid[], $2::bigint[]) x (team_id, id) where d.team_id = x.team_id and d.id = x.id`

	// The arrays are read in their order, and so are the ids drawn. In a list of columns
	// they are expanded row by row; behind from, each would be copied first.
	insertDeliveries = `
insert into healthlab.webhook_delivery (team_id, endpoint_id, lane, key_hash, seq, event_id, event_created, cause, head, attempts, starts,
	queued_at, due_at, quiet_until)
select x.team_id, x.endpoint_id, x.lane, x.key_hash, x.seq, x.event_id, x.event_created, x.cause, x.head, 0, 0, $10,
	greatest($10, x.quiet_until), x.quiet_until
from (select unnest($1::uuid[]) as team_id, unnest($2::uuid[]) as endpoint_id, unnest($3::uuid[]) as lane, unnest($4::uuid[]) as key_hash,
	unnest($5::bigint[]) as seq, unnest($6::uuid[]) as event_id, unnest($7::timestamptz[]) as event_created, unnest($8::text[]) as cause,
	unnest($9::boolean[]) as head, unnest($11::timestamptz[]) as quiet_until) x`

	updateDeliveries = `
update healthlab.webhook_delivery d set seq = x.seq, event_id = x.event_id, event_created = x.event_created, cause = x.cause,
	head = x.head, attempts = x.attempts, starts = x.starts, queued_at = x.queued_at, first_failed_at = x.first_failed_at,
	due_at = greatest(x.due_at, x.quiet_until), quiet_until = x.quiet_until, lease_until = x.lease_until, lease_token = x.lease_token
from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::timestamptz[], $6::text[], $7::boolean[], $8::integer[],
	$9::integer[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::bigint[])
	as x (team_id, id, seq, event_id, event_created, cause, head, attempts, starts, queued_at, first_failed_at, due_at, quiet_until,
		lease_until, lease_token)
where d.team_id = x.team_id and d.id = x.id`
)

// write adds to a batch what was changed. What leaves goes first, for a lane has one
// head at a time.
func (l *lanes) write(b *pgx.Batch) {
	l.log.insert(b)
	if len(l.gone) > 0 {
		teams, gone := make([]uuid.UUID, len(l.gone)), make([]int64, len(l.gone))
		for i, r := range l.gone {
			teams[i], gone[i] = r.team, r.id
		}
		b.Queue(dropDeliveries, teams, gone)
	}
	var changed []*laneRow
	for _, at := range l.all {
		for _, r := range at.rows {
			if r.changed && r.id != 0 {
				changed = append(changed, r)
			}
		}
	}
	if len(changed) > 0 {
		// Waiting rows become heads while others of them are replaced: in one order.
		slices.SortFunc(changed, func(a, b *laneRow) int { return cmp.Compare(a.id, b.id) })
		queueUpdates(b, changed)
	}
	if len(l.fresh) > 0 {
		l.insertFresh(b)
	}
}

func (l *lanes) insertFresh(b *pgx.Batch) {
	n := len(l.fresh)
	teams, endpoints, of, keys := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n), make([]*uuid.UUID, n)
	seqs, events, created := make([]int64, n), make([]uuid.UUID, n), make([]time.Time, n)
	causes, heads, quiets := make([]string, n), make([]bool, n), make([]*time.Time, n)
	for i, r := range l.fresh {
		teams[i], endpoints[i], of[i], keys[i] = r.team, r.endpoint, r.lane, r.key
		seqs[i], events[i], created[i] = r.seq, r.event, r.created
		causes[i], heads[i], quiets[i] = r.cause, r.head, r.quiet
	}
	b.Queue(insertDeliveries, teams, endpoints, of, keys, seqs, events, created, causes, heads, l.now, quiets)
}

func queueUpdates(b *pgx.Batch, changed []*laneRow) {
	n := len(changed)
	teams := make([]uuid.UUID, n)
	ids, seqs, events, created, causes := make([]int64, n), make([]int64, n), make([]uuid.UUID, n), make([]time.Time, n), make([]string, n)
	heads, attempts, starts := make([]bool, n), make([]int, n), make([]int, n)
	queued, failed, due, quiet := make([]time.Time, n), make([]*time.Time, n), make([]time.Time, n), make([]*time.Time, n)
	until, tokens := make([]*time.Time, n), make([]*int64, n)
	for i, r := range changed {
		teams[i], ids[i], seqs[i], events[i], created[i], causes[i] = r.team, r.id, r.seq, r.event, r.created, r.cause
		heads[i], attempts[i], starts[i] = r.head, r.attempts, r.starts
		queued[i], failed[i], due[i], quiet[i] = r.queued, r.failed, r.due, r.quiet
		until[i], tokens[i] = r.until, r.token
	}
	b.Queue(updateDeliveries, teams, ids, seqs, events, created, causes, heads, attempts, starts, queued, failed, due, quiet, until, tokens)
}
