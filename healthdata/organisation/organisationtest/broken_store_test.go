package organisationtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func organisationMutant(name, dies string, how func(b *brokenOrganisations)) conformance.Broken {
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenOrganisations{Store: s.Organisations()}
		how(b)
		organisationtest.RunStore(t, organisationtest.StoreHarness{Organisations: b, Users: s.Users(), Choices: s.Teams(), Clients: s.TeamClients()})
	}, Subtest: dies}
}

var brokenStores = []conformance.Broken{
	organisationMutant("lists teams of all organisations", "List", func(b *brokenOrganisations) {
		orgs := map[uuid.UUID]bool{}
		b.insertTeam = func(ctx context.Context, t organisation.Team) error {
			orgs[t.Org] = true
			return b.Store.InsertTeam(ctx, t)
		}
		b.teams = func(ctx context.Context, q organisation.Query) (all []organisation.Team, err error) {
			for org := range orgs {
				q.Org = org
				list, err := b.Store.Teams(ctx, q)
				if all = append(all, list...); err != nil {
					return nil, err
				}
			}
			return all, nil
		}
	}),
	organisationMutant("takes an integration id twice", "IntegrationIDs", func(b *brokenOrganisations) {
		b.insertTeam = func(ctx context.Context, t organisation.Team) error {
			err := b.Store.InsertTeam(ctx, t)
			var taken *organisation.IntegrationTakenError
			if errors.As(err, &taken) {
				t.IntegrationID = ""
				err = b.Store.InsertTeam(ctx, t)
			}
			return err
		}
	}),
	organisationMutant("changes teams of other organisations", "Refused", func(b *brokenOrganisations) {
		b.updateTeam = func(ctx context.Context, _ uuid.UUID, id healthlab.TeamID, change func(*organisation.Team) error) (organisation.Team, error) {
			t, err := b.Store.Team(ctx, id)
			if err != nil {
				return t, err
			}
			return b.Store.UpdateTeam(ctx, t.Org, id, change)
		}
	}),
	organisationMutant("loses one of two updates", "NoLostUpdates", func(b *brokenOrganisations) {
		b.updateTeam = func(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*organisation.Team) error) (organisation.Team, error) {
			t, err := b.Store.Team(ctx, id)
			if err != nil {
				return t, err
			}
			conformance.Pause()
			if err := change(&t); err != nil {
				return t, err
			}
			return b.Store.UpdateTeam(ctx, org, id, func(x *organisation.Team) error { *x = t; return nil })
		}
	}),
	organisationMutant("leaves the keys of a deleted team", "Delete", func(b *brokenOrganisations) {
		b.deleteTeam = func(ctx context.Context, org uuid.UUID, id healthlab.TeamID) error {
			keys, _ := b.Store.Keys(ctx, id)
			err := b.Store.DeleteTeam(ctx, org, id)
			if err == nil && len(keys) > 0 {
				other := organisation.Team{ID: healthlab.TeamID{UUID: uuid.New()}, Org: org, Name: "x", CreatedAt: time.Now(), UpdatedAt: time.Now()}
				_ = b.Store.InsertTeam(ctx, other)
				keys[0].Team = other.ID
				_ = b.Store.InsertKey(ctx, keys[0], 9)
			}
			return err
		}
	}),
	organisationMutant("counts no keys", "KeysRefused", func(b *brokenOrganisations) {
		b.insertKey = func(ctx context.Context, k organisation.Key, _ int) error { return b.Store.InsertKey(ctx, k, 1000) }
	}),
	organisationMutant("deletes keys of other teams", "Keys", func(b *brokenOrganisations) {
		b.deleteKey = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
			if k, err := b.Store.Key(ctx, id); err == nil {
				team = k.Team
			}
			return b.Store.DeleteKey(ctx, team, id)
		}
	}),
	organisationMutant("forgets the scopes of a key", "Keys", func(b *brokenOrganisations) {
		b.insertKey = func(ctx context.Context, k organisation.Key, most int) error {
			k.Scopes = nil
			return b.Store.InsertKey(ctx, k, most)
		}
	}),
	organisationMutant("leaves a rotated key without expiry", "RotateKey", func(b *brokenOrganisations) {
		b.rotateKey = func(ctx context.Context, id uuid.UUID, _ time.Time, next organisation.Key, most int) error {
			if k, err := b.Store.Key(ctx, id); err != nil || k.Team != next.Team {
				return healthlab.NotFound
			}
			return b.Store.InsertKey(ctx, next, most)
		}
	}),
	organisationMutant("records uses of keys of other teams", "TouchKey", func(b *brokenOrganisations) {
		b.touchKey = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error {
			if k, err := b.Store.Key(ctx, id); err == nil {
				team = k.Team
			}
			return b.Store.TouchKey(ctx, team, id, at)
		}
	}),
}
