package bulktest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// StoreHarness is a store for the suite of bulk operations.
type StoreHarness struct {
	// Bulk is the interface under test.
	Bulk bulk.Store
	// Linking stores the connections, in the same store.
	Linking linkingtest.StoreHarness
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunStore runs the contract of [bulk.Store]. All cases share one store, and each has teams
// of its own.
func RunStore(t *testing.T, h StoreHarness) {
	h.SetClock(noon)
	for _, cases := range []map[string]func(*testing.T, StoreHarness, string){bulkCases, bulkOpCases, bulkImportCases} {
		for name, run := range conformance.Sorted(cases) {
			t.Run(name, func(t *testing.T) { run(t, h, "bulk "+name+" ") })
		}
	}
}

// newConnection adds a user with a connection, refreshes its secret, and returns the connection.
func (h StoreHarness) newConnection(t *testing.T, team, user string) bulk.Connection {
	t.Helper()
	was := h.Linking.AddConnection(t, team, user)
	c, err := h.Linking.Credentials.UpdateCredential(t.Context(), was.Team, was.User, was.Provider, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
		linkingtest.RenewCredential(c)
		return nil, nil
	})
	require.NoError(t, err)
	u, err := h.Linking.Users.Get(t.Context(), was.Team, was.User)
	require.NoError(t, err)
	to := u.Connection(was.Provider)
	require.NotNil(t, to.ExternalUserID)
	return bulk.Connection{Credential: c, ExternalUserID: to.ExternalUserID, Scopes: to.Scopes}
}

// requireConnections requires that a query returns exactly the connections want.
func (h StoreHarness) requireConnections(t *testing.T, q bulk.ConnectionQuery, want ...bulk.Connection) {
	t.Helper()
	got, err := h.Bulk.Connections(t.Context(), q)
	require.NoError(t, err)
	slices.SortFunc(want, func(a, b bulk.Connection) int { return slices.Compare(a.User.UUID[:], b.User.UUID[:]) })
	require.Equal(t, want, got)
}

func connectionsOf(team string) bulk.ConnectionQuery {
	return bulk.ConnectionQuery{Team: conformance.Team(team), Provider: "acme_scale", N: 100}
}

var bulkCases = map[string]func(t *testing.T, h StoreHarness, x string){
	"RoundTrip": func(t *testing.T, h StoreHarness, x string) {
		a := h.newConnection(t, x, x+"ann")
		_, err := h.Linking.Users.Update(t.Context(), a.Team, a.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connection(a.Provider).Scopes = []string{"move", "sleep"}
			return nil, nil
		})
		require.NoError(t, err)
		a.Scopes = []string{"move", "sleep"}
		h.requireConnections(t, connectionsOf(x), a)
		other := connectionsOf(x)
		other.Provider = "acme_band"
		h.requireConnections(t, other)
	},
	"OtherTeam": func(t *testing.T, h StoreHarness, x string) {
		a := h.newConnection(t, x, x+"ann")
		foreign := connectionsOf(x + "b")
		foreign.Users = []healthlab.UserID{a.User}
		h.requireConnections(t, foreign)
	},
	"Pages": func(t *testing.T, h StoreHarness, x string) {
		var all []bulk.Connection
		for _, name := range []string{"ann", "bob", "cyd", "dan", "eve"} {
			all = append(all, h.newConnection(t, x, x+name))
		}
		h.requireConnections(t, connectionsOf(x), all...)
		slices.SortFunc(all, func(a, b bulk.Connection) int { return slices.Compare(a.User.UUID[:], b.User.UUID[:]) })
		q := connectionsOf(x)
		q.N, q.After = 2, all[1].User
		h.requireConnections(t, q, all[2], all[3])
		q.After = all[4].User
		h.requireConnections(t, q)
	},
	"Users": func(t *testing.T, h StoreHarness, x string) {
		a, b := h.newConnection(t, x, x+"ann"), h.newConnection(t, x, x+"bob")
		h.Linking.AddUser(t, x, x+"nobody")
		q := connectionsOf(x)
		q.Users = []healthlab.UserID{b.User, conformance.User(x + "nobody")}
		h.requireConnections(t, q, b)
		q.Users = []healthlab.UserID{}
		h.requireConnections(t, q)
		q.Users = nil
		h.requireConnections(t, q, a, b)
	},
	"Statuses": func(t *testing.T, h StoreHarness, x string) {
		paused, gone := h.newConnection(t, x, x+"ann"), h.newConnection(t, x, x+"bob")
		set := func(c bulk.Connection, to healthdata.ConnectionStatus) {
			_, err := h.Linking.Users.Update(t.Context(), c.Team, c.User, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.Connection(c.Provider).Status = to
				return nil, nil
			})
			require.NoError(t, err)
		}
		set(paused, healthdata.Paused)
		set(gone, healthdata.Deregistered)
		h.requireConnections(t, connectionsOf(x), paused)
	},
	"GoneWithItsUser": func(t *testing.T, h StoreHarness, x string) {
		a := h.newConnection(t, x, x+"ann")
		_, err := h.Linking.Users.Update(t.Context(), a.Team, a.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon
			return nil, nil
		})
		require.NoError(t, err)
		h.requireConnections(t, connectionsOf(x))
	},
	"Aliasing": func(t *testing.T, h StoreHarness, x string) {
		a := h.newConnection(t, x, x+"ann")
		got, err := h.Bulk.Connections(t.Context(), connectionsOf(x))
		require.NoError(t, err)
		require.Len(t, got, 1)
		got[0].Secret.Box[0]++
		*got[0].ExternalUserID = "changed"
		h.requireConnections(t, connectionsOf(x), a)
	},
	"Refused": func(t *testing.T, h StoreHarness, x string) {
		for _, bad := range []string{"a\x00b", "\xff"} {
			q := connectionsOf(x)
			q.Provider = bad
			_, err := h.Bulk.Connections(t.Context(), q)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err := h.Bulk.Connections(ctx, connectionsOf(x))
		require.ErrorIs(t, err, context.Canceled)
	},
}

// noon is the time of most calls. It is near the clock of the store.
var noon = time.Now().UTC().Truncate(time.Second).Add(123456 * time.Microsecond)
