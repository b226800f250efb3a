package linkingtest

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// linked adds a user and a link session of that user.
func (h StoreHarness) linked(t *testing.T, team, user string) linking.Session {
	t.Helper()
	h.AddUser(t, team, user)
	s := linkSession(team, user, user)
	require.NoError(t, h.Linking.InsertSession(t.Context(), s))
	return s
}

func (h StoreHarness) user(t *testing.T, s linking.Session) healthdata.User {
	t.Helper()
	u, err := h.Users.Get(t.Context(), s.Team, s.User)
	require.NoError(t, err)
	return u
}

var linkCompleteCases = map[string]func(*testing.T, StoreHarness){
	"WritesAllOfIt": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		c := h.success(s, "ext-1")
		var event uuid.UUID
		change := c.Change
		c.Change = func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			require.Equal(t, s.ID, x.ID)
			require.Equal(t, s.User, u.ID)
			events, err := change(x, u)
			event = events[0].ID
			return events, err
		}
		got, err := h.Linking.Complete(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, linking.StateConnected, got.State)
		require.EqualValues(t, 2, got.Revision)
		stored, err := h.Linking.Session(t.Context(), s.Team, s.ID)
		require.NoError(t, err)
		require.Equal(t, got, stored)
		u := h.user(t, s)
		require.Equal(t, "ext-1", *u.Connection("acme_scale").ExternalUserID)
		require.EqualValues(t, 2, u.Revision)
		m, err := h.Messages.Message(t.Context(), s.Team, event)
		require.NoError(t, err)
		require.EqualValues(t, 1, m.Seq)
		cred, err := h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
		require.NoError(t, err)
		require.Equal(t, c.Credential, cred)
	},
	"ErrorWritesNothing": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		own := errors.New("own")
		c := h.success(s, "ext-1")
		change := c.Change
		c.Change = func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			_, _ = change(x, u)
			return nil, own
		}
		_, err := h.Linking.Complete(t.Context(), c)
		require.ErrorIs(t, err, own)
		h.requireUntouched(t, s)
	},
	"BadEventWritesNothing": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		c := h.success(s, "ext-1")
		change := c.Change
		c.Change = func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			events, err := change(x, u)
			events[0].ID = uuid.Nil
			return events, err
		}
		_, err := h.Linking.Complete(t.Context(), c)
		require.ErrorIs(t, err, healthlab.Invalid)
		h.requireUntouched(t, s)
	},
	"RacingCallsGetOne": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		require.Equal(t, 1, conformance.Successes(conformance.Together(8, func(int) error {
			_, err := h.Linking.Complete(t.Context(), h.success(s, "ext-1"))
			return err
		})))
		require.EqualValues(t, 2, h.user(t, s).Revision)
	},
	"AccountTaken": func(t *testing.T, h StoreHarness) {
		ann, bob := h.linked(t, "a", "ann"), h.linked(t, "a", "bob")
		sole := func(s linking.Session, external string) error {
			c := h.success(s, external)
			c.Sole = &external
			_, err := h.Linking.Complete(t.Context(), c)
			return err
		}
		require.NoError(t, sole(ann, "ext-1"))
		var taken *linking.AccountTakenError
		require.ErrorAs(t, sole(bob, "ext-1"), &taken)
		h.requireUntouched(t, bob)
		require.NoError(t, sole(bob, "EXT-1"), "byte for byte")
	},
	"AccountFree": func(t *testing.T, h StoreHarness) {
		for _, c := range []struct {
			name string
			team string
			edit func(*healthdata.User)
		}{
			{"removed", "a", func(u *healthdata.User) { u.Connections[0].Status = healthdata.Deregistered }},
			{"deleted", "a", func(u *healthdata.User) { u.DeletedAt = noon }},
			{"other provider", "a", func(u *healthdata.User) { u.Connections[0].Provider = "acme_band" }},
			{"no external id", "a", func(u *healthdata.User) { u.Connections[0].ExternalUserID = nil }},
			{"other team", "b", func(*healthdata.User) {}},
		} {
			first := h.linked(t, c.team, "first "+c.name)
			_, err := h.Linking.Complete(t.Context(), h.success(first, c.name))
			require.NoError(t, err)
			_, err = h.Users.Update(t.Context(), first.Team, first.User, func(u *healthdata.User) ([]healthlab.Event, error) {
				c.edit(u)
				return nil, nil
			})
			require.NoError(t, err)
			second := h.success(h.linked(t, "a", "second "+c.name), c.name)
			second.Sole = &c.name
			_, err = h.Linking.Complete(t.Context(), second)
			require.NoError(t, err, c.name)
		}
	},
	"AccountOfTheSameUser": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		external := "ext-1"
		_, err := h.Linking.Complete(t.Context(), h.success(s, external))
		require.NoError(t, err)
		again := linkSession("a", "ann", "again")
		require.NoError(t, h.Linking.InsertSession(t.Context(), again))
		c := h.success(again, external)
		c.Sole = &external
		_, err = h.Linking.Complete(t.Context(), c)
		require.NoError(t, err)
	},
	"RacingUsersDoNotShareAnAccount": func(t *testing.T, h StoreHarness) {
		var all []linking.Session
		for _, name := range []string{"ann", "bob", "cy", "dan"} {
			all = append(all, h.linked(t, "a", name))
		}
		external := "ext-1"
		require.Equal(t, 1, conformance.Successes(conformance.Together(len(all), func(i int) error {
			c := h.success(all[i], external)
			c.Sole = &external
			_, err := h.Linking.Complete(t.Context(), c)
			return err
		})))
	},
	"NotFound": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		c := h.success(s, "ext-1")
		c.Team = conformance.Team("b")
		_, err := h.Linking.Complete(t.Context(), c)
		require.ErrorIs(t, err, healthlab.NotFound)
		c = h.success(s, "ext-1")
		c.Session = linking.SessionID{UUID: uuid.New()}
		_, err = h.Linking.Complete(t.Context(), c)
		require.ErrorIs(t, err, healthlab.NotFound)
		h.requireUntouched(t, s)
	},
}

// requireUntouched requires that the session s is stored unchanged, and that its user has no connection and no
// credential.
func (h StoreHarness) requireUntouched(t *testing.T, s linking.Session) {
	t.Helper()
	got, err := h.Linking.Session(t.Context(), s.Team, s.ID)
	require.NoError(t, err)
	require.Equal(t, s, got)
	u := h.user(t, s)
	require.Empty(t, u.Connections)
	require.EqualValues(t, 1, u.Revision)
	_, err = h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
	require.ErrorIs(t, err, healthlab.NotFound)
}

var linkCredentialCases = map[string]func(*testing.T, StoreHarness){
	"Replaced": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		again, bare := linkSession("a", "ann", "again"), linkSession("a", "ann", "bare")
		require.NoError(t, h.Linking.InsertSession(t.Context(), again))
		require.NoError(t, h.Linking.InsertSession(t.Context(), bare))
		_, err := h.Linking.Complete(t.Context(), h.success(s, "one"))
		require.NoError(t, err)
		_, err = h.Linking.Complete(t.Context(), h.success(again, "two"))
		require.NoError(t, err)
		c, err := h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
		require.NoError(t, err)
		require.Equal(t, []byte("box of two"), c.Secret.Box)
		without := h.success(bare, "three")
		without.Credential.Secret = healthlab.Sealed{}
		_, err = h.Linking.Complete(t.Context(), without)
		require.NoError(t, err)
		_, err = h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"OtherTeam": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		_, err := h.Linking.Complete(t.Context(), h.success(s, "one"))
		require.NoError(t, err)
		_, err = h.Linking.Credential(t.Context(), conformance.Team("b"), s.User, "acme_scale")
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Linking.Disconnect(t.Context(), conformance.Team("b"), s.User, "acme_scale", func(*healthdata.User) ([]healthlab.Event, error) { return nil, nil })
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"OnlyOfAConnection": func(t *testing.T, h StoreHarness) {
		for name, edit := range conformance.Sorted(map[string]func(*healthdata.User){
			"removed": func(u *healthdata.User) { u.Connections[0].Status = healthdata.Deregistered },
			"deleted": func(u *healthdata.User) { u.DeletedAt = noon },
		}) {
			t.Run(name, func(t *testing.T) {
				s := h.linked(t, "a", name)
				_, err := h.Linking.Complete(t.Context(), h.success(s, "one"))
				require.NoError(t, err)
				_, err = h.Users.Update(t.Context(), s.Team, s.User, func(u *healthdata.User) ([]healthlab.Event, error) {
					edit(u)
					return nil, nil
				})
				require.NoError(t, err)
				_, err = h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
				require.ErrorIs(t, err, healthlab.NotFound)
			})
		}
	},
	"Disconnect": func(t *testing.T, h StoreHarness) {
		s := h.linked(t, "a", "ann")
		done := h.success(s, "one")
		_, err := h.Linking.Complete(t.Context(), done)
		require.NoError(t, err)
		own := errors.New("own")
		_, err = h.Linking.Disconnect(t.Context(), s.Team, s.User, "acme_scale", func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections = nil
			return nil, own
		})
		require.ErrorIs(t, err, own)
		_, err = h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
		require.NoError(t, err, "an error writes nothing")
		var events []healthlab.Event
		remove := func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections[0].Status = healthdata.Deregistered
			return events, nil
		}
		events = []healthlab.Event{{}}
		_, err = h.Linking.Disconnect(t.Context(), s.Team, s.User, "acme_scale", remove)
		require.ErrorIs(t, err, healthlab.Invalid, "an event without an id")
		still := h.user(t, s)
		require.Equal(t, healthdata.Connected, still.Connection("acme_scale").Status)
		events[0] = healthlab.Event{
			ID: uuid.New(), Type: healthdata.EventConnectionDeleted, Team: s.Team, User: s.User,
			Key: healthdata.ConnectionKey(s.User, "acme_scale"), At: noon, Data: []byte(`{}`),
		}
		c, err := h.Linking.Disconnect(t.Context(), s.Team, s.User, "acme_scale", remove)
		require.NoError(t, err)
		require.Equal(t, done.Credential, c)
		_, err = h.Messages.Message(t.Context(), s.Team, events[0].ID)
		require.NoError(t, err)
		events = nil
		u := h.user(t, s)
		require.Equal(t, healthdata.Deregistered, u.Connection("acme_scale").Status)
		// The credential does not come back with the connection.
		_, err = h.Users.Update(t.Context(), s.Team, s.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			connected(u, "one")
			return nil, nil
		})
		require.NoError(t, err)
		_, err = h.Linking.Credential(t.Context(), s.Team, s.User, "acme_scale")
		require.ErrorIs(t, err, healthlab.NotFound)
		c, err = h.Linking.Disconnect(t.Context(), s.Team, s.User, "acme_scale", remove)
		require.NoError(t, err)
		require.Zero(t, c)
	},
}
