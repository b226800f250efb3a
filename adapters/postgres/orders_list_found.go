package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// What is found by its parts is read in one pass, which counts it and finds the page:
// reading the rows, which lie wherever their orders came, takes longest by far. Those whose
// last name begins as a text does lie side by side in the index by name, and are read there.

// orderFind is how a page of what is found by its parts is found.
type orderFind struct {
	source orderSource
	key    orders.SortKey
	way    catalogue.Direction
}

// orderFinds are the statements that count what is found, and find a page of it. They
// sort by one value, which is compared in half the time of two.
var orderFinds = func() map[orderFind]string {
	all := map[orderFind]string{}
	for _, from := range []orderSource{byNames, byLastName, bySearch, byID} {
		n := len(from.arguments(&orders.Query{}, make([]any, 21)))
		for key, by := range map[orders.SortKey]string{
			orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`, orders.SortPatientName: `nullif(o.sort_name, '')`,
		} {
			for way, word := range map[catalogue.Direction]string{catalogue.Ascending: `asc`, catalogue.Descending: `desc`} {
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
