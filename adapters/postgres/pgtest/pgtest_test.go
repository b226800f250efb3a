package pgtest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `create table note (n int primary key); create table seed (word text);
			insert into seed values ('kept'); create sequence counter;
			create function twice(n int) returns int language sql as 'select 2 * n'`)
		return err
	}))
}

func TestPool_everyTestGetsItsOwnDatabase(t *testing.T) {
	for range 2 {
		pool := pgtest.Pool(t)
		_, err := pool.Exec(t.Context(), "insert into note values (1)")
		require.NoError(t, err)
	}
}

// A database serves again, empty, after a test that wrote rows, and never after one that
// changed anything else but the body of a function.
func TestPool_reusesADatabaseWhoseSchemaIsUnchanged(t *testing.T) {
	use := func(t *testing.T, sql ...string) (oid uint32) {
		t.Run("use", func(t *testing.T) {
			pool := pgtest.Pool(t)
			require.NoError(t, pool.QueryRow(t.Context(), "select oid from pg_database where datname = current_database()").Scan(&oid))
			var rows, next int
			require.NoError(t, pool.QueryRow(t.Context(), "select (select count(*) from note), nextval('counter')").Scan(&rows, &next))
			require.Equal(t, []int{0, 1}, []int{rows, next})
			var four int
			require.NoError(t, pool.QueryRow(t.Context(), "select twice(2)").Scan(&four))
			require.Equal(t, 4, four)
			var seed string
			require.NoError(t, pool.QueryRow(t.Context(), "select string_agg(word, ',') from seed").Scan(&seed))
			require.Equal(t, "kept", seed)
			for _, s := range sql {
				_, err := pool.Exec(t.Context(), s)
				require.NoError(t, err)
			}
			// A session that the test forgets goes with it.
			forgotten, err := pgx.ConnectConfig(context.Background(), pool.Config().ConnConfig)
			require.NoError(t, err)
			_, err = forgotten.Exec(context.Background(), "begin; lock table note in share mode")
			require.NoError(t, err)
		})
		return oid
	}
	first := use(t, "insert into note values (1), (2)", "select nextval('counter')")
	require.Equal(t, first, use(t, "analyze", "vacuum"), "only rows were written")
	require.Equal(t, first, use(t, "create or replace function twice(n int) returns int language sql as 'select 7'"))
	require.Equal(t, first, use(t), "the function is put back")
	for _, change := range []string{
		"alter table note add column m int",
		"create table more (n int primary key)",
		"create index on note (n, n)",
		"create function thrice(n int) returns int language sql as 'select 3 * n'",
		"drop function twice; create function twice(n int) returns int language sql as 'select 2 * n'",
		"grant execute on function twice to public",
		"grant select on note to public",
		"comment on table note is 'seen'; alter table note enable row level security",
		"update seed set word = 'other'",
		"insert into seed values ('more')",
		"do $$ begin execute 'alter database ' || current_database() || ' set work_mem = 100'; end $$",
	} {
		changed := use(t, change)
		require.NotEqual(t, changed, use(t), change)
	}
}

func TestEmpty_hasNoTables(t *testing.T) {
	pool := pgtest.Connect(t, pgtest.Empty(t))
	_, err := pool.Exec(t.Context(), "create table note (n int)")
	require.NoError(t, err, "the migration was not applied")
}

func TestCopy_containsTheRowsOfTheOriginal(t *testing.T) {
	first := pgtest.Empty(t)
	conn, err := pgx.Connect(t.Context(), first)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "create table note as select 7 n")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	var n int
	require.NoError(t, pgtest.Connect(t, pgtest.Copy(t, first)).QueryRow(t.Context(), "select n from note").Scan(&n))
	require.Equal(t, 7, n)
}

func TestCrash_killsTheServerUntilUp(t *testing.T) {
	if os.Getenv(pgtest.Env) != "" {
		t.Skip("the server of " + pgtest.Env + " is not ours to crash")
	}
	pgtest.Pool(t) // skips where there is no server
	server, err := pgtest.Start(t.Context(), pgtest.Durable)
	require.NoError(t, err)
	defer server.Remove()
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
		require.NoError(t, err)
		return conn
	}
	_, err = connect().Exec(t.Context(), "create table note as select 7 n")
	require.NoError(t, err)
	server.Crash()
	require.NoError(t, server.Up(t.Context()))
	var n int
	require.NoError(t, connect().QueryRow(t.Context(), "select n from note").Scan(&n))
	require.Equal(t, 7, n)
	server.Remove()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = pgx.Connect(ctx, server.URL("postgres"))
	require.Error(t, err)
}
