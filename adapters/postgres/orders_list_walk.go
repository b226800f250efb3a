package postgres

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Where many of the orders that have a text match, and so some of the first orders do, the
// page is sooner found by walking to it, in an index that has all that is asked for: an
// order that is passed by takes a part of the time of one that is found by its parts.

const (
	// farthest is how many orders are walked past at most, by what is expected.
	farthest = 65_000
	// walked and walkedByName are how many orders are walked past in the time in which one is
	// read that was found by its parts: by name, alike ones are one entry.
	walked, walkedByName = 2, 5
	// longer is how many times as far as expected a walk goes before it is given up.
	longer = 2
)

// ahead decides whether the page is to be walked to: if orders match as often as the
// sample does, and that is sooner than finding them by their parts.
func (l *orderList) ahead(s *orderSample) {
	if !l.covered() || s.match == 0 || l.offset() > farthest {
		return
	}
	parts := s.named
	if l.source == bySearch {
		parts = s.found
	}
	far, found := l.end()*s.orders/s.match, int64(s.team)*parts/s.orders
	sooner, byName := walked*found, l.q.Sort == orders.SortPatientName
	if byName {
		sooner = walkedByName * found
	}
	if far > min(farthest, sooner) {
		return
	}
	l.far, l.nearby = longer*far, l.end()
	if byName {
		l.far = sooner // those of one name are together: it may be far to them
	}
	if l.others() {
		l.nearby *= longer * s.texts / s.match
	}
}

// end is how many matches are up to the end of the page.
func (l *orderList) end() int64 { return l.offset() + int64(l.q.Size) }

// orderWalk is an order in which orders are walked.
type orderWalk struct {
	key orders.SortKey
	way catalogue.Direction
}

// orderWalks are the statements that walk to a page, and are given up after a while.
var orderWalks = func() map[orderWalk]string {
	all := map[orderWalk]string{}
	for way, word := range map[catalogue.Direction]string{catalogue.Ascending: ` asc`, catalogue.Descending: ` desc`} {
		order := ` order by o.created_at` + word + `, o.order_id`
		all[orderWalk{orders.SortCreatedAt, way}] = `
select array(
	select o.order_id from (
		select ` + listed + allOrders + `
		where o.team_id = $1` + inTime + order + ` limit $24) o` + ofList + order + ` offset $22 limit $23)`

		// One status after the other, for those that are asked for may lie far apart. After one
		// with too few matches as far as a walk goes, nothing may be said of the next.
		all[orderWalk{orders.SortLastStatus, way}] = `
with first as materialized (
	select s.at, o.order_id
	from (select s.status, s.at from unnest($25::text[]) with ordinality s (status, at) order by s.at) s,
	lateral (
		(select o.order_id from (
			select ` + listed + allOrders + `
			where o.team_id = $1 and o.last_status = s.status order by o.order_id limit $24) o` + ofList + `
		order by o.order_id limit $22::bigint + $23::bigint)
		union all
		(select null` + allOrders + ` where o.team_id = $1 and o.last_status = s.status order by o.order_id offset $24 limit 1)
		limit $22::bigint + $23::bigint) o
	order by s.at, o.order_id limit $22::bigint + $23::bigint)
select array(
	select o.order_id from first o where not exists (select from first f where f.order_id is null)
	order by o.at, o.order_id offset $22 limit $23)`

		// The index that has the texts has them by name, and alike ones once: it tells which
		// names the first matches have.
		order = ` order by o.sort_name` + word
		all[orderWalk{orders.SortPatientName, way}] = `
with near as materialized (
	select o.sort_name from (
		select o.sort_name, o.patient_name, o.recipient, o.birth_date` + allSearched + `
		where o.team_id = $1 and o.sort_name > ''` + order + ` limit $24) o
	where ` + inTextsOnly + order + ` limit $25)
select array(
	select o.order_id` + allSearched + ofList + ` and o.sort_name = any (array(select distinct n.sort_name from near n))` + order + `, o.order_id
	offset $22 limit $23)`
	}
	return all
}()

// walk returns the ids of the page.
func (l *orderList) walk(ctx context.Context) (page []uuid.UUID, err error) {
	b := l.x.batch()
	b.Queue(orderWalks[orderWalk{l.q.Sort, l.q.Direction}], l.walking()...).
		QueryRow(func(row pgx.Row) error { return row.Scan(&page) })
	if err := l.x.send(ctx, b); err != nil || len(page) == l.q.Size {
		return page, err
	}
	_, page, err = l.find(ctx)
	return page, err
}

// walking are the arguments of a walk.
func (l *orderList) walking() []any {
	args := append(slices.Clone(l.filters), l.offset(), l.q.Size, l.far)
	switch l.q.Sort {
	case orders.SortPatientName:
		return append(args, l.nearby)
	case orders.SortLastStatus:
		statuses := slices.Clone(l.filters[argStatus].([]string))
		if statuses == nil {
			statuses = allStatuses()
		}
		slices.Sort(statuses)
		if l.q.Direction == catalogue.Descending {
			slices.Reverse(statuses)
		}
		return append(args, statuses)
	}
	return args
}
