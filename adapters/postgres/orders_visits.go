package postgres

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

// holdsOf returns what an order holds, in the order in which everybody takes it.
func holdsOf(r *orders.Record) []string {
	return slices.Compact(slices.Sorted(slices.Values(r.Holds())))
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
	read := v.s.read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectHeld, team.UUID, id.UUID, wanted).QueryRow(func(row pgx.Row) error { return row.Scan(&name) })
	})
	switch {
	case errors.Is(read, pgx.ErrNoRows):
		return fmt.Errorf("%w: gave up under contention", healthlab.Unavailable) // it was given back meanwhile
	case read != nil:
		return read
	}
	return &orders.HeldError{Name: name}
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
	keepSlots = `
insert into healthlab.slot_cache as c (team_id, lab, site, at, slots) values ($1, $2, $3, $4, $5)
on conflict (team_id, lab, site) do update set at = excluded.at, slots = excluded.slots where c.at <= excluded.at`

	selectSlots = `select site, at, slots from healthlab.slot_cache where team_id = $1 and lab = $2 and site = any ($3::text[])`
)

// SlotCache returns the store as an [appointment.SlotCache].
func (s *Store) SlotCache() appointment.SlotCache { return slotCache{s} }

type slotCache struct{ s *Store }

func (v slotCache) KeepSlots(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
	sites := make([]string, 0, len(slots))
	for site := range slots {
		sites = append(sites, site)
	}
	slices.Sort(sites) // everybody locks in this order
	return v.s.do(ctx, allTeams, writing, func(x *unit) error {
		b := x.batch()
		for _, site := range sites {
			free := slices.Clone(slots[site])
			for i := range free {
				own := &free[i]
				own.Start, own.End = instant(own.Start), instant(own.End)
				if !own.Expires.IsZero() {
					own.Expires = instant(own.Expires)
				}
			}
			if free == nil {
				free = []appointment.Slot{}
			}
			doc, err := json.Marshal(free)
			if err != nil {
				return answer{fmt.Errorf("encode slots: %w", err)}
			}
			if spoilt(doc) {
				return answer{fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)}
			}
			b.Queue(keepSlots, allTeams.UUID, lab, site, instant(at), doc)
		}
		return x.commit(ctx, b)
	})
}

func (v slotCache) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
	var out map[string]appointment.CachedSlots
	err := v.s.do(ctx, allTeams, looking, func(x *unit) error {
		out = map[string]appointment.CachedSlots{}
		return x.alone(ctx, func(b *pgx.Batch) {
			b.Queue(selectSlots, allTeams.UUID, lab, sites).Query(func(rows pgx.Rows) error {
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

const (
	centersNear = `
with near as (
	select site_code, capabilities, doc, (x - $4) * (x - $4) + (y - $5) * (y - $5) + (z - $6) * (z - $6) as d
	from healthlab.psc_center
	where team_id = $1 and lab_id = $2 and active and cell = any ($3::int[]) and capabilities @> $8::text[]
), hits as (
	select * from near where d <= $7
)
select (select count(*) from hits),
	(select coalesce(array_agg(distinct c), '{}') from hits, unnest(hits.capabilities) c),
	(select coalesce(json_agg(h.doc order by h.d, h.site_code), '[]') from (select * from hits order by d, site_code limit $9) h)`

	centersAt = `
select doc from healthlab.psc_center where team_id = $1 and lab_id = $2 and site_code = any ($3::text[]) order by site_code`

	nextCenters = `
select doc from healthlab.psc_center
where team_id = $1 and lab_id = $2 and active and capabilities @> array[$3::text] and site_code > $4 order by site_code limit $5`

	// So that the next question is planned for what is there, not for an empty table. A
	// role that does not own the table is warned, and left to the server's own upkeep.
	surveyCenters = `analyze healthlab.psc_center`

	deleteCenters = `delete from healthlab.psc_center where team_id = $1 and lab_id = $2 and site_code <> all ($3::text[])`

	keepCenter = `
insert into healthlab.psc_center (team_id, lab_id, site_code, active, cell, x, y, z, capabilities, doc)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (team_id, lab_id, site_code) do update set active = excluded.active, cell = excluded.cell, x = excluded.x, y = excluded.y,
	z = excluded.z, capabilities = excluded.capabilities, doc = excluded.doc`
)

// Centers are the patient service centers that a store keeps: an [appointment.Centers] that
// can be filled.
type Centers struct{ s *Store }

// Centers returns the patient service centers of the store.
func (s *Store) Centers() Centers { return Centers{s} }

// Replace makes a lab's centers exactly these. Invalid as [appointment.CheckCenters], or if
// one is another lab's; then nothing is written.
func (v Centers) Replace(ctx context.Context, lab int, centers []appointment.Center) error {
	if err := appointment.CheckCenters(centers); err != nil {
		return err
	}
	codes := make([]string, 0, len(centers))
	rows := make([][]any, 0, len(centers))
	for i, c := range centers {
		if c.LabID != lab {
			var p healthlab.Problems
			p.Add("other_lab", "is a center of the lab", i, "lab_id")
			return p.Err()
		}
		x, y, z := c.Location.Vector()
		if c.Capabilities == nil {
			c.Capabilities = []appointment.PSCCapability{}
		}
		doc, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode center: %w", err)
		}
		if spoilt(doc) {
			return fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
		}
		has := make([]string, 0, len(c.Capabilities))
		for _, name := range c.Capabilities {
			has = append(has, string(name))
		}
		codes = append(codes, c.SiteCode)
		rows = append(rows, []any{allTeams.UUID, lab, c.SiteCode, !c.Inactive, c.Location.Cell(), x, y, z, has, doc})
	}
	slices.SortFunc(rows, func(a, b []any) int { return compareText(a[2], b[2]) }) // everybody locks in this order
	return v.s.do(ctx, allTeams, writing, func(x *unit) error {
		b := x.batch()
		b.Queue(deleteCenters, allTeams.UUID, lab, codes)
		for _, row := range rows {
			b.Queue(keepCenter, row...)
		}
		b.Queue(surveyCenters)
		return x.commit(ctx, b)
	})
}

func compareText(a, b any) int {
	s, _ := a.(string)
	t, _ := b.(string)
	switch {
	case s < t:
		return -1
	case s > t:
		return 1
	}
	return 0
}

// CentersNear implements [appointment.Centers].
func (v Centers) CentersNear(ctx context.Context, q appointment.CenterQuery) (appointment.CentersNear, error) {
	x, y, z := q.Near.Vector()
	cells := appointment.CellsWithin(q.Near, q.Miles)
	wants := make([]string, 0, len(q.Capabilities))
	for _, c := range q.Capabilities {
		wants = append(wants, string(c))
	}
	var out appointment.CentersNear
	var offers []string
	var docs []byte
	err := v.s.read(ctx, allTeams, func(b *pgx.Batch) {
		b.Queue(centersNear, allTeams.UUID, q.LabID, cells, x, y, z, appointment.Chord(q.Miles), wants, max(q.Most, 0)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&out.Total, &offers, &docs) })
	})
	if err != nil {
		return appointment.CentersNear{}, err
	}
	for _, name := range offers {
		out.Capabilities = append(out.Capabilities, appointment.PSCCapability(name))
	}
	appointment.SortCapabilities(out.Capabilities)
	if err := json.Unmarshal(docs, &out.Centers); err != nil {
		return appointment.CentersNear{}, fmt.Errorf("decode centers: %w", err)
	}
	return out, nil
}

// CentersAt implements [appointment.Centers].
func (v Centers) CentersAt(ctx context.Context, lab int, codes []string) ([]appointment.Center, error) {
	if err := healthlab.CheckText(codes...); err != nil {
		return nil, ctx.Err() // no center has such a code
	}
	return v.list(ctx, centersAt, allTeams.UUID, lab, codes)
}

// NextCenters implements [appointment.Centers].
func (v Centers) NextCenters(ctx context.Context, lab int, has appointment.PSCCapability, after string, n int) ([]appointment.Center, error) {
	return v.list(ctx, nextCenters, allTeams.UUID, lab, string(has), after, max(n, 0))
}

func (v Centers) list(ctx context.Context, sql string, args ...any) ([]appointment.Center, error) {
	var out []appointment.Center
	err := v.s.do(ctx, allTeams, looking, func(x *unit) error {
		out = nil
		return x.alone(ctx, func(b *pgx.Batch) {
			b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var doc []byte
					var c appointment.Center
					if err := rows.Scan(&doc); err != nil {
						return err
					}
					if err := json.Unmarshal(doc, &c); err != nil {
						return fmt.Errorf("decode center: %w", err)
					}
					out = append(out, c)
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
