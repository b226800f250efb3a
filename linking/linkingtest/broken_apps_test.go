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
	linking.AppSessions
	insert func(context.Context, linking.AppSession) error
	read   func(context.Context, healthlab.TeamID, uuid.UUID) (linking.AppSession, error)
	update func(context.Context, healthlab.TeamID, uuid.UUID, appChange) (linking.AppSession, error)
	delete func(context.Context, healthlab.TeamID, healthlab.UserID, uuid.UUID) (int, error)
	mine   map[uuid.UUID]*linking.AppSession
}

func (b *brokenApps) InsertApp(ctx context.Context, a linking.AppSession) error {
	if b.insert != nil {
		return b.insert(ctx, a)
	}
	return b.AppSessions.InsertApp(ctx, a)
}

func (b *brokenApps) App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	if b.read != nil {
		return b.read(ctx, team, id)
	}
	return b.AppSessions.App(ctx, team, id)
}

func (b *brokenApps) UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*linking.AppSession) error) (linking.AppSession, error) {
	if b.update != nil {
		return b.update(ctx, team, id, change)
	}
	return b.AppSessions.UpdateApp(ctx, team, id, change)
}

func (b *brokenApps) DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
	if b.delete != nil {
		return b.delete(ctx, team, user, id)
	}
	return b.AppSessions.DeleteApps(ctx, team, user, id)
}

func appMutant(name, dies string, how func(b *brokenApps)) conformance.Broken {
	return conformance.Broken{Name: "apps: " + name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenApps{AppSessions: s.Apps(), mine: map[uuid.UUID]*linking.AppSession{}}
		how(b)
		linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: b, Users: s.Users()})
	}, Subtest: dies}
}

var brokenAppStores = []conformance.Broken{
	appMutant("forgets the token before", "RoundTrip", func(b *brokenApps) {
		b.insert = func(ctx context.Context, a linking.AppSession) error {
			a.Previous = linking.TokenHash{}
			return b.AppSessions.InsertApp(ctx, a)
		}
	}),
	appMutant("ignores the team", "OtherTeam", func(b *brokenApps) {
		b.insert = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				b.mine[a.ID] = &a
			}
			return err
		}
		b.read = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			if a := b.mine[id]; a != nil {
				team = a.Team
			}
			return b.AppSessions.App(ctx, team, id)
		}
	}),
	appMutant("replaces what is there", "Refused", func(b *brokenApps) {
		b.insert = func(ctx context.Context, a linking.AppSession) error {
			if err := b.AppSessions.InsertApp(ctx, a); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	appMutant("writes what change refused", "ErrorWritesNothing", func(b *brokenApps) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
			var own error
			a, err := b.AppSessions.UpdateApp(ctx, team, id, func(a *linking.AppSession) error {
				own = change(a)
				return nil
			})
			return a, errors.Join(err, own)
		}
	}),
	appMutant("loses updates", "NoLostUpdates", func(b *brokenApps) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
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
		b.insert = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				b.mine[a.ID] = &a
			}
			return err
		}
		b.read = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			a, err := b.AppSessions.App(ctx, team, id)
			if m := b.mine[id]; err == nil && m != nil && len(a.Access) == len(m.Access) {
				a.Access = m.Access
			}
			return a, err
		}
	}),
	appMutant("deletes another user's", "Deleted", func(b *brokenApps) {
		b.delete = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
			if a, err := b.App(ctx, team, id); err == nil {
				user = a.User
			}
			return b.AppSessions.DeleteApps(ctx, team, user, id)
		}
	}),
	appMutant("deletes all for one", "Deleted", func(b *brokenApps) {
		b.delete = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, _ uuid.UUID) (int, error) {
			return b.AppSessions.DeleteApps(ctx, team, user, uuid.Nil)
		}
	}),
	appMutant("outlives a deleted user", "GoneWithItsUser", func(b *brokenApps) {
		last := map[uuid.UUID]linking.AppSession{}
		b.read = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
			a, err := b.AppSessions.App(ctx, team, id)
			if a, was := last[id]; was && a.Team == team && errors.Is(err, healthlab.NotFound) {
				return a, nil
			}
			return a, err
		}
		b.insert = func(ctx context.Context, a linking.AppSession) error {
			err := b.AppSessions.InsertApp(ctx, a)
			if err == nil {
				last[a.ID] = a
			}
			return err
		}
		b.delete = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
			delete(last, id)
			return b.AppSessions.DeleteApps(ctx, team, user, id)
		}
	}),
	appMutant("goes on without its caller", "Ended", func(b *brokenApps) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change appChange) (linking.AppSession, error) {
			return b.AppSessions.UpdateApp(context.WithoutCancel(ctx), team, id, change)
		}
	}),
}
