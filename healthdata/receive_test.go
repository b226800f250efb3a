package healthdata_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// In one answer, different items of one identity are refused wherever they stand, and equal
// ones are stored once. A part with an invalid source is refused alone.
func TestReceiveSummaries_differentItemsOfOneIDAreRefused(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	night := func(id string, score int64) *healthdata.Sleep {
		before := time.Duration(id[0]-'a') * 24 * time.Hour
		return &healthdata.Sleep{
			Head: healthdata.Head{ExternalID: id}, BedtimeStart: ago(before + 10*time.Hour), BedtimeStop: ago(before + 2*time.Hour),
			CalendarDate: healthlab.DateOf(ago(before).Time), Score: &score,
		}
	}
	part := func(zone string, items ...healthdata.Summary) healthdata.SummaryPart {
		return healthdata.SummaryPart{Upload: healthdata.Upload{
			Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}, TimeZone: zone,
		}, Items: items}
	}
	got, err := s.ReceiveSummaries(t.Context(), s.team, s.user, "sleep", []healthdata.SummaryPart{
		part("", night("a", 1), night("b", 2), night("c", 3)),
		part("Mars/Olympus", night("b", 9), night("d", 4)),
		part("UTC", night("c", 3), night("a", 5), night("e", 6)),
	})
	require.NoError(t, err)
	require.Len(t, got, 3)
	codes := func(r healthdata.Received) map[int]string {
		out := map[int]string{}
		for _, x := range r.Refusals {
			out[x.Index] = x.Problems[0].Code
		}
		return out
	}
	require.Equal(t, map[int]string{0: "duplicate"}, codes(got[0]))
	require.Equal(t, map[int]string{0: "unknown_zone", 1: "unknown_zone"}, codes(got[1]))
	require.Equal(t, map[int]string{1: "duplicate"}, codes(got[2]))
	require.Equal(t, []int{2, 1, 1}, []int{got[0].New, got[2].New, got[2].Same})
	require.Equal(t, []int64{2, 3, 6}, s.scores())

	// Nothing is kept of a part of a user who is not there.
	_, err = s.ReceiveSummaries(t.Context(), s.team, healthlab.UserID{UUID: uuid.New()}, "sleep", []healthdata.SummaryPart{part("", night("x", 1))})
	require.ErrorIs(t, err, healthlab.NotFound)
}

// A summary without a payload, such as the workout of a recording, leaves the one that is stored.
func TestReceiveSummaries_withoutPayloadKeepsTheStoredPayload(t *testing.T) {
	s := newStation(t, healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
		return healthdata.TeamSettings{ProviderRawData: true}, nil
	}})
	receive := func(title, raw string) healthdata.Counts {
		w := &healthdata.Workout{Head: healthdata.Head{ExternalID: "w"}, Title: &title, TimeStart: ago(2 * time.Hour), TimeEnd: ago(time.Hour)}
		if raw != "" {
			w.Raw = []byte(raw)
		}
		got, err := s.ReceiveSummaries(t.Context(), s.team, s.user, "workouts", []healthdata.SummaryPart{{
			Upload: healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}}, Items: []healthdata.Summary{w},
		}})
		require.NoError(t, err)
		return got[0].Counts
	}
	payload := func() string {
		raw, err := s.RawSummaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "workouts"})
		require.NoError(t, err)
		require.Len(t, raw, 1)
		return string(raw[0].Data)
	}
	require.Equal(t, healthdata.Counts{New: 1}, receive("run", `{"v":1}`))
	require.Equal(t, healthdata.Counts{Same: 1}, receive("run", ""))
	require.Equal(t, `{"v":1}`, payload())
	require.Equal(t, healthdata.Counts{Changed: 1}, receive("long run", ""))
	require.Equal(t, `{"v":1}`, payload())
	require.Equal(t, healthdata.Counts{Changed: 1}, receive("long run", `{"v":2}`))
	require.Equal(t, `{"v":2}`, payload())
}

// scores are those of the nights that are stored, ascending.
func (s *station) scores() (out []int64) {
	s.Helper()
	list, err := s.Summaries(s.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "sleep", From: ago(1000 * time.Hour).Time})
	require.NoError(s, err)
	for _, n := range list {
		out = append(out, *n.(*healthdata.Sleep).Score)
	}
	slices.Sort(out)
	return out
}

// The energy of meals is converted, as all units are.
func TestMeals_energyInJoulesIsConvertedToKilocalories(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	energy := func(unit string, v float64) *healthdata.Energy { return &healthdata.Energy{Unit: unit, Value: v} }
	meal := &healthdata.Meal{
		Timestamp: ago(time.Hour), Name: "Lunch", Energy: energy("kJ", 836.8),
		Data: map[string]healthdata.Food{"Soup": {Energy: energy("kJ", 418.4)}, "Bread": {Energy: energy("kcal", 100)}, "Water": {Energy: energy("", 0)}},
	}
	s.summaries("meal", band, meal)
	list, err := s.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "meal", From: ago(24 * time.Hour).Time})
	require.NoError(t, err)
	require.Len(t, list, 1)
	got := list[0].(*healthdata.Meal)
	require.Equal(t, "kcal", got.Energy.Unit)
	require.InDelta(t, 200, got.Energy.Value, 1e-9)
	for food, want := range map[string]float64{"Soup": 100, "Bread": 100, "Water": 0} {
		require.Equal(t, "kcal", got.Data[food].Energy.Unit)
		require.InDelta(t, want, got.Data[food].Energy.Value, 1e-9)
	}
}
