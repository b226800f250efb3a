package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// BenchmarkBillion stores 100,000 heart rates, one a minute, of each user in batches of 10,000,
// and asks for a month by day of 2,000 random users, one query after the other. With
// HEALTHLABTEST_PROVE=1 it stores a billion samples of 10,000 users; the bars are 15 minutes, 2.5 GB
// of tables and 20 ms (p99). Run it with -benchtime 1x.
func BenchmarkBillion(b *testing.B) {
	const perUser, batch = 100_000, 10_000
	pgtest.Empty(b) // skips where there is no server
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	require.NoError(b, err)
	b.Cleanup(server.Remove)
	pool := pgtest.Connect(b, server.URL("postgres")+"&pool_max_conns=16")
	store := rowsOf(b, pool)
	providers, err := readProviders("")
	require.NoError(b, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Production})
	require.NoError(b, err)
	questions, err := aggregate.New(health, nil)
	require.NoError(b, err)
	team := teamOf("bench")
	users := make([]healthlab.UserID, prove.Count(100, 10_000))
	for i := range users {
		u, err := health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint("user-", i)})
		require.NoError(b, err)
		users[i] = u.ID
	}
	newYear := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for b.Loop() {
		began := time.Now()
		var loading sync.WaitGroup
		var failed atomic.Bool
		next := make(chan int)
		for range 4 {
			loading.Go(func() {
				for i := range next {
					if failed.Load() {
						continue
					}
					for at := 0; at < perUser; at += batch {
						if err := store.Data().MergeSamples(b.Context(), team, users[i], []healthdata.SampleBatch{{
							Key:     healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: healthdata.SourceWatch},
							Samples: heartRates(newYear, at, batch, i), Span: series.PerMinute,
						}}, nil); err != nil {
							b.Error(err)
							failed.Store(true)
						}
					}
				}
			})
		}
		for i := range users {
			next <- i
		}
		close(next)
		loading.Wait()
		b.ReportMetric(time.Since(began).Minutes(), "min/load")
		b.ReportMetric(float64(len(users)*perUser)/time.Since(began).Seconds(), "samples/s")
		b.ReportMetric(float64(tableBytes(b, pool))/1e9, "GB")
		b.ReportMetric(float64(tableBytes(b, pool))/float64(len(users)*perUser), "B/sample")

		random, took := rand.New(rand.NewPCG(1, 2)), make([]time.Duration, 2_000)
		request := aggregate.Ask(aggregate.Timeframe{Anchor: healthlab.Date{Year: 2026, Month: 2, Day: 15}, Past: aggregate.Days(30)}, aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Mean.Of(aggregate.Samples("heartrate")), aggregate.Count.Of(aggregate.Samples("heartrate"))},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		})
		for i := range took {
			began := time.Now()
			r, err := questions.Query(b.Context(), team, users[random.IntN(len(users))], request)
			took[i] = time.Since(began)
			require.NoError(b, err)
			require.NotEmpty(b, r)
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1e3, "ms/p50")
		b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "ms/p99")
	}
}

// heartRates returns n heart rates of one person from minute at on: whole numbers that change by
// up to 3 from one minute to the next.
func heartRates(start time.Time, at, n, person int) *series.Block {
	var block series.Block
	random, rate := rand.New(rand.NewPCG(uint64(person), uint64(at))), 70
	for i := int64(at); i < int64(at+n); i++ {
		rate = min(max(rate+random.IntN(7)-3, 45), 180)
		block.Append(series.Sample{Time: start.UnixMicro() + i*60_000_000, End: series.NoEnd, Value: float64(rate)})
	}
	return &block
}

func tableBytes(b *testing.B, pool *pgxpool.Pool) (size int64) {
	b.Helper()
	require.NoError(b, pool.QueryRow(b.Context(), `
		select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relnamespace = 'healthlab'::regnamespace`).Scan(&size))
	return size
}
