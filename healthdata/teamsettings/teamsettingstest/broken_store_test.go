package teamsettingstest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

type choicesChange = func(teamsettings.Choices) (teamsettings.Choices, error)

// brokenStore is a store of choices with one thing wrong.
type brokenStore struct {
	overriddenStore

	update func(context.Context, healthlab.TeamID, choicesChange) (teamsettings.Choices, error)
}

func (b *brokenStore) UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(teamsettings.Choices) (teamsettings.Choices, error)) (teamsettings.Choices, error) {
	return b.update(ctx, team, change)
}

func teamMutant(name, dies string, how func(b *brokenStore)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		b := &brokenStore{overriddenStore: overriddenStore{Store: memory.New(nil).Teams()}}
		b.update = b.Store.UpdateChoices
		how(b)
		teamsettingstest.RunStore(t, b)
	}, Subtest: dies}
}

var brokenStores = []conformance.Broken{
	teamMutant("keeps one value for all teams", "RoundTrip", func(b *brokenStore) {
		b.choices = func(ctx context.Context, _ healthlab.TeamID) (teamsettings.Choices, error) {
			return b.Store.Choices(ctx, healthlab.TeamID{})
		}
		b.update = func(ctx context.Context, _ healthlab.TeamID, change choicesChange) (teamsettings.Choices, error) {
			return b.Store.UpdateChoices(ctx, healthlab.TeamID{}, change)
		}
	}),
	teamMutant("never takes a choice away", "RoundTrip", func(b *brokenStore) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (teamsettings.Choices, error) {
			return b.Store.UpdateChoices(ctx, team, func(old teamsettings.Choices) (teamsettings.Choices, error) {
				had := old.Brand
				next, err := change(old)
				if next.Brand == nil {
					next.Brand = had
				}
				return next, err
			})
		}
	}),
	teamMutant("writes what change refused", "Refused", func(b *brokenStore) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (teamsettings.Choices, error) {
			var own error
			c, err := b.Store.UpdateChoices(ctx, team, func(old teamsettings.Choices) (c teamsettings.Choices, _ error) {
				c, own = change(old)
				return c, nil
			})
			return c, errors.Join(err, own)
		}
	}),
	teamMutant("shares what it keeps", "Aliasing", func(b *brokenStore) {
		var mu sync.Mutex
		kept := map[healthlab.TeamID]teamsettings.Choices{}
		b.choices = func(_ context.Context, team healthlab.TeamID) (teamsettings.Choices, error) {
			mu.Lock()
			defer mu.Unlock()
			return kept[team], nil
		}
		b.update = func(_ context.Context, team healthlab.TeamID, change choicesChange) (teamsettings.Choices, error) {
			mu.Lock()
			defer mu.Unlock()
			c, err := change(kept[team])
			if err == nil {
				kept[team] = c
			}
			return c, err
		}
	}),
	teamMutant("loses one of two updates", "NoLostUpdates", func(b *brokenStore) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (teamsettings.Choices, error) {
			old, err := b.Store.Choices(ctx, team)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			next, err := change(old)
			if err != nil {
				return next, err
			}
			return b.Store.UpdateChoices(ctx, team, func(teamsettings.Choices) (teamsettings.Choices, error) { return next, nil })
		}
	}),
}
