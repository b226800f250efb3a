package linkingtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

type appChange = func(*linking.AppSession) error

// brokenApps passes on what it is not told to break.
type brokenApps struct {
	overriddenApps

	mine map[uuid.UUID]*linking.AppSession
}

func appMutant(name, dies string, how func(b *brokenApps)) conformance.Broken {
	return conformance.Broken{Name: "apps: " + name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenApps{overriddenApps: overriddenApps{AppSessions: s.Apps()}, mine: map[uuid.UUID]*linking.AppSession{}}
		how(b)
		linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: b, Users: s.Users()})
	}, Subtest: dies}
}

var brokenAppStores = []conformance.Broken{
	appMutant("forgets the token before", "RoundTrip", func(b *brokenApps) {
		b.insertApp = func(ctx context.Context, a linking.AppSession) error {
			a.Previous = linking.TokenHash{}
			return b.AppSessions.InsertApp(ctx, a)
		}
	}),
	appMutant("ignores the team", "OtherTeam", func(b *brokenApps) {
		b.insertApp = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				b.mine[a.ID] = &a
			}
			return err
		}
		b.app = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			if a := b.mine[id]; a != nil {
				team = a.Team
			}
			return b.AppSessions.App(ctx, team, id)
		}
	}),
	appMutant("replaces what is there", "Refused", func(b *brokenApps) {
		b.insertApp = func(ctx context.Context, a linking.AppSession) error {
			if err := b.AppSessions.InsertApp(ctx, a); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	appMutant("writes what change refused", "ErrorWritesNothing", func(b *brokenApps) {
		b.updateApp = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
			var own error
			a, err := b.AppSessions.UpdateApp(ctx, team, id, func(a *linking.AppSession) error {
				own = change(a)
				return nil
			})
			return a, errors.Join(err, own)
		}
	}),
	appMutant("loses updates", "NoLostUpdates", func(b *brokenApps) {
		b.updateApp = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
			old, err := b.AppSessions.App(ctx, team, id)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.AppSessions.UpdateApp(ctx, team, id, func(a *linking.AppSession) error {
				*a = old
				return change(a)
			})
		}
	}),
	appMutant("keeps the caller's memory", "Aliasing", func(b *brokenApps) {
		b.insertApp = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				b.mine[a.ID] = &a
			}
			return err
		}
		b.app = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			a, err := b.AppSessions.App(ctx, team, id)
			if m := b.mine[id]; err == nil && m != nil && len(a.Access) == len(m.Access) {
				a.Access = m.Access
			}
			return a, err
		}
	}),
	appMutant("deletes another user's", "Deleted", func(b *brokenApps) {
		b.deleteApps = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
			if a, err := b.App(ctx, team, id); err == nil {
				user = a.User
			}
			return b.AppSessions.DeleteApps(ctx, team, user, id)
		}
	}),
	appMutant("deletes all for one", "Deleted", func(b *brokenApps) {
		b.deleteApps = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, _ uuid.UUID) (int, error) {
			return b.AppSessions.DeleteApps(ctx, team, user, uuid.Nil)
		}
	}),
	appMutant("outlives a deleted user", "GoneWithItsUser", func(b *brokenApps) {
		last := map[uuid.UUID]linking.AppSession{}
		b.app = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			a, err := b.AppSessions.App(ctx, team, id)
			if a, was := last[id]; was && a.Team == team && errors.Is(err, healthlab.NotFound) {
				return a, nil
			}
			return a, err
		}
		b.insertApp = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				last[a.ID] = a
			}
			return err
		}
		b.deleteApps = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
			delete(last, id)
			return b.AppSessions.DeleteApps(ctx, team, user, id)
		}
	}),
	appMutant("goes on without its caller", "Ended", func(b *brokenApps) {
		b.updateApp = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
			return b.AppSessions.UpdateApp(context.WithoutCancel(ctx), team, id, change)
		}
	}),
}
