package orderstore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/embedded"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Migrate makes the schema. It is of a package that imports this one.
var Migrate func(ctx context.Context, database db.Handle) error

// roomy returns connections to an empty database of a server whose memory has room for
// the indexes of a large team.
func roomy(b *testing.B) *pgxpool.Pool {
	b.Helper()
	if os.Getenv(pgtest.Env) != "" {
		return pgtest.Connect(b, pgtest.Fresh(b))
	}
	pgtest.Fresh(b)                         // skips where there is no server
	dir, err := os.MkdirTemp("", "pgbench") //nolint:usetesting // the user that the server runs as must reach it
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := embedded.Start(b.Context(), dir, &embedded.Options{Temporary: true, Settings: map[string]string{
		"shared_buffers": "4GB", "max_wal_size": "8GB", "maintenance_work_mem": "512MB", "fsync": "off", "full_page_writes": "off"}})
	require.NoError(b, err)
	b.Cleanup(server.Crash)
	pool := pgtest.Connect(b, server.URL("postgres"))
	require.NoError(b, Migrate(b.Context(), pool))
	return pool
}

// BenchmarkOrderLists lists the orders of a team that has a million of them, by each
// filter, sorted in each way; the first page, the second and the twentieth. It reports
// the 95th percentile of the time for the page, of that for the exact total, of the
// latter where at most 10,000 orders match, and of the whole list, which is both.
func BenchmarkOrderLists(all *testing.B) {
	c := newLargeTeam(1_000_000)
	var v ordersStore
	for _, kind := range c.lists() {
		for _, key := range []orders.SortKey{orders.SortCreatedAt, orders.SortPatientName, orders.SortLastStatus} {
			for _, way := range []catalogue.Direction{catalogue.Ascending, catalogue.Descending} {
				all.Run(fmt.Sprintf("%s/by=%s/%s", kind.name, key, way), func(b *testing.B) {
					if v.s == nil { // only if it is wanted, and once
						pool := roomy(all)
						v.s = New(db.New(pool, db.Options{Keys: personKeys()}), nil)
						c.load(all, pool, v.s)
						v.warm(all, pool, c)
					}
					var pages, totals, small, wholes []time.Duration
					matches, i := 0, 0
					for b.Loop() {
						i++
						q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today), Sort: key, Direction: way, Page: []int{1, 2, 20}[i%3]}
						kind.filter(&q, i)
						t, err := v.timed(b.Context(), q)
						if err != nil {
							b.Fatal(err)
						}
						pages, totals, wholes, matches = append(pages, t.page), append(totals, t.total), append(wholes, t.whole), max(matches, t.matches)
						if t.matches <= 10_000 {
							small = append(small, t.total)
						}
					}
					p95 := func(took []time.Duration) float64 {
						slices.Sort(took)
						return float64(took[(len(took)*95-1)/100].Microseconds()) / 1000
					}
					b.ReportMetric(p95(pages), "page-p95-ms")
					b.ReportMetric(p95(totals), "total-p95-ms")
					if len(small) > 0 {
						b.ReportMetric(p95(small), "small-total-p95-ms")
					}
					b.ReportMetric(p95(wholes), "list-p95-ms")
					b.ReportMetric(float64(matches), "matches")
				})
			}
		}
	}
}

// BenchmarkOrderListsEncrypted lists the orders of one team from a store that encrypts
// what names a person and from one that does not, in turn, and reports how many lists the
// first makes while the second makes one. A list is its page and its exact total.
func BenchmarkOrderListsEncrypted(all *testing.B) {
	c := newLargeTeam(100_000)
	var encrypted, plain ordersStore
	for _, kind := range c.lists() {
		for _, key := range []orders.SortKey{orders.SortCreatedAt, orders.SortPatientName} {
			all.Run(fmt.Sprintf("%s/by=%s", kind.name, key), func(b *testing.B) {
				if plain.s == nil { // only if it is wanted, and once
					for store, keys := range map[*ordersStore]*personkey.Keys{&encrypted: personKeys(), &plain: nil} {
						pool := roomy(all)
						store.s = New(db.New(pool, db.Options{Keys: keys}), nil)
						c.load(all, pool, store.s)
						store.warm(all, pool, c)
					}
				}
				var tookEncrypted, tookPlain time.Duration
				i := 0
				for b.Loop() {
					i++
					q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today), Sort: key, Direction: catalogue.Descending, Page: []int{1, 2, 20}[i%3]}
					kind.filter(&q, i)
					first, err := encrypted.timed(b.Context(), q)
					require.NoError(b, err)
					second, err := plain.timed(b.Context(), q)
					require.NoError(b, err)
					tookEncrypted, tookPlain = tookEncrypted+first.whole, tookPlain+second.whole
				}
				b.ReportMetric(tookPlain.Seconds()/tookEncrypted.Seconds(), "of-plain")
			})
		}
	}
}

// warm has the server write what loading left it, reads the names, and lists each kind a
// few times, so that what is measured is a connection at work and not its first look at
// the memory that it shares with the others.
func (v ordersStore) warm(b *testing.B, pool *pgxpool.Pool, c *largeTeam) {
	b.Helper()
	for _, sql := range []string{`checkpoint`, `select count(tokens) from healthlab.order_search`} {
		_, err := pool.Exec(b.Context(), sql)
		require.NoError(b, err)
	}
	for _, kind := range c.lists() {
		for i := range 3 {
			q := orders.Query{Team: c.team, Today: healthlab.DateOf(c.today), Page: i + 1}
			kind.filter(&q, i)
			_, err := v.List(b.Context(), q)
			require.NoError(b, err)
		}
	}
}

// timed is how long the parts of a list took.
type timed struct {
	total, page, whole time.Duration
	matches            int
}

func (v ordersStore) timed(ctx context.Context, q orders.Query) (t timed, err error) {
	if q, err = q.Normal(); err != nil {
		return t, err
	}
	filters, err := v.s.orderArguments(ctx, &q)
	if err != nil {
		return t, err
	}
	err = v.s.db.Do(ctx, q.Team, db.Reading, func(x *db.Tx) error {
		l := orderList{s: v.s, x: x, q: &q, filters: filters}
		none := func(*orders.Record) {}
		begun := time.Now()
		defer func() { t.whole = time.Since(begun) }()
		total, err := l.count(ctx)
		if err != nil {
			return err
		}
		t.total, t.matches = time.Since(begun), total
		at := time.Now()
		err = l.page(ctx, total <= sortedAtMost, total, none)
		t.page = time.Since(at)
		return err
	})
	return t, err
}
