package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/personkey/personkeytest"
)

func TestPersonKeys(t *testing.T) {
	t.Parallel()
	personkeytest.RunStore(t, func(t testing.TB) personkey.Store {
		pool := pgtest.Connect(t, pgtest.Empty(t))
		require.NoError(t, postgres.MigratePersonKeys(t.Context(), pool))
		require.NoError(t, postgres.MigratePersonKeys(t.Context(), pool), "it can be called again")
		return postgres.NewPersonKeys(pool)
	})
}

func TestAtRest(t *testing.T) {
	personkeytest.RunAtRest(t, func(t testing.TB) personkeytest.AtRestHarness {
		pool := pgtest.Pool(t)
		keys := personKeys()
		return personkeytest.AtRestHarness{
			Store: postgres.New(pool, &postgres.Options{Keys: keys, EncryptSamples: true}), Keys: keys, Kept: func(t testing.TB) []byte { return allRows(t, pool) },
		}
	})
}

// allRows returns the rows of all tables as text, which has bytes in hex.
func allRows(t testing.TB, pool *pgxpool.Pool) []byte {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select oid::regclass::text from pg_class
		where relnamespace = 'healthlab'::regnamespace and relkind in ('r', 'p')`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var all []byte
	for _, table := range tables {
		rows, err := pool.Query(t.Context(), "select r::text from "+table+" r")
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, line := range lines {
			all = append(append(all, line...), '\n')
		}
	}
	return all
}
