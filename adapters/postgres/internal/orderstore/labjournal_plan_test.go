package orderstore

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// What a person has in the journal is found by team and user, with the primary keys.
func TestErasureUsesThePrimaryKeysOfTheJournal(t *testing.T) {
	t.Parallel()
	tx, err := pgtest.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), `select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`)
	require.NoError(t, err)
	for key, sql := range map[string]string{
		"lab_record_pkey": deleteLabRecordsOfUser, "lab_delivery_pkey": deleteLabDeliveriesOfUser, "lab_message_pkey": deleteLabMessagesOfUser,
	} {
		rows, err := tx.Query(t.Context(), "explain "+sql, uuid.New())
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Contains(t, strings.Join(lines, "\n"), "Index Scan using "+key)
	}
}
