package pgtest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create table note (n int primary key)")
		return err
	}))
}

func TestEveryTestHasItsOwn(t *testing.T) {
	for range 2 {
		pool := pgtest.Pool(t)
		_, err := pool.Exec(t.Context(), "insert into note values (1)")
		require.NoError(t, err)
	}
}

func TestEmpty(t *testing.T) {
	pool := pgtest.Connect(t, pgtest.Empty(t))
	_, err := pool.Exec(t.Context(), "create table note (n int)")
	require.NoError(t, err, "the migration was not applied")
}

func TestCrash(t *testing.T) {
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
