package outbox

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Deliveries returns the store as a [webhook.Deliveries].
func (s *Store) Deliveries() webhook.Deliveries { return deliveries{s} }

type deliveries struct{ s *Store }

// Routing is the advisory lock for adding to lanes and taking messages away.
const Routing = db.MigrationLock + 1

const (
	tryRouting  = `select pg_try_advisory_xact_lock($1)`
	holdRouting = `select pg_advisory_xact_lock($1)`

	// The statements of the queue find rows by their indexes, however empty or full the
	// tables were when they were last counted. A process that is suspended between two of
	// them loses its transaction, with the lock of routing, which all others wait for.
	tuneQueue = `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true), ` + db.KeepPlans + `,
	set_config('idle_in_transaction_session_timeout', '10s', true)`

	// A claim or an outcome that is lost with the server is repeated.
	tuneRelaxed = tuneQueue + `, set_config('synchronous_commit', 'off', true)`

	// No process holds a lane for longer than a moment, but for a host in its own transaction.
	tunePatience = `select set_config('lock_timeout', '250ms', true)`
)

const (
	selectPending = `
select ` + eventColumns + `, p.n
from (select team_id, n, event_id from healthlab.webhook_pending order by n limit $1) p
join healthlab.webhook_event e on e.team_id = p.team_id and e.id = p.event_id
order by p.n`

	targetColumns = `e.id, e.team_id, e.order_scope, e.filter_types`

	// An endpoint is not disabled while messages are put into its lanes.
	selectTargets = `
select ` + targetColumns + ` from healthlab.webhook_endpoint e where e.team_id = any ($1) and not e.disabled order by e.id for share`

	tryTargets = selectTargets + ` skip locked`

	peekTargets = `
select ` + targetColumns + ` from healthlab.webhook_endpoint e where e.team_id = any ($1) and not e.disabled order by e.id`

	dropPending = `delete from healthlab.webhook_pending where n = any ($1)`
)

func scanTargets(rows pgx.Rows) ([]webhook.Endpoint, error) {
	var out []webhook.Endpoint
	for rows.Next() {
		var t webhook.Endpoint
		if err := rows.Scan(db.PlainTargets(&t.ID.UUID, &t.Team.UUID, (*string)(&t.OrderScope), &t.FilterTypes)...); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

func (d deliveries) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	routed, err := d.route(ctx, modes, most, false)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		// A lane is held for long. Leave what wants it, and route the rest.
		routed, err = d.route(ctx, modes, most, true)
	}
	return routed, err
}

func (d deliveries) route(ctx context.Context, modes map[string]healthlab.Mode, most int, skip bool) (routed webhook.Routed, err error) {
	err = d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		r := &round{u: u, modes: modes, skip: skip}
		routed = webhook.Routed{}
		mine, err := r.read(ctx, most)
		if err != nil || !mine || len(r.events) == 0 {
			return err
		}
		if err := r.aim(ctx); err != nil {
			return err
		}
		b := u.Batch()
		routed, err = r.place(ctx, b)
		if err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return webhook.Routed{}, err
	}
	return routed, nil
}

// round is one transaction of routing.
type round struct {
	u     *db.Tx
	modes map[string]healthlab.Mode
	skip  bool // what is held is left for later

	events  []*written
	places  []int64 // of events in webhook_pending
	targets map[healthlab.TeamID][]webhook.Endpoint
	busy    map[uuid.UUID]bool // endpoints that are held
}

// read takes the lock of routing and reads what is pending. It reports whether the lock
// was free.
func (r *round) read(ctx context.Context, most int) (mine bool, err error) {
	b := r.u.Batch()
	r.u.Tune(b, tuneQueue, tunePatience)
	b.Queue(tryRouting, int64(Routing)).QueryRow(func(row pgx.Row) error { return row.Scan(&mine) })
	b.Queue(selectPending, most).Query(func(rows pgx.Rows) error {
		var n int64
		var row scannedEvent
		to := row.targets(&n)
		for rows.Next() {
			if err := rows.Scan(to...); err != nil {
				return err
			}
			r.events, r.places = append(r.events, row.event()), append(r.places, n)
		}
		return rows.Err()
	})
	return mine, r.u.Send(ctx, b)
}

// aim reads the endpoints of the teams that have events, and keeps them as they are.
func (r *round) aim(ctx context.Context) error {
	var teams []uuid.UUID
	known := map[healthlab.TeamID]bool{}
	for _, e := range r.events {
		if !known[e.Team] {
			known[e.Team] = true
			teams = append(teams, e.Team.UUID)
		}
	}
	r.targets, r.busy = map[healthlab.TeamID][]webhook.Endpoint{}, map[uuid.UUID]bool{}
	ours := map[uuid.UUID]bool{}
	b := r.u.Batch()
	if r.skip {
		b.Queue(tryTargets, teams).Query(func(rows pgx.Rows) error {
			held, err := scanTargets(rows)
			for _, t := range held {
				ours[t.ID.UUID] = true
			}
			return err
		})
	}
	sql := selectTargets
	if r.skip {
		sql = peekTargets
	}
	b.Queue(sql, teams).Query(func(rows pgx.Rows) error {
		all, err := scanTargets(rows)
		for _, t := range all {
			r.targets[t.Team] = append(r.targets[t.Team], t)
			r.busy[t.ID.UUID] = r.skip && !ours[t.ID.UUID]
		}
		return err
	})
	return r.u.Send(ctx, b)
}

// place puts the events into their lanes, adds to a batch what writes that, and returns
// what it took. An event that wants a lane that is held stays, and so does
// every later one that wants a lane of such an event.
func (r *round) place(ctx context.Context, b *pgx.Batch) (webhook.Routed, error) {
	arrivals := make([][]arrival, len(r.events))
	var names []laneName
	var keys []*uuid.UUID
	for i, e := range r.events {
		targets := r.targets[e.Team]
		for j := range targets {
			if t := &targets[j]; t.Wants(e.Event) {
				a := arrivalOf(t, e, webhook.ModeOf(r.modes, e.Type))
				arrivals[i] = append(arrivals[i], a)
				names, keys = append(names, a.name), append(keys, a.key)
			}
		}
	}
	l, busy, err := loadHeads(ctx, r.u, names, keys, r.skip)
	if err != nil {
		return webhook.Routed{}, err
	}
	places := make([]int64, 0, len(r.events))
	to := map[webhook.EndpointID]bool{}
	for i := range r.events {
		wait := false
		for _, a := range arrivals[i] {
			wait = wait || busy[a.name] || r.busy[a.name.endpoint]
		}
		for _, a := range arrivals[i] {
			if wait {
				busy[a.name] = true
			} else {
				l.arrive(a, webhook.TriggerEvent)
				to[webhook.EndpointID{UUID: a.name.endpoint}] = true
			}
		}
		if !wait {
			places = append(places, r.places[i])
		}
	}
	l.write(b)
	b.Queue(dropPending, places)
	return webhook.Routed{Events: len(places), Endpoints: slices.Collect(maps.Keys(to))}, nil
}
