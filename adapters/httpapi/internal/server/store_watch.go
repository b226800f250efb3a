package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// ErrStoreSilent is the cause with which the context of a request ends while the store does not
// answer.
var ErrStoreSilent = fmt.Errorf("%w: the store does not answer", healthlab.Unavailable)

// StoreSilent reports whether a context ended because the store does not answer.
func StoreSilent(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStoreSilent) }

// StoreWatch cancels the contexts of requests while the store does not answer. It pings the store only while requests
// take long, with one ping at a time. Safe for concurrent use.
type StoreWatch struct {
	// Ping returns nil if the store answers. An error other than Unavailable or a context error also shows that the
	// store answers. Nil: the store is never silent.
	Ping func(context.Context) error
	// Timeout is how long a request may wait before the store counts as silent: half of it until the first ping, and
	// half of it for the answer to a ping. It must be positive.
	Timeout time.Duration
	// Log receives a line when the store becomes silent and when it answers again. Required.
	Log *slog.Logger

	mu     sync.Mutex
	silent bool
	paused bool      // a ping has failed, and probePause has not passed since
	asking *question // the ping in progress; nil for none
}

// question is a ping in progress.
type question struct {
	done chan struct{}
	ok   bool
}

// probePause is the time between two pings of a silent store.
const probePause = 500 * time.Millisecond

// Bound returns a context that is cancelled with the cause ErrStoreSilent when the store has not answered for Timeout.
// If the store was silent before, Bound pings it, at most once per probePause, and cancels the context at once unless
// the store answers. The caller must call the returned function to release the context.
func (w *StoreWatch) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Ping == nil {
		return context.WithCancel(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	if w.isSilent() && !w.answers(ctx) {
		end(ErrStoreSilent)
		return ctx, func() {}
	}
	timer := time.AfterFunc(w.Timeout/2, func() {
		tick := time.NewTicker(w.Timeout / 2)
		defer tick.Stop()
		for w.answers(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		end(ErrStoreSilent)
	})
	return ctx, func() {
		timer.Stop()
		end(nil)
	}
}

func (w *StoreWatch) isSilent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent
}

// answers pings the store, or waits for the ping in progress, and reports whether it was answered. It returns true
// if ctx ends first.
func (w *StoreWatch) answers(ctx context.Context) bool {
	w.mu.Lock()
	q := w.asking
	if q == nil && w.paused {
		w.mu.Unlock()
		return false
	}
	if q == nil {
		q = &question{done: make(chan struct{})}
		w.asking = q
		go w.probe(q) //nolint:contextcheck // the ping serves all requests
	}
	w.mu.Unlock()
	select {
	case <-q.done:
		return q.ok
	case <-ctx.Done():
		return true
	}
}

// probe pings the store, and answers q.
func (w *StoreWatch) probe(q *question) {
	q.ok = w.ping()
	w.mu.Lock()
	was := w.silent
	w.asking, w.silent, w.paused = nil, !q.ok, !q.ok
	w.mu.Unlock()
	if !q.ok {
		time.AfterFunc(probePause, w.resume)
	}
	close(q.done)
	switch {
	case !q.ok && !was:
		w.Log.Error("the store does not answer; requests are refused until it does")
	case q.ok && was:
		w.Log.Warn("the store answers")
	}
}

func (w *StoreWatch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
}

func (w *StoreWatch) ping() bool {
	ctx, stop := context.WithTimeout(context.Background(), w.Timeout/2)
	defer stop()
	err := w.Ping(ctx)
	return ctx.Err() == nil && !errors.Is(err, healthlab.Unavailable)
}
