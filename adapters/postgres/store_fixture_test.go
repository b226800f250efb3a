package postgres_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/store"
)

// rowSchema is the schema of the tables of [postgres.RowTables] in the databases of tests.
const rowSchema = postgres.RowSchema

// openEngine returns the store in a database of [pgtest.URL].
func openEngine(t testing.TB, pool *pgxpool.Pool, tables []store.Definition, opts postgres.Options) *postgres.Store {
	t.Helper()
	if opts.Schema == "" {
		opts.Schema = rowSchema
	}
	e, err := postgres.New(t.Context(), pool, tables, &opts)
	require.NoError(t, err)
	return e
}

// sentBatches counts what a pool sends: batches and single statements. The statements that the driver
// prepares before their first use are not counted.
type sentBatches struct{ n atomic.Int64 }

func (c *sentBatches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *sentBatches) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *sentBatches) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (c *sentBatches) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *sentBatches) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// poolWith returns a pool whose configuration was changed.
func poolWith(t testing.TB, address string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	require.NoError(t, err)
	change(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func asRestricted(c *pgxpool.Config) {
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set role `+postgres.RestrictedRole)
		return err
	}
}

func noCluster(t testing.TB) {
	t.Helper()
	if pgtest.Spread() {
		t.Skip("row-level security is not for a cluster")
	}
}

// flights counts the turns of connections from sending to receiving: round trips on the wire.
type flights struct {
	net.Dialer
	n atomic.Int64
}

func (f *flights) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := f.DialContext(ctx, network, address)
	return &flightConn{Conn: c, of: f}, err
}

type flightConn struct {
	net.Conn
	of   *flights
	sent atomic.Bool
}

func (c *flightConn) Write(b []byte) (int, error) {
	if !c.sent.Swap(true) {
		c.of.n.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *flightConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.sent.Store(false)
	}
	return n, err
}
