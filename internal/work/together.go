package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Part is one piece of background work with a name.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Together runs all parts concurrently until ctx ends, and returns when all have returned. A part that fails ends the
// others. It returns the errors with the names of their parts, or nil if ctx ended all of them.
func Together(ctx context.Context, parts []Part) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	faults := make([]error, len(parts))
	for i, p := range slices.All(parts) {
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				faults[i] = fmt.Errorf("%s: %w", p.Name, err)
				stop()
			}
		})
	}
	running.Wait()
	return errors.Join(faults...)
}
