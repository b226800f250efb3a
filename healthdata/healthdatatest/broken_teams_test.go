package healthdatatest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

type choicesChange = func(healthdata.TeamChoices) (healthdata.TeamChoices, error)

// brokenTeams is a store of choices with one thing wrong.
type brokenTeams struct {
	overriddenTeams

	update func(context.Context, healthlab.TeamID, choicesChange) (healthdata.TeamChoices, error)
}

func (b *brokenTeams) UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(healthdata.TeamChoices) (healthdata.TeamChoices, error)) (healthdata.TeamChoices, error) {
	return b.update(ctx, team, change)
}

func teamMutant(name, dies string, how func(b *brokenTeams)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		b := &brokenTeams{overriddenTeams: overriddenTeams{TeamStore: memory.New(nil).Teams()}}
		b.update = b.TeamStore.UpdateChoices
		how(b)
		healthdatatest.RunTeamStore(t, b)
	}, Subtest: dies}
}

var brokenTeamStores = []conformance.Broken{
	teamMutant("keeps one value for all teams", "RoundTrip", func(b *brokenTeams) {
		b.choices = func(ctx context.Context, _ healthlab.TeamID) (healthdata.TeamChoices, error) {
			return b.TeamStore.Choices(ctx, healthlab.TeamID{})
		}
		b.update = func(ctx context.Context, _ healthlab.TeamID, change choicesChange) (healthdata.TeamChoices, error) {
			return b.TeamStore.UpdateChoices(ctx, healthlab.TeamID{}, change)
		}
	}),
	teamMutant("never takes a choice away", "RoundTrip", func(b *brokenTeams) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (healthdata.TeamChoices, error) {
			return b.TeamStore.UpdateChoices(ctx, team, func(old healthdata.TeamChoices) (healthdata.TeamChoices, error) {
				had := old.Brand
				next, err := change(old)
				if next.Brand == nil {
					next.Brand = had
				}
				return next, err
			})
		}
	}),
	teamMutant("writes what change refused", "Refused", func(b *brokenTeams) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (healthdata.TeamChoices, error) {
			var own error
			c, err := b.TeamStore.UpdateChoices(ctx, team, func(old healthdata.TeamChoices) (c healthdata.TeamChoices, _ error) {
				c, own = change(old)
				return c, nil
			})
			return c, errors.Join(err, own)
		}
	}),
	teamMutant("shares what it keeps", "Aliasing", func(b *brokenTeams) {
		var mu sync.Mutex
		kept := map[healthlab.TeamID]healthdata.TeamChoices{}
		b.choices = func(_ context.Context, team healthlab.TeamID) (healthdata.TeamChoices, error) {
			mu.Lock()
			defer mu.Unlock()
			return kept[team], nil
		}
		b.update = func(_ context.Context, team healthlab.TeamID, change choicesChange) (healthdata.TeamChoices, error) {
			mu.Lock()
			defer mu.Unlock()
			c, err := change(kept[team])
			if err == nil {
				kept[team] = c
			}
			return c, err
		}
	}),
	teamMutant("loses one of two updates", "NoLostUpdates", func(b *brokenTeams) {
		b.update = func(ctx context.Context, team healthlab.TeamID, change choicesChange) (healthdata.TeamChoices, error) {
			old, err := b.TeamStore.Choices(ctx, team)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			next, err := change(old)
			if err != nil {
				return next, err
			}
			return b.TeamStore.UpdateChoices(ctx, team, func(healthdata.TeamChoices) (healthdata.TeamChoices, error) { return next, nil })
		}
	}),
}
