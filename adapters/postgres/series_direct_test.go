package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// direct counts the series that are appended to without a question.
func direct(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return len(texts(t, pool, `select '' from healthlab.series where direct`))
}

func setDeleted(t testing.TB, s *postgres.Store, u healthdata.User, at time.Time) {
	t.Helper()
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = at
		return nil, nil
	})
	require.NoError(t, err)
}

// After a user is deleted, no writer appends to the rows of the user's series, and folding
// does not bring deleted samples back.
func TestDeletedUsersTakeNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	people := make([]healthdata.User, 16)
	write := func(u *healthdata.User, at, n int) error {
		return s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, n, 60)}, nil)
	}
	for i := range people {
		people[i] = newPerson(t, s)
		require.NoError(t, write(&people[i], 0, 2000))
		require.NoError(t, write(&people[i], 2000, 1))
	}
	require.Equal(t, len(people), direct(t, pool))
	for _, u := range people[len(people)/2:] { // of whom a query will want to know
		require.NoError(t, s.Continuous().Insert(t.Context(), watching(u.Team, "heartrate")))
	}
	for _, u := range people {
		setDeleted(t, s, u, noon.Time)
	}
	require.Zero(t, direct(t, pool))
	refused := func() {
		t.Helper()
		for _, n := range []int{1, 100, 500, 2000} {
			require.ErrorIs(t, write(&people[0], 3000, n), healthlab.NotFound)
		}
		errs := make([]error, len(people))
		var all sync.WaitGroup
		for i := range people {
			all.Go(func() { errs[i] = write(&people[i], 3000, 1) })
		}
		all.Wait()
		for _, err := range errs {
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	}
	refused()
	for _, u := range people {
		require.NoError(t, postgres.Fold(t.Context(), s, u, 1))
	}
	require.Zero(t, direct(t, pool))
	refused()

	setDeleted(t, s, people[0], time.Time{})
	for i := range 3 {
		require.NoError(t, write(&people[0], 3000+i, 1))
	}
	require.Equal(t, 1, direct(t, pool), "a merge looked")
	require.Len(t, readSeries(t, s, people[0], heart), 2004)
	consistent(t, pool)
}

// trips counts how often a server is asked.
type trips int

func (n *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	*n++
	return ctx
}

func (n *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	*n++
	return ctx
}

func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// Appending a single sample takes one round trip. If the tail is full or a continuous query
// waits for the series, the append fails and a transaction of two round trips follows.
func TestSampleIsOneTrip(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	var asked trips
	config.ConnConfig.Tracer = &asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	at := 0
	write := func(n int) {
		for range n {
			mergeInto(t, s, u, heart, at, 1, 60)
			at++
		}
	}
	write(100)
	before := rows(t, pool, "segment")
	asked = 0
	write(300)
	took := int(asked)
	full := rows(t, pool, "segment") - before
	require.GreaterOrEqual(t, full, 4)
	require.Equal(t, 300+2*full, took)

	q := watching(u.Team, heart.Resource)
	require.NoError(t, s.Continuous().Insert(t.Context(), q))
	_, err = s.ContinuousWork().Backfill(t.Context(), 1)
	require.NoError(t, err)
	write(1)
	asked = 0
	write(50)
	require.EqualValues(t, 3*50, asked)
	_, err = s.Continuous().Update(t.Context(), u.Team, q.ID, func(q *continuous.Query) error {
		q.Status = continuous.Archived
		return nil
	})
	require.NoError(t, err)
	write(2) // one in vain, and one that looks
	require.Equal(t, 1, direct(t, pool))
	asked = 0
	write(10)
	require.LessOrEqual(t, int(asked), 13)
}

// Two processes that write to one series in turn assume a wrong length of its tail, and lose
// no sample.
func TestTailOfTwoProcesses(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	stores := [2]*postgres.Store{postgres.New(pool, nil), postgres.New(pool, nil)}
	u := newPerson(t, stores[0])
	for i := range 300 {
		require.Equal(t, 1, mergeInto(t, stores[i*i/7%2], u, heart, i, 1, float64(i)).New)
	}
	consistent(t, pool)
	got := readSeries(t, stores[0], u, heart)
	require.Len(t, got, 300)
	for i, sm := range got {
		require.EqualValues(t, i, sm.Value)
	}
	require.Less(t, rows(t, pool, "segment"), 20)
}

// A continuous query that is made while a write is open, which cannot see it, waits for the
// write before it schedules the user.
func TestQueryBesideAnOpenWrite(t *testing.T) {
	t.Parallel()
	old, fresh := minutes(heart, 10, 1, 61), minutes(steps, 0, 1, 5)
	for name, write := range map[string]func(context.Context, *postgres.Store, healthdata.User) error{
		"to a series": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
			return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{old}, nil)
		},
		"of another series": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
			return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{fresh}, nil)
		},
		"of a record": func(ctx context.Context, s *postgres.Store, u healthdata.User) error {
			return s.Data().PutRecords(ctx, u.Team, u.ID, []healthdata.Record{{
				Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`),
				CreatedAt: noon.Time, UpdatedAt: noon.Time,
			}}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			s := postgres.New(pool, nil)
			u := newPerson(t, s)
			mergeInto(t, s, u, heart, 0, 1, 60)
			mergeInto(t, s, u, heart, 1, 1, 60)
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			require.NoError(t, write(t.Context(), postgres.New(tx, nil), u))
			require.NoError(t, s.Continuous().Insert(t.Context(), watching(u.Team, "heartrate", "sleep", "steps")))
			type result struct {
				n   int
				err error
			}
			ended := make(chan result, 1)
			go func() {
				n, err := s.ContinuousWork().Backfill(t.Context(), 10)
				ended <- result{n, err}
			}()
			for waiting := 0; waiting == 0; {
				select {
				case r := <-ended:
					require.Fail(t, "it did not wait", "%v", r)
				default:
				}
				waiting = len(texts(t, pool, `select '' from `+waiters()))
			}
			require.NoError(t, tx.Commit(t.Context()))
			r := <-ended
			require.NoError(t, r.err)
			require.Equal(t, 1, r.n)
			tasks, err := s.ContinuousWork().Claim(t.Context(), 9, time.Hour)
			require.NoError(t, err)
			require.Len(t, tasks, 1)
			require.Equal(t, aggregate.Always, tasks[0].Range)
			require.Zero(t, direct(t, pool))
		})
	}
}
