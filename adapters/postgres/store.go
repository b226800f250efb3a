package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/store"
)

const (
	// maxTries is the highest number of runs of a transaction.
	maxTries = 4
	// maxTaken is the highest number of runs of an Update that writes a key or unique value that another row has.
	maxTaken = 3
	// firstPause is the approximate wait before the second run of a transaction. Each later wait is twice as long.
	firstPause = 10 * time.Millisecond
	// clockAge is how long the difference between the database's clock and the process's is used
	// before it is measured again.
	clockAge = 10 * time.Second
)

// Store is a [store.Store] in PostgreSQL (15 or later): one table for each declared table, made by [Migrate]. Safe
// for concurrent use.
//
// Transactions are READ COMMITTED and lock the rows that they read, as [store.Tx] says. An Update makes one round
// trip to the database for each of its reads, the first of which begins the transaction, and one for all its writes
// and the commit. An Update that loses a conflict with another transaction, or whose connection breaks before the
// commit, runs at most four times. A user without a row is locked by an advisory lock of the transaction.
//
// Errors of the database are healthlab.Unavailable: a lost connection, a full disk, a timeout, a read-only server,
// contention that does not end. If the connection is lost during the commit, it is unknown whether the commit
// succeeded. No text of an error contains a value.
type Store struct {
	pool   *pgxpool.Pool
	opts   Options
	tables map[string]*table
	names  []string // of tables, sorted
	clock  atomic.Pointer[clockReading]
	spread bool // tables per user are distributed over the machines of a cluster
	// commitBoth is a statement that makes a transaction commit on all machines of a cluster or on none.
	commitBoth string

	absent atomic.Bool // the last lock of a user found no row, and the next one probably will not either
}

// New returns the store of tables in a database that [Migrate] has prepared. It returns healthlab.Precondition if a
// table is missing, or a newer program has prepared the database.
func New(ctx context.Context, pool *pgxpool.Pool, tables []store.Definition, opts *Options) (*Store, error) {
	e := &Store{pool: pool, opts: engineOptions(opts)}
	var err error
	if e.tables, err = newTables(e.opts.Schema, tables); err != nil {
		return nil, err
	}
	e.names = slices.Sorted(maps.Keys(e.tables))
	if err := e.Ping(ctx); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := e.findDistributed(ctx); err != nil {
		return nil, fmt.Errorf("open the store: %w", classify(ctx, err))
	}
	_, err = e.now(ctx)
	return e, err
}

// Ping checks that the database answers and has the tables of the store. It returns Precondition if a table is missing
// or the schema is newer than the program.
func (e *Store) Ping(ctx context.Context) error {
	return classify(ctx, pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		missing, err := missingRelations(ctx, tx, e.opts.Schema, e.tables)
		if err == nil && len(missing) > 0 {
			err = missingError(missing)
		}
		return err
	}))
}

// hostTx is the context key of the host's transaction for one Store.
type hostTx struct{ engine *Store }

// WithTx returns a context with which calls of this Store are part of tx, a transaction of the host: an Update is a
// savepoint in tx, and its writes are committed or rolled back with tx. Functions registered with AfterCommit are
// not called. A Read sees the rows that the isolation level of tx allows. Other engines, such as the one that stores
// the keys of persons, do not take part in tx. Only one goroutine at a time may use the context, and none after the
// end of tx.
func (e *Store) WithTx(ctx context.Context, tx pgx.Tx) context.Context {
	return context.WithValue(ctx, hostTx{e}, tx)
}

// connect returns the host's transaction that ctx carries (see WithTx), or else a connection of the pool. host reports
// which; the caller must call release.
func (e *Store) connect(ctx context.Context) (conn connection, host bool, release func(), err error) {
	if tx, ok := ctx.Value(hostTx{e}).(pgx.Tx); ok {
		return tx, true, func() {}, nil
	}
	c, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, false, nil, err
	}
	return c, false, c.Release, nil
}

// clockReading holds what the clocks of this process and of the database showed at the same instant.
type clockReading struct{ local, server time.Time }

// now returns the time of the database's clock. It reads that clock at most once in clockAge, or after the local clock
// was set back. Otherwise it adds the local time that has passed since.
func (e *Store) now(ctx context.Context) (time.Time, error) {
	if e.opts.Now != nil {
		return e.opts.Now(), nil
	}
	if r := e.clock.Load(); r != nil {
		if age := wallClock().Sub(r.local); age >= 0 && age < clockAge {
			return r.server.Add(age), nil
		}
	}
	conn, _, release, err := e.connect(ctx)
	if err != nil {
		return time.Time{}, classify(ctx, err)
	}
	defer release()
	before, server := wallClock(), time.Time{}
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&server); err != nil {
		return time.Time{}, classify(ctx, err)
	}
	trip := wallClock().Sub(before)
	e.clock.Store(&clockReading{local: before.Add(trip / 2), server: server})
	return server, nil
}

func wallClock() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the monotonic clock stops while a machine sleeps

// Update implements [store.Store].
func (e *Store) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if joined, err := store.Join(ctx, e, run); joined {
		return err
	}
	// On a cluster, a transaction releases its row locks before all machines have committed, but its advisory locks
	// only afterwards. Users are therefore always locked by advisory locks too.
	taken, absent := 0, e.spread || e.absent.Load()
	return repeat(ctx, func() (again bool, err error) {
		t := &transaction{engine: e, ctx: ctx, taken: taken > 0, absent: absent}
		b, err := t.run(run)
		switch {
		case err == nil && !t.host:
			b.Committed()
		case isTaken(t.failed):
			taken++
			return taken < maxTaken, err
		case errors.Is(t.failed, errAbsent):
			absent = true
		}
		return t.again, err
	})
}

// Read implements [store.Store].
func (e *Store) Read(ctx context.Context, q ...store.Query) (rows [][]store.Row, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if rows, joined, err := store.JoinRead(ctx, e, q); joined {
		return rows, err
	}
	if err := e.check(q); err != nil {
		return nil, err
	}
	err = repeat(ctx, func() (again bool, err error) {
		rows, err = e.readOnce(ctx, q)
		return isConnectionError(err) && ctx.Value(hostTx{e}) == nil, classify(ctx, err)
	})
	return rows, err
}

func (e *Store) readOnce(ctx context.Context, q []store.Query) ([][]store.Row, error) {
	conn, host, release, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b := &pgx.Batch{}
	if !host {
		snapshot.begin(b)
	}
	rows := e.queueQueries(b, q, reading{host: host})
	if !host {
		snapshot.commit(b)
	}
	if err = conn.SendBatch(ctx, b).Close(); err != nil && !host {
		snapshot.rollback(ctx, conn)
	}
	return rows, err
}

// repeat calls once until it succeeds or returns again = false, at most [maxTries] times. It waits between two calls,
// unless the error means that the conflicting transaction has already ended.
func repeat(ctx context.Context, once func() (again bool, err error)) error {
	for try := 1; ; try++ {
		again, err := once()
		if err == nil || !again || try == maxTries || ctx.Err() != nil {
			return err
		}
		if isTaken(err) || errors.Is(err, store.ErrStale) {
			continue
		}
		wait := firstPause << (try - 1)
		jitter := rand.Float64() //nolint:forbidigo // only the length of a pause depends on it
		t := time.NewTimer(time.Duration((0.5 + jitter) * float64(wait)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
