package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// lockWaits waits until n transactions of the database wait for a lock.
func lockWaits(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	eventually(t, 20*time.Second, func() bool {
		return len(texts(t, pool, `select '' from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) == n
	})
}

// A merge does not find its series, then another transaction creates it, and a third one
// changes a chunk before the merge has locked the series. The merge keeps that change.
func TestMergeBesideCreation(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	s := postgres.New(pgtest.Connect(t, address+"&pool_max_conns=1"), nil)
	model, u := newPerson(t, s), newPerson(t, s)
	mergeInto(t, s, model, heart, 0, 1200, 60)
	mergeInto(t, s, model, steps, 0, 2, 60) // the connection has prepared the statements of a merge
	mergeInto(t, s, model, heart, 1, 1, 61)
	mergeInto(t, s, model, heart, 1, 1, 60)

	creating, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = creating.Exec(t.Context(), `lock table healthlab.chunk`)
	require.NoError(t, err)
	merged := make(chan error, 1)
	go func() {
		merged <- s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, 10, 1, 61)}, nil)
	}()
	lockWaits(t, pool, 1)
	for _, table := range []string{"series", "chunk", "segment"} {
		_, err = creating.Exec(t.Context(), `
			insert into healthlab.`+table+` select (jsonb_populate_record(x, jsonb_build_object('user_id', $1::uuid, 'team_id', $2::uuid))).*
			from healthlab.`+table+` x where x.user_id = $3`, u.ID.UUID, u.Team.UUID, model.ID.UUID)
		require.NoError(t, err)
	}
	changing, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = changing.Exec(t.Context(), `lock table healthlab.users in exclusive mode`)
	require.NoError(t, err)
	require.NoError(t, creating.Commit(t.Context()))
	lockWaits(t, pool, 1)
	mergeInto(t, postgres.New(changing, nil), u, heart, 20, 1, 62)
	require.NoError(t, changing.Commit(t.Context()))
	require.NoError(t, <-merged)

	got := readSeries(t, s, u, heart)
	require.Len(t, got, 1200)
	require.EqualValues(t, 61, got[10].Value)
	require.EqualValues(t, 62, got[20].Value)
	consistent(t, pool)
}
