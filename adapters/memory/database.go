package memory

import (
	"context"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// database is the lock, the clock and the keys that all stores of a [Store] share.
type database struct {
	now  func() time.Time
	keys *personkey.Keys // nil keeps everything in clear

	mu    sync.Mutex // guards all tables, and trace
	trace string     // of the context with which the lock was taken
}

// clock returns the store's time as it is kept: in UTC, to the microsecond.
func (db *database) clock() time.Time { return instant(db.now()) }

// instant returns t as it is kept: in UTC, to the microsecond.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// lock takes the store's lock, unless ctx has ended: then nothing is locked, and the
// error is the context's.
func (db *database) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	db.trace = healthlab.TraceOf(ctx)
	return nil
}

// latest returns the later of two instants.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
