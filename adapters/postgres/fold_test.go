package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// meanwhile runs something before the first batch that has a statement.
type meanwhile struct {
	trips

	statement string
	run       func()
}

func (m *meanwhile) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		if run := m.run; run != nil && q.SQL == m.statement {
			m.run = nil
			run()
		}
	}
	return ctx
}

// A fold reads before it locks. Writes of others in between are not lost.
func TestFoldMeetsOthers(t *testing.T) { eachForm(t, testFoldMeetsOthers) }

func testFoldMeetsOthers(t *testing.T, f form) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	tracer := &meanwhile{statement: postgres.LockNumbered}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	folding := f.New(pool, nil)
	other, err := pgxpool.New(t.Context(), config.ConnString())
	require.NoError(t, err)
	t.Cleanup(other.Close)
	s := f.New(other, nil)

	// A chunk, in a crowded series many long batches, and small ones, all within one cell.
	const chunk, long, first, end = 1400, 1500, 3500, 4000
	put := func(from, n int) func(healthdata.User) {
		return func(u healthdata.User) { mergeInto(t, s, u, heart, from, n, 99) }
	}
	for name, c := range map[string]struct {
		do       func(healthdata.User)
		from, to int  // samples that were put
		gone     bool // one that was there
	}{
		"no other writer":    {do: func(healthdata.User) {}},
		"another fold":       {do: func(u healthdata.User) { require.NoError(t, postgres.Fold(t.Context(), s, u, 1)) }},
		"a value of a tail":  {do: put(end-1, 1), from: end - 1, to: end},
		"values of segments": {do: put(first+3, 50), from: first + 3, to: first + 53},
		"values of a chunk":  {do: put(chunk-5, 2), from: chunk - 5, to: chunk - 3},
		"a gap":              {do: put(chunk+5, 1), from: chunk + 5, to: chunk + 6},
		"before all":         {do: put(-300, 1), from: -300, to: -299},
		"behind all":         {do: put(end, 1), from: end, to: end + 1},
		"a whole chunk":      {do: put(end, 1500), from: end, to: end + 1500},
		"a fold and a sample": {do: func(u healthdata.User) {
			require.NoError(t, postgres.Fold(t.Context(), s, u, 1))
			put(end, 1)(u)
		}, from: end, to: end + 1},
		"a removal": {do: func(u healthdata.User) {
			one := minutes(heart, 5, 1, 0)
			n, err := s.Data().Remove(t.Context(), u.Team, u.ID, healthdata.Removal{
				Samples: []healthdata.SampleRemoval{{Key: heart, Times: one.Samples.Time, Span: one.Span}},
			})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}, gone: true},
	} {
		for _, crowded := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", crowded"}[crowded], func(t *testing.T) {
				u := newPerson(t, s)
				mergeInto(t, s, u, heart, 0, chunk, 1)
				for i := range 33 {
					if b := varied(heart, long+i*50, 50); crowded {
						require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{b}, nil))
					}
				}
				for at := first; at < end; at += 25 {
					require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{varied(heart, at, 25)}, nil))
				}
				want := valuesOf(t, s, u)
				require.NotZero(t, segments(t, other, u))
				met := false
				tracer.run = func() {
					c.do(u)
					met = true
				}
				require.NoError(t, postgres.Fold(t.Context(), folding, u, 1))
				require.True(t, met)
				for at := c.from; at < c.to; at++ {
					want[at] = 99
				}
				if c.gone {
					delete(want, 5)
				}
				require.Equal(t, want, valuesOf(t, s, u))
				require.LessOrEqual(t, segments(t, other, u), 1, "what was appended meanwhile")
			})
		}
	}

	consistent(t, other)

	u := newPerson(t, s)
	everySample(t, s, u)
	tracer.run = func() { eraseNow(t, s, u) }
	require.NoError(t, postgres.Fold(t.Context(), folding, u, 1))
	require.Empty(t, texts(t, other, `
		select user_id::text from (
			select user_id from healthlab.series union select user_id from healthlab.segment union select user_id from healthlab.chunk) x
		where user_id = '`+u.ID.String()+`'`), "who was erased stays so")
	requireIdle(t, pool)
}

// segments counts those of a user.
func segments(t testing.TB, pool *pgxpool.Pool, u healthdata.User) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.segment where user_id = $1`, u.ID.UUID).Scan(&n))
	return n
}

// valuesOf reads a series by minutes.
func valuesOf(t testing.TB, s *postgres.Store, u healthdata.User) map[int]float64 {
	t.Helper()
	values := map[int]float64{}
	for _, sample := range readSeries(t, s, u, heart) {
		values[int((sample.Time-noon.UnixMicro())/60_000_000)] = sample.Value
	}
	return values
}

// eraseNow erases a user who was deleted long ago.
func eraseNow(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	setDeleted(t, s, u, noon.Time)
	require.NoError(t, s.Users().Erase(t.Context(), u.Team, u.ID))
}

// The segments of many small writes are folded while writes continue, without the tail and
// whichever process made them: full tails, batches too long for a tail, requests about
// several series, and series that continuous queries wait for.
func TestCrowdIsFoldedWhileOthersWrite(t *testing.T) { eachForm(t, testCrowdIsFoldedWhileOthersWrite) }

func testCrowdIsFoldedWhileOthersWrite(t *testing.T, f form) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, s *postgres.Store, u healthdata.User, i int){
		"tails": func(t *testing.T, s *postgres.Store, u healthdata.User, i int) {
			for k := range 40 {
				mergeInto(t, s, u, heart, i*40+k, 1, 60)
			}
		},
		"long batches": func(t *testing.T, s *postgres.Store, u healthdata.User, i int) {
			require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{varied(heart, i*50, 50)}, nil))
		},
		"several series": func(t *testing.T, s *postgres.Store, u healthdata.User, i int) {
			require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID,
				[]healthdata.SampleBatch{minutes(heart, i, 1, 60), minutes(steps, i, 1, 60)}, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			s := f.New(pool, nil)
			u := newPerson(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if err := s.RunFolding(ctx); err != nil {
					t.Error(err)
				}
			})
			most := 0
			for i := 0; ; i++ {
				write(t, s, u, i)
				left := rows(t, pool, "segment")
				soon := texts(t, pool, `select '' from healthlab.series where fold_due < now() + interval '9 minutes'`) // not in ten
				if left < most || len(soon) > 0 {
					break
				}
				most = left
			}
			require.Greater(t, most, 14)
			eventually(t, 20*time.Second, func() bool { return rows(t, pool, "segment") == 0 })
			mergeInto(t, s, u, heart, 1_000_000, 1, 60)
			require.Equal(t, 1, tailed(t, pool))
			cancel()
			running.Wait()
			consistent(t, pool)
			requireIdle(t, pool)
		})
	}
}
