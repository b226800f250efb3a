package orderstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Whatever way is taken, a list has what its query means.
func TestOrderListsInEveryWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newLargeTeam(600)
	v := ordersStore{New(db.New(pool, db.Options{Keys: personKeys()}), nil)}
	c.load(t, pool, v.s)
	all := make([]orders.Order, c.rows)
	for n := range all {
		all[n] = c.order(n).Order
	}
	kinds := append(c.lists(), listKind{"some without a name", func(q *orders.Query, _ int) { q.Search = "1980" }})
	for i, kind := range kinds {
		for j := range 6 {
			q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today), Size: 20, Page: 1 + (i+j)%2,
				Sort:      []orders.SortKey{orders.SortCreatedAt, orders.SortPatientName, orders.SortLastStatus}[j%3],
				Direction: []catalogue.Direction{catalogue.Ascending, catalogue.Descending}[j/3]}
			kind.filter(&q, i)
			q, err := q.Normal()
			require.NoError(t, err)
			listInEveryWay(t, v, &q, all, fmt.Sprintf("%s by %s %s", kind.name, q.Sort, q.Direction))
		}
	}
}

func listInEveryWay(t *testing.T, v ordersStore, q *orders.Query, all []orders.Order, name string) {
	t.Helper()
	matches := slices.DeleteFunc(slices.Clone(all), func(o orders.Order) bool { return !q.Match(&o) })
	slices.SortFunc(matches, func(a, b orders.Order) int {
		if q.Less(&a, &b) {
			return -1
		}
		return 1
	})
	var want []orders.OrderID
	first := min((q.Page-1)*q.Size, len(matches))
	for _, o := range matches[first:min(first+q.Size, len(matches))] {
		want = append(want, o.ID)
	}
	filters, err := v.s.orderArguments(t.Context(), q)
	require.NoError(t, err)
	require.NoError(t, v.s.db.Do(t.Context(), q.Team, db.Reading, func(x *db.Tx) error {
		l := orderList{s: v.s, x: x, q: q, filters: filters}
		total, err := l.count(t.Context())
		require.NoError(t, err)
		require.Equal(t, len(matches), total, name)
		for _, sorted := range []bool{false, true} {
			var got []orders.OrderID
			require.NoError(t, l.page(t.Context(), sorted, total, func(r *orders.Record) { got = append(got, r.ID) }))
			require.Equal(t, want, got, name)
		}
		return nil
	}))
}

// Names of three letters and more, and filters that leave a few orders, are found by an
// index.
func TestOrderListsUseIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Fresh(t)) // plans depend on how full the pages are
	c := newLargeTeam(20_000)
	v := ordersStore{New(db.New(pool, db.Options{Keys: personKeys()}), nil)}
	c.load(t, pool, v.s)
	for kind, index := range map[string]string{
		"patient/whole": "order_search_tokens", "patient/last": "order_search_tokens", "recipient/last": "order_search_tokens",
		"search/last": "order_search_tokens", "search/birthday": "order_search_tokens", "search/order": "order_search_pkey",
		"status/ordered": "order_search_", "updated/day": "order_search_updated", "created/day": "order_search_created",
		"activation/scheduled": "order_search_activate", "user": "order_search_user", "transaction": "order_search_transaction",
	} {
		list := c.lists()
		q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today)}
		list[slices.IndexFunc(list, func(k listKind) bool { return k.name == kind })].filter(&q, 2)
		q, err := q.Normal()
		require.NoError(t, err)
		filters, err := v.s.orderArguments(t.Context(), &q)
		require.NoError(t, err)
		require.NoError(t, v.s.db.Do(t.Context(), q.Team, db.Reading, func(x *db.Tx) error {
			l := orderList{s: v.s, x: x, q: &q, filters: filters}
			_, err := l.count(t.Context())
			require.NoError(t, err)
			var lines []string
			b := x.Batch()
			b.Queue("explain "+countOrders, l.filters...).Query(func(rows pgx.Rows) (err error) {
				lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
			require.NoError(t, x.Send(t.Context(), b))
			plan := strings.Join(lines, "\n")
			require.Contains(t, plan, index, kind)
			require.NotContains(t, plan, "Seq Scan", kind)
			return nil
		}))
	}
}
