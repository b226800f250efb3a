package orderstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// listed returns the ids of a team's listed orders, and requires that lists in every sort order have the same orders.
func (h ErasureHarness) listed(t *testing.T, team healthlab.TeamID) (ids []orders.OrderID) {
	t.Helper()
	for i, key := range []orders.SortKey{orders.SortCreatedAt, orders.SortLastStatus, orders.SortPatientName} {
		page, err := h.Orders.List(t.Context(), orders.Query{Team: team, Sort: key, Direction: catalogue.Ascending})
		require.NoError(t, err)
		require.Len(t, page.Orders, page.Total)
		var these []orders.OrderID
		for _, o := range page.Orders {
			these = append(these, o.ID)
		}
		if i > 0 {
			require.ElementsMatch(t, ids, these)
		}
		ids = these
	}
	return ids
}

// orderDeletionCases are tests of a user who is deleted and not erased.
var orderDeletionCases = map[string]func(*testing.T, ErasureHarness){
	"Lists": func(t *testing.T, h ErasureHarness) {
		mine, other := h.put(t, "a", "1", "ana", "shared"), h.put(t, "a", "2", "bo", "shared")
		team, ana := mine.TeamID, mine.UserID
		require.ElementsMatch(t, []orders.OrderID{mine.ID, other.ID}, h.listed(t, team))
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		require.Equal(t, []orders.OrderID{other.ID}, h.listed(t, team))
		page, err := h.Orders.List(t.Context(), orders.Query{Team: team, User: ana})
		require.NoError(t, err)
		require.Zero(t, page.Total)
		got, err := h.Orders.Get(t.Context(), team, other.ID)
		require.NoError(t, err)
		require.False(t, got.UserDeleted)
		require.Equal(t, []orders.OrderID{other.ID}, memberIDs(got.OrderTransaction))

		healthdatatest.RestoreUser(t, h.Users, team, ana)
		require.ElementsMatch(t, []orders.OrderID{mine.ID, other.ID}, h.listed(t, team))
		got, err = h.Orders.Get(t.Context(), team, other.ID)
		require.NoError(t, err)
		require.Len(t, got.OrderTransaction.Orders, 2)
	},
	"BackgroundWorkGoesOn": func(t *testing.T, h ErasureHarness) {
		mine := h.put(t, "a", "1", "ana", "1")
		team, ana := mine.TeamID, mine.UserID
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		for _, read := range []func() (orders.Record, error){
			func() (orders.Record, error) { return h.Orders.Get(t.Context(), team, mine.ID) },
			func() (orders.Record, error) { return h.Orders.FindSample(t.Context(), team, *mine.SampleID) },
			func() (orders.Record, error) {
				return h.Orders.Update(t.Context(), team, mine.ID, applies(orders.LabAccepted))
			},
		} {
			got, err := read()
			require.NoError(t, err)
			require.True(t, got.UserDeleted)
			require.Equal(t, []orders.OrderID{mine.ID}, memberIDs(got.OrderTransaction))
		}
		ids, err := h.Orders.OfUser(t.Context(), team, ana)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{mine.ID}, ids)
		due, err := h.Orders.Claim(t.Context(), 10, noon, time.Hour)
		require.NoError(t, err)
		require.Len(t, due, 1)
		require.True(t, due[0].UserDeleted)
		require.Empty(t, h.listed(t, team), "a change does not list it")

		healthdatatest.RestoreUser(t, h.Users, team, ana)
		require.Equal(t, []orders.OrderID{mine.ID}, h.listed(t, team))
		got, err := h.Orders.Get(t.Context(), team, mine.ID)
		require.NoError(t, err)
		require.False(t, got.UserDeleted)
		require.Equal(t, orders.RequisitionCreated, got.LowLevel(), "as it was changed meanwhile")
	},
	"Notifications": func(t *testing.T, h ErasureHarness) {
		mine := h.put(t, "a", "1", "ana", "1")
		team, ana := mine.TeamID, mine.UserID
		_, err := h.Orders.Update(t.Context(), team, mine.ID, edits(func(r *orders.Record) { r.Notifications.Due = noon }))
		require.NoError(t, err)
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		due, err := h.Orders.ClaimNotifications(t.Context(), 10, noon, time.Hour)
		require.NoError(t, err)
		require.Empty(t, due)
		healthdatatest.RestoreUser(t, h.Users, team, ana)
		due, err = h.Orders.ClaimNotifications(t.Context(), 10, noon, time.Hour)
		require.NoError(t, err)
		require.Len(t, due, 1)
	},
	"Answers": func(t *testing.T, h ErasureHarness) {
		k := keysT{h.Keys, h.SetClock}
		mine := h.put(t, "a", "1", "ana", "1")
		h.put(t, "a", "2", "bo", "2")
		for _, key := range []string{"1", "2"} { // each key has the name of its order
			k.start(t, scopeOf("a", "order", key), key, 0)
			require.NoError(t, k.finish(t, scopeOf("a", "order", key), 0, []byte("order "+key)))
		}
		about := scopeOf("a", "insurance", "3")
		k.start(t, about, "3", 0)
		require.NoError(t, k.FinishKey(t.Context(), about, noon.Add(time.Minute), []byte("member id"), mine.UserID, time.Hour))

		healthdatatest.DeleteUser(t, h.Users, mine.TeamID, mine.UserID)
		state := k.start(t, scopeOf("a", "order", "1"), "1", time.Second)
		require.Equal(t, started("1", time.Second), state, "the order keeps its id")
		require.Nil(t, k.start(t, about, "3", time.Second).Answer)
		require.Equal(t, "order 2", string(k.start(t, scopeOf("a", "order", "2"), "2", time.Second).Answer))
		require.NoError(t, h.Users.Erase(t.Context(), mine.TeamID, mine.UserID))
		require.Equal(t, orderID("4"), k.start(t, about, "4", 2*time.Second).Order, "the key is forgotten")
	},
}
