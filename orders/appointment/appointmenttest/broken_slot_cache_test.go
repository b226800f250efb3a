package appointmenttest_test

import (
	"context"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
)

var brokenSlotCaches = []conformance.Broken{
	{Name: "keeps what came last", Suite: badCache(func(c *brokenCache) {
		later := time.Duration(0)
		c.putSlots = func(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
			later += time.Hour
			return c.SlotCache.PutSlots(ctx, lab, at.Add(later), slots)
		}
	}), Subtest: "Replaced"},
	{Name: "forgets that nothing is free", Suite: badCache(func(c *brokenCache) {
		c.cachedSlots = func(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
			got, err := c.SlotCache.CachedSlots(ctx, lab, sites)
			for site, kept := range got {
				if len(kept.Slots) == 0 {
					delete(got, site)
				}
			}
			return got, err
		}
	}), Subtest: "Kept"},
	{Name: "mixes labs", Suite: badCache(func(c *brokenCache) {
		c.putSlots = func(ctx context.Context, _ string, at time.Time, slots map[string][]appointment.Slot) error {
			return c.SlotCache.PutSlots(ctx, "", at, slots)
		}
		c.cachedSlots = func(ctx context.Context, _ string, sites []string) (map[string]appointment.CachedSlots, error) {
			return c.SlotCache.CachedSlots(ctx, "", sites)
		}
	}), Subtest: "LabsAreApart"},
	{Name: "hands out its own list", Suite: badCache(func(c *brokenCache) {
		own := map[string]appointment.CachedSlots{}
		c.putSlots = func(_ context.Context, _ string, at time.Time, slots map[string][]appointment.Slot) error {
			for site, list := range slots {
				own[site] = appointment.CachedSlots{At: at, Slots: list}
			}
			return nil
		}
		c.cachedSlots = func(context.Context, string, []string) (map[string]appointment.CachedSlots, error) { return own, nil }
	}), Subtest: "NobodyElsesCopy"},
	{Name: "goes on without its caller", Suite: badCache(func(c *brokenCache) {
		c.putSlots = func(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
			return c.SlotCache.PutSlots(context.WithoutCancel(ctx), lab, at, slots)
		}
	}), Subtest: "ContextEnded"},
}

func badCache(how func(*brokenCache)) func(*testing.T) {
	return func(t *testing.T) {
		appointmenttest.RunSlotCache(t, func(testing.TB) appointment.SlotCache {
			c := &brokenCache{SlotCache: memory.New(nil).SlotCache()}
			how(c)
			return c
		})
	}
}
