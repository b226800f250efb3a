package orderstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// ErasedKeysHarness is a fresh, empty store that encrypts orders and results under review.
type ErasedKeysHarness struct {
	Orders  orders.Store
	Reviews exchange.ReviewStore
	// Keys are the encryption keys of the store.
	Keys *personkey.Keys
}

// RunErasedKeys tests lists of [orders.Store] and [exchange.ReviewStore] that contain data of a person whose
// key was deleted, as in a restored backup. newStore returns a fresh, empty store and registers its own cleanup
// on t.
func RunErasedKeys(t *testing.T, newStore func(t testing.TB) ErasedKeysHarness) {
	erased, other := conformance.User("ana"), conformance.User("ben")
	t.Run("Orders", func(t *testing.T) {
		h := newStore(t)
		var left []orders.OrderID
		var team healthlab.TeamID
		for i, name := range []string{"1", "2", "3", "4", "5"} {
			r := newRecord("a", name)
			r.PatientDetails = &people.PatientDetails{FirstName: new("Ana"), LastName: new("Roe " + name), DOB: birthday, Gender: people.Female}
			if r.Lab.Due = noon; i%2 == 0 {
				r.UserID = other
			}
			stored, err := h.Orders.Insert(t.Context(), r, begin)
			require.NoError(t, err)
			if team = r.TeamID; i%2 == 0 {
				left = append(left, stored.ID)
			}
		}
		require.NoError(t, h.Keys.Delete(t.Context(), personkey.Ref{Team: team, User: erased}))
		for _, sort := range []orders.SortKey{orders.SortCreatedAt, orders.SortPatientName, orders.SortLastStatus} {
			for _, direction := range []catalogue.Direction{catalogue.Ascending, catalogue.Descending} {
				for _, size := range []int{1, 2, 50} {
					var ids []orders.OrderID
					for page := 1; page <= 5; page++ {
						got, err := h.Orders.List(t.Context(), orders.Query{Team: team, Sort: sort, Direction: direction, Page: page, Size: size})
						require.NoError(t, err)
						for _, o := range got.Orders {
							ids = append(ids, o.ID)
						}
					}
					require.ElementsMatch(t, left, ids, "%s %s %d", sort, direction, size)
				}
			}
		}
		var claimed []orders.OrderID
		for range 5 {
			due, err := h.Orders.Claim(t.Context(), 1, noon, time.Hour)
			require.NoError(t, err)
			for _, r := range due {
				claimed = append(claimed, r.ID)
			}
		}
		require.ElementsMatch(t, left, claimed)
	})
	t.Run("Reviews", func(t *testing.T) {
		h := newStore(t)
		var left []exchange.RawResultID
		for i, name := range []string{"1", "2", "3", "4", "5"} {
			r := rawResult("a", name, noon)
			if i%2 == 1 {
				r.Subject = other
				left = append(left, r.ID)
			}
			require.NoError(t, h.Reviews.InsertResult(t.Context(), r, nil))
		}
		team := conformance.Team("a")
		require.NoError(t, h.Keys.Delete(t.Context(), personkey.Ref{Team: team, User: erased}))
		for _, size := range []int{1, 2, 3, 50} {
			var ids []exchange.RawResultID
			q := exchange.ResultQuery{Team: team, Limit: size}
			for {
				page, err := h.Reviews.Results(t.Context(), q)
				require.NoError(t, err)
				for _, r := range page.Results {
					ids = append(ids, r.ID)
				}
				if q.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			require.ElementsMatch(t, left, ids, "%d", size)
		}
	})
}
