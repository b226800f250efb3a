package postgres_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/store"
)

// BenchmarkOrderLists lists the orders of a team that has 20,000 of 2,000 users under HEALTHLABTEST_PROVE=1,
// by filters that people use. "handwritten" are the count and the page of SQL over the same rows, with the
// documents of the page as they are stored.
func BenchmarkOrderLists(b *testing.B) {
	const batch = 100
	n := prove.Count(1_000, 20_000)
	pool := pgtest.Pool(b)
	s := rowsOn(b, pool, postgres.Options{}, orders.Tables())
	kept := orders.NewStore(s, &orders.StoreOptions{UsersElsewhere: true})
	ctx, team, first := b.Context(), conformance.Team("a"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	user := func(i int) healthlab.UserID { return conformance.User(strconv.Itoa(i % max(n/10, 1))) }
	for from := 0; from < n; from += batch {
		require.NoError(b, s.Update(ctx, func(ctx context.Context, _ store.Tx) error {
			for i := from; i < from+batch; i++ {
				at := first.Add(time.Duration(i) * time.Minute)
				r := orders.Record{Order: orders.Order{
					ID: orders.OrderID{UUID: uuid.New()}, TeamID: team, UserID: user(i), CreatedAt: healthlab.At(at), UpdatedAt: healthlab.At(at),
					Details:          orders.NewDetails(catalogue.WalkInTest, uuid.New(), uuid.New(), healthlab.At(at)),
					PatientDetails:   &people.PatientDetails{FirstName: new("Kim"), LastName: new("Person" + strconv.Itoa(i%n/10)), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}},
					OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: uuid.New()}},
				}}
				_, err := kept.Insert(ctx, r, func(r *orders.Record) ([]healthlab.Event, error) {
					return orders.Begin(&r.Order, at, uuid.New())
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
	_, err := pool.Exec(ctx, `analyze`)
	require.NoError(b, err)
	var status orders.LowLevel
	page, err := kept.List(ctx, orders.Query{Team: team})
	require.NoError(b, err)
	status = page.Orders[0].LowLevel()
	for name, q := range map[string]orders.Query{
		"all":       {},
		"page 10":   {Page: 10},
		"user":      {User: user(7)},
		"day":       {CreatedFrom: first.AddDate(0, 0, 5), CreatedBefore: first.AddDate(0, 0, 6)},
		"status":    {Status: []orders.LowLevel{status}},
		"day+state": {Status: []orders.LowLevel{status}, CreatedFrom: first.AddDate(0, 0, 5), CreatedBefore: first.AddDate(0, 0, 6)},
		"name":      {PatientName: "person77"},
	} {
		q.Team = team
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := kept.List(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("handwritten all", func(b *testing.B) {
		for b.Loop() {
			var total int
			if err := pool.QueryRow(ctx, `select count(*) from `+rowSchema+`."order" where team = $1 and i0 is not null`, team.UUID).Scan(&total); err != nil {
				b.Fatal(err)
			}
			rows, err := pool.Query(ctx, `select id, doc from `+rowSchema+`."order" where team = $1 and i0 is not null order by i0, id limit 50`, team.UUID)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
				var id, doc []byte
				if err := rows.Scan(&id, &doc); err != nil {
					b.Fatal(err)
				}
			}
			if rows.Err() != nil {
				b.Fatal(rows.Err())
			}
		}
	})
}
