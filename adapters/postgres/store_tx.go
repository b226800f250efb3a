package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/store"
)

// connection executes the statements of a transaction.
type connection interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// transaction is one run of an Update. In a host's transaction it is a savepoint.
type transaction struct {
	engine *Store
	ctx    context.Context //nolint:containedctx // the context of the Update; methods of store.Tx take none
	taken  bool            // the previous run failed because another row had a written key or unique value
	absent bool            // also lock users who have no row

	conn    connection // nil until the first round trip
	host    bool
	frame   *frame
	release func()

	done   bool  // the transaction was committed
	failed error // error of the first round trip that failed
	again  bool  // set with failed: another run of the Update may succeed
}

// frame holds the statements that start, configure, end and undo a transaction.
type frame struct{ start, settings, end, undo string }

var (
	// locking is the frame of an Update on a connection of the pool.
	locking = frame{"begin isolation level read committed", keepPlans, "commit", "rollback"}
	// snapshot is the frame of a Read: it starts and ends a read-only transaction on one snapshot.
	snapshot = frame{"begin isolation level repeatable read read only", keepPlans, "commit", "rollback"}
	// savepoint is the frame of an Update in a host's transaction. It does not change settings.
	savepoint = frame{"savepoint healthlab", "", "release savepoint healthlab", "rollback to savepoint healthlab; release savepoint healthlab"}
)

// rollbackTime is the longest duration of a rollback; after it the connection is closed.
const rollbackTime = 2 * time.Second

func (f *frame) begin(b *pgx.Batch) {
	b.Queue(f.start)
	if f.settings != "" {
		b.Queue(f.settings)
	}
}

func (f *frame) commit(b *pgx.Batch) {
	b.Queue(f.end).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" { // the server rolls back if a statement has failed
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
}

func (f *frame) rollback(ctx context.Context, conn connection) {
	// The pool closes a connection on which the rollback fails.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	_, _ = conn.Exec(ctx, f.undo)
}

// run runs an Update and commits its writes.
func (t *transaction) run(run func(context.Context, store.Tx) error) (*store.Buffer, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	now, err := t.engine.now(t.ctx)
	if err != nil {
		t.again = isConnectionError(err)
		return nil, err
	}
	defer t.end()
	b := store.NewBuffer(now, t.fetch)
	err = b.Run(t.ctx, t.engine, run)
	switch {
	case err != nil:
		return nil, err
	case t.failed != nil: // and run went on
		return nil, t.failed
	case t.ctx.Err() != nil:
		return nil, t.ctx.Err()
	}
	return b, t.commit(b.Writes())
}

// start adds the statements that begin the transaction to the first batch.
func (t *transaction) start(b *pgx.Batch) error {
	if t.conn != nil {
		return nil
	}
	conn, host, release, err := t.engine.connect(t.ctx)
	if err != nil {
		return t.fail(err, isConnectionError(err))
	}
	t.conn, t.host, t.release, t.frame = conn, host, release, &locking
	if host {
		t.frame = &savepoint
	}
	t.frame.begin(b)
	return nil
}

// fetch runs the queries in one round trip, and takes their locks.
func (t *transaction) fetch(q []store.Query) ([][]store.Row, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	if err := t.engine.check(q); err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	if err := t.start(b); err != nil {
		return nil, err
	}
	rows := t.engine.queueQueries(b, q, reading{locked: true, absent: t.absent, host: t.host})
	if err := t.conn.SendBatch(t.ctx, b).Close(); err != nil {
		return nil, t.fail(err, contended(err) || isConnectionError(err))
	}
	for i := range q {
		if !locksUser(&q[i]) {
			continue
		}
		absent := len(rows[i]) == 0
		t.engine.absent.Store(absent)
		if absent && !t.absent {
			return nil, t.fail(errAbsent, true)
		}
	}
	return rows, nil
}

// errAbsent is returned when a transaction locks a user that has no row. The next run takes an advisory lock for the
// user first.
var errAbsent = fmt.Errorf("%w: a user that the transaction locks must exist", store.ErrStale)

// commit writes the rows and commits, in one round trip unless rows of distributed tables are updated.
func (t *transaction) commit(writes []store.Write) error {
	if len(writes) == 0 && t.conn == nil {
		return nil
	}
	counted := false // an update changes rows on other machines, which are counted
	for i := range writes {
		w := &writes[i]
		of := t.engine.tables[w.Table]
		switch {
		case of == nil:
			return fmt.Errorf("postgres: table %s is not declared", w.Table)
		case of.def.PerUser && (w.User.IsZero() || !strings.HasPrefix(w.ID, store.UUID(w.User.UUID)) || !w.Due.IsZero()):
			return fmt.Errorf("postgres: table %s: a row must have a user, an id that begins with the id of that user, and no due time", w.Table)
		}
		counted = counted || of.spread && !w.Gone && w.Was != 0
	}
	b := &pgx.Batch{}
	if err := t.start(b); err != nil {
		return err
	}
	t.engine.queueWrites(b, writes, t.taken, t.host)
	if counted { // commit only after every changed row was found
		if err := t.send(b); err != nil {
			return err
		}
		b = &pgx.Batch{}
	}
	t.frame.commit(b)
	if err := t.send(b); err != nil {
		return err
	}
	t.done = true
	return nil
}

// send sends a batch of writes, and converts its error.
func (t *transaction) send(b *pgx.Batch) error {
	err := t.conn.SendBatch(t.ctx, b).Close()
	if err == nil {
		return nil
	}
	err = t.engine.storeError(err)
	// If the connection broke, the commit may have succeeded; a second run would then write twice.
	return t.fail(err, contended(err) || pgconn.SafeToRetry(err))
}

func (t *transaction) fail(err error, again bool) error {
	t.failed, t.again = classify(t.ctx, err), again && (!t.host || !isConnectionError(err))
	return t.failed
}

// end rolls back an uncommitted transaction and releases the connection.
func (t *transaction) end() {
	if t.conn == nil {
		return
	}
	if !t.done {
		t.frame.rollback(t.ctx, t.conn)
	}
	t.release()
}

// guardFailed is the SQLSTATE of a division by zero: the statement update divides by zero if the revision of a row has
// changed since the transaction read it.
const guardFailed = "22012"

// uniqueViolation is the SQLSTATE of an existing key or unique value.
const uniqueViolation = "23505"

func isUniqueViolation(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == uniqueViolation
}

// storeError converts a database error of a commit to the error that package store defines for it.
func (e *Store) storeError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case guardFailed:
		return store.ErrStale
	case uniqueViolation:
		taken := &store.TakenError{Table: pg.TableName, Index: -1}
		for i := range 2 {
			if pg.ConstraintName == uniqueIndex(pg.TableName, i) {
				taken.Index = i
			}
		}
		return taken
	}
	return err
}

func isTaken(err error) bool {
	var taken *store.TakenError
	return errors.As(err, &taken)
}

var _ store.Store = (*Store)(nil)
