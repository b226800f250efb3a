package work

import (
	"context"
	"sync"
	"time"
)

// Batch combines concurrent calls: the calls that come during a run are answered together by the next run. A run
// never answers a call that came after the run began, so that it reads what was committed before the call. Make one
// with [NewBatch]. Safe for concurrent use.
type Batch[In, Out any] struct {
	limit time.Duration
	run   func(ctx context.Context, in []In) ([]Out, error)

	turn chan struct{} // has a value during a run
	mu   sync.Mutex
	next *gathered[In, Out] // collects new calls; nil if there are none
}

// gathered are the calls of one run.
type gathered[In, Out any] struct {
	in   []In
	done chan struct{} // closed after the run
	out  []Out
	err  error
}

// NewBatch returns a Batch whose runs take at most limit. run returns a value for each of its arguments, in their order,
// or an error for all of them. Its context is not that of a caller.
func NewBatch[In, Out any](limit time.Duration, run func(ctx context.Context, in []In) ([]Out, error)) *Batch[In, Out] {
	return &Batch[In, Out]{limit: limit, run: run, turn: make(chan struct{}, 1)}
}

// Do returns the value of in. If ctx ends first, Do returns its error, and the run may still happen.
func (b *Batch[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	b.mu.Lock()
	if b.next == nil {
		b.next = &gathered[In, Out]{done: make(chan struct{})}
	}
	g, place := b.next, len(b.next.in)
	g.in = append(g.in, in)
	b.mu.Unlock()
	select {
	case b.turn <- struct{}{}:
		go func() { // other callers wait for the run, too, so that it goes on when this one leaves
			b.runUnlessDone(g)
			<-b.turn
		}()
	case <-g.done:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	if g.err != nil {
		return out, g.err
	}
	return g.out[place], nil
}

// runUnlessDone runs the gathered calls, unless another goroutine has run them. The caller must hold the token in
// turn.
func (b *Batch[In, Out]) runUnlessDone(g *gathered[In, Out]) {
	select {
	case <-g.done:
		return
	default:
	}
	b.mu.Lock()
	b.next = nil // it is g: only the holder of the turn replaces it
	b.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), b.limit)
	defer stop()
	g.out, g.err = b.run(ctx, g.in)
	close(g.done)
}
