package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

var heart = healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: "watch"}

// everyWrite calls every method that writes, once.
func everyWrite(t testing.TB, s *postgres.Store) healthdata.User {
	t.Helper()
	u := personOf(healthlab.TeamID{UUID: uuid.New()})
	require.NoError(t, s.Users().Insert(t.Context(), u, 10))
	emit := func() []healthlab.Event { return []healthlab.Event{event(u, "k")} }
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.FallbackTimeZone.ID = "Asia/Tokyo"
		return emit(), nil
	})
	require.NoError(t, err)
	for _, from := range []int{0, 2000, 0} { // chunks, a segment, a merge
		require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, from, 1500, float64(from))},
			func([]series.Outcome) ([]healthlab.Event, error) { return emit(), nil }))
	}
	require.NoError(t, s.Data().PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{{
		Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`),
		CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}}, func([]healthdata.PutResult) ([]healthlab.Event, error) { return emit(), nil }))
	require.NoError(t, s.Outbox().Append(t.Context(), emit()))
	everyOrderWrite(t, s, u)
	everyLinkWrite(t, s, u)
	everyJobWrite(t, s, u)
	return u
}

func TestHostCommits(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	u := everyWrite(t, postgres.New(tx, nil))
	outside := postgres.New(pool, nil)
	_, err = outside.Users().Get(t.Context(), u.Team, u.ID)
	require.ErrorIs(t, err, healthlab.NotFound, "not before the host's commit")
	require.NoError(t, tx.Commit(t.Context()))
	require.Len(t, readSeries(t, outside, u, heart), 3000)
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, texts(t, pool, `select seq::text from healthlab.webhook_event order by seq`))
	require.Equal(t, 8, rows(t, pool, "webhook_pending"))
}

func TestHostRollsBack(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	everyWrite(t, postgres.New(tx, nil))
	require.NoError(t, tx.Rollback(t.Context()))
	for _, table := range texts(t, pool, `select relname from`+ourTables+`and relname <> 'migration'`) {
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.`+table).Scan(&n))
		require.Zero(t, n, table)
	}
}

// A failed call in a host's transaction is undone, and the host's own writes stay.
func TestHostGoesOnAfterAFault(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `create table public.visit (n int)`)
	require.NoError(t, err)
	s := postgres.New(tx, nil)
	u := newPerson(t, s)
	e := event(u, "k")
	require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{e}))
	_, err = s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.ClientUserID = "other"
		return []healthlab.Event{e}, nil // the id is taken
	})
	require.ErrorIs(t, err, healthlab.Conflict)
	_, err = tx.Exec(t.Context(), `insert into public.visit values (1)`)
	require.NoError(t, err)
	got, err := s.Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	require.Equal(t, u.ClientUserID, got.ClientUserID)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, []string{"1"}, texts(t, pool, `select n::text from public.visit`))
}

// A single connection works as well, one call at a time.
func TestSingleConnection(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	s := postgres.New(conn, nil)
	u := everyWrite(t, s)
	require.Len(t, readSeries(t, s, u, heart), 3000)
}

// Behind a transaction pooler nothing is prepared by name.
func TestWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.URL(t)+"&default_query_exec_mode=cache_describe")
	s := postgres.New(pool, nil)
	u := everyWrite(t, s)
	require.Len(t, readSeries(t, s, u, heart), 3000)
}

// A call whose context ends inside returns the context's error, and its connection goes back
// to the pool.
func TestContextEndsInside(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Users().Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		cancel()
		return nil, nil
	})
	require.ErrorIs(t, err, context.Canceled)

	// Another transaction holds the row for longer than the caller wants to wait.
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from healthlab.users for update`)
	require.NoError(t, err)
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Users().Update(ctx, u.Team, u.ID, func(*healthdata.User) ([]healthlab.Event, error) { return nil, nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, tx.Rollback(t.Context()))
	requireIdle(t, pool)
	got, err := s.Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Revision)
}
