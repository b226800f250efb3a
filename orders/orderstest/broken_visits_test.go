package orderstest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

type claimVisits = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error)

var brokenVisitStores = []conformance.Broken{
	{Name: "claims what is not due", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now.Add(time.Microsecond), lease)
		}
	}), Subtest: "Claim/LongestDueFirst"},
	{Name: "claims a moment late", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now, lease+time.Microsecond)
		}
	}), Subtest: "Claim/LeaseEnds"},
	{Name: "claims without a lease", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, _ time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now, 0)
		}
	}), Subtest: "Claim/LeaseEnds"},
	{Name: "counts leases from the caller's clock", Suite: claimsVisits(func(s visitStore, clock *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now, lease+now.Sub(clock.Now()))
		}
	}), Subtest: "Claim/CallersClocks"},
	{Name: "claims the newest first", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			list, err := s.ClaimVisits(ctx, n, now, lease)
			slices.Reverse(list)
			return list, err
		}
	}), Subtest: "Claim/LongestDueFirst"},
	{Name: "claims all there is", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, _ int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, 1000, now, lease)
		}
	}), Subtest: "Claim/AtMostN"},
	{Name: "claims what is the lab's", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits { return s.Claim }), Subtest: "Claim/NotTheLabs"},
	{Name: "goes on without its caller", Suite: claimsVisits(func(s visitStore, _ *conformance.Clock) claimVisits {
		return func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return s.ClaimVisits(context.WithoutCancel(ctx), n, now, lease)
		}
	}), Subtest: "Claim/ContextEnded"},
	{Name: "gives a key to everybody", Suite: holdsBadly(func(s *badHolds) {
		s.after = func(ctx context.Context, r orders.Record, c orders.Change, err error) (orders.Record, error) {
			var held *orders.ReservedError
			if errors.As(err, &held) && len(r.Visits) > 0 {
				r.Visits[0].Keys = []uuid.UUID{uuid.New()}
				return s.Store.Insert(ctx, r, c)
			}
			return orders.Record{}, err
		}
	}), Subtest: "Hold/BookingKeys"},
	{Name: "does not say what is held", Suite: holdsBadly(func(s *badHolds) {
		s.after = func(_ context.Context, _ orders.Record, _ orders.Change, err error) (orders.Record, error) {
			var held *orders.ReservedError
			if errors.As(err, &held) {
				return orders.Record{}, healthlab.Conflict
			}
			return orders.Record{}, err
		}
	}), Subtest: "Hold/BookingKeys"},
	{Name: "never gives anything back", Suite: holdsBadly(func(s *badHolds) {
		ever := map[healthlab.TeamID]map[string]orders.OrderID{}
		s.before = func(r *orders.Record) error {
			if ever[r.TeamID] == nil {
				ever[r.TeamID] = map[string]orders.OrderID{}
			}
			for _, name := range r.Reservations() {
				if by, taken := ever[r.TeamID][name]; taken && by != r.ID {
					return &orders.ReservedError{Name: name}
				}
				ever[r.TeamID][name] = r.ID
			}
			return nil
		}
	}), Subtest: "Hold/VisitsAtHome"},
}

// visitStore is a store of orders and their appointments.
type visitStore interface {
	orders.Store
	orders.VisitStore
}

func wholeStore() (visitStore, *conformance.Clock) {
	store, clock := clockedStore()
	s, ok := store.Orders().(visitStore)
	if !ok {
		panic("the memory keeps no appointments")
	}
	return s, clock
}

type brokenClaim struct{ claim claimVisits }

func (b brokenClaim) ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	return b.claim(ctx, n, now, lease)
}

func claimsVisits(how func(visitStore, *conformance.Clock) claimVisits) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunVisits(t, func(testing.TB) orderstest.VisitsHarness {
			s, clock := wholeStore()
			return orderstest.VisitsHarness{Orders: s, Visits: brokenClaim{how(s, clock)}, SetClock: clock.Set}
		})
	}
}

// badHolds is a store whose Insert is changed before or after.
type badHolds struct {
	orders.Store
	before func(*orders.Record) error
	after  func(context.Context, orders.Record, orders.Change, error) (orders.Record, error)
}

func (s *badHolds) Insert(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
	if s.before != nil {
		if err := s.before(&r); err != nil {
			return orders.Record{}, err
		}
	}
	stored, err := s.Store.Insert(ctx, r, c)
	if err != nil && s.after != nil {
		return s.after(ctx, r, c, err)
	}
	return stored, err
}

func holdsBadly(how func(*badHolds)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunVisits(t, func(testing.TB) orderstest.VisitsHarness {
			s, clock := wholeStore()
			b := &badHolds{Store: s}
			how(b)
			return orderstest.VisitsHarness{Orders: b, Visits: s, SetClock: clock.Set}
		})
	}
}
