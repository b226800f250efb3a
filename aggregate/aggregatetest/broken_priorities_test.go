package aggregatetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

type priorityChange = func([]aggregate.Priority) ([]aggregate.Priority, error)

func priorityMutant(name, dies string, how func(b *brokenPriorities)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenPriorities{PriorityStore: s.Priorities()}
		how(b)
		aggregatetest.RunPriorityStore(t, b, aggregatetest.ContinuousHarness{
			Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
		})
	}, Subtest: dies}
}

var brokenPriorityStores = []conformance.Broken{
	priorityMutant("schedules nothing", "ChangesMakeTablesAnew", func(b *brokenPriorities) {
		kept := map[healthlab.TeamID][]aggregate.Priority{}
		b.priorities = func(_ context.Context, team healthlab.TeamID) ([]aggregate.Priority, error) {
			return slices.Clone(kept[team]), nil
		}
		b.updatePriorities = func(_ context.Context, team healthlab.TeamID, change priorityChange) ([]aggregate.Priority, error) {
			list, err := change(slices.Clone(kept[team]))
			if err == nil {
				kept[team] = slices.Clone(list)
			}
			return list, err
		}
	}),
	priorityMutant("schedules without a change", "ChangesMakeTablesAnew", func(b *brokenPriorities) {
		b.updatePriorities = func(ctx context.Context, team healthlab.TeamID, change priorityChange) ([]aggregate.Priority, error) {
			spoil := func(old []aggregate.Priority) ([]aggregate.Priority, error) {
				return append(slices.Clone(old), aggregate.Priority{Provider: "spoilt"}), nil
			}
			old, err := b.PriorityStore.Priorities(ctx, team)
			if err == nil && len(old) > 0 {
				_, err = b.PriorityStore.UpdatePriorities(ctx, team, spoil)
			}
			if err != nil {
				return nil, err
			}
			return b.PriorityStore.UpdatePriorities(ctx, team, func([]aggregate.Priority) ([]aggregate.Priority, error) { return change(old) })
		}
	}),
	priorityMutant("keeps one list for all teams", "RoundTrip", func(b *brokenPriorities) {
		b.priorities = func(ctx context.Context, _ healthlab.TeamID) ([]aggregate.Priority, error) {
			return b.PriorityStore.Priorities(ctx, healthlab.TeamID{})
		}
		b.updatePriorities = func(ctx context.Context, _ healthlab.TeamID, change priorityChange) ([]aggregate.Priority, error) {
			return b.PriorityStore.UpdatePriorities(ctx, healthlab.TeamID{}, change)
		}
	}),
	priorityMutant("writes what change refused", "Refused", func(b *brokenPriorities) {
		b.updatePriorities = func(ctx context.Context, team healthlab.TeamID, change priorityChange) ([]aggregate.Priority, error) {
			var own error
			list, err := b.PriorityStore.UpdatePriorities(ctx, team, func(old []aggregate.Priority) (list []aggregate.Priority, _ error) {
				list, own = change(old)
				return list, nil
			})
			return list, errors.Join(err, own)
		}
	}),
}
