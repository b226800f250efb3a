package healthdata_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Entries of one hour are one sample: amounts are added, in the unit of the resource, texts
// stand below each other, tags are united.
func TestCombineEntries_addsEntriesOfOneHour(t *testing.T) {
	ten, eleven := ago(2*time.Hour), ago(time.Hour)
	later := healthlab.At(ten.Add(30 * time.Minute))
	entry := func(at healthlab.Time, v *healthdata.Value, unit string) healthdata.Sample {
		return healthdata.Sample{Timestamp: at, Start: &at, End: &at, Value: v, Unit: unit}
	}

	carbs := healthdata.CombineEntries("carbohydrates", []healthdata.Sample{
		entry(ten, healthdata.Number(10), "g"), entry(eleven, healthdata.Number(7), "g"), entry(ten, healthdata.Number(2500), "mg"),
	})
	require.Equal(t, []healthdata.Sample{entry(ten, healthdata.Number(12.5), "g"), entry(eleven, healthdata.Number(7), "g")}, carbs)

	insulin := func(kind, purpose string, v float64) healthdata.Sample {
		s := entry(ten, healthdata.Number(v), "unit")
		s.Type, s.BolusPurpose, s.DeliveryMode, s.DeliveryForm = &kind, &purpose, ptr("bolus"), ptr("standard")
		return s
	}
	extended := insulin("rapid_acting", "correction", 2)
	extended.End, extended.DeliveryForm = &later, ptr("extended")
	both := insulin("rapid_acting", "mixed", 5)
	both.End, both.DeliveryForm = &later, nil
	given := []healthdata.Sample{insulin("rapid_acting", "meal", 3), insulin("long_acting", "unknown", 20), extended}
	require.Equal(t, []healthdata.Sample{both, insulin("long_acting", "unknown", 20)}, healthdata.CombineEntries("insulin_injection", given))
	require.InDelta(t, 3, given[0].Value.Number, 0, "what was given is not changed")
	require.Equal(t, "unknown", *healthdata.CombineEntries("insulin_injection", []healthdata.Sample{
		insulin("rapid_acting", "meal", 3), insulin("rapid_acting", "unknown", 3),
	})[0].BolusPurpose)

	note := func(text string, tags ...string) healthdata.Sample {
		s := entry(ten, healthdata.Text(text), "text")
		s.Tags = tags
		return s
	}
	require.Equal(t, []healthdata.Sample{note("toast\na run\ntoast", "food", "exercise")},
		healthdata.CombineEntries("note", []healthdata.Sample{note("toast", "food"), note("a run", "exercise", "food"), note("toast")}))

	// What is no diary stays as it is: of one instant, the last stays.
	rates := []healthdata.Sample{entry(ten, healthdata.Number(60), "bpm"), entry(ten, healthdata.Number(61), "bpm")}
	require.Equal(t, rates, healthdata.CombineEntries("heartrate", rates))
	require.Equal(t, rates, healthdata.CombineEntries("nothing", rates))
}

// An entry that cannot be stored is not added to another one; it alone is refused.
func TestCombineEntries_refusesOnlyTheInvalidEntry(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	at := ago(time.Hour)
	entry := func(v *healthdata.Value, unit string) healthdata.Sample {
		return healthdata.Sample{Timestamp: at, Start: &at, End: &at, Value: v, Unit: unit}
	}
	combined := healthdata.CombineEntries("carbohydrates", []healthdata.Sample{
		entry(healthdata.Number(10), "furlong"), entry(healthdata.Number(10), "g"), entry(nil, "g"), entry(healthdata.Text("many"), "g"),
		entry(healthdata.Number(math.NaN()), "g"), entry(healthdata.Number(5), "g"),
	})
	require.Len(t, combined, 5)
	got, err := s.ReceiveSamples(t.Context(), s.team, s.user, "carbohydrates", band, combined)
	require.NoError(t, err)
	require.Len(t, got.Refusals, 4)
	all, err := s.AllSamples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "carbohydrates", From: at.Time, To: at.Time})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.InDelta(t, 15, all[0].Value.Number, 0)
}

// Combining entries, in any order and in one or several calls, neither loses an amount nor
// counts it twice.
func TestCombineEntries_keepsTheSumInAnyOrderOfCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOf(rapid.IntRange(0, 100)).Draw(t, "amounts")
		var all []healthdata.Sample
		sum, hours := 0.0, map[healthlab.Time]bool{}
		for _, n := range amounts {
			at := ago(time.Duration(rapid.IntRange(1, 4).Draw(t, "hour")) * time.Hour)
			all = append(all, healthdata.Sample{Timestamp: at, Start: &at, End: &at, Value: healthdata.Number(float64(n)), Unit: "g"})
			sum, hours[at] = sum+float64(n), true
		}
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		whole := healthdata.CombineEntries("carbohydrates", all)
		parts := healthdata.CombineEntries("carbohydrates", append(healthdata.CombineEntries("carbohydrates", all[:cut]), all[cut:]...))
		require.Equal(t, whole, parts)
		require.Len(t, whole, len(hours))
		got := 0.0
		for _, s := range whole {
			got += s.Value.Number
		}
		require.InDelta(t, sum, got, 0)
	})
}
