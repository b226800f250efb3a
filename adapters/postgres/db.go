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

// options adjusts a database. The zero value is the default.
type options struct {
	// keys encrypts what is kept about persons. Nil keeps it in clear.
	keys *personkey.Keys
	// rowSecurity names the team of every transaction to the policies of row-level security.
	rowSecurity bool
}

// database runs transactions. Safe for concurrent use on a pool; on a connection or in a
// host's transaction it is used by one goroutine at a time.
type database struct {
	handle
	options
	pool    acquirer // nil unless the handle is a pool
	host    bool     // the handle is a host's transaction
	written func()   // called after each commit that wrote events; nil for none
	// firstPause is about how long to wait before the second try of a transaction.
	firstPause time.Duration
}

// newDatabase returns a database on a handle.
func newDatabase(h handle, o options) *database {
	d := &database{handle: h, options: o, firstPause: firstPause}
	d.pool, _ = h.(acquirer)
	_, d.host = h.(pgx.Tx)
	return d
}
