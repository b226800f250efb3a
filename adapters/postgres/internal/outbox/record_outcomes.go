package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	leaseRows = `
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) x (team_id, id, token)
join healthlab.webhook_delivery d on d.team_id = x.team_id and d.id = x.id and d.lease_token = x.token`

	// What another process holds at this moment is recorded later.
	lockLeased = `select ` + laneColumns + leaseRows + ` order by d.lane for update of d skip locked`

	peekLeased = `select d.id` + leaseRows

	// Of those that end, what was claimed says the rest.
	endLeased = `
delete from healthlab.webhook_delivery where ctid = any (array(select d.ctid` + leaseRows + ` for update of d skip locked))
returning team_id, id, lease_token, lane, quiet_until`

	// The next of each lane. Read after the heads are locked or gone: from then on no
	// process adds to the lanes.
	readNext = `
select ` + laneColumns + `
from unnest($1::uuid[]) x (lane)
cross join lateral (
	select * from healthlab.webhook_delivery w
	where w.lane = x.lane and not w.head order by w.id limit 1) d`

	// Heads behind which a newer version of their key waits.
	selectOutdated = `
select h.id from unnest($1::uuid[], $2::bigint[]) x (team_id, id) join healthlab.webhook_delivery h on h.team_id = x.team_id and h.id = x.id
where h.key_hash is not null and exists (select from healthlab.webhook_delivery w
	where w.lane = h.lane and w.key_hash = h.key_hash and not w.head and w.seq > h.seq)`
)

// outcomeRecording is one transaction that records outcomes.
type outcomeRecording struct {
	lanes
	outcomes []webhook.Outcome
	held     map[webhook.Lease]*laneRow // heads that are ours, or were
	newer    map[int64]bool             // heads behind which a newer version waits
	leased   map[int64]bool             // heads whose lease holds, but are held by another transaction
}

func (d deliveries) RecordOutcomes(ctx context.Context, outcomes []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	for _, o := range outcomes {
		if o.State != webhook.Retrying && !o.State.Final() {
			return webhook.RecordedOutcomes{}, fmt.Errorf("record outcomes: %w: an outcome is final or to be retried", healthlab.Invalid)
		}
	}
	var recorded webhook.RecordedOutcomes
	err := d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		s := &outcomeRecording{
			lanes: *newLanes(len(outcomes)), outcomes: outcomes,
			held: make(map[webhook.Lease]*laneRow, len(outcomes)), newer: map[int64]bool{}, leased: map[int64]bool{},
		}
		if err := s.hold(ctx, u); err != nil {
			return err
		}
		if err := s.read(ctx, u); err != nil {
			return err
		}
		b := u.Batch()
		var events []healthlab.Event
		recorded, events = s.apply(b)
		if err := d.s.Emit(ctx, u, b, events, Names{}); err != nil {
			return fmt.Errorf("record outcomes: %w", err)
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return webhook.RecordedOutcomes{}, err
	}
	return recorded, nil
}

// leases are leases as arguments.
type leases struct {
	teams       []uuid.UUID
	ids, tokens []int64
}

// newLeases makes room for so many.
func newLeases(n int) leases {
	return leases{make([]uuid.UUID, 0, n), make([]int64, 0, n), make([]int64, 0, n)}
}

func (l *leases) add(of webhook.Lease) {
	l.teams, l.ids, l.tokens = append(l.teams, of.Team.UUID), append(l.ids, int64(of.Delivery)), append(l.tokens, of.Token)
}

// hold deletes the heads that end, and locks those that are to be retried.
func (s *outcomeRecording) hold(ctx context.Context, u *db.Tx) error {
	var staying leases
	ending := newLeases(len(s.outcomes))
	first := make(map[webhook.Lease]*webhook.Delivery, len(s.outcomes))
	for i := range s.outcomes {
		o := &s.outcomes[i]
		switch {
		case first[o.Delivery.Lease] != nil:
			continue
		case o.State.Final():
			ending.add(o.Delivery.Lease)
		default:
			staying.add(o.Delivery.Lease)
		}
		first[o.Delivery.Lease] = &o.Delivery
	}
	b := u.Batch()
	u.Tune(b, tuneRelaxed)
	if len(ending.ids) > 0 {
		b.Queue(endLeased, ending.teams, ending.ids, ending.tokens).Query(func(rows pgx.Rows) error {
			var was laneRow
			to := db.PlainTargets(&was.team, &was.id, &was.token, &was.lane, &was.quiet)
			ended := make([]laneRow, len(ending.ids))
			for rows.Next() {
				if err := rows.Scan(to...); err != nil {
					return err
				}
				r := &ended[0]
				ended, *r = ended[1:], was
				d := first[r.lease()]
				r.head, r.deleted = true, true
				r.endpoint, r.event, r.attempts, r.cause = d.Endpoint.UUID, d.Event, d.Attempts, string(d.Trigger)
				s.take(r)
			}
			return rows.Err()
		})
	}
	if len(staying.ids) > 0 {
		b.Queue(lockLeased, staying.teams, staying.ids, staying.tokens).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				r, err := scanLaneRow(rows)
				if err != nil {
					return err
				}
				s.take(r)
			}
			return rows.Err()
		})
	}
	db.ReadClock(b, &s.now)
	return u.Send(ctx, b)
}

func (s *outcomeRecording) take(r *laneRow) {
	s.held[r.lease()] = r
	s.add(r)
}

// read reads what stands behind the heads, and who holds those that are not ours.
func (s *outcomeRecording) read(ctx context.Context, u *db.Tx) error {
	of := make([]uuid.UUID, 0, len(s.held))
	var staying leases
	for _, r := range s.held {
		of = append(of, r.lane)
		if !r.deleted {
			staying.teams, staying.ids = append(staying.teams, r.team), append(staying.ids, r.id)
		}
	}
	var others leases
	for i := range s.outcomes {
		if l := s.outcomes[i].Delivery.Lease; s.held[l] == nil {
			others.add(l)
		}
	}
	b := u.Batch()
	b.Queue(readNext, of).Query(s.scan)
	if len(staying.ids) > 0 {
		b.Queue(selectOutdated, staying.teams, staying.ids).Query(collect(s.newer))
	}
	if len(others.ids) > 0 {
		b.Queue(peekLeased, others.teams, others.ids, others.tokens).Query(collect(s.leased))
	}
	return u.Send(ctx, b)
}

// collect gathers ids.
func collect(into map[int64]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { into[id] = true; return nil })
		return err
	}
}

// apply applies the outcomes whose lease is held, adds to a batch what writes that, and
// returns the events of those.
func (s *outcomeRecording) apply(b *pgx.Batch) (recorded webhook.RecordedOutcomes, events []healthlab.Event) {
	var lost attemptRows
	s.log.grow(len(s.outcomes))
	logged := make(map[webhook.Lease]bool, len(s.outcomes))
	for i := range s.outcomes {
		o := &s.outcomes[i]
		d := &o.Delivery
		r := s.held[d.Lease]
		switch {
		case r != nil && r.token != nil:
			events = append(events, o.Events...)
			s.applyOutcome(r, o)
			logged[d.Lease] = true
		case r == nil && s.leased[int64(d.Delivery)]:
			recorded.Locked = append(recorded.Locked, d.Lease)
		default:
			recorded.Lost = append(recorded.Lost, d.Lease)
			if logged[d.Lease] {
				continue
			}
			logged[d.Lease] = true
			n := d.Attempts
			if o.Sent {
				n++
			}
			late := *o
			late.State, late.Reason = webhook.Retrying, webhook.ReasonLeaseLost
			lost.line(d.Team.UUID, d.Endpoint.UUID, d.Event, int64(d.Delivery), n, string(d.Trigger), s.now, &late)
		}
	}
	s.write(b)
	lost.insertLost(b)
	return recorded, events
}

// applyOutcome applies one outcome.
func (s *outcomeRecording) applyOutcome(r *laneRow, o *webhook.Outcome) {
	if o.Sent {
		r.attempts++
	}
	r.token, r.until, r.starts, r.changed = nil, nil, 0, !r.deleted
	if o.Quiet > 0 {
		r.quiet = db.Nullable(s.now.Add(o.Quiet))
	}
	if o.State == webhook.Retrying && s.newer[r.id] {
		ended := *o
		ended.State, ended.Reason = webhook.Cancelled, webhook.ReasonSuperseded
		o = &ended
	}
	s.log.add(r, s.now, o)
	if o.State.Final() {
		s.remove(r)
		return
	}
	if r.failed == nil && o.Sent {
		r.failed = db.Nullable(s.now)
	}
	r.due = s.now.Add(o.Delay)
}

const releaseDeliveries = `
update healthlab.webhook_delivery d set lease_until = null, lease_token = null, starts = d.starts - 1,
	due_at = greatest(healthlab.clock() + x.delay * interval '1 microsecond', d.quiet_until)
from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[]) as x (team_id, id, token, delay)
where d.team_id = x.team_id and d.id = x.id and d.lease_token = x.token`

func (d deliveries) Release(ctx context.Context, back []webhook.Released) error {
	var of leases
	delays := make([]int64, len(back))
	for i, r := range back {
		of.add(r.Lease)
		delays[i] = r.Delay.Microseconds()
	}
	return d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		u.Tune(b, tuneRelaxed)
		b.Queue(releaseDeliveries, of.teams, of.ids, of.tokens, delays)
		return u.Commit(ctx, b)
	})
}
