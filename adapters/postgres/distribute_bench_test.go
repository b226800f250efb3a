package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

// BenchmarkCluster compares a cluster of a coordinator and two workers with one server, on the
// same machine: writes in turn, and the reading of a year. It needs TEST_CITUS. The bars are 0.6
// of one server for batches of 1,000, and 0.7 for reads.
func BenchmarkCluster(b *testing.B) {
	if !pgtest.Spread() {
		b.Skip(pgtest.EnvCitus + " is not set")
	}
	b.Run("write", func(b *testing.B) { healthdatatest.BenchSamplesInTurn(b, clusterSamples, serverSamples) })
	b.Run("read", func(b *testing.B) {
		keepers := [2]healthdatatest.SampleStore{clusterSamples(b), serverSamples(b)}
		var took [2]time.Duration
		for _, k := range keepers {
			healthdatatest.FillYear(b, k)
		}
		for b.Loop() {
			for i, k := range keepers {
				began := time.Now()
				_, err := k.Read(b.Context(), 0)
				require.NoError(b, err)
				took[i] += time.Since(began)
			}
		}
		b.ReportMetric(float64(took[1])/float64(took[0]), "of-other")
	})
}

// clusterSamples keeps samples in clear on a cluster.
func clusterSamples(b *testing.B) healthdatatest.SampleStore {
	cluster, err := pgtest.StartCluster(b.Context(), pgtest.Durable, 2)
	require.NoError(b, err)
	b.Cleanup(cluster.Remove)
	pool := pgtest.Connect(b, cluster.URL()+"&pool_max_conns=16")
	require.NoError(b, postgres.Migrate(b.Context(), pool, stores.Tables(), nil))
	require.NoError(b, postgres.Distribute(b.Context(), pool, stores.Tables(), 8, nil))
	return samplesOn(b, pool)
}

func serverSamples(b *testing.B) healthdatatest.SampleStore {
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	require.NoError(b, err)
	b.Cleanup(server.Remove)
	return samplesOn(b, pgtest.Connect(b, server.URL("postgres")))
}

func samplesOn(b *testing.B, pool *pgxpool.Pool) healthdatatest.SampleStore {
	engine, err := postgres.Open(b.Context(), pool, stores.Tables(), nil)
	require.NoError(b, err)
	s := stores.New(engine, &stores.Options{Events: stores.Outbox})
	return healthdatatest.SampleStoreOf(b, healthdatatest.DataHarness{Data: s.Data(), Users: s.Users()})
}
