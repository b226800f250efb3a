package linkingtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// RunCredentialStore runs the contract of [linking.CredentialStore]. newStore returns a fresh, empty store
// and registers its own cleanup on t.
func RunCredentialStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for name, run := range conformance.Sorted(credentialCases) {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

// AddConnection adds a user with a connection to acme_scale from a link session, and returns the credential.
func (h StoreHarness) AddConnection(t *testing.T, team, user string) linking.Credential {
	t.Helper()
	s := h.linked(t, team, user)
	_, err := h.Linking.Complete(t.Context(), h.success(s, "ext of "+user))
	require.NoError(t, err)
	return h.Credential(t, team, user)
}

// Credential returns the credential of a user's connection to acme_scale.
func (h StoreHarness) Credential(t *testing.T, team, user string) linking.Credential {
	t.Helper()
	c, err := h.Credentials.Credential(t.Context(), conformance.Team(team), conformance.User(user), "acme_scale")
	require.NoError(t, err)
	return c
}

// RenewCredential changes a credential as a refresh does. It sets every field to a non-zero value.
func RenewCredential(c *linking.Credential) {
	c.Previous, c.Secret = c.Secret, healthlab.Sealed{KeyID: "k2", Box: []byte{9, 0, 255}}
	c.ExpiresAt, c.Lease, c.RetryAt = noon.Add(2*time.Hour), noon.Add(time.Minute), noon.Add(3*time.Minute)
	c.Version++
	c.Failures = 4
}

func grantEvent(u *healthdata.User) healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: healthdata.EventConnectionError, Team: u.Team, User: u.ID, At: noon,
		Key: healthdata.ConnectionKey(u.ID, "acme_scale"), Data: []byte(`{"n":2}`),
	}
}

func (h StoreHarness) updateGrant(ctx context.Context, c linking.Credential,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	return h.Credentials.UpdateCredential(ctx, c.Team, c.User, c.Provider, change)
}

// requireGrant requires an unchanged credential and user.
func (h StoreHarness) requireGrant(t *testing.T, want linking.Credential, revision int64) {
	t.Helper()
	got, err := h.Credentials.Credential(t.Context(), want.Team, want.User, want.Provider)
	require.NoError(t, err)
	require.Equal(t, want, got)
	u, err := h.Users.Get(t.Context(), want.Team, want.User)
	require.NoError(t, err)
	require.Equal(t, revision, u.Revision)
}

var credentialCases = map[string]func(*testing.T, StoreHarness){
	"RoundTrip": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		require.NotEqual(t, uuid.Nil, c.ID)
		want := c
		RenewCredential(&want)
		got, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			RenewCredential(c)
			c.ExpiresAt = c.ExpiresAt.Add(123 * time.Nanosecond).In(time.FixedZone("x", 3600))
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got)
		h.requireGrant(t, want, 2)
	},
	"StoreTime": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		require.Zero(t, c.StoreTime)
		for _, at := range []time.Time{noon, noon.Add(time.Hour)} {
			h.SetClock(at)
			var seen time.Time
			got, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
				seen = c.StoreTime
				c.StoreTime = noon.Add(-time.Hour)
				return nil, nil
			})
			require.NoError(t, err)
			require.Equal(t, at, seen)
			require.Equal(t, c, got)
			h.requireGrant(t, c, 2)
		}
	},
	"KeepsItsOwn": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		got, err := h.updateGrant(t.Context(), c, func(x *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			*x = linking.Credential{Secret: c.Secret}
			return nil, nil
		})
		require.NoError(t, err)
		want := linking.Credential{ID: c.ID, Team: c.Team, User: c.User, Provider: c.Provider, Secret: c.Secret, CreatedAt: c.CreatedAt}
		require.Equal(t, want, got)
		h.requireGrant(t, want, 2)
	},
	"EventsBringTheUser": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		var event uuid.UUID
		_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.Version = 7
			u.Connection("acme_scale").Status = healthdata.ConnectionError
			e := grantEvent(u)
			event = e.ID
			return []healthlab.Event{e}, nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 7, h.Credential(t, "a", "ann").Version)
		u, err := h.Users.Get(t.Context(), c.Team, c.User)
		require.NoError(t, err)
		require.Equal(t, healthdata.ConnectionError, u.Connections[0].Status)
		require.EqualValues(t, 3, u.Revision)
		m, err := h.Messages.Message(t.Context(), c.Team, event)
		require.NoError(t, err)
		require.EqualValues(t, 2, m.Seq)
	},
	"NoEventsLeaveTheUser": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		want := c
		want.Version = 7
		_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			c.Version = 7
			u.Connection("acme_scale").Status = healthdata.ConnectionError
			return nil, nil
		})
		require.NoError(t, err)
		h.requireGrant(t, want, 2)
		u, err := h.Users.Get(t.Context(), c.Team, c.User)
		require.NoError(t, err)
		require.Equal(t, healthdata.Connected, u.Connections[0].Status)
	},
	"ErrorWritesNothing": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		own := errors.New("own")
		_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			RenewCredential(c)
			return []healthlab.Event{grantEvent(u)}, own
		})
		require.ErrorIs(t, err, own)
		h.requireGrant(t, c, 2)
	},
	"BadEventWritesNothing": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
			RenewCredential(c)
			e := grantEvent(u)
			e.ID = uuid.Nil
			return []healthlab.Event{e}, nil
		})
		require.ErrorIs(t, err, healthlab.Invalid)
		h.requireGrant(t, c, 2)
	},
	"NoLostUpdates": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		wins := conformance.Successes(conformance.Together(16, func(int) error {
			_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
				c.Version++
				return nil, nil
			})
			return err
		}))
		require.Positive(t, wins)
		require.EqualValues(t, wins, h.Credential(t, "a", "ann").Version)
	},
	"Aliasing": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		box := []byte{1, 2, 3}
		got, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			c.Previous = healthlab.Sealed{KeyID: "k", Box: box}
			return nil, nil
		})
		require.NoError(t, err)
		box[0], got.Previous.Box[1], got.Secret.Box[0] = 9, 9, 9
		stored := h.Credential(t, "a", "ann")
		require.Equal(t, []byte{1, 2, 3}, stored.Previous.Box)
		require.Equal(t, c.Secret, stored.Secret)
	},
	"NotThere": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		h.AddConnection(t, "b", "bob")
		never := func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error) { panic("called") }
		for name, who := range conformance.Sorted(map[string]linking.Credential{
			"other team":     {Team: conformance.Team("b"), User: c.User, Provider: c.Provider},
			"other provider": {Team: c.Team, User: c.User, Provider: "acme_band"},
			"nobody":         {Team: c.Team, User: conformance.User("eve"), Provider: c.Provider},
		}) {
			t.Run(name, func(t *testing.T) {
				_, err := h.updateGrant(t.Context(), who, never)
				require.ErrorIs(t, err, healthlab.NotFound)
			})
		}
		_, err := h.Users.Update(t.Context(), c.Team, c.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections[0].Status = healthdata.Deregistered
			return nil, nil
		})
		require.NoError(t, err)
		_, err = h.updateGrant(t.Context(), c, never)
		require.ErrorIs(t, err, healthlab.NotFound, "removed")
	},
	"LinkedAgain": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		_, err := h.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			RenewCredential(c)
			return nil, nil
		})
		require.NoError(t, err)
		s := linkSession("a", "ann", "again")
		require.NoError(t, h.Linking.InsertSession(t.Context(), s))
		again := h.success(s, "ext")
		_, err = h.Linking.Complete(t.Context(), again)
		require.NoError(t, err)
		require.Equal(t, again.Credential, h.Credential(t, "a", "ann"), "nothing of the old grant is left")
	},
	"Ended": func(t *testing.T, h StoreHarness) {
		c := h.AddConnection(t, "a", "ann")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err := h.updateGrant(ctx, c, func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error) { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		h.requireGrant(t, c, 2)
	},
}
