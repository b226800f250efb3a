package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/personkey"
)

// handle is a *pgxpool.Pool, a *pgx.Conn, or a host's pgx.Tx.
type handle interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// acquirer is a pool: where several transactions run side by side.
type acquirer interface {
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
}

// database runs transactions. Safe for concurrent use on a pool; on a connection or in a
// host's transaction it is used by one goroutine at a time.
type database struct {
	handle
	pool        acquirer        // nil unless the handle is a pool
	host        bool            // the handle is a host's transaction
	keys        *personkey.Keys // encrypts what is kept about persons; nil keeps it in clear
	rowSecurity bool            // names the team of every transaction to the policies
	written     func()          // called after each commit that wrote events; nil for none

	firstPause time.Duration // firstPause, but in tests
}

// newDatabase returns a database. With rowSecurity every transaction names its team to the
// policies of row-level security.
func newDatabase(h handle, keys *personkey.Keys, rowSecurity bool) *database {
	d := &database{handle: h, keys: keys, rowSecurity: rowSecurity, firstPause: firstPause}
	d.pool, _ = h.(acquirer)
	_, d.host = h.(pgx.Tx)
	return d
}
