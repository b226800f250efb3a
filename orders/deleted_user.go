package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// CancelForDeletion cancels the orders of a user who is to be deleted. It skips orders whose status does not allow
// that. Laboratories and providers of appointments are called in the background. It may be called again after any
// error. Use it as [healthdata.Options.BeforeDelete].
func (s *Service) CancelForDeletion(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	ids, err := s.allOrders.OfUser(ctx, team, user)
	if err != nil {
		return fmt.Errorf("cancel orders of user: %w", err)
	}
	for _, id := range ids {
		var rule *healthlab.RuleError
		if _, err := s.Cancel(ctx, team, id); err != nil && !errors.As(err, &rule) && !errors.Is(err, healthlab.NotFound) {
			return fmt.Errorf("cancel orders of user: %w", err)
		}
	}
	return nil
}

// Visible returns a Store whose methods Get, FindSample, Update and InsertAfter do not find the orders of deleted
// users. Its other methods are those of s.
func Visible(s Store) Store { return visibleStore{s} }

type visibleStore struct{ Store }

func visible(r Record, err error) (Record, error) {
	if err == nil && r.UserDeleted {
		return Record{}, fmt.Errorf("%w: the team has no such order", healthlab.NotFound)
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
