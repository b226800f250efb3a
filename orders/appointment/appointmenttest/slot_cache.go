package appointmenttest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// RunSlotCache runs the contract tests of [appointment.SlotCache]. newCache returns a fresh, empty cache.
func RunSlotCache(t *testing.T, newCache func(t testing.TB) appointment.SlotCache) {
	for name, run := range conformance.Sorted(slotCacheCases) {
		t.Run(name, func(t *testing.T) { run(t, newCache(t)) })
	}
}

func freeSlot(site string, after time.Duration) appointment.Slot {
	return appointment.Slot{
		Provider: "northlab", SiteCode: site, Start: noon.Add(after), End: noon.Add(after + time.Hour), Expires: noon.Add(-time.Hour),
		Zone: "America/Phoenix", Location: appointment.LngLat{Lng: -111.83, Lat: 33.42}, Price: 1500, Priority: true, Places: 2, Key: "k|1",
	}
}

var slotCacheCases = map[string]func(*testing.T, appointment.SlotCache){
	"Kept": func(t *testing.T, c appointment.SlotCache) {
		one, two := freeSlot("A", time.Hour), freeSlot("A", 2*time.Hour)
		bare := appointment.Slot{Provider: "northlab", SiteCode: "B", Start: noon, End: noon.Add(time.Minute)}
		zoned := appointment.Slot{Provider: "northlab", SiteCode: "C", Start: noon.In(time.FixedZone("x", 3600)).Add(999), End: noon.Add(time.Minute)}
		require.NoError(t, c.PutSlots(t.Context(), "northlab", noon, map[string][]appointment.Slot{"A": {one, two}, "B": {bare}, "C": {zoned}, "D": nil}))
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A", "B", "C", "D", "E"})
		require.NoError(t, err)
		require.Len(t, got, 4, "nothing is known of E")
		require.Equal(t, appointment.CachedSlots{At: noon, Slots: []appointment.Slot{one, two}}, got["A"])
		require.Equal(t, []appointment.Slot{bare}, got["B"].Slots)
		require.Equal(t, noon, got["C"].Slots[0].Start, "UTC, to the microsecond")
		require.Empty(t, got["D"].Slots)
		got, err = c.CachedSlots(t.Context(), "northlab", nil)
		require.NoError(t, err)
		require.Empty(t, got)
	},
	"Replaced": func(t *testing.T, c appointment.SlotCache) {
		old, fresh := freeSlot("A", time.Hour), freeSlot("A", 2*time.Hour)
		keep := func(after time.Duration, s appointment.Slot) {
			require.NoError(t, c.PutSlots(t.Context(), "northlab", noon.Add(after), map[string][]appointment.Slot{"A": {s}}))
		}
		keep(0, old)
		keep(time.Minute, fresh)
		keep(30*time.Second, old)
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
		require.NoError(t, err)
		require.Equal(t, appointment.CachedSlots{At: noon.Add(time.Minute), Slots: []appointment.Slot{fresh}}, got["A"], "the latest stays")
	},
	"LabsAreApart": func(t *testing.T, c appointment.SlotCache) {
		require.NoError(t, c.PutSlots(t.Context(), "northlab", noon, map[string][]appointment.Slot{"A": {freeSlot("A", 0)}}))
		for _, tc := range [][2]string{{"southlab", "A"}, {"northlab", "a"}, {"Northlab", "A"}} {
			got, err := c.CachedSlots(t.Context(), tc[0], []string{tc[1]})
			require.NoError(t, err)
			require.Empty(t, got)
		}
	},
	"NobodyElsesCopy": func(t *testing.T, c appointment.SlotCache) {
		list := []appointment.Slot{freeSlot("A", 0)}
		require.NoError(t, c.PutSlots(t.Context(), "northlab", noon, map[string][]appointment.Slot{"A": list}))
		list[0].Key = "spoilt"
		for range 2 {
			got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
			require.NoError(t, err)
			require.Equal(t, "k|1", got["A"].Slots[0].Key)
			got["A"].Slots[0].Key = "spoilt"
		}
	},
	"ContextEnded": func(t *testing.T, c appointment.SlotCache) {
		require.ErrorIs(t, c.PutSlots(conformance.Ended(t), "northlab", noon, map[string][]appointment.Slot{"A": nil}), context.Canceled)
		_, err := c.CachedSlots(conformance.Ended(t), "northlab", []string{"A"})
		require.ErrorIs(t, err, context.Canceled)
		got, err := c.CachedSlots(t.Context(), "northlab", []string{"A"})
		require.NoError(t, err)
		require.Empty(t, got)
	},
}

// noon is the start of most slots in the tests.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 123456000, time.UTC)
