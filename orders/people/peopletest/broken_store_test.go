package peopletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
)

// brokenPersons is a store of persons with methods replaced.
type brokenPersons struct {
	overriddenPersons

	add func(context.Context, people.Coverage) error

	teams []healthlab.TeamID
}

func (b *brokenPersons) AddCoverage(ctx context.Context, c people.Coverage) error {
	b.teams = append(b.teams, c.Team)
	if b.add != nil {
		return b.add(ctx, c)
	}
	return b.Store.AddCoverage(ctx, c)
}

func spoiltPersons(spoil func(*brokenPersons)) func(*testing.T) {
	return func(t *testing.T) {
		peopletest.RunStore(t, func(testing.TB) peopletest.StoreHarness {
			s := memory.New(nil)
			b := &brokenPersons{overriddenPersons: overriddenPersons{Store: s.Persons()}}
			spoil(b)
			return peopletest.StoreHarness{Persons: b, Users: s.Users()}
		})
	}
}

// brokenStores are stores of persons that break one promise each.
var brokenStores = []conformance.Broken{
	{Name: "keeps the first demographics", Suite: spoiltPersons(func(b *brokenPersons) {
		b.putUserInfo = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info people.UserInfo) error {
			if _, err := b.UserInfo(ctx, team, user); err == nil {
				return nil
			}
			return b.Store.PutUserInfo(ctx, team, user, info)
		}
	}), Subtest: "Info/RoundTrip"},
	{Name: "shows other teams' records", Suite: spoiltPersons(func(b *brokenPersons) {
		b.coverage = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error) {
			for _, other := range b.teams {
				if c, err := b.Store.Coverage(ctx, other, id); err == nil {
					return c, nil
				}
			}
			return b.Store.Coverage(ctx, team, id)
		}
	}), Subtest: "Coverage/OtherTeam"},
	{Name: "asks for the latest record only", Suite: spoiltPersons(func(b *brokenPersons) {
		b.coverageAt = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, _ time.Time) (people.Coverage, error) {
			return b.Store.CoverageAt(ctx, team, user, primary, time.Time{})
		}
	}), Subtest: "Coverage/Validity"},
	{Name: "forgets what is primary", Suite: spoiltPersons(func(b *brokenPersons) {
		b.coverageAt = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, _ bool, at time.Time) (people.Coverage, error) {
			return b.Store.CoverageAt(ctx, team, user, true, at)
		}
	}), Subtest: "Coverage/Validity"},
	{Name: "believes a slow clock", Suite: spoiltPersons(func(b *brokenPersons) {
		b.coverageAt = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (people.Coverage, error) {
			if at.IsZero() {
				at = time.Date(2026, 3, 2, 12, 0, 0, 123456000, time.UTC)
			}
			return b.Store.CoverageAt(ctx, team, user, primary, at)
		}
	}), Subtest: "Coverage/LaterCallWins"},
	{Name: "mixes teams' payors", Suite: spoiltPersons(func(b *brokenPersons) {
		b.payors = func(ctx context.Context, team healthlab.TeamID) ([]people.StoredPayor, error) {
			own, err := b.Store.Payors(ctx, team)
			if err != nil || len(own) == 0 {
				return own, err
			}
			return append(own, own[0]), nil
		}
	}), Subtest: "Payors/RoundTrip"},
	{Name: "goes on without its caller", Suite: spoiltPersons(func(b *brokenPersons) {
		b.putUserInfo = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info people.UserInfo) error {
			return b.Store.PutUserInfo(context.WithoutCancel(ctx), team, user, info)
		}
	}), Subtest: "ContextEnded"},
}
