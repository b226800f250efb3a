package bulktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// submitImport submits an import for users, whose items have sealed tokens (Grants).
func (h StoreHarness) submitImport(t *testing.T, team, name string, users ...healthlab.UserID) bulk.Op {
	t.Helper()
	op := bulk.Op{
		ID: conformance.Named(team + name), Team: conformance.Team(team), Type: bulk.ConnectionImport, Provider: "acme_scale", Status: bulk.InProgress, Total: len(users),
		StartedAt: noon, Due: noon,
	}
	items := bulkItems(users...)
	for i := range items {
		items[i].Grant = bulkGrant(byte(i))
	}
	require.NoError(t, h.Bulk.Submit(t.Context(), op, items))
	return op
}

func bulkGrant(n byte) healthlab.Sealed { return healthlab.Sealed{KeyID: "k1", Box: []byte{0, n, 255}} }

// bulkImport returns the argument of Store.Import for item n of op. It connects the account external.
func bulkImport(op bulk.Op, n int, external string) bulk.Import {
	return bulk.Import{
		Team: op.Team, Op: op.ID, N: n,
		Credential: linking.Credential{
			ID: conformance.Named(external), Provider: op.Provider, Secret: healthlab.Sealed{KeyID: "k2", Box: []byte("box of " + external)},
			CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
		},
		Change: func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections = []healthdata.Connection{{
				Provider: "acme_scale", Status: healthdata.Connected, CreatedOn: noon, ExternalUserID: &external,
			}}
			e := healthlab.Event{
				ID: conformance.Named("event " + external), Type: healthdata.EventConnectionError, Team: u.Team, User: u.ID, At: noon,
				Key: healthdata.ConnectionKey(u.ID, "acme_scale"), Data: []byte(`{"n":2}`),
			}
			return []healthlab.Event{e}, nil
		},
	}
}

func (h StoreHarness) requireItems(t *testing.T, op bulk.Op, want ...bulk.Item) {
	t.Helper()
	got, err := h.Bulk.Items(t.Context(), op.Team, op.ID, 0, 100)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func requireImport(t *testing.T, want bulk.Outcome, got bulk.Outcome, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// requireConnected requires that a user has the connection of bulkImport to the account external, and this revision.
func (h StoreHarness) requireConnected(t *testing.T, team, user, external string, revision int64) {
	t.Helper()
	u, err := h.Linking.Users.Get(t.Context(), conformance.Team(team), conformance.User(user))
	require.NoError(t, err)
	require.Equal(t, revision, u.Revision)
	require.Equal(t, external, *u.Connection("acme_scale").ExternalUserID)
	c := h.Linking.Credential(t, team, user)
	require.Equal(t, "box of "+external, string(c.Secret.Box))
	require.Equal(t, conformance.Named(external), c.ID)
	require.Equal(t, noon.Add(time.Hour), c.ExpiresAt)
	_, err = h.Linking.Messages.Message(t.Context(), conformance.Team(team), conformance.Named("event "+external))
	require.NoError(t, err)
}

// requireNotConnected requires that a user has no connection and revision 1, and that no event of bulkImport for the
// account external was written.
func (h StoreHarness) requireNotConnected(t *testing.T, team, user, external string) {
	t.Helper()
	u, err := h.Linking.Users.Get(t.Context(), conformance.Team(team), conformance.User(user))
	require.NoError(t, err)
	require.EqualValues(t, 1, u.Revision)
	require.Empty(t, u.Connections)
	_, err = h.Linking.Messages.Message(t.Context(), conformance.Team(team), conformance.Named("event "+external))
	require.ErrorIs(t, err, healthlab.NotFound)
}

func neverCalled(*healthdata.User) ([]healthlab.Event, error) { panic("called") }

var bulkImportCases = map[string]func(t *testing.T, h StoreHarness, x string){
	"Grants": func(t *testing.T, h StoreHarness, x string) {
		ann, bob := conformance.User(x+"ann"), conformance.User(x+"bob")
		op := bulk.Op{ID: conformance.Named(x), Team: conformance.Team(x), Status: bulk.InProgress, StartedAt: noon}
		items := []bulk.Item{{N: 7, User: ann, Grant: bulkGrant(1), Outcome: bulk.Connected}, {User: bob}}
		require.NoError(t, h.Bulk.Submit(t.Context(), op, items))
		items[0].Grant.Box[0]++
		want := []bulk.Item{{User: ann, Grant: bulkGrant(1)}, {N: 1, User: bob}}
		h.requireItems(t, op, want...)
		got, err := h.Bulk.Items(t.Context(), op.Team, op.ID, 0, 1)
		require.NoError(t, err)
		got[0].Grant.Box[0]++
		h.requireItems(t, op, want...)
		op.ID = conformance.Named(x + "bad")
		items[0].Grant.KeyID = "a\x00b"
		require.ErrorIs(t, h.Bulk.Submit(t.Context(), op, items), healthlab.Invalid)
	},
	"Import": func(t *testing.T, h StoreHarness, x string) {
		ann, bob := h.Linking.AddUser(t, x, x+"ann"), h.Linking.AddUser(t, x, x+"bob")
		op := h.submitImport(t, x, "op", ann, bob)
		c := bulkImport(op, 0, x+"1")
		c.Credential.User, c.Credential.Team = bob, conformance.Team(x+"other")
		got, err := h.Bulk.Import(t.Context(), c)
		requireImport(t, bulk.Connected, got, err)
		h.requireConnected(t, x, x+"ann", x+"1", 2)
		h.requireNotConnected(t, x, x+"bob", x+"2")
		h.requireItems(t, op, bulk.Item{User: ann, Outcome: bulk.Connected}, bulk.Item{N: 1, User: bob, Grant: bulkGrant(1)})
		h.requireOp(t, op)

		c.Change = neverCalled
		got, err = h.Bulk.Import(t.Context(), c)
		requireImport(t, bulk.Connected, got, err)
		got, err = h.Bulk.Reject(t.Context(), op.Team, op.ID, 0, bulk.NoUser)
		requireImport(t, bulk.Connected, got, err)
		h.requireConnected(t, x, x+"ann", x+"1", 2)
		h.requireItems(t, op, bulk.Item{User: ann, Outcome: bulk.Connected}, bulk.Item{N: 1, User: bob, Grant: bulkGrant(1)})
	},
	"ImportReplaces": func(t *testing.T, h StoreHarness, x string) {
		was := h.newConnection(t, x, x+"ann")
		u, err := h.Linking.Users.Get(t.Context(), was.Team, was.User)
		require.NoError(t, err)
		op := h.submitImport(t, x, "op", was.User)
		got, err := h.Bulk.Import(t.Context(), bulkImport(op, 0, x+"new"))
		requireImport(t, bulk.Connected, got, err)
		h.requireConnected(t, x, x+"ann", x+"new", u.Revision+1)
		require.Zero(t, h.Linking.Credential(t, x, x+"ann").Version, "nothing is left of the old one")

		op = h.submitImport(t, x, "bare", was.User)
		c := bulkImport(op, 0, x+"bare")
		c.Credential.Secret = healthlab.Sealed{}
		got, err = h.Bulk.Import(t.Context(), c)
		requireImport(t, bulk.Connected, got, err)
		_, err = h.Linking.Credentials.Credential(t.Context(), was.Team, was.User, was.Provider)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"ImportErrorWritesNothing": func(t *testing.T, h StoreHarness, x string) {
		ann := h.Linking.AddUser(t, x, x+"ann")
		op := h.submitImport(t, x, "op", ann)
		c, own := bulkImport(op, 0, x+"1"), errors.New("own")
		good := c.Change
		c.Change = func(u *healthdata.User) ([]healthlab.Event, error) {
			_, _ = good(u)
			return nil, own
		}
		_, err := h.Bulk.Import(t.Context(), c)
		require.ErrorIs(t, err, own)
		h.requireNotConnected(t, x, x+"ann", x+"1")
		h.requireItems(t, op, bulk.Item{User: ann, Grant: bulkGrant(0)})
	},
	"ImportTaken": func(t *testing.T, h StoreHarness, x string) {
		ann, bob := h.Linking.AddUser(t, x, x+"ann"), h.Linking.AddUser(t, x, x+"bob")
		op := h.submitImport(t, x, "op", ann, bob)
		sole := func(n int, external string) (bulk.Outcome, error) {
			c := bulkImport(op, n, external)
			c.Sole = &external
			return h.Bulk.Import(t.Context(), c)
		}
		got, err := sole(0, x+"ext")
		requireImport(t, bulk.Connected, got, err)
		var taken *linking.AccountTakenError
		_, err = sole(1, x+"ext")
		require.ErrorAs(t, err, &taken)
		u, err := h.Linking.Users.Get(t.Context(), op.Team, bob)
		require.NoError(t, err)
		require.Empty(t, u.Connections)
		h.requireItems(t, op, bulk.Item{User: ann, Outcome: bulk.Connected}, bulk.Item{N: 1, User: bob, Grant: bulkGrant(1)})

		again := h.submitImport(t, x, "again", ann)
		c, same := bulkImport(again, 0, x+"ext 2"), x+"ext"
		c.Sole = &same
		got, err = h.Bulk.Import(t.Context(), c)
		requireImport(t, bulk.Connected, got, err) // the account is the user's own
	},
	"ImportAccountFree": func(t *testing.T, h StoreHarness, x string) {
		gone, foreign, bob := h.newConnection(t, x, x+"gone"), h.newConnection(t, x+"b", x+"foreign"), h.Linking.AddUser(t, x, x+"bob")
		_, err := h.Linking.Users.Update(t.Context(), gone.Team, gone.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections[0].Status = healthdata.Deregistered
			return nil, nil
		})
		require.NoError(t, err)
		for i, was := range []bulk.Connection{gone, foreign} {
			op := h.submitImport(t, x, string(rune('a'+i)), bob)
			c := bulkImport(op, 0, x+"bob"+string(rune('a'+i)))
			c.Sole = was.ExternalUserID
			got, err := h.Bulk.Import(t.Context(), c)
			requireImport(t, bulk.Connected, got, err)
		}
	},
	"ImportOnce": func(t *testing.T, h StoreHarness, x string) {
		op := h.submitImport(t, x, "op", h.Linking.AddUser(t, x, x+"ann"))
		var all sync.WaitGroup
		outcomes, errs := make([]bulk.Outcome, 8), make([]error, 8)
		for i := range outcomes {
			all.Go(func() { outcomes[i], errs[i] = h.Bulk.Import(t.Context(), bulkImport(op, 0, x+"1")) })
		}
		all.Wait()
		for i := range outcomes {
			requireImport(t, bulk.Connected, outcomes[i], errs[i])
		}
		h.requireConnected(t, x, x+"ann", x+"1", 2)
	},
	"ImportRace": func(t *testing.T, h StoreHarness, x string) {
		var users []healthlab.UserID
		for _, name := range []string{"ann", "bob", "cyd", "dan"} {
			users = append(users, h.Linking.AddUser(t, x, x+name))
		}
		op := h.submitImport(t, x, "op", users...)
		external := x + "ext"
		var all sync.WaitGroup
		errs := make([]error, len(users))
		for i := range users {
			all.Go(func() {
				c := bulkImport(op, i, external)
				c.Sole, c.Credential.ID = &external, uuid.New()
				change := c.Change
				c.Change = func(u *healthdata.User) ([]healthlab.Event, error) {
					events, err := change(u)
					events[0].ID = uuid.New()
					return events, err
				}
				_, errs[i] = h.Bulk.Import(t.Context(), c)
			})
		}
		all.Wait()
		require.Equal(t, 1, conformance.Successes(errs))
		for _, err := range errs {
			if err != nil {
				var taken *linking.AccountTakenError
				require.ErrorAs(t, err, &taken)
			}
		}
	},
	"ImportNotThere": func(t *testing.T, h StoreHarness, x string) {
		ann := h.Linking.AddUser(t, x, x+"ann")
		op := h.submitImport(t, x, "op", ann, conformance.User(x+"nobody"))
		for _, spoil := range []func(*bulk.Import){
			func(c *bulk.Import) { c.Team = conformance.Team(x + "b") },
			func(c *bulk.Import) { c.Op = conformance.Named(x + "other") },
			func(c *bulk.Import) { c.N = 1 },
			func(c *bulk.Import) { c.N = 2 },
		} {
			c := bulkImport(op, 0, x+"1")
			c.Change = neverCalled
			spoil(&c)
			_, err := h.Bulk.Import(t.Context(), c)
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		_, err := h.Bulk.Reject(t.Context(), conformance.Team(x+"b"), op.ID, 0, bulk.NoUser)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Bulk.Reject(t.Context(), op.Team, op.ID, 2, bulk.NoUser)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Bulk.Reject(t.Context(), op.Team, op.ID, 0, "a\x00b")
		require.ErrorIs(t, err, healthlab.Invalid)
		bad := "a\x00b"
		c := bulkImport(op, 0, x+"1")
		c.Sole = &bad
		_, err = h.Bulk.Import(t.Context(), c)
		require.ErrorIs(t, err, healthlab.Invalid)

		ctx, stop := context.WithCancel(t.Context())
		stop()
		c = bulkImport(op, 0, x+"1")
		c.Change = neverCalled
		_, err = h.Bulk.Import(ctx, c)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Bulk.Reject(ctx, op.Team, op.ID, 0, bulk.NoUser)
		require.ErrorIs(t, err, context.Canceled)
		h.requireItems(t, op, bulk.Item{User: ann, Grant: bulkGrant(0)}, bulk.Item{N: 1, User: conformance.User(x + "nobody"), Grant: bulkGrant(1)})
	},
	"Reject": func(t *testing.T, h StoreHarness, x string) {
		ann, nobody := h.Linking.AddUser(t, x, x+"ann"), conformance.User(x+"nobody")
		op := h.submitImport(t, x, "op", ann, nobody)
		for range 2 {
			got, err := h.Bulk.Reject(t.Context(), op.Team, op.ID, 1, bulk.NoUser)
			requireImport(t, bulk.NoUser, got, err)
		}
		got, err := h.Bulk.Reject(t.Context(), op.Team, op.ID, 1, bulk.Refused)
		requireImport(t, bulk.NoUser, got, err)
		c := bulkImport(op, 1, x+"1")
		c.Change = neverCalled
		got, err = h.Bulk.Import(t.Context(), c)
		requireImport(t, bulk.NoUser, got, err)
		h.requireItems(t, op, bulk.Item{User: ann, Grant: bulkGrant(0)}, bulk.Item{N: 1, User: nobody, Outcome: bulk.NoUser})
	},
	"GrantsGoWithTheOperation": func(t *testing.T, h StoreHarness, x string) {
		ann, bob := h.Linking.AddUser(t, x, x+"ann"), h.Linking.AddUser(t, x, x+"bob")
		op, other := h.submitImport(t, x, "op", ann, bob), h.submitImport(t, x, "other", ann)
		_, err := h.Bulk.Reject(t.Context(), op.Team, op.ID, 1, bulk.Refused)
		require.NoError(t, err)
		op = h.change(t, op, func(op *bulk.Op) { op.Next = 1 })
		want := []bulk.Item{{User: ann, Grant: bulkGrant(0)}, {N: 1, User: bob, Outcome: bulk.Refused}}
		h.requireItems(t, op, want...)
		op = h.change(t, op, func(op *bulk.Op) { op.Status = bulk.Aborted })
		want[0].Grant = healthlab.Sealed{}
		h.requireItems(t, op, want...)
		h.requireItems(t, other, bulk.Item{User: ann, Grant: bulkGrant(0)})
		c := bulkImport(op, 0, x+"1")
		c.Change = neverCalled
		got, err := h.Bulk.Import(t.Context(), c)
		requireImport(t, "", got, err)
		got, err = h.Bulk.Reject(t.Context(), op.Team, op.ID, 0, bulk.NoUser)
		requireImport(t, "", got, err)
		h.requireItems(t, op, want...)
	},
}
