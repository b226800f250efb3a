package orderstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// VisitsHarness is a fresh, empty store of orders for the suite of their appointments.
type VisitsHarness struct {
	Orders orders.Store
	// Visits is the same store as Orders.
	Visits orders.VisitStore
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunVisits runs the contract tests of [orders.VisitStore], and of [orders.Record.Reservations] in
// [orders.Store]. newStore returns a fresh, empty store and registers its own cleanup on t.
func RunVisits(t *testing.T, newStore func(t testing.TB) VisitsHarness) {
	for name, run := range conformance.Sorted(orderVisitCases) {
		t.Run(name, func(t *testing.T) {
			h := newStore(t)
			h.SetClock(noon)
			run(t, h)
		})
	}
}

// due stores an order whose VisitWork is due at an instant; zero means never.
func (h VisitsHarness) due(t *testing.T, name string, at time.Time) orders.Record {
	t.Helper()
	r := newRecord("a", name)
	r.VisitWork.Due = at
	stored, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
	return stored
}

// keyed returns an order with an appointment that was booked with the named booking keys.
func keyed(team, name string, keys ...string) orders.Record {
	r := newRecord(team, name)
	v := orders.Visit{Appointment: orders.Appointment{ID: uuid.New(), Type: appointment.PatientServiceCenter, Status: appointment.VisitConfirmed}}
	for _, k := range keys {
		v.Keys = append(v.Keys, conformance.Named(k))
	}
	r.Visits = []orders.Visit{v}
	return r
}

func atHome(team, name, user, provider string, status appointment.Status) orders.Record {
	r := newRecord(team, name)
	r.UserID = conformance.User(user)
	r.Visits = []orders.Visit{{Appointment: orders.Appointment{ID: uuid.New(), Type: appointment.Phlebotomy, Provider: provider, Status: status}}}
	return r
}

func (h VisitsHarness) put(t *testing.T, r orders.Record) {
	t.Helper()
	_, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
}

// requireReserved requires that an order cannot be inserted, because another order has a reservation that begins with
// what.
func (h VisitsHarness) requireReserved(t *testing.T, r orders.Record, what string) {
	t.Helper()
	_, err := h.Orders.Insert(t.Context(), r, begin)
	var held *orders.ReservedError
	require.ErrorAs(t, err, &held)
	require.ErrorIs(t, err, healthlab.Conflict)
	require.True(t, strings.HasPrefix(held.Name, what), "it says what is held")
	_, err = h.Orders.Get(t.Context(), r.TeamID, r.ID)
	require.ErrorIs(t, err, healthlab.NotFound, "nothing is written")
}

var orderVisitCases = map[string]func(*testing.T, VisitsHarness){
	"Claim/LongestDueFirst": func(t *testing.T, h VisitsHarness) {
		now, until := noon, noon.Add(time.Minute)
		late, early := h.due(t, "late", now), h.due(t, "early", now.Add(-time.Hour))
		h.due(t, "future", now.Add(time.Microsecond))
		h.due(t, "never", time.Time{})
		got, err := h.Visits.ClaimVisits(t.Context(), 10, now, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].VisitWork.Due.Equal(early.VisitWork.Due))
		require.True(t, got[0].VisitWork.Lease.Equal(until))
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		kept, err := h.Orders.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		requireRecord(t, got[0], kept)
	},
	"Claim/NotTheLabs": func(t *testing.T, h VisitsHarness) {
		h.due(t, "visit", noon)
		got, err := h.Orders.Claim(t.Context(), 10, noon, time.Minute)
		require.NoError(t, err)
		require.Empty(t, got)
		r := newRecord("a", "lab")
		r.Lab.Due = noon
		h.put(t, r)
		got, err = h.Visits.ClaimVisits(t.Context(), 10, noon, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{orderID("visit")}, claimed(got))
	},
	"Claim/AtMostN": func(t *testing.T, h VisitsHarness) {
		for i := range 5 {
			h.due(t, fmt.Sprint(i), noon)
		}
		for _, n := range []int{2, 0} {
			got, err := h.Visits.ClaimVisits(t.Context(), n, noon, time.Minute)
			require.NoError(t, err)
			require.Len(t, got, n)
		}
	},
	"Claim/LeaseEnds": func(t *testing.T, h VisitsHarness) {
		h.due(t, "1", noon)
		for i, tc := range []struct {
			now  time.Duration
			want int
		}{{0, 1}, {0, 0}, {59 * time.Second, 0}, {time.Minute, 1}} {
			h.SetClock(noon.Add(tc.now))
			got, err := h.Visits.ClaimVisits(t.Context(), 10, noon, time.Minute)
			require.NoError(t, err)
			require.Len(t, got, tc.want, "claim %d", i)
		}
	},
	"Claim/CallersClocks": func(t *testing.T, h VisitsHarness) {
		h.due(t, "1", noon.Add(-2*time.Hour))
		callersClocks(t, h.SetClock, h.Visits.ClaimVisits)
	},
	"Claim/EarlierWhileLeased": func(t *testing.T, h VisitsHarness) {
		r := h.due(t, "1", noon)
		earlierWhileLeased(t, h.Orders, r, h.Visits.ClaimVisits, func(r *orders.Record) { r.VisitWork.Due = noon.Add(-time.Hour) },
			func(r *orders.Record) { r.VisitWork.Lease = time.Time{} })
	},
	"Claim/Planned": func(t *testing.T, h VisitsHarness) {
		r := h.due(t, "1", noon)
		_, err := h.Visits.ClaimVisits(t.Context(), 10, noon, time.Minute)
		require.NoError(t, err)
		_, err = h.Orders.Update(t.Context(), r.TeamID, r.ID, edits(func(r *orders.Record) { r.VisitWork = orders.Work{} }))
		require.NoError(t, err)
		got, err := h.Visits.ClaimVisits(t.Context(), 10, noon.Add(time.Hour), time.Hour)
		require.NoError(t, err)
		require.Empty(t, got, "nothing is due any more")
	},
	"Claim/NobodyTwice": func(t *testing.T, h VisitsHarness) {
		const all = 40
		for i := range all {
			h.due(t, fmt.Sprint(i), noon)
		}
		var mu sync.Mutex
		var got []orders.OrderID
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range all {
					list, err := h.Visits.ClaimVisits(t.Context(), 3, noon, time.Hour)
					mu.Lock()
					got = append(got, claimed(list)...)
					if err != nil {
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Len(t, got, all)
		slices.SortFunc(got, func(a, b orders.OrderID) int { return strings.Compare(a.String(), b.String()) })
		require.Len(t, slices.Compact(got), all)
	},
	"Claim/ContextEnded": func(t *testing.T, h VisitsHarness) {
		h.due(t, "1", noon)
		_, err := h.Visits.ClaimVisits(conformance.Ended(t), 1, noon, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		got, err := h.Visits.ClaimVisits(t.Context(), 1, noon, time.Hour)
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
	"Hold/BookingKeys": func(t *testing.T, h VisitsHarness) {
		h.put(t, keyed("a", "1", "k1", "k2"))
		h.requireReserved(t, keyed("a", "2", "k3", "k2"), "slot ")
		h.put(t, keyed("a", "2", "k3", "k4"))
		h.put(t, keyed("b", "3", "k1"))
		// A key stays used when its appointment is over.
		_, err := h.Orders.Update(t.Context(), conformance.Team("a"), orderID("1"), edits(func(r *orders.Record) { r.Visits[0].Status = appointment.VisitCancelled }))
		require.NoError(t, err)
		h.requireReserved(t, keyed("a", "4", "k1"), "slot ")
		// The key of a requested move counts as used.
		moving := keyed("a", "5", "k5")
		moving.Visits[0].Move = &orders.VisitMove{Key: conformance.Named("k6")}
		h.put(t, moving)
		h.requireReserved(t, keyed("a", "6", "k6"), "slot ")
		_, err = h.Orders.Update(t.Context(), conformance.Team("a"), orderID("5"), edits(func(r *orders.Record) { r.Visits[0].Move = nil }))
		require.NoError(t, err)
		h.put(t, keyed("a", "6", "k6"))
	},
	"Hold/VisitsAtHome": func(t *testing.T, h VisitsHarness) {
		h.put(t, atHome("a", "1", "ana", "phleb", appointment.VisitPending))
		h.requireReserved(t, atHome("a", "2", "ana", "phleb", appointment.VisitHeld), orders.VisitReservation)
		h.put(t, atHome("a", "2", "bo", "phleb", appointment.VisitHeld))
		h.put(t, atHome("a", "3", "ana", "other", appointment.VisitHeld))
		h.put(t, atHome("b", "4", "ana", "phleb", appointment.VisitHeld))
		h.put(t, atHome("a", "5", "ana", "phleb", appointment.VisitCompleted))
		_, err := h.Orders.Update(t.Context(), conformance.Team("a"), orderID("1"), edits(func(r *orders.Record) { r.Visits[0].Status = appointment.VisitCompleted }))
		require.NoError(t, err)
		h.put(t, atHome("a", "6", "ana", "phleb", appointment.VisitHeld))
	},
	"Hold/Update": func(t *testing.T, h VisitsHarness) {
		h.put(t, keyed("a", "1", "k1"))
		h.put(t, keyed("a", "2", "k2"))
		_, err := h.Orders.Update(t.Context(), conformance.Team("a"), orderID("2"), func(r *orders.Record) ([]healthlab.Event, error) {
			r.Visits[0].Keys = append(r.Visits[0].Keys, conformance.Named("k3"), conformance.Named("k1"))
			return applies(orders.LabAccepted)(r)
		})
		var held *orders.ReservedError
		require.ErrorAs(t, err, &held)
		got, err := h.Orders.Get(t.Context(), conformance.Team("a"), orderID("2"))
		require.NoError(t, err)
		require.Len(t, got.Visits[0].Keys, 1)
		require.Equal(t, orders.Ordered, got.LowLevel(), "nothing is written")
		h.put(t, keyed("a", "3", "k3"))
		_, err = h.Orders.Update(t.Context(), conformance.Team("a"), orderID("2"), edits(func(*orders.Record) {}))
		require.NoError(t, err, "it keeps its own")
	},
	"Hold/OneGetsIt": func(t *testing.T, h VisitsHarness) {
		const all = 16
		for i := range all {
			h.put(t, newRecord("a", fmt.Sprint(i)))
		}
		got := make([]error, all)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				_, got[i] = h.Orders.Update(t.Context(), conformance.Team("a"), orderID(fmt.Sprint(i)), edits(func(r *orders.Record) {
					r.Visits = keyed("a", "x", "k").Visits
				}))
			})
		}
		wg.Wait()
		first := 0
		for i, err := range got {
			r, missed := h.Orders.Get(t.Context(), conformance.Team("a"), orderID(fmt.Sprint(i)))
			require.NoError(t, missed)
			require.Equal(t, err == nil, len(r.Visits) == 1)
			if err == nil {
				first++
			}
		}
		require.Equal(t, 1, first)
	},
	"Hold/InsertAfter": func(t *testing.T, h VisitsHarness) {
		h.put(t, keyed("a", "1", "k1"))
		h.put(t, keyed("a", "2", "k2"))
		after := func(parents, childs string) error {
			_, _, err := h.Orders.InsertAfter(t.Context(), orderID("2"), newRecord("a", "3"), func(p, c *orders.Record) ([]healthlab.Event, error) {
				p.Visits[0].Keys = append(p.Visits[0].Keys, conformance.Named(parents))
				c.Visits = keyed("a", "3", childs).Visits
				return begin(c)
			})
			return err
		}
		var held *orders.ReservedError
		require.ErrorAs(t, after("k1", "k4"), &held)
		require.ErrorAs(t, after("k3", "k1"), &held)
		require.NoError(t, after("k3", "k4"))
		h.requireReserved(t, keyed("a", "4", "k3"), "slot ")
		h.requireReserved(t, keyed("a", "4", "k4"), "slot ")
	},
}
