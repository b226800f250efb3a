package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// An event that is written while its person is deleted and erased leaves nothing: the deletion
// waits for the write, and a write that comes later writes no event.
func TestEventsWrittenDuringErasure(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)
	writing, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = writing.Rollback(context.Background()) }()
	require.NoError(t, postgres.New(writing, sealed()).Outbox().Append(t.Context(), []healthlab.Event{event(u, "k")}))

	erased := make(chan error, 1)
	go func() {
		_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon.Time
			return nil, nil
		})
		if err == nil {
			err = s.Users().Erase(t.Context(), u.Team, u.ID)
		}
		erased <- err
	}()
	eventually(t, time.Minute, func() bool { // it is done, or waits for the event
		var waits bool
		require.NoError(t, pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())`).Scan(&waits))
		return waits || len(erased) > 0
	})
	require.NoError(t, writing.Commit(t.Context()))
	require.NoError(t, <-erased)

	var left int
	require.NoError(t, pool.QueryRow(t.Context(), `select (select count(*) from healthlab.webhook_event where user_id = $1) + (select count(*) from healthlab.webhook_pending where user_id = $1)`, u.ID.UUID).Scan(&left))
	require.Zero(t, left)
}
