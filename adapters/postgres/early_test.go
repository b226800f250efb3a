package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// Statements are sent early where the driver would prepare them and tell nobody.
func TestWhoSendsEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*pgx.ConnConfig)
		want bool
	}{
		"a pool":                  {set: func(*pgx.ConnConfig) {}, want: true},
		"a pool with a tracer":    {set: func(c *pgx.ConnConfig) { c.Tracer = new(trips) }},
		"a pool behind a pooler":  {set: func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeExec }},
		"a pool that only speaks": {set: func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol }},
	} {
		config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/none")
		require.NoError(t, err)
		c.set(config.ConnConfig)
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, c.want, postgres.SendsEarly(postgres.New(pool, nil)), name)
		pool.Close()
	}
	require.False(t, postgres.SendsEarly(postgres.New(new(pgx.Conn), nil)))
}

// What happens to a single statement that was sent early is what happens to any other: it is
// given up with its context, and its connection with it; it is not sent twice; and what was
// prepared and is there no more is prepared again.
func TestEarlyStatements(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, other := pgtest.Connect(t, address+"&pool_max_conns=1"), pgtest.Connect(t, address)
	s := postgres.New(pool, nil)
	require.True(t, postgres.SendsEarly(s))
	u := newPerson(t, s)
	at := 0
	write := func(ctx context.Context) error {
		err := s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, 60)}, nil)
		if err == nil {
			at++
		}
		return err
	}
	for range 100 {
		require.NoError(t, write(t.Context()))
	}
	// stuck writes while somebody else has the row, until end has ended that; nil: its context does.
	stuck := func(ctx context.Context, end func()) error {
		tx, err := other.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
		_, err = tx.Exec(t.Context(), `select from healthlab.series for update`)
		require.NoError(t, err)
		failed := make(chan error)
		go func() { failed <- write(ctx) }()
		if end != nil {
			require.Eventually(t, func() bool {
				return len(texts(t, other, `select '' from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)) > 0
			}, 20*time.Second, time.Millisecond)
			end()
		}
		return <-failed
	}

	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, stuck(ctx, cancel), context.Canceled)
	require.NoError(t, write(t.Context()))

	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, stuck(ctx, nil), context.DeadlineExceeded)
	require.NoError(t, write(t.Context()))

	require.ErrorIs(t, stuck(t.Context(), func() {
		_, err := other.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
		require.NoError(t, err)
	}), healthlab.Unavailable)
	require.NoError(t, write(t.Context()))

	_, err := pool.Exec(t.Context(), `deallocate all`)
	require.NoError(t, err)
	before := at
	for at < before+10 {
		if err := write(t.Context()); err != nil {
			require.Equal(t, before, at, "the first one only")
		}
	}
	require.Len(t, readSeries(t, s, u, heart), at)
	consistent(t, pool)
	requireIdle(t, pool)
}
