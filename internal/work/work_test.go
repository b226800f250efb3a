package work_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// queue is a store of jobs that are due. Inside a synctest bubble its clock is the
// bubble's.
type queue struct {
	mu     sync.Mutex
	jobs   []int
	fail   error
	claims []time.Time // when Claim was called
	asked  []int       // for how many
}

func (q *queue) claim(_ context.Context, n int) ([]int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims, q.asked = append(q.claims, time.Now()), append(q.asked, n)
	if q.fail != nil {
		return nil, q.fail
	}
	n = min(n, len(q.jobs))
	got := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	return got, nil
}

func (q *queue) set(jobs int, fail error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range jobs {
		q.jobs = append(q.jobs, i)
	}
	q.fail = fail
}

func (q *queue) seen() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.claims)
}

// start runs the loop in the bubble and returns what stops it and waits for its end.
func start[J any](t *testing.T, l *work.Loop[J]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestRun_requiresClaimAndDo(t *testing.T) {
	claim := func(context.Context, int) ([]int, error) { return nil, nil }
	do := func(context.Context, int) error { return nil }
	require.ErrorIs(t, (&work.Loop[int]{Name: "x", Do: do}).Run(t.Context()), healthlab.Invalid)
	require.ErrorIs(t, (&work.Loop[int]{Name: "x", Claim: claim}).Run(t.Context()), healthlab.Invalid)
}

func TestRun_workersBoundConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		q.set(20, nil)
		var running, most, done atomic.Int32
		var last atomic.Int64 // when the last job ended
		begin := time.Now()
		stop := start(t, &work.Loop[int]{Claim: q.claim, Workers: 3, Do: func(context.Context, int) error {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			time.Sleep(time.Minute) // the bubble's minute
			done.Add(1)
			last.Store(time.Now().UnixNano())
			return nil
		}})
		time.Sleep(time.Hour)
		stop()
		require.EqualValues(t, 20, done.Load())
		require.EqualValues(t, 3, most.Load())
		require.Equal(t, 3, q.asked[0])
		for i, n := range q.asked {
			require.LessOrEqual(t, n, 3)
			require.GreaterOrEqual(t, n, 1, "claim %d", i)
		}
		// No slot is idle while there is work: six full rounds and one of two jobs.
		require.Equal(t, 7*time.Minute, time.Unix(0, last.Load()).Sub(begin))
	})
}

func TestRun_extraJobsOfAClaimAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first sync.Once
		var done atomic.Int32
		stop := start(t, &work.Loop[int]{
			Workers: 2,
			Claim: func(_ context.Context, n int) (jobs []int, err error) {
				first.Do(func() { jobs = make([]int, n+5) })
				return jobs, nil
			},
			Do: func(context.Context, int) error { done.Add(1); return nil },
		})
		time.Sleep(time.Minute)
		stop()
		require.EqualValues(t, 2, done.Load())
	})
}

func TestRun_idlePollingIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		stop := start(t, &work.Loop[int]{Claim: q.claim, Do: func(context.Context, int) error { return nil },
			Idle: 8 * time.Second})
		time.Sleep(10 * time.Minute)
		stop()
		require.Greater(t, len(q.claims), 50)
		gaps := map[time.Duration]bool{}
		for i := range len(q.claims) - 1 {
			gap := q.claims[i+1].Sub(q.claims[i])
			require.GreaterOrEqual(t, gap, 6*time.Second)
			require.LessOrEqual(t, gap, 10*time.Second)
			gaps[gap] = true
		}
		require.Greater(t, len(gaps), 10, "processes that started together must drift apart")
	})
}

func TestRun_defaultIdleIsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		stop := start(t, &work.Loop[int]{Claim: q.claim, Do: func(context.Context, int) error { return nil }})
		time.Sleep(1000 * time.Second)
		stop()
		require.InDelta(t, 1000, len(q.claims), 250)
	})
}

func TestRun_wakeClaimsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		wake := make(chan struct{}, 1)
		did := make(chan time.Time, 9)
		stop := start(t, &work.Loop[int]{Claim: q.claim, Idle: time.Hour, Wake: wake,
			Do: func(context.Context, int) error { did <- time.Now(); return nil }})
		require.Equal(t, 1, q.seen())
		time.Sleep(time.Second)
		q.set(1, nil)
		wake <- struct{}{}
		require.Equal(t, time.Now(), <-did)
		stop()
	})
}

func TestRun_claimErrorIsLoggedWithoutValuesAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		q := new(queue)
		q.set(0, fmt.Errorf("read 'planted': %w", healthlab.Unavailable))
		var done atomic.Int32
		wake := make(chan struct{}, 1)
		stop := start(t, &work.Loop[int]{Name: "pulls", Claim: q.claim, Wake: wake,
			Log: slog.New(slog.NewTextHandler(&logs, nil)),
			Do:  func(context.Context, int) error { done.Add(1); return nil }})
		wake <- struct{}{} // a store that is away is not asked sooner for it
		time.Sleep(5 * time.Minute)
		n := q.seen()
		for i, ms := range []int64{200, 400, 800, 1500, 1500, 1500, 1500, 1500} {
			want := time.Duration(ms) * time.Millisecond
			gap := q.claims[i+1].Sub(q.claims[i])
			require.InDelta(t, want, gap, float64(want)/4, "pause %d", i)
		}
		require.Less(t, n, 300)
		require.Equal(t, bits.Len(uint(n)), strings.Count(logs.String(), "times="), "it logs the failures 1, 2, 4, …")

		q.set(3, nil) // it is back
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 3, done.Load())

		q.set(0, healthlab.Unavailable) // and away again: the pauses begin anew
		time.Sleep(2 * time.Second)
		require.Greater(t, q.seen(), n+3)
		stop()
		require.Contains(t, logs.String(), `work=pulls kind=unavailable cause="read …: unavailable" times=1`)
		require.NotContains(t, logs.String(), "planted")
	})
}

func TestRun_panicEndsOnlyItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		q := new(queue)
		q.set(5, nil)
		var done atomic.Int32
		var mu sync.Mutex
		outcomes := map[string]int{}
		stop := start(t, &work.Loop[int]{
			Name: "parsing", Claim: q.claim, Workers: 1, // a slot that a panic kept would stop it all
			Log: slog.New(slog.NewTextHandler(&logs, nil)),
			Do: func(_ context.Context, job int) error {
				time.Sleep(time.Second)
				switch job {
				case 1:
					panic("planted value")
				case 2:
					return fmt.Errorf("read 'planted': %w", healthlab.Conflict)
				}
				done.Add(1)
				return nil
			},
			Observe: func(name string, took time.Duration, err error) {
				mu.Lock()
				defer mu.Unlock()
				outcomes[fmt.Sprintf("%s %s %v", name, took, err)]++
			},
		})
		time.Sleep(time.Minute)
		stop()
		require.EqualValues(t, 3, done.Load())
		require.Equal(t, map[string]int{
			"parsing 1s <nil>":                    3,
			"parsing 1s panic in parsing":         1,
			"parsing 1s read 'planted': conflict": 1,
		}, outcomes)
		require.Contains(t, logs.String(), `msg="job failed" work=parsing panic=string at="[`)
		require.Contains(t, logs.String(), "work_test.go:")
		require.Contains(t, logs.String(), `kind="unknown fault" cause="panic in parsing"`)
		require.Contains(t, logs.String(), `msg="job failed" work=parsing kind=conflict cause="read …: conflict"`)
		require.NotContains(t, logs.String(), "planted")
	})
}

func TestStop_waitsForRunningJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		q.set(9, nil)
		var done, cut atomic.Int32
		stop := start(t, &work.Loop[int]{Claim: q.claim, Workers: 2, Drain: time.Minute,
			Do: func(ctx context.Context, _ int) error {
				select {
				case <-time.After(30 * time.Second):
					done.Add(1)
				case <-ctx.Done():
					cut.Add(1)
				}
				return ctx.Err()
			}})
		begin := time.Now()
		stop()
		require.Equal(t, 30*time.Second, time.Since(begin))
		require.EqualValues(t, 2, done.Load())
		require.Zero(t, cut.Load())
		require.Equal(t, 1, q.seen(), "nothing new is claimed after the end")
	})
}

func TestStop_cancelsLongJobsAfterDrain(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		q := new(queue)
		q.set(2, nil)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		var cut, ended atomic.Int32
		l := &work.Loop[int]{Claim: q.claim, Log: slog.New(slog.NewTextHandler(&logs, nil)),
			Do: func(ctx context.Context, job int) error {
				defer ended.Add(1)
				if job == 1 {
					time.Sleep(25 * time.Second) // longer than the default of 20 s, and deaf
					return nil
				}
				<-ctx.Done()
				if ctx.Value(key{}) == "kept" && errors.Is(ctx.Err(), context.Canceled) {
					cut.Add(1)
				}
				return ctx.Err()
			}}
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		require.NoError(t, l.Run(ctx))
		require.Equal(t, 25*time.Second, time.Since(begin), "Run waits for every job")
		require.EqualValues(t, 2, ended.Load())
		require.EqualValues(t, 1, cut.Load())
		require.Empty(t, logs.String(), "a job that was cut off is no failure")
	})
}

func TestStop_whileEverySlotIsBusyEndsAfterDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		q.set(1, nil)
		stop := start(t, &work.Loop[int]{Claim: q.claim, Workers: 1,
			Do: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, Drain: 3 * time.Second})
		begin := time.Now()
		stop()
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

func TestRun_stoppedBeforeItsStartClaimsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := new(queue)
	q.set(1, nil)
	require.NoError(t, (&work.Loop[int]{Claim: q.claim, Do: func(context.Context, int) error { return nil }}).Run(ctx))
	require.Zero(t, q.seen())
}

func TestOnce_runsEachClaimedJob(t *testing.T) {
	broken := errors.New("broken")
	var done []int
	loop := work.Loop[int]{
		Name: "numbers",
		Claim: func(_ context.Context, n int) ([]int, error) {
			if n == 0 {
				return nil, broken
			}
			return []int{1, 2, 3}[:n], nil
		},
		Do: func(_ context.Context, job int) error {
			done = append(done, job)
			if job == 1 {
				return broken
			}
			return nil
		},
	}
	n, err := loop.Once(t.Context(), 2)
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []int{1, 2}, done, "one that fails does not keep others from being done")
	n, err = loop.Once(t.Context(), 0)
	require.Zero(t, n)
	require.EqualError(t, err, "claim numbers: broken")
}

// letter is a job that says in logs which it is.
type letter int

func (l letter) LogValue() slog.Value { return slog.GroupValue(slog.Int("letter", int(l))) }

// A failed job is logged with what names it: the first failure of a kind at WARN. A job whose
// context ended did not fail.
func TestRun_failedJobIsLoggedWithItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		next := letter(0)
		stop := start(t, &work.Loop[letter]{
			Name: "letters", Workers: 1, Log: slog.New(slog.NewTextHandler(&logs, nil)),
			Claim: func(context.Context, int) ([]letter, error) {
				if next == 4 {
					return nil, nil
				}
				next++
				return []letter{next}, nil
			},
			Do: func(_ context.Context, l letter) error {
				return []error{nil, fmt.Errorf("post: %w", healthlab.Unavailable), fmt.Errorf("post: %w", healthlab.Unavailable), fmt.Errorf("post: %w", context.Canceled), healthlab.Invalid}[l]
			},
		})
		time.Sleep(time.Minute)
		stop()
		var got []string
		for line := range strings.Lines(logs.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
			got = append(got, line)
		}
		require.Equal(t, []string{
			`level=WARN msg="job failed" work=letters job.letter=1 kind=unavailable cause="post: unavailable"`,
			`level=INFO msg="job failed" work=letters job.letter=2 kind=unavailable cause="post: unavailable"`,
			`level=WARN msg="job failed" work=letters job.letter=4 kind=invalid cause=invalid`,
		}, got)
	})
}
