package linkingtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

type grantUpdate = func(context.Context, healthlab.TeamID, healthlab.UserID, string, grantChange) (linking.Credential, error)

type grantChange = func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error)

// brokenGrants passes on what it is not told to break.
type brokenGrants struct {
	linking.Grants
	users  healthdata.Users
	update grantUpdate
}

func (b *brokenGrants) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	return b.update(ctx, team, user, provider, change)
}

func grantMutant(name, dies string, suite func(*testing.T, func(testing.TB) linkingtest.StoreHarness),
	how func(b *brokenGrants) grantUpdate,
) conformance.Broken {
	return conformance.Broken{Name: "grants: " + name, Suite: func(t *testing.T) {
		suite(t, func(testing.TB) linkingtest.StoreHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			b := &brokenGrants{Grants: s.Grants(), users: s.Users()}
			b.update = how(b)
			return linkingtest.StoreHarness{
				Linking: s.Linking(), Grants: b, Second: b, Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(), SetClock: clock.Set,
			}
		})
	}, Subtest: dies}
}

// changed runs a change that is edited.
func changed(edit func(change grantChange) grantChange) func(b *brokenGrants) grantUpdate {
	return func(b *brokenGrants) grantUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change grantChange) (linking.Credential, error) {
			return b.Grants.UpdateCredential(ctx, team, user, provider, edit(change))
		}
	}
}

var brokenGrantStores = []conformance.Broken{
	grantMutant("forgets the lease", "RoundTrip", linkingtest.RunGrants, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			c.Lease = time.Time{}
			return events, err
		}
	})),
	grantMutant("lets two have the lease", "OneExchange", linkingtest.RunCredentialRefresh, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.Lease = time.Time{}
			return change(c, u)
		}
	})),
	grantMutant("shows changes the caller's clock", "StoreTime", linkingtest.RunGrants, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.StoreTime = time.Now()
			return change(c, u)
		}
	})),
	grantMutant("ends leases early", "CallersClocks", linkingtest.RunCredentialRefresh, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			if !c.Lease.IsZero() {
				c.Lease = c.Lease.Add(-time.Hour)
			}
			return events, err
		}
	})),
	grantMutant("drops the secret before", "RoundTrip", linkingtest.RunGrants, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			c.Previous = healthlab.Sealed{}
			return events, err
		}
	})),
	grantMutant("drops events", "EventsBringTheUser", linkingtest.RunGrants, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			_, err := change(c, u)
			return nil, err
		}
	})),
	grantMutant("forgets secrets that are saved", "Rounds", linkingtest.RunCredentialRefresh, changed(func(change grantChange) grantChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			secret, version := c.Secret, c.Version
			events, err := change(c, u)
			if c.Version != version && c.Version%3 == 0 {
				c.Secret = secret
			}
			return events, err
		}
	})),
	grantMutant("writes the user always", "NoEventsLeaveTheUser", linkingtest.RunGrants, func(b *brokenGrants) grantUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change grantChange) (linking.Credential, error) {
			var edited healthdata.User
			c, err := b.Grants.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
				events, err := change(c, u)
				edited = *u
				return events, err
			})
			if err == nil {
				_, err = b.users.Update(ctx, team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
					u.Connections = edited.Connections
					return nil, nil
				})
			}
			return c, err
		}
	}),
	grantMutant("writes what change refused", "ErrorWritesNothing", linkingtest.RunGrants, func(b *brokenGrants) grantUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change grantChange) (linking.Credential, error) {
			var own error
			c, err := b.Grants.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) (events []healthlab.Event, err error) {
				events, own = change(c, u)
				return events, nil
			})
			return c, errors.Join(err, own)
		}
	}),
	grantMutant("loses updates", "NoLostUpdates", linkingtest.RunGrants, func(b *brokenGrants) grantUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change grantChange) (linking.Credential, error) {
			old, err := b.Credential(ctx, team, user, provider)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.Grants.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
				*c = old
				return change(c, u)
			})
		}
	}),
	grantMutant("goes on without its caller", "Ended", linkingtest.RunGrants, func(b *brokenGrants) grantUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change grantChange) (linking.Credential, error) {
			return b.Grants.UpdateCredential(context.WithoutCancel(ctx), team, user, provider, change)
		}
	}),
}
