package healthdata_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func night(id string) *healthdata.Sleep {
	n := &healthdata.Sleep{BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour)}
	n.ExternalID = id
	return n
}

func stages(id string) *healthdata.SleepCycle {
	c := &healthdata.SleepCycle{SessionStart: ago(9 * time.Hour), SessionEnd: ago(time.Hour)}
	c.ExternalID = id
	return c
}

func TestRemoveSummaries_ofANightRemovesItsStages(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	app := band
	app.Source.AppID = ptr("com.acme.sleep")
	for name, up := range map[string]healthdata.Upload{"a band": band, "an app": app} {
		t.Run(name, func(t *testing.T) {
			removed := func(want int, ids ...string) {
				t.Helper()
				n, err := s.RemoveSummaries(t.Context(), s.team, s.user, "sleep", up, ids)
				require.NoError(t, err)
				require.Equal(t, want, n, "nights are counted, and not their stages")
			}
			kept := night("n-3")
			s.summaries("sleep", up, night("n-1"), kept)
			s.summaries("sleep_cycle", up, stages("n-1"), stages("n-3"))
			removed(1, "n-1", "n-2")
			require.Equal(t, kept.ID, only[*healthdata.SleepCycle](s, "sleep_cycle").SleepID)

			// Stages without an id of their own say which night is theirs.
			named := stages("")
			named.SleepID = kept.ID
			s.summaries("sleep_cycle", up, named)
			require.Len(t, s.list("sleep_cycle"), 2)
			removed(1, "n-3")
			require.Empty(t, s.list("sleep_cycle"))

			// Stages whose night is gone already go, too.
			s.summaries("sleep_cycle", up, stages("n-1"))
			removed(0, "n-1")
			require.Empty(t, s.list("sleep_cycle"))
		})
	}
}

func TestRemoveSummaries_ofAWorkoutRemovesItsStream(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, stream := s.run()
	_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, stream)
	require.NoError(t, err)
	n, err := s.RemoveSummaries(t.Context(), s.team, s.user, "workouts", band, []string{"w-1"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = s.WorkoutStream(t.Context(), s.team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestRemoveSamples_removesOnlySamplesOfTheSameAppAndDevice(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	by := func(app string) healthdata.Upload {
		up := band
		if app != "" {
			up.Source.AppID = &app
		}
		return up
	}
	pulse := func(up healthdata.Upload, at healthlab.Time, v float64) {
		s.samples("heartrate", up, healthdata.Sample{Timestamp: at, Unit: "bpm", Value: healthdata.Number(v)})
	}
	removed := func(want int, up healthdata.Upload, at ...healthlab.Time) {
		t.Helper()
		n, err := s.RemoveSamples(t.Context(), s.team, s.user, "heartrate", up, "", at)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	ten, eleven, twelve := ago(3*time.Hour), ago(2*time.Hour), ago(time.Hour)
	pulse(by("com.acme.a"), ten, 60)
	pulse(by("com.acme.a"), eleven, 61)
	pulse(by("com.acme.b"), ten, 70) // readers see it in place of the other one
	pulse(by("com.acme.b"), twelve, 72)
	removed(2, by("com.acme.a"), ten, eleven, twelve)
	removed(0, by("com.acme.a"), ten, eleven, twelve)
	require.Len(t, s.read("heartrate"), 2)
	removed(1, by("com.acme.b"), ten)
	require.Len(t, s.read("heartrate"), 1, "the sample of the other app was removed before")
	removed(1, by(""), twelve)

	// As with apps, so with devices.
	worn := band
	worn.Device = &healthdata.DeviceInfo{ID: ptr("serial-1")}
	other := band
	other.Device = &healthdata.DeviceInfo{ID: ptr("serial-2")}
	pulse(worn, ten, 60)
	removed(0, other, ten)
	removed(1, worn, ten)
}

// deletions returns the deleted events since the last call, by type, and checks that each has the
// key of an event before it, and comes after it.
func (s *station) deletions() map[string][]json.RawMessage {
	s.Helper()
	last := map[string]int64{}
	out := map[string][]json.RawMessage{}
	for _, id := range s.ids {
		m, err := s.log.Message(s.Context(), s.team, id)
		if err != nil {
			continue // an id of something else
		}
		if strings.HasSuffix(m.Type, ".deleted") {
			require.Greater(s, m.Seq, last[m.Key], m.Type)
			require.NotZero(s, last[m.Key], m.Type)
		}
		last[m.Key] = m.Seq
	}
	for _, e := range s.events() {
		if strings.HasSuffix(e.EventType, ".deleted") {
			out[e.EventType] = append(out[e.EventType], e.Data)
		}
	}
	return out
}

func TestRemoveSummaries_sendsDeletedEvents(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	first, second := night("n-1"), night("n-2")
	second.BedtimeStart, second.BedtimeStop = ago(33*time.Hour), ago(25*time.Hour)
	s.summaries("sleep", band, first, second)
	s.summaries("sleep_cycle", band, stages("n-1"))
	cycle := only[*healthdata.SleepCycle](s, "sleep_cycle")
	require.Empty(t, s.deletions())
	for range 2 { // what is gone already is not announced
		_, err := s.RemoveSummaries(t.Context(), s.team, s.user, "sleep", band, []string{"n-1", "n-3", "n-1"})
		require.NoError(t, err)
	}
	got := s.deletions()
	require.Len(t, got, 2)
	for resource, id := range map[string]uuid.UUID{"sleep": first.ID, "sleep_cycle": cycle.ID} {
		events := got["daily.data."+resource+".deleted"]
		require.Len(t, events, 1)
		var e healthdata.SummaryDeleted
		require.NoError(t, json.Unmarshal(events[0], &e))
		require.Equal(t, healthdata.SummaryDeleted{ID: id, UserID: s.user, Source: cycle.Source}, e)
	}

	id, stream := s.run()
	_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, stream)
	require.NoError(t, err)
	_, err = s.RemoveSummaries(t.Context(), s.team, s.user, "workouts", band, []string{"w-1"})
	require.NoError(t, err)
	got = s.deletions()
	require.Len(t, got["daily.data.workouts.deleted"], 1)
	require.Len(t, got["daily.data.workout_stream.deleted"], 1)
	require.Contains(t, string(got["daily.data.workout_stream.deleted"][0]), id.String())

	// Deleting the user and what it had announces nothing.
	require.NoError(t, s.Deletions().Delete(t.Context(), s.team, s.user))
	require.Empty(t, s.deletions())
}

func TestRemoveSamples_sendsDeletedEvents(t *testing.T) {
	s := newStation(t, healthdata.Options{BatchSamples: 2})
	typed := func(at time.Duration) healthdata.Sample {
		v := bucket("count", ago(at), time.Hour, 1)
		v.Type = ptr("stood")
		return v
	}
	s.samples("stand_hour", band, typed(2*time.Hour), typed(3*time.Hour), typed(4*time.Hour), typed(5*time.Hour))
	require.Empty(t, s.deletions())
	times := []healthlab.Time{ago(2 * time.Hour), ago(4 * time.Hour), ago(3 * time.Hour), ago(9 * time.Hour)}
	for range 2 {
		_, err := s.RemoveSamples(t.Context(), s.team, s.user, "stand_hour", band, "", times)
		require.NoError(t, err)
	}
	events := s.deletions()["daily.data.stand_hour.deleted"]
	require.Len(t, events, 2)
	var data []healthdata.DeletedSample
	for _, raw := range events {
		var e healthdata.SamplesDeleted
		require.NoError(t, json.Unmarshal(raw, &e))
		require.Equal(t, s.user, e.UserID)
		require.Equal(t, "acme_band", e.Source.Provider)
		require.Equal(t, healthdata.SourceWatch, e.Source.Type)
		data = append(data, e.Data...)
	}
	require.Equal(t, []healthdata.DeletedSample{
		{Timestamp: ago(4 * time.Hour), Type: ptr("stood")}, {Timestamp: ago(3 * time.Hour), Type: ptr("stood")}, {Timestamp: ago(2 * time.Hour), Type: ptr("stood")},
	}, data)

	// What was uploaded as history is not announced, and neither is its removal.
	past := band
	past.Stage = healthdata.StageHistorical
	_, err := s.RemoveSamples(t.Context(), s.team, s.user, "stand_hour", past, "", []healthlab.Time{ago(5 * time.Hour)})
	require.NoError(t, err)
	require.Empty(t, s.deletions())
}
