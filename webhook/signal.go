package webhook

import (
	"context"
	"time"
)

// signalEvery is how often a process says that it has routed, at most. A process that commits a
// notification holds a lock of the whole database server.
const signalEvery = 50 * time.Millisecond

// Signal carries the news that messages were routed between the processes that deliver
// from one store. It carries nothing else, and may lose any of it: who hears nothing finds
// the work by looking, every Options.Idle.
//
// Methods are safe for concurrent use.
type Signal interface {
	// Send tells those who listen in other processes. It is never called within a
	// transaction of the store.
	Send(ctx context.Context) error

	// Listen calls heard when it has begun to listen, for what was sent before, and then
	// after whatever others send: several sends may be one call. heard is called in the
	// goroutine of Listen, and does not block. Listen returns when ctx ends, with its
	// error, or when it hears nothing any more; then it may be called again.
	Listen(ctx context.Context, heard func()) error
}

// sendSignals sends the news of what was routed, until ctx ends.
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

// listenForSignals looks for work when others have routed some, until ctx ends.
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
