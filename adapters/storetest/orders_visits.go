package storetest

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
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// OrderVisitsHarness is a fresh, empty store of orders as the suite of their
// appointments needs it.
type OrderVisitsHarness struct {
	Orders orders.Store
	// Visits is the same store.
	Visits orders.VisitStore
}

// RunOrderVisits runs the contract of [orders.VisitStore], and what [orders.Store]
// promises about [orders.Record.Holds]. newStore returns a fresh, empty store and
// registers its own cleanup on t.
func RunOrderVisits(t *testing.T, newStore func(t testing.TB) OrderVisitsHarness) {
	for name, run := range orderVisitCases {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

// due stores an order whose appointments need something at an instant; zero means never.
func (h OrderVisitsHarness) due(t *testing.T, name string, at time.Time) orders.Record {
	t.Helper()
	r := newRecord("a", name)
	r.VisitWork.Due = at
	stored, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
	return stored
}

// keyed is an order with an appointment that was made with booking keys.
func keyed(team, name string, keys ...string) orders.Record {
	r := newRecord(team, name)
	v := orders.Visit{Appointment: orders.Appointment{ID: uuid.New(), Type: appointment.PatientServiceCenter, Status: appointment.VisitConfirmed}}
	for _, k := range keys {
		v.Keys = append(v.Keys, named(k))
	}
	r.Visits = []orders.Visit{v}
	return r
}

// atHome is an order whose patient a provider visits.
func atHome(team, name, user, provider string, status appointment.Status) orders.Record {
	r := newRecord(team, name)
	r.UserID = orderUser(user)
	r.Visits = []orders.Visit{{Appointment: orders.Appointment{ID: uuid.New(), Type: appointment.Phlebotomy, Provider: provider, Status: status}}}
	return r
}

func (h OrderVisitsHarness) put(t *testing.T, r orders.Record) {
	t.Helper()
	_, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
}

// refused stores an order that wants what another one holds.
func (h OrderVisitsHarness) refused(t *testing.T, r orders.Record, what string) {
	t.Helper()
	_, err := h.Orders.Insert(t.Context(), r, begin)
	var held *orders.HeldError
	require.ErrorAs(t, err, &held)
	require.ErrorIs(t, err, healthlab.Conflict)
	require.True(t, strings.HasPrefix(held.Name, what), "it says what is held")
	_, err = h.Orders.Get(t.Context(), r.TeamID, r.ID)
	require.ErrorIs(t, err, healthlab.NotFound, "nothing is written")
}

var orderVisitCases = map[string]func(*testing.T, OrderVisitsHarness){
	"Claim/LongestDueFirst": func(t *testing.T, h OrderVisitsHarness) {
		now, until := orderNoon, orderNoon.Add(time.Minute)
		late, early := h.due(t, "late", now), h.due(t, "early", now.Add(-time.Hour))
		h.due(t, "future", now.Add(time.Microsecond))
		h.due(t, "never", time.Time{})
		got, err := h.Visits.ClaimVisits(t.Context(), 10, now, until)
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{early.ID, late.ID}, claimed(got))
		require.True(t, got[0].VisitWork.Due.Equal(until))
		require.True(t, got[0].VisitWork.Lease.Equal(until))
		require.Equal(t, early.Revision, got[0].Revision, "not a new revision")
		kept, err := h.Orders.Get(t.Context(), early.TeamID, early.ID)
		require.NoError(t, err)
		sameRecord(t, got[0], kept)
	},
	"Claim/NotTheLabs": func(t *testing.T, h OrderVisitsHarness) {
		h.due(t, "visit", orderNoon)
		got, err := h.Orders.Claim(t.Context(), 10, orderNoon, orderNoon.Add(time.Minute))
		require.NoError(t, err)
		require.Empty(t, got)
		r := newRecord("a", "lab")
		r.Lab.Due = orderNoon
		h.put(t, r)
		got, err = h.Visits.ClaimVisits(t.Context(), 10, orderNoon, orderNoon.Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, []orders.OrderID{orderID("visit")}, claimed(got))
	},
	"Claim/AtMostN": func(t *testing.T, h OrderVisitsHarness) {
		for i := range 5 {
			h.due(t, fmt.Sprint(i), orderNoon)
		}
		for _, n := range []int{2, 0} {
			got, err := h.Visits.ClaimVisits(t.Context(), n, orderNoon, orderNoon.Add(time.Minute))
			require.NoError(t, err)
			require.Len(t, got, n)
		}
	},
	"Claim/LeaseEnds": func(t *testing.T, h OrderVisitsHarness) {
		h.due(t, "1", orderNoon)
		for i, tc := range []struct {
			now  time.Duration
			want int
		}{{0, 1}, {0, 0}, {59 * time.Second, 0}, {time.Minute, 1}} {
			now := orderNoon.Add(tc.now)
			got, err := h.Visits.ClaimVisits(t.Context(), 10, now, now.Add(time.Minute))
			require.NoError(t, err)
			require.Len(t, got, tc.want, "claim %d", i)
		}
	},
	"Claim/Planned": func(t *testing.T, h OrderVisitsHarness) {
		r := h.due(t, "1", orderNoon)
		_, err := h.Visits.ClaimVisits(t.Context(), 10, orderNoon, orderNoon.Add(time.Minute))
		require.NoError(t, err)
		_, err = h.Orders.Update(t.Context(), r.TeamID, r.ID, edits(func(r *orders.Record) { r.VisitWork = orders.VisitWork{} }))
		require.NoError(t, err)
		got, err := h.Visits.ClaimVisits(t.Context(), 10, orderNoon.Add(time.Hour), orderNoon.Add(2*time.Hour))
		require.NoError(t, err)
		require.Empty(t, got, "nothing is due any more")
	},
	"Claim/NobodyTwice": func(t *testing.T, h OrderVisitsHarness) {
		const all = 40
		for i := range all {
			h.due(t, fmt.Sprint(i), orderNoon)
		}
		var mu sync.Mutex
		var got []orders.OrderID
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range all {
					list, err := h.Visits.ClaimVisits(t.Context(), 3, orderNoon, orderNoon.Add(time.Hour))
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
	"Claim/ContextEnded": func(t *testing.T, h OrderVisitsHarness) {
		h.due(t, "1", orderNoon)
		_, err := h.Visits.ClaimVisits(ended(t), 1, orderNoon, orderNoon.Add(time.Hour))
		require.ErrorIs(t, err, context.Canceled)
		got, err := h.Visits.ClaimVisits(t.Context(), 1, orderNoon, orderNoon.Add(time.Hour))
		require.NoError(t, err)
		require.Len(t, got, 1)
	},
	"Hold/BookingKeys": func(t *testing.T, h OrderVisitsHarness) {
		h.put(t, keyed("a", "1", "k1", "k2"))
		h.refused(t, keyed("a", "2", "k3", "k2"), "slot ")
		h.put(t, keyed("a", "2", "k3", "k4"))
		h.put(t, keyed("b", "3", "k1"))
		// A key stays used when its appointment is over.
		_, err := h.Orders.Update(t.Context(), orderTeam("a"), orderID("1"), edits(func(r *orders.Record) { r.Visits[0].Status = appointment.VisitCancelled }))
		require.NoError(t, err)
		h.refused(t, keyed("a", "4", "k1"), "slot ")
		// One that is asked for counts.
		moving := keyed("a", "5", "k5")
		moving.Visits[0].Move = &orders.VisitMove{Key: named("k6")}
		h.put(t, moving)
		h.refused(t, keyed("a", "6", "k6"), "slot ")
		_, err = h.Orders.Update(t.Context(), orderTeam("a"), orderID("5"), edits(func(r *orders.Record) { r.Visits[0].Move = nil }))
		require.NoError(t, err)
		h.put(t, keyed("a", "6", "k6"))
	},
	"Hold/VisitsAtHome": func(t *testing.T, h OrderVisitsHarness) {
		h.put(t, atHome("a", "1", "ana", "phleb", appointment.VisitPending))
		h.refused(t, atHome("a", "2", "ana", "phleb", appointment.VisitHeld), orders.HoldVisit)
		h.put(t, atHome("a", "2", "bo", "phleb", appointment.VisitHeld))
		h.put(t, atHome("a", "3", "ana", "other", appointment.VisitHeld))
		h.put(t, atHome("b", "4", "ana", "phleb", appointment.VisitHeld))
		h.put(t, atHome("a", "5", "ana", "phleb", appointment.VisitCompleted))
		_, err := h.Orders.Update(t.Context(), orderTeam("a"), orderID("1"), edits(func(r *orders.Record) { r.Visits[0].Status = appointment.VisitCompleted }))
		require.NoError(t, err)
		h.put(t, atHome("a", "6", "ana", "phleb", appointment.VisitHeld))
	},
	"Hold/Update": func(t *testing.T, h OrderVisitsHarness) {
		h.put(t, keyed("a", "1", "k1"))
		h.put(t, keyed("a", "2", "k2"))
		_, err := h.Orders.Update(t.Context(), orderTeam("a"), orderID("2"), func(r *orders.Record) ([]healthlab.Event, error) {
			r.Visits[0].Keys = append(r.Visits[0].Keys, named("k3"), named("k1"))
			return does(orders.LabAccepted)(r)
		})
		var held *orders.HeldError
		require.ErrorAs(t, err, &held)
		got, err := h.Orders.Get(t.Context(), orderTeam("a"), orderID("2"))
		require.NoError(t, err)
		require.Len(t, got.Visits[0].Keys, 1)
		require.Equal(t, orders.Ordered, got.LowLevel(), "nothing is written")
		h.put(t, keyed("a", "3", "k3"))
		_, err = h.Orders.Update(t.Context(), orderTeam("a"), orderID("2"), edits(func(*orders.Record) {}))
		require.NoError(t, err, "it keeps its own")
	},
	"Hold/OneGetsIt": func(t *testing.T, h OrderVisitsHarness) {
		const all = 16
		for i := range all {
			h.put(t, newRecord("a", fmt.Sprint(i)))
		}
		got := make([]error, all)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				_, got[i] = h.Orders.Update(t.Context(), orderTeam("a"), orderID(fmt.Sprint(i)), edits(func(r *orders.Record) {
					r.Visits = keyed("a", "x", "k").Visits
				}))
			})
		}
		wg.Wait()
		first := 0
		for i, err := range got {
			r, missed := h.Orders.Get(t.Context(), orderTeam("a"), orderID(fmt.Sprint(i)))
			require.NoError(t, missed)
			require.Equal(t, err == nil, len(r.Visits) == 1)
			if err == nil {
				first++
			}
		}
		require.Equal(t, 1, first)
	},
	"Hold/InsertAfter": func(t *testing.T, h OrderVisitsHarness) {
		h.put(t, keyed("a", "1", "k1"))
		h.put(t, keyed("a", "2", "k2"))
		after := func(parents, childs string) error {
			_, _, err := h.Orders.InsertAfter(t.Context(), orderID("2"), newRecord("a", "3"), func(p, c *orders.Record) ([]healthlab.Event, error) {
				p.Visits[0].Keys = append(p.Visits[0].Keys, named(parents))
				c.Visits = keyed("a", "3", childs).Visits
				return begin(c)
			})
			return err
		}
		var held *orders.HeldError
		require.ErrorAs(t, after("k1", "k4"), &held)
		require.ErrorAs(t, after("k3", "k1"), &held)
		require.NoError(t, after("k3", "k4"))
		h.refused(t, keyed("a", "4", "k3"), "slot ")
		h.refused(t, keyed("a", "4", "k4"), "slot ")
	},
}

// RunSlotCache runs the contract of [appointment.SlotCache]. newCache returns a fresh, empty
// one.
func RunSlotCache(t *testing.T, newCache func(t testing.TB) appointment.SlotCache) {
	for name, run := range slotCacheCases {
		t.Run(name, func(t *testing.T) { run(t, newCache(t)) })
	}
}

func freeSlot(site string, after time.Duration) appointment.Slot {
	slot := fullVisit("x").Slot
	slot.SiteCode, slot.Start, slot.End = site, orderNoon.Add(after), orderNoon.Add(after+time.Hour)
	return slot
}

var slotCacheCases = map[string]func(*testing.T, appointment.SlotCache){
	"Kept": func(t *testing.T, c appointment.SlotCache) {
		one, two := freeSlot("A", time.Hour), freeSlot("A", 2*time.Hour)
		bare := appointment.Slot{Provider: "northlab", SiteCode: "B", Start: orderNoon, End: orderNoon.Add(time.Minute)}
		zoned := appointment.Slot{Provider: "northlab", SiteCode: "C", Start: orderNoon.In(time.FixedZone("x", 3600)).Add(999), End: orderNoon.Add(time.Minute)}
		require.NoError(t, c.KeepSlots(t.Context(), "northlab", orderNoon, map[string][]appointment.Slot{"A": {one, two}, "B": {bare}, "C": {zoned}, "D": nil}))
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A", "B", "C", "D", "E"})
		require.NoError(t, err)
		require.Len(t, got, 4, "nothing is known of E")
		require.Equal(t, appointment.CachedSlots{At: orderNoon, Slots: []appointment.Slot{one, two}}, got["A"])
		require.Equal(t, []appointment.Slot{bare}, got["B"].Slots)
		require.Equal(t, orderNoon, got["C"].Slots[0].Start, "UTC, to the microsecond")
		require.Empty(t, got["D"].Slots)
		got, err = c.CachedSlots(t.Context(), "northlab", nil)
		require.NoError(t, err)
		require.Empty(t, got)
	},
	"Replaced": func(t *testing.T, c appointment.SlotCache) {
		old, fresh := freeSlot("A", time.Hour), freeSlot("A", 2*time.Hour)
		keep := func(after time.Duration, s appointment.Slot) {
			require.NoError(t, c.KeepSlots(t.Context(), "northlab", orderNoon.Add(after), map[string][]appointment.Slot{"A": {s}}))
		}
		keep(0, old)
		keep(time.Minute, fresh)
		keep(30*time.Second, old)
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
		require.NoError(t, err)
		require.Equal(t, appointment.CachedSlots{At: orderNoon.Add(time.Minute), Slots: []appointment.Slot{fresh}}, got["A"], "the latest stays")
	},
	"LabsAreApart": func(t *testing.T, c appointment.SlotCache) {
		require.NoError(t, c.KeepSlots(t.Context(), "northlab", orderNoon, map[string][]appointment.Slot{"A": {freeSlot("A", 0)}}))
		for _, tc := range [][2]string{{"southlab", "A"}, {"northlab", "a"}, {"Northlab", "A"}} {
			got, err := c.CachedSlots(t.Context(), tc[0], []string{tc[1]})
			require.NoError(t, err)
			require.Empty(t, got)
		}
	},
	"NobodyElsesCopy": func(t *testing.T, c appointment.SlotCache) {
		list := []appointment.Slot{freeSlot("A", 0)}
		require.NoError(t, c.KeepSlots(t.Context(), "northlab", orderNoon, map[string][]appointment.Slot{"A": list}))
		list[0].Key = "spoilt"
		for range 2 {
			got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
			require.NoError(t, err)
			require.Equal(t, "k|1", got["A"].Slots[0].Key)
			got["A"].Slots[0].Key = "spoilt"
		}
	},
	"ContextEnded": func(t *testing.T, c appointment.SlotCache) {
		require.ErrorIs(t, c.KeepSlots(ended(t), "northlab", orderNoon, map[string][]appointment.Slot{"A": nil}), context.Canceled)
		_, err := c.CachedSlots(ended(t), "northlab", []string{"A"})
		require.ErrorIs(t, err, context.Canceled)
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
		require.NoError(t, err)
		require.Empty(t, got)
	},
}

// RunCenters runs the contract of [appointment.Centers]. newCenters returns one that has
// exactly these centers.
func RunCenters(t *testing.T, newCenters func(t testing.TB, centers []appointment.Center) appointment.Centers) {
	for name, run := range centerCases {
		t.Run(name, func(t *testing.T) {
			run(t, func(list ...appointment.Center) appointment.Centers { return newCenters(t, list) })
		})
	}
}

// place is a center with no field at its zero value but Inactive.
func place(lab int, code string, lng, lat float64, has ...appointment.PSCCapability) appointment.Center {
	return appointment.Center{LabID: lab, SiteCode: code, Location: appointment.LngLat{Lng: lng, Lat: lat}, IANATimezone: "America/Phoenix",
		Capabilities: append([]appointment.PSCCapability{}, has...),
		Metadata: appointment.PSCMetadata{Name: "Center " + code, FirstLine: "1 Main St", SecondLine: "b", City: "Mesa", State: "AZ", ZipCode: "85201",
			PhoneNumber: "1", FaxNumber: "2", Website: ptr("https://c.example.com"), Hours: []byte(`{"mon":"7-12"}`)}}
}

func sites(list []appointment.Center) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, c.SiteCode)
	}
	return out
}

var centerCases = map[string]func(*testing.T, func(...appointment.Center) appointment.Centers){
	"Near/RoundTrip": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		want := place(1, "A", -112, 33, appointment.PSCStat)
		bare := want
		bare.SiteCode, bare.Metadata = "B", appointment.PSCMetadata{Name: "n", FirstLine: "f", City: "c", State: "s", ZipCode: "85201"}
		c := with(want, bare)
		near, err := c.CentersNear(t.Context(), appointment.CenterQuery{LabID: 1, Near: want.Location, Miles: 10, Most: 5})
		require.NoError(t, err)
		require.Equal(t, asJSON(t, []appointment.Center{want, bare}), asJSON(t, near.Centers), "ties by site code")
		at, err := c.CentersAt(t.Context(), 1, []string{"A"})
		require.NoError(t, err)
		require.Equal(t, asJSON(t, []appointment.Center{want}), asJSON(t, at))
	},
	"Near/LikeTheIndex": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		var all []appointment.Center
		for i := range 400 {
			c := place(1+i%2, fmt.Sprintf("S%03d", i), -112+float64(i*7919%997)/250-2, 33+float64(i*104729%991)/300-1.6, appointment.PSCCapabilities()[:i%4]...)
			c.Inactive = i%11 == 0
			all = append(all, c)
		}
		model, err := appointment.NewCenterIndex(all)
		require.NoError(t, err)
		c := with(all...)
		rapid.Check(t, func(rt *rapid.T) {
			q := appointment.CenterQuery{LabID: rapid.IntRange(1, 3).Draw(rt, "lab"), Miles: rapid.SampledFrom([]float64{0, 10, 25, 50, 100, 400}).Draw(rt, "miles"),
				Near:         appointment.LngLat{Lng: rapid.Float64Range(-116, -108).Draw(rt, "lng"), Lat: rapid.Float64Range(30, 37).Draw(rt, "lat")},
				Capabilities: appointment.PSCCapabilities()[:rapid.IntRange(0, 2).Draw(rt, "wants")], Most: rapid.SampledFrom([]int{0, 1, 30}).Draw(rt, "most")}
			want, err := model.CentersNear(t.Context(), q)
			require.NoError(rt, err)
			got, err := c.CentersNear(t.Context(), q)
			require.NoError(rt, err)
			require.Equal(rt, sites(want.Centers), sites(got.Centers))
			require.Equal(rt, want.Total, got.Total)
			require.Equal(rt, append([]appointment.PSCCapability{}, want.Capabilities...), append([]appointment.PSCCapability{}, got.Capabilities...))
			after := fmt.Sprintf("S%03d", rapid.IntRange(0, 400).Draw(rt, "after"))
			n := rapid.IntRange(0, 5).Draw(rt, "n")
			next, err := model.NextCenters(t.Context(), q.LabID, appointment.PSCStat, after, n)
			require.NoError(rt, err)
			more, err := c.NextCenters(t.Context(), q.LabID, appointment.PSCStat, after, n)
			require.NoError(rt, err)
			require.Equal(rt, sites(next), sites(more))
		})
	},
	"At": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		closed := place(1, "C", -112, 33)
		closed.Inactive = true
		c := with(place(1, "b", -112, 33), closed, place(1, "A", -112, 33), place(2, "D", -112, 33))
		got, err := c.CentersAt(t.Context(), 1, []string{"b", "A", "C", "A", "D", "a"})
		require.NoError(t, err)
		require.Equal(t, []string{"A", "C", "b"}, sites(got), "inactive ones included, by code, byte for byte")
		require.True(t, got[1].Inactive)
		got, err = c.CentersAt(t.Context(), 1, nil)
		require.NoError(t, err)
		require.Empty(t, got)
	},
}
