package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// engineSuite returns a harness of two processes, whose sessions change makes.
func engineSuite(opts postgres.EngineOptions, change func(*pgxpool.Config)) func(testing.TB) storetest.Harness {
	return func(t testing.TB) storetest.Harness {
		address, sent := pgtest.URL(t), &sentBatches{}
		first := poolWith(t, address, func(c *pgxpool.Config) {
			c.ConnConfig.Tracer = sent
			change(c)
		})
		return storetest.Harness{
			Store: openEngine(t, first, storetest.Tables(), opts), Second: openEngine(t, poolWith(t, address, change), storetest.Tables(), opts),
			Trips: func() int { return int(sent.n.Load()) },
		}
	}
}

func TestEngine(t *testing.T) {
	t.Parallel()
	storetest.Run(t, engineSuite(postgres.EngineOptions{}, func(*pgxpool.Config) {}))
}

// The suite passes for a role that row-level security holds for.
func TestEngine_rowSecurity(t *testing.T) {
	t.Parallel()
	storetest.Run(t, engineSuite(postgres.EngineOptions{RowSecurity: true}, asRestricted))
}
