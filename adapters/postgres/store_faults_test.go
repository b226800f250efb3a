package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// endSessions ends all other sessions of a database.
const endSessions = `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

// change puts the row of a key with another document, and a new row.
func change(ctx context.Context, s store.Store, k store.Key) error {
	return s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.Query{Key: k}.Hold())
		if err != nil {
			return err
		}
		tx.Put(got[0]...)
		r := plainRow(k.Team, "beside "+uuid.NewString())
		tx.Put(r)
		return nil
	})
}

// idle requires that all connections of a pool were given back and that none is in a transaction.
func idle(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.Zero(t, pool.Stat().AcquiredConns())
	var open int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'`).Scan(&open))
	require.Zero(t, open)
}

// Errors of the server have the kind that says what a caller can do, and quote no value. An update that
// lost against another one is run again.
func TestStore_serverErrorsHaveKindsAndQuoteNoValue(t *testing.T) {
	t.Parallel()
	address := pgtest.Fresh(t)
	good := pgtest.Connect(t, address)
	_, err := good.Exec(t.Context(), `
		create sequence public.hit;
		create table public.raising (code text, most int);
		create function public.raise_it() returns trigger language plpgsql as $$
		declare r public.raising;
		begin
			select * into r from public.raising;
			if r.code = 'lost' then
				perform pg_terminate_backend(pg_backend_pid()), pg_sleep(1);
			elsif nextval('public.hit') <= r.most then
				raise exception 'value of a person' using errcode = r.code;
			end if;
			return null;
		end $$;
		create trigger raise_it after insert or update on `+rowSchema+`.plain for each statement execute function public.raise_it()`)
	require.NoError(t, err)
	pool := pgtest.Connect(t, address)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	raise := func(code string, most int) {
		_, err := good.Exec(t.Context(), `delete from public.raising`)
		require.NoError(t, err)
		_, err = good.Exec(t.Context(), `insert into public.raising select $1, $2 from setval('public.hit', 1, false)`, code, most)
		require.NoError(t, err)
	}
	team := anyTeam()
	raise("", 0)
	require.NoError(t, put(t.Context(), e, plainRow(team, "row")))
	for code, kind := range map[string]healthlab.ErrorKind{
		"40001": healthlab.Unavailable, "40P01": healthlab.Unavailable, "53100": healthlab.Unavailable, "53200": healthlab.Unavailable,
		"58030": healthlab.Unavailable, "57014": healthlab.Unavailable, "25006": healthlab.Unavailable, "lost": healthlab.Unavailable,
		"22003": healthlab.Invalid, "XX000": healthlab.Unknown,
	} {
		raise(code, 1000)
		err := change(t.Context(), e, plainRow(team, "row").Key)
		require.ErrorIs(t, err, kind, code)
		require.NotContains(t, err.Error(), "person", code)
	}
	raise("", 0)
	require.Equal(t, []string{"row"}, idsOf(t.Context(), t, e, "plain", team), "no part of a failed update is stored")
	for _, code := range []string{"40001", "40P01"} {
		raise(code, 2)
		require.NoError(t, change(t.Context(), e, plainRow(team, "row").Key), code)
	}
	idle(t, good)
}

// A server that only reads, and timeouts of statements and locks, are Unavailable; reads go on.
func TestStore_readOnlyServerAndTimeoutsAreUnavailable(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	good := openEngine(t, pgtest.Connect(t, address), storetest.Tables(), postgres.Options{})
	k := plainRow(anyTeam(), "row").Key
	require.NoError(t, put(t.Context(), good, plainRow(k.Team, k.ID)))
	limited := func(setting, value string) *postgres.Store {
		return openEngine(t, poolWith(t, address, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[setting] = value }),
			storetest.Tables(), postgres.Options{Now: time.Now})
	}
	readOnly := limited("default_transaction_read_only", "on")
	require.ErrorIs(t, change(t.Context(), readOnly, k), healthlab.Unavailable)
	require.Equal(t, []string{"row"}, idsOf(t.Context(), t, readOnly, "plain", k.Team))
	slow := []*postgres.Store{limited("statement_timeout", "200ms"), limited("lock_timeout", "200ms")}
	require.NoError(t, good.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Read(store.Query{Key: k}.Hold()); err != nil {
			return err
		}
		for _, s := range slow {
			require.ErrorIs(t, change(t.Context(), s, k), healthlab.Unavailable)
		}
		waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, change(waits, openEngine(t, pgtest.Connect(t, address), storetest.Tables(), postgres.Options{}), k), context.DeadlineExceeded)
		return ctx.Err()
	}))
	require.NoError(t, change(t.Context(), good, k))
}

// An update whose connection breaks before its commit is run again; if it is unknown whether the
// commit arrived, it is Unavailable. A server that is not there is Unavailable.
func TestStore_lostConnectionIsRetriedOrUnavailable(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, other := pgtest.Connect(t, address), pgtest.Connect(t, address)
	e := openEngine(t, pool, storetest.Tables(), postgres.Options{})
	lose := func() {
		_, err := other.Exec(t.Context(), endSessions)
		require.NoError(t, err)
	}
	k := plainRow(anyTeam(), "row").Key
	require.NoError(t, put(t.Context(), e, plainRow(k.Team, k.ID)))
	lose()
	require.Equal(t, []string{"row"}, idsOf(t.Context(), t, e, "plain", k.Team))
	lose()
	require.NoError(t, change(t.Context(), e, k))

	runs := 0
	update := func(between, before func()) error {
		return e.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			runs++
			if _, err := tx.Read(store.User(k.Team, healthlab.UserID{UUID: uuid.New()})); err != nil {
				return err
			}
			if runs == 1 {
				between()
			}
			got, err := tx.Read(store.Query{Key: k}.Hold())
			if err != nil {
				return fmt.Errorf("wrapped: %w", err)
			}
			if runs == 1 {
				before()
			}
			tx.Put(got[0]...)
			return nil
		})
	}
	require.NoError(t, update(lose, func() {}))
	require.Equal(t, 2, runs)
	runs = 0
	want := int64(4)
	if err := update(func() {}, lose); err != nil { // unless the driver notices before it sends anything
		require.ErrorIs(t, err, healthlab.Unavailable)
		require.Equal(t, 1, runs)
		want--
	}
	got, err := e.Read(t.Context(), store.Query{Key: k})
	require.NoError(t, err)
	require.Equal(t, want, got[0][0].Revision)

	nowhere := poolWith(t, "postgres://nobody@127.0.0.1:1/none?connect_timeout=2", func(*pgxpool.Config) {})
	_, err = postgres.New(t.Context(), nowhere, storetest.Tables(), nil)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.ErrorIs(t, postgres.Migrate(t.Context(), nowhere, storetest.Tables(), nil), healthlab.Unavailable)
}

// engineWriterEnv has the address of the database of a process that TestStore_killedProcessLosesNoAcknowledgedRow
// starts and kills.
const engineWriterEnv = "HEALTHLABTEST_ENGINE_WRITER"

func newPair(team healthlab.TeamID) [2]store.Row {
	id := uuid.NewString()
	return [2]store.Row{plainRow(team, id), uniqueRow(team, id, id)}
}

// writePairs puts pairs from eight goroutines until each of them failed, and calls answered with the id
// of each pair after its commit.
func writePairs(ctx context.Context, s store.Store, answered func(id string)) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				rows := newPair(healthlab.TeamID{})
				if put(ctx, s, rows[:]...) != nil {
					return
				}
				answered(rows[0].ID)
			}
		})
	}
	all.Wait()
}

// whole requires that all answered pairs are stored, and no half of a pair.
func whole(t *testing.T, s store.Store, answered map[string]bool) {
	t.Helper()
	first, second := idsOf(t.Context(), t, s, "plain", healthlab.TeamID{}), idsOf(t.Context(), t, s, "unique_first", healthlab.TeamID{})
	require.Equal(t, first, second)
	stored := map[string]bool{}
	for _, id := range first {
		stored[id] = true
	}
	require.NotEmpty(t, answered)
	for id := range answered {
		require.True(t, stored[id], "an answered row is lost")
	}
}

// Whatever a killed process had answered is stored.
func TestStore_killedProcessLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	if address := os.Getenv(engineWriterEnv); address != "" {
		pool, err := pgxpool.New(t.Context(), address)
		require.NoError(t, err)
		var out sync.Mutex
		writePairs(t.Context(), openEngine(t, pool, storetest.Tables(), postgres.Options{}), func(id string) {
			out.Lock()
			defer out.Unlock()
			fmt.Println("stored " + id)
		})
		return
	}
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	answered := map[string]bool{}
	self, err := os.Executable()
	require.NoError(t, err)
	for range prove.Counts(2, 10, 40) {
		cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestStore_killedProcessLosesNoAcknowledgedRow$")
		cmd.Env = append(os.Environ(), engineWriterEnv+"="+address)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "stored "); ok && len(id) == 36 {
				answered[id] = true
			}
			if n == 100 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
		_, err = pool.Exec(t.Context(), endSessions) // what the server still does for it ends
		require.NoError(t, err)
		whole(t, openEngine(t, pool, storetest.Tables(), postgres.Options{}), answered)
	}
}

// Whatever was answered before the server ended sessions, or crashed, is stored.
func TestStore_crashedServerLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) != "" {
		t.Skip("the server of " + pgtest.Env + " is not ours to crash")
	}
	pgtest.URL(t) // skips where there is none
	server, err := pgtest.Start(t.Context(), pgtest.Durable)
	require.NoError(t, err)
	defer server.Remove()
	pool := pgtest.Connect(t, server.URL("postgres"))
	require.NoError(t, postgres.Migrate(t.Context(), pool, storetest.Tables(), nil))
	e, err := postgres.New(t.Context(), pool, storetest.Tables(), nil)
	require.NoError(t, err)
	answered := map[string]bool{}
	until := func(n int, end func()) {
		var mu sync.Mutex
		var once sync.Once
		count := 0
		writePairs(t.Context(), e, func(id string) {
			mu.Lock()
			defer mu.Unlock()
			answered[id] = true
			if count++; count >= n {
				once.Do(func() { go end() })
			}
		})
		once.Do(func() {}) // end was called
	}
	for range prove.Counts(2, 10, 40) {
		ctx, cancel := context.WithCancel(t.Context())
		until(100, func() { // sessions end until the last writer has failed
			for ctx.Err() == nil {
				_, _ = pool.Exec(ctx, endSessions)
			}
		})
		cancel()
		whole(t, e, answered)
		until(100, server.Crash)
		server.Crash() // waits until it is down
		require.NoError(t, server.Up(t.Context()))
		whole(t, e, answered)
	}
}
