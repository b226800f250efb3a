// Package db runs transactions on PostgreSQL for the stores of package postgres: it begins,
// repeats and commits them, names their team to row-level security, and gives their errors a
// kind. [DB.Do] and [DB.Read] run a [Tx]; [Answer] passes an error of a caller's function on.
// The package also has what the stores share: values as they are kept, documents that are
// encrypted, and the locks of a team and of migrations.
package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/personkey"
)

// Handle is a *pgxpool.Pool, a *pgx.Conn, or a host's pgx.Tx.
type Handle interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Pool is a pool: where several transactions run side by side.
type Pool interface {
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
}

// Options adjusts a database. The zero value is the default.
type Options struct {
	// Keys encrypts what is kept about persons. Nil keeps it in clear.
	Keys *personkey.Keys
	// RowSecurity names the team of every transaction to the policies of row-level security.
	RowSecurity bool
}

// MigrationLock is the advisory lock that migrations and the spreading of users take. The number
// after it is outbox.Routing.
const MigrationLock = 0x6865616c74686c61

// firstPause is the default of [DB.FirstPause].
const firstPause = 10 * time.Millisecond

// DB runs transactions. Safe for concurrent use on a pool; on a connection or in a
// host's transaction it is used by one goroutine at a time.
type DB struct {
	Handle
	Options
	Pool Pool // nil unless the handle is a pool
	Host bool // the handle is a host's transaction
	// Written is called after each commit that wrote events, but not in a host's transaction.
	// Nil calls nothing. It is set before the first transaction.
	Written func()
	// FirstPause is about how long to wait before the second try of a transaction; the
	// pauses double.
	FirstPause time.Duration
}

// New returns a database on a handle.
func New(h Handle, o Options) *DB {
	d := &DB{Handle: h, Options: o, FirstPause: firstPause}
	d.Pool, _ = h.(Pool)
	_, d.Host = h.(pgx.Tx)
	return d
}
