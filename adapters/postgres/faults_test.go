package postgres_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

func read(ctx context.Context, s *postgres.Store, u healthdata.User) error {
	_, err := s.Users().Get(ctx, u.Team, u.ID)
	return err
}

// state is all rows of all tables.
func state(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	filled := `and pg_relation_size(c.oid) > 0`
	if pgtest.Spread() { // the rows are in shards
		filled = `and not relispartition`
	}
	all := texts(t, pool, `select format('select %L || whole::text from healthlab.%I whole',
		coalesce(pg_partition_root(c.oid), c.oid)::regclass::text || ' ', relname) from`+ourTables+filled)
	if len(all) == 0 {
		return nil
	}
	return texts(t, pool, strings.Join(all, ` union all `)+` order by 1`)
}

// configured returns connections with settings of the server's.
func configured(t *testing.T, address string, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	require.NoError(t, err)
	for name, value := range settings {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// bounded makes a call that must end by itself.
func bounded(t *testing.T, s *postgres.Store, call write) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := call(ctx, s)
	require.NoError(t, ctx.Err(), "it ended by itself")
	return err
}

// A server that only reads, as a replica does: reads work, writes are Unavailable.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	good := pgtest.Connect(t, address)
	pool := configured(t, address, map[string]string{"default_transaction_read_only": "on"})
	s := postgres.New(pool, nil)
	eachWrite(t, postgres.New(good, nil), func(what string, w write) {
		before := state(t, good)
		require.ErrorIs(t, bounded(t, s, w), healthlab.Unavailable, what)
		require.Equal(t, before, state(t, good), what)
	})
	u := newPerson(t, postgres.New(good, nil))
	require.NoError(t, read(t.Context(), s, u))
	requireIdle(t, pool)
}

// A lock that another transaction holds too long ends the call by the server's timeouts.
func TestTimeoutsOfTheServer(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	good := pgtest.Connect(t, address)
	all := `lock table healthlab.` + strings.Join(texts(t, good, `select relname from`+ourTables), `, healthlab.`) + ` in exclusive mode`
	slow := map[string]*pgxpool.Pool{}
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		slow[setting] = configured(t, address, map[string]string{setting: "5ms"})
	}
	eachWrite(t, postgres.New(good, nil), func(what string, w write) {
		before := state(t, good)
		tx, err := good.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), all)
		require.NoError(t, err)
		for setting, pool := range slow {
			require.ErrorIs(t, bounded(t, postgres.New(pool, nil), w), healthlab.Unavailable, "%s: %s", setting, what)
		}
		require.NoError(t, tx.Rollback(t.Context()))
		require.Equal(t, before, state(t, good), what)
	})
	for _, pool := range slow {
		requireIdle(t, pool)
	}
}

// arm makes every statement that changes rows of a table ask whether it may.
func arm(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		create sequence public.statement;
		create table public.raising (code text, first int, last int);
		create function public.raise_it() returns trigger language plpgsql as $$
		declare
			n bigint := nextval('public.statement');
			r public.raising;
		begin
			select * into r from public.raising;
			if n between r.first and r.last and r.code = 'lost' then
				perform pg_terminate_backend(pg_backend_pid());
				perform pg_sleep(1);
			elsif n between r.first and r.last then
				raise exception 'value of a person' using errcode = r.code;
			end if;
			return null;
		end $$;`)
	require.NoError(t, err)
	armed := `select relname from` + ourTables + `and not relispartition`
	if pgtest.Spread() { // a table that is spread has no triggers
		armed += ` and c.oid not in (select logicalrelid from pg_dist_partition where partmethod = 'h')`
	}
	for _, table := range texts(t, pool, armed) {
		_, err := pool.Exec(t.Context(), `create trigger raise_it after insert or update or delete on healthlab.`+table+
			` for each statement execute function public.raise_it()`)
		require.NoError(t, err)
	}
}

// everyStatement is 1 where faults hit each statement of a write; a plain go test takes every third.
var everyStatement = prove.Counts(3, 1, 1)

// always is behind the last statement of any write.
const always = 1 << 30

// raising makes the statements from a first to a last one, counted from now on, raise an
// error, or lose their connection.
func raising(t *testing.T, pool *pgxpool.Pool, code string, first, last int) {
	t.Helper()
	b := &pgx.Batch{}
	b.Queue(`select setval('public.statement', 1, false)`)
	b.Queue(`delete from public.raising`)
	b.Queue(`insert into public.raising values ($1, $2, $3)`, code, first, last)
	require.NoError(t, pool.SendBatch(t.Context(), b).Close())
}

// others are the sessions of other connections to a database.
const others = ` pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() `

// awaitNone asks until there is no row.
func awaitNone(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	for len(texts(t, pool, sql)) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Errors inside a write: contention is tried again, and the write succeeds or is Unavailable;
// other errors are returned. No partial write is left, and no error quotes a value.
func TestErrorsInside(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, good := pgtest.Connect(t, address), pgtest.Connect(t, address)
	s := postgres.Hurried(postgres.New(pool, nil))
	arm(t, good)
	kinds := map[string]healthlab.Kind{
		"40001": healthlab.Unavailable,
		"53100": healthlab.Unavailable, // disk full
		"53200": healthlab.Unavailable, // out of memory
		"58030": healthlab.Unavailable, // the disk fails
		"lost":  healthlab.Unavailable,
		"22003": healthlab.Invalid,
		"XX000": healthlab.Unknown,
	}
	calm := func() { raising(t, good, "", 0, -1) }
	eachWrite(t, s, func(what string, w write) {
		before := state(t, good)
		failing := func(code string, first int) error {
			raising(t, good, code, first, always)
			err := bounded(t, s, w)
			calm()
			if code == "lost" { // and holds its locks for a moment
				awaitNone(t, good, `select pid::text from`+others+`and state <> 'idle'`)
			}
			if err != nil {
				require.ErrorIs(t, err, kinds[code], "%s: %s from statement %d on", what, code, first)
				require.NotContains(t, err.Error(), "person", what)
			}
			return err
		}
		if pgtest.Spread() && failing("XX000", 1) == nil {
			return // all that it writes is spread
		}
		for code := range kinds {
			// One place maps codes to kinds, so one write tries all of them; the others try those
			// after which a write does something else.
			if !prove.All() && what != "Users.Insert" && !slices.Contains([]string{"40001", "lost", "XX000"}, code) {
				continue
			}
			require.Error(t, failing(code, 1), "%s: %s", what, code)
		}
		require.Equal(t, before, state(t, good), what)
		for n := 2; failing("XX000", n) != nil; n += everyStatement { // its other statements, until it has no more
			require.Equal(t, before, state(t, good), "%s: from statement %d on", what, n)
			require.Less(t, n, 100, what)
		}
		require.NotEqual(t, before, state(t, good), "%s writes something", what)
	})
	requireIdle(t, pool)
}

// Contention that ends is no error, at any statement of a write, and a repeated write stores
// nothing twice.
func TestContentionInside(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, good := pgtest.Connect(t, address), pgtest.Connect(t, address)
	s := postgres.Hurried(postgres.New(pool, nil))
	arm(t, good)
	for i, what := range slices.Sorted(maps.Keys(writes)) {
		// grown runs a write of which one statement fails, and says by how many rows each table grew.
		grown := func(statement int) map[string]int {
			pgtest.Clear(t, good)
			w := writes[what](t, s, newPerson(t, s))
			grown := map[string]int{}
			for _, row := range state(t, good) {
				grown[strings.Fields(row)[0]]--
			}
			raising(t, good, []string{"40001", "40P01"}[statement%2], statement, statement)
			require.NoError(t, bounded(t, s, w), "%s: statement %d", what, statement)
			for _, row := range state(t, good) {
				grown[strings.Fields(row)[0]]++
			}
			return grown
		}
		want := grown(0)
		var statements int
		require.NoError(t, good.QueryRow(t.Context(), `select case when is_called then last_value else 0 end from public.statement`).Scan(&statements))
		for n := 1 + i%min(everyStatement, max(statements, 1)); n <= statements; n += everyStatement {
			require.Equal(t, want, grown(n), "%s: statement %d", what, n)
		}
	}
	requireIdle(t, pool)
}

// The caller does not notice connections that broke while they were idle.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, other := pgtest.Connect(t, address), pgtest.Connect(t, address)
	s := postgres.New(pool, nil)
	lose := func() {
		awaitNone(t, other, `select pg_terminate_backend(pid)::text from`+others)
	}
	eachWrite(t, s, func(what string, w write) {
		lose()
		if err := bounded(t, s, w); err != nil { // a write in one trip may have arrived; it is not repeated
			require.ErrorIs(t, err, healthlab.Unavailable, what)
		}
	})
	u := newPerson(t, s)
	lose()
	require.NoError(t, bounded(t, s, func(ctx context.Context, s *postgres.Store) error { return read(ctx, s, u) }))

	// Lost between the read and the write: the call fails.
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(*healthdata.User) ([]healthlab.Event, error) {
		lose()
		return nil, nil
	})
	require.ErrorIs(t, err, healthlab.Unavailable)
	got, err := s.Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Revision)

	// Lost while a view is open.
	err = s.Data().View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		lose()
		_, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"heartrate"}})
		return err
	})
	require.ErrorIs(t, err, healthlab.Unavailable)
	requireIdle(t, pool)
}

// No server listens.
func TestNoServer(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2")
	require.NoError(t, err)
	defer pool.Close()
	s := postgres.Hurried(postgres.New(pool, nil))
	good := postgres.New(pgtest.Pool(t), nil)
	eachWrite(t, good, func(what string, w write) { require.ErrorIs(t, bounded(t, s, w), healthlab.Unavailable, what) })
	require.ErrorIs(t, read(t.Context(), s, newPerson(t, good)), healthlab.Unavailable)
	require.ErrorIs(t, postgres.Migrate(t.Context(), pool), healthlab.Unavailable)
}

// If all connections are in use, a call waits no longer than its context.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.URL(t)+"&pool_max_conns=1")
	s := postgres.New(pool, nil)
	eachWrite(t, s, func(what string, w write) {
		before := state(t, pool)
		held, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, w(ctx, s), context.DeadlineExceeded, what)
		cancel()
		held.Release()
		require.Equal(t, before, state(t, pool), what)
		require.NoError(t, w(t.Context(), s), what)
	})
	requireIdle(t, pool)
}

// Where the database's own default is stricter, contention is solved by trying again.
func TestSerializableByDefault(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool := configured(t, address, map[string]string{"default_transaction_isolation": "serializable"})
	s := postgres.New(pool, &postgres.Options{Writers: 8})
	u := newPerson(t, s)
	mergeInto(t, s, u, heart, 0, 1, 0)
	errs := make(chan error)
	const callers = 8
	for c := range callers {
		go func() {
			err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, 1+c, 1, 1)}, nil)
			errs <- err
		}()
	}
	failed := 0
	for range callers {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, healthlab.Unavailable)
			failed++
		}
	}
	require.Len(t, readSeries(t, s, u, heart), 1+callers-failed)
	consistent(t, pool)
}

// waiters are the processes that wait for a lock of another one, on all machines.
func waiters() string {
	if pgtest.Spread() {
		return `(select waiting_gpid as pid from citus_lock_waits) w`
	}
	return `pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
}

// An append whose context ends gives up its connection and is not sent twice. An append whose
// prepared statement is gone prepares it again.
func TestAppendFaults(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool, other := pgtest.Connect(t, address+"&pool_max_conns=1"), pgtest.Connect(t, address)
	s := postgres.New(pool, nil)
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
	// stuck writes while another transaction has locked the row, until end or, where end is nil, the context ends it.
	stuck := func(ctx context.Context, end func()) error {
		tx, err := other.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
		_, err = tx.Exec(t.Context(), `select from healthlab.series where user_id = $1 for update`, u.ID.UUID)
		require.NoError(t, err)
		failed := make(chan error)
		go func() { failed <- write(ctx) }()
		if end != nil {
			eventually(t, 20*time.Second, func() bool {
				return len(texts(t, other, `select '' from `+waiters())) > 0
			})
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
		_, err := other.Exec(t.Context(), `select pg_terminate_backend(pid) from `+waiters())
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
