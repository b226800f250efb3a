package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Part is one of several pieces of background work.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Together runs all parts at once until ctx ends, and returns when all have returned. A
// part that returns an error ends the others; Together returns the errors, each with the
// name of its part. Nil if ctx ended all of them.
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
