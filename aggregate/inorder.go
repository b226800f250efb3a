package aggregate

import (
	"context"
	"sync"
)

// inOrder calls do for 0 to n-1 on several goroutines, and calls take with the results in order. It stops at the first
// error in that order and returns it. All goroutines have ended when it returns.
func inOrder[T any](ctx context.Context, n, workers int, do func(context.Context, int) (T, error), take func(int, T)) error {
	if workers <= 1 || n <= 1 {
		for i := range n {
			v, err := do(ctx, i)
			if err != nil {
				return err
			}
			take(i, v)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	type result struct {
		v   T
		err error
	}
	// At most 2*workers results are being computed or waiting for take.
	slots := make([]chan result, 2*workers)
	for i := range slots {
		slots[i] = make(chan result, 1)
	}
	work := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range work {
				v, err := do(ctx, i)
				slots[i%len(slots)] <- result{v, err}
			}
		})
	}
	defer close(work)
	sent := 0
	for i := range n {
		for sent < n && sent < i+len(slots) {
			select {
			case work <- sent:
				sent++
				continue
			case r := <-slots[i%len(slots)]:
				slots[i%len(slots)] <- r // not lost: it is read below
			}
			break
		}
		r := <-slots[i%len(slots)]
		if r.err != nil {
			return r.err
		}
		take(i, r.v)
	}
	return nil
}
