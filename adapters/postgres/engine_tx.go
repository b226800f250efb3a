package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/store"
)

// transaction is one run of an Update. In a host's transaction it is a savepoint.
type transaction struct {
	engine *Engine
	ctx    context.Context //nolint:containedctx // that of the Update; store.Tx has no other
	taken  bool            // the run before failed because a key or a value was taken

	conn    connection // nil until the first trip
	host    bool
	release func()

	begun, done bool
	failed      error // of the first trip that failed
	again       bool  // another run may succeed where a trip failed
}

// The statements around a transaction on a pool, and in a host's transaction.
var (
	onPool = [...]string{"begin isolation level read committed", "commit", "rollback"}
	onHost = [...]string{"savepoint healthlab", "release savepoint healthlab", "rollback to savepoint healthlab; release savepoint healthlab"}
)

// run runs an Update and commits what it put.
func (t *transaction) run(run func(context.Context, store.Tx) error) (*store.Buffer, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	now, err := t.engine.now(t.ctx)
	if err != nil {
		t.again = lost(err)
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

// start adds what begins the transaction to the batch of its first trip.
func (t *transaction) start(b *pgx.Batch) error {
	if t.begun {
		return nil
	}
	var err error
	if t.conn, t.host, t.release, err = t.engine.connect(t.ctx); err != nil {
		return t.fail(err, lost(err))
	}
	b.Queue(t.frame()[0])
	t.begun = true
	return nil
}

func (t *transaction) frame() *[3]string {
	if t.host {
		return &onHost
	}
	return &onPool
}

// fetch answers queries in one trip.
func (t *transaction) fetch(q []store.Query) ([][]store.Row, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	b := &pgx.Batch{}
	if err := t.start(b); err != nil {
		return nil, err
	}
	rows := t.engine.queueQueries(b, q, true)
	if err := t.conn.SendBatch(t.ctx, b).Close(); err != nil {
		return nil, t.fail(err, contended(err) || lost(err))
	}
	return rows, nil
}

// commit writes and commits in one trip.
func (t *transaction) commit(writes []store.Write) error {
	if len(writes) == 0 && !t.begun {
		return nil
	}
	b := &pgx.Batch{}
	if err := t.start(b); err != nil {
		return err
	}
	if err := t.engine.queueWrites(b, writes, t.taken); err != nil {
		return err
	}
	b.Queue(t.frame()[1]).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	if err := t.conn.SendBatch(t.ctx, b).Close(); err != nil {
		err = t.engine.meaning(err)
		// A connection that broke may have broken after the commit.
		return t.fail(err, contended(err) || pgconn.SafeToRetry(err))
	}
	t.done = true
	return nil
}

// fail keeps the error of a trip.
func (t *transaction) fail(err error, again bool) error {
	t.failed, t.again = classify(t.ctx, err), again && (!t.host || !lost(err))
	return t.failed
}

// end undoes what was not committed and gives the connection back.
func (t *transaction) end() {
	if t.conn == nil {
		return
	}
	if t.begun && !t.done {
		rollback(t.ctx, t.conn, t.frame()[2])
	}
	t.release()
}

// guardFailed is the code of a division by zero, by which the update of a row fails.
const guardFailed = "22012"

// queueWrites adds writes to a batch: deletions, changes and then new rows, each in the order of
// keys, so that a unique value can move from one row to another. Where a value moves between
// changed rows, this takes a second run, with free: it frees all values first.
func (e *Engine) queueWrites(b *pgx.Batch, writes []store.Write, free bool) error {
	for i := range writes {
		if e.tables[writes[i].Table] == nil {
			return fmt.Errorf("postgres: table %s is not declared", writes[i].Table)
		}
	}
	e.nameTeam(b, teamOfWrites(writes))
	each := func(these func(*store.Write) bool, queue func(*table, *store.Write)) {
		for i := range writes {
			if w := &writes[i]; these(w) {
				queue(e.tables[w.Table], w)
			}
		}
	}
	changed := func(w *store.Write) bool { return !w.Gone && w.Was != 0 }
	each(func(w *store.Write) bool { return w.Gone }, func(t *table, w *store.Write) {
		b.Queue(t.delete, [16]byte(w.Team.UUID), []byte(w.ID))
	})
	if free {
		each(changed, func(t *table, w *store.Write) {
			if t.def.Unique[0] || t.def.Unique[1] {
				b.Queue(t.free, [16]byte(w.Team.UUID), []byte(w.ID))
			}
		})
	}
	each(changed, func(t *table, w *store.Write) { b.Queue(t.update, append(values(w), w.Was)...) })
	each(func(w *store.Write) bool { return !w.Gone && w.Was == 0 }, func(t *table, w *store.Write) { b.Queue(t.insert, values(w)...) })
	return nil
}

// values returns the columns of a row as they are kept.
func values(w *store.Write) []any {
	var user, due any
	if !w.User.IsZero() {
		user = [16]byte(w.User.UUID)
	}
	if !w.Due.IsZero() {
		due = w.Due
	}
	return []any{[16]byte(w.Team.UUID), []byte(w.ID), user, due, indexValue(w.Index[0]), indexValue(w.Index[1]), w.Revision, w.Doc}
}

// indexValue returns an index value as it is kept: null for none.
func indexValue(v string) any {
	if v == "" {
		return nil
	}
	return []byte(v)
}

// meaning returns what the error of a commit means for the rows that it wrote.
func (e *Engine) meaning(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case guardFailed:
		return store.ErrStale
	case "23505":
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

// isTaken reports whether a key or a value was taken.
func isTaken(err error) bool {
	var taken *store.TakenError
	return errors.As(err, &taken)
}

var _ store.Store = (*Engine)(nil)
