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

// AppsHarness is a store for the suite of app sessions.
type AppsHarness struct {
	// Apps is the interface under test.
	Apps linking.AppSessions
	// Users is the store of the users of the sessions.
	Users healthdata.Users
}

// RunApps runs the contract of [linking.AppSessions]. All cases share one store, and each
// has teams of its own.
func RunApps(t *testing.T, h AppsHarness) {
	for name, run := range conformance.Sorted(appCases) {
		t.Run(name, func(t *testing.T) { run(t, h, "apps "+name+" ") })
	}
}

// invited adds a user, and returns an app session in which every field is set.
func (h AppsHarness) invited(t *testing.T, team, user string) linking.AppSession {
	t.Helper()
	a := linking.AppSession{
		ID: conformance.Named("app of " + user), Team: conformance.Team(team), User: conformance.User(user), CreatedAt: noon, ExpiresAt: noon.Add(10 * time.Minute),
		SignIn: linking.TokenHash{1, 2, 255}, Refresh: linking.TokenHash{3}, Previous: linking.TokenHash{4}, RotatedAt: noon.Add(time.Second), Rotations: 7,
		Access: []linking.AppAccessToken{{Sum: linking.TokenHash{5}, ExpiresAt: noon.Add(time.Hour)}, {Sum: linking.TokenHash{6}, ExpiresAt: noon.Add(2 * time.Hour)}},
	}
	StoreHarness{Users: h.Users}.AddUser(t, team, user)
	return a
}

func (h AppsHarness) requireApp(t *testing.T, want linking.AppSession) {
	t.Helper()
	got, err := h.Apps.App(t.Context(), want.Team, want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

var appCases = map[string]func(t *testing.T, h AppsHarness, x string){
	"RoundTrip": func(t *testing.T, h AppsHarness, x string) {
		want := h.invited(t, x, x+"ann")
		given := want
		given.CreatedAt = want.CreatedAt.In(time.FixedZone("x", 3600)).Add(123 * time.Nanosecond)
		require.NoError(t, h.Apps.InsertApp(t.Context(), given))
		h.requireApp(t, want)
		got, err := h.Apps.UpdateApp(t.Context(), want.Team, want.ID, func(a *linking.AppSession) error {
			*a = linking.AppSession{Refresh: linking.TokenHash{9}}
			return nil
		})
		require.NoError(t, err)
		want = linking.AppSession{ID: want.ID, Team: want.Team, User: want.User, CreatedAt: want.CreatedAt, Refresh: linking.TokenHash{9}}
		require.Equal(t, want, got)
		h.requireApp(t, want)
	},
	"Refused": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		for _, spoil := range []func(*linking.AppSession){
			func(a *linking.AppSession) { a.ID = uuid.Nil },
			func(a *linking.AppSession) { a.Team = healthlab.TeamID{} },
			func(a *linking.AppSession) { a.User = healthlab.UserID{} },
		} {
			bad := a
			spoil(&bad)
			require.ErrorIs(t, h.Apps.InsertApp(t.Context(), bad), healthlab.Invalid)
		}
		nobody := a
		nobody.User = conformance.User(x + "nobody")
		require.ErrorIs(t, h.Apps.InsertApp(t.Context(), nobody), healthlab.NotFound)
		foreign := a
		foreign.Team = conformance.Team(x + "b")
		require.ErrorIs(t, h.Apps.InsertApp(t.Context(), foreign), healthlab.NotFound)
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		require.ErrorIs(t, h.Apps.InsertApp(t.Context(), a), healthlab.Conflict)
	},
	"OtherTeam": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		_, err := h.Apps.App(t.Context(), conformance.Team(x+"b"), a.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Apps.UpdateApp(t.Context(), conformance.Team(x+"b"), a.ID, func(*linking.AppSession) error { panic("called") })
		require.ErrorIs(t, err, healthlab.NotFound)
		n, err := h.Apps.DeleteApps(t.Context(), conformance.Team(x+"b"), a.User, uuid.Nil)
		require.NoError(t, err)
		require.Zero(t, n)
		h.requireApp(t, a)
	},
	"ErrorWritesNothing": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		own := errors.New("own")
		_, err := h.Apps.UpdateApp(t.Context(), a.Team, a.ID, func(a *linking.AppSession) error {
			a.Refresh = linking.TokenHash{9}
			return own
		})
		require.ErrorIs(t, err, own)
		h.requireApp(t, a)
	},
	"NoLostUpdates": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		wins := conformance.Successes(conformance.Together(16, func(int) error {
			_, err := h.Apps.UpdateApp(t.Context(), a.Team, a.ID, func(a *linking.AppSession) error {
				a.Rotations++
				return nil
			})
			return err
		}))
		require.Positive(t, wins)
		a.Rotations += int64(wins)
		h.requireApp(t, a)
	},
	"Aliasing": func(t *testing.T, h AppsHarness, x string) {
		want := h.invited(t, x, x+"ann")
		given := h.invitedAgain(want)
		require.NoError(t, h.Apps.InsertApp(t.Context(), given))
		given.Access[0].Sum[0] = 99
		got, err := h.Apps.App(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		got.Access[0].Sum[0] = 99
		h.requireApp(t, want)
	},
	"Deleted": func(t *testing.T, h AppsHarness, x string) {
		one, other := h.invited(t, x, x+"ann"), h.invited(t, x, x+"bob")
		two := h.invitedAgain(one)
		two.ID = conformance.Named(x + "second app")
		for _, a := range []linking.AppSession{one, two, other} {
			require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		}
		n, err := h.Apps.DeleteApps(t.Context(), one.Team, other.User, one.ID)
		require.NoError(t, err)
		require.Zero(t, n, "another user's")
		n, err = h.Apps.DeleteApps(t.Context(), one.Team, one.User, one.ID)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = h.Apps.App(t.Context(), one.Team, one.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		h.requireApp(t, two)
		n, err = h.Apps.DeleteApps(t.Context(), one.Team, one.User, uuid.Nil)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		h.requireApp(t, other)
	},
	"GoneWithItsUser": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		delete := func(at time.Time) {
			_, err := h.Users.Update(t.Context(), a.Team, a.User, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.DeletedAt = at
				return nil, nil
			})
			require.NoError(t, err)
		}
		delete(noon)
		_, err := h.Apps.App(t.Context(), a.Team, a.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Apps.UpdateApp(t.Context(), a.Team, a.ID, func(*linking.AppSession) error { panic("called") })
		require.ErrorIs(t, err, healthlab.NotFound)
		later := h.invitedAgain(a)
		later.ID = conformance.Named(x + "later")
		require.ErrorIs(t, h.Apps.InsertApp(t.Context(), later), healthlab.NotFound)
		delete(time.Time{})
		h.requireApp(t, a)
		StoreHarness{Users: h.Users}.EraseUser(t, x, a.User)
		n, err := h.Apps.DeleteApps(t.Context(), a.Team, a.User, uuid.Nil)
		require.NoError(t, err)
		require.Zero(t, n)
	},
	"Ended": func(t *testing.T, h AppsHarness, x string) {
		a := h.invited(t, x, x+"ann")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.ErrorIs(t, h.Apps.InsertApp(ctx, a), context.Canceled)
		require.NoError(t, h.Apps.InsertApp(t.Context(), a))
		_, err := h.Apps.App(ctx, a.Team, a.ID)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Apps.UpdateApp(ctx, a.Team, a.ID, func(*linking.AppSession) error { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Apps.DeleteApps(ctx, a.Team, a.User, uuid.Nil)
		require.ErrorIs(t, err, context.Canceled)
		h.requireApp(t, a)
	},
}

func (AppsHarness) invitedAgain(a linking.AppSession) linking.AppSession {
	a.Access = append([]linking.AppAccessToken(nil), a.Access...)
	return a
}
