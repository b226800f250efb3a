package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// A process remembers the numbers of series. Where a number means another series meanwhile,
// since the user was erased and has come again or the database was restored, nothing is
// written to that.
func TestNumberThatMeansAnotherSeries(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, other := postgres.New(pool, nil), postgres.New(pool, nil)
	u := newPerson(t, s)
	both := func(s *postgres.Store, at int, keys ...healthdata.SeriesKey) {
		for _, k := range keys {
			require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(k, at, 1, 60)}, nil))
		}
	}
	for at := range 5 {
		both(s, at, heart, steps)
	}
	eraseNow(t, other, u)
	require.NoError(t, other.Users().Insert(t.Context(), u, 0))
	for at := range 5 {
		both(other, at, steps, heart)
	}
	before := segments(t, pool, u)
	for at := range 20 {
		both(s, 10+at, heart)
	}
	require.Len(t, readSeries(t, s, u, heart), 25)
	require.Len(t, readSeries(t, s, u, steps), 5)
	require.LessOrEqual(t, segments(t, pool, u), before+1, "it is found out where the series is now")
	consistent(t, pool)
}

// Rows of before have no mark. They are found by their key, and get one with the next merge.
func TestSeriesWithoutMark(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	u := newPerson(t, postgres.New(pool, nil))
	at := 0
	write := func(s *postgres.Store, n int) {
		for range n {
			mergeInto(t, s, u, heart, at, 1, 60)
			at++
		}
	}
	mark := func() (m *uuid.UUID) {
		require.NoError(t, pool.QueryRow(t.Context(), `select mark from healthlab.series`).Scan(&m))
		return m
	}
	write(postgres.New(pool, nil), 10)
	_, err := pool.Exec(t.Context(), `update healthlab.series set mark = null`)
	require.NoError(t, err)
	s := postgres.New(pool, nil)
	write(s, 100)
	require.Nil(t, mark())
	mergeInto(t, s, u, heart, 50, 1, 61)
	first := mark()
	require.NotNil(t, first)
	write(s, 100)
	mergeInto(t, s, u, heart, 51, 1, 61)
	require.Equal(t, first, mark())
	require.Len(t, readSeries(t, s, u, heart), at)
	consistent(t, pool)
}
