package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// A claim updates the rows that it has locked by their tuple ids (Tid Scan), also if the
// statistics of the server say that the table is empty.
func TestAClaimGoesToItsRows(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Fresh(t))
	_, err := pool.Exec(t.Context(), "vacuum analyze")
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), tuneQueue)
	require.NoError(t, err)
	for _, sql := range []string{claimDeliveries, claimTrials} {
		rows, err := tx.Query(t.Context(), "explain "+sql, []uuid.UUID{uuid.New()}, []int32{1}, time.Minute)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		require.Contains(t, plan, "Tid Scan on webhook_delivery d ", plan)
	}
}
