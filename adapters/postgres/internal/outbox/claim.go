package outbox

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// claimedAtOnce is how many deliveries room is made for before they come.
const claimedAtOnce = 256

const (
	isFree = `(d.lease_until is null or d.lease_until <= healthlab.clock())`

	onTrial = `exists (select from healthlab.webhook_delivery o
		where o.endpoint_id = e.id and o.head and o.due_at <= healthlab.clock() and o.lease_until > healthlab.clock())`

	isAwake = `(e.paused_until is null or e.paused_until <= healthlab.clock())`

	// From each endpoint that has heads to the next one: its heads themselves, of which
	// there may be very many, are not read.
	selectDue = `
with recursive t (endpoint_id) as (
	(select d.endpoint_id from healthlab.webhook_delivery d where d.head order by d.endpoint_id limit 1)
	union all
	select (select d.endpoint_id from healthlab.webhook_delivery d where d.head and d.endpoint_id > t.endpoint_id
		order by d.endpoint_id limit 1)
	from t where t.endpoint_id is not null)
select e.id from t join healthlab.webhook_endpoint e on e.id = t.endpoint_id
where ` + isAwake + `
	and exists (select from healthlab.webhook_delivery d where d.endpoint_id = e.id and d.head and d.due_at <= healthlab.clock() and ` + isFree + `)
	and (e.pause_step = 0 or not ` + onTrial + `)`

	selectTrials = `select e.id from healthlab.webhook_endpoint e where e.id = any ($1) and e.pause_step > 0 and ` + isAwake

	// One claim at a time tries an endpoint that is on probation.
	lockTrials = selectTrials + ` order by e.id for no key update skip locked`

	// A token tells two leases of one delivery apart: 53 bits of chance do for that. No
	// delivery is without its message, so what is locked is leased. With coalesce, which
	// changes nothing, the server does not think of joining along an index of all
	// deliveries, which it would do for good where there were none when it counted.
	leaseOf = ` set lease_until = healthlab.clock() + $3::interval, starts = d.starts + 1,
	lease_token = 1 + (random() * 9007199254740991)::bigint
from healthlab.webhook_event v
where v.team_id = coalesce(d.team_id, d.lane) and v.id = coalesce(d.event_id, d.lane) and v.created_at = d.event_created
	and d.ctid = any (array(select x.row from unnest($1::uuid[], $2::integer[]) q (endpoint_id, most)
		join healthlab.webhook_endpoint e on e.id = q.endpoint_id
		cross join lateral (
			select d.ctid as row from healthlab.webhook_delivery d
			where d.endpoint_id = e.id and d.head and d.due_at <= healthlab.clock() and ` + isFree

	// What is locked and read here is not sorted here, for the bodies are a lot to move.
	handOut = ` for update skip locked) x
		where ` + isAwake + `))
returning d.id, d.lease_token, d.endpoint_id, d.team_id, v.user_id, d.event_id, v.type, v.key, v.seq, v.at, v.trace, v.body, d.cause, d.attempts, d.starts,
	d.queued_at, d.first_failed_at, d.due_at,
	d.key_hash is not null and exists (select from healthlab.webhook_delivery w
		where w.lane = d.lane and w.key_hash = d.key_hash and not w.head and w.seq > d.seq),
	exists (select from healthlab.webhook_delivery w where w.lane = d.lane and not w.head)`

	claimDeliveries = `update healthlab.webhook_delivery d` + leaseOf + ` and e.pause_step = 0 order by d.due_at, d.id limit q.most` + handOut

	claimTrials = `update healthlab.webhook_delivery d` + leaseOf + ` and not ` + onTrial + ` order by d.attempts, d.due_at, d.id limit least(q.most, 1)` + handOut
)

func (d deliveries) Due(ctx context.Context) ([]webhook.EndpointID, error) {
	var out []webhook.EndpointID
	err := d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out = nil
		b := u.Batch()
		u.Tune(b, tuneQueue)
		b.Queue(selectDue).Query(func(rows pgx.Rows) error {
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			for _, id := range ids {
				out = append(out, webhook.EndpointID{UUID: id})
			}
			return err
		})
		return u.Commit(ctx, b)
	})
	return out, err
}

// claiming is a claim as arguments.
type claiming struct {
	ids   []uuid.UUID
	most  []int32
	lease time.Duration
}

func (d deliveries) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	in := claiming{lease: c.Lease}
	for _, q := range c.Quotas {
		if q.Max > 0 {
			in.ids, in.most = append(in.ids, q.Endpoint.UUID), append(in.most, int32(min(q.Max, 1<<20)))
		}
	}
	var out webhook.Claimed
	var refs []personkey.Ref
	var trials []uuid.UUID
	err := d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out, refs, trials = webhook.Claimed{}, nil, nil
		b := u.Batch()
		u.Tune(b, tuneRelaxed)
		if len(in.ids) > 0 {
			in.queue(b, claimDeliveries, &out, &refs)
			b.Queue(selectTrials, in.ids).Query(func(rows pgx.Rows) (err error) {
				trials, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				return err
			})
		}
		db.ReadClock(b, &out.At)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return webhook.Claimed{}, err
	}
	out.At = out.At.UTC()
	if err := d.s.openBodies(ctx, &out, refs); err != nil {
		return webhook.Claimed{}, err
	}
	if len(trials) > 0 {
		in.keep(trials)
		tried, err := d.try(ctx, in)
		if err != nil && len(out.Deliveries) == 0 {
			return webhook.Claimed{}, err
		}
		out.Deliveries = append(out.Deliveries, tried...) // what was claimed before an error is claimed
	}
	return out, nil
}

// try claims one delivery of each endpoint that is on probation, if no other process does.
func (d deliveries) try(ctx context.Context, in claiming) ([]webhook.Delivery, error) {
	var out webhook.Claimed
	var refs []personkey.Ref
	err := d.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		out, refs = webhook.Claimed{}, nil
		var ours []uuid.UUID
		b := u.Batch()
		u.Tune(b, tuneRelaxed)
		b.Queue(lockTrials, in.ids).Query(func(rows pgx.Rows) (err error) {
			ours, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
		if err := u.Send(ctx, b); err != nil || len(ours) == 0 {
			return err
		}
		in.keep(ours)
		b = u.Batch()
		in.queue(b, claimTrials, &out, &refs)
		return u.Commit(ctx, b)
	})
	if err == nil {
		err = d.s.openBodies(ctx, &out, refs)
	}
	return out.Deliveries, err
}

// openBodies decrypts the bodies of deliveries, whose persons are refs. A delivery about an
// erased person is left out; there are some in a restored backup.
func (s *Store) openBodies(ctx context.Context, c *webhook.Claimed, refs []personkey.Ref) error {
	if s.db.Keys == nil {
		return nil
	}
	if err := s.db.Keys.Load(ctx, refs); err != nil {
		return err
	}
	kept := c.Deliveries[:0]
	for i, v := range c.Deliveries {
		body, err := s.db.Keys.Open(ctx, refs[i], personkey.RowEvent(v.Event), v.Body)
		if errors.Is(err, personkey.ErrErased) {
			continue
		} else if err != nil {
			return err
		}
		v.Body = body
		kept = append(kept, v)
	}
	c.Deliveries = kept
	return nil
}

// keep narrows a claim to some of its endpoints.
func (c *claiming) keep(ids []uuid.UUID) {
	quota := map[uuid.UUID]int32{}
	for i, id := range c.ids {
		quota[id] = c.most[i]
	}
	c.ids, c.most = ids, nil
	for _, id := range ids {
		c.most = append(c.most, quota[id])
	}
}

func (c *claiming) queue(b *pgx.Batch, sql string, out *webhook.Claimed, refs *[]personkey.Ref) {
	room := 0
	for _, n := range c.most {
		room += int(n)
	}
	b.Queue(sql, c.ids, c.most, c.lease).Query(func(rows pgx.Rows) error {
		var got byDue
		var v webhook.Delivery
		var due time.Time
		var failed *time.Time
		var user *uuid.UUID
		to := db.PlainTargets((*int64)(&v.Delivery), &v.Token, &v.Endpoint.UUID, &v.Team.UUID, &user, &v.Event, &v.Type, &v.Key, &v.Seq,
			&v.At, &v.Trace, &v.Body, (*string)(&v.Trigger), &v.Attempts, &v.Starts, &v.QueuedAt, &failed, &due, &v.Superseded, &v.Blocking)
		for rows.Next() {
			if got.all == nil {
				n := min(room, claimedAtOnce)
				got = byDue{make([]webhook.Delivery, 0, n), make([]time.Time, 0, n), make([]personkey.Ref, 0, n)}
			}
			if err := rows.Scan(to...); err != nil {
				return err
			}
			v.At, v.QueuedAt, v.FirstFailedAt = v.At.UTC(), v.QueuedAt.UTC(), db.TimeOrZero(failed)
			ref := personkey.Ref{Team: v.Team}
			if user != nil {
				ref.User.UUID = *user
			}
			got.all, got.due, got.refs = append(got.all, v), append(got.due, due), append(got.refs, ref)
		}
		sort.Sort(got)
		out.Deliveries, *refs = got.all, got.refs
		return rows.Err()
	})
}

// byDue sorts deliveries, the longest due first.
type byDue struct {
	all  []webhook.Delivery
	due  []time.Time
	refs []personkey.Ref
}

func (s byDue) Len() int { return len(s.all) }

func (s byDue) Less(i, j int) bool {
	if c := s.due[i].Compare(s.due[j]); c != 0 {
		return c < 0
	}
	return s.all[i].Delivery < s.all[j].Delivery
}

func (s byDue) Swap(i, j int) {
	s.all[i], s.all[j] = s.all[j], s.all[i]
	s.due[i], s.due[j] = s.due[j], s.due[i]
	s.refs[i], s.refs[j] = s.refs[j], s.refs[i]
}
