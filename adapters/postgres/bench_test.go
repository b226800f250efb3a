package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// durable returns connections to an empty database of a server that waits for the disk:
// without that a benchmark of commits is worth nothing.
func durable(b *testing.B) *pgxpool.Pool {
	b.Helper()
	if os.Getenv(pgtest.Env) != "" {
		return pgtest.Connect(b, pgtest.Fresh(b)+"&pool_max_conns=16")
	}
	pgtest.Fresh(b) // skips where there is no server
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	require.NoError(b, err)
	b.Cleanup(server.Remove)
	pool := pgtest.Connect(b, server.URL("postgres")+"&pool_max_conns=16")
	require.NoError(b, postgres.Migrate(b.Context(), pool))
	return pool
}

// written returns how much a database has logged, and how large its tables are.
func written(b *testing.B, pool *pgxpool.Pool, tables string) func() (int64, int64) {
	return func() (logged, stored int64) {
		err := pool.QueryRow(context.Background(), `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
			(select sum(pg_total_relation_size(oid)) from pg_class where relkind in ('r') and relnamespace = $1::regnamespace)`, tables).
			Scan(&logged, &stored)
		require.NoError(b, err)
		return logged, stored
	}
}

// BenchmarkSamples measures the store, and beside it the usual first design: a table with a
// row for each sample, upserted by series and time.
func BenchmarkSamples(b *testing.B) {
	b.Run("store", func(b *testing.B) { healthdatatest.BenchSamples(b, inClear.storeKeeper) })
	b.Run("rows", func(b *testing.B) { healthdatatest.BenchSamples(b, rowKeeper) })
	b.Run("turns", func(b *testing.B) { healthdatatest.BenchSamplesInTurn(b, inClear.storeKeeper, rowKeeper) })
}

// BenchmarkEncryptedSamples measures the store with encrypted samples and in clear, by turns.
func BenchmarkEncryptedSamples(b *testing.B) {
	healthdatatest.BenchSamplesInTurn(b, encrypted.storeKeeper, inClear.storeKeeper)
}

// storeKeeper keeps samples in one server.
func (f form) storeKeeper(b *testing.B) healthdatatest.SampleStore {
	pool := durable(b)
	k := keeperOf(b, f.New(pool, nil))
	k.Written = written(b, pool, "healthlab")
	return k
}

// keeperOf keeps samples in a store, and folds beside that, as hosts do.
func keeperOf(b *testing.B, s *postgres.Store) healthdatatest.SampleStore {
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- s.RunFolding(ctx) }()
	b.Cleanup(func() {
		stop()
		require.NoError(b, <-stopped)
	})
	return healthdatatest.SampleStoreOf(b, healthdatatest.DataHarness{Data: s.Data(), Users: s.Users()})
}

// rowKeeper keeps a row for each sample.
func rowKeeper(b *testing.B) healthdatatest.SampleStore {
	pool := durable(b)
	_, err := pool.Exec(b.Context(), `
		create table public.sample (series int, at timestamptz, value float8, utc_offset int, primary key (series, at))`)
	require.NoError(b, err)
	return healthdatatest.SampleStore{
		Written: written(b, pool, "public"),
		Write: func(ctx context.Context, line int, samples *series.Block) error {
			n := samples.Len()
			at, offset := make([]time.Time, n), make([]int32, n)
			for i := range n {
				at[i], offset[i] = time.UnixMicro(samples.Time[i]), samples.Runs[0].Offset
			}
			_, err := pool.Exec(ctx, `
				insert into public.sample select $1, * from unnest($2::timestamptz[], $3::float8[], $4::int[])
				on conflict (series, at) do update set value = excluded.value, utc_offset = excluded.utc_offset`,
				line, at, samples.Value, offset)
			return err
		},
		Read: func(ctx context.Context, line int) (int, error) {
			rows, err := pool.Query(ctx, `select at, value, utc_offset from public.sample where series = $1 order by at`, line)
			if err != nil {
				return 0, err
			}
			var times []int64
			var values []float64
			var offsets []int32
			var at time.Time
			var value float64
			var offset int32
			_, err = pgx.ForEachRow(rows, []any{&at, &value, &offset}, func() error {
				times, values, offsets = append(times, at.UnixMicro()), append(values, value), append(offsets, offset)
				return nil
			})
			return len(times), err
		},
	}
}

// BenchmarkFetch is the least that reading a year can cost: the bytes, undecoded. The
// bar of BenchmarkSamples/store/Read is this and 3 ns for each sample, three times.
func BenchmarkFetch(b *testing.B) {
	pool := durable(b)
	s := postgres.New(pool, nil)
	k := healthdatatest.SampleStoreOf(b, healthdatatest.DataHarness{Data: s.Data(), Users: s.Users()})
	const year = 525_600
	healthdatatest.FillYear(b, k)
	for b.Loop() {
		rows, err := pool.Query(b.Context(), `select data from healthlab.chunk order by user_id, series, start_at`)
		require.NoError(b, err)
		var data []byte
		_, err = pgx.ForEachRow(rows, []any{&data}, func() error { return nil })
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/year, "ns/sample")
}

// BenchmarkErase erases a user with a year of minute samples in 20 resources.
func BenchmarkErase(b *testing.B) {
	pool := durable(b)
	s := postgres.New(pool, nil)
	const year, piece = 525_600, 52_560
	for b.Loop() {
		b.StopTimer()
		u := newPerson(b, s)
		for r := range 20 {
			key := heart
			key.Resource = fmt.Sprint("resource", r)
			for at := 0; at < year; at += piece {
				batch := minutes(key, at, piece, 0)
				for i := range batch.Samples.Value {
					batch.Samples.Value[i] = float64(60 + (i*i/7+i/50+r)%40)
				}
				require.NoError(b, s.Data().MergeSamples(b.Context(), u.Team, u.ID, []healthdata.SampleBatch{batch}, nil))
			}
		}
		_, err := s.Users().Update(b.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon.Time
			return nil, nil
		})
		require.NoError(b, err)
		b.StartTimer()
		if err := s.Users().Erase(b.Context(), u.Team, u.ID); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUsers(b *testing.B) {
	healthdatatest.BenchUsers(b, func(t testing.TB) healthdatatest.UsersHarness {
		s := postgres.New(pgtest.Pool(t), nil)
		return healthdatatest.UsersHarness{Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data()}
	})
}

func BenchmarkLinking(b *testing.B) {
	linkingtest.BenchFlows(b, func(t testing.TB) linkingtest.StoreHarness { return linkingOf(postgres.New(durable(b), nil)) })
}
