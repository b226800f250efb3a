package postgres_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestPoolConfig_setsDefaultsAndHidesTheAddressInErrors(t *testing.T) {
	_, err := postgres.PoolConfig("marker://x:y")
	require.ErrorIs(t, err, healthlab.Invalid)
	require.NotContains(t, err.Error(), "marker")

	c, err := postgres.PoolConfig("postgres://h/d?connect_timeout=7&pool_max_conns=3")
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, c.ConnConfig.ConnectTimeout)
	require.EqualValues(t, 3, c.MaxConns)
	c, err = postgres.PoolConfig("postgres://h/d")
	require.NoError(t, err)
	require.NotZero(t, c.ConnConfig.ConnectTimeout)
	require.Equal(t, 1024, c.ConnConfig.StatementCacheCapacity)
	c, err = postgres.PoolConfig("postgres://h/d?statement_cache_capacity=100")
	require.NoError(t, err)
	require.Equal(t, 100, c.ConnConfig.StatementCacheCapacity)
}

// Its connections have the socket options, over TCP and over a socket of Unix alike.
func TestPoolConfig_connectsOverTCPAndUnixSockets(t *testing.T) {
	c, err := postgres.PoolConfig(pgtest.URL(t))
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, pool.Ping(t.Context()))

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := c.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
