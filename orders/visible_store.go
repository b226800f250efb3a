package orders

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// visibleStore is a Store as callers see it: the orders of deleted users are not found.
type visibleStore struct{ Store }

func visible(r Record, err error) (Record, error) {
	if err == nil && r.UserDeleted {
		return Record{}, fmt.Errorf("%w: order", healthlab.NotFound)
	}
	return r, err
}

// Get implements [Store].
func (v visibleStore) Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error) {
	return visible(v.Store.Get(ctx, team, id))
}

// FindSample implements [Store].
func (v visibleStore) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (Record, error) {
	return visible(v.Store.FindSample(ctx, team, sampleID))
}

// Update implements [Store].
func (v visibleStore) Update(ctx context.Context, team healthlab.TeamID, id OrderID, change Change) (Record, error) {
	return v.Store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		if _, err := visible(*r, nil); err != nil {
			return nil, err
		}
		return change(r)
	})
}

// InsertAfter implements [Store].
func (v visibleStore) InsertAfter(ctx context.Context, parent OrderID, child Record, change PairChange) (Record, Record, error) {
	return v.Store.InsertAfter(ctx, parent, child, func(p, c *Record) ([]healthlab.Event, error) {
		if _, err := visible(*p, nil); err != nil {
			return nil, err
		}
		return change(p, c)
	})
}
