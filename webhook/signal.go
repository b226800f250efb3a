package webhook

import (
	"context"
	"time"
)

// signalEvery is the shortest interval between two signals of a process. It is limited because in PostgreSQL a commit
// with a notification locks the whole database server.
const signalEvery = 50 * time.Millisecond

// Signal notifies the dispatchers of other processes on the same store that events were routed. Signals may be lost: a
// process that misses one finds the deliveries after Options.Idle. Methods are safe for concurrent use.
type Signal interface {
	// Send notifies the listeners in other processes. It is never called in a transaction of the store.
	Send(ctx context.Context) error

	// Listen calls heard once after it has begun to listen, and then after signals of other processes; several
	// signals may cause one call. heard is called in the goroutine of Listen and does not block. Listen returns
	// the error of ctx when ctx ends, or another error when it can no longer listen; then it may be called
	// again.
	Listen(ctx context.Context, heard func()) error
}

// sendSignals calls Signal.Send after events were routed, until ctx ends.
func (d *Dispatcher) sendSignals(ctx context.Context) {
	for {
		select {
		case <-d.news:
		case <-ctx.Done():
			return
		}
		if err := d.opts.Signal.Send(ctx); err != nil && ctx.Err() == nil {
			d.opts.Log.Debug("other processes were not told of new work, and will find it by themselves")
		}
		wait(ctx, signalEvery, nil)
	}
}

// listenForSignals makes the dispatcher look for due deliveries after each signal of another process, until ctx ends.
func (d *Dispatcher) listenForSignals(ctx context.Context) {
	failed := 0
	for ctx.Err() == nil {
		_ = d.opts.Signal.Listen(ctx, func() {
			failed = 0
			d.targets.rescan()
			poke(d.wakeClaim)
		})
		if ctx.Err() != nil {
			return
		}
		d.opts.Log.Debug("not listening for work of other processes", "times", failed+1)
		wait(ctx, storeWait(failed), nil)
		failed++
	}
}
