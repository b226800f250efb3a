package storetest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// brokenBulk reads in a way of its own.
type brokenBulk struct {
	bulk.Store
	held func(context.Context, bulk.HeldQuery) ([]bulk.Held, error)
}

func (b *brokenBulk) Held(ctx context.Context, q bulk.HeldQuery) ([]bulk.Held, error) {
	return b.held(ctx, q)
}

func bulkMutant(name, dies string, how func(context.Context, *memory.Store, bulk.HeldQuery) ([]bulk.Held, error)) mutant {
	return mutant{"bulk: " + name, func(t *testing.T) {
		s := memory.New(nil)
		storetest.RunBulk(t, storetest.BulkHarness{
			Bulk: &brokenBulk{s.Bulk(), func(ctx context.Context, q bulk.HeldQuery) ([]bulk.Held, error) { return how(ctx, s, q) }},
			Linking: storetest.LinkingHarness{
				Linking: s.Linking(), Grants: s.Grants(), Second: s.Grants(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
			},
		})
	}, dies}
}

var bulkMutants = []mutant{
	bulkMutant("forgets the scopes", "RoundTrip", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		for i := range list {
			list[i].Scopes = nil
		}
		return list, err
	}),
	bulkMutant("ignores the team", "OtherTeam", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		if err == nil && len(list) == 0 && len(q.Users) == 1 {
			return []bulk.Held{{}}, nil
		}
		return list, err
	}),
	bulkMutant("begins with whom it should begin after", "Pages", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if n := len(q.After.UUID) - 1; !q.After.IsZero() {
			q.After.UUID[n]--
		}
		return s.Bulk().Held(ctx, q)
	}),
	bulkMutant("returns the last page first", "Pages", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		slices.Reverse(list)
		return list, err
	}),
	bulkMutant("takes nobody for everybody", "Users", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if len(q.Users) == 0 {
			q.Users = nil
		}
		return s.Bulk().Held(ctx, q)
	}),
	bulkMutant("leaves out what is paused", "Statuses", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		return slices.DeleteFunc(list, func(h bulk.Held) bool {
			u, _ := s.Users().Get(ctx, h.Team, h.User)
			return u.Connection(h.Provider).Status == healthdata.Paused
		}), err
	}),
	bulkMutant("goes on without its caller", "Refused", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		return s.Bulk().Held(context.WithoutCancel(ctx), q)
	}),
	bulkMutant("takes any text", "Refused", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if q.Provider != "acme_scale" {
			return nil, ctx.Err()
		}
		return s.Bulk().Held(ctx, q)
	}),
}
