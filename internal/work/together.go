package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Part is a piece of background work. Name appears in errors.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Together runs all parts concurrently until ctx ends, and returns when all parts have returned. If one part fails,
// it ends the others. It returns the errors of the parts with their names, or nil if the parts ended because ctx
// did.
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
