package cataloguetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
)

// brokenLabTests passes on what it is not told to break.
type brokenLabTests struct {
	overriddenLabTests
	mu     sync.Mutex
	owners map[catalogue.LabTestID]healthlab.TeamID

	insert func(context.Context, catalogue.TeamTest) error
}

func (b *brokenLabTests) InsertLabTest(ctx context.Context, t catalogue.TeamTest) error {
	b.mu.Lock()
	b.owners[t.ID] = t.Team
	b.mu.Unlock()
	if b.insert != nil {
		return b.insert(ctx, t)
	}
	return b.LabTestStore.InsertLabTest(ctx, t)
}

func labTestMutant(name, dies string, how func(*brokenLabTests)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		cataloguetest.RunLabTestStore(t, func(testing.TB) catalogue.LabTestStore {
			b := &brokenLabTests{overriddenLabTests: overriddenLabTests{LabTestStore: memory.New(nil).LabTests()}, owners: map[catalogue.LabTestID]healthlab.TeamID{}}
			how(b)
			return b
		})
	}, Subtest: dies}
}

var brokenLabTestStores = []conformance.Broken{
	labTestMutant("hand out what they keep", "RoundTrip", func(b *brokenLabTests) {
		kept := map[healthlab.TeamID][]catalogue.TeamTest{}
		b.teamTests = func(ctx context.Context, team healthlab.TeamID, q catalogue.TeamTestQuery) ([]catalogue.TeamTest, error) {
			if kept[team] == nil {
				kept[team], _ = b.LabTestStore.TeamTests(ctx, team, q)
			}
			return kept[team], nil
		}
	}),
	labTestMutant("take an id twice", "Duplicate", func(b *brokenLabTests) {
		b.insert = func(ctx context.Context, t catalogue.TeamTest) error {
			if err := b.LabTestStore.InsertLabTest(ctx, t); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	labTestMutant("cut text at a NUL", "NULRefused", func(b *brokenLabTests) {
		b.insert = func(ctx context.Context, t catalogue.TeamTest) error {
			t.Description, _, _ = strings.Cut(t.Description, "\x00")
			return b.LabTestStore.InsertLabTest(ctx, t)
		}
	}),
	labTestMutant("list the latest first", "Order", func(b *brokenLabTests) {
		b.teamTests = func(ctx context.Context, team healthlab.TeamID, q catalogue.TeamTestQuery) ([]catalogue.TeamTest, error) {
			all, err := b.LabTestStore.TeamTests(ctx, team, q)
			slices.Reverse(all)
			return all, err
		}
	}),
	labTestMutant("find whatever was asked for", "Asked", func(b *brokenLabTests) {
		b.teamTests = func(ctx context.Context, team healthlab.TeamID, _ catalogue.TeamTestQuery) ([]catalogue.TeamTest, error) {
			return b.LabTestStore.TeamTests(ctx, team, catalogue.TeamTestQuery{})
		}
	}),
	labTestMutant("edit other teams' tests", "Update", func(b *brokenLabTests) {
		b.updateLabTest = func(ctx context.Context, _ healthlab.TeamID, id catalogue.LabTestID, change func(*catalogue.TeamTest) error) (catalogue.TeamTest, error) {
			return b.LabTestStore.UpdateLabTest(ctx, b.owners[id], id, change)
		}
	}),
	labTestMutant("write what change refused", "Update", func(b *brokenLabTests) {
		b.updateLabTest = func(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID, change func(*catalogue.TeamTest) error) (catalogue.TeamTest, error) {
			var own error
			t, err := b.LabTestStore.UpdateLabTest(ctx, team, id, func(t *catalogue.TeamTest) error {
				own = change(t)
				return nil
			})
			return t, errors.Join(own, err)
		}
	}),
	labTestMutant("lose updates", "NoLostUpdates", func(b *brokenLabTests) {
		b.updateLabTest = func(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID, change func(*catalogue.TeamTest) error) (catalogue.TeamTest, error) {
			all, err := b.LabTestStore.TeamTests(ctx, team, catalogue.TeamTestQuery{})
			i := slices.IndexFunc(all, func(t catalogue.TeamTest) bool { return t.ID == id })
			if err != nil || i < 0 {
				return catalogue.TeamTest{}, errors.Join(err, healthlab.NotFound)
			}
			conformance.Pause()
			return b.LabTestStore.UpdateLabTest(ctx, team, id, func(t *catalogue.TeamTest) error {
				*t = all[i]
				return change(t)
			})
		}
	}),
	labTestMutant("go on without their caller", "Context", func(b *brokenLabTests) {
		b.insert = func(ctx context.Context, t catalogue.TeamTest) error {
			return b.LabTestStore.InsertLabTest(context.WithoutCancel(ctx), t)
		}
	}),
}
