package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// BenchmarkCluster compares a cluster of a coordinator and two workers with one server, on the
// same machine: writes in turn, and the reading of a year. It needs TEST_CITUS. The bars are 0.6
// of one server for batches of 1,000, and 0.7 for reads.
func BenchmarkCluster(b *testing.B) {
	if !pgtest.Spread() {
		b.Skip("TEST_CITUS is not set")
	}
	b.Run("write", func(b *testing.B) { healthdatatest.BenchSamplesInTurn(b, clusterKeeper, inClear.storeKeeper) })
	b.Run("read", func(b *testing.B) {
		keepers := [2]healthdatatest.SampleStore{clusterKeeper(b), inClear.storeKeeper(b)}
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

// clusterKeeper is the storeKeeper of samples in clear on a cluster.
func clusterKeeper(b *testing.B) healthdatatest.SampleStore {
	cluster, err := pgtest.StartCluster(b.Context(), pgtest.Durable, 2)
	require.NoError(b, err)
	b.Cleanup(cluster.Remove)
	pool := pgtest.Connect(b, cluster.URL()+"&pool_max_conns=16")
	require.NoError(b, postgres.Migrate(b.Context(), pool))
	require.NoError(b, postgres.Distribute(b.Context(), pool, 8))
	return keeperOf(b, postgres.New(pool, nil))
}
