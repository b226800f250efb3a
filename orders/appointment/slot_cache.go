package appointment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// RunCache refreshes the cache of free slots until ctx ends. About every minute it queries each lab that takes
// appointments for the free slots of the next three weeks at its bookable centers, by site code, as far as it gets
// within [Options].Lease. The lease ensures that one process at a time queries a lab. Without a cache RunCache returns
// at once.
func (s *Service) RunCache(ctx context.Context) error {
	if !s.caches() {
		return nil
	}
	loop := &work.Loop[struct{}]{
		Name: "slot cache", Workers: 1, Idle: min(cachedEvery/4, max(s.opts.Idle, time.Second)), Log: s.opts.Log,
		Claim: func(ctx context.Context, _ int) ([]struct{}, error) {
			_, err := s.RefreshSlots(ctx)
			return nil, err
		},
		Do: func(context.Context, struct{}) error { return nil },
	}
	return loop.Run(ctx)
}

// RefreshSlots refreshes the cached slots of each lab whose last refresh was more than a minute ago. It returns the
// number of centers whose slots it queried. Hosts with a scheduler of their own call it in place of RunCache.
func (s *Service) RefreshSlots(ctx context.Context) (int, error) {
	if !s.caches() {
		return 0, nil
	}
	asked := 0
	var faults []error
	for _, p := range s.opts.Providers {
		if p.Type != PatientServiceCenter {
			continue
		}
		n, err := s.refreshLab(ctx, p.Slug)
		asked, faults = asked+n, append(faults, err)
	}
	return asked, errors.Join(faults...)
}

// refreshLab refreshes the cached slots of the lab with the given slug, and returns the number of queried centers. It
// does nothing if another process has the lease, or if the last refresh, whose time is the cursor in [Feeds], was less
// than a minute ago. It stops before the lease ends, even if it has not queried all centers.
func (s *Service) refreshLab(ctx context.Context, slug string) (int, error) {
	const batch = 25
	now := s.now()
	feed := "slots of " + slug
	last, until, err := s.opts.Feeds.ClaimFeed(ctx, feed, s.opts.Lease)
	if err != nil || until.IsZero() {
		return 0, err
	}
	if t, err := time.Parse(time.RFC3339Nano, last); err == nil && now.Sub(t) < cachedEvery {
		return 0, s.opts.Feeds.MoveFeed(ctx, feed, until, last)
	}
	lab, err := s.labBySlug(ctx, slug)
	asked := 0
	for after := ""; err == nil; {
		var sites []Center
		if sites, err = s.opts.Centers.NextCenters(ctx, lab.ID, PSCSchedulingViaService, after, batch); err != nil || len(sites) == 0 {
			break
		}
		at := s.now()
		var all []Slot
		if all, err = s.fetchSlots(ctx, SlotQuery{Type: PatientServiceCenter, Lab: slug, Sites: sites, From: at, To: at.Add(cachedDays * 24 * time.Hour)}, at); err != nil {
			break
		}
		if err = s.opts.SlotCache.PutSlots(ctx, slug, at, bySite(sites, all)); err != nil {
			break
		}
		asked += len(sites)
		after = sites[len(sites)-1].SiteCode
		if len(sites) < batch || !s.now().Before(now.Add(s.opts.Lease-s.opts.LabTimeout)) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("refresh slots: %w", err)
	}
	return asked, errors.Join(err, s.opts.Feeds.MoveFeed(context.WithoutCancel(ctx), feed, until, now.Format(time.RFC3339Nano)))
}

func (s *Service) caches() bool {
	return s.opts.SlotCache != nil && s.opts.Feeds != nil && s.slots != nil && s.opts.Centers != nil
}
