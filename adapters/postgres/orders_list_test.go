package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Whatever way is taken, a list has what its query means.
func TestOrderListsInEveryWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClinic(600)
	c.load(t, pool)
	v := ordersStore{New(pool, nil)}
	all := make([]orders.Order, c.rows)
	for n := range all {
		all[n] = c.order(n).Order
	}
	kinds := append(c.lists(), listKind{"some without a name", func(q *orders.Query, _ int) { q.Search = "e" }})
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
	var sources []orderSource // by which it is found
	if q.PatientName != "" || q.Recipient != "" {
		sources = append(sources, byNames)
	}
	if q.Search != "" {
		sources = append(sources, byID)
	}
	if _, err := uuid.Parse(q.Search); q.Search != "" && err != nil {
		sources = append(sources, bySearch)
	}
	if lastName(q) != "" {
		sources = append(sources, byLastName)
	}
	require.NoError(t, v.s.do(t.Context(), q.Team, looking, func(x *unit) error {
		l := orderList{x: x, q: q, filters: orderArguments(q)}
		require.NoError(t, l.look(t.Context()))
		require.Contains(t, append(sources, anywhere), l.source)
		var got []orders.OrderID
		each := func(r *orders.Record) { got = append(got, r.ID) }
		for _, l.source = range sources {
			total, page, err := l.find(t.Context())
			require.NoError(t, err)
			require.Equal(t, len(matches), total, name)
			got = nil
			require.NoError(t, l.read(t.Context(), page, each))
			require.Equal(t, want, got, name)
			if l.source != byNames && l.source != bySearch {
				continue
			}
			for _, l.far = range []int64{1, 10, 1000} { // given up, or walked to
				l.nearby = l.end() + l.far
				page, err := l.walk(t.Context())
				require.NoError(t, err)
				got = nil
				require.NoError(t, l.read(t.Context(), page, each))
				require.Equal(t, want, got, name)
			}
		}
		total, err := l.count(t.Context())
		require.NoError(t, err)
		require.Equal(t, len(matches), total, name)
		for _, size := range []int{total, few + 1} { // gathered, and in order
			got = nil
			require.NoError(t, l.page(t.Context(), min(size, total*size), each))
			require.Equal(t, want, got, name)
		}
		return nil
	}))
}

// A name, or what is searched, is found by an index, and so is a filter that leaves a few
// orders; what every list counts comes from indexes alone.
func TestOrderListsUseIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Fresh(t)) // plans go by how full the pages are
	c := newClinic(20_000)
	c.load(t, pool)
	for seen := false; !seen; { // an index alone is enough once the server knows that everybody sees all rows
		_, err := pool.Exec(t.Context(), `vacuum healthlab.orders, healthlab.order_search`)
		require.NoError(t, err)
		require.NoError(t, pool.QueryRow(t.Context(), `
			select bool_and(relallvisible >= relpages) from pg_class where oid in ('healthlab.orders'::regclass, 'healthlab.order_search'::regclass)`).Scan(&seen))
	}
	v := ordersStore{New(pool, nil)}
	plan := func(x *unit, sql string, args []any) string {
		rows, err := x.conn.Query(t.Context(), "explain "+sql, args...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	byLeftOut := []string{"letter+completed", "letter+not critical", "letter+current", "letter+methods"}
	for kind, index := range map[string]string{
		"patient/whole": "order_search_grams", "patient/last": "order_search_grams", "patient/nobody": "order_search_grams",
		"patient+status": "order_search_grams", "recipient/last": "order_search_grams", "search/last": "order_search_grams",
		"search/birthday": "order_search_grams", "search/order": "orders_pkey", "all of them": "order_search_grams",
		"status/ordered": "orders_status", "updated/day": "orders_updated", "created/day": "orders_created",
		"critical/true": "orders_coarse", "activation/scheduled": "orders_activate", "user": "orders_user", "search+user": "orders_user",
		"transaction": "orders_transaction", "patient/1": "Only Scan", "none": "orders_coarse",
		"critical/false": "orders_coarse", "interpretation/normal": "orders_coarse", "activation/current": "orders_coarse",
		"letter+completed": "", "letter+not critical": "", "letter+current": "", "letter+methods": "", "letter+status": "", "letter+abnormal": "",
	} {
		list := c.lists()
		q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today)}
		list[slices.IndexFunc(list, func(k listKind) bool { return k.name == kind })].filter(&q, 2)
		q, err := q.Normal()
		require.NoError(t, err)
		require.NoError(t, v.s.do(t.Context(), q.Team, looking, func(x *unit) error {
			l := orderList{x: x, q: &q, filters: orderArguments(&q)}
			require.NoError(t, l.look(t.Context()))
			if l.source != anywhere {
				require.NotContains(t, byLeftOut, kind)
				find := plan(x, orderFinds[orderFind{l.source, q.Sort, q.Direction}], append(l.source.arguments(&q, l.filters), 0, 50))
				require.Contains(t, find, index, kind)
				require.NotContains(t, find, "Seq Scan", kind)
				if l.source == byLastName {
					require.Regexp(t, "Index Only Scan( Backward)? using orders_name", find, kind)
				}
				if !l.covered() {
					return nil
				}
				l.far, l.nearby = 1000, 1000
				for by, index := range map[orders.SortKey]string{
					orders.SortCreatedAt: "orders_created", orders.SortLastStatus: "orders_status", orders.SortPatientName: "order_search_texts",
				} {
					l.q.Sort = by
					walk := plan(x, orderWalks[orderWalk{by, q.Direction}], l.walking())
					require.Regexp(t, "Only Scan( Backward)? using "+index, walk, kind)
					require.NotContains(t, walk, "Seq Scan", kind)
				}
				return nil
			}
			rest, err := l.mostHave(t.Context())
			require.NoError(t, err)
			require.Equal(t, slices.Contains(byLeftOut, kind), rest != nil, kind)
			total, err := l.count(t.Context())
			require.NoError(t, err)
			from := l.counted()
			count := plan(x, orderCounts[from], from.arguments(&q, l.filters))
			require.Contains(t, count, index, kind)
			require.NotContains(t, count, "Seq Scan", kind)
			require.NotContains(t, plan(x, orderPages[l.how(total)], append(anywhere.arguments(&q, l.filters), 0, 50)), "Seq Scan", kind)
			return nil
		}))
	}
}
