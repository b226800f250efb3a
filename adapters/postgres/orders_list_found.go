package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
)

// What is found by its parts is read in one pass, which counts it and finds the page:
// reading the rows, which lie wherever their orders came, takes longest by far. But if
// many orders match, and they are asked for by their texts alone, then some of the first
// orders match, so that the page is sooner found by walking to it.

// orderFind is how a page of what is found by its parts is found.
type orderFind struct {
	source orderSource
	key    orders.SortKey
	way    orders.Direction
}

// orderFinds are the statements that count what is found, and find a page of it. They
// sort by one value, which is compared in half the time of two.
var orderFinds = func() map[orderFind]string {
	all := map[orderFind]string{}
	for _, from := range []orderSource{byNames, bySearch, byID} {
		n := len(from.arguments(&orders.Query{}, make([]any, 21)))
		for key, by := range map[orders.SortKey]string{
			orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`, orders.SortPatientName: `nullif(o.sort_name, '')`,
		} {
			for way, word := range map[orders.Direction]string{orders.Ascending: `asc`, orders.Descending: `desc`} {
				all[orderFind{from, key, way}] = `
with found as materialized (select o.order_id, ` + by + ` as value` + orderSources[from] + fmt.Sprintf(`)
select (select count(*) from found),
	array(select order_id from found order by value %s nulls last, order_id offset $%d limit $%d)`, word, n+1, n+2)
			}
		}
	}
	return all
}()

// ordersByID reads orders in the order of their ids.
const ordersByID = `
select ` + orderColumns + `
from unnest($2::uuid[]) with ordinality p (order_id, at) join healthlab.orders o on o.team_id = $1 and o.order_id = p.order_id
order by p.at`

// find returns how many orders match, and the ids of the page.
func (l *orderList) find(ctx context.Context) (total int, page []uuid.UUID, err error) {
	b := l.x.batch()
	b.Queue(orderFinds[orderFind{l.source, l.q.Sort, l.q.Direction}], append(l.source.arguments(l.q, l.filters), l.offset(), l.q.Size)...).
		QueryRow(func(row pgx.Row) error { return row.Scan(&total, &page) })
	return total, page, l.x.send(ctx, b)
}

// read reads orders by their ids.
func (l *orderList) read(ctx context.Context, ids []uuid.UUID, each func(*orders.Record)) error {
	if len(ids) == 0 {
		return nil
	}
	b := l.x.batch()
	b.Queue(ordersByID, l.q.Team.UUID, ids).Query(eachOrder(each))
	return l.x.send(ctx, b)
}

const (
	// farthest is how many orders are walked past at most, by what is expected.
	farthest = 65_000
	// walked and walkedByName are how many orders are walked past in less time than one is
	// read that was found by its parts: by name, the entries are smaller.
	walked, walkedByName = 3, 5
	// longer is how many times as far as expected a walk goes before it is given up.
	longer = 2
)

// ahead returns about how many orders are before the end of the page, if they match as
// often as the sample does; 0 if the page is not to be walked to.
func (l *orderList) ahead(sampled int) int64 {
	if l.source != byNames && l.source != bySearch || sampled == 0 || l.others() || l.offset() > farthest {
		return 0
	}
	if far := (l.offset() + int64(l.q.Size)) * newest / int64(sampled); far <= farthest {
		return far
	}
	return 0
}

// orderWalk is an order in which orders are walked.
type orderWalk struct {
	key orders.SortKey
	way orders.Direction
}

// orderWalks are the statements that walk to a page of what has texts, and are given up
// after a while.
var orderWalks = func() map[orderWalk]string {
	all := map[orderWalk]string{}
	for way, word := range map[orders.Direction]string{orders.Ascending: ` asc`, orders.Descending: ` desc`} {
		for key, by := range map[orders.SortKey]string{orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`} {
			order := ` order by ` + by + word + `, o.order_id`
			all[orderWalk{key, way}] = `
select array(
	select o.order_id from (
		select o.order_id, o.patient_name, o.recipient, o.birth_date, ` + by + allOrders + `
		where o.team_id = $1` + order + ` limit $6) o
	where ` + inTextsOnly + order + ` offset $7 limit $8)`
		}
		// The index that has the texts has them by name, and no ids: it tells which names the
		// page has, and how many matches are before the first of them.
		order, before := ` order by o.sort_name`+word, `<`
		if way == orders.Descending {
			before = `>`
		}
		all[orderWalk{orders.SortPatientName, way}] = `
with near as materialized (
	select o.sort_name from (
		select o.sort_name, o.patient_name, o.recipient, o.birth_date` + allSearched + `
		where o.team_id = $1 and o.sort_name > ''` + order + ` limit $6) o
	where ` + inTextsOnly + order + ` limit $7::bigint + $8::bigint),
page as materialized (select array(select o.sort_name from near o` + order + ` offset $7) as names)
select array(
	select o.order_id` + allSearched + `
	where o.team_id = $1 and o.sort_name = any ((select names from page)::text[]) and ` + inTextsOnly + order + `, o.order_id
	offset $7 - (select count(*) from near o where o.sort_name ` + before + ` (select names[1] from page)) limit $8)`
	}
	return all
}()

// walk returns the ids of the page, of the total that matches.
func (l *orderList) walk(ctx context.Context, total int) (page []uuid.UUID, err error) {
	gain, most := walked*int64(total), longer*l.far
	if l.q.Sort == orders.SortPatientName {
		gain = walkedByName * int64(total)
		most = gain // those of one name are together: it may be far to them
	}
	if l.far <= gain {
		b := l.x.batch()
		b.Queue(orderWalks[orderWalk{l.q.Sort, l.q.Direction}], append(inTextsAlone.arguments(l.q, l.filters), most, l.offset(), l.q.Size)...).
			QueryRow(func(row pgx.Row) error { return row.Scan(&page) })
		if err := l.x.send(ctx, b); err != nil || len(page) == l.q.Size {
			return page, err
		}
	}
	_, page, err = l.find(ctx)
	return page, err
}
