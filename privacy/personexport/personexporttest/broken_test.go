package personexporttest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personexport/personexporttest"
)

//go:generate go run ../../../internal/conformance/gen brokenExports=privacy/personexport.Store

func broken(name, dies string, how func(b *brokenExports)) conformance.Broken {
	return conformance.Broken{Name: name, Subtest: dies, Suite: func(t *testing.T) {
		personexporttest.RunStore(t, func(testing.TB) personexporttest.StoreHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			b := &brokenExports{Store: s.PersonExports()}
			how(b)
			return personexporttest.StoreHarness{Exports: b, Users: s.Users(), SetClock: clock.Set}
		})
	}}
}

var brokenStores = []conformance.Broken{
	broken("does not count exports", "Insert/Most", func(b *brokenExports) {
		b.insert = func(ctx context.Context, j personexport.Job, _ int) error { return b.Store.Insert(ctx, j, 1000) }
	}),
	broken("keeps one job of an id for all teams", "Insert/TwoTeams", func(b *brokenExports) {
		taken := map[personexport.JobID]bool{}
		b.insert = func(ctx context.Context, j personexport.Job, most int) error {
			if taken[j.ID] {
				return healthlab.Conflict
			}
			taken[j.ID] = true
			return b.Store.Insert(ctx, j, most)
		}
	}),
	broken("loses the sum of a file", "RoundTrip", func(b *brokenExports) {
		b.insert = func(ctx context.Context, j personexport.Job, most int) error {
			j = j.Clone()
			for i := range j.Files {
				j.Files[i].CRC = 0
			}
			return b.Store.Insert(ctx, j, most)
		}
	}),
	broken("writes what a failed change has done", "Update/Error", func(b *brokenExports) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id personexport.JobID, change func(*personexport.Job) error) (personexport.Job, error) {
			var failed error
			j, err := b.Store.Update(ctx, team, id, func(j *personexport.Job) error { failed = change(j); return nil })
			if err == nil {
				err = failed
			}
			return j, err
		}
	}),
	broken("lists the newest first", "OfUser", func(b *brokenExports) {
		b.ofUser = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]personexport.Job, error) {
			list, err := b.Store.OfUser(ctx, team, user)
			slices.Reverse(list)
			return list, err
		}
	}),
	broken("claims without a lease", "Claim/Lease", func(b *brokenExports) {
		b.claim = func(ctx context.Context, n int, _ time.Duration) ([]personexport.Job, error) {
			return b.Store.Claim(ctx, n, 0)
		}
	}),
	broken("counts leases from the caller's clock", "Claim/Lease", func(b *brokenExports) {
		b.claim = func(ctx context.Context, n int, lease time.Duration) ([]personexport.Job, error) {
			jobs, err := b.Store.Claim(ctx, n, lease)
			for i := range jobs {
				until := time.Now().Add(lease)
				jobs[i], _ = b.Store.Update(ctx, jobs[i].Team, jobs[i].ID, func(j *personexport.Job) error { j.DueAt = until; return nil })
			}
			return jobs, err
		}
	}),
	broken("shows changes the caller's clock", "Update/StoreTime", func(b *brokenExports) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id personexport.JobID, change func(*personexport.Job) error) (personexport.Job, error) {
			return b.Store.Update(ctx, team, id, func(j *personexport.Job) error { j.StoreTime = time.Now(); return change(j) })
		}
	}),
	broken("keeps what is deleted", "Delete", func(b *brokenExports) {
		b.delete = func(ctx context.Context, _ healthlab.TeamID, _ personexport.JobID) error { return ctx.Err() }
	}),
}

func TestBrokenStores_eachFailsTheSuite(t *testing.T) { conformance.RunBroken(t, brokenStores) }
