package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	leaseRows = `
from unnest($1::bigint[], $2::bigint[]) x (id, token)
join healthlab.webhook_delivery d on d.id = x.id and d.lease_token = x.token`

	// What somebody else holds at this moment is settled later.
	lockLeased = `select ` + laneColumns + leaseRows + ` order by d.lane for update of d skip locked`

	peekLeased = `select d.id` + leaseRows

	// The next of each lane, and whether a newer version of the head's key waits. Read
	// after the heads are locked: from then on nobody adds to the lanes.
	readNext = `
select ` + laneColumns + `, h.id, h.key_hash is not null and exists (select from healthlab.webhook_delivery w
	where w.lane = h.lane and w.key_hash = h.key_hash and not w.head and w.seq > h.seq)
from unnest($1::bigint[]) x (id) join healthlab.webhook_delivery h on h.id = x.id
cross join lateral (
	select * from healthlab.webhook_delivery w
	where w.lane = h.lane and not w.head order by w.id limit 1) d`
)

// settling is one transaction that records outcomes.
type settling struct {
	lanes
	outcomes []webhook.Outcome
	held     map[int64]*laneRow
	newer    map[int64]bool // heads behind which a newer version waits
	leased   map[int64]bool // heads whose lease holds, ours or held by somebody
}

func (d deliveries) Settle(ctx context.Context, outcomes []webhook.Outcome) (webhook.Settled, error) {
	for _, o := range outcomes {
		if o.State != webhook.Retrying && !o.State.Final() {
			return webhook.Settled{}, fmt.Errorf("settle: %w: an outcome is final or to be retried", healthlab.Invalid)
		}
	}
	var settled webhook.Settled
	err := d.s.do(ctx, allTeams, writing, func(u *unit) error {
		s := &settling{lanes: *newLanes(), outcomes: outcomes}
		if err := s.read(ctx, u); err != nil {
			return err
		}
		b := u.batch()
		var events []healthlab.Event
		settled, events = s.apply(b)
		if err := u.emit(ctx, b, events, names{}); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		return u.commit(ctx, b)
	})
	if err != nil {
		return webhook.Settled{}, err
	}
	return settled, nil
}

func (s *settling) read(ctx context.Context, u *unit) error {
	ids, tokens := make([]int64, len(s.outcomes)), make([]int64, len(s.outcomes))
	for i := range s.outcomes {
		ids[i], tokens[i] = int64(s.outcomes[i].Delivery.Delivery), s.outcomes[i].Delivery.Token
	}
	s.held, s.newer, s.leased = map[int64]*laneRow{}, map[int64]bool{}, map[int64]bool{}
	b := u.batch()
	u.tune(b, tuneRelaxed)
	b.Queue(lockLeased, ids, tokens).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanLaneRow(rows)
			if err != nil {
				return err
			}
			s.held[r.id] = r
			s.add(r)
		}
		return rows.Err()
	})
	b.Queue(peekLeased, ids, tokens).Query(func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { s.leased[id] = true; return nil })
		return err
	})
	b.Queue(readNext, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var of int64
			var newer bool
			r, err := scanLaneRow(rows, &of, &newer)
			if err != nil {
				return err
			}
			if s.held[of] != nil {
				s.add(r)
				s.newer[of] = newer
			}
		}
		return rows.Err()
	})
	b.Queue(readClock).QueryRow(func(row pgx.Row) error { return row.Scan(&s.now) })
	return u.send(ctx, b)
}

// apply applies the outcomes whose lease is held, adds to a batch what writes that, and
// returns the events of those.
func (s *settling) apply(b *pgx.Batch) (settled webhook.Settled, events []healthlab.Event) {
	var lost attemptRows
	logged := map[webhook.Lease]bool{}
	for i := range s.outcomes {
		o := &s.outcomes[i]
		d := &o.Delivery
		r := s.held[int64(d.Delivery)]
		switch {
		case r != nil && r.token != nil && *r.token == d.Token:
			events = append(events, o.Events...)
			s.settle(r, *o)
			logged[d.Lease] = true
		case r == nil && s.leased[int64(d.Delivery)]:
			settled.Later = append(settled.Later, d.Lease)
		default:
			settled.Lost = append(settled.Lost, d.Lease)
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
	return settled, events
}

// settle applies one outcome.
func (s *settling) settle(r *laneRow, o webhook.Outcome) {
	if o.Sent {
		r.attempts++
	}
	r.token, r.until, r.starts, r.changed = nil, nil, 0, true
	if o.Quiet > 0 {
		r.quiet = nullable(s.now.Add(o.Quiet))
	}
	if o.State == webhook.Retrying && s.newer[r.id] {
		o.State, o.Reason = webhook.Cancelled, webhook.ReasonSuperseded
	}
	s.log.add(r, s.now, &o)
	if o.State.Final() {
		s.remove(r)
		return
	}
	if r.failed == nil && o.Sent {
		r.failed = nullable(s.now)
	}
	r.due = s.now.Add(o.Delay)
}

const releaseDeliveries = `
update healthlab.webhook_delivery d set lease_until = null, lease_token = null, starts = d.starts - 1,
	due_at = greatest(healthlab.clock() + x.delay * interval '1 microsecond', d.quiet_until)
from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as x (id, token, delay)
where d.id = x.id and d.lease_token = x.token`

func (d deliveries) Release(ctx context.Context, back []webhook.Released) error {
	ids, tokens, delays := make([]int64, len(back)), make([]int64, len(back)), make([]int64, len(back))
	for i, r := range back {
		ids[i], tokens[i], delays[i] = int64(r.Lease.Delivery), r.Lease.Token, r.Delay.Microseconds()
	}
	return d.s.do(ctx, allTeams, writing, func(u *unit) error {
		b := u.batch()
		u.tune(b, tuneRelaxed)
		b.Queue(releaseDeliveries, ids, tokens, delays)
		return u.commit(ctx, b)
	})
}
