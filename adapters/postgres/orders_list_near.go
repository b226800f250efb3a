package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
)

// A page by name of what many orders have is either gathered, which takes as long as there
// are matches, or taken as it comes in the order of names, which takes as long as there are
// orders before its end: few where the matches stand everywhere, and many where all of their
// names begin alike. The newest orders tell which.

// fewByName is how many matches are gathered without asking that.
const fewByName = 15_000

// nearOrders are the statements that say how many of the newest orders match, and how many
// of them are read, in the order of names, for the share of the matches that $6 is of $7, and
// one match more, for chance has a say where there are few.
var nearOrders = map[orders.Direction]string{
	orders.Ascending:  nearOrdersBy(` asc`),
	orders.Descending: nearOrdersBy(` desc`),
}

func nearOrdersBy(way string) string {
	return `
with newest as materialized (
	select row_number() over (order by o.sort_name = '', o.sort_name` + way + `, o.order_id) as place,
		` + inNames + ` and ($4::text = '' or ` + inTexts + `) as fits
	from (
		select o.order_id, o.sort_name, o.patient_name, o.recipient, o.birth_date from healthlab.orders o
		where o.team_id = $1 order by o.created_at desc, o.order_id limit 2000) o)
select n.fit, coalesce((select place from newest where fits order by place offset n.fit * $6::bigint / $7::bigint + 1 limit 1), n.seen)
from (select count(*) filter (where fits) as fit, count(*) as seen from newest) n`
}

// near reports whether a page that ends with so many of all matches is sooner taken in the
// order of names than gathered.
func (l *orderList) near(ctx context.Context, end, total int64) (bool, error) {
	if l.q.Sort != orders.SortPatientName || !l.texts() || l.others() {
		return false, nil
	}
	var fit, place int64
	b := l.x.batch()
	b.Queue(nearOrders[l.q.Direction], append(l.filters[:5:5], end, total)...).QueryRow(func(row pgx.Row) error { return row.Scan(&fit, &place) })
	if err := l.x.send(ctx, b); err != nil {
		return false, err
	}
	// To read an order in an index takes a quarter of the time that it takes to gather a
	// match. Half of that, for it is a guess.
	return place < 2*fit, nil
}
