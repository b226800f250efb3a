package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// BenchmarkSamples compares samples in the series of a user with a row for each sample, which is put if its key is
// there. The bars are 0.6, 1.5, 5 and 12 times its throughput for batches of 1, 100, 1,000 and 10,000, and 2 times for
// 64 callers.
func BenchmarkSamples(b *testing.B) {
	healthdatatest.BenchSamplesInTurn(b, serverSamples, rowUpserts)
}

// rowUpserts stores each sample as a row, with one statement for a batch.
func rowUpserts(b *testing.B) healthdatatest.SampleStore {
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	require.NoError(b, err)
	b.Cleanup(server.Remove)
	pool := pgtest.Connect(b, server.URL("postgres"))
	_, err = pool.Exec(b.Context(), `create table sample (line int, resource text, source bigint, at bigint, ends bigint, value float8,
		zone int, primary key (line, resource, source, at, ends))`)
	require.NoError(b, err)
	return healthdatatest.SampleStore{
		Write: func(ctx context.Context, line int, samples *series.Block) error {
			zones := make([]int32, samples.Len())
			for i := range zones {
				zones[i] = 3600
			}
			_, err := pool.Exec(ctx, `insert into sample select $1, 'steps', 1, at, at, value, zone from unnest($2::bigint[], $3::float8[], $4::int[]) as s (at, value, zone)
				on conflict (line, resource, source, at, ends) do update set value = excluded.value, zone = excluded.zone`, line, samples.Time, samples.Value, zones)
			return err
		},
		Read: func(ctx context.Context, line int) (int, error) {
			rows, err := pool.Query(ctx, `select at, ends, value, zone from sample where line = $1 and resource = 'steps' order by at`, line)
			if err != nil {
				return 0, err
			}
			defer rows.Close()
			n := 0
			for rows.Next() {
				var at, ends int64
				var value float64
				var zone int32
				if err := rows.Scan(&at, &ends, &value, &zone); err != nil {
					return 0, err
				}
				n++
			}
			return n, rows.Err()
		},
	}
}
