// Package postgres keeps everything in PostgreSQL (15 or later): the stores of the
// domain packages behind one value, [Store].
//
//	config, err := postgres.PoolConfig("postgres://…")
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	err = postgres.Migrate(ctx, pool)
//	store := postgres.New(pool, nil)
//	service, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Production})
//	go store.Run(ctx)
//
// # Transactions
//
// On a pool every call is a transaction of its own; it is repeated, a few times at
// most, when it lost against another one or its connection broke before the commit.
// [New] takes a host's pgx.Tx as well: then every call is a savepoint in it, nothing is
// repeated, and the host's commit or rollback decides, about events too. Such a Store
// lives as long as the transaction, and is used by one goroutine at a time.
//
// A program on database/sql opens its pool with pgx's stdlib. sql.Conn.Raw gives the
// connection as *stdlib.Conn; pgx.BeginFunc on its Conn makes a pgx.Tx for both. The
// test in sql_test.go has the function.
//
// Behind a pooler that cannot keep prepared statements, connect with
// default_query_exec_mode=cache_describe; the modes exec and simple_protocol do not
// know the types of our arguments.
//
// # Errors
//
// What the database is to blame for is healthlab.Unavailable: a lost connection, a full
// disk, a timeout of a statement or a lock, a server that only reads, contention that
// did not end. After an Unavailable it is unknown whether a commit that was on its
// way arrived; every write may be repeated. A context that ends is the error itself. No
// text of an error holds a value.
//
// # Tables
//
// Everything is in the schema healthlab, made by [Migrate]. The view healthlab.records
// shows records as JSON; the tables may change with any version.
package postgres

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/linkstore"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/orderstore"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// DB is where a Store keeps things: a *pgxpool.Pool, a *pgx.Conn, or a host's pgx.Tx.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Envelope says how bodies of messages are made.
	Envelope webhook.Envelope
	// RowSecurity names the team of every transaction to the policies of row-level
	// security. Set it where the Store's role is not the owner of the tables: then a
	// statement finds rows of that team only. In a host's transaction the setting
	// healthlab.team stays as the last call left it.
	RowSecurity bool
	// Writers is how many writes of samples run side by side in this process; more
	// are gathered, and written together. Default 2: while the server writes one group,
	// the process makes the next. Fewer connections than that in the pool make no sense.
	// Where [Distribute] has spread users, a write is of one user, and eight times as many
	// run side by side.
	Writers int
	// FoldAfter is how long small batches may wait as segments before [Store.Run]
	// moves them into their chunks; many are moved at once. Default 10 minutes. The last
	// few samples of a series wait in its row until there are enough of them for a segment.
	FoldAfter time.Duration
	// Retention is how long [Store.Run] keeps messages and what came of them.
	// Default 30 days.
	Retention time.Duration
	// Keys encrypts what is kept about persons, but for samples. Its store of keys needs
	// connections of its own (see [PersonKeys]). Nil keeps everything in clear.
	Keys *personkey.Keys
	// EncryptSamples encrypts samples that are written with Keys too. Samples that were written
	// with another setting are read; folding them writes them with this one. Default: samples are
	// kept in clear. It has no effect without Keys.
	EncryptSamples bool
	// Log receives what went wrong in the background, and how many deliveries ended
	// because their messages were too old. Default: slog.Default().
	Log *slog.Logger
}

// Store keeps everything in PostgreSQL. Each interface is behind a method of its name. Safe
// for concurrent use, unless it was made of a host's transaction or a single
// connection.
type Store struct {
	db       *db.DB
	messages *outbox.Store
	users    *userstore.Store
	links    *linkstore.Store
	orders   *orderstore.Store

	opts    Options
	samples seriesbox.Cipher
	writes  gathering
	folds   foldSignal
	asked   atomic.Bool // whether users are spread
	spread  atomic.Bool
}
