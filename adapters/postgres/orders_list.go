package postgres

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
)

// orderFilters are the filters of a list; a null, or an empty text, matches everything.
// Names are looked for in lower case, byte by byte.
const orderFilters = `
from healthlab.orders o
where o.team_id = $1
	and ($2::timestamptz is null or o.created_at >= $2) and ($3::timestamptz is null or o.created_at < $3)
	and ($4::timestamptz is null or o.updated_at >= $4) and ($5::timestamptz is null or o.updated_at < $5)
	and ($6::timestamptz is null or o.event_at >= $6) and ($7::timestamptz is null or o.event_at < $7)
	and ($8::text[] is null or o.status = any ($8)) and ($9::text[] is null or o.method = any ($9))
	and ($10::boolean is null or (o.interpretation is not distinct from 'critical') = $10)
	and ($11::text = '' or o.interpretation = $11)
	and ($12::boolean is null or coalesce(o.activate_by > $13::date, false) = $12)
	and ($14::uuid is null or o.user_id = $14) and ($15::uuid is null or o.transaction_id = $15)
	and ($16::uuid[] is null or o.order_id = any ($16))
	and ($17::text = '' or strpos(o.patient_name, $17) > 0) and ($18::text = '' or strpos(o.recipient, $18) > 0)
	and ($19::text = '' or strpos(o.patient_name, $19) > 0 or strpos(o.recipient, $19) > 0
		or starts_with(o.birth_date, $20) or o.order_id = $21::uuid or o.user_id = $21)`

const countOrders = `select count(*) ` + orderFilters

// orderSort is what a list is sorted by, and which way.
type orderSort struct {
	key orders.SortKey
	way orders.Direction
}

// orderPages are the statements of one page, one for each way of sorting.
var orderPages = func() map[orderSort]string {
	all := map[orderSort]string{}
	for key, by := range map[orders.SortKey]string{
		orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`,
		orders.SortPatientName: `o.sort_name = '', o.sort_name`,
	} {
		for way, word := range map[orders.Direction]string{orders.Ascending: ` asc`, orders.Descending: ` desc`} {
			all[orderSort{key, way}] = `select ` + orderColumns + orderFilters +
				` order by ` + by + word + `, o.order_id offset $22 limit $23`
		}
	}
	return all
}()

func (v ordersStore) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return orders.Page{}, err
	}
	if err := checkText(q.Search, q.PatientName, q.Recipient); err != nil {
		return orders.Page{}, err
	}
	filters := orderArguments(&q)
	offset := int64(math.MaxInt64)
	if before := int64(q.Page - 1); before <= offset/int64(q.Size) {
		offset = before * int64(q.Size)
	}
	var page orders.Page
	err = v.s.do(ctx, q.Team, looking, func(x *unit) error {
		page = orders.Page{Orders: []orders.Order{}}
		b := x.batch()
		b.Queue(countOrders, filters...).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Total) })
		b.Queue(orderPages[orderSort{q.Sort, q.Direction}], append(filters, offset, q.Size)...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var r orders.Record
				if err := scanOrder(rows, &r); err != nil {
					return err
				}
				page.Orders = append(page.Orders, r.Order)
			}
			return rows.Err()
		})
		return x.send(ctx, b)
	})
	if err != nil {
		return orders.Page{}, err
	}
	return page, nil
}

// orderArguments are those of orderFilters.
func orderArguments(q *orders.Query) []any {
	var scheduled *bool
	for _, a := range q.Activations {
		is := a == orders.ActivationScheduled
		if scheduled != nil && *scheduled != is {
			scheduled = nil // both, so any
			break
		}
		scheduled = &is
	}
	var ids []uuid.UUID
	for _, id := range q.IDs {
		ids = append(ids, id.UUID)
	}
	var whole *uuid.UUID
	if id, err := uuid.Parse(q.Search); err == nil && len(q.Search) == 36 {
		whole = &id
	}
	return []any{
		q.Team.UUID, bound(q.CreatedFrom), bound(q.CreatedBefore), bound(q.UpdatedFrom), bound(q.UpdatedBefore),
		bound(q.EventFrom), bound(q.EventBefore), words(q.Status), words(q.Methods), q.Critical, string(q.Interpretation),
		scheduled, q.Today.At(time.UTC), optional(q.User.UUID), optional(q.Transaction.UUID), ids,
		strings.ToLower(q.PatientName), strings.ToLower(q.Recipient), strings.ToLower(q.Search), q.Search, whole,
	}
}

// bound returns a bound of times that are kept to the microsecond: the first of them
// that is not before t. Nil if there is no bound.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := instant(t)
	if at.Before(t) {
		at = at.Add(time.Microsecond)
	}
	return &at
}

// words returns texts of an enumeration; nil if there are none.
func words[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}
