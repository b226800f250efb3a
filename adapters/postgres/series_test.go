package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
)

// requireIdle requires that no connection of a pool is out.
func requireIdle(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}

// rows counts the rows of a table.
func rows(t testing.TB, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.`+table).Scan(&n))
	return n
}

// consistent requires that what the rows of series and segments say is so, and that no
// chunks overlap.
func consistent(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for what, sql := range map[string]string{
		"another number of segments": `
			select s.user_id::text from healthlab.series s
			where s.segments <> (select count(*) from healthlab.segment g where g.user_id = s.user_id and g.series = s.series)
				or s.segment_bytes <> (select coalesce(sum(length(g.data)), 0) from healthlab.segment g where g.user_id = s.user_id and g.series = s.series)
				or (s.segments = 0) <> (s.fold_due is null)`,
		"chunks that overlap": `
			select c.user_id::text from healthlab.chunk c join healthlab.chunk d on d.user_id = c.user_id and d.series = c.series
				and d.start_at > c.start_at and d.start_at <= c.stop_at`,
	} {
		require.Empty(t, texts(t, pool, sql), what)
	}
	consistentTails(t, pool)
}

// consistentTails requires that the times beside tails and segments are those of their
// samples, and that each series ends with its last sample.
func consistentTails(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select s.team_id, s.user_id, s.resource, s.provider, s.source_type, s.part, s.last_at, s.tail_at, s.tail_closed, s.tail, (select max(x.stop_at) from (
			select stop_at from healthlab.segment g where g.user_id = s.user_id and g.series = s.series
			union all select stop_at from healthlab.chunk c where c.user_id = s.user_id and c.series = s.series) x)
		from healthlab.series s`)
	require.NoError(t, err)
	var team, user uuid.UUID
	var key healthdata.SeriesKey
	of := []any{&team, &user, &key.Resource, &key.Provider, (*string)(&key.SourceType), &key.Part}
	readTail := func(tail []byte) series.Segment {
		cipher := seriesbox.Cipher{Keys: sampleKeys}
		box := cipher.Series(personkey.Ref{Team: healthlab.TeamID{UUID: team}, User: healthlab.UserID{UUID: user}}, &key)
		g, err := box.ReadTail(t.Context(), tail)
		require.NoError(t, err)
		return g
	}
	var last int64
	var tailAt, stored *int64
	var closed bool
	var tail []byte
	_, err = pgx.ForEachRow(rows, append(of, &last, &tailAt, &closed, &tail, &stored), func() error {
		require.Equal(t, tailAt == nil, len(tail) == 0, "a tail and its time: %s", user)
		end := int64(math.MinInt64)
		if stored != nil {
			end = *stored
		}
		if closed {
			require.NotNil(t, tailAt, "a closed tail: %s", user)
		}
		if len(tail) > 0 {
			g := readTail(tail)
			require.Equal(t, g.Start, *tailAt, "the beginning of a tail: %s", user)
			if !closed {
				end = max(end, g.Stop)
			}
		}
		require.Equal(t, end, last, "the last sample: %s", user)
		return nil
	})
	require.NoError(t, err)
	rows, err = pool.Query(t.Context(), `
		select s.team_id, s.user_id, s.resource, s.provider, s.source_type, s.part, g.start_at, g.stop_at, g.data
		from healthlab.segment g join healthlab.series s on s.user_id = g.user_id and s.series = g.series where g.header = ''`)
	require.NoError(t, err)
	var start, stop int64
	_, err = pgx.ForEachRow(rows, append(of, &start, &stop, &tail), func() error {
		g := readTail(tail)
		require.Equal(t, [2]int64{g.Start, g.Stop}, [2]int64{start, stop}, "the times of a full tail: %s", user)
		return nil
	})
	require.NoError(t, err)
}

// tailed counts the series that have a tail.
func tailed(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return len(texts(t, pool, `select '' from healthlab.series where not tail_closed and tail_at is not null`))
}

// Single samples are kept in the row of their series; a full tail becomes a segment, and
// enough segments become a chunk.
func TestTailsBecomeSegments(t *testing.T) { eachForm(t, testTailsBecomeSegments) }

func testTailsBecomeSegments(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, nil)
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 0, 1, 0)
	require.Equal(t, 1, rows(t, pool, "segment"), "the first sample makes the series")
	segments, size, folded := 1, 0, false
	var want []float64
	for len(want) < 8_000 {
		b := minutes(heart, len(want)+1, 1, float64(len(want)))
		if len(want) > 200 {
			b = varied(heart, len(want)+1, 25) // to fill so many segments sooner
		}
		require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{b}, nil))
		want = append(want, b.Samples.Value...)
		var in, tail int
		require.NoError(t, pool.QueryRow(t.Context(), `select segments, case when tail_closed then 0 else length(tail) end from healthlab.series`).Scan(&in, &tail))
		require.LessOrEqual(t, in, 64)
		require.Less(t, tail, 1500)
		folded = folded || in < segments
		segments, size = in, max(size, tail)
	}
	require.True(t, folded)
	require.Greater(t, size, 1250, "a tail has many samples")
	consistent(t, pool)
	got := readSeries(t, s, u, heart)
	require.Len(t, got, 1+len(want))
	for i, sm := range got[1:] {
		require.Equal(t, want[i], sm.Value)
	}
}

// Every reader of a series reads its tail too.
func TestEveryReaderTakesTheTail(t *testing.T) { eachForm(t, testEveryReaderTakesTheTail) }

func testEveryReaderTakesTheTail(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, nil)
	values := func(t *testing.T, u healthdata.User) (out []float64) {
		t.Helper()
		for _, sm := range readSeries(t, s, u, heart) {
			out = append(out, sm.Value)
		}
		return out
	}
	for what, read := range map[string]func(*testing.T, healthdata.User){
		"View": func(t *testing.T, u healthdata.User) { require.Equal(t, []float64{1, 2}, values(t, u)) },
		"Repeated": func(t *testing.T, u healthdata.User) {
			require.Zero(t, mergeInto(t, s, u, heart, 1, 1, 2).New)
			require.Equal(t, []float64{1, 2}, values(t, u))
		},
		"Changed": func(t *testing.T, u healthdata.User) {
			require.Equal(t, 1, mergeInto(t, s, u, heart, 1, 1, 3).Changed)
			require.Equal(t, []float64{1, 3}, values(t, u))
		},
		"Removed": func(t *testing.T, u healthdata.User) {
			n, err := s.Data().Remove(t.Context(), u.Team, u.ID, healthdata.Removal{Resource: heart.Resource, Samples: []healthdata.SampleRemoval{
				{Key: heart, Times: minutes(heart, 1, 1, 0).Samples.Time, Span: series.PerMinute},
			}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, []float64{1}, values(t, u))
			require.Equal(t, 1, mergeInto(t, s, u, heart, 1, 1, 4).New)
			require.Equal(t, []float64{1, 4}, values(t, u))
		},
		"Folded": func(t *testing.T, u healthdata.User) {
			require.NoError(t, postgres.Fold(t.Context(), s, u, 1))
			require.Equal(t, []float64{1, 2}, values(t, u))
		},
	} {
		t.Run(what, func(t *testing.T) {
			u := newPerson(t, s)
			before := tailed(t, pool)
			mergeInto(t, s, u, heart, 0, 1, 1)
			mergeInto(t, s, u, heart, 1, 1, 2)
			require.Equal(t, before+1, tailed(t, pool))
			read(t, u)
			consistent(t, pool)
		})
	}
}

// Batches that are too long for a tail become segments, which the writer folds when
// there are too many. A tail stays beside them.
func TestSegmentsFoldOnOverflow(t *testing.T) { eachForm(t, testSegmentsFoldOnOverflow) }

func testSegmentsFoldOnOverflow(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, nil)
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 0, 1, 0)
	mergeInto(t, s, u, heart, 1, 1, 0)
	require.Equal(t, 1, tailed(t, pool))
	most, folded := 0, false
	for i := range 100 {
		require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{varied(heart, 2+i*50, 50)}, nil))
		n := rows(t, pool, "segment")
		folded = folded || n < most
		most = max(most, n)
		require.LessOrEqual(t, n, 64)
	}
	require.Equal(t, 64, most)
	require.True(t, folded)
	require.Zero(t, tailed(t, pool), "a fold takes the tail")
	consistent(t, pool)
	require.Len(t, readSeries(t, s, u, heart), 2+100*50)
}

// A write that overlaps a pending segment folds it, so that the older values of the segment
// cannot win later.
func TestLateSamplesFoldWhatTheyTouch(t *testing.T) { eachForm(t, testLateSamplesFoldWhatTheyTouch) }

func testLateSamplesFoldWhatTheyTouch(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, nil)
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 10, 10, 1)
	mergeInto(t, s, u, heart, 20, 10, 1)
	require.Equal(t, 1, rows(t, pool, "segment"))
	require.Equal(t, 1, tailed(t, pool))
	o := mergeInto(t, s, u, heart, 25, 10, 2)
	require.Equal(t, []int{5, 5}, []int{o.New, o.Changed})
	require.Zero(t, rows(t, pool, "segment"))
	require.Zero(t, tailed(t, pool))
	consistent(t, pool)
	for i, sm := range readSeries(t, s, u, heart) {
		require.Equal(t, map[bool]float64{true: 1, false: 2}[i < 15], sm.Value, i)
	}
}

// A repeated upload writes nothing at all.
func TestRepeatedUploadWritesNothing(t *testing.T) { eachForm(t, testRepeatedUploadWritesNothing) }

func testRepeatedUploadWritesNothing(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, nil)
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 0, 1500, 1)
	mergeInto(t, s, u, heart, 1500, 5, 1)
	state := func() []string {
		return texts(t, pool, `select x from (
			select ctid || xmin::text x from healthlab.series union all select ctid || xmin::text from healthlab.chunk
			union all select ctid || xmin::text from healthlab.segment) y order by 1`)
	}
	before := state()
	require.Equal(t, 1500, mergeInto(t, s, u, heart, 0, 1500, 1).Same)
	require.Equal(t, 5, mergeInto(t, s, u, heart, 1500, 5, 1).Same)
	require.Equal(t, before, state())
}

func TestRunFolding(t *testing.T) { eachForm(t, testRunFolding) }

func testRunFolding(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := f.New(pool, &postgres.Options{FoldAfter: time.Millisecond})
	u := newPerson(t, s)
	for i := range 5 {
		mergeInto(t, s, u, heart, i*10, 10, float64(i))
	}
	want := readSeries(t, s, u, heart)
	require.Equal(t, 1, rows(t, pool, "segment"))
	require.Equal(t, 1, tailed(t, pool))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 { // two processes
		running.Go(func() {
			if err := s.RunFolding(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, 20*time.Second, func() bool { return rows(t, pool, "segment") == 0 })
	cancel()
	running.Wait()
	require.Equal(t, want, readSeries(t, s, u, heart))
	require.Equal(t, 1, rows(t, pool, "chunk"))
	require.Zero(t, tailed(t, pool), "a fold takes the tail")
	consistent(t, pool)
	requireIdle(t, pool)
}

// Writers of several processes, with folding beside them: no sample is lost, each is
// new exactly once, and the latest value stays.
func TestNoLostUpdateAmongProcesses(t *testing.T) { eachForm(t, testNoLostUpdateAmongProcesses) }

func testNoLostUpdateAmongProcesses(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const processes, callers, rounds = 2, 8, 12
	u := newPerson(t, f.New(pool, nil))
	ctx, cancel := context.WithCancel(t.Context())
	var background, all sync.WaitGroup
	for range processes {
		s := f.New(pool, &postgres.Options{Writers: 2, FoldAfter: time.Millisecond})
		background.Go(func() { _ = s.RunFolding(ctx) })
		for c := range callers {
			all.Go(func() {
				for i := range rounds {
					// Each caller its own minutes, some ahead of all, some behind.
					at := i*callers + c
					if i%3 == 2 {
						at -= callers
					}
					err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, float64(i))},
						func(o []series.Outcome) ([]healthlab.Event, error) {
							return []healthlab.Event{event(u, fmt.Sprint(o[0].New, o[0].Changed))}, nil
						})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	cancel()
	background.Wait()
	var fresh int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.webhook_event where key = '1 0'`).Scan(&fresh))
	require.Equal(t, processes*callers*rounds, rows(t, pool, "webhook_event"), "every answered write has its event")
	samples := readSeries(t, f.New(pool, nil), u, heart)
	require.Len(t, samples, fresh, "each sample was new once")
	require.Len(t, samples, callers*(rounds-rounds/3))
	consistent(t, pool)
	requireIdle(t, pool)
}

// The same without events, where most writes are a single statement: every caller has a
// series of its own, and all share another one.
func TestNoLostAppendAmongProcesses(t *testing.T) { eachForm(t, testNoLostAppendAmongProcesses) }

func testNoLostAppendAmongProcesses(t *testing.T, f form) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const processes, callers, rounds = 2, 20, 60
	u := newPerson(t, f.New(pool, nil))
	own := func(c int) healthdata.SeriesKey {
		key := heart
		key.Part = fmt.Sprint(c)
		return key
	}
	ctx, cancel := context.WithCancel(t.Context())
	var background, all sync.WaitGroup
	for p := range processes {
		s := f.New(pool, &postgres.Options{FoldAfter: time.Millisecond})
		background.Go(func() { _ = s.RunFolding(ctx) })
		for c := range callers {
			all.Go(func() {
				for i := range rounds {
					at := i*processes + p
					batches := []healthdata.SampleBatch{minutes(own(c), at, 1, float64(at))}
					switch {
					case i%20 == 13: // behind what is there, and a second time
						at -= 4 * processes
						batches[0] = minutes(own(c), at, 1, float64(at))
					case i%20 == 7:
						batches[0] = minutes(heart, at*callers+c, 1, 1)
					case i%20 == 17:
						batches = append(batches, minutes(heart, at*callers+c, 1, 1))
					}
					if err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, batches, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	cancel()
	background.Wait()
	s := f.New(pool, nil)
	for c := range callers {
		samples := readSeries(t, s, u, own(c))
		require.Len(t, samples, processes*(rounds-2*rounds/20))
		for _, sm := range samples {
			require.Equal(t, noon.UnixMicro()+int64(sm.Value)*60_000_000, sm.Time)
		}
	}
	require.Len(t, readSeries(t, s, u, heart), processes*callers*2*rounds/20)
	consistent(t, pool)
	requireIdle(t, pool)
}

// fewWriters skips a test of requests that wait for a place: where users are spread, eight times as
// many groups are written side by side.
func fewWriters(t *testing.T) {
	if pgtest.Spread() {
		t.Skip("more groups are written side by side than the test has requests")
	}
}

// Of the writes that one transaction stores, one fails, one is cancelled and one panics; the
// others are stored.
func TestGatheredWritesFailAlone(t *testing.T) {
	t.Parallel()
	fewWriters(t)
	pool := pgtest.Pool(t)
	s := postgres.New(pool, &postgres.Options{Writers: 1})
	u := newPerson(t, s)
	errNo := errors.New("no")
	taken := event(u, "k")
	require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{taken}))

	merge := func(ctx context.Context, at int, events func() ([]healthlab.Event, error)) error {
		return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, 1)},
			func([]series.Outcome) ([]healthlab.Event, error) { return events() })
	}
	good := func() ([]healthlab.Event, error) { return []healthlab.Event{event(u, "k")}, nil }

	// One write holds the only place until all others wait.
	hold, held := make(chan struct{}), make(chan struct{})
	var once sync.Once // a closure may run twice
	var all sync.WaitGroup
	all.Go(func() {
		err := merge(t.Context(), 0, func() ([]healthlab.Event, error) {
			once.Do(func() { close(held) })
			<-hold
			return good()
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	gone, leave := context.WithCancel(t.Context())
	errs := make([]error, 20)
	var panicked any
	for i := range errs {
		all.Go(func() {
			switch i {
			case 3:
				errs[i] = merge(t.Context(), 100+i, func() ([]healthlab.Event, error) { return nil, errNo })
			case 5:
				errs[i] = merge(gone, 100+i, good)
			case 7:
				errs[i] = merge(t.Context(), 100+i, func() ([]healthlab.Event, error) { return []healthlab.Event{taken}, nil })
			case 9:
				defer func() { panicked = recover() }()
				errs[i] = merge(t.Context(), 100+i, func() ([]healthlab.Event, error) { panic("a bug") })
			default:
				errs[i] = merge(t.Context(), 100+i, good)
			}
		})
	}
	require.Eventually(t, func() bool { return postgres.Waiting(s) == len(errs) }, 10*time.Second, time.Millisecond)
	leave()
	require.Eventually(t, func() bool { return postgres.Waiting(s) == len(errs)-1 }, 10*time.Second, time.Millisecond)
	close(hold)
	all.Wait()
	require.Equal(t, "a bug", panicked)
	for i, err := range errs {
		switch i {
		case 3:
			require.ErrorIs(t, err, errNo)
		case 5:
			require.ErrorIs(t, err, context.Canceled)
		case 7:
			require.ErrorIs(t, err, healthlab.Conflict)
		default:
			require.NoError(t, err, i)
		}
	}
	require.Len(t, readSeries(t, s, u, heart), 1+len(errs)-4)
	require.Equal(t, 1+1+len(errs)-4, rows(t, pool, "webhook_event"))
	consistent(t, pool)
	requireIdle(t, pool)
}

// While one group is stuck, a waiting write takes the next free slot.
func TestFreedPlaceIsTaken(t *testing.T) {
	t.Parallel()
	fewWriters(t)
	pool := pgtest.Pool(t)
	s := postgres.New(pool, &postgres.Options{Writers: 2})
	u := newPerson(t, s)
	numbered := func(i int) healthdata.SeriesKey {
		key := heart
		key.Part = fmt.Sprint(i)
		return key
	}
	for i := range 6 {
		mergeInto(t, s, u, numbered(i), 0, 1, 1)
	}
	lock := func(part string) pgx.Tx {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `select from healthlab.series where part = $1 for update`, part)
		require.NoError(t, err)
		return tx
	}
	first, second, group := lock("0"), lock("1"), lock("2")
	var all sync.WaitGroup
	merge := func(i, minute int) {
		all.Go(func() {
			if err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(numbered(i), minute, 1, 1)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	merge(0, 1) // each in a place of its own
	merge(1, 1)
	waits := func(n int) {
		require.Eventually(t, func() bool { return postgres.Waiting(s) == n }, 10*time.Second, time.Millisecond)
	}
	require.Eventually(t, func() bool { return postgres.Running(s) == 2 }, 10*time.Second, time.Millisecond)
	for i, of := range []int{2, 3, 4, 5} { // three of them go together, behind the lock of one
		merge(of, 1)
		waits(i + 1)
	}
	time.Sleep(30 * time.Millisecond) // all have lost patience
	require.NoError(t, first.Rollback(t.Context()))
	waits(1)
	time.Sleep(30 * time.Millisecond)
	require.NoError(t, second.Rollback(t.Context()))
	waits(0)
	require.NoError(t, group.Rollback(t.Context()))
	all.Wait()
	consistent(t, pool)
}

// A group that waits for another transaction's lock does not hold up those that come later.
func TestStuckGroupIsPassed(t *testing.T) {
	t.Parallel()
	fewWriters(t)
	pool := pgtest.Pool(t)
	s := postgres.New(pool, &postgres.Options{Writers: 2})
	u := newPerson(t, s)
	numbered := func(i int) healthdata.SeriesKey {
		key := heart
		key.Part = fmt.Sprint(i)
		return key
	}
	const others = 20
	for i := range others {
		mergeInto(t, s, u, numbered(i), 0, 1, 1)
	}
	merge := func(i int, events func([]series.Outcome) ([]healthlab.Event, error)) {
		err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(numbered(i), 1, 1, 1)}, events)
		if err != nil {
			t.Error(err)
		}
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from healthlab.series where part = '0' for update`)
	require.NoError(t, err)

	// Both places are held until all others wait, the one with the lock first of them.
	var all sync.WaitGroup
	var hold [2]chan struct{}
	for i := range hold {
		hold[i] = make(chan struct{})
		held := make(chan struct{})
		var once sync.Once // a closure may run twice
		all.Go(func() {
			merge(others+i, func([]series.Outcome) ([]healthlab.Event, error) {
				once.Do(func() { close(held) })
				<-hold[i]
				return nil, nil
			})
		})
		<-held
	}
	for i := range others {
		all.Go(func() { merge(i, nil) })
		require.Eventually(t, func() bool { return postgres.Waiting(s) == i+1 }, 10*time.Second, time.Millisecond)
	}
	close(hold[0])
	require.Eventually(t, func() bool { return postgres.Waiting(s) < others }, 10*time.Second, time.Millisecond)
	close(hold[1])
	require.Eventually(t, func() bool { return postgres.Waiting(s) == 0 }, 10*time.Second, time.Millisecond)
	merge(others+2, nil)
	require.NoError(t, tx.Rollback(t.Context()))
	all.Wait()
	consistent(t, pool)
}
