package postgres_test

import (
	"testing"

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
