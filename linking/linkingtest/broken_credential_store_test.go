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

type credentialUpdate = func(context.Context, healthlab.TeamID, healthlab.UserID, string, credentialChange) (linking.Credential, error)

type credentialChange = func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error)

// brokenCredentials passes on what it is not told to break.
type brokenCredentials struct {
	linking.CredentialStore
	users  healthdata.Users
	update credentialUpdate
}

func (b *brokenCredentials) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	return b.update(ctx, team, user, provider, change)
}

func credentialMutant(name, dies string, suite func(*testing.T, func(testing.TB) linkingtest.StoreHarness),
	how func(b *brokenCredentials) credentialUpdate,
) conformance.Broken {
	return conformance.Broken{Name: "credentials: " + name, Suite: func(t *testing.T) {
		suite(t, func(testing.TB) linkingtest.StoreHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			b := &brokenCredentials{CredentialStore: s.Credentials(), users: s.Users()}
			b.update = how(b)
			return linkingtest.StoreHarness{
				Linking: s.Linking(), Credentials: b, Second: b, Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(), SetClock: clock.Set,
			}
		})
	}, Subtest: dies}
}

// changed runs a change that is edited.
func changed(edit func(change credentialChange) credentialChange) func(b *brokenCredentials) credentialUpdate {
	return func(b *brokenCredentials) credentialUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change credentialChange) (linking.Credential, error) {
			return b.CredentialStore.UpdateCredential(ctx, team, user, provider, edit(change))
		}
	}
}

var brokenCredentialStores = []conformance.Broken{
	credentialMutant("forgets the lease", "RoundTrip", linkingtest.RunCredentialStore, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			c.Lease = time.Time{}
			return events, err
		}
	})),
	credentialMutant("lets two have the lease", "OneExchange", linkingtest.RunCredentialRefresh, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.Lease = time.Time{}
			return change(c, u)
		}
	})),
	credentialMutant("shows changes the caller's clock", "StoreTime", linkingtest.RunCredentialStore, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.StoreTime = time.Now()
			return change(c, u)
		}
	})),
	credentialMutant("ends leases early", "CallersClocks", linkingtest.RunCredentialRefresh, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			if !c.Lease.IsZero() {
				c.Lease = c.Lease.Add(-time.Hour)
			}
			return events, err
		}
	})),
	credentialMutant("drops the secret before", "RoundTrip", linkingtest.RunCredentialStore, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(c, u)
			c.Previous = healthlab.Sealed{}
			return events, err
		}
	})),
	credentialMutant("drops events", "EventsBringTheUser", linkingtest.RunCredentialStore, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			_, err := change(c, u)
			return nil, err
		}
	})),
	credentialMutant("forgets secrets that are saved", "Rounds", linkingtest.RunCredentialRefresh, changed(func(change credentialChange) credentialChange {
		return func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			secret, version := c.Secret, c.Version
			events, err := change(c, u)
			if c.Version != version && c.Version%3 == 0 {
				c.Secret = secret
			}
			return events, err
		}
	})),
	credentialMutant("writes the user always", "NoEventsLeaveTheUser", linkingtest.RunCredentialStore, func(b *brokenCredentials) credentialUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change credentialChange) (linking.Credential, error) {
			var edited healthdata.User
			c, err := b.CredentialStore.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
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
	credentialMutant("writes what change refused", "ErrorWritesNothing", linkingtest.RunCredentialStore, func(b *brokenCredentials) credentialUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change credentialChange) (linking.Credential, error) {
			var own error
			c, err := b.CredentialStore.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) (events []healthlab.Event, err error) {
				events, own = change(c, u)
				return events, nil
			})
			return c, errors.Join(err, own)
		}
	}),
	credentialMutant("loses updates", "NoLostUpdates", linkingtest.RunCredentialStore, func(b *brokenCredentials) credentialUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change credentialChange) (linking.Credential, error) {
			old, err := b.Credential(ctx, team, user, provider)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.CredentialStore.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
				*c = old
				return change(c, u)
			})
		}
	}),
	credentialMutant("goes on without its caller", "Ended", linkingtest.RunCredentialStore, func(b *brokenCredentials) credentialUpdate {
		return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change credentialChange) (linking.Credential, error) {
			return b.CredentialStore.UpdateCredential(context.WithoutCancel(ctx), team, user, provider, change)
		}
	}),
}
