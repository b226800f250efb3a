package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

type claimVisits = func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error)

var visitsMutants = []mutant{
	{"claims what is not due", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now.Add(time.Microsecond), until)
		}
	}), "Claim/LongestDueFirst"},
	{"claims a moment late", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now.Add(-time.Microsecond), until)
		}
	}), "Claim/LeaseEnds"},
	{"claims without a lease", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, n int, now, _ time.Time) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, n, now, now)
		}
	}), "Claim/LeaseEnds"},
	{"claims the newest first", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			list, err := s.ClaimVisits(ctx, n, now, until)
			slices.Reverse(list)
			return list, err
		}
	}), "Claim/LongestDueFirst"},
	{"claims all there is", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, _ int, now, until time.Time) ([]orders.Record, error) {
			return s.ClaimVisits(ctx, 1000, now, until)
		}
	}), "Claim/AtMostN"},
	{"claims what is the lab's", claimsVisits(func(s visitStore) claimVisits { return s.Claim }), "Claim/NotTheLabs"},
	{"goes on without its caller", claimsVisits(func(s visitStore) claimVisits {
		return func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			return s.ClaimVisits(context.WithoutCancel(ctx), n, now, until)
		}
	}), "Claim/ContextEnded"},
	{"gives a key to everybody", holdsBadly(func(s *badHolds) {
		s.after = func(ctx context.Context, r orders.Record, c orders.Change, err error) (orders.Record, error) {
			var held *orders.HeldError
			if errors.As(err, &held) && len(r.Visits) > 0 {
				r.Visits[0].Keys = []uuid.UUID{uuid.New()}
				return s.Store.Insert(ctx, r, c)
			}
			return orders.Record{}, err
		}
	}), "Hold/BookingKeys"},
	{"does not say what is held", holdsBadly(func(s *badHolds) {
		s.after = func(_ context.Context, _ orders.Record, _ orders.Change, err error) (orders.Record, error) {
			var held *orders.HeldError
			if errors.As(err, &held) {
				return orders.Record{}, healthlab.Conflict
			}
			return orders.Record{}, err
		}
	}), "Hold/BookingKeys"},
	{"never gives anything back", holdsBadly(func(s *badHolds) {
		ever := map[healthlab.TeamID]map[string]orders.OrderID{}
		s.before = func(r *orders.Record) error {
			if ever[r.TeamID] == nil {
				ever[r.TeamID] = map[string]orders.OrderID{}
			}
			for _, name := range r.Holds() {
				if by, taken := ever[r.TeamID][name]; taken && by != r.ID {
					return &orders.HeldError{Name: name}
				}
				ever[r.TeamID][name] = r.ID
			}
			return nil
		}
	}), "Hold/VisitsAtHome"},
}

// visitStore is a store of orders and their appointments.
type visitStore interface {
	orders.Store
	orders.VisitStore
}

func wholeStore() visitStore {
	s, ok := memory.New(nil).Orders().(visitStore)
	if !ok {
		panic("the memory keeps no appointments")
	}
	return s
}

type brokenClaim struct{ claim claimVisits }

func (b brokenClaim) ClaimVisits(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
	return b.claim(ctx, n, now, until)
}

func claimsVisits(how func(visitStore) claimVisits) func(*testing.T) {
	return func(t *testing.T) {
		storetest.RunOrderVisits(t, func(testing.TB) storetest.OrderVisitsHarness {
			s := wholeStore()
			return storetest.OrderVisitsHarness{Orders: s, Visits: brokenClaim{how(s)}}
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
		storetest.RunOrderVisits(t, func(testing.TB) storetest.OrderVisitsHarness {
			s := wholeStore()
			b := &badHolds{Store: s}
			how(b)
			return storetest.OrderVisitsHarness{Orders: b, Visits: s}
		})
	}
}

var slotCacheMutants = []mutant{
	{"keeps what came last", badCache(func(c *brokenCache) {
		later := time.Duration(0)
		c.keep = func(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
			later += time.Hour
			return c.SlotCache.KeepSlots(ctx, lab, at.Add(later), slots)
		}
	}), "Replaced"},
	{"forgets that nothing is free", badCache(func(c *brokenCache) {
		c.read = func(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
			got, err := c.SlotCache.CachedSlots(ctx, lab, sites)
			for site, kept := range got {
				if len(kept.Slots) == 0 {
					delete(got, site)
				}
			}
			return got, err
		}
	}), "Kept"},
	{"mixes labs", badCache(func(c *brokenCache) {
		c.keep = func(ctx context.Context, _ string, at time.Time, slots map[string][]appointment.Slot) error {
			return c.SlotCache.KeepSlots(ctx, "", at, slots)
		}
		c.read = func(ctx context.Context, _ string, sites []string) (map[string]appointment.CachedSlots, error) {
			return c.SlotCache.CachedSlots(ctx, "", sites)
		}
	}), "LabsAreApart"},
	{"hands out its own list", badCache(func(c *brokenCache) {
		own := map[string]appointment.CachedSlots{}
		c.keep = func(_ context.Context, _ string, at time.Time, slots map[string][]appointment.Slot) error {
			for site, list := range slots {
				own[site] = appointment.CachedSlots{At: at, Slots: list}
			}
			return nil
		}
		c.read = func(context.Context, string, []string) (map[string]appointment.CachedSlots, error) { return own, nil }
	}), "NobodyElsesCopy"},
	{"goes on without its caller", badCache(func(c *brokenCache) {
		c.keep = func(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
			return c.SlotCache.KeepSlots(context.WithoutCancel(ctx), lab, at, slots)
		}
	}), "ContextEnded"},
}

type brokenCache struct {
	appointment.SlotCache
	keep func(context.Context, string, time.Time, map[string][]appointment.Slot) error
	read func(context.Context, string, []string) (map[string]appointment.CachedSlots, error)
}

func (c *brokenCache) KeepSlots(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
	if c.keep != nil {
		return c.keep(ctx, lab, at, slots)
	}
	return c.SlotCache.KeepSlots(ctx, lab, at, slots)
}

func (c *brokenCache) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
	if c.read != nil {
		return c.read(ctx, lab, sites)
	}
	return c.SlotCache.CachedSlots(ctx, lab, sites)
}

func badCache(how func(*brokenCache)) func(*testing.T) {
	return func(t *testing.T) {
		storetest.RunSlotCache(t, func(testing.TB) appointment.SlotCache {
			c := &brokenCache{SlotCache: memory.New(nil).SlotCache()}
			how(c)
			return c
		})
	}
}

var centersMutants = []mutant{
	{"counts the page", badCenters(func(n *appointment.CentersNear) { n.Total = len(n.Centers) }, nil), "Near/LikeTheIndex"},
	{"says nothing of what is offered", badCenters(func(n *appointment.CentersNear) { n.Capabilities = nil }, nil), "Near/LikeTheIndex"},
	{"returns the farthest first", badCenters(func(n *appointment.CentersNear) { slices.Reverse(n.Centers) }, nil), "Near/RoundTrip"},
	{"shows a circle a tenth too large", badCenters(nil, func(q *appointment.CenterQuery) { q.Miles *= 1.1 }), "Near/LikeTheIndex"},
	{"asks for no capability", badCenters(nil, func(q *appointment.CenterQuery) { q.Capabilities = nil }), "Near/LikeTheIndex"},
}

type brokenCenters struct {
	appointment.Centers
	spoil func(*appointment.CentersNear)
	ask   func(*appointment.CenterQuery)
}

func (c brokenCenters) CentersNear(ctx context.Context, q appointment.CenterQuery) (appointment.CentersNear, error) {
	if c.ask != nil {
		c.ask(&q)
	}
	near, err := c.Centers.CentersNear(ctx, q)
	if c.spoil != nil {
		c.spoil(&near)
	}
	return near, err
}

func badCenters(spoil func(*appointment.CentersNear), ask func(*appointment.CenterQuery)) func(*testing.T) {
	return func(t *testing.T) {
		storetest.RunCenters(t, func(t testing.TB, list []appointment.Center) appointment.Centers {
			a, err := appointment.NewCenterIndex(list)
			require.NoError(t, err)
			return brokenCenters{a, spoil, ask}
		})
	}
}
