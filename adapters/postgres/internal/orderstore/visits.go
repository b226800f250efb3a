package orderstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

const (
	releaseHolds = `delete from healthlab.order_hold where team_id = $1 and order_id = $2 and name <> all ($3::text[])`

	// What the order has already stays; what another one has ends the transaction.
	takeHolds = `
insert into healthlab.order_hold (team_id, name, order_id)
select $1, n, $2 from unnest($3::text[]) n
where not exists (select from healthlab.order_hold h where h.team_id = $1 and h.name = n and h.order_id = $2)`

	selectHeld = `select name from healthlab.order_hold where team_id = $1 and order_id <> $2 and name = any ($3::text[]) order by name limit 1`

	deleteHoldsOfUser = `
delete from healthlab.order_hold k using healthlab.orders o, healthlab.users u
where o.user_id = $1 and u.user_id = $1 and o.team_id = u.team_id and k.team_id = o.team_id and k.order_id = o.order_id`
)

// holdKey is the constraint that says that another order holds something.
const holdKey = "order_hold_pkey"

// holdsOf returns the reservations of an order, in the order in which all writers lock them.
func holdsOf(r *orders.Record) []string {
	return slices.Compact(slices.Sorted(slices.Values(r.Reservations())))
}

// queueHolds changes what an order holds, if it does.
func queueHolds(b *pgx.Batch, r *orders.Record, was []string) {
	now := holdsOf(r)
	if slices.Equal(was, now) {
		return
	}
	if now == nil {
		now = []string{}
	}
	b.Queue(releaseHolds, r.TeamID.UUID, r.ID.UUID, now)
	b.Queue(takeHolds, r.TeamID.UUID, r.ID.UUID, now)
}

// held says which name another order holds, where that is why a change failed.
func (v ordersStore) held(ctx context.Context, err error, team healthlab.TeamID, id orders.OrderID, wanted []string) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.ConstraintName != holdKey {
		return err
	}
	var name string
	read := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectHeld, team.UUID, id.UUID, wanted).QueryRow(func(row pgx.Row) error { return row.Scan(&name) })
	})
	switch {
	case errors.Is(read, pgx.ErrNoRows):
		return fmt.Errorf("%w: gave up under contention", healthlab.Unavailable) // it was given back meanwhile
	case read != nil:
		return read
	}
	return &orders.ReservedError{Name: name}
}

const claimVisits = `
with due as (
	select team_id, order_id, visit_due as was from healthlab.orders
	where visit_due <= $1 and (visit_lease is null or visit_lease <= healthlab.clock())
	order by visit_due, order_id limit $2 for no key update skip locked
), moved as (
	update healthlab.orders t set visit_lease = healthlab.clock() + $3::interval
	from due where t.team_id = due.team_id and t.order_id = due.order_id
	returning t.*, due.was
)
select ` + orderColumns + ` from moved o order by o.was, o.order_id`

// ClaimVisits implements [orders.VisitStore].
func (v ordersStore) ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	return v.claim(ctx, claimVisits, n, now, lease)
}

const (
	putSlots = `
insert into healthlab.slot_cache as c (team_id, lab, site, at, slots) values ($1, $2, $3, $4, $5)
on conflict (team_id, lab, site) do update set at = excluded.at, slots = excluded.slots where c.at <= excluded.at`

	selectSlots = `select site, at, slots from healthlab.slot_cache where team_id = $1 and lab = $2 and site = any ($3::text[])`
)

// SlotCache returns the store as an [appointment.SlotCache].
func (s *Store) SlotCache() appointment.SlotCache { return slotCache{s} }

type slotCache struct{ s *Store }

func (v slotCache) PutSlots(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
	sites := make([]string, 0, len(slots))
	for site := range slots {
		sites = append(sites, site)
	}
	slices.Sort(sites) // all writers lock in this order
	return v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		b := x.Batch()
		for _, site := range sites {
			free := slices.Clone(slots[site])
			for i := range free {
				own := &free[i]
				own.Start, own.End = db.Instant(own.Start), db.Instant(own.End)
				if !own.Expires.IsZero() {
					own.Expires = db.Instant(own.Expires)
				}
			}
			if free == nil {
				free = []appointment.Slot{}
			}
			doc, err := json.Marshal(free)
			if err != nil {
				return db.Answer(fmt.Errorf("encode slots: %w", err))
			}
			if db.Spoilt(doc) {
				return db.Answer(fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid))
			}
			b.Queue(putSlots, db.AllTeams.UUID, lab, site, db.Instant(at), doc)
		}
		return x.Commit(ctx, b)
	})
}

func (v slotCache) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
	var out map[string]appointment.CachedSlots
	err := v.s.db.Do(ctx, db.AllTeams, db.Reading, func(x *db.Tx) error {
		out = map[string]appointment.CachedSlots{}
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(selectSlots, db.AllTeams.UUID, lab, sites).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var site string
					var doc []byte
					var c appointment.CachedSlots
					if err := rows.Scan(&site, &c.At, &doc); err != nil {
						return err
					}
					if err := json.Unmarshal(doc, &c.Slots); err != nil {
						return fmt.Errorf("decode slots: %w", err)
					}
					c.At = c.At.UTC()
					out[site] = c
				}
				return rows.Err()
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
