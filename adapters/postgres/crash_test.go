package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

const (
	crashUser = "HEALTHLABTEST_CRASH_USER"
	crashTeam = "HEALTHLABTEST_CRASH_TEAM"
	// crashWriters write side by side, more than are let through at once, so that some
	// are gathered. A write is of crashBatch samples, or a record.
	crashWriters = 6
	crashBatch   = 3
)

func init() { postgres.Children["writer"] = crashChild }

// crashChild writes for a user and prints the number of each write that was answered,
// until it is killed.
func crashChild(address string) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		panic(err)
	}
	u := healthdata.User{
		ID:   healthlab.UserID{UUID: uuid.MustParse(os.Getenv(crashUser))},
		Team: healthlab.TeamID{UUID: uuid.MustParse(os.Getenv(crashTeam))},
	}
	var mu sync.Mutex
	writeUntilFault(ctx, postgres.New(pool, &postgres.Options{Writers: 2}), u, func(n int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(n)
	})
}

// writeUntilFault writes for a user, each write with its event, and calls answered
// after each that was.
func writeUntilFault(ctx context.Context, s *postgres.Store, u healthdata.User, answered func(n int)) {
	var all sync.WaitGroup
	for w := range crashWriters {
		all.Go(func() {
			for i := 0; ; i++ {
				n := i*crashWriters + w
				if writeNumbered(ctx, s, u, n) != nil {
					return
				}
				answered(n)
			}
		})
	}
	all.Wait()
}

// writeNumbered makes write n of a user: now a record, now samples ahead of all others,
// now samples behind them.
func writeNumbered(ctx context.Context, s *postgres.Store, u healthdata.User, n int) error {
	e := event(u, "k")
	e.Data = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
	if n%5 == 0 {
		return s.Data().PutRecords(ctx, u.Team, u.ID, []healthdata.Record{{
			Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Offset: n, Doc: []byte(`{}`),
			CreatedAt: noon.Time, UpdatedAt: noon.Time,
		}}, func([]healthdata.PutResult) ([]healthlab.Event, error) { return []healthlab.Event{e}, nil })
	}
	at := n * crashBatch
	if n%5 == 1 {
		at = -at
	}
	return s.Data().MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, crashBatch, float64(n))},
		func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{e}, nil })
}

// requireWhole requires that every write that was answered is there, and that each that
// is there is there in whole, with its event.
func requireWhole(t *testing.T, pool *pgxpool.Pool, u healthdata.User, answered []int) {
	t.Helper()
	s := postgres.New(pool, nil)
	parts := map[int]int{}
	for _, sm := range readSeries(t, s, u, heart) {
		parts[int(sm.Value)]++
	}
	var there []int
	for n, count := range parts {
		require.Equal(t, crashBatch, count, "all samples of a write, or none")
		there = append(there, n)
	}
	there = append(there, numbers(t, pool, `select utc_offset from healthlab.record where user_id = $1`, u)...)
	slices.Sort(there)
	events := numbers(t, pool, `
		select (convert_from(e.body, 'UTF8')::json -> 'data' ->> 'n')::int from healthlab.webhook_event e
		join healthlab.webhook_pending p on p.event_id = e.id and p.team_id = e.team_id where e.user_id = $1 order by 1`, u)
	require.Equal(t, there, events, "the event of every write, and no other")
	seqs := numbers(t, pool, `select seq from healthlab.webhook_event where user_id = $1 order by 1`, u)
	for i, seq := range seqs {
		require.Equal(t, i+1, seq, "no number twice, none left out")
	}
	for _, n := range answered {
		_, found := slices.BinarySearch(there, n)
		require.True(t, found, "an answered write is there")
	}
}

func numbers(t *testing.T, pool *pgxpool.Pool, sql string, u healthdata.User) []int {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, u.ID.UUID)
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	return out
}

// A process is killed in the middle of its writes.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	for range prove.Counts(3, 20, 200) {
		u := newPerson(t, postgres.New(pool, nil))
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), postgres.Child+"=writer", postgres.ChildAddress+"="+address, crashUser+"="+u.ID.String(), crashTeam+"="+u.Team.String())
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		var answered []int
		lines := bufio.NewScanner(out)
		for until := 1 + rand.IntN(60); lines.Scan(); {
			var n int
			_, err := fmt.Sscan(lines.Text(), &n)
			require.NoError(t, err)
			if answered = append(answered, n); len(answered) == until {
				require.NoError(t, child.Process.Kill())
			}
		}
		require.Error(t, child.Wait(), "it was killed")
		require.NotEmpty(t, answered)
		// What the server was still doing for the child ends first.
		for len(texts(t, pool, `select pid::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and state <> 'idle'`)) > 0 {
		}
		requireWhole(t, pool, u, answered)
	}
	consistent(t, pool) // of every round, after its last write
}

// The server is stopped at once in the middle of writes, and comes back.
func TestCrashedServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) != "" {
		t.Skip("the server of " + pgtest.Env + " is not ours to crash")
	}
	pgtest.URL(t) // skips where there is none
	server, err := pgtest.Start(t.Context(), pgtest.Durable)
	require.NoError(t, err)
	defer server.Remove()
	pool := pgtest.Connect(t, server.URL("postgres"))
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	s := postgres.New(pool, &postgres.Options{Writers: 2})
	for range prove.Counts(3, 20, 200) {
		u := newPerson(t, s)
		var mu sync.Mutex
		var answered []int
		until := 1 + rand.IntN(60)
		var crash sync.Once
		writeUntilFault(t.Context(), s, u, func(n int) {
			mu.Lock()
			answered = append(answered, n)
			enough := len(answered) >= until
			mu.Unlock()
			if enough {
				crash.Do(func() { go server.Crash() })
			}
		})
		crash.Do(func() {}) // it happened
		server.Crash()      // waits until it is down
		require.NoError(t, server.Up(t.Context()))
		requireWhole(t, pool, u, answered)
		requireIdle(t, pool)
	}
	consistent(t, pool) // of every round
}
