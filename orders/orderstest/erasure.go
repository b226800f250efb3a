package orderstest

import (
	"cmp"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

// ErasureHarness is a fresh, empty store of users and orders.
type ErasureHarness struct {
	Users  healthdata.Users
	Orders orders.Store
	Keys   idempotency.Keys
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunErasure tests the contracts of [healthdata.Users] and [orders.Store] about the orders of a deleted or
// erased user. newStore returns a fresh, empty store and registers its own cleanup on t.
func RunErasure(t *testing.T, newStore func(t testing.TB) ErasureHarness) {
	for name, run := range conformance.Sorted(orderErasureCases) {
		t.Run("Erase/"+name, func(t *testing.T) { run(t, newErasure(t, newStore)) })
	}
	for name, run := range conformance.Sorted(orderDeletionCases) {
		t.Run("Delete/"+name, func(t *testing.T) { run(t, newErasure(t, newStore)) })
	}
}

func newErasure(t *testing.T, newStore func(t testing.TB) ErasureHarness) ErasureHarness {
	h := newStore(t)
	h.SetClock(noon)
	return h
}

// ensureUser adds a user, unless the store has it.
func ensureUser(t *testing.T, users healthdata.Users, team healthlab.TeamID, user healthlab.UserID) {
	t.Helper()
	_, err := users.Get(t.Context(), team, user)
	if errors.Is(err, healthlab.NotFound) {
		healthdatatest.AddUser(t, users, team, user)
		return
	}
	require.NoError(t, err)
}

// put stores an order with a sample of its own in a transaction, and adds its user.
func (h ErasureHarness) put(t *testing.T, team, name, user, transaction string) orders.Record {
	t.Helper()
	r := newRecord(team, name)
	r.UserID, r.OrderTransaction.ID, r.SampleID = conformance.User(user), journey(transaction), new("sample "+name)
	ensureUser(t, h.Users, r.TeamID, r.UserID)
	r.Lab.Due, r.Visits = noon, keyed(team, name, "key "+name).Visits
	stored, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
	return stored
}

var orderErasureCases = map[string]func(*testing.T, ErasureHarness){
	"Orders": func(t *testing.T, h ErasureHarness) {
		r := h.put(t, "a", "1", "ana", "1")
		healthdatatest.EraseUser(t, h.Users, r.TeamID, r.UserID)
		_, err := h.Orders.Get(t.Context(), r.TeamID, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Orders.FindSample(t.Context(), r.TeamID, *r.SampleID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Orders.Update(t.Context(), r.TeamID, r.ID, edits(func(*orders.Record) {}))
		require.ErrorIs(t, err, healthlab.NotFound)
		page, err := h.Orders.List(t.Context(), orders.Query{Team: r.TeamID})
		require.NoError(t, err)
		require.Zero(t, page.Total)
		due, err := h.Orders.Claim(t.Context(), 10, noon, time.Hour)
		require.NoError(t, err)
		require.Empty(t, due)
		again := h.put(t, "a", "1", "bo", "1") // the erased order's ids can be used again
		require.Len(t, again.OrderTransaction.Orders, 1)
		require.Greater(t, again.LastEvent.ID, r.LastEvent.ID, "ids of events are not")
	},
	"Gone": func(t *testing.T, h ErasureHarness) {
		team, ana := conformance.Team("a"), conformance.User("ana")
		insert := func(name string, change orders.Change) error {
			r := newRecord("a", name)
			_, err := h.Orders.Insert(t.Context(), r, change)
			return err
		}
		healthdatatest.AddUser(t, h.Users, team, conformance.User("bo"))
		require.ErrorIs(t, insert("1", begin), healthlab.NotFound, "the team keeps its users here, and has no such")
		healthdatatest.AddUser(t, h.Users, conformance.Team("b"), ana)
		require.ErrorIs(t, insert("1", begin), healthlab.NotFound, "another team's")
		healthdatatest.DeleteUser(t, h.Users, conformance.Team("b"), ana)
		require.NoError(t, h.Users.Erase(t.Context(), conformance.Team("b"), ana))
		healthdatatest.AddUser(t, h.Users, team, ana)
		require.NoError(t, insert("1", begin))
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		require.ErrorIs(t, insert("2", begin), healthlab.NotFound, "deleted")
		require.NoError(t, h.Users.Erase(t.Context(), team, ana))
		require.ErrorIs(t, insert("3", begin), healthlab.NotFound, "erased")
		page, err := h.Orders.List(t.Context(), orders.Query{Team: team})
		require.NoError(t, err)
		require.Zero(t, page.Total)
	},
	"Meanwhile": func(t *testing.T, h ErasureHarness) {
		team, ana := conformance.Team("a"), conformance.User("ana")
		healthdatatest.AddUser(t, h.Users, team, conformance.User("bo"))
		healthdatatest.AddUser(t, h.Users, team, ana)
		var once sync.Once
		erased := make(chan error, 1)
		r := newRecord("a", "1")
		_, err := h.Orders.Insert(t.Context(), r, func(r *orders.Record) ([]healthlab.Event, error) {
			once.Do(func() {
				go func() {
					_, err := h.Users.Update(t.Context(), team, ana, func(u *healthdata.User) ([]healthlab.Event, error) {
						u.DeletedAt = noon
						return nil, nil
					})
					erased <- cmp.Or(err, h.Users.Erase(t.Context(), team, ana))
				}()
				select { // the erasure waits for the insertion, or ends before it
				case err := <-erased:
					erased <- err
				case <-time.After(200 * time.Millisecond):
				}
			})
			return begin(r)
		})
		require.NoError(t, <-erased)
		if err != nil {
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		_, err = h.Orders.Get(t.Context(), team, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Keys": func(t *testing.T, h ErasureHarness) {
		k := keysT{h.Keys, h.SetClock}
		r, other := h.put(t, "a", "1", "ana", "1"), h.put(t, "a", "2", "bo", "2")
		for _, key := range []string{"1", "2"} { // each key has the name of its order
			k.start(t, scopeOf("a", "order", key), key, 0)
			require.NoError(t, k.finish(t, scopeOf("a", "order", key), 0, []byte("order "+key)))
		}
		healthdatatest.EraseUser(t, h.Users, r.TeamID, r.UserID)
		state := k.start(t, scopeOf("a", "order", "1"), "3", time.Second)
		require.Equal(t, started("3", time.Second), state)
		require.Equal(t, "order 2", string(k.start(t, scopeOf("a", "order", "2"), "4", time.Second).Answer))
		_, err := h.Orders.Get(t.Context(), other.TeamID, other.ID)
		require.NoError(t, err)
	},
	"NothingElse": func(t *testing.T, h ErasureHarness) {
		first := h.put(t, "a", "1", "ana", "shared")
		shared := h.put(t, "a", "2", "bo", "shared")
		alone := h.put(t, "a", "3", "bo", "alone")
		elsewhere := h.put(t, "b", "4", "cy", "shared")
		healthdatatest.EraseUser(t, h.Users, first.TeamID, first.UserID)
		for _, want := range []orders.Record{shared, alone, elsewhere} {
			got, err := h.Orders.Get(t.Context(), want.TeamID, want.ID)
			require.NoError(t, err)
			require.Equal(t, []orders.OrderID{want.ID}, memberIDs(got.OrderTransaction))
			_, err = h.Orders.FindSample(t.Context(), want.TeamID, *want.SampleID)
			require.NoError(t, err)
			_, err = h.Orders.Update(t.Context(), want.TeamID, want.ID, applies(orders.LabAccepted))
			require.NoError(t, err)
		}
	},
}
