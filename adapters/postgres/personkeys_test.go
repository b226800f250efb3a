package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

func TestPersonKeys(t *testing.T) {
	t.Parallel()
	storetest.RunPersonKeys(t, func(t testing.TB) personkey.Store {
		pool := pgtest.Connect(t, pgtest.Empty(t))
		require.NoError(t, postgres.MigratePersonKeys(t.Context(), pool))
		require.NoError(t, postgres.MigratePersonKeys(t.Context(), pool), "it can be called again")
		return postgres.NewPersonKeys(pool)
	})
}
