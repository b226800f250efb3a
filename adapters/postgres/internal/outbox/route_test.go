package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// A process that is suspended while it routes does not keep all others from routing.
func TestASuspendedRouterLosesItsLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	suspended, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer suspended.Release()
	for _, sql := range []string{string(db.Writing), tuneQueue} {
		_, err = suspended.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	_, err = suspended.Exec(t.Context(), holdRouting, int64(Routing))
	require.NoError(t, err)

	other, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer other.Rollback(t.Context())
	_, err = other.Exec(t.Context(), `set local lock_timeout = '60s'`)
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), holdRouting, int64(Routing))
	require.NoError(t, err)

	_, err = suspended.Exec(t.Context(), `commit`)
	require.True(t, db.Lost(err), err) // and so its transaction is tried again
}
